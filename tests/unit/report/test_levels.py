"""Tests of what a report says of autonomy levels."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from robo_eval.analysis.trial import analyse_trial
from robo_eval.axes.improvement import Streak
from robo_eval.cli.app import app
from robo_eval.core.estimate import Estimate
from robo_eval.gates import QUANTITIES, Audit, Readings, assess
from robo_eval.gates.profile import AUDITS, LEVELS
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.importer import import_csv
from robo_eval.metrics.config import MetricConfig
from robo_eval.report.build import build_report
from robo_eval.report.levels import Autonomy, GateRow, PolicyLevel, autonomy_of
from robo_eval.report.model import Report
from robo_eval.report.page import render

FAST = MetricConfig(resamples=100)
GAP = "\N{NO-BREAK SPACE}"
Make = Callable[..., Report]


def ratio(value: float, half: float = 0.01, n: int = 500) -> Estimate:
    return Estimate(
        value=value, low=max(0.0, value - half), high=min(1.0, value + half), n=n,
        method="clopper_pearson", unit="ratio",
    )  # fmt: skip


def counted(value: float, unit: str = "h") -> Estimate:
    return Estimate(value=value, low=value, high=value, n=1, method="counted", unit=unit)


def evidence(side: str = "real", **changed: Estimate | None) -> Readings:
    """Evidence for level 2, but for what is changed: two families, of which one reaches 0.90."""
    slope = Estimate(
        value=0.007, low=0.004, high=0.01, n=12, method="moving_block_bootstrap", unit="1"
    )
    values: dict[str, Estimate | None] = {
        "ar": ratio(0.86),
        "s2r": ratio(0.9),
        "ss": ratio(0.9),
        "e": ratio(0.88),
        "ra": ratio(0.7),
        "qc": ratio(0.7),
        "minor_per_100_h": Estimate(
            value=0.0, low=0.0, high=0.8, n=0, method="garwood", unit="incidents/100 h"
        ),
        "major": counted(0.0, "incidents"),
        "critical": counted(0.0, "incidents"),
        "exposure_hours": counted(4800.0),
        "mtbsi": Estimate(
            value=None, low=1600.0, n=0, method="garwood", unit="h", reason="none happened"
        ),
        "kappa": slope,
        "maintenance_days": counted(8.0, "days"),
    }
    values.update(changed)
    return Readings(
        policy="arm",
        side=side,
        values={name: found for name, found in values.items() if found is not None},
        families={
            "ar": {"pick": ratio(0.95), "place": ratio(0.85)},
            "s2r": {"pick": ratio(0.9), "place": ratio(0.6)},
        },
        streaks={"pick": Streak(kappa=slope, days=8, of_days=12)},
        events={"near_miss": 0, "minor": 0, "major": 0, "critical": 0},
        audits=tuple(Audit(id=name, title=name, status="pass", reason="") for name in AUDITS),
    )


def shown(*readings: Readings, places: dict[str, str] | None = None) -> Autonomy:
    found = autonomy_of([assess(one) for one in readings], places=places)
    assert found is not None
    return found


def only(readings: Readings, places: dict[str, str] | None = None) -> PolicyLevel:
    (found,) = shown(readings, places=places).policies
    return found


def row(policy: PolicyLevel, title: str) -> GateRow:
    (found,) = [it for it in policy.gates if it.title.startswith(title)]
    return found


def page_of(make_report: Make, autonomy: Autonomy | None) -> str:
    return render(replace(make_report(), autonomy=autonomy), [])


def section_of(page: str) -> str:
    return page.split('<section id="autonomy"')[1].split("</section>")[0]


def test_a_level_its_evidence_and_the_way_to_the_next_are_shown(make_report: Make) -> None:
    found = only(evidence())
    assert (found.badge, found.tag, found.is_valid) == ("AAI-2", "real", True)
    assert found.reason == "Gates and audits of level 2 pass."
    assert found.notes == []
    assert found.missing is not None
    assert found.missing.level == 3
    assert [it.level for it in found.above] == [4]
    assert found.passed == f"{len(AUDITS)} of {len(AUDITS)} pass"
    page = section_of(page_of(make_report, shown(evidence())))
    assert '<span class="aai">AAI-2</span>' in page
    assert "evidence: real" in page
    assert "What is missing for AAI-3" in page
    assert f"Missing for AAI-4: {len(found.above[0].items)} things</summary>" in page
    assert "found on the robot" in page
    assert "AR_twin" not in page


def test_the_capped_level_of_a_twin_says_what_it_would_be_on_a_robot(make_report: Make) -> None:
    found = only(evidence("twin"))
    assert (found.badge, found.tag) == ("AAI-1", "twin")
    assert found.reason == "Without a physical robot no level above 1 is issued."
    assert found.notes[0] == "Would be AAI-2 on a robot."
    assert found.missing is not None
    assert "episodes on a physical robot" in found.missing.items
    page = section_of(page_of(make_report, shown(evidence("twin"))))
    assert "found on the twin" in page
    assert "AR_twin and S2S stand where gates ask for AR and S2R" in page


def test_point_estimates_are_told_where_they_say_another_level() -> None:
    found = only(evidence(ar=ratio(0.86, half=0.07)))
    assert found.badge == "AAI-0"
    assert found.notes == [
        "By point estimates it is AAI-2, which the intervals do not support yet."
    ]


def test_a_window_that_does_not_count_has_no_level_and_no_next_one(make_report: Make) -> None:
    reason = "a critical incident: the window does not count"
    autonomy = shown(replace(evidence(), invalid=reason))
    (found,) = autonomy.policies
    assert (found.badge, found.is_valid, found.missing) == ("no level", False, None)
    assert found.above == []
    page = section_of(page_of(make_report, autonomy))
    assert '<span class="aai bad">no level</span>' in page
    assert "A critical incident: the window does not count." in page
    assert "What is missing" not in page


def test_simulation_alone_has_no_section(make_report: Make) -> None:
    assert autonomy_of([assess(evidence("sim"))]) is None
    assert autonomy_of([]) is None
    page = page_of(make_report, None)
    assert 'id="autonomy"' not in page
    assert ">Autonomy level<" not in page
    mixed = shown(evidence("sim"), evidence("twin"))
    assert [it.tag for it in mixed.policies] == ["simulation only", "twin"]


def test_a_gate_has_its_evidence_and_a_light_for_each_level_that_asks() -> None:
    found = only(evidence())
    ar = row(found, "AR,")
    assert (ar.value, ar.interval, ar.rests_on) == ("0.860", "0.850 to 0.870", "500 episodes")
    assert ar.lights[0] is None  # level 1 does not ask
    lights = [light for light in ar.lights if light is not None]
    assert [(it.asked, it.status) for it in lights] == [
        ("≥ 0.8", "pass"), ("≥ 0.9", "fail"), ("≥ 0.97", "fail"),
    ]  # fmt: skip
    assert ar.reason == "AAI-3: lower end 0.85 < 0.9"
    minor = row(found, "minor")
    assert (minor.interval, minor.rests_on) == ("0 to 0.8", "0 incidents")
    assert [it.asked for it in minor.lights if it] == ["≤ 1", "≤ 0.5", "≤ 0.2"]
    mtbsi = row(found, "MTBSI")
    assert mtbsi.value == f"at least 1{GAP}600"
    assert mtbsi.reason == f"AAI-4: lower end 1{GAP}600 ≥ 200"
    hours = row(found, "exposure")
    assert (hours.value, hours.interval, hours.rests_on) == (f"4{GAP}800", "", "")
    assert [it.asked for it in row(found, "major").lights if it] == ["none"] * 3


def test_families_are_counted_anew_at_each_level() -> None:
    families = row(only(evidence()), "families that reach AR")
    assert (families.value, families.interval) == ("2 families", "")
    # 0.84, the lower end of `place`, reaches 0.80 only; 0.94, that of `pick`, 0.80 and 0.90.
    assert [(it.found, it.status) for it in families.lights if it] == [
        ("2 of 2", "pass"), ("1 of 2", "fail"), ("0 of 2", "fail"),
    ]  # fmt: skip
    assert families.reason.startswith("AAI-3: 1 of 2 families reach at least 0.9, 3 needed")


def test_what_was_not_measured_is_missing_with_its_remedy_once() -> None:
    found = only(evidence(qc=None))
    control = row(found, "QC")
    assert (control.value, control.rests_on) == ("", "")
    assert {it.status for it in control.lights if it} == {"missing"}
    assert control.reason == "give tolerances in the plan: metrics.tolerances"
    assert found.missing is not None
    assert all(len(set(it.items)) == len(it.items) for it in (found.missing, *found.above))


def test_a_number_without_interval_says_why() -> None:
    bare = Estimate(value=0.99, n=3, method="none", unit="ratio", reason="one value")
    control = row(only(evidence(qc=bare)), "QC")
    assert (control.value, control.interval) == ("0.990", "no interval: one value")
    assert {it.status for it in control.lights if it} == {"missing"}


@given(
    left_out=st.sets(st.sampled_from(sorted(QUANTITIES))), side=st.sampled_from(["real", "twin"])
)
def test_every_gate_and_audit_of_the_assessment_is_on_the_page(
    left_out: set[str], side: str
) -> None:
    readings = evidence(side, **dict.fromkeys(left_out))
    assessment = assess(readings)
    found = only(readings)
    lights = [
        (it.title, light.level, light.status) for it in found.gates for light in it.lights if light
    ]
    assert sorted(lights) == sorted((g.title, g.level, g.status) for g in assessment.gates)
    assert len(found.gates) == len({gate.id for gate in assessment.gates})
    assert all(len(it.lights) == len(LEVELS) for it in found.gates)
    audits = [(it.title, it.status) for it in found.audits]
    assert audits == [(audit.title, audit.status) for _, audit in assessment.audits]


def test_lights_are_a_sign_and_a_word(make_report: Make) -> None:
    autonomy = shown(evidence(qc=None))
    page = section_of(page_of(make_report, autonomy))
    words = re.findall(r'<span class="light (\w+)"><svg .*?</svg>(\w+)</span>', page)
    (found,) = autonomy.policies
    asked = [light.status for it in found.gates for light in it.lights if light]
    assert len(words) == len(asked) + len(found.audits)
    assert all(kind == word for kind, word in words)
    assert {word for _, word in words} == {"pass", "fail", "missing"}
    signs = {word: re.search(rf'light {word}"><svg .*?</svg>', page) for _, word in words}
    assert len({sign[0].split(">", 1)[1] for sign in signs.values() if sign}) == 3


def test_folders_are_left_out_and_markup_stays_text(make_report: Make) -> None:
    readings = evidence()
    text = "/home/me/lab/incidents.csv: line 3: no episode <b>nowhere</b>, and 1,234 more"
    broken = Audit(id="evidence", title="the evidence fits", status="fail", reason=text)
    audits = tuple(broken if it.id == "evidence" else it for it in readings.audits)
    autonomy = shown(replace(readings, audits=audits), places={"/home/me/lab/": ""})
    (audit,) = [it for it in autonomy.policies[0].audits if it.status == "fail"]
    short = "incidents.csv: line 3: no episode <b>nowhere</b>"
    assert audit.reason == f"{short}, and 1{GAP}234 more"
    page = section_of(page_of(make_report, autonomy))
    assert "/home/me" not in page
    assert "<b>nowhere" not in page


def test_many_policies_have_their_tables_folded(make_report: Make) -> None:
    few = [replace(evidence(), policy=f"p{i}") for i in range(2)]
    assert section_of(page_of(make_report, shown(*few))).count('class="printed" open') == 2
    many = [*few, replace(evidence(), policy="p2")]
    page = section_of(page_of(make_report, shown(*many)))
    assert page.count('class="printed" open') == 0
    assert len(set(re.findall(r'id="(autonomy-\d)"', page))) == 3


# The bundle --------------------------------------------------------------------------------------


def make_trial(folder: Path, side: str = "real") -> TrialDirectory:
    """Ten pairs of two policies; incidents are on record where there is a robot."""
    lines = ["trial,where,ok,pair,who,kind,seconds"]
    for who in ("ours", "theirs"):
        for i in range(10):
            key = f"{who}-{i}"
            if side != "sim":
                lines.append(f"r-{key},{side},{int(i < 7)},{key},{who},pick,225")
            lines.append(f"s-{key},sim,{int(i < 8)},{key},{who},pick,")
    (folder / "lab.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "map.yaml").write_text(
        "columns: {episode_id: trial, side: where, success: ok, pair_id: pair, policy: who,"
        " task: kind, exposure_s: {column: seconds, unit: s}}",
        encoding="utf-8",
    )
    trial = import_csv(folder / "lab.csv", folder / "map.yaml", folder / "trial")
    if side != "sim":
        (trial.path / "incidents.csv").write_text(
            "incident_id,severity,episode_id\ni1,near_miss,nowhere\n", encoding="utf-8"
        )
    return trial


def test_the_bundle_has_the_assessment_that_the_command_prints(tmp_path: Path) -> None:
    trial = make_trial(tmp_path)
    page = build_report(trial)
    data = (page.parent / "assessment.json").read_bytes()
    printed = CliRunner().invoke(app, ["assess", str(trial.path), "--json"])
    assert json.loads(data) == json.loads(printed.stdout)
    names = [one["policy"] for one in json.loads(data)["assessments"]]
    assert names == ["ours", "theirs"]
    manifest = json.loads((page.parent / "manifest.json").read_text())
    assert manifest["files"]["assessment.json"] == {
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    text = page.read_text()
    assert '<a href="#autonomy">Autonomy level</a>' in text
    assert 'download="assessment.json" type="application/json"' in text
    section = section_of(text)
    assert section.count('<article class="autonomy"') == 2
    assert "incidents.csv: line 2:" in section  # the incident of an episode that is not there
    assert str(tmp_path) not in section


def test_a_trial_in_simulation_has_neither_section_nor_assessment(tmp_path: Path) -> None:
    page = build_report(make_trial(tmp_path, "sim"), config=FAST)
    assert not (page.parent / "assessment.json").exists()
    assert "assessment.json" not in (page.parent / "manifest.json").read_text()
    assert 'id="autonomy"' not in page.read_text()


def test_a_ready_summary_is_assessed_without_a_second_analysis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = make_trial(tmp_path)
    summary = analyse_trial(trial, config=FAST)
    monkeypatch.setattr(
        "robo_eval.analysis.trial.analyse_trial", lambda *_a, **_k: pytest.fail("computed again")
    )
    assert 'id="autonomy"' in build_report(trial, summary=summary).read_text()


def test_gates_read_no_other_evidence_than_the_numbers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trial = make_trial(tmp_path)
    other = tmp_path / "other.csv"
    other.write_text("incident_id,severity,episode_id\n", encoding="utf-8")
    summary = analyse_trial(trial, config=FAST, evidence={"incidents": other})
    page = build_report(trial, summary=summary)
    assert 'id="autonomy"' not in page.read_text()
    assert "made with other files of evidence" in caplog.text
    page = build_report(trial, summary=summary, evidence={"incidents": other})
    assert "0 incidents on record" in section_of(page.read_text())
