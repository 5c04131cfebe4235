"""How the recording around an incident is drawn: a chart for each quantity, one time axis."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.errors import RoboEvalError
from robo_eval_incidents.kinds import Quantity
from robo_eval_incidents.web.excerpt import (
    WINDOW_S,
    Excerpt,
    Held,
    Panel,
    Series,
    read_excerpt,
)

MOST_SERIES: Final = 8
"""Lines in one chart; of more, those that moved most are drawn."""
_WIDTH: Final = 1000.0
"""Units of the drawing across; it is stretched to the width it is given."""
_HEIGHT: Final = 128
_TOP: Final = 14.0
_BOTTOM: Final = 118.0
_COLUMNS: Final = 500
_SIZE: Final = 'font-size="11.5"'

# Each colour is that of the page; where the page names none, those of a report.
_INK: Final = "var(--ink, light-dark(#1c2430, #e8ecf2))"
_MUTED: Final = "var(--muted, light-dark(#5b6675, #a3aebd))"
_LINE: Final = "var(--line, light-dark(#e1e5ea, #29323f))"
_FAINT: Final = "var(--faint, light-dark(#c3cad3, #4a5666))"
_CARD: Final = "var(--card, light-dark(#ffffff, #161c26))"
_BAD: Final = "var(--bad, light-dark(#a5243d, #ff8a98))"
_WARN: Final = "var(--warn, light-dark(#9a4a00, #f5b26b))"
_GOOD: Final = "var(--good, light-dark(#0b6b4f, #4fcfa6))"
_COLOURS: Final = (
    ("#0b5cad", "#6db3f8"), ("#b8490f", "#f39a6b"), ("#00735a", "#4fcfa6"), ("#8b3a8f", "#d89be0"),
    ("#6f5d00", "#dcc653"), ("#4a5560", "#b4bfca"), ("#a8264f", "#f58bab"), ("#1f6f8b", "#7fd3ee"),
)  # fmt: skip
_DASHES: Final = ("", "7 3", "2 3", "8 3 2 3")
_STOPS: Final = frozenset({"PROTECTIVE_STOP", "ESTOP"})
_STATES: Final = {"RUNNING": _GOOD, "WITHHELD": _WARN, "PROTECTIVE_STOP": _BAD, "ESTOP": _BAD}

_NO_TEXT: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters no XML may hold, which names in a damaged recording do."""

Floats = NDArray[np.float64]


def _plain(text: str) -> str:
    return escape(_NO_TEXT.sub("\N{REPLACEMENT CHARACTER}", text))


def event_plot(
    mcap: Path,
    happened_ns: int,
    *,
    quantities: Sequence[Quantity] = (),
    window_s: float = WINDOW_S,
) -> str:
    """What a recording holds around an incident, drawn as inline SVG.

    Needs no script and no style sheet: colours are variables of the page (`--ink`, `--muted`,
    `--line`, `--faint`, `--card`, `--bad`, `--warn`, `--good`, `--policy-0` to `--policy-7`), else
    those of a report.

    Args:
        mcap: The recording.
        happened_ns: When the incident happened, by the clock of the recording, ns.
        quantities: What was measured, for limits the recording does not state.
        window_s: How much is shown before and after it, seconds.

    Returns:
        HTML. A sentence if nothing can be drawn; no error is raised for what a file holds.
    """
    try:
        excerpt = read_excerpt(mcap, happened_ns, window_s=window_s)
    except (RoboEvalError, OSError):
        return _sentence("The recording is missing, or is not an MCAP file.")
    if not excerpt.panels:
        notes = " ".join(excerpt.notes).replace("; what could be read is shown", "")
        return _sentence(
            f"Within {window_s:g} s of the event the recording holds nothing that can be drawn."
            f" {notes}"
        )
    # Names of parts of a page; two plots of one page need other ones.
    mark = hashlib.sha256(f"{mcap.name} {happened_ns}".encode()).hexdigest()[:8]
    return "\n".join(_Drawing(excerpt, quantities, f"plot-{mark}").parts())


def _sentence(text: str) -> str:
    return f'<p class="plot-note">{_plain(text.strip())}</p>'


