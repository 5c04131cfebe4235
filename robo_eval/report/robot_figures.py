"""What the charts of a robot, or its twin, look like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from robo_eval.core.units import WITHOUT_INTERVAL
from robo_eval.metrics.safety import RATE_UNIT
from robo_eval.page.figure import Figure, Trace, scatter
from robo_eval.page.figures import error_bars, finish, styles
from robo_eval.page.forest import Scale, forest
from robo_eval.page.panels import (
    Panels,
    name_panel,
    name_room_over_rows,
    panel_figure,
    side_by_side,
)
from robo_eval.page.table import Group, rows_of
from robo_eval.page.theme import FAINT, INK, MUTED, PAPER, Style
from robo_eval.page.words import count, interval_text, plain_text
from robo_eval.report.robot_work_figures import control_quality, hourly_cost, measures_of
from robo_eval.report.robots import Robot, RobotCondition

_MOST_BARS: Final = 12
"""Marks of a panel with interval bars; more would hide each other."""
_LABEL_WIDTH: Final = 0.042
_LABEL_HEIGHT: Final = 0.065
"""Size of a digit and of a line beside a mark, in units of a share on the smallest panel."""
_TOP: Final = 1.14


def robot_charts(
    robots: Sequence[Robot], policies: Sequence[str]
) -> dict[str, Callable[..., Figure]]:
    """What draws each chart of the robots that has something to show, by its name.

    Args:
        robots: Each policy on each physical side.
        policies: Order of the styles.
    """
    shown = {
        "robots": _forest(robots, policies, _shares, "share", "share"),
        "conditions": _drawn(
            condition_scatter, [one for one in robots if one.conditions], policies
        ),
        "incidents": _forest(robots, policies, _rates, "rate", "incidents per 100 h"),
        "recovery": _forest(robots, policies, _faults, "share", "share recovered by itself"),
        "control": _drawn(control_quality, [one for one in robots if measures_of(one)], policies),
        "cost": _drawn(hourly_cost, [one for one in robots if _has_costs(one)], policies),
    }
    return {name: draw for name, draw in shown.items() if draw is not None}


def _drawn(
    draw: Callable[..., Figure], robots: Sequence[Robot], policies: Sequence[str]
) -> Callable[..., Figure] | None:
    return partial(draw, robots, policies) if robots else None


def _forest(
    robots: Sequence[Robot],
    policies: Sequence[str],
    group_of: Callable[[Robot], Group],
    scale: Scale,
    title: str,
) -> Callable[..., Figure] | None:
    style = styles(policies)
    found = [(group_of(robot), style[robot.policy]) for robot in robots]
    found = [(group, look) for group, look in found if group.measured]
    if not found:
        return None
    groups, looks = zip(*found, strict=True)
    return partial(forest, groups, looks, scale=scale, title=title)


def _shares(robot: Robot) -> Group:
    """Filled is the robot, hollow the simulator, a diamond their agreement."""
    shares = [
        one
        for group in ("Reliability", "Agreement with simulation")
        for one in robot.found.numbers.where(group=group, at=None)
        if one.estimate.unit == "ratio" and one.estimate.method not in WITHOUT_INTERVAL
    ]
    return Group(title=robot.policy, rows=rows_of(shares))


def _rates(robot: Robot) -> Group:
    rates = [one for one in robot.found.numbers if one.estimate.unit == RATE_UNIT]
    return Group(title=robot.title, rows=rows_of(rates))


def _faults(robot: Robot) -> Group:
    rows = rows_of(robot.found.numbers.where(group="Recovery from faults"))
    return Group(title=robot.title, rows=[row for row in rows if row.estimate.value is not None])


def _has_costs(robot: Robot) -> bool:
    per_hour, cost = (robot.found.of(name).value for name in ("tasks_per_hour", "cost_per_hour"))
    return per_hour is not None and bool(cost)


# Conditions --------------------------------------------------------------------------------------


def condition_scatter(
    robots: Sequence[Robot], policies: Sequence[str], *, narrow: bool = False
) -> Figure:
    """Physical against simulated success, one numbered mark for each condition.

    Above the diagonal the robot did better than simulation had told, below it worse. Conditions
    with equal rates share a mark, which carries all their numbers.

    Args:
        robots: Those with conditions.
        policies: Order of the styles.
        narrow: Whether it is for a phone.
    """
    panels = Panels(
        count=len(robots),
        # A panel as wide as the page would flatten the diagonal.
        columns=1 if narrow else max(3, side_by_side(len(robots), narrow=False)),
        height=250 if narrow else 270,
        gap=84 if narrow else 80,
        bottom=52,
    )
    figure = panel_figure(panels, spacing=0.07, shared="")
    style = styles(policies)
    for index, robot in enumerate(robots):
        figure.add_trace(_diagonal(), panel=index)
        figure.add_trace(
            _condition_marks(robot.conditions, style[robot.policy], robot.body), panel=index
        )
        colour = style[robot.policy].colour
        most = name_room_over_rows(panels, narrow=narrow)
        name_panel(figure, index, robot.title, colour, most=most)
        figure.update_xaxes(title="success in simulation", panel=index)
        figure.update_yaxes(title=f"success on the {robot.body}", panel=index)
    ticks: dict[str, Any] = {
        "tickvals": [0, 0.5, 1],
        "ticktext": ["0", "0.5", "1"],
        "tickfont": {"size": 11},
    }
    figure.update_xaxes(range=[-0.06, 1.06], showgrid=False, **ticks)
    # More room above: names of marks must not reach that of the panel.
    figure.update_yaxes(range=[-0.06, _TOP], showgrid=False, **ticks)
    return finish(figure, height=panels.total, margin=panels.margins())


def _diagonal() -> Trace:
    return scatter(
        x=[0, 1],
        y=[0, 1],
        mode="lines",
        line={"color": MUTED, "width": 1.25, "dash": "dash"},
        hoverinfo="skip",
    )


def _condition_marks(conditions: Sequence[RobotCondition], style: Style, body: str) -> Trace:
    together: dict[tuple[float, float], list[RobotCondition]] = {}
    for condition in conditions:
        sim, physical = condition.rates.sim.value, condition.rates.physical.value
        assert sim is not None  # a condition both sides met has both rates
        assert physical is not None
        together.setdefault((sim, physical), []).append(condition)
    points = list(together)
    names = [_numbers_text(together[point]) for point in points]
    labels, sides = _placed(points, names)
    has_bars = len(points) <= _MOST_BARS
    # Equal rates of different n have different intervals: the widest is drawn.
    widest = [max(together[point], key=_width) for point in points]
    bars = {
        name: error_bars(rates, FAINT) | {"thickness": 1}
        for name, rates in (
            ("error_x", [it.rates.sim for it in widest]),
            ("error_y", [it.rates.physical for it in widest]),
        )
    }
    return scatter(
        x=[x for x, _ in points],
        y=[y for _, y in points],
        mode="markers+text",
        text=labels,
        textposition=sides,
        textfont={"size": 11, "color": INK},
        marker={
            "size": 10,
            "symbol": style.symbol,
            "color": style.colour,
            "line": {"width": 1.5, "color": PAPER},
        },
        cliponaxis=False,
        customdata=["<br>".join(_condition_words(it, body) for it in together[p]) for p in points],
        hovertemplate="%{customdata}<extra></extra>",
        **(bars if has_bars else {}),
    )


def _width(condition: RobotCondition) -> float:
    rates = condition.rates
    return sum((rate.high or 0.0) - (rate.low or 0.0) for rate in (rates.sim, rates.physical))


def _numbers_text(conditions: Sequence[RobotCondition], most: int = 4) -> str:
    numbers = [str(it.number) for it in conditions]
    more = len(numbers) - most
    return ",".join(numbers[:most]) + (f" +{more}" if more > 0 else "")


def _condition_words(condition: RobotCondition, body: str) -> str:
    rates = condition.rates
    n = (
        f"{count(rates.physical.n, 'pair')}"
        if rates.is_paired
        else f"{rates.physical.n} on the {body}, {count(rates.sim.n, 'simulated episode')}"
    )
    return (
        f"<b>{condition.number}: {plain_text(condition.label)}</b>, {n}"
        f"<br>{body} {plain_text(interval_text(rates.physical))}"
        f"<br>simulated {plain_text(interval_text(rates.sim))}"
    )


def _placed(
    points: Sequence[tuple[float, float]], names: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Where the name of each mark stands, so that none lies on another or on a mark.

    Returns:
        The names, empty where there is no room, and plotly's word for the place of each.
    """
    taken = [(x - 0.03, x + 0.03, y - 0.03, y + 0.03) for x, y in points]
    labels, sides = [], []
    for (x, y), name in zip(points, names, strict=True):
        width = _LABEL_WIDTH * len(name)
        across = {"right": x + 0.025, "left": x - 0.025 - width, "center": x - width / 2}
        along = {
            "bottom": y - 0.03 - _LABEL_HEIGHT,
            "top": y + 0.03,
            "middle": y - _LABEL_HEIGHT / 2,
        }
        boxes = {
            f"{vertical} {horizontal}": (left, left + width, low, low + _LABEL_HEIGHT)
            for vertical, low in along.items()
            for horizontal, left in across.items()
            if (vertical, horizontal) != ("middle", "center")
        }
        free = [
            side
            for side, box in boxes.items()
            if box[0] > -0.06
            and box[1] < 1.1
            and box[2] > -0.12
            and box[3] < _TOP
            and not _hits(box, taken)
        ]
        labels.append(name if free else "")
        sides.append(free[0] if free else "top right")
        if free:
            taken.append(boxes[free[0]])
    return labels, sides


Box = tuple[float, float, float, float]
"""Left, right, low, high."""


def _hits(box: Box, others: Sequence[Box]) -> bool:
    left, right, low, high = box
    return any(left < b and a < right and low < d and c < high for a, b, c, d in others)
