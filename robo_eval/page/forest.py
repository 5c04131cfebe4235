"""What a forest plot looks like: numbers with their intervals, a row each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

from robo_eval.core.estimate import Estimate
from robo_eval.page.figure import Figure, Trace, scatter
from robo_eval.page.figures import error_bars, finish, name_rows
from robo_eval.page.panels import (
    Panels,
    name_panel,
    name_room,
    name_room_over_rows,
    panel_figure,
    side_by_side,
    title_below,
)
from robo_eval.page.table import Group, Row
from robo_eval.page.theme import MUTED, PAPER, Style
from robo_eval.page.words import interval_text, plain_text, shortened

Scale = Literal["share", "difference", "rate"]
"""From 0 to 1; on both sides of 0; above 0 and logarithmic."""
_SHORT: Final = 10
"""Characters of a label beside which even a phone has room for two panels."""


def forest(
    groups: Sequence[Group],
    looks: Sequence[Style],
    *,
    scale: Scale,
    title: str,
    rows_title: str | None = None,
    narrow: bool = False,
) -> Figure:
    """A panel for each group, a row for each label that any of them has; missing values are gaps.

    A rate of 0 has no place on a logarithmic axis: a dotted line reaches from the left to the
    upper end of its interval, with an arrow that points back.

    Args:
        groups: At least one, with at least one value.
        looks: Style of each.
        scale: Kind of axis, the same for all panels.
        title: What the axis measures.
        rows_title: What the labels are; None where they say it themselves.
        narrow: Whether it is for a phone.
    """
    labels = list(dict.fromkeys(row.label for group in groups for row in group.rows))
    is_short = all(len(label) <= _SHORT for label in labels)
    columns = 1 if narrow and not is_short else side_by_side(len(groups), narrow=narrow)
    row_height = 26 if len(labels) < 7 else 20 if len(labels) <= 20 else 15
    height = max(46, len(labels) * row_height + 8)
    panels = Panels(count=len(groups), columns=columns, height=height, gap=50, bottom=52)
    figure = panel_figure(panels, spacing=0.06 if narrow else 0.04)
    room = name_room if is_short else name_room_over_rows
    axis = _axis(scale, [row.estimate for group in groups for row in group.measured])
    for index, (group, look) in enumerate(zip(groups, looks, strict=True)):
        for series in _traces(group, look, scale, axis):
            figure.add_trace(series, panel=index)
        if scale == "difference":
            figure.add_shape("line", index, x0=0, x1=0, line={"color": MUTED, "width": 1})
        name_panel(figure, index, group.title, look.colour, most=room(panels, narrow=narrow))
        title_below(figure, panels, index, title)
        if panels.is_first(index):
            figure.update_yaxes(index, title=rows_title)
    name_rows(
        figure,
        labels,
        tickvals=[plain_text(label) for label in labels],
        ticktext=[plain_text(shortened(label, 20 if narrow else 32)) for label in labels],
    )
    figure.update_xaxes(tickfont={"size": 11}, **axis)
    return finish(figure, height=panels.total, margin=panels.margins())


def _traces(group: Group, look: Style, scale: Scale, axis: dict[str, Any]) -> Iterable[Trace]:
    if scale != "rate":
        return [points(group, group.measured, look)]
    seen = [row for row in group.measured if row.estimate.value]
    unseen = [row for row in group.measured if not row.estimate.value]
    left = 0.85 * 10.0 ** axis["range"][0]
    return [points(group, seen, look), *(_unseen(group, unseen, look, left) if unseen else ())]


def points(group: Group, rows: Sequence[Row], look: Style) -> Trace:
    """Values of rows, which have one, with their intervals."""
    return scatter(
        x=[row.estimate.value for row in rows],
        y=[plain_text(row.label) for row in rows],
        error_x=error_bars([row.estimate for row in rows], look.colour),
        mode="markers",
        marker={
            "size": 8,
            "symbol": [row.symbol for row in rows],
            "color": [PAPER if row.is_hollow else look.colour for row in rows],
            "line": {"color": look.colour, "width": 1.5},
        },
        cliponaxis=False,
        customdata=[_words(group, row) for row in rows],
        hovertemplate="%{customdata}<extra></extra>",
    )


def _unseen(group: Group, rows: Sequence[Row], look: Style, left: float) -> list[Trace]:
    """Lines from the left edge to the upper end, each with an arrow that points back."""
    labels = [plain_text(row.label) for row in rows]
    lines = scatter(
        x=[x for row in rows for x in (left, row.estimate.high, None)],
        y=[y for label in labels for y in (label, label, None)],
        mode="lines",
        line={"color": look.colour, "width": 1.5, "dash": "dot"},
        hoverinfo="skip",
    )
    arrows = scatter(
        x=[row.estimate.high for row in rows],
        y=labels,
        mode="markers",
        marker={
            "size": 11,
            "symbol": "triangle-left",
            "color": PAPER,
            "line": {"color": look.colour, "width": 1.5},
        },
        customdata=[_words(group, row) for row in rows],
        hovertemplate="%{customdata}<extra></extra>",
    )
    return [lines, arrows]


def _words(group: Group, row: Row) -> str:
    found = interval_text(row.estimate, digits=row.digits, signed=row.is_signed)
    parts = [f"<b>{plain_text(group.title)}</b>, {plain_text(row.label)}", plain_text(found)]
    return "<br>".join([*parts, *filter(None, [plain_text(row.rests_on)])])


def _axis(scale: Scale, found: Sequence[Estimate]) -> dict[str, Any]:
    if scale == "share":
        return {"range": [-0.04, 1.04], "tickvals": [0, 0.5, 1], "ticktext": ["0", "0.5", "1"]}
    return _symmetric(found) if scale == "difference" else _decades(found)


def _symmetric(found: Sequence[Estimate]) -> dict[str, Any]:
    edges = [abs(end) for it in found for end in (it.value, it.low, it.high) if end is not None]
    reach = min(1.05, max(0.1, 1.08 * max(edges)))
    step = next((tick for tick in (0.5, 0.25, 0.2, 0.1, 0.05) if tick < 0.8 * reach), 0.05)
    return {
        "range": [-reach, reach],
        "tickvals": [-step, 0, step],
        "ticktext": [f"−{step:g}", "0", f"+{step:g}"],
    }


def _decades(found: Sequence[Estimate]) -> dict[str, Any]:
    """Powers of ten that hold every end but a lower end of 0."""
    ends = [end for rate in found for end in (rate.low, rate.value, rate.high) if end]
    least = min(ends)
    low = math.floor(math.log10(least))
    if least == min(rate.high for rate in found if rate.high):
        low -= 1  # room for the line that ends in the lowest arrow
    powers = range(low, math.ceil(math.log10(max(ends))) + 1)
    shown = powers[:: -(-len(powers) // 5)]
    return {
        "type": "log",
        "range": [powers[0] - 0.05, powers[-1] + 0.05],
        "tickvals": [10.0**power for power in shown],
        "ticktext": [f"{10.0**power:,.5g}".replace(",", "\N{NO-BREAK SPACE}") for power in shown],
    }
