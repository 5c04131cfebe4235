"""How the recording around an incident is drawn: a chart for each quantity, one time axis."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.errors import RoboEvalError
from robo_eval_incidents.kinds import Quantity
from robo_eval_incidents.web.excerpt import WINDOW_S, Excerpt, Panel, Series, read_excerpt
from robo_eval_incidents.web.templating import environment

MOST_SERIES: Final = 8
"""Lines in one chart; of more, those that moved most are drawn."""
_WIDTH: Final = 1000.0
"""Units of the drawing across; it is stretched to the width it is given."""
_TOP: Final = 14.0
_BOTTOM: Final = 118.0
_COLUMNS: Final = 500
_STOPS: Final = frozenset({"PROTECTIVE_STOP", "ESTOP"})

Floats = NDArray[np.float64]


def event_plot(
    mcap: Path,
    happened_ns: int,
    *,
    quantities: Sequence[Quantity] = (),
    window_s: float = WINDOW_S,
) -> str:
    """What a recording holds around an incident, drawn as inline SVG that needs no script.

    Args:
        mcap: The recording.
        happened_ns: When the incident happened, by the clock of the recording, ns.
        quantities: What was measured, for limits the recording does not state.
        window_s: How much is shown before and after it, seconds.

    Returns:
        HTML. A sentence if nothing can be drawn; no error is raised for what a file holds.
    """
    drawing = None
    try:
        excerpt = read_excerpt(mcap, happened_ns, window_s=window_s)
    except (RoboEvalError, OSError):
        notes = ["The recording is missing, or is not an MCAP file."]
    else:
        notes = list(excerpt.notes)
        if excerpt.panels:
            # Names of parts of a page; two plots of one page need other ones.
            mark = hashlib.sha256(f"{mcap.name} {happened_ns}".encode()).hexdigest()[:8]
            drawing = _Drawing(excerpt, quantities, f"plot-{mark}")
        else:
            none = "holds nothing that can be drawn."
            notes.insert(0, f"Within {window_s:g} s of the event the recording {none}")
            notes = [note.replace("; what could be read is shown", "") for note in notes]
    return environment().get_template("plot.html.j2").render(drawing=drawing, notes=notes)


class _State(NamedTuple):
    """A state of the guard, where it begins and how wide it is, in percent."""

    name: str
    x: str
    width: str
    is_stop: bool
    has_room: bool
    """Whether its name fits in on a telephone."""


class _Chart(NamedTuple):
    """A quantity as it is drawn; a height has its text."""

    panel: Panel
    words: str
    """The chart for those who cannot see it."""
    lines: list[tuple[str, str]]
    """Name and path of each series."""
    ticks: list[tuple[float, str]]
    limits: list[tuple[float, str]]


class _Drawing:
    """All charts of one recording.

    Args:
        excerpt: What is drawn.
        quantities: What was measured.
        mark: What ids begin with.
    """

    def __init__(self, excerpt: Excerpt, quantities: Sequence[Quantity], mark: str) -> None:
        self.mark: Final = mark
        self._quantities = quantities
        self._start, self._end = excerpt.start_s, excerpt.end_s
        self.states: Final = [
            _State(
                one.state,
                self.x(one.start_s),
                f"{(share := (one.end_s - one.start_s) / (self._end - self._start)):.2%}",
                one.state in _STOPS,
                share * 340.0 > 6.4 * len(one.state) + 10.0,
            )
            for one in excerpt.states
        ]
        self.guard: Final = ", ".join(
            f"{one.state} from {_seconds(one.start_s)} to {_seconds(one.end_s)}"
            for one in excerpt.states
        )
        self.charts: Final = [self._chart(panel) for panel in excerpt.panels]

    def x(self, time_s: float) -> str:
        """Where a time is, in percent of the width."""
        return f"{(time_s - self._start) / (self._end - self._start):.2%}"

    @property
    def times(self) -> Iterator[tuple[str, str]]:
        """Seconds since the event that are named below: where they are, and their text."""
        margin = 0.03 * (self._end - self._start)
        for tick in _ticks(self._start, self._end, 6):
            if self._start + margin <= tick <= self._end - margin:
                yield self.x(tick), "event" if tick == 0.0 else _seconds(tick)

    def _chart(self, panel: Panel) -> _Chart:
        shown = _most_moved(panel.series)
        limits = self._limits(panel, shown)
        low, high = _span(shown, limits)

        def y(value: float) -> float:
            return round(_BOTTOM - (value - low) / (high - low) * (_BOTTOM - _TOP), 1)

        return _Chart(
            panel=panel,
            words=self._said(panel, shown, limits),
            lines=[(series.name, self._path(series, low, high)) for series in shown],
            ticks=[(y(tick), _value(tick)) for tick in _ticks(low, high, 4)],
            limits=[(y(limit), _value(limit)) for limit in limits if low <= limit <= high],
        )

    def _said(self, panel: Panel, shown: Sequence[Series], limits: Sequence[float]) -> str:
        parts = []
        for series in shown:
            at = series.at(0.0)
            values = series.values[np.isfinite(series.values)]
            text = f"{series.name} between {_value(values.min())} and {_value(values.max())}"
            parts.append(text if at is None else f"{text}, {_value(at)} at the event")
        said = f"{panel.unit}, from {_seconds(self._start)} to {_seconds(self._end)}: "
        said += "; ".join(parts)
        if limits:
            said += f"; limits {', '.join(_value(limit) for limit in limits)}"
        return f"{said}."

    def _limits(self, panel: Panel, shown: Sequence[Series]) -> list[float]:
        found = {one for series in shown for one in (series.low, series.high) if one is not None}
        if not found:
            found = {
                quantity.limit
                for quantity in self._quantities
                if quantity.limit is not None
                and quantity.unit in panel.unit.split(" or ")
                and panel.key in quantity.name.lower()
            }
        return sorted(found)

    def _path(self, series: Series, low: float, high: float) -> str:
        """A line through the samples, thinned out to what a screen can show."""
        scale = (_BOTTOM - _TOP) / (high - low)
        inside = (series.time_s >= self._start) & (series.time_s <= self._end)
        x = (series.time_s[inside] - self._start) / (self._end - self._start) * _WIDTH
        y = _BOTTOM - (series.values[inside] - low) * scale
        x, y = _thinned(x, y)
        gap = _gap(x)
        words = []
        pen_down = False
        before = -math.inf
        for at, height in zip(x.tolist(), y.tolist(), strict=True):
            if math.isnan(height):
                pen_down = False
                continue
            pen_down = pen_down and at - before <= gap
            # A lone sample is a dot: a line of no length with a cap of its own is none.
            words.append(f"{'L' if pen_down else 'M'}{at:.1f} {height:.1f}")
            if not pen_down:
                words.append("h.6")
            pen_down, before = True, at
        return "".join(words)


def _most_moved(series: Sequence[Series]) -> list[Series]:
    """The series with the widest range, in their own order."""
    if len(series) <= MOST_SERIES:
        return list(series)
    ranges = [float(np.nanmax(one.values) - np.nanmin(one.values)) for one in series]
    chosen = sorted(range(len(series)), key=lambda place: -ranges[place])[:MOST_SERIES]
    return [series[place] for place in sorted(chosen)]


def _span(series: Sequence[Series], limits: Sequence[float]) -> tuple[float, float]:
    """Least and greatest value of a chart: limits are in it unless they are far away."""
    low = min(float(np.nanmin(one.values)) for one in series)
    high = max(float(np.nanmax(one.values)) for one in series)
    reach = max(high - low, abs(high), abs(low), 1e-9)
    near = [limit for limit in limits if low - reach <= limit <= high + reach]
    low, high = min([low, *near]), max([high, *near])
    if not math.isfinite(high - low):
        # Values near the greatest a number can have: drawn, if not to scale.
        return -1e308 / 4, 1e308 / 4
    margin = 0.06 * (high - low) or 0.5 * max(abs(high), 1e-3)
    return low - margin, high + margin


def _ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers between two others.

    Example:
        >>> _ticks(-10.0, 10.0, 6)
        [-10.0, -5.0, 0.0, 5.0, 10.0]
    """
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next((power * factor for factor in (1, 2, 5) if power * factor >= raw), power * 10)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [place * step for place in range(first, last + 1)]


