"""The incident log of a trial in metrics, gates, a signed assessment and a report."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from robo_eval.gates.trial import assess_trial
from robo_eval.log.directory import TrialDirectory
from robo_eval.metrics.config import MetricConfig
from robo_eval_incidents import IncidentLog, open_log
from robo_eval_incidents.hours import hours, log_exposure
from robo_eval_incidents.kinds import Nil, Report, Review
from robo_eval_incidents.standing import standing
from robo_eval_incidents.words import Via
from tests.e2e.conftest import PAIRED_MAP

N = 120
START_NS = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp()) * 10**9
HOUR_NS = 3_600 * 10**9
DECLARATIONS = (
    "what,value,n,by,time,document\n"
    "seeds_escrow,1,120,the lab,2026-03-04T12:00:00+00:00,notebook page 7\n"
)


@pytest.fixture
def lab(paired_lab: Callable[..., Path]) -> Path:
    """A lab's trial of pairs in which nobody helped and nothing failed."""
    trial = paired_lab(N, map_text=PAIRED_MAP.replace("handling}", "handling, interventions: 0}"))
    (trial / "declarations.csv").write_text(DECLARATIONS)
    return trial


def report(severity: str, hour: float, **fields: Any) -> Report:
    values = {
        "happened_ns": START_NS + round(hour * HOUR_NS), "robot": "arm-1", "side": "real",
        "severity": severity, "category": "collision", "description": "touched the fixture",
    }  # fmt: skip
    return Report.model_validate(values | fields)


def file(log: IncidentLog, body: Any, by: str = "Operator A", about: str | None = None) -> str:
    return log.file(body, by=by, via=Via.CLI, incident_id=about).record_id


