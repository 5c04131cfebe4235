"""What the charts of a report look like, given numbers that metrics and analysis computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from robo_eval.core.estimate import Estimate
from robo_eval.core.wording import in_short
from robo_eval.metrics.dose import HALF, DoseCurve, by_novelty
from robo_eval.metrics.lengths import Lengths
from robo_eval.metrics.thresholds import ThresholdCurve
from robo_eval.page.figure import Figure, Trace, heatmap, scatter
from robo_eval.page.figures import colour_key, error_bars, finish, legend_on_top, styles
from robo_eval.page.forest import forest
from robo_eval.page.panels import (
    Panels,
    legend_over_panels,
    name_panel,
    name_room,
    panel_figure,
    side_by_side,
)
from robo_eval.page.table import Group
from robo_eval.page.theme import INK, PERFORMANCE_SCALE, Style
from robo_eval.page.words import (
    DASH,
    MARK,
    interval_text,
    number,
    plain_text,
    shortened,
)
from robo_eval.report.model import ConditionCell


def heat_map(
    cells: Sequence[ConditionCell], policies: Sequence[str], *, narrow: bool = False
) -> Figure:
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
    grid: Sequence[Sequence[ConditionCell | None]],
    columns: Sequence[str],
    policies: Sequence[str],
    *,
    narrow: bool,
) -> Trace:
    short = len(columns) > (6 if narrow else 20)

    def value(cell: ConditionCell | None) -> float | None:
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


def _cell_text(cell: ConditionCell | None, *, short: bool) -> str:
    """The value inside a cell, and a mark where too few episodes are scored."""
    if cell is None or cell.numbers.performance.value is None:
        return DASH
    text = number(cell.numbers.performance.value)
    mark = "" if cell.numbers.coverage.is_sufficient else MARK
    return mark if short else ("1" if text == "1.00" else text.lstrip("0")) + mark


def _cell_words(cell: ConditionCell | None) -> str:
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


# Magnitudes of a novelty -------------------------------------------------------------------------


def dose_curves(
    curves: Sequence[DoseCurve], policies: Sequence[str], *, narrow: bool = False
) -> Figure:
    """Success over magnitude, one panel for each novelty and one line for each policy.

    Args:
        curves: Of all policies; those of one panel have the same magnitudes.
        policies: Order of the styles.
        narrow: Whether it is for a phone.
    """
    by_panel = by_novelty(curves)
    has_tasks = len({task for task, _ in by_panel}) > 1
    panels = Panels(
        count=len(by_panel),
        columns=min(3, side_by_side(len(by_panel), narrow=narrow)),
        height=150 if narrow else 210,
        gap=78,
    )
    figure = panel_figure(panels, spacing=0.08 if narrow else 0.05, shared="y")
    style = styles(policies)
    for panel, ((task, label), own) in enumerate(by_panel.items()):
        for curve in own:
            for trace in _traces(curve, style[curve.policy], is_named=panel == 0):
                figure.add_trace(trace, panel=panel)
        name = f"{task}: {label}" if has_tasks else label
        name_panel(figure, panel, name, INK, most=name_room(panels, narrow=narrow))
        first = own[0]
        magnitudes = [dose.magnitude for dose in first.doses]
        figure.update_xaxes(
            panel,
            title=first.scale,
            # Weakest on the left, whichever way the magnitudes go.
            autorange="reversed" if magnitudes[0] > magnitudes[-1] else None,
            tickvals=magnitudes,
            ticktext=[in_short(magnitude) for magnitude in magnitudes],
            tickfont={"size": 10},
        )
        if panels.is_first(panel) and not narrow:
            figure.update_yaxes(panel, title="success")
    figure.update_yaxes(range=[-0.03, 1.05], tickvals=[0, 0.5, 1])
    return legend_over_panels(
        figure, panels, rows=len(policies) if narrow else -(-len(policies) // 4)
    )


def threshold_curves(
    curves: Sequence[ThresholdCurve], policies: Sequence[str], *, narrow: bool = False
) -> Figure:
    """Detections, false alarms and delay over the threshold, one panel each, a line a policy.

    Args:
        curves: Of the policies that declare.
        policies: Order of the styles.
        narrow: Whether it is for a phone.
    """
    names = {"detected": "detections", "false": "false alarms", "delay": "delay (episodes)"}
    panels = Panels(count=3, columns=1 if narrow else 3, height=150 if narrow else 210, gap=70)
    figure = panel_figure(panels, spacing=0.08, shared="")
    style = styles(policies)
    for panel, (part, title) in enumerate(names.items()):
        for curve in curves:
            shown = [at for at in curve.points if getattr(at, part).value is not None]
            line = _line(
                curve.policy,
                style[curve.policy],
                [at.threshold for at in shown],
                [getattr(at, part) for at in shown],
                words=[plain_text(interval_text(getattr(at, part))) for at in shown],
                about=f"threshold %{{x}}<br>{title}",
                is_named=panel == 0,
            )
            figure.add_trace(line, panel=panel)
        name_panel(figure, panel, title, INK, most=name_room(panels, narrow=narrow))
        figure.update_xaxes(
            panel, title="threshold", range=[0, 1], tickvals=[0, 0.25, 0.5, 0.75, 1]
        )
        if part != "delay":
            figure.update_yaxes(panel, range=[-0.03, 1.05], tickvals=[0, 0.5, 1])
    return legend_over_panels(figure, panels, rows=len(curves) if narrow else -(-len(curves) // 4))


def _line(
    policy: str,
    style: Style,
    x: Sequence[float | None],
    estimates: Sequence[Estimate],
    *,
    words: Sequence[str],
    about: str,
    is_named: bool,
) -> Trace:
    """The line of a policy with its bars; `words` are told of each point, after `about`."""
    return scatter(
        x=x,
        y=[estimate.value for estimate in estimates],
        error_y=error_bars(estimates, style.colour),
        mode="lines+markers",
        name=plain_text(shortened(policy, 30)),
        legendgroup=policy,
        showlegend=is_named,
        line={"color": style.colour, "width": 2, "dash": style.dash},
        marker={"size": 6, "symbol": f"{style.symbol}-open", "color": style.colour},
        customdata=words,
        hovertemplate=f"<b>{plain_text(policy)}</b>, {about} %{{customdata}}<extra></extra>",
        cliponaxis=False,
    )


def _traces(curve: DoseCurve, style: Style, *, is_named: bool) -> Iterator[Trace]:
    """A line with bars, half of what is reached without novelty, and where they meet."""
    name = plain_text(curve.policy)
    shown = [dose for dose in curve.doses if dose.success.value is not None]
    x = [dose.magnitude for dose in shown]
    yield _line(
        curve.policy,
        style,
        x,
        [dose.success for dose in shown],
        words=[
            f"{in_short(dose.magnitude)} {curve.unit}".rstrip()
            + f"<br>success {plain_text(interval_text(dose.success))}"
            + f"<br>kept {plain_text(interval_text(dose.kept))}"
            + f"<br>quality {plain_text(interval_text(dose.quality))}"
            + f"<br>{dose.n_pairs} of {dose.n_expected} pairs"
            for dose in shown
        ],
        about=plain_text(curve.label),
        is_named=is_named,
    )
    nominal = curve.nominal_success.value
    if nominal is None or not x:
        return
    yield scatter(
        x=[x[0], x[-1]],
        y=[HALF * nominal] * 2,
        mode="lines",
        line={"color": style.colour, "width": 1, "dash": "dot"},
        hoverinfo="skip",
        showlegend=False,
    )
    if curve.half_loss.value is not None:
        yield scatter(
            x=[curve.half_loss.value],
            y=[HALF * nominal],
            mode="markers",
            marker={"size": 11, "symbol": style.symbol, "color": style.colour},
            hovertemplate=f"<b>{name}</b><br>half is lost at {curve.half_loss.text}"
            f" {curve.unit}<br>interval {curve.half_loss.ends}<extra></extra>",
            showlegend=False,
        )