def _thinned(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Least and greatest sample of each column of the screen: no peak is lost."""
    if len(x) <= 2 * _COLUMNS:
        return x, y
    column = np.minimum((x / _WIDTH * _COLUMNS).astype(np.int64), _COLUMNS - 1)
    starts = np.flatnonzero(np.diff(column, prepend=-1))
    kept: list[int] = []
    for first, last in zip(starts, [*starts[1:], len(x)], strict=True):
        part = y[first:last]
        if np.isnan(part).all():
            kept.append(int(first))
        else:
            kept += sorted({int(first + np.nanargmin(part)), int(first + np.nanargmax(part))})
    return x[kept], y[kept]


def _gap(x: Floats) -> float:
    """From which distance on two samples are not joined: something is missing between them."""
    if len(x) < 3:
        return math.inf
    return max(8.0 * float(np.median(np.diff(x))), 0.012 * _WIDTH)


def _value(value: float) -> str:
    """A number as charts have it.

    Example:
        >>> _value(1200.0), _value(0.123456)
        ('1200', '0.1235')
    """
    return f"{0.0 if abs(value) < 1e-12 else value:.4g}".replace("-", "\N{MINUS SIGN}")


def _seconds(time_s: float) -> str:
    return f"{_value(round(time_s, 2))} s"
