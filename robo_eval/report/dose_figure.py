"""What success over the magnitude of a novelty looks like."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from robo_eval.core.wording import in_short
from robo_eval.metrics.dose import HALF, DoseCurve, by_novelty
from robo_eval.page.figure import Figure, Trace, scatter
from robo_eval.page.figures import error_bars, finish, legend_on_top, styles
from robo_eval.page.panels import Panels, name_panel, name_room, panel_figure, side_by_side
from robo_eval.page.theme import INK, Style
from robo_eval.page.words import interval_text, plain_text, shortened


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
    figure = finish(figure, height=panels.total, margin=panels.margins())
    rows = len(policies) if narrow else -(-len(policies) // 4)
    figure = legend_on_top(figure, rows=rows)
    # Above the names of the panels.
    figure.update_layout(
        height=panels.total + 24 * rows,
        margin={"t": panels.top + 24 * rows},
        legend={"yref": "container", "yanchor": "top"},
    )
    return figure


def _traces(curve: DoseCurve, style: Style, *, is_named: bool) -> Iterator[Trace]:
    """A line with bars, half of what is reached without novelty, and where they meet."""
    name = plain_text(curve.policy)
    shown = [dose for dose in curve.doses if dose.success.value is not None]
    x = [dose.magnitude for dose in shown]
    yield scatter(
        x=x,
        y=[dose.success.value for dose in shown],
        error_y=error_bars([dose.success for dose in shown], style.colour),
        mode="lines+markers",
        name=plain_text(shortened(curve.policy, 30)),
        legendgroup=curve.policy,
        showlegend=is_named,
        line={"color": style.colour, "width": 2, "dash": style.dash},
        marker={"size": 6, "symbol": f"{style.symbol}-open", "color": style.colour},
        customdata=[
            f"{in_short(dose.magnitude)} {curve.unit}".rstrip()
            + f"<br>success {plain_text(interval_text(dose.success))}"
            + f"<br>kept {plain_text(interval_text(dose.kept))}"
            + f"<br>quality {plain_text(interval_text(dose.quality))}"
            + f"<br>{dose.n_pairs} of {dose.n_expected} pairs"
            for dose in shown
        ],
        hovertemplate=f"<b>{name}</b>, {plain_text(curve.label)} %{{customdata}}<extra></extra>",
        cliponaxis=False,
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
