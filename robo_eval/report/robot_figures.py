"""What the charts of a robot, or its twin, look like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from robo_eval.page.figure import Figure
from robo_eval.page.figures import styles
from robo_eval.page.forest import Scale, forest
from robo_eval.page.table import Group, Row
from robo_eval.page.words import count, spaced
from robo_eval.report.condition_figures import condition_scatter
from robo_eval.report.robot_groups import SEVERITIES, rate_basis
from robo_eval.report.robot_model import Robot
from robo_eval.report.robot_work_figures import control_quality, hourly_cost

ALL_FAULTS: Final = "all faults"


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
    return Group(title=robot.policy, rows=[row for row in robot.numbers if not row.is_signed])


def _rates(robot: Robot) -> Group:
    rows = [
        Row(name=SEVERITIES[severity], estimate=rate, rests_on=rate_basis(robot.found, severity))
        for severity, rate in robot.found.safety.rates.items()
    ]
    return Group(title=robot.title, rows=rows)


def _faults(robot: Robot) -> Group:
    found = {ALL_FAULTS: robot.found.recovery} | {
        spaced(name): estimate for name, estimate in robot.found.faults.items()
    }
    rows = [
        Row(name=name, estimate=estimate, rests_on=count(estimate.n, "recoverable fault"))
        for name, estimate in found.items()
        if estimate.value is not None
    ]
    return Group(title=robot.title, rows=rows)


def _has_samples(robot: Robot) -> bool:
    return any(measure.values for task in robot.found.control for measure in task.measures)


def _has_costs(robot: Robot) -> bool:
    found = robot.found.throughput
    return found is not None and found.per_hour.value is not None and found.cost_per_hour > 0.0
