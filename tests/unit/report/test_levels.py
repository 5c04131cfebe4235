"""Tests of what a report says of autonomy levels."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from robo_eval.analysis.trial import analyse_trial
from robo_eval.cli.app import app
from robo_eval.core.estimate import Estimate
from robo_eval.formulas.composite import AXES
from robo_eval.gates import Audit, Readings, assess
from robo_eval.gates.axes.anchors import Axis
from robo_eval.gates.axes.frontier import Frontier, frontier_of
from robo_eval.gates.axes.improvement import Streak
from robo_eval.gates.axes.index import index_of
from robo_eval.gates.axes.progress import progress_of
from robo_eval.gates.axes.settings import FrontierSettings, IndexSettings, ProgressSettings
from robo_eval.gates.checklist import Checklist, Item
from robo_eval.gates.profile import AUDITS, load_profile
from robo_eval.gates.readings import remedy_of
from robo_eval.gates.trial import Findings
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.evidence import Checkpoint
from robo_eval.log.importer import import_csv
from robo_eval.metrics.config import MetricConfig
from robo_eval.report.build import build_report
from robo_eval.report.levels import autonomy_of
from robo_eval.report.levels_model import Autonomy, GateRow, PolicyLevel, Shown
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
        "AR_new_task": ratio(0.86),
        "S2R_new_task": ratio(0.9),
        "SS": ratio(0.9),
        "E": ratio(0.88),
        "RA": ratio(0.7),
        "QC_worst": ratio(0.7),
        "minor_per_100_h": Estimate(
            value=0.0, low=0.0, high=0.8, n=0, method="garwood", unit="incidents/100 h"
        ),
        "major_incidents": counted(0.0, "incidents"),
        "critical_incidents": counted(0.0, "incidents"),
        "exposure_hours": counted(4800.0),
        "MTBSI": Estimate(
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
            "AR": {"pick": ratio(0.95), "place": ratio(0.85)},
            "S2R": {"pick": ratio(0.9), "place": ratio(0.6)},
        },
        streaks={"pick": Streak(kappa=slope, days=8, of_days=12)},
        events={"near_miss": 0, "minor": 0, "major": 0, "critical": 0},
        audits=tuple(Audit(id=name, title=name, status="pass", reason="") for name in AUDITS),
    )


def helped(*policies: tuple[str, float, int]) -> Frontier:
    """The frontier of policies with a mean quality and so many interventions in each episode."""
    lines = [
        {"policy": name, "family": "pick", "quality": quality + more, "interventions": often}
        for name, quality, often in policies
        for more in (-0.02, 0.0, 0.0, 0.02)
    ]
    table = pd.DataFrame(lines, columns=["policy", "family", "quality", "interventions"])
    return frontier_of(table, FrontierSettings(resamples=100))


FORM = Checklist(
    items=(
        Item(id="software", question="Software", answer="robo-eval 1", source="manifest.json"),
        Item(id="items", question="Who <b>asked</b>", answer="", source="checklist.csv"),
    )
)


def findings(*readings: Readings, frontier: Frontier | None = None) -> Findings:
    profile = load_profile("robotics")
    return Findings(
        policies=tuple(assess(one, profile) for one in readings),
        checklist=FORM,
        frontier=frontier or helped(),
        profile=profile,
        config=FAST,
    )


def shown(
    *readings: Readings, places: dict[str, str] | None = None, frontier: Frontier | None = None
) -> Autonomy:
    found = autonomy_of(findings(*readings, frontier=frontier), places=places)
    assert found is not None
    return found


def only(readings: Readings, places: dict[str, str] | None = None) -> PolicyLevel:
    (found,) = shown(readings, places=places).policies
    return found


def row(policy: PolicyLevel, title: str) -> GateRow:
    (found,) = [it for it in policy.gates.rows if it.title.startswith(title)]
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
    assert found.audits.passed == f"{len(AUDITS)} of {len(AUDITS)} pass"
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
    assert "Run: episodes on a physical robot." in found.missing.items
    page = section_of(page_of(make_report, shown(evidence("twin"))))
    assert "found on the twin" in page
    assert "AR_twin and S2S stand where gates ask for AR and S2R" in page


def test_point_estimates_are_told_where_they_say_another_level() -> None:
    found = only(evidence(AR_new_task=ratio(0.86, half=0.07)))
    assert found.badge == "AAI-0"
    assert found.headline == ("AAI-0, nothing higher is shown at 95 %; AAI-2 by point values.")


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
    assert autonomy_of(findings(evidence("sim"))) is None
    assert autonomy_of(None) is None
    page = page_of(make_report, None)
    assert 'id="autonomy"' not in page
    assert ">Autonomy level<" not in page
    mixed = shown(evidence("sim"), evidence("twin"))
    assert [it.tag for it in mixed.policies] == ["simulation only", "twin"]


def test_a_gate_has_its_evidence_and_a_light_for_each_level_that_asks() -> None:
    found = only(evidence())
    ar = row(found, "AR,")
    assert (ar.value, ar.interval, ar.rests_on) == ("0.860", "0.850 to 0.870", "500 tasks")
    assert ar.lights[0] is None  # level 1 does not ask
    lights = [light for light in ar.lights if light is not None]
    assert [(it.asked, it.status) for it in lights] == [
        ("≥ 0.8", "pass"), ("≥ 0.9", "fail"), ("≥ 0.97", "fail"),
    ]  # fmt: skip
    assert ar.reason == "AAI-3: lower end 0.85 < 0.9"
    minor = row(found, "minor")
    assert (minor.interval, minor.rests_on) == ("0 to 0.8, each one-sided", "0 incidents")
    assert [it.asked for it in minor.lights if it] == ["≤ 1", "≤ 0.5", "≤ 0.2"]
    mtbsi = row(found, "MTBSI")
    assert mtbsi.value == f"at least 1{GAP}600"
    assert mtbsi.reason == f"AAI-4: one-sided lower end 1{GAP}600 ≥ 200"
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
    found = only(evidence(QC_worst=None))
    control = row(found, "QC")
    assert (control.value, control.rests_on) == ("", "")
    assert {it.status for it in control.lights if it} == {"missing"}
    assert control.reason == remedy_of("QC_worst")
    assert found.missing is not None
    assert all(len(set(it.items)) == len(it.items) for it in (found.missing, *found.above))


def test_a_number_without_interval_says_why() -> None:
    bare = Estimate(value=0.99, n=3, method="none", unit="ratio", reason="one value")
    control = row(only(evidence(QC_worst=bare)), "QC")
    assert (control.value, control.interval) == ("0.990", "no interval: one value")
    assert {it.status for it in control.lights if it} == {"missing"}


@given(
    left_out=st.sets(st.sampled_from(sorted(evidence().values))),
    side=st.sampled_from(["real", "twin"]),
)
def test_every_gate_and_audit_of_the_assessment_is_on_the_page(
    left_out: set[str], side: str
) -> None:
    readings = evidence(side, **dict.fromkeys(left_out))
    assessment = assess(readings)
    found = only(readings)
    for table, counts in ((found.gates, True), (found.reported, False)):
        own = [gate for gate in assessment.gates if gate.counts == counts]
        lights = [
            (it.title, light.level, light.status)
            for it in table.rows
            for light in it.lights
            if light
        ]
        assert sorted(lights) == sorted((g.title, g.level, g.status) for g in own)
        assert len(table.rows) == len({gate.id for gate in own})
        assert table.levels == sorted({gate.level for gate in own})
        assert all(len(it.lights) == len(table.levels) for it in table.rows)
    audits = [(it.title, it.status) for it in found.audits.rows]
    assert audits == [(audit.title, audit.status) for _, audit in assessment.audits]


def test_lights_are_a_sign_and_a_word(make_report: Make) -> None:
    autonomy = shown(evidence(QC_worst=None))
    page = section_of(page_of(make_report, autonomy))
    words = re.findall(r'<span class="light (\w+)"><svg .*?</svg>(\w+)</span>', page)
    (found,) = autonomy.policies
    tables = [*found.gates.rows, *found.reported.rows]
    asked = [light.status for it in tables for light in it.lights if light]
    checks = [status for it in found.steps for status in it.checks.values()]
    assert len(words) == len(asked) + len(checks) + len(found.audits.rows)
    assert all(kind == word for kind, word in words)
    assert {word for _, word in words} == {"pass", "fail", "missing", "undecided"}
    signs = {word: re.search(rf'light {word}"><svg .*?</svg>', page) for _, word in words}
    assert len({sign[0].split(">", 1)[1] for sign in signs.values() if sign}) == 4


def test_folders_are_left_out_and_markup_stays_text(make_report: Make) -> None:
    readings = evidence()
    text = "/home/me/lab/incidents.csv: line 3: no episode <b>nowhere</b>, and 1,234 more"
    broken = Audit(id="evidence", title="the evidence fits", status="fail", reason=text)
    audits = tuple(broken if it.id == "evidence" else it for it in readings.audits)
    autonomy = shown(replace(readings, audits=audits), places={"/home/me/lab/": ""})
    (audit,) = [it for it in autonomy.policies[0].audits.rows if it.status == "fail"]
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


# How the level was found -------------------------------------------------------------------------


def test_gates_that_only_report_stand_in_a_table_of_their_own(make_report: Make) -> None:
    autonomy = shown(evidence(generality=ratio(0.4), world_model=ratio(0.7)))
    (found,) = autonomy.policies
    assert "G, generality" in [it.title for it in found.reported.rows]
    assert "G, generality" not in [it.title for it in found.gates.rows]
    # The same quantity may decide at one level and be reported at another.
    assert "W, world model" in [it.title for it in found.gates.rows]
    page = section_of(page_of(make_report, autonomy))
    tables = page.split("<table")
    (reported,) = [it for it in tables if "reported, does not decide" in it]
    assert "G, generality" in reported
    assert "AR, actuation reliability" not in reported


def test_levels_of_a_table_are_those_its_gates_have() -> None:
    found = only(evidence())
    assert found.gates.levels == [1, 2, 3, 4]
    assert 1 not in found.reported.levels


def test_the_way_to_the_verdict_is_told_from_the_highest_level_down(make_report: Make) -> None:
    autonomy = shown(evidence())
    (found,) = autonomy.policies
    assert [(it.level, it.passed) for it in found.steps] == [
        (4, False), (3, False), (2, True), (1, False),
    ]  # fmt: skip
    by_level = {it.level: it.checks for it in found.steps}
    assert by_level[2] == dict.fromkeys(by_level[2], "pass")
    assert by_level[3]["thresholds"] == "fail"
    assert by_level[1]["thresholds"] == "missing"
    page = section_of(page_of(make_report, autonomy))
    assert page.count("<b>passes</b>") == 1


def test_tasks_that_are_not_fit_leave_no_level_and_say_what_it_would_be(make_report: Make) -> None:
    unfit = Audit(id="family_size", title="episodes", status="fail", reason="pick has 3 of 30")
    fit = Audit(id="proper_scoring", title="rules", status="pass", reason="brier")
    autonomy = shown(replace(evidence(), battery=(fit, unfit)))
    (found,) = autonomy.policies
    assert (found.badge, found.is_valid, found.battery.passed) == ("no level", False, "1 of 2 pass")
    assert found.notes == ["Would be AAI-2 with tasks that are fit to show a level."]
    page = section_of(page_of(make_report, autonomy))
    assert "Checks of the tasks of arm: 1 of 2 pass" in page
    assert "pick has 3 of 30" in page
    twin = only(replace(evidence("twin"), battery=(unfit,)))
    assert twin.notes == ["Would be AAI-2 on a robot and with tasks that are fit to show a level."]


# Axes, index and progress ------------------------------------------------------------------------


def axes(**changed: float | None) -> tuple[Axis, ...]:
    """Ten axes of 0.5, but for what is changed, without draws."""
    found = []
    for name in AXES:
        value = changed.get(name, 0.5)
        estimate = (
            Estimate.missing(reason=f"add {name}.csv: at least 1,000 lines", unit="ratio")
            if value is None
            else ratio(value, n=1200)
        )
        found.append(Axis(name=name, raw=estimate, baseline=0.0, expert=1.0, value=estimate))
    return tuple(found)


def with_axes(**changed: float | None) -> Readings:
    own = axes(**changed)
    index = index_of(own, IndexSettings(weights="robotics"))
    return replace(evidence(), axes=own, index=index)


def test_axes_have_value_interval_and_weight_or_a_remedy(make_report: Make) -> None:
    autonomy = shown(with_axes(M=None))
    (found,) = autonomy.policies
    assert found.axes is not None
    assert found.axes.counted == "9 of 10 have a value"
    rows = {it.title: it for it in found.axes.rows}
    assert len(rows) == len(AXES)
    first = rows["A autonomy"]
    assert first.value == Shown(label="", value="0.500", note="0.490 to 0.510")
    assert (first.rests_on, first.anchors) == (f"1{GAP}200", "0 to 1")
    memory = rows["M memory"]
    assert memory.value.value == ""
    assert memory.value.note == f"add M.csv: at least 1{GAP}000 lines"
    page = section_of(page_of(make_report, autonomy))
    assert f"not measured: add M.csv: at least 1{GAP}000 lines" in page
    assert "No index with the weights “robotics”: no value of M (memory)." in page
    assert "with other weights" not in page  # all lack the same


def test_an_index_is_told_with_its_adjusted_form_and_with_other_weights(make_report: Make) -> None:
    autonomy = shown(with_axes())
    (found,) = autonomy.policies
    assert found.axes is not None
    assert found.axes.text[0].startswith("Index 0.500 (no interval: no interval of A,")
    assert "uniformity 1.000: 0.500" in found.axes.text[1]
    labels = [it.label for it in found.axes.alternatives]
    for label in ("equal weights", "general weights", "without embodiment", "with embodiment"):
        assert label in labels
    assert {it.weight for it in found.axes.rows} == {f"{w}{GAP}%" for w in ("5", "7.5", "10", "20")}
    page = section_of(page_of(make_report, autonomy))
    assert "Index of arm with other weights" in page


def test_readings_without_axes_say_nothing_of_them(make_report: Make) -> None:
    autonomy = shown(evidence())
    assert autonomy.policies[0].axes is None
    page = section_of(page_of(make_report, autonomy))
    assert "Axes of arm" not in page
    assert "data-figure" not in page


def checkpoints(days: int) -> list[Checkpoint]:
    return [
        Checkpoint(
            line=day + 2,
            policy=None,
            side="real",
            time_ns=(20_000 + day) * 86_400 * 10**9,
            family="pick",
            capability=0.4 + 0.02 * day,
            resources=3.0 * day,
        )
        for day in range(days)
    ]


@pytest.mark.parametrize("days", [2, 9])
def test_progress_is_a_row_of_numbers_alike_for_all_families(make_report: Make, days: int) -> None:
    progress = progress_of(checkpoints(days), ProgressSettings(resamples=100))
    autonomy = shown(replace(evidence(), progress={"pick": progress, "place": progress}))
    first, second = autonomy.policies[0].progress
    assert [it.label for it in first.numbers] == [it.label for it in second.numbers]
    by_label = {it.label: it for it in first.numbers}
    assert by_label["kappa"].value == "0.00667"
    if days == 2:
        assert by_label["kappa"].note == "no interval: 2 checkpoints; an interval needs 5"
        assert by_label["slope"] == Shown(
            label="slope", value="", note="2 checkpoints; a fit needs 5"
        )
        assert by_label["speeds up"].value == "not known"
        assert by_label["next step"].value == "nothing bounds it"
    else:
        assert by_label["speeds up"].value in ("yes", "not shown")
        assert by_label["next step"].note.startswith("at most, to reach 0.")
    page = section_of(page_of(make_report, autonomy))
    assert "Progress of arm by task family" in page


# Delegation and form -----------------------------------------------------------------------------


def test_a_frontier_that_falls_is_told_with_its_area_and_share() -> None:
    found = shown(evidence(), frontier=helped(("alone", 0.5, 0), ("helped", 0.9, 4))).frontier
    assert found is not None
    assert found.is_drawn
    # 4 interventions are within the budget of 5 up to autonomy 0.2, in 2 of the 10 degrees.
    area, share = found.text[:2]
    assert "frontier (AUF): 0.580 (95" in area
    assert share.startswith(f"At 20{GAP}% (95{GAP}% interval 20{GAP}% to 20{GAP}%) of the degrees")


def test_a_policy_without_help_has_words_and_no_picture(make_report: Make) -> None:
    autonomy = shown(evidence(), frontier=helped(("arm", 0.5, 0)))
    assert autonomy.frontier is not None
    assert not autonomy.frontier.is_drawn
    (text,) = autonomy.frontier.text
    assert text.startswith("The policy needs so little help")
    assert "is not shown to reach the 0.75" in text
    page = section_of(page_of(make_report, autonomy))
    assert "How much can be delegated" in page
    assert 'data-figure="frontier"' not in page


def test_degrees_without_a_policy_are_said_to_be_left_out() -> None:
    found = shown(evidence(), frontier=helped(("helped", 0.9, 4))).frontier
    assert found is not None
    assert "From autonomy 0.25 on no policy stays within" in found.text[-1]


def test_a_trial_without_scored_episodes_has_no_frontier(make_report: Make) -> None:
    autonomy = shown(evidence(), frontier=helped())
    assert autonomy.frontier is None
    assert "delegated" not in section_of(page_of(make_report, autonomy))


def test_open_questions_of_the_form_are_listed_and_the_form_is_whole(make_report: Make) -> None:
    autonomy = shown(evidence())
    assert autonomy.form.answered == "1 of 2 questions are answered."
    assert [it.source for it in autonomy.form.open] == ["checklist.csv"]
    page = section_of(page_of(make_report, autonomy))
    assert page.count("Who &lt;b&gt;asked&lt;/b&gt;") == 2  # in the list and in the form
    assert "robo-eval 1" in page


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
