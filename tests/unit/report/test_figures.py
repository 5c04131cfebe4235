"""Tests of the charts, as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import plotly.graph_objects as go
import pytest

from robo_eval.core.estimate import Estimate
from robo_eval.core.plain import plain
from robo_eval.page.agent_curves import characteristic_curves, spread_capability
from robo_eval.page.figure import Figure
from robo_eval.page.theme import (
    PERFORMANCE_SCALE,
    POLICY,
    POLICY_DARK,
    dark_colours,
    policy_style,
)
from robo_eval.report import figures
from robo_eval.report.model import Report
from robo_eval.report.page import render

Maker = Callable[..., Report]


def known(figure: Figure) -> go.Figure:
    """The picture in plotly's own classes, which refuse what plotly does not know."""
    return go.Figure(plain(figure))


def test_heat_map_puts_each_value_where_its_labels_say(make_report: Maker) -> None:
    report = make_report()
    odd = Estimate(value=0.123, n=1, method="none", unit="ratio")
    cells = [
        replace(cell, numbers=replace(cell.numbers, performance=odd))
        if (cell.policy, cell.column, cell.panel) == ("shaky", "2", "hard")
        else cell
        for cell in report.cells
    ]
    figure = known(figures.heat_map(cells, report.policies))
    panel = figure.data[1]
    assert list(panel.y) == ["steady", "shaky"]
    assert list(panel.x) == ["0", "1", "2", "3"]
    assert panel.z[1][2] == 0.123
    assert "shaky" in panel.customdata[1][2]
    assert "5 of 5 scored" in panel.customdata[1][2]


def test_a_cell_without_value_is_a_gap_with_its_reason(make_report: Maker) -> None:
    report = make_report()
    missing = Estimate.missing(reason="no scored episodes", unit="ratio")
    first = report.cells[0]
    empty = replace(first, numbers=replace(first.numbers, performance=missing))
    cells = [empty, *report.cells[1:]]
    panel = known(figures.heat_map(cells, report.policies)).data[0]
    assert panel.z[0][0] is None
    assert "no scored episodes" in panel.customdata[0][0]


@pytest.mark.parametrize("narrow", [False, True])
def test_a_cell_with_crashed_episodes_is_marked(make_report: Maker, narrow: bool) -> None:
    report = make_report()
    first = report.cells[0]
    thin = replace(first.numbers.coverage, scored=2, missing={"fault": 3})
    cells = [replace(first, numbers=replace(first.numbers, coverage=thin)), *report.cells[1:]]
    panel = known(figures.heat_map(cells, report.policies, narrow=narrow)).data[0]
    assert panel.text[0][0].endswith("†")
    assert "2 of 5 scored (3 fault)" in panel.customdata[0][0]
    assert not any("†" in text for row in panel.text for text in row[1:])
    page = render(replace(report, cells=cells), [])
    assert page.count("† Fewer than 95") == 2
    assert "†" not in render(report, [])


def test_forest_fills_only_points_whose_interval_excludes_zero(make_report: Maker) -> None:
    figure = known(figures.novelty_effects(make_report().effects, ["steady", "shaky"]))
    colours = figure.data[0].marker.color
    assert colours[0] == POLICY[0]  # -0.1 with -0.18 to -0.02
    undecided = [
        replace(group, rows=[replace(row, is_hollow=True) for row in group.rows])
        for group in make_report().effects
    ]
    figure = known(figures.novelty_effects(undecided, ["steady", "shaky"]))
    assert POLICY[0] not in figure.data[0].marker.color


def rows_in_pixels(figure: go.Figure) -> list[tuple[float, float]]:
    """Top and bottom of each row of panels, in pixels from the top of the figure."""
    layout = figure.layout
    room = layout.height - layout.margin.t - layout.margin.b
    axes = [layout[key] for key in layout if key.startswith("yaxis")]
    domains = sorted({axis.domain for axis in axes}, reverse=True)
    return [
        (layout.margin.t + (1 - high) * room, layout.margin.t + (1 - low) * room)
        for low, high in domains
    ]


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("levels", [2, pytest.param(4, marks=pytest.mark.slow), 17])
@pytest.mark.parametrize(
    "n_policies", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 5)), 9]
)
def test_no_panel_touches_the_name_or_ticks_of_the_next(
    make_report: Maker, n_policies: int, levels: int, narrow: bool
) -> None:
    """A plan with the levels 0 and 1 has one effect a policy: a row of a few pixels."""
    report = make_report(tuple(f"policy {i}" for i in range(n_policies)), levels=levels)
    assert report.characteristic is not None
    name_and_ticks, name = 40, 24
    for figure, gap, height in (
        (
            figures.novelty_effects(report.effects, report.policies, narrow=narrow),
            name_and_ticks,
            40,
        ),
        (
            characteristic_curves(report.characteristic.curves, report.policies, narrow=narrow),
            name_and_ticks,
            100,
        ),
        (figures.heat_map(report.cells, report.policies, narrow=narrow), name, 24),
    ):
        rows = rows_in_pixels(known(figure))
        assert rows[0][0] >= 20  # the name of the first
        assert all(bottom - top >= height for top, bottom in rows)
        assert all(low - high >= gap for (_, high), (low, _) in pairwise(rows))
        assert figure.layout["height"] - rows[-1][1] >= 44  # ticks and title of the last


