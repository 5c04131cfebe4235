"""Tests of what a report says of a robot, or its twin, beside simulation."""

from __future__ import annotations

from pathlib import Path

import pytest

from robo_eval.analysis.trial import analyse_trial
from robo_eval.log.importer import import_csv
from robo_eval.metrics.config import MetricConfig
from robo_eval.report import figures
from robo_eval.report.build import read_trial
from robo_eval.report.content import make_report
from robo_eval.report.model import Report
from robo_eval.report.page import render

MAP = (
    "columns: {episode_id: trial, side: where, success: ok, pair_id: pair, policy: who, task: kind}"
)
TWIN = "AR_twin and S2S come from a twin, a stand-in for the robot: they are no AR and S2R."


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


def test_each_policy_has_its_reliability_and_how_simulation_agrees(tmp_path: Path) -> None:
    report = report_of(tmp_path)
    ours, theirs = report.robots
    assert (ours.policy, theirs.policy) == ("ours (real)", "theirs (real)")
    found = {it.label: it for it in ours.numbers}
    assert list(found) == ["AR", "AR_sim", "AR − AR_sim", "S2R", "S2R, pick", "S2R, place"]
    assert [it.estimate.value for it in ours.numbers] == pytest.approx(
        [0.6, 0.8, -0.2, 0.8, 0.9, 0.7]
    )
    assert all(it.estimate.low is not None for it in ours.numbers)
    assert [it.rests_on for it in ours.numbers] == [
        "40 episodes", "40 episodes", "40 pairs", "40 pairs", "20 pairs", "20 pairs",
    ]  # fmt: skip
    assert [it.label for it in ours.numbers if it.is_worst] == ["S2R, place"]
    assert ours.worst.startswith("Simulation and robot agree least in place: S2R 0.70, 95")
    page = render(report, [])
    assert '<h2 id="h-robots">On the robot</h2>' in page
    assert '<a href="#robots">On the robot</a>' in page
    assert "agrees least" in page
    assert "exact McNemar p = 0.008" in page
    assert "2 tasks: wide by nature" in page
    assert TWIN not in page


def test_a_twin_is_never_called_a_robot(tmp_path: Path) -> None:
    report = report_of(tmp_path, side="twin")
    assert {it.name for it in report.robots[0].numbers} == {
        "AR_twin", "AR_sim", "AR_twin − AR_sim", "S2S",
    }  # fmt: skip
    page = render(report, [])
    assert TWIN in page
    assert "On the robot&#39;s twin</h2>" in page
    assert "Simulation and twin agree least in place" in page


def test_episodes_without_partner_are_told_with_the_share_compared(tmp_path: Path) -> None:
    ours = report_of(tmp_path, unpaired=5).robots[0]
    found = {it.label: it for it in ours.numbers}
    assert found["AR of the pairs"].estimate.value == pytest.approx(24 / 30)
    assert found["S2R"].note == "10 physical episodes without a scored partner left out"


def test_without_simulation_there_is_nothing_to_compare_and_without_robot_no_section(
    tmp_path: Path,
) -> None:
    report = report_of(tmp_path, unpaired=20)
    assert [it.label for it in report.robots[0].numbers] == ["AR"]
    assert "no simulated episode" in report.robots[0].why_no_agreement
    assert report.robots[0].why_no_agreement in render(report, [])
    (tmp_path / "sim").mkdir()
    simulated = report_of(tmp_path / "sim", side="sim")
    assert simulated.robots == []
    assert 'id="robots"' not in render(simulated, [])


@pytest.mark.parametrize("narrow", [False, True])
def test_the_chart_tells_robot_simulation_and_agreement_without_colour(
    tmp_path: Path, narrow: bool
) -> None:
    report = report_of(tmp_path)
    figure = figures.robot_numbers(report.robots, report.policies, narrow=narrow)
    first, second = figure.data
    assert list(first.y) == ["AR", "AR_sim", "S2R", "S2R, pick", "S2R, place"]
    assert list(first.marker.symbol) == ["circle", "circle", "diamond", "diamond", "diamond"]
    colours = first.marker.color
    assert colours[0] != colours[1] == "#ffffff"
    assert first.marker.line.color != second.marker.line.color
    assert min(first.error_x.array) >= 0
    assert "40 episodes" in first.customdata[0]
