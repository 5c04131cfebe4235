"""What the charts of a report look like, given numbers that metrics and analysis computed."""

from __future__ import annotations

from collections.abc import Sequence

from robo_eval.metrics.lengths import Lengths
from robo_eval.page.figure import Figure, Trace, heatmap, scatter
from robo_eval.page.figures import colour_key, finish, legend_on_top, styles
from robo_eval.page.forest import forest
from robo_eval.page.panels import Panels, name_panel, panel_figure
from robo_eval.page.table import Group
from robo_eval.page.theme import INK, PERFORMANCE_SCALE
from robo_eval.page.words import (
    DASH,
    MARK,
    interval_text,
    number,
    plain_text,
    shortened,
)
from robo_eval.report.model import Cell


def heat_map(cells: Sequence[Cell], policies: Sequence[str], *, narrow: bool = False) -> Figure:
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
    figure = panel_figure(panels)
    # Few columns do not fill the page: a cell wider than this says no more.
    has_names = not all(column.isdigit() for column in columns)
    share = (112 / 240 if narrow else 0.25) if has_names else (56 / 240 if narrow else 120 / 1000)
    width = min(1.0, len(columns) * share)
    # Names of tasks must fit side by side; on paper a wide figure has some 560 pixels for them.
    room = max(4, int((240 / 6.5 if narrow else 560 / 7.5) * width / max(1, len(columns))))
    for index, name in enumerate(names):
        grid = [[by_place.get((policy, column, name)) for column in columns] for policy in policies]
        figure.add_trace(_heat_panel(grid, columns, policies, narrow=narrow), panel=index)
        name_panel(figure, index, name, INK, most=30 if narrow else 80)
        figure.update_yaxes(
            type="category",
            autorange="reversed",
            showgrid=False,
            tickvals=[plain_text(policy) for policy in policies],
            ticktext=[plain_text(shortened(policy, 14 if narrow else 32)) for policy in policies],
            panel=index,
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
            panel=index,
        )
    axis_title = "novelty level" if all(column.isdigit() for column in columns) else None
    figure.update_xaxes(panels.count - 1, title=axis_title)
    figure = finish(figure, height=panels.total, margin=panels.margins())
    # A cell without a value is a hole: the page shows, which is no colour of the scale.
    key = colour_key("performance", PERFORMANCE_SCALE, most=1.0, end="1", narrow=narrow)
    figure.update_layout(coloraxis=key)
    return figure


def _heat_panel(
    grid: Sequence[Sequence[Cell | None]],
    columns: Sequence[str],
    policies: Sequence[str],
    *,
    narrow: bool,
) -> Trace:
    short = len(columns) > (6 if narrow else 20)

    def value(cell: Cell | None) -> float | None:
        return cell.numbers.performance.value if cell else None

    return heatmap(
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
) -> Figure:
    """Share of episodes that have not failed yet at each moment, one step line for each policy."""
    figure = Figure()
    style = styles(policies)
    for item in lengths:
        name = plain_text(item.policy)
        figure.add_trace(
            scatter(
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
                customdata=[_range_words(edges) for edges in item.ranges],
                hovertemplate=f"<b>{name}</b>, n = {item.n}<br>%{{y:.2f}} not failed after"
                " %{x:.2f} s%{customdata}<extra></extra>",
                # A line at 0 or 1, and a fall at the right end, are drawn in full width.
                cliponaxis=False,
            )
        )
    figure.update_xaxes(title="time since reset (s)", rangemode="tozero")
    figure.update_yaxes(
        title=None if narrow else "share not failed yet",
        tickformat=".2~f",
        range=[-0.02, 1.03],
        tickvals=[0, 0.25, 0.5, 0.75, 1],
    )
    figure = finish(figure, height=300 if narrow else 340)
    return legend_on_top(figure, rows=-(-len(lengths) // 2) if narrow else 1)


def _range_words(edges: tuple[float, float] | None) -> str:
    return f", interval {number(edges[0])} to {number(edges[1])}" if edges else ""


def novelty_effects(
    effects: Sequence[Group], policies: Sequence[str], *, narrow: bool = False
) -> Figure:
    """Paired difference from the matched control; filled where one was shown, else hollow."""
    style = styles(policies)
    has_levels = any(row.name.isdigit() for group in effects for row in group.rows)
    return forest(
        effects,
        [style[group.title] for group in effects],
        scale="difference",
        title="difference",
        rows_title="level" if has_levels else None,
        narrow=narrow,
    )
