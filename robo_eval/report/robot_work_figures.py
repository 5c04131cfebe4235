"""How the charts of a robot's work look: quality of control, cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from robo_eval.page.figure import Figure, Trace, axis_number, bar, box, scatter
from robo_eval.page.figures import finish, styles
from robo_eval.page.panels import (
    Panels,
    name_panel,
    name_room,
    panel_figure,
    side_by_side,
    title_below,
)
from robo_eval.page.theme import FAINT, GRID, INK, MUTED, PAPER, Style
from robo_eval.page.words import number, plain_text, shortened, spaced
from robo_eval.report.robots import Robot

_FAR: Final = 3.0
"""Measured values beyond so many tolerances are drawn at the edge."""


# Control -----------------------------------------------------------------------------------------


def measures_of(robot: Robot) -> dict[tuple[str, str], list[float]]:
    """The values of each measure that was taken, by its task family and name."""
    found = {
        (family, measure): own.values(measure)
        for family, own in robot.found.measured.items()
        for measure in own.tolerances
    }
    return {kind: values for kind, values in found.items() if values}


def control_quality(
    robots: Sequence[Robot], policies: Sequence[str], *, narrow: bool = False
) -> Figure:
    """Each measured value over its tolerance: an episode is a dot, a box holds the quartiles.

    Up to 1, the tolerance, an episode has full credit; from 2 on it has none.

    Args:
        robots: Those with a measured value.
        policies: Order of the styles.
        narrow: Whether it is for a phone.
    """
    kinds = dict.fromkeys(kind for robot in robots for kind in measures_of(robot))
    rows = {kind: row for row, kind in enumerate(kinds)}
    panels = Panels(
        count=len(robots),
        columns=1 if narrow else min(2, side_by_side(len(robots), narrow=False)),
        height=len(rows) * 58 + 6,
        gap=54,
        bottom=52,
    )
    figure = panel_figure(panels, spacing=0.05)
    style = styles(policies)
    room = 44 if narrow else 96 // panels.columns
    for index, robot in enumerate(robots):
        colour = style[robot.policy].colour
        for (family, measure), values in measures_of(robot).items():
            row = rows[family, measure]
            tolerance = robot.found.measured[family].tolerances[measure]
            for row_trace in _control_row(measure, values, tolerance, row, style[robot.policy]):
                figure.add_trace(row_trace, panel=index)
            name = f"{family}: {spaced(measure)}"
            _name_measure(figure, index, row, name, tolerance, room)
        _bands(figure, index)
        name_panel(figure, index, robot.title, colour, most=name_room(panels, narrow=narrow))
        title_below(figure, panels, index, "value / tolerance")
    figure.update_yaxes(
        range=[len(rows) - 0.5, -0.62], showticklabels=False, showgrid=False, tickvals=[]
    )
    figure.update_xaxes(
        range=[-0.04, _FAR + 0.1],
        tickvals=[0, 1, 2, 3],
        ticktext=["0", "1", "2", "3"],
        showgrid=False,
        tickfont={"size": 11},
    )
    return finish(figure, height=panels.total, margin=panels.margins())


def _bands(figure: Figure, index: int) -> None:
    """Full credit is shaded, from twice the tolerance on there is none: edges drawn as lines."""
    figure.add_shape(
        "rect", index, x0=0, x1=1, fillcolor=GRID, opacity=0.75, line={"width": 0}, layer="below"
    )
    for x, dash in ((1, "solid"), (2, "dash")):
        line = {"color": MUTED, "width": 1, "dash": dash}
        figure.add_shape("line", index, x0=x, x1=x, line=line, layer="below")


def _control_row(
    measure: str, values: Sequence[float], tolerance: float, row: int, style: Style
) -> list[Trace]:
    ratios = [value / tolerance for value in values]
    near = [ratio for ratio in ratios if ratio <= _FAR]
    quartiles = box(
        x=ratios,
        y0=row + 0.12,
        orientation="h",
        width=0.42,
        boxpoints=False,
        whiskerwidth=0,
        fillcolor=style.band,
        line={"color": style.colour, "width": 1.25},
        hoverinfo="skip",
    )
    # Dots of a row stand apart in three lines, so that equal values stay countable.
    dots = scatter(
        x=[min(ratio, _FAR) for ratio in ratios],
        y=[row + 0.12 + 0.12 * (i % 3 - 1) for i in range(len(ratios))],
        mode="markers",
        marker={
            "size": 5,
            "symbol": ["circle"] * len(near) + ["triangle-right"] * (len(ratios) - len(near)),
            "color": style.colour,
            "line": {"width": 0.75, "color": PAPER},
        },
        cliponaxis=False,
        customdata=[
            f"{plain_text(spaced(measure))} {value:.3g}; tolerance {tolerance:g}"
            for value in values
        ],
        hovertemplate="%{customdata}<extra></extra>",
    )
    return [quartiles, dots]


def _name_measure(
    figure: Figure, index: int, row: int, name: str, tolerance: float, room: int
) -> None:
    """What a row is of, above it: beside it a phone has no room."""
    end = f", tolerance {tolerance:g}"
    name = shortened(name, room - len(end))
    axis = axis_number(index)
    figure.add_annotation(
        text=plain_text(name + end),
        x=0, xref=f"x{axis} domain", xanchor="left", xshift=8,
        y=row - 0.15, yref=f"y{axis}", yanchor="bottom",
        font={"size": 11, "color": INK}, bgcolor=PAPER, borderpad=1,
    )  # fmt: skip


# Throughput --------------------------------------------------------------------------------------


def hourly_cost(
    robots: Sequence[Robot],
    policies: Sequence[str],  # noqa: ARG001 - all charts are made alike
    *,
    narrow: bool = False,
) -> Figure:
    """What an hour costs, item by item up to the sum: the price card is the same for all policies.

    Args:
        robots: Those with a price card; the first one's is drawn.
        policies: Order of the styles.
        narrow: Whether it is for a phone.
    """
    prices = {it.case: it.estimate.value or 0.0 for it in robots[0].numbers_of("cost_per_hour")}
    total, currency = prices.pop(""), robots[0].found.config.currency
    items = {spaced(name): price for name, price in prices.items() if price}
    starts = [math.fsum(list(items.values())[:i]) for i in range(len(items))]
    labels = [*items, "total"]
    values, bases = [*items.values(), total], [*starts, 0.0]
    figure = Figure()
    figure.add_trace(
        bar(
            x=values,
            base=bases,
            y=labels,
            orientation="h",
            marker={
                "color": [FAINT] * len(items) + [MUTED],
                "line": {"color": MUTED, "width": 1.25},
                "pattern": {
                    "shape": ["/"] * len(items) + [""],
                    "fgcolor": MUTED,
                    "fgopacity": 0.5,
                    "size": 7,
                    "solidity": 0.22,
                },
            },
            customdata=[
                f"{plain_text(name)}: {number(price)} {plain_text(currency)} an hour"
                for name, price in zip(labels, values, strict=True)
            ],
            hovertemplate="%{customdata}<extra></extra>",
        )
    )
    figure.add_trace(
        scatter(
            x=[base + price for base, price in zip(bases, values, strict=True)],
            y=labels,
            mode="text",
            text=[f" {number(price)}" for price in values],
            textposition="middle right",
            textfont={"size": 11.5, "color": INK},
            hoverinfo="skip",
        )
    )
    # From the end of each item down to where the next one starts.
    ends = [start + price for start, price in zip(starts, items.values(), strict=True)]
    figure.add_trace(
        scatter(
            x=[x for end in ends for x in (end, end, None)],
            y=[y for i in range(len(ends)) for y in (labels[i], labels[i + 1], None)],
            mode="lines",
            line={"color": MUTED, "width": 1, "dash": "dot"},
            hoverinfo="skip",
        )
    )
    figure.update_yaxes(
        type="category", categoryorder="array", categoryarray=labels,
        range=[len(labels) - 0.5, -0.5], showgrid=False,
    )  # fmt: skip
    figure.update_layout(bargap=0.35)
    unit = currency or "currency units"
    figure.update_xaxes(
        title=f"{plain_text(unit)} per hour of exposure",
        range=[0, total * (1.25 if narrow else 1.12)],
        tickfont={"size": 11},
        nticks=5,
    )
    return finish(figure, height=len(labels) * 32 + 64, margin={"t": 8, "b": 52})