def gates(lab: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """What is found of each gate of level 2, and how the audits ended."""
    (one,) = assess_trial(TrialDirectory.open(lab), config=MetricConfig(resamples=100))
    found = {gate["id"]: gate for gate in one.as_dict()["gates"] if gate["level"] == 2}
    return found, {audit.id: audit.status for _, audit in one.audits}


def test_the_log_of_a_trial_feeds_score_and_gates_and_is_signed_with_them(lab, cli, quick_cli):
    # Nobody kept a record: that is not the same as no incidents.
    found, audits = gates(lab)
    assert (found["ss"]["status"], found["minor"]["status"]) == ("missing", "missing")
    assert audits["incident_reports"] == "missing"

    with open_log(lab, station="cell-1", make=True) as log:
        log_exposure(lab, log)
        file(log, Nil(start_ns=START_NS, end_ns=START_NS + N * HOUR_NS))
        found, audits = gates(lab)
        assert audits["incident_reports"] == "pass"
        assert found["ss"]["found"]["value"] == 1.0
        assert found["major"]["status"] == "pass"
        # The hours of the episodes, once, though the log has them as well.
        assert found["exposure"]["found"]["value"] == pytest.approx(N)
        assert (found["exposure"]["status"], hours(log).total()) == ("pass", pytest.approx(N))

        hit = file(log, report("major", 7.5))
        file(log, report("minor", 30.5, episode_id="real-30"))
        metrics = json.loads(quick_cli("metrics", lab, "--json").out)
        robot = {one["name"]: one["value"] for one in metrics["numbers"] if not one["case"]}
        counts = ("near_misses", "minor_incidents", "major_incidents", "critical_incidents")
        assert [robot[name] for name in counts] == [0, 1, 1, 0]
        assert robot["SS"] == pytest.approx(max(0.0, 1 - 1.1 * 100 / N))
        assert set(metrics["evidence"]) == {"incidents.db", "declarations.csv"}
        assert standing(log).real.score.value == pytest.approx(robot["SS"])
        found, audits = gates(lab)
        assert (found["major"]["status"], found["major"]["found"]["value"]) == ("fail", 1.0)
        assert audits["evidence"] == "pass"

        for who in ("Reviewer B", "Reviewer C"):
            file(log, Review(verdict="dismissed", note="a planned test"), who, hit)
        assert gates(lab)[0]["major"]["status"] == "pass"

        assert cli("assess", lab, "--json").code == 0
        statement = json.loads((lab / "assessment/statement.json").read_text())
        assert statement["incidents"]["records"] == 5
        assert verified(cli, lab) == []
        file(log, report("minor", 50.5))
        (problem,) = verified(quick_cli, lab)
        assert problem.startswith("incidents.db: 1 record of incidents came after it was signed")


def verified(cli: Any, lab: Path) -> list[str]:
    """Problems that verification finds with the trial and its bundle."""
    found = json.loads(cli("verify", lab, "--json").out)
    return [f"{one['file']}: {one['what']}" for one in found["problems"]]


def test_a_critical_incident_in_the_log_ends_the_window(lab):
    with open_log(lab, make=True) as log:
        file(log, report("critical", 3.5))
    (one,) = assess_trial(TrialDirectory.open(lab), config=MetricConfig(resamples=100))
    assert one.level_conservative is None
    assert one.reason.startswith("a critical incident: the window does not count")


def test_an_incident_that_fits_no_episode_fails_the_audit_and_names_its_record(lab, quick_cli):
    with open_log(lab, station="cell-1", make=True) as log:
        file(log, report("minor", N + 200.0))
    done = quick_cli("metrics", lab)
    assert done.code == 1
    assert "incidents.db: record cell-1/2: its time lies in no exposure of side real" in done.err


def test_a_log_and_a_table_of_incidents_are_refused_in_one_line(lab, quick_cli):
    with open_log(lab, make=True):
        pass
    (lab / "incidents.csv").write_text("incident_id,severity\n")
    done = quick_cli("assess", lab)
    assert done.code == 2
    assert len(done.err.strip().splitlines()) == 1
    assert "holds incidents.db and incidents.csv" in done.err
    assert "robo-eval incidents import" in done.err


def test_the_report_counts_what_the_log_says(lab, quick_cli):
    with open_log(lab, make=True) as log:
        file(log, report("minor", 3.5))
    done = quick_cli("report", lab)
    assert done.code == 0, done.err
    summary = json.loads((lab / "report/metrics.json").read_text())
    counted = {one["name"]: one["value"] for one in summary["numbers"]}
    assert counted["minor_incidents"] == 1
    page = (lab / "report/index.html").read_text()
    assert "Evidence came from files that were named" not in page
    assert "incidents.db" in page


READS = """
import sys
from robo_eval.analysis.trial import analyse_trial, open_trial

assert not [name for name in sys.modules if name.startswith("robo_eval_incidents")]
(robot,) = analyse_trial(open_trial(sys.argv[1])).robots
print(robot.of("SS").value)
"""


def test_python_users_name_no_reader_and_safety_does_not_vanish_without_one(lab, environment):
    with open_log(lab / "incidents.db", station="cell-1", make=True) as log:
        file(log, report("minor", 30.5))

    def read(folder: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", READS, str(lab)]
        return subprocess.run(
            command, env=environment(PYTHONPATH=str(folder)), capture_output=True, text=True
        )

    found = read(lab)
    assert found.returncode == 0, found.stderr
    assert float(found.stdout) < 1.0
    # A package of that name which cannot be imported stands for one that is not installed.
    (lab.parent / "lacking" / "robo_eval_incidents").mkdir(parents=True)
    (lab.parent / "lacking/robo_eval_incidents/__init__.py").write_text("raise ImportError\n")
    lacking = read(lab.parent / "lacking")
    assert lacking.returncode != 0
    last = lacking.stderr.strip().splitlines()[-1]
    assert "MissingExtraError" in last
    assert "incidents.db" in last
    assert "pip install" in last
    assert "in open_trial" in lacking.stderr
