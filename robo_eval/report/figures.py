"""What the charts of a report look like, given numbers that metrics and analysis computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from robo_eval.analysis.acc import isometrics
from robo_eval.core.estimate import Estimate
from robo_eval.report.model import AgentCurve, Cell, Effect, Lengths
from robo_eval.report.panels import (
    Panels,
    name_panel,
    name_room,
    panel_figure,
    side_by_side,
    title_below,
)
from robo_eval.report.theme import (
    FAINT,
    INK,
    MUTED,
    PAPER,
    PERFORMANCE_SCALE,
    Style,
    policy_style,
    template,
)
from robo_eval.report.words import DASH, MARK, interval_text, number, plain_text, shortened


def styles(policies: Sequence[str]) -> dict[str, Style]:
    """The style of each policy, by its place in the plan."""
    return {name: policy_style(index) for index, name in enumerate(policies)}


def finish(figure: go.Figure, *, height: int, margin: dict[str, int] | None = None) -> go.Figure:
    """Give a figure the look all of them share."""
    figure.update_layout(
        template=template(),
        height=height,
        margin={"l": 8, "r": 12, "t": 8, "b": 8, "pad": 4} | (margin or {}),
        showlegend=False,
    )
    return figure


def heat_map(cells: Sequence[Cell], policies: Sequence[str], *, narrow: bool = False) -> go.Figure:
    """Mean performance of each policy at each level, one panel for each difficulty.

    Args:
        cells: One for each policy, panel and column.
        policies: Order of the rows.
        narrow: Whether it is for a phone: no numbers inside the cells where there are many.
    """
    columns = list(dict.fromkeys(cell.column for cell in cells))
    names = list(dict.fromkeys(cell.panel for cell in cells))
    by_place = {(cell.policy, cell.column, cell.panel): cell for cell in cells}
    panels = Panels(
        count=len(names),
        columns=1,
        height=len(policies) * (26 if narrow else 30),
        gap=30,
        bottom=100,
    )
    figure = make_subplots(
        rows=panels.rows, cols=1, shared_xaxes=True, vertical_spacing=panels.spacing
    )
    # Few columns do not fill the page: a cell wider than this says no more.
    has_names = not all(column.isdigit() for column in columns)
    share = (112 / 240 if narrow else 0.25) if has_names else (56 / 240 if narrow else 120 / 1000)
    width = min(1.0, len(columns) * share)
    # Names of tasks must fit side by side; on paper a wide figure has some 560 pixels for them.
    room = max(4, int((240 / 6.5 if narrow else 560 / 7.5) * width / max(1, len(columns))))
    for index, name in enumerate(names):
        grid = [[by_place.get((policy, column, name)) for column in columns] for policy in policies]
        place = panels.place(index)
        figure.add_trace(_heat_panel(grid, columns, policies, narrow=narrow), **place)
        name_panel(figure, index, name, INK, most=30 if narrow else 80)
        figure.update_yaxes(
            type="category",
            autorange="reversed",
            showgrid=False,
            tickvals=[plain_text(policy) for policy in policies],
            ticktext=[plain_text(shortened(policy, 14 if narrow else 32)) for policy in policies],
            **place,
        )
        figure.update_xaxes(
            type="category",
            dtick=1,
            domain=[0, width],
            showgrid=False,
            tickvals=[plain_text(column) for column in columns],
            ticktext=[plain_text(shortened(column, room)) for column in columns],
            tickangle=0,
            tickfont={"size": 10 if narrow else 12},
            showticklabels=panels.is_lowest(index),
            **place,
        )
    axis_title = "novelty level" if all(column.isdigit() for column in columns) else None
    figure.update_xaxes(title_text=axis_title, row=panels.rows, col=1)
    figure = finish(figure, height=panels.total, margin=panels.margins())
    # A cell without a value is a hole: the page shows, which is no colour of the scale.
    figure.update_layout(coloraxis=_performance_key(narrow=narrow))
    return figure


def _performance_key(*, narrow: bool) -> dict[str, Any]:
    return {
        "colorscale": [list(stop) for stop in PERFORMANCE_SCALE],
        "cmin": 0,
        "cmax": 1,
        "colorbar": {
            "orientation": "h",
            "thickness": 9,
            # In pixels: beside long names a share of the plot has no room for the words.
            "lenmode": "pixels",
            "len": 180 if narrow else 260,
            "x": 0,
            "xref": "container" if narrow else "paper",
            "xanchor": "left",
            "y": 0,
            "yref": "container",
            "yanchor": "bottom",
            "tickvals": [0, 0.5, 1],
            "ticktext": ["0", "performance", "1"],
            "tickfont": {"size": 11, "color": MUTED},
            "outlinewidth": 0,
        },
    }


def _heat_panel(
    grid: Sequence[Sequence[Cell | None]],
    columns: Sequence[str],
    policies: Sequence[str],
    *,
    narrow: bool,
) -> go.Heatmap:
    short = len(columns) > (6 if narrow else 20)

    def value(cell: Cell | None) -> float | None:
        return cell.numbers.performance.value if cell else None

    return go.Heatmap(
        z=[[value(cell) for cell in row] for row in grid],
        x=[plain_text(column) for column in columns],
        y=[plain_text(name) for name in policies],
        text=[[_cell_text(cell, short=short) for cell in row] for row in grid],
        texttemplate="%{text}",
        textfont={"size": 11},
        customdata=[[_cell_words(cell) for cell in row] for row in grid],
        hovertemplate="%{customdata}<extra></extra>",
        coloraxis="coloraxis",
        xgap=2,
        ygap=2,
        hoverongaps=True,
    )  # fmt: skip


def _cell_text(cell: Cell | None, *, short: bool) -> str:
    """The value inside a cell, and a mark where too few episodes are scored."""
    if cell is None or cell.numbers.performance.value is None:
        return DASH
    text = number(cell.numbers.performance.value)
    mark = "" if cell.numbers.coverage.is_sufficient else MARK
    return mark if short else ("1" if text == "1.00" else text.lstrip("0")) + mark


def _cell_words(cell: Cell | None) -> str:
    if cell is None:
        return "not part of the plan"
    where = f"<b>{plain_text(cell.policy)}</b>, {plain_text(cell.place)}"
    return (
        f"{where}<br>performance {plain_text(interval_text(cell.numbers.performance))}"
        f"<br>{cell.numbers.n_success} full successes; {plain_text(cell.numbers.coverage.text)}"
    )


def episode_lengths(
    lengths: Sequence[Lengths], policies: Sequence[str], *, narrow: bool = False
) -> go.Figure:
    """Share of episodes that have not failed yet at each moment, one step line for each policy."""
    figure = go.Figure()
    style = styles(policies)
    for item in lengths:
        name = plain_text(item.policy)
        figure.add_trace(
            go.Scatter(
                x=item.time_s,
                y=item.unfailed,
                name=plain_text(shortened(item.policy, 18 if narrow else 40)),
                mode="lines",
                line={
                    "shape": "hv",
                    "width": 2.25,
                    "color": style[item.policy].colour,
                    "dash": style[item.policy].dash,
                },
                customdata=[f", interval {text}" if text else "" for text in item.ranges],
                hovertemplate=f"<b>{name}</b>, n = {item.n}<br>%{{y:.2f}} not failed after"
                " %{x:.2f} s%{customdata}<extra></extra>",
                # A line at 0 or 1, and a fall at the right end, are drawn in full width.
                cliponaxis=False,
            )
        )
    figure.update_xaxes(title_text="time since reset (s)", rangemode="tozero")
    figure.update_yaxes(
        title_text=None if narrow else "share not failed yet",
        tickformat=".2~f",
        range=[-0.02, 1.03],
        tickvals=[0, 0.25, 0.5, 0.75, 1],
    )
    figure = finish(figure, height=300 if narrow else 340)
    return legend_on_top(figure, rows=-(-len(lengths) // 2) if narrow else 1)


def legend_on_top(figure: go.Figure, *, rows: int) -> go.Figure:
    """The figure with its legend above, and room for so many rows of it."""
    figure.update_layout(
        showlegend=True,
        legend={
            "orientation": "h", "x": 0, "xanchor": "left", "y": 1, "yanchor": "bottom",
            "itemclick": False, "itemdoubleclick": False, "itemwidth": 44,
        },
        margin_t=18 + 24 * rows,
    )  # fmt: skip
    return figure


def novelty_effects(
    effects: Sequence[Effect], policies: Sequence[str], *, narrow: bool = False
) -> go.Figure:
    """Paired difference from the matched control, one column of points for each policy."""
    shown = [name for name in policies if any(effect.policy == name for effect in effects)]
    labels = list(dict.fromkeys(effect.label for effect in effects))
    row_height = 15 if len(labels) > 20 else 19
    panels = Panels(
        count=len(shown),
        columns=side_by_side(len(shown), narrow=narrow),
        height=max(46, len(labels) * row_height + 8),
        gap=50,
        bottom=52,
    )
    figure = panel_figure(panels, spacing=0.05 if narrow else 0.03)
    style = styles(policies)
    for index, name in enumerate(shown):
        place = panels.place(index)
        mine = [effect for effect in effects if effect.policy == name]
        figure.add_trace(_forest(mine, style[name]), **place)
        name_panel(figure, index, name, style[name].colour, most=name_room(panels, narrow=narrow))
        figure.add_vline(x=0, line={"color": MUTED, "width": 1}, **place)
        title_below(figure, panels, index, "difference")
    name_rows(figure, labels, dtick=1)
    if any(label.isdigit() for label in labels):
        figure.update_yaxes(title_text="level", col=1)
    reach = max(
        (abs(edge) for effect in effects for edge in _edges(effect.difference)), default=1.0
    )
    reach = min(1.05, max(0.1, 1.08 * reach))
    step = next((tick for tick in (0.5, 0.25, 0.2, 0.1, 0.05) if tick < 0.8 * reach), 0.05)
    figure.update_xaxes(
        range=[-reach, reach],
        tickvals=[-step, 0, step],
        ticktext=[f"−{step:g}", "0", f"+{step:g}"],
        tickfont={"size": 11},
    )
    return finish(figure, height=panels.total, margin=panels.margins())


def name_rows(figure: go.Figure, labels: Sequence[str], **ticks: Any) -> None:  # noqa: ANN401 - as plotly takes them
    """One row for each label, the first on top."""
    figure.update_yaxes(
        type="category",
        categoryorder="array",
        categoryarray=[plain_text(label) for label in labels],
        range=[len(labels) - 0.5, -0.5],
        tickfont={"size": 11},
        **ticks,
    )


def _edges(estimate: Estimate) -> list[float]:
    return [edge for edge in (estimate.value, estimate.low, estimate.high) if edge is not None]


def _forest(effects: Sequence[Effect], style: Style) -> go.Scatter:
    found = [effect for effect in effects if effect.difference.value is not None]
    # Filled where the interval excludes 0, hollow where it does not: legible without colour.
    clear = [effect.is_decided for effect in found]
    return go.Scatter(
        x=[effect.difference.value for effect in found],
        y=[plain_text(effect.label) for effect in found],
        error_x=error_bars([effect.difference for effect in found], style.colour),
        mode="markers",
        marker={
            "size": 7,
            "color": [style.colour if it else PAPER for it in clear],
            "line": {"color": style.colour, "width": 1.5},
        },
        customdata=[
            f"<b>{plain_text(effect.policy)}</b>, {plain_text(effect.label)}<br>"
            f"{plain_text(interval_text(effect.difference, signed=True))}"
            f"<br>{effect.n_pairs} pairs"
            for effect in found
        ],
        hovertemplate="%{customdata}<extra></extra>",
    )


def error_bars(estimates: Sequence[Estimate], colour: str) -> dict[str, Any]:
    """Bars from the low to the high end of each interval; none where there is no interval."""

    def gap(estimate: Estimate, edge: float | None) -> float:
        if edge is None or estimate.value is None:
            return 0.0
        return abs(edge - estimate.value)

    return {
        "type": "data",
        "symmetric": False,
        "array": [gap(estimate, estimate.high) for estimate in estimates],
        "arrayminus": [gap(estimate, estimate.low) for estimate in estimates],
        "thickness": 1.5,
        "width": 0,
        "color": colour,
    }


def characteristic_curves(
    curves: Sequence[AgentCurve], policies: Sequence[str], *, narrow: bool = False
) -> go.Figure:
    """Performance against difficulty, one panel for each agent, the others behind it in grey."""
    panels = Panels(
        count=len(curves),
        columns=side_by_side(len(curves), narrow=narrow),
        height=130 if narrow else 180,
        gap=52,
        bottom=52,
    )
    figure = panel_figure(panels, spacing=0.06 if narrow else 0.03)
    style = styles(policies)
    for index, curve in enumerate(curves):
        place = panels.place(index)
        for other in curves:
            if other is not curve:
                figure.add_trace(_line(other, FAINT, width=1), **place)
        line = _line(curve, style[curve.policy].colour, width=2.25)
        line.hovertemplate = (
            f"<b>{plain_text(curve.policy)}</b><br>difficulty %{{x:.3f}}<br>performance %{{y:.2f}}"
            "<extra></extra>"
        )
        line.hoverinfo = None
        figure.add_trace(line, **place)
        name_panel(
            figure, index, curve.policy, style[curve.policy].colour,
            most=name_room(panels, narrow=narrow),
        )  # fmt: skip
        title = "difficulty" if narrow else "difficulty of the item"
        title_below(figure, panels, index, title)
    figure.update_yaxes(range=[-0.03, 1.05], tickvals=[0, 0.5, 1])
    if not narrow:
        figure.update_yaxes(title_text="performance", col=1)
    figure.update_xaxes(tickfont={"size": 11}, nticks=5)
    return finish(figure, height=panels.total, margin=panels.margins())


def _line(curve: AgentCurve, colour: str, *, width: float) -> go.Scatter:
    return go.Scatter(
        x=curve.difficulty,
        y=curve.response,
        mode="lines",
        line={"color": colour, "width": width},
        hoverinfo="skip",
    )


def spread_capability(
    curves: Sequence[AgentCurve],
    policies: Sequence[str],
    *,
    start: float,
    end: float,
    narrow: bool = False,
) -> go.Figure:
    """Spread against capability with the three isometrics that bound and halve generality.

    Args:
        curves: The agents.
        policies: Order of the styles.
        start: Lower end of the difficulties (h0).
        end: Upper end of the difficulties (q).
        narrow: Whether it is for a phone.
    """
    width = end - start
    lines = isometrics(start, end)
    figure = go.Figure()
    shapes = (
        ("rising step (generality −1)", lines.rising_step, "dot"),
        ("constant (0)", lines.constant, "dash"),
        ("falling step (+1)", lines.falling_step, "solid"),
    )
    for name, spread, dash in shapes:
        figure.add_trace(
            go.Scatter(
                x=lines.capability,
                y=spread,
                mode="lines",
                line={"color": MUTED, "width": 1.25, "dash": dash},
                hoverinfo="skip",
                name=name,
            )
        )
    style = styles(policies)
    for curve in curves:
        if curve.capability.value is not None and curve.spread.value is not None:
            figure.add_trace(_agent_point(curve, style[curve.policy]))
    figure.update_xaxes(title_text="capability (units of difficulty)", range=[start, end])
    figure.update_yaxes(
        title_text="spread", rangemode="tozero", range=[-0.01 * width, 0.76 * width]
    )
    entries = len(curves) + len(shapes)
    rows = entries if narrow else -(-entries // 4)
    figure = finish(figure, height=(300 if narrow else 390) + 24 * rows)
    return legend_on_top(figure, rows=rows)


def _agent_point(curve: AgentCurve, style: Style) -> go.Scatter:
    name = plain_text(curve.policy)
    return go.Scatter(
        x=[curve.capability.value],
        y=[curve.spread.value],
        error_x=error_bars([curve.capability], style.colour),
        error_y=error_bars([curve.spread], style.colour),
        mode="markers",
        name=plain_text(shortened(curve.policy, 30)),
        marker={
            "size": 12,
            "symbol": style.symbol,
            "color": style.colour,
            "line": {"width": 1.5, "color": PAPER},
        },
        hovertemplate=f"<b>{name}</b><br>capability {plain_text(interval_text(curve.capability))}"
        f"<br>spread {plain_text(interval_text(curve.spread))}"
        f"<br>generality {plain_text(interval_text(curve.generality))}<extra></extra>",
    )