def test_the_lowest_panel_of_every_column_has_ticks(make_report: Maker) -> None:
    report = make_report(tuple(f"policy {i}" for i in range(5)))
    figure = known(figures.novelty_effects(report.effects, report.policies))
    shown = [figure.layout["xaxis" + (str(i) if i > 1 else "")].showticklabels for i in range(1, 6)]
    # Three and two, not four and one; the third column ends in the first row.
    assert shown == [False, False, True, True, True]


@pytest.mark.parametrize("narrow", [False, True])
def test_long_names_are_shortened_but_stay_apart(make_report: Maker, narrow: bool) -> None:
    names = tuple(f"a-policy-with-a-very-long-name-{end}" for end in ("of-one-kind", "of-a-kind"))
    report = make_report(names)
    axis = known(figures.heat_map(report.cells, names, narrow=narrow)).layout.yaxis
    assert list(axis.tickvals) == list(names)
    assert max(len(text) for text in axis.ticktext) <= (14 if narrow else 32)
    assert all("…" in text for text in axis.ticktext)


def test_few_columns_do_not_fill_the_page(make_report: Maker) -> None:
    few = make_report(levels=1)
    many = make_report(levels=17)
    assert figures.heat_map(few.cells, few.policies).layout["xaxis"]["domain"][1] < 0.2
    assert figures.heat_map(many.cells, many.policies).layout["xaxis"]["domain"][1] == 1.0


def test_isometrics_are_those_of_the_definition(make_report: Maker) -> None:
    acc = make_report().characteristic
    assert acc is not None
    figure = known(spread_capability(acc.curves, ["steady", "shaky"], acc.isometrics))
    rising, constant, falling = figure.data[:3]
    area = np.asarray(constant.x) - 0.1
    np.testing.assert_allclose(np.square(constant.y), area * (0.7 - area), atol=1e-12)
    np.testing.assert_allclose(np.square(rising.y), 2 * area * (0.7 - area), atol=1e-12)
    np.testing.assert_array_equal(falling.y, 0.0)
    assert [trace.name for trace in figure.data[3:]] == ["steady", "shaky"]


@pytest.mark.parametrize("narrow", [False, True])
def test_markup_in_a_policy_name_stays_text(make_report: Maker, narrow: bool) -> None:
    name = "<b>x</b><img src=x onerror=alert(1)>"
    report = make_report((name, "other"))
    assert report.characteristic is not None
    for figure in (
        figures.heat_map(report.cells, report.policies, narrow=narrow),
        figures.episode_lengths(report.lengths, report.policies, narrow=narrow),
        figures.novelty_effects(report.effects, report.policies, narrow=narrow),
        characteristic_curves(report.characteristic.curves, report.policies, narrow=narrow),
    ):
        text = str(known(figure).to_plotly_json())
        assert "<img" not in text
        assert "&lt;img" in text


def test_styles_differ_without_colour_and_every_colour_has_a_dark_form() -> None:
    first_six = [policy_style(index) for index in range(6)]
    assert len({(style.dash, style.symbol) for style in first_six}) == 6
    swaps = dark_colours()
    assert [swaps[colour] for colour in POLICY] == list(POLICY_DARK)
    assert swaps[policy_style(0).band] != policy_style(0).band


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(first: str, second: str) -> float:
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def test_policy_colours_can_be_read_as_text_on_both_pages() -> None:
    assert min(_contrast(colour, "#ffffff") for colour in POLICY) >= 4.5
    assert min(_contrast(colour, "#161c26") for colour in POLICY_DARK) >= 4.5


def test_the_heat_map_scale_gets_lighter_all_the_way() -> None:
    steps = [_luminance(colour) for _, colour in PERFORMANCE_SCALE]
    assert steps == sorted(steps)
    assert steps[0] < 0.05
    assert steps[-1] > 0.75
