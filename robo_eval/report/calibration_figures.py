"""What the pictures of a calibration look like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from robo_eval.core.estimate import Estimate
from robo_eval.log.snapshot import Snapshot, Traces
from robo_eval.page.figure import Figure, scatter
from robo_eval.page.figures import finish, name_rows
from robo_eval.page.forest import points
from robo_eval.page.panels import (
    Panels,
    legend_over_panels,
    name_panel,
    name_room,
    panel_figure,
)
from robo_eval.page.table import Group, Row
from robo_eval.page.theme import FAINT, INK, MUTED, policy_style
from robo_eval.page.words import plain_text, spaced
from robo_eval.report.calibration import Calibrations
from robo_eval.report.loop import differences, sizes_of

_AFTER, _BEFORE = policy_style(0), policy_style(1)
_TOGETHER, _EACH = "together", "each recording"


def calibration_charts(found: Calibrations) -> dict[str, Callable[..., Figure]]:
    """What draws each picture that has something to show, by its name and number of snapshot."""
    drawn: dict[str, Callable[..., Figure]] = {}
    for at, one in enumerate(found.snapshots):
        if any(constant.value is not None for constant in one.constants.values()):
            drawn[f"constants-{at}"] = partial(constants, one)
        if one.accepted.traces is not None:
            drawn[f"traces-{at}"] = partial(traces, one.accepted.traces)
    if len(sizes_of(found.settings)) > 1:
        drawn["loop"] = partial(differences, found.settings)
    return drawn


def constants(snapshot: Snapshot, *, narrow: bool = False) -> Figure:
    """Each constant that was looked for: every recording, all together with interval, nominal."""
    found = {name: one for name, one in snapshot.constants.items() if one.value is not None}
    columns = 1 if narrow else min(2, len(found))
    panels = Panels(count=len(found), columns=columns, height=64, gap=76, bottom=52)
    figure = panel_figure(panels, spacing=0.05, shared="y")
    for at, (name, one) in enumerate(found.items()):
        together = Estimate(
            value=one.value, low=one.low, high=one.high, n=one.n, method=one.method, unit=one.unit
        )
        alone = partial(replace, together, low=None, high=None, n=1)
        rows = [Row(name=_TOGETHER, estimate=together, symbol="diamond")]
        rows += [
            Row(name=_EACH, estimate=alone(value=own), is_hollow=True)
            for own in one.by_recording if own is not None
        ]  # fmt: skip
        figure.add_trace(points(Group(title=name, rows=rows), rows, _AFTER), panel=at)
        most = name_room(panels, narrow=narrow)
        name_panel(figure, at, f"{name}: {one.verdict}", INK, most=most)
        figure.update_xaxes(at, title=plain_text(one.unit) or "ratio", nticks=5)
        if one.nominal is not None:
            line = {"color": MUTED, "width": 1.25, "dash": "dash"}
            figure.add_shape("line", at, x0=one.nominal, x1=one.nominal, line=line)
    name_rows(figure, [_TOGETHER, _EACH])
    return finish(figure, height=panels.total, margin=panels.margins())


def traces(found: Traces, *, narrow: bool = False) -> Figure:
    """A recording and what is foretold of it, and below recorded less foretold, by channel."""
    count = len(found.channels)
    columns = min(count, 2) if narrow else count
    panels = Panels(count=2 * count, columns=columns, height=150, gap=44, bottom=52)
    figure = panel_figure(panels, spacing=0.14 if narrow else 0.06, shared="x")
    most = name_room(panels, narrow=narrow)
    for at, (name, one) in enumerate(found.channels.items()):
        unit = f" ({one.unit})" if one.unit else ""
        name_panel(figure, at, f"{spaced(name)}{unit}", INK, most=most)
        name_panel(figure, at + count, f"error, {spaced(name)}", INK, most=most)
        for told, values, size, line in (
            ("recorded", one.recorded, 0, {"color": FAINT, "width": 5}),
            ("nominal", one.nominal, found.ticks, {"color": _BEFORE.colour, "dash": "dash"}),
            ("calibrated", one.calibrated, found.ticks, {"color": _AFTER.colour}),
        ):
            errors = [None if a is None or b is None else a - b
                      for a, b in zip(one.recorded, values, strict=True)]  # fmt: skip
            for panel, y in ((at, values), (at + count, errors)):
                series = scatter(
                    x=_cut(found.time_s, size), y=_cut(y, size), mode="lines", name=told, line=line,
                    showlegend=panel == 0, hoverinfo="skip",
                )  # fmt: skip
                figure.add_trace(series, panel=panel)
    figure.update_xaxes(nticks=4)
    figure.update_yaxes(nticks=5, tickfont={"size": 11})
    for panel in range(2 * count - columns, 2 * count):
        figure.update_xaxes(panel, title="time (s)")
    return legend_over_panels(figure, panels, rows=2 if narrow else 1)


def _cut(values: Sequence[float | None], size: int) -> list[float | None]:
    """Values with a gap after each so many, where replays start anew; 0 leaves them whole."""
    size = size or len(values)
    parts = [values[at : at + size] for at in range(0, len(values), size)]
    return [value for part in parts for value in (*part, None)]
