"""What the pictures of a calibration look like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from robo_eval.core.estimate import Estimate
from robo_eval.log.snapshot import Snapshot, Traced, Traces
from robo_eval.page.figure import Figure, Trace, heatmap, scatter
from robo_eval.page.figures import (
    colour_key,
    error_bars,
    finish,
    legend_on_top,
    name_rows,
)
from robo_eval.page.forest import forest
from robo_eval.page.panels import Panels, name_panel, name_room, panel_figure
from robo_eval.page.theme import FAINT, INK, MUTED, PAPER, POLICY, policy_style
from robo_eval.page.words import number, plain_text, spaced
from robo_eval.report.calibration import Calibrations, fine

_AFTER, _BEFORE = policy_style(0), policy_style(1)
_TOGETHER, _EACH = "together", "each recording"


def calibration_charts(found: Calibrations | None) -> dict[str, Callable[..., Figure]]:
    """What draws each picture that has something to show, by its name and number of snapshot."""
    drawn: dict[str, Callable[..., Figure]] = {}
    if found is None:
        return drawn
    for at, one in enumerate(found.snapshots):
        if any(constant.value is not None for constant in one.constants.values()):
            drawn[f"constants-{at}"] = partial(constants, one)
        if one.accepted.traces is not None:
            drawn[f"traces-{at}"] = partial(traces, one.accepted.traces)
        if one.residuals.correlations:
            drawn[f"correlations-{at}"] = partial(correlations, one.residuals.correlations)
    if any(group.measured for group in found.moved):
        looks = [policy_style(at) for at in range(len(found.moved))]
        drawn["moved"] = partial(forest, found.moved, looks, scale="share", title="agreement")
    return drawn


def constants(snapshot: Snapshot, *, narrow: bool = False) -> Figure:
    """Each constant that was looked for: every recording, all together with interval, nominal."""
    found = {name: one for name, one in snapshot.constants.items() if one.value is not None}
    panels = Panels(
        count=len(found),
        columns=1 if narrow else min(2, len(found)),
        height=64,
        gap=76,
        bottom=52,
    )
    figure = panel_figure(panels, spacing=0.05, shared="y")
    for at, (name, one) in enumerate(found.items()):
        own = [value for value in one.by_recording if value is not None]
        if one.nominal is not None:
            line = {"color": MUTED, "width": 1.25, "dash": "dash"}
            figure.add_shape("line", at, x0=one.nominal, x1=one.nominal, line=line)
        estimate = Estimate(value=one.value, low=one.low, high=one.high, n=one.n,
                            method=one.method, unit=one.unit)  # fmt: skip
        ends = f"{fine(one.low)} to {fine(one.high)}"
        words = f"<b>{plain_text(name)}</b> {fine(one.value)} {plain_text(one.unit)}<br>{ends}"
        figure.add_trace(_marks([one.value], _TOGETHER, 10, "diamond", words=words) | {
            "error_x": error_bars([estimate], _AFTER.colour)}, panel=at)  # fmt: skip
        figure.add_trace(_marks(own, _EACH, 7, "circle", fill=PAPER), panel=at)
        most = name_room(panels, narrow=narrow)
        name_panel(figure, at, f"{name}: {one.verdict}", INK, most=most)
        # A shape alone would not widen the axis to what is nominal.
        shown = [*own, *(x for x in (one.nominal, one.low, one.high, one.value) if x is not None)]
        room = 0.08 * (max(shown) - min(shown) or 1.0)
        figure.update_xaxes(at, title=plain_text(one.unit) or "ratio", nticks=5,
                            range=[min(shown) - room, max(shown) + room])  # fmt: skip
    name_rows(figure, [_TOGETHER, _EACH])
    return finish(figure, height=panels.total, margin=panels.margins())


def _marks(
    x: Sequence[float | None],
    row: str,
    size: int,
    symbol: str,
    *,
    fill: str = _AFTER.colour,
    words: str = "%{x:.4g}",
) -> Trace:
    line = {"color": _AFTER.colour, "width": 1.5}
    return scatter(
        x=x,
        y=[row] * len(x),
        mode="markers",
        marker={"size": size, "symbol": symbol, "color": fill, "line": line},
        hovertemplate=f"{words}<extra></extra>",
        cliponaxis=False,
    )


def traces(found: Traces, *, narrow: bool = False) -> Figure:
    """A recording and what is foretold of it, and below recorded less foretold, by channel."""
    count = len(found.channels)
    panels = Panels(count=2 * count, columns=min(count, 2) if narrow else count,
                    height=130 if narrow else 160, gap=44, bottom=52)  # fmt: skip
    figure = panel_figure(panels, spacing=0.14 if narrow else 0.06, shared="x")
    for at, (name, one) in enumerate(found.channels.items()):
        for panel, is_error in ((at, False), (at + count, True)):
            for series in _series(found, one, is_error=is_error, is_named=panel == 0):
                figure.add_trace(series, panel=panel)
            figure.update_yaxes(panel, nticks=5, tickfont={"size": 11})
            unit = f" ({one.unit})" if one.unit else ""
            text = f"error, {spaced(name)}" if is_error else f"{spaced(name)}{unit}"
            name_panel(figure, panel, text, INK, most=name_room(panels, narrow=narrow))
            if panels.is_lowest(panel):
                figure.update_xaxes(panel, title="time (s)", nticks=4)
    rows = 2 if narrow else 1
    figure = finish(figure, height=panels.total + 24 * rows, margin=panels.margins())
    figure = legend_on_top(figure, rows=rows)
    # Above the names of the panels.
    figure.update_layout(
        margin={"t": panels.top + 24 * rows}, legend={"yref": "container", "yanchor": "top"}
    )
    return figure


def _series(found: Traces, one: Traced, *, is_error: bool, is_named: bool) -> list[Trace]:
    """Lines of a panel, cut where replays start anew."""
    told = {"recorded": (one.recorded, FAINT, "solid", 5),
            "nominal": (one.nominal, _BEFORE.colour, "dash", 1.75),
            "calibrated": (one.calibrated, _AFTER.colour, "solid", 1.75)}  # fmt: skip
    lines = []
    for name, (values, colour, dash, width) in told.items():
        if is_error:
            pairs = zip(one.recorded, values, strict=True)
            values = tuple(None if a is None or b is None else a - b for a, b in pairs)
        size = len(values) if name == "recorded" else found.ticks or len(values)
        parts = range(0, len(values), size)
        x = [t for at in parts for t in (*found.time_s[at : at + size], None)]
        y = [v for at in parts for v in (*values[at : at + size], None)]
        lines.append(
            scatter(
                x=x,
                y=y,
                mode="lines",
                name=name,
                legendgroup=name,
                showlegend=is_named,
                line={"color": colour, "width": width, "dash": dash},
                hovertemplate=f"{name} %{{y:.4g}} at %{{x:.2f}} s<extra></extra>",
            )
        )
    return lines[1:] if is_error else lines


def correlations(found: dict[str, float], *, narrow: bool = False) -> Figure:
    """How far estimates of every two constants hang together; the darker, the more."""
    pairs = {frozenset(key.split(" ")): value for key, value in found.items()}
    names = list(dict.fromkeys(name for key in found for name in key.split(" ")))
    rows, columns = names[1:], names[:-1]
    table = [
        [pairs.get(frozenset((column, row))) if at >= place else None
         for place, column in enumerate(columns)]
        for at, row in enumerate(rows)
    ]  # fmt: skip
    figure = Figure()
    figure.add_trace(heatmap(
        x=[plain_text(one) for one in columns], y=[plain_text(one) for one in rows],
        z=[[None if one is None else abs(one) for one in row] for row in table],
        text=[["" if one is None else number(one) for one in row] for row in table],
        texttemplate="%{text}", hovertemplate="%{y}, %{x}: %{text}<extra></extra>",
        coloraxis="coloraxis", xgap=2, ygap=2, hoverongaps=False,
    ))  # fmt: skip
    figure.update_yaxes(autorange="reversed", showgrid=False, tickfont={"size": 11})
    width = min(1.0, (0.25 if narrow else 0.14) * len(columns))
    figure.update_xaxes(showgrid=False, domain=[0, width], tickfont={"size": 11},
                        tickangle=-60 if narrow else 0)  # fmt: skip
    figure = finish(figure, height=30 * len(rows) + (170 if narrow else 100), margin={"b": 60})
    scale = ((0.0, PAPER), (1.0, POLICY[0]))
    key = colour_key("size of the correlation", scale, most=1.0, end="1", narrow=narrow)
    figure.update_layout(coloraxis=key)
    return figure
