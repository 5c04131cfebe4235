"""How far the robot is from each of its limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from robo_eval_robot.config import RobotConfig
from robo_eval_robot.guard import Guard
from robo_eval_robot.guard_checks import Code
from robo_eval_robot.guard_state import GuardState


@dataclass(frozen=True, slots=True)
class Gauge:
    """One limit and what is measured."""

    name: str
    """`cart_x velocity`, `state_age`."""
    value: float | None
    """None if it is not measured, or not at this time."""
    low: float
    high: float
    unit: str

    @property
    def is_within(self) -> bool:
        """Whether the limit holds; also if nothing is measured."""
        return self.value is None or self.low <= self.value <= self.high


def gauges(robot: RobotConfig, guard: Guard, now: float) -> Iterator[Gauge]:
    """Every limit of a robot, in a fixed order.

    Args:
        robot: The robot.
        guard: What guards it.
        now: Monotonic time, s.
    """
    for name, limits in robot.limited.items():
        position = guard.joints.positions.get(name)
        yield Gauge(f"{name} position", position, limits.low, limits.high, limits.unit)
        for code, value, limit, unit in guard.joints.magnitudes(name):
            yield Gauge(f"{name} {code}", value, -limit, limit, unit)
    for point in guard.points:
        for name, (code, low, high, unit) in point.quantities.items():
            label = f"{code} {name}" if code is Code.WORKSPACE else str(code)
            yield Gauge(label, point.values.get(name), low, high, unit)
    yield from _ages(robot, guard, now)


def _ages(robot: RobotConfig, guard: Guard, now: float) -> Iterator[Gauge]:
    config, peers = robot.guard, guard.peers
    yield Gauge(Code.STATE_AGE, guard.joints.age_s(now), 0.0, config.state_age_s, "s")
    if config.driver_heartbeat_s is not None:
        age_s = peers.driver_age_s(now)
        yield Gauge(Code.DRIVER_HEARTBEAT, age_s, 0.0, config.driver_heartbeat_s, "s")
    acts = guard.state is GuardState.RUNNING
    ages_s = peers.policy_ages_s(now)
    for code, limit_s in (
        (Code.COMMAND_AGE, config.command_age_s),
        (Code.POLICY_HEARTBEAT, config.policy_heartbeat_s),
    ):
        yield Gauge(code, ages_s[code] if acts else None, 0.0, limit_s, "s")
