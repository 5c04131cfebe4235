"""What the charts of autonomy levels look like: axes, capability over time, delegation."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from robo_eval.page.figure import Figure, Trace, axis_number, scatter, scatterpolar
from robo_eval.page.figures import finish, legend_on_top
from robo_eval.page.panels import (
    Panels,
    name_room,
    name_room_over_rows,
    panel_figure,
    title_below,
)
from robo_eval.page.theme import FAINT, GRID, INK, MUTED, PAPER, Style, policy_style
from robo_eval.page.words import count, interval_text, plain_text, shortened
from robo_eval.report.level_frontier import is_drawn
from robo_eval.report.level_words import amount, ends

if TYPE_CHECKING:
    from robo_eval.gates import Assessment
    from robo_eval.gates.axes.anchors import Axis
    from robo_eval.gates.axes.frontier import Bin, Frontier
    from robo_eval.gates.axes.progress import Progress
    from robo_eval.gates.trial import TrialFindings

LEAST_AXES: Final = 3
"""Axes with a value that make a picture."""
LEAST_DAYS: Final = 2
"""Days that make a picture over time."""

_LINE: Final = 16
"""Height of a line of small text, pixels."""
_MOST_KAPPAS: Final = 3
"""Families whose coefficient is written on the picture; the table has all."""
_ROW: Final = 19
"""Height of the row of one drift, pixels."""
_PATCHES: Final = "changed by people"
_DAY_MS: Final = 86_400_000
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - plotly takes times without a zone


def level_charts(found: TrialFindings, policies: Sequence[str]) -> dict[str, Callable[..., Figure]]:
    """What draws each chart of the autonomy levels that has something to show, by its name.

    Args:
        found: What is said of the trial.
        policies: Names of the whole report, which set the styles.
    """
    style = level_styles(found.policies, policies)
    charts: dict[str, Callable[..., Figure]] = {}
    drawn = [one for one in found.policies if has_axes(one)]
    if drawn:
        charts["axes"] = partial(axes_radar, drawn, style)
    drawn = [one for one in found.policies if has_days(one)]
    if drawn:
        charts["capability"] = partial(capability_days, drawn, style)
    if is_drawn(found.frontier):
        charts["frontier"] = partial(delegability_frontier, found.frontier, style)
    return charts


def has_axes(one: Assessment) -> bool:
    """Whether enough axes of a policy have a value to draw them."""
    return sum(axis.value.value is not None for axis in one.readings.axes) >= LEAST_AXES


def has_days(one: Assessment) -> bool:
    """Whether a policy has enough days to draw them."""
    return len(one.readings.days) >= LEAST_DAYS


def kept(one: Assessment) -> tuple[int, int] | None:
    """First and last day, from 1970 on, of a maintenance closure that holds at some level."""
    upkeep = one.readings.upkeep
    holds = any(gate.reads == "maintenance_days" and gate.status == "pass" for gate in one.gates)
    if upkeep is None or upkeep.first_day is None or upkeep.last_day is None or not holds:
        return None
    return upkeep.first_day, upkeep.last_day


def level_styles(levels: Sequence[Assessment], policies: Sequence[str]) -> dict[str, Style]:
    """The style of each policy, which is that of the same policy in the other charts.

    Where a trial has several sides, the report names policies with their side.
    """
    found = {}
    for index, one in enumerate(levels):
        places = [
            policies.index(name)
            for name in (one.policy, f"{one.policy} ({one.side})")
            if name in policies
        ]
        found[one.policy] = policy_style(places[0] if places else index)
    return found


# Axes --------------------------------------------------------------------------------------------


def axes_radar(
    levels: Sequence[Assessment], style: Mapping[str, Style], *, narrow: bool = False
) -> Figure:
    """The ten axes on spokes, one panel for each policy; an axis without a value is a gap.

    Args:
        levels: Policies with enough axes.
        style: By policy.
        narrow: Whether it is for a phone.
    """
    columns = 1 if narrow else min(2, len(levels))
    notes = [
        _without_value(one.readings.axes, 40 if columns > 1 or narrow else 90) for one in levels
    ]
    below = _LINE * max(note.count("<br>") + bool(note) for note in notes) + 8
    panels = Panels(
        count=len(levels),
        columns=columns,
        height=250 if narrow else 280,
        gap=below + 40,
        bottom=below,
        top=30 if len(levels) > 1 else 0,
    )
    figure = Figure()
    inner = panels.rows * panels.height + (panels.rows - 1) * panels.gap
    for index, one in enumerate(levels):
        row, column = divmod(index, columns)
        top = 1.0 - row * (panels.height + panels.gap) / inner
        bottom = max(0.0, top - panels.height / inner)
        left, width = column / columns, 1.0 / columns
        # Room for the names beside the circle, which is round in whatever is left.
        polar = _polar(one.readings.axes, (left + 0.22 * width, left + 0.78 * width), (
            bottom + 22 / inner, top - 22 / inner,
        ))  # fmt: skip
        key = f"polar{axis_number(index)}"
        figure.update_layout(**{key: polar})
        for spoke in _spokes(one, style[one.policy]):
            figure.add_trace(spoke | {"subplot": key})
        most = name_room(panels, narrow=narrow)
        _write(
            figure, f"<b>{plain_text(shortened(one.policy, most))}</b>" * (len(levels) > 1),
            x=left, y=top, yshift=6, font={"size": 13, "color": style[one.policy].colour},
        )  # fmt: skip
        _write(
            figure, notes[index], x=left + width / 2, y=bottom, xanchor="center", yanchor="top",
            yshift=-4, font={"size": 11, "color": MUTED},
        )  # fmt: skip
    return finish(figure, height=panels.total, margin=panels.margins())


def _write(figure: Figure, text: str, **place: Any) -> None:
    """A text in shares of the figure, by default standing on its place."""
    if text:
        placed = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom"}
        figure.add_annotation(text=text, **(placed | place))


def _without_value(axes: Sequence[Axis], width: int) -> str:
    """Names of the axes that are gaps, in lines of so many characters at most."""
    names = ", ".join(axis.title for axis in axes if axis.value.value is None)
    lines = textwrap.wrap(f"no value: {names}", width) if names else []
    return "<br>".join(plain_text(line) for line in lines)


def _polar(axes: Sequence[Axis], x: tuple[float, float], y: tuple[float, float]) -> dict[str, Any]:
    angles = _angles(len(axes))
    # The numbers stand between two spokes, where no name is.
    between = 90.0 - 180.0 / len(axes)
    return {
        "domain": {"x": list(x), "y": list(y)},
        "bgcolor": "rgba(0,0,0,0)",
        "angularaxis": {
            "tickvals": angles,
            "ticktext": [axis.title for axis in axes],
            "tickfont": {"size": 11.5, "color": INK},
            "gridcolor": GRID,
            "linecolor": FAINT,
            # Unseen, to keep the names off the points at the rim.
            "ticks": "outside",
            "ticklen": 6,
            "tickcolor": "rgba(0,0,0,0)",
        },
        "radialaxis": {
            "range": [0, 1],
            "angle": between,
            # Counted from the spoke, so that the numbers stand upright.
            "tickangle": between,
            "tickvals": [0.5, 1],
            "ticktext": ["0.5", "1"],
            "tickfont": {"size": 10.5, "color": MUTED},
            "gridcolor": GRID,
            "showline": False,
            "ticks": "",
        },
    }


def _angles(axes: int) -> list[float]:
    """Degrees of the spokes, from the top on clockwise."""
    return [(90.0 - 360.0 * i / axes) % 360.0 for i in range(axes)]


def _spokes(one: Assessment, style: Style) -> list[Trace]:
    """Intervals as bars on the spokes, and the values, joined where neighbours have one."""
    axes, angles = one.readings.axes, _angles(len(one.readings.axes))
    values = [axis.value.value for axis in axes]
    bars_r: list[float | None] = []
    bars_t: list[float | None] = []
    for axis, angle in zip(axes, angles, strict=True):
        if axis.value.low is not None and axis.value.high is not None:
            bars_r += [axis.value.low, axis.value.high, None]
            bars_t += [angle, angle, None]
    bars = scatterpolar(
        r=bars_r, theta=bars_t, mode="lines", hoverinfo="skip", opacity=0.38,
        line={"color": style.colour, "width": 8},
    )  # fmt: skip
    points = scatterpolar(
        r=[*values, values[0]],
        theta=[*angles, angles[0]],
        mode="lines+markers",
        connectgaps=False,
        # An area across a gap would say that there is a value.
        fill="none" if None in values else "toself",
        fillcolor=style.band,
        line={"color": style.colour, "width": 2},
        marker={
            "size": 7, "symbol": style.symbol, "color": style.colour,
            "line": {"width": 1, "color": PAPER},
        },
        cliponaxis=False,
        customdata=[_axis_words(one.policy, axis) for axis in (*axes, axes[0])],
        hovertemplate="%{customdata}<extra></extra>",
    )  # fmt: skip
    return [bars, points]


def _axis_words(policy: str, axis: Axis) -> str:
    found = interval_text(axis.value, digits=3)
    return f"<b>{plain_text(policy)}</b>, {axis.name} {axis.title}<br>{plain_text(found)}"


# Over time ---------------------------------------------------------------------------------------


class _Scale(NamedTuple):
    """Where things stand on the axis that capability shares with the rows of drifts.

    Attributes:
        low: Lowest capability shown.
        high: Highest.
        ticks: Capabilities with a number.
        rows: Name of each row and its place, below `low`.
        end: Lower end of the axis.
    """

    low: float
    high: float
    ticks: Sequence[float]
    rows: Mapping[str, float]
    end: float


def capability_days(
    levels: Sequence[Assessment], style: Mapping[str, Style], *, narrow: bool = False
) -> Figure:
    """Mean capability of the task families by day, and below it when drifts set in.

    Args:
        levels: Policies with enough days.
        style: By policy.
        narrow: Whether it is for a phone.
    """
    columns = 1 if narrow else min(2, len(levels))
    kappas = [_kappas(one.readings.progress, 40 if columns > 1 else 48) for one in levels]
    above = _LINE * max(len(lines) for lines in kappas)
    height = 170 if narrow else 200
    scale = _scale(levels, height)
    panels = Panels(
        count=len(levels),
        columns=columns,
        height=height + _ROW * len(scale.rows),
        gap=above + 66,
        bottom=52,
        top=above + 26,
    )
    labels = [shortened(name, 17 if narrow or columns > 1 else 24) for name in scale.rows]
    beside = 14 + 6.8 * max([4, *(len(label) for label in labels)])
    figure = panel_figure(panels, spacing=0.05)
    for index, one in enumerate(levels):
        own = style[one.policy]
        _events(figure, index, one, scale)
        figure.add_trace(_capability(one, own), panel=index)
        # The first column has room beside it, where the rows have their names.
        shift = 8 - beside if panels.is_first(index) else 0
        most = 34 if columns == 1 else name_room_over_rows(panels, narrow=narrow)
        name = plain_text(shortened(one.policy, most))
        _head(figure, index, f"<b>{name}</b>", 13, own.colour, shift, _LINE * len(kappas[index]))
        _head(figure, index, "<br>".join(kappas[index]), 11, MUTED, shift, 0)
        title_below(figure, panels, index, "day")
    figure.update_yaxes(
        range=[scale.end, scale.high],
        tickvals=[*scale.ticks, *scale.rows.values()],
        ticktext=[*(f"{tick:g}" for tick in scale.ticks), *map(plain_text, labels)],
        tickfont={"size": 11},
        automargin=False,
    )
    figure.update_xaxes(**_dates(levels, 4 if narrow or columns > 1 else 9))
    return finish(figure, height=panels.total, margin=panels.margins() | {"l": round(beside)})


def _head(
    figure: Figure, index: int, text: str, size: int, colour: str, shift: float, above: int
) -> None:
    """A text over a panel, some pixels to the side and above it."""
    axis = axis_number(index)
    _write(
        figure, text, xref=f"x{axis} domain", yref=f"y{axis} domain", x=0, y=1, align="left",
        xshift=shift, yshift=4 + above, font={"size": size, "color": colour},
    )  # fmt: skip


def _dates(levels: Sequence[Assessment], most: int) -> dict[str, Any]:
    """The axis of days: whole days at its ticks, and a little room at both ends."""
    days = [day.day for one in levels for day in one.readings.days]
    first, last = min(days), max(days)
    room = max(0.4, 0.03 * (last - first))
    return {
        "type": "date",
        "range": [_moment(first - room), _moment(last + room)],
        "tick0": _moment(first),
        "dtick": _DAY_MS * max(1, math.ceil((last - first) / most)),
        "tickformat": "%-d %b",
        "tickfont": {"size": 11},
    }


def _moment(day: float) -> str:
    """A day, and the time where it is not whole."""
    when = _EPOCH + timedelta(days=day)
    return when.date().isoformat() if day % 1 == 0 else when.isoformat(timespec="minutes")


def _kappas(progress: Mapping[str, Progress], most: int) -> list[str]:
    """The coefficient of each family that has one, a line each."""
    known = {
        family: found.kappa for family, found in progress.items() if found.kappa.value is not None
    }
    lines = []
    for family, kappa in list(known.items())[:_MOST_KAPPAS]:
        interval = ends(kappa)
        text = f" {amount(kappa.value or 0.0)}" + (f" ({interval})" if interval else "")
        lines.append(plain_text(f"κ {shortened(family, max(6, most - 2 - len(text)))}{text}"))
    more = len(known) - _MOST_KAPPAS
    return [*lines, f"and {count(more, 'more family', 'more families')}"] if more > 0 else lines


def _scale(levels: Sequence[Assessment], height: int) -> _Scale:
    found = [day.capability for one in levels for day in one.readings.days]
    low = max(0.0, math.floor(10.0 * min(found) - 0.5) / 10.0)
    high = min(1.0, math.ceil(10.0 * max(found) + 0.2) / 10.0)
    low = min(low, high - 0.2)
    step = next(one for one in (0.05, 0.1, 0.2, 0.25) if (high - low) / one <= 5.001)
    ticks = [round(low + step * i, 3) for i in range(math.floor((high - low) / step + 1e-9) + 1)]
    names = sorted({drift for one in levels for day in one.readings.days for drift in day.drifts})
    if any(day.human_patches for one in levels for day in one.readings.days):
        names.append(_PATCHES)
    top = high + 0.04 * (high - low)
    row = _ROW * (top - low) / height
    rows = {name: low - row * (i + 0.9) for i, name in enumerate(names)}
    return _Scale(low=low, high=top, ticks=ticks, rows=rows, end=low - row * (len(names) + 0.3))


def _events(figure: Figure, index: int, one: Assessment, scale: _Scale) -> None:
    """A line and a mark where a drift sets in or people changed something."""
    stretch = kept(one)
    if stretch is not None:
        figure.add_shape(
            "rect", index, x0=_moment(stretch[0]), x1=_moment(stretch[1]), y0=scale.end,
            y1=scale.high, fillcolor=GRID, opacity=0.75, line={"width": 0}, layer="below",
        )  # fmt: skip
    marks: dict[str, list[tuple[str, float, str]]] = {"triangle-up": [], "x": []}
    for day in one.readings.days:
        when = _moment(day.day)
        for drift in day.drifts:
            words = f"{plain_text(drift)} sets in, {when}"
            marks["triangle-up"].append((when, scale.rows[drift], words))
        if day.human_patches:
            words = f"{count(day.human_patches, 'change')} by people, {when}"
            marks["x"].append((when, scale.rows[_PATCHES], words))
    for symbol, found in marks.items():
        dash = "dot" if symbol == "triangle-up" else "solid"
        for when, y, _ in found:
            line = {"color": MUTED, "width": 1, "dash": dash}
            figure.add_shape(
                "line", index, x0=when, x1=when, y0=y, y1=scale.high, line=line, layer="between",
            )  # fmt: skip
        if found:
            figure.add_trace(
                scatter(
                    x=[when for when, _, _ in found],
                    y=[y for _, y, _ in found],
                    mode="markers",
                    marker={"symbol": symbol, "size": 8, "color": MUTED},
                    customdata=[words for _, _, words in found],
                    hovertemplate="%{customdata}<extra></extra>",
                ),
                panel=index,
            )


def _capability(one: Assessment, style: Style) -> Trace:
    days = one.readings.days
    return scatter(
        x=[_moment(day.day) for day in days],
        y=[day.capability for day in days],
        mode="lines+markers",
        line={"color": style.colour, "width": 2},
        marker={"size": 5, "symbol": style.symbol, "color": style.colour},
        customdata=[
            f"<b>{plain_text(one.policy)}</b>, {_moment(day.day)}<br>mean capability"
            f" {amount(day.capability, 'ratio')} of {count(day.families, 'family', 'families')}"
            for day in days
        ],
        hovertemplate="%{customdata}<extra></extra>",
        cliponaxis=False,
    )


# Delegation --------------------------------------------------------------------------------------


def delegability_frontier(
    found: Frontier, style: Mapping[str, Style], *, narrow: bool = False
) -> Figure:
    """Best quality at each degree of autonomy with its band, and the fit that never rises.

    Args:
        found: The frontier.
        style: By policy.
        narrow: Whether it is for a phone.
    """
    figure = Figure()
    bins = [one for one in found.bins if one.policy is not None and one.quality.value is not None]
    half = 0.5 / len(found.bins)
    names = list(dict.fromkeys(str(one.policy) for one in bins))
    looks = {name: policy_style(index) for index, name in enumerate(names)} | dict(style)
    for name in names:
        own = [one for one in bins if one.policy == name]
        figure.add_trace(_band(own, half, looks[name]))
    figure.add_trace(
        scatter(
            x=[x for one in bins for x in (one.demand - half, one.demand + half)],
            y=[y for one in bins for y in (one.fitted, one.fitted)],
            mode="lines",
            name="fit that never rises",
            line={"color": INK, "width": 1.75},
            hoverinfo="skip",
        )
    )
    for name in names:
        own = [one for one in bins if one.policy == name]
        figure.add_trace(_best(name, own, looks[name], most=18 if narrow else 40))
    target = {"color": MUTED, "width": 1.25, "dash": "dash"}
    figure.add_shape("line", y0=found.target, y1=found.target, line=target)
    figure.add_annotation(
        text=f"asked of delegated work: {amount(found.target)}",
        x=1, xref="paper", xanchor="right", y=found.target, yanchor="bottom",
        font={"size": 11, "color": MUTED}, bgcolor=PAPER, borderpad=1, yshift=1,
    )  # fmt: skip
    figure.update_xaxes(title="degree of autonomy", range=[-0.01, 1.01], tickfont={"size": 11})
    figure.update_yaxes(
        title=None if narrow else "best mean quality",
        range=[-0.02, 1.06], tickvals=[0, 0.25, 0.5, 0.75, 1],
    )  # fmt: skip
    finish(figure, height=300 if narrow else 320)
    rows = len(names) + 1 if narrow else 1
    return legend_on_top(figure, rows=rows)


def _band(bins: Sequence[Bin], half: float, style: Style) -> Trace:
    """A box from the lower to the upper end over the width of each degree."""
    x: list[float | None] = []
    y: list[float | None] = []
    for one in bins:
        low, high = one.quality.low, one.quality.high
        if low is not None and high is not None:
            left, right = one.demand - half, one.demand + half
            x += [left, right, right, left, left, None]
            y += [low, low, high, high, low, None]
    return scatter(
        x=x, y=y, mode="lines", fill="toself", fillcolor=style.band, line={"width": 0},
        hoverinfo="skip", showlegend=False,
    )  # fmt: skip


def _best(name: str, bins: Sequence[Bin], style: Style, *, most: int) -> Trace:
    return scatter(
        x=[one.demand for one in bins],
        y=[one.quality.value for one in bins],
        mode="markers",
        name=plain_text(shortened(name, most)),
        marker={"size": 8, "symbol": style.symbol, "color": style.colour},
        customdata=[
            f"<b>{plain_text(name)}</b>, autonomy {amount(one.demand)}: at most"
            f" {amount(one.budget)} interventions per episode"
            f"<br>mean quality {plain_text(interval_text(one.quality, digits=3))}"
            for one in bins
        ],
        hovertemplate="%{customdata}<extra></extra>",
        cliponaxis=False,
    )
