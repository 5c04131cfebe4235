"""A forest plot shows every number that has a value, with its interval, on one axis."""

from __future__ import annotations

import math

import plotly.graph_objects as go
import pytest

from robo_eval.core.estimate import Estimate
from robo_eval.core.plain import plain
from robo_eval.page.forest import Scale, forest
from robo_eval.page.table import Group, Row
from robo_eval.page.theme import PAPER, policy_style


def row(name: str, value: float | None, low: float | None, high: float | None) -> Row:
    reason = "nobody looked" if value is None or low is None else None
    estimate = Estimate(
        value=value, low=low, high=high, n=4, method="made up", unit="", reason=reason
    )
    return Row(name=name, estimate=estimate, rests_on="4 pairs")


def drawn(*rows: Row, scale: Scale, narrow: bool = False) -> go.Figure:
    groups = [Group(title="<b>arm</b>", rows=rows)]
    figure = forest(groups, [policy_style(0)], scale=scale, title="of it", narrow=narrow)
    return go.Figure(plain(figure))


@pytest.mark.parametrize("narrow", [False, True])
def test_a_number_without_a_value_keeps_its_row_and_has_no_point(*, narrow: bool) -> None:
    figure = drawn(
        row("AR", 0.5, 0.2, 0.8), row("S2R", None, 0.1, 0.9), scale="share", narrow=narrow
    )
    (points,) = figure.data
    assert list(points.y) == ["AR"]
    assert list(figure.layout.yaxis.categoryarray) == ["AR", "S2R"]
    assert (*points.error_x.array, *points.error_x.arrayminus) == pytest.approx((0.3, 0.3))
    assert "&lt;b&gt;arm&lt;/b&gt;" in points.customdata[0]
    assert "4 pairs" in points.customdata[0]


def test_a_number_without_interval_has_no_bar() -> None:
    (points,) = drawn(row("AR", 0.5, None, None), scale="share").data
    assert list(points.error_x.array) == [0.0]
    assert "no interval" in points.customdata[0]


def test_rates_are_logarithmic_and_zero_is_an_arrow_at_the_upper_end() -> None:
    figure = drawn(row("minor", 3.0, 1.0, 7.0), row("major", 0.0, 0.0, 2.0), scale="rate")
    seen, line, arrow = figure.data
    assert (list(seen.y), list(arrow.y), list(arrow.x)) == (["minor"], ["major"], [2.0])
    assert arrow.marker.color == PAPER
    low, high = figure.layout.xaxis.range
    assert figure.layout.xaxis.type == "log"
    assert low < math.log10(1.0) < math.log10(7.0) < high
    assert line.x[0] < 1.0


def test_differences_lie_on_both_sides_of_the_same_zero() -> None:
    figure = drawn(row("3", -0.4, -0.6, -0.2), row("0", 0.1, -0.1, 0.3), scale="difference")
    low, high = figure.layout.xaxis.range
    assert -low == high > 0.6
    (zero,) = figure.layout.shapes
    assert (zero.x0, zero.x1) == (0, 0)
