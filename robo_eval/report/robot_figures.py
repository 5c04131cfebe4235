"""What the charts of a robot, or its twin, look like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from robo_eval.core.units import WITHOUT_INTERVAL
from robo_eval.metrics.safety import RATE_UNIT
from robo_eval.page.figure import Figure
from robo_eval.page.figures import styles
from robo_eval.page.forest import Scale, forest
from robo_eval.page.table import Group, rows_of
from robo_eval.report.condition_figures import condition_scatter
from robo_eval.report.robot_model import Robot
from robo_eval.report.robot_work_figures import control_quality, hourly_cost


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
        "control": _drawn(control_quality, [one for one in robots if _has_samples(one)], policies),
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
        for one in robot.numbers.where(group=group, at=None)
        if one.estimate.unit == "ratio" and one.estimate.method not in WITHOUT_INTERVAL
    ]
    return Group(title=robot.policy, rows=rows_of(shares))


def _rates(robot: Robot) -> Group:
    rates = [one for one in robot.numbers if one.estimate.unit == RATE_UNIT]
    return Group(title=robot.title, rows=rows_of(rates))


def _faults(robot: Robot) -> Group:
    rows = rows_of(robot.numbers.where(group="Recovery from faults"))
    return Group(title=robot.title, rows=[row for row in rows if row.estimate.value is not None])


def _has_samples(robot: Robot) -> bool:
    return any(measure.values for task in robot.found.control for measure in task.measures)


def _has_costs(robot: Robot) -> bool:
    found = robot.found.throughput
    return found is not None and found.per_hour.value is not None and found.cost_per_hour > 0.0
