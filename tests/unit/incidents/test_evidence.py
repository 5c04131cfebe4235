"""The incident log of a trial as evidence: which incidents count, and what a signature covers."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_eval.analysis.trial import analyse_trial
from robo_eval.core.errors import InputError, MissingExtraError
from robo_eval.gates.bundle import write_assessment
from robo_eval.gates.trial import examine_trial
from robo_eval.log import incident_log
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.evidence_read import read_evidence
from robo_eval.log.verify import verify_trial
from robo_eval.metrics.body import Body
from robo_eval_incidents import IncidentLog, open_log
from robo_eval_incidents import log as writer
from robo_eval_incidents.hours import log_exposure
from robo_eval_incidents.kinds import (
    Closure,
    Correction,
    Nil,
    Reclassification,
    Report,
    Review,
    View,
)
from robo_eval_incidents.merge import merge
from robo_eval_incidents.reader import changes_since, read_incidents, state_of
from robo_eval_incidents.state import RefusedError
from robo_eval_incidents.words import Category, Severity, Via

START = 1_772_000_000 * 10**9
HOUR = 3_600 * 10**9
QUIET = Nil(start_ns=START, end_ns=START + 8 * HOUR)


@pytest.fixture
def trial(played: Callable[..., Path]) -> TrialDirectory:
    return TrialDirectory.open(played())


@pytest.fixture
def own(trial: TrialDirectory) -> Any:
    """The incident log of the trial."""
    with open_log(trial.path, station="cell-1", make=True) as opened:
        yield opened


def robot_of(trial: TrialDirectory, side: str = "real") -> Body:
    (found,) = [one for one in analyse_trial(trial).robots if one.side == side]
    return found


def counts(trial: TrialDirectory, side: str = "real") -> dict[str, int] | None:
    found = robot_of(trial, side).counts
    return None if found is None else {name: count for name, count in found.items() if count}


# Which incidents count


def test_incidents_of_the_log_are_those_of_the_trial(trial, own, say, report):
    filed = say(own, report(severity="minor", robot="gantry-real", happened_ns=START + 60 * 10**9))
    found = read_evidence(trial.path)
    (incident,) = found.incidents or ()
    assert (incident.incident_id, incident.severity) == (filed.record_id, "minor")
    assert incident.place == f"record cell-1/{filed.sequence}"
    assert found.files == {"incidents": str(trial.path / "incidents.db")}
    assert list(found.sources) == ["incidents.db"]
    summary = analyse_trial(trial)
    assert summary.findings == ()
    assert counts(trial) == {"minor": 1}
    # The episodes' hours, and not those of the log on top.
    log_exposure(trial.path, own)
    assert robot_of(trial).exposure.hours == pytest.approx(3.0)


def test_drafts_count_dismissed_ones_do_not_and_simulated_ones_are_left_out(
    trial, own, say, report
):
    near = {"happened_ns": START + 60 * 10**9}
    say(own, report(rule="stop", **near), via=Via.RULE)
    wrong = say(own, report(severity="minor", **near))
    say(own, report(side="sim", severity="critical", **near))
    assert counts(trial) == {"near_miss": 1, "minor": 1}
    review = Review(verdict="dismissed", note="a test of the button")
    say(own, review, by="Reviewer B", incident_id=wrong.record_id)
    assert counts(trial) == {"near_miss": 1}


def test_a_dismissed_incident_is_not_closed_and_does_not_count_again(trial, own, say, report):
    wrong = say(own, report(happened_ns=START))
    about = {"incident_id": wrong.record_id, "by": "Reviewer B"}
    say(own, Review(verdict="dismissed", note="a test"), **about)
    with pytest.raises(RefusedError, match="was dismissed"):
        say(own, Closure(note="nothing to do"), **about)
    assert counts(trial) == {}


def test_an_incident_outside_the_episodes_is_a_finding_that_names_its_record(
    trial, own, say, report
):
    filed = say(own, report(happened_ns=START + 100 * HOUR))
    (finding,) = analyse_trial(trial).findings
    assert finding.where == f"{trial.path / 'incidents.db'}: record cell-1/{filed.sequence}"
    assert "lies in no exposure" in finding.text
    assert counts(trial) == {"near_miss": 1}


def test_a_log_that_says_nothing_is_no_record_of_incidents(trial, own, say):
    log_exposure(trial.path, own)
    found = read_evidence(trial.path)
    assert found.incidents is None
    assert found.sources == {}
    assert counts(trial) is None
    assert audit(trial)[1] == "incidents.db says nothing of side real"
    say(own, QUIET)
    assert counts(trial) == {}
    assert audit(trial)[0] == "pass"


def test_what_was_reported_of_a_twin_is_no_record_of_a_robot(trial, own, say, report):
    say(own, report(side="twin", happened_ns=START))
    assert counts(trial, "twin") == {"near_miss": 1}
    assert counts(trial, "real") is None
    assert robot_of(trial).of("SS").value is None
    assert audit(trial)[0] == "missing"


def audit(trial: TrialDirectory) -> tuple[str, str]:
    (policy,) = examine_trial(trial).policies
    (found,) = [one for _, one in policy.audits if one.id == "incident_reports"]
    return found.status, found.reason


def test_a_changed_record_fails_the_audit_of_the_evidence(trial, own, say, report):
    say(own, report(severity="critical", happened_ns=START + 10**9))
    own.close()
    with sqlite3.connect(trial.path / "incidents.db") as database:
        database.execute(
            "UPDATE records SET content = replace(content, '\"critical\"', '\"near_miss\"')"
        )
    database.close()
    findings = analyse_trial(trial).findings
    assert any("was changed: its SHA-256 is" in finding.text for finding in findings)
    (policy,) = examine_trial(trial).policies
    assert {one.id: one.status for _, one in policy.audits}["evidence"] == "fail"


def test_a_log_and_a_table_are_one_too_many(trial, own):
    (trial.path / "incidents.csv").write_text("incident_id,severity\n")
    with pytest.raises(InputError, match=r"incidents\.db and incidents\.csv.*incidents import"):
        read_evidence(trial.path)


def test_a_log_that_is_named_is_read_in_the_place_of_the_trials_own(
    trial, own, say, report, tmp_path
):
    say(own, report(severity="minor", happened_ns=START))
    with open_log(tmp_path / "lab.db", station="lab", make=True) as other:
        say(other, QUIET)
    found = read_evidence(trial.path, {"incidents": tmp_path / "lab.db"})
    assert found.incidents == ()
    assert list(found.sources) == ["lab.db"]


@pytest.mark.parametrize("data", [b"", b"no database at all", b"SQLite format 3\x00"])
def test_a_log_that_cannot_be_read_is_an_error_of_one_line(trial, data):
    (trial.path / "incidents.db").write_bytes(data)
    with pytest.raises(InputError, match=r"incidents\.db: ") as caught:
        read_evidence(trial.path)
    assert "\n" not in str(caught.value)


def test_without_its_package_a_log_is_not_passed_over(trial, own, monkeypatch):
    monkeypatch.setitem(sys.modules, "robo_eval_incidents.reader", None)
    with pytest.raises(MissingExtraError, match=r"incidents\.db: .* pip install"):
        read_evidence(trial.path)


def test_both_packages_call_the_log_alike():
    assert incident_log.DATABASE == writer.DATABASE


# What a signature covers


def test_what_names_the_records_is_the_same_whatever_the_bytes(own, say, report, tamper):
    path = own.database.path
    say(own, report())
    before = state_of(path)
    say(own, View(), incident_id=own.incidents()[0].incident_id)
    log_bytes = path.read_bytes()
    own.close()
    connection = sqlite3.connect(path)
    connection.execute("VACUUM")
    connection.close()
    assert path.read_bytes() != log_bytes
    assert state_of(path) == before
    assert list(changes_since(path, before)) == []


Change = Callable[[IncidentLog, str], object]
SAYS: list[tuple[str, Callable[[str], tuple[object, str | None]]]] = [
    ("report", lambda _: (_report(), None)),
    ("nil", lambda _: (QUIET, None)),
    ("correction", lambda one: (Correction(fields={"robot": "arm"}, reason="typing"), one)),
    (
        "reclassification",
        lambda one: (
            Reclassification(severity=Severity.MINOR, category=Category.OTHER, reason="seen"),
            one,
        ),
    ),
    ("review", lambda one: (Review(verdict="dismissed", note="a test"), one)),
]


def _report() -> Report:
    return Report.model_validate(
        {
            "happened_ns": START, "robot": "gantry-real", "side": "real",
            "severity": "near_miss", "category": "other", "description": "it stopped",
        }
    )  # fmt: skip


@pytest.mark.parametrize(("kind", "make"), SAYS, ids=[kind for kind, _ in SAYS])
def test_what_tells_on_incidents_came_after_the_signature(own, say, kind, make):
    path = own.database.path
    first = say(own, _report()).record_id
    before = state_of(path)
    body, about = make(first)
    say(own, body, by="Reviewer B", incident_id=about)
    (what,) = changes_since(path, before)
    assert what.startswith("1 record of incidents came after")


def test_a_station_that_is_merged_in_later_came_after_the_signature(own, say, tmp_path):
    path = own.database.path
    say(own, _report())
    before = state_of(path)
    with open_log(tmp_path / "other.db", station="cell-0", make=True) as other:
        say(other, _report())
    merge(tmp_path / "other.db", own)
    (what,) = changes_since(path, before)
    assert "1 record of incidents came after" in what


def test_records_that_are_gone_or_changed_are_noticed(own, say, report, path):
    file = own.database.path
    for _ in range(3):
        say(own, _report())
    before = state_of(file)
    own.close()
    for change in (
        "DELETE FROM records WHERE sequence = 3",
        "UPDATE records SET content = replace(content, 'it stopped', 'it moved') WHERE sequence=2",
        "DELETE FROM records",
    ):
        with sqlite3.connect(file) as database:
            database.execute(change)
            database.commit()
            (what,) = changes_since(file, before)
        database.close()
        assert what.startswith("was changed since it was signed")


def test_an_assessment_is_signed_over_the_records_of_incidents(trial, own, say, report):
    say(own, report(happened_ns=START + 10**9))
    assess(trial)
    assert verify(trial) == []
    log_exposure(trial.path, own)
    assert verify(trial) == []
    say(own, report(happened_ns=START + 2 * 10**9))
    assert verify(trial) == [
        "incidents.db: 1 record of incidents came after it was signed, which does not know of them"
    ]
    assess(trial)
    assert verify(trial) == []
    own.close()
    for path in trial.path.glob("incidents.db*"):
        path.unlink()
    assert verify(trial) == ["incidents.db: is missing since it was signed"]


def test_a_log_that_comes_after_the_signature_is_noticed_if_it_tells_on_incidents(trial, say):
    assess(trial)
    with open_log(trial.path, make=True) as log:
        log_exposure(trial.path, log)
        assert verify(trial) == []
        say(log, QUIET)
        assert len(verify(trial)) == 1


def test_a_log_that_cannot_be_compared_is_a_problem_and_no_crash(trial, own, say):
    say(own, QUIET)
    assess(trial)
    own.close()
    (trial.path / "incidents.db").write_bytes(b"not a database any more")
    (problem,) = verify(trial)
    assert problem.startswith("incidents.db: cannot be compared with what was signed: ")


def assess(trial: TrialDirectory) -> None:
    write_assessment(trial, examine_trial(trial), "robotics")


def verify(trial: TrialDirectory) -> list[str]:
    return [f"{one.file}: {one.what}" for one in verify_trial(trial.path).problems]


@pytest.fixture(scope="module")
def stated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    path = tmp_path_factory.mktemp("log") / "incidents.db"
    with open_log(path, make=True) as log:
        for body in (_report(), QUIET, _report()):
            log.file(body, by="Operator A", via=Via.CLI)
    state = state_of(path)
    assert state is not None
    return path, state


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "newest": st.none() | st.dictionaries(st.text(), st.integers() | st.text()),
            "sha256": st.none() | st.text() | st.integers(),
            "records": st.integers(),
        },
    )
)
def test_no_other_statement_passes_for_the_true_one(stated, other):
    path, state = stated
    if (other.get("newest"), other.get("sha256")) == (state["newest"], state["sha256"]):
        return
    with suppress(InputError):  # what is no statement at all
        assert list(changes_since(path, other))


def test_incidents_of_a_log_are_read_in_the_order_they_happened(stated):
    found = read_incidents(stated[0])
    assert found.incidents is not None
    assert [one.time_ns for one in found.incidents] == [START, START]
    assert found.silent == ("twin",)
    assert found.problems == ()
