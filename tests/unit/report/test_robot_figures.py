"""Tests of the charts of a robot, as data."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import plotly.graph_objects as go
import pytest

from robo_eval.core.number import Condition
from robo_eval.core.plain import plain
from robo_eval.metrics.control import Measured
from robo_eval.metrics.pairs import ConditionRates
from robo_eval.metrics.performance import success_estimate
from robo_eval.page.theme import PAPER, dark_colours
from robo_eval.report.model import Report
from robo_eval.report.page import render
from robo_eval.report.robot_figures import condition_scatter, robot_charts
from robo_eval.report.robot_work_figures import control_quality
from robo_eval.report.robots import RobotCondition

NAMES = ["robots", "conditions", "incidents", "recovery", "control", "cost"]


@pytest.fixture
def report(lab: Any) -> Report:
    made: Report = lab.report()
    return made


def charts(report: Report, *, narrow: bool = False) -> dict[str, go.Figure]:
    found = robot_charts(report.robots, report.policies)
    return {name: go.Figure(plain(draw(narrow=narrow))) for name, draw in found.items()}


@pytest.mark.parametrize("narrow", [False, True])
def test_each_chart_is_drawn_and_a_phone_has_few_columns(report: Report, *, narrow: bool) -> None:
    found = charts(report, narrow=narrow)
    assert list(found) == NAMES
    if narrow:
        for figure in found.values():
            domains = {axis.domain for axis in figure.select_xaxes()}
            assert len(domains) <= 2


def test_conditions_stand_at_their_rates_with_the_numbers_of_the_table(report: Report) -> None:
    figure = charts(report)["conditions"]
    diagonal, marks = figure.data[:2]
    assert (list(diagonal.x), list(diagonal.y)) == ([0, 1], [0, 1])
    ours = report.robots[0]
    assert [it.label for it in ours.conditions] == [
        "pick, level 0", "pick, level 3", "place, level 0", "place, level 3",
    ]  # fmt: skip
    shown = dict(zip(marks.text, zip(marks.x, marks.y, strict=True), strict=True))
    assert shown == {
        "1": (7 / 8, 7 / 8),
        "2": (7 / 8, 6 / 8),
        "3": (5 / 6, 5 / 6),
        "4": (5 / 6, 4 / 6),
    }
    assert "8 pairs" in marks.customdata[0]
    assert "6 pairs" in marks.customdata[2]
    # Both intervals of each mark.
    assert min(marks.error_x.array) > 0
    assert min(marks.error_y.arrayminus) > 0


def condition(number: int, sim: int, real: int, n: int = 8) -> RobotCondition:
    rates = ConditionRates(
        at=Condition(task="push", level=number),
        physical=success_estimate(real, n, exact=False),
        sim=success_estimate(sim, n, exact=False),
        is_paired=True,
    )
    return RobotCondition(number=number, label=f"level {number}", rates=rates)


def test_equal_rates_share_a_mark_that_carries_all_numbers(report: Report) -> None:
    robot = replace(report.robots[0], conditions=[condition(i, 4, 6) for i in range(1, 7)])
    marks = go.Figure(plain(condition_scatter([robot], report.policies))).data[1]
    assert list(marks.text) == ["1,2,3,4 +2"]
    assert all(f"{i}: level {i}" in marks.customdata[0] for i in range(1, 7))


def test_names_of_marks_leave_out_those_without_room(report: Report) -> None:
    crowd = [condition(10 + i, 40 + i % 3, 40 + i // 3, 50) for i in range(9)]
    robot = replace(report.robots[0], conditions=crowd)
    marks = go.Figure(plain(condition_scatter([robot], report.policies))).data[1]
    assert len(marks.x) == 9
    assert 0 < sum(bool(text) for text in marks.text) < 9


def test_a_rate_of_zero_is_an_arrow_at_the_upper_end(report: Report) -> None:
    figure = charts(report)["incidents"]
    seen, lines, arrows = figure.data[:3]
    assert list(seen.y) == ["near miss per 100 h"]
    assert list(seen.x) == pytest.approx([100.0])
    assert list(arrows.y) == [
        "minor per 100 h", "major per 100 h", "critical per 100 h",
    ]  # fmt: skip
    # The 97.5 % upper end of no event in two hours.
    assert list(arrows.x) == pytest.approx([100 * -math.log(0.025) / 2] * 3)
    assert arrows.marker.symbol == "triangle-left"
    assert arrows.marker.color == PAPER
    assert lines.line.dash == "dot"
    low, high = figure.layout.xaxis.range
    assert figure.layout.xaxis.type == "log"
    assert all(low < math.log10(x) < high for x in [*seen.x, *arrows.x])
    assert low < math.log10(seen.x[0] - seen.error_x.arrayminus[0])


def test_no_incident_at_all_can_be_drawn(lab: Any) -> None:
    report = lab.report(evidence={"incidents": ["incident_id,severity,episode_id"]})
    figure = charts(report)["incidents"]
    assert len(figure.data[0].x) == 0
    assert len(figure.data[2].x) == 4
    low, high = figure.layout.xaxis.range
    assert low < math.log10(figure.data[2].x[0]) - 0.5
    assert high > low


def test_faults_have_a_row_each_with_how_many_it_rests_on(report: Report) -> None:
    (points,) = charts(report)["recovery"].data
    assert list(points.y) == ["RA", "RA, grasp slip", "RA, lost view"]
    assert list(points.x) == pytest.approx([0.5, 2 / 3, 0.0])
    assert "4 recoverable faults" in points.customdata[0]
    assert points.error_x.array[2] > 0


def test_values_are_drawn_over_their_tolerance_and_far_ones_at_the_edge(report: Report) -> None:
    figure = charts(report)["control"]
    box, dots = figure.data[:2]
    assert sorted(dots.x) == pytest.approx(
        [0.2, 0.2, 0.4, 0.4, 0.6, 0.6, 0.8, 0.8, 1, 1, 1.2, 1.2, 1.4, 1.4, 3, 3]
    )
    assert list(dots.marker.symbol).count("triangle-right") == 2
    assert max(box.x) == pytest.approx(4.0)
    assert "error mm 20; tolerance 5" in dots.customdata[-1]
    # The tolerance and twice the tolerance, and the band between 0 and 1, in both panels.
    edges = sorted((shape.x0, shape.x1) for shape in figure.layout.shapes)
    assert edges == [(0, 1)] * 2 + [(1, 1)] * 2 + [(2, 2)] * 2


def test_a_measure_nobody_took_has_no_row(report: Report) -> None:
    none: list[None] = [None] * 8
    empty = Measured(tolerances={"force": 1.0}, samples={"force": none}, seeds=none, earns=[])
    robot = report.robots[0]
    robot.found.measured = {**robot.found.measured, "push": empty}
    figure = go.Figure(plain(control_quality([robot], report.policies)))
    assert not any("force" in (it.text or "") for it in figure.layout.annotations)
    robot.found.measured = {"push": empty}
    assert "control" not in robot_charts([robot], report.policies)


def test_costs_add_up_step_by_step(report: Report) -> None:
    bars, texts, steps = charts(report)["cost"].data
    assert list(bars.y) == ["energy", "operator", "total"]
    assert list(bars.base) == [0.0, 2.0, 0.0]
    assert list(bars.x) == [2.0, 18.0, 20.0]
    assert [text.strip() for text in texts.text] == ["2.00", "18.00", "20.00"]
    assert [x for x in steps.x if x is not None] == [2.0, 2.0, 20.0, 20.0]


@pytest.mark.parametrize("narrow", [False, True])
def test_markup_in_names_stays_text(lab: Any, *, narrow: bool) -> None:
    evil = "<img src=x>"
    report = lab.report(
        lines=[line.replace(",pick,", f",{evil},") for line in lab.lines()],
        evidence={"faults": [row.replace("grasp_slip", evil) for row in lab.evidence["faults"]]},
        config=replace(lab.settings, tolerances={"*": {"error_mm": 5.0}}, currency=evil),
    )
    for figure in charts(report, narrow=narrow).values():
        assert "<img" not in str(figure.to_plotly_json())
    assert "<img" not in render(report, [])


def test_every_colour_of_the_charts_has_a_dark_form(report: Report) -> None:
    swaps = dark_colours()
    used = set()

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            for part in value.values():
                collect(part)
        elif isinstance(value, list | tuple):
            for part in value:
                collect(part)
        elif isinstance(value, str) and value.startswith(("#", "rgba")):
            used.add(value)

    for figure in charts(report).values():
        told = figure.to_plotly_json()
        told["layout"].pop("template")
        collect(told)
    assert used
    assert used - set(swaps) == set()


def test_a_robot_without_exposure_is_left_out(lab: Any) -> None:
    """The lab's second policy has hours; the first loses its."""
    lines = [line.replace(",225,", ",,") if ",ours," in line else line for line in lab.lines()]
    report = lab.report(lines=lines)
    first, second = report.robots
    assert first.found.exposure.hours == 0.0
    figure = robot_charts([first, second], report.policies)["incidents"]()
    assert len(figure.data) == 3
    assert "incidents" not in robot_charts([first], report.policies)