class _Drawing:
    """All charts of one recording.

    Args:
        excerpt: What is drawn.
        quantities: What was measured.
        mark: What ids begin with.
    """

    def __init__(self, excerpt: Excerpt, quantities: Sequence[Quantity], mark: str) -> None:
        self._excerpt = excerpt
        self._quantities = quantities
        self._mark = mark
        self._start, self._end = excerpt.start_s, excerpt.end_s

    def parts(self) -> Iterator[str]:
        """The elements, from top to bottom."""
        yield '<div class="plot">'
        if self._excerpt.states:
            yield from self._guard()
        for panel in self._excerpt.panels:
            yield from self._panel(panel)
        yield from self._axis()
        for note in self._excerpt.notes:
            yield _sentence(note)
        yield "</div>"

    def _x(self, time_s: float) -> float:
        return (time_s - self._start) / (self._end - self._start) * _WIDTH

    def _percent(self, time_s: float) -> str:
        return f"{self._x(time_s) / _WIDTH:.2%}"

    # The guard ---------------------------------------------------------------------------------

    def _guard(self) -> Iterator[str]:
        said = ", ".join(
            f"{one.state} from {_seconds(one.start_s)} to {_seconds(one.end_s)}"
            for one in self._excerpt.states
        )
        yield '<p class="plot-head"><b>Guard</b></p>'
        yield from self._open("guard", 24, "State of the guard", f"{said}.")
        for one in self._excerpt.states:
            x, width = self._percent(one.start_s), (one.end_s - one.start_s)
            share = width / (self._end - self._start)
            colour = _STATES.get(one.state, _FAINT)
            yield (
                f'<rect x="{x}" y="0" width="{share:.2%}" height="24" fill="{colour}"'
                f' fill-opacity="0.22"><title>{_plain(one.state)}</title></rect>'
                f'<rect x="{x}" y="21" width="{share:.2%}" height="3" fill="{colour}"/>'
            )
        yield from self._guard_names()
        yield self._event(24)
        yield "</svg>"

    def _guard_names(self) -> Iterator[str]:
        """Names of the states, each where it begins, where there is room on a telephone."""
        for one in self._excerpt.states:
            share = (one.end_s - one.start_s) / (self._end - self._start)
            name = one.state.replace("_", " ").lower()
            if share * 340.0 > 6.4 * len(name) + 10.0:
                yield (
                    f'<svg x="{self._percent(one.start_s)}" width="{share:.2%}" height="24">'
                    f'<text x="6" y="15" {_SIZE} fill="{_INK}">{_plain(name)}</text></svg>'
                )

    # A quantity --------------------------------------------------------------------------------

    def _panel(self, panel: Panel) -> Iterator[str]:
        shown = _most_moved(panel.series)
        limits = self._limits(panel, shown)
        low, high = _span(shown, limits)
        ticks = _ticks(low, high, 4)

        def y(value: float) -> float:
            return _BOTTOM - (value - low) / (high - low) * (_BOTTOM - _TOP)

        yield from self._head(panel, shown)
        yield from self._open(panel.key, _HEIGHT, panel.title, self._said(panel, shown, limits))
        yield from self._stops()
        yield from self._grid([y(tick) for tick in ticks])
        # Behind the lines: what peaks in the moment of the event is seen before it.
        yield self._event(_HEIGHT)
        yield (
            f'<svg width="100%" height="{_HEIGHT}" viewBox="0 0 {_WIDTH:g} {_HEIGHT}"'
            ' preserveAspectRatio="none">'
        )
        for limit in limits:
            if low <= limit <= high:
                yield (
                    f'<path class="plot-limit" d="M0 {y(limit):.1f}H{_WIDTH:g}" fill="none"'
                    f' stroke="{_BAD}" stroke-width="1.2" stroke-dasharray="5 4"'
                    ' vector-effect="non-scaling-stroke"/>'
                )
        for index, series in enumerate(shown):
            path = self._path(series, low, high)
            yield (
                f'<path class="plot-series" d="{path}" fill="none" {_stroke(index)}'
                ' stroke-width="1.7" stroke-linejoin="round" vector-effect="non-scaling-stroke">'
                f"<title>{_plain(series.name)}</title></path>"
            )
        yield "</svg>"
        for tick in ticks:
            yield _label(f'x="3" y="{y(tick) - 3:.1f}"', _value(tick))
        for limit in limits:
            if low <= limit <= high:
                place = f'x="100%" dx="-3" y="{y(limit) - 3:.1f}" text-anchor="end"'
                yield _label(place, f"limit {_value(limit)}", _BAD)
        yield "</svg>"

    def _head(self, panel: Panel, shown: Sequence[Series]) -> Iterator[str]:
        yield (
            f'<p class="plot-head"><b>{_plain(panel.title)}</b>'
            f' <span class="plot-unit">{_plain(panel.unit)}</span>'
        )
        for index, series in enumerate(shown):
            yield (
                ' <span class="plot-key"><svg width="20" height="9" aria-hidden="true">'
                f'<path d="M1 5H19" fill="none" {_stroke(index)} stroke-width="2.4"/></svg>'
                f" {_plain(series.name)}</span>"
            )
        if len(shown) < len(panel.series):
            yield (
                f' <span class="plot-unit">the {len(shown)} of {len(panel.series)} that moved'
                " most</span>"
            )
        yield "</p>"

    def _said(self, panel: Panel, shown: Sequence[Series], limits: Sequence[float]) -> str:
        """The chart in words, for those who cannot see it."""
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

    # What all charts share ---------------------------------------------------------------------

    def _open(self, key: str, height: int, title: str, said: str) -> Iterator[str]:
        name = f"{self._mark}-{key}"
        yield (
            f'<svg class="plot-chart" width="100%" height="{height}" role="img"'
            f' aria-labelledby="{name}-t {name}-d" font-family="inherit">'
            f'<title id="{name}-t">{_plain(title)}</title><desc id="{name}-d">{_plain(said)}</desc>'
        )

    def _stops(self) -> Iterator[str]:
        """Where the guard had stopped the robot."""
        for one in self._excerpt.states:
            if one.state in _STOPS:
                yield self._shade(one)

    def _shade(self, held: Held) -> str:
        share = (held.end_s - held.start_s) / (self._end - self._start)
        return (
            f'<rect class="plot-stop" x="{self._percent(held.start_s)}" width="{share:.2%}"'
            f' height="{_HEIGHT}" fill="{_BAD}" fill-opacity="0.08"/>'
        )

    def _grid(self, heights: Sequence[float]) -> Iterator[str]:
        for height in heights:
            yield (
                f'<line x1="0" x2="100%" y1="{height:.1f}" y2="{height:.1f}" stroke="{_LINE}"'
                ' stroke-width="1"/>'
            )
        for tick in self._times():
            x = self._percent(tick)
            yield f'<line x1="{x}" x2="{x}" y1="4" y2="{_HEIGHT - 4}" stroke="{_LINE}"/>'

    def _event(self, height: int) -> str:
        x = self._percent(0.0)
        return (
            f'<line class="plot-event" x1="{x}" x2="{x}" y1="0" y2="{height}" stroke="{_INK}"'
            ' stroke-width="1.6"/>'
        )

    def _times(self) -> list[float]:
        ticks = _ticks(self._start, self._end, 6)
        margin = 0.03 * (self._end - self._start)
        return [tick for tick in ticks if self._start + margin <= tick <= self._end - margin]

    def _axis(self) -> Iterator[str]:
        """Seconds since the event, below the lowest chart."""
        yield '<svg class="plot-axis" width="100%" height="34" aria-hidden="true">'
        x = self._percent(0.0)
        yield f'<line x1="{x}" x2="{x}" y1="0" y2="5" stroke="{_INK}" stroke-width="1.6"/>'
        for tick in self._times():
            text = "event" if tick == 0.0 else _seconds(tick)
            colour = _INK if tick == 0.0 else _MUTED
            yield _label(f'x="{self._percent(tick)}" y="17" text-anchor="middle"', text, colour)
        yield "</svg>"


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


def _stroke(index: int) -> str:
    light, dark = _COLOURS[index % len(_COLOURS)]
    dash = _DASHES[index % len(_DASHES)]
    colour = f"var(--policy-{index % len(_COLOURS)}, light-dark({light}, {dark}))"
    return f'stroke="{colour}"' + (f' stroke-dasharray="{dash}"' if dash else "")


def _label(place: str, text: str, colour: str = _MUTED) -> str:
    # A rim in the colour of the card keeps a number readable on a line.
    return (
        f'<text {place} {_SIZE} fill="{colour}" stroke="{_CARD}" stroke-width="3"'
        f' paint-order="stroke" stroke-linejoin="round">{_plain(text)}</text>'
    )


def _value(value: float) -> str:
    """A number as charts have it.

    Example:
        >>> _value(1200.0), _value(0.123456)
        ('1200', '0.1235')
    """
    return f"{0.0 if abs(value) < 1e-12 else value:.4g}".replace("-", "\N{MINUS SIGN}")


def _seconds(time_s: float) -> str:
    return f"{_value(round(time_s, 2))} s"
