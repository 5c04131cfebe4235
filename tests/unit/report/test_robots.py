"""Tests of what a report says of a robot, or its twin, beside simulation."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest

from robo_eval.analysis.trial import analyse_trial
from robo_eval.core.estimate import Estimate
from robo_eval.core.number import Number
from robo_eval.core.plain import plain
from robo_eval.log.importer import import_csv
from robo_eval.metrics import registry
from robo_eval.metrics.config import MetricConfig
from robo_eval.page.table import Row
from robo_eval.report import robot_figures
from robo_eval.report.build import read_trial
from robo_eval.report.content import make_report
from robo_eval.report.model import Report
from robo_eval.report.page import render
from robo_eval.report.robots import Robot, comparison_lines, not_measured, throughput_lines
from robo_eval.stats.unconditional import pairs_p

MAP = (
    "columns: {episode_id: trial, side: where, success: ok, pair_id: pair, policy: who, task: kind}"
)
TWIN = "A twin is a stand-in for the robot: its numbers end in _twin or S2S."


def report_of(folder: Path, *, side: str = "real", unpaired: int = 0) -> Report:
    """Two policies, two tasks, 20 pairs each; simulation tells `pick` better than `place`."""
    lines = ["trial,where,ok,pair,who,kind"]
    for who, physical, simulated in (("ours", 14, 16), ("theirs", 9, 10)):
        for kind, less in (("pick", 0), ("place", 4)):
            for i in range(20):
                key = f"{who}-{kind}-{i}"
                lines.append(f"r-{key},{side},{int(i < physical - less)},{key},{who},{kind}")
                if side != "sim" and i < 20 - unpaired:
                    lines.append(f"s-{key},sim,{int(i < simulated)},{key},{who},{kind}")
    (folder / "lab.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "map.yaml").write_text(MAP, encoding="utf-8")
    trial = import_csv(folder / "lab.csv", folder / "map.yaml", folder / "trial")
    config = MetricConfig(resamples=200)
    return make_report(read_trial(trial), analyse_trial(trial, config=config))


def compared(robot: Robot) -> list[Row]:
    """What is shown of reliability and agreement."""
    wanted = {"Reliability", "Agreement with simulation"}
    return [it for group in robot.table if group.title in wanted for it in group.rows]


def test_each_policy_has_its_reliability_and_how_simulation_agrees(tmp_path: Path) -> None:
    report = report_of(tmp_path)
    ours, theirs = report.robots
    assert (ours.policy, theirs.policy) == ("ours (real)", "theirs (real)")
    shown = compared(ours)
    assert [it.label for it in shown] == [
        "AR", "AR, pick", "AR, place", "AR_new_task", "AR_sim", "AR_gap", "pairs p",
        "S2R", "S2R_new_task", "S2R, pick", "S2R, place",
    ]  # fmt: skip
    assert [it.estimate.value for it in shown] == pytest.approx(
        [0.6, 0.7, 0.5, None, 0.8, -0.2, pairs_p(0, 8, 40), 0.8, None, 0.9, 0.7]
    )
    assert [it.label for it in shown if it.estimate.low is None] == [
        "AR_new_task", "pairs p", "S2R_new_task",
    ]  # fmt: skip
    assert [it.rests_on for it in shown] == [
        "40 episodes of 2 tasks", "20 episodes", "20 episodes", "2 tasks", "40 episodes",
        "40 pairs", "40 pairs", "40 pairs", "2 tasks", "20 pairs", "20 pairs",
    ]  # fmt: skip
    assert [it.label for it in shown if it.note == "agrees least"] == ["S2R, place"]
    assert ours.comparison.startswith("Simulation and robot agree least in place: S2R 0.70, 95")
    page = render(report, [])
    assert '<h2 id="h-robots">On the robot</h2>' in page
    assert '<a href="#robots">On the robot</a>' in page
    assert "agrees least" in page
    assert "fewer than 3 tasks say nothing of others like them" in page
    assert TWIN not in page


def test_a_twin_is_never_called_a_robot(tmp_path: Path) -> None:
    report = report_of(tmp_path, side="twin")
    assert {it.name for it in compared(report.robots[0])} == {
        "AR_twin", "AR_new_task_twin", "AR_sim", "AR_gap_twin", "pairs p twin", "S2S",
        "S2S_new_task",
    }  # fmt: skip
    page = render(report, [])
    assert TWIN in page
    assert "On the robot&#39;s twin</h2>" in page
    assert "Simulation and twin agree least in place" in page


def test_episodes_without_partner_are_told_with_the_share_compared(tmp_path: Path) -> None:
    ours = report_of(tmp_path, unpaired=5).robots[0]
    found = {it.label: it for it in compared(ours)}
    assert found["AR_compared"].estimate.value == pytest.approx(24 / 30)
    assert found["uncompared"].estimate.value == pytest.approx(10 / 40)
    assert found["uncompared"].note == "without a scored partner"


def test_without_simulation_there_is_nothing_to_compare_and_without_robot_no_section(
    tmp_path: Path,
) -> None:
    report = report_of(tmp_path, unpaired=20)
    shown = compared(report.robots[0])
    assert [it.label for it in shown] == ["AR", "AR, pick", "AR, place", "AR_new_task", "S2R"]
    assert shown[-1].text == ""
    assert shown[-1].estimate.reason == "no simulated episode"
    assert "no simulated episode" in report.robots[0].comparison
    assert report.robots[0].comparison in render(report, [])
    (tmp_path / "sim").mkdir()
    simulated = report_of(tmp_path / "sim", side="sim")
    assert simulated.robots == []
    assert 'id="robots"' not in render(simulated, [])


@pytest.mark.parametrize("narrow", [False, True])
def test_the_chart_tells_robot_simulation_and_agreement_without_colour(
    tmp_path: Path, narrow: bool
) -> None:
    report = report_of(tmp_path)
    charts = robot_figures.robot_charts(report.robots, report.policies)
    figure = go.Figure(plain(charts["robots"](narrow=narrow)))
    first, second = figure.data
    assert list(first.y) == [
        "AR", "AR, pick", "AR, place", "AR_sim", "S2R", "S2R, pick", "S2R, place",
    ]  # fmt: skip
    assert list(first.marker.symbol) == ["circle"] * 4 + ["diamond"] * 3
    colours = first.marker.color
    assert colours[0] != colours[3] == "#ffffff"
    assert first.marker.line.color != second.marker.line.color
    assert min(first.error_x.array) >= 0
    assert "40 episodes" in first.customdata[0]


def numbers_of(robot: Robot) -> dict[str, Row]:
    return {it.label: it for group in robot.table for it in group.rows}


def test_the_table_holds_every_number_with_what_it_rests_on(lab: Any) -> None:
    ours, theirs = lab.report().robots
    found = numbers_of(ours)
    assert [group.title for group in ours.table] == [
        "Reliability",
        "Agreement with simulation",
        "With the help of simulated episodes without a partner",
        "Safety",
        "Embodiment score",
        "Times",
        "Recovery from faults",
        "Quality of control",
        "Throughput",
        "Conduct",
    ]
    assert found["near miss per 100 h"].estimate.value == pytest.approx(100.0)
    assert found["near miss per 100 h"].rests_on == "2 in 2.00 h"
    assert found["critical per 100 h"].note == ""
    assert ours.found.numbers.of("SS_pessimistic").value == pytest.approx(0.0)
    assert found["E"].estimate.value == pytest.approx(0.0)
    # T / -ln 0.05 after two hours without a failure.
    assert found["MTBF"].text == "at least 0.668 h"
    assert found["MTBSI"].estimate.value == pytest.approx(1.0)
    assert found["MTTR"].estimate.reason == "no repair was logged"
    assert found["RA"].estimate.value == pytest.approx(0.5)
    assert found["RA, grasp slip"].rests_on == "3 recoverable faults"
    # Errors of 1 to 7 and of 20 mm against 5: full credit five times, 0.8, 0.6, and none.
    assert found["QC, pick"].estimate.value == pytest.approx((5 + 0.8 + 0.6) / 8)
    assert found["QC_within, pick, error mm"].estimate.value == pytest.approx(5 / 8)
    # 7 and 6 successes of pick, 5 and 4 of place.
    assert found["tasks per hour"].estimate.value == pytest.approx(22 / 2)
    assert found["tasks per cost"].estimate.value == pytest.approx(22 / 2 / 20)
    assert "no recoverable fault" in numbers_of(theirs)["RA"].estimate.reason


def test_every_name_of_a_twin_says_so(lab: Any) -> None:
    """Evidence that names no twin is not its evidence, and no number of a twin looks real."""
    evidence = {
        name: [rows[0] + ",side", *(f"{row},twin" for row in rows[1:])]
        for name, rows in lab.evidence.items()
        if name != "ratings"
    }
    (ours, _) = lab.report("twin", evidence=evidence).robots
    assert ours.is_twin
    assert ours.title == "ours (twin)"
    names = [it.name for group in ours.table for it in group.rows]
    assert len(names) > 20
    own = ("AR_sim", "S2S", "S2S_new_task")
    assert [name for name in names if not (name.endswith(("_twin", " twin")) or name in own)] == []


def test_seconds_of_a_twin_give_counts_and_no_rates(lab: Any) -> None:
    """Nothing is drawn of them, and no word calls a twin physical."""
    evidence = {"incidents": ["incident_id,severity,side", "i1,near_miss,twin"]}
    lines = [line.replace(",225,", ",2.25,") for line in lab.lines("twin")]
    report = lab.report("twin", evidence=evidence, lines=lines)
    ours = report.robots[0]
    hours = ours.found.exposure.hours
    assert 0.0 < hours < 1.0
    found = numbers_of(ours)["near miss per 100 h twin"]
    assert found.estimate.value is None
    assert found.estimate.reason.endswith("; too short for a rate")
    assert "incidents" not in robot_figures.robot_charts(report.robots, report.policies)
    assert any("too short for a rate" in why for _, why in not_measured(report.robots))
    section = re.search(r'<section id="robots".*?</section>', render(report, []), re.DOTALL)
    assert section is not None
    assert "physical" not in section[0]


def test_a_critical_incident_is_said_before_any_number(lab: Any) -> None:
    rows = ["incident_id,severity,episode_id", "i1,critical,p-theirs-pick-0-0"]
    report = lab.report(evidence={"incidents": rows})
    alarm = "theirs on the robot: 1 critical incident. SS is 0 and this window counts for nothing."
    assert [robot.alarm for robot in report.robots] == ["", alarm]
    assert report.warnings[0] == alarm
    page = render(report, [])
    assert page.index(alarm) < page.index('class="results"')


def test_the_alarm_names_the_safety_score_whatever_else_is_of_its_group(
    lab: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = registry.registered()["exposure_hours"]
    calm = [Number(estimate=Estimate.exact(1.0, unit="h", n=1))]
    theirs = replace(ours, name="calm_hours", also={}, compute=lambda body: iter(calm))
    monkeypatch.setattr(registry, "_METRICS", {"calm_hours": theirs, **registry.registered()})
    rows = ["incident_id,severity,episode_id", "i1,critical,p-theirs-pick-0-0"]
    # A laboratory of its own: what this registry makes is kept for no other test.
    report = type(lab)(tmp_path / "lab").report(evidence={"incidents": rows})
    alarm = "theirs on the robot: 1 critical incident. SS is 0 and this window counts for nothing."
    assert [robot.alarm for robot in report.robots] == ["", alarm]


def test_what_was_not_measured_has_no_picture_and_a_reason(lab: Any) -> None:
    report = lab.report(evidence={}, config=MetricConfig(resamples=200))
    unknown = "no record of incidents: a trial without one is not a trial without incidents"
    assert not_measured(report.robots) == [
        ("Incidents", unknown),
        ("Recovery from faults", "no record of faults"),
        ("Quality of control", "no tolerances are set for its tasks"),
        ("Throughput", "no price card is set"),
    ]  # fmt: skip
    assert set(robot_figures.robot_charts(report.robots, report.policies)) == {
        "robots", "conditions",
    }  # fmt: skip
    page = render(report, [])
    for name in ("incidents", "recovery", "control", "cost"):
        assert f'data-figure="{name}"' not in page
    assert "<b>Throughput:</b> no price card is set" in page
    values = [it.estimate for it in numbers_of(report.robots[0]).values()]
    assert all(found.reason for found in values if found.value is None)


def test_a_policy_without_faults_is_named_where_others_have_some(lab: Any) -> None:
    report = lab.report()
    (missing,) = [it for it in not_measured(report.robots) if it[0].startswith("Recovery")]
    assert missing[0] == "Recovery from faults of theirs (real)"


def test_calibrations_stand_side_by_side_and_none_is_taken_for_all(lab: Any) -> None:
    lines = lab.lines()
    simulated = [line for line in lines if line.startswith("s-")]
    columns = [lines[0] + ",cal"] + [f"{line}," for line in lines[1:]]
    columns += [f"fit-{line},identified" for line in simulated]
    report = lab.report(lines=columns, map_end="  calibration: cal\n")
    ours = report.robots[0]
    found = numbers_of(ours)
    assert found["S2R"].estimate.value is None
    assert {"S2R, identified", "S2R, not calibrated", "AR_gap, identified"} <= set(found)
    assert "several calibrations" in found["E"].estimate.reason
    assert ours.conditions == []
    assert comparison_lines(report.robots) == [("", ours.comparison)]
    chosen = replace(lab.settings, calibration="identified")
    again = lab.report(lines=columns, map_end="  calibration: cal\n", config=chosen).robots[0]
    assert numbers_of(again)["S2R"].estimate.value is not None
    assert len(again.conditions) == 4


def test_throughput_is_stated_in_words(lab: Any) -> None:
    (title, text), _ = throughput_lines(lab.report().robots)
    assert title == "ours (real)"
    assert text.startswith("11 tasks per hour (95\N{NO-BREAK SPACE}% ")
    assert "22 successes in 2.00 h" in text
    assert "0.55 tasks per EUR" in text
    assert text.endswith("at 20.00 EUR an hour")
