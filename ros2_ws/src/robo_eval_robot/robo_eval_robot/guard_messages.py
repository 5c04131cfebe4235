"""How the guard's state, its limits and its incidents look as ROS messages."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

from robo_eval_robot.config import RobotConfig
from robo_eval_robot.guard import Guard, GuardState
from robo_eval_robot.guard_checks import Code, Violation
from robo_eval_robot.topics import time_of

_LEVELS: Final = {
    GuardState.INIT: DiagnosticStatus.ERROR,
    GuardState.READY: DiagnosticStatus.OK,
    GuardState.RUNNING: DiagnosticStatus.OK,
    GuardState.WITHHELD: DiagnosticStatus.WARN,
    GuardState.PROTECTIVE_STOP: DiagnosticStatus.ERROR,
    GuardState.ESTOP: DiagnosticStatus.ERROR,
}


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


def state_message(robot: RobotConfig, guard: Guard, *, last_stop_ns: int | None, now: float) -> Any:
    """What `safety/state` says: first the guard, then one status a limit.

    Args:
        robot: The robot.
        guard: What guards it.
        last_stop_ns: Wall clock of the last stop, ns since 1970; None if there was none.
        now: Monotonic time, s.
    """
    limits = (_limit_status(gauge, robot.name) for gauge in gauges(robot, guard, now))
    return _array([_guard_status(guard, robot.name, last_stop_ns, now), *limits])


def incident_message(robot: RobotConfig, guard: Guard, violation: Violation) -> Any:
    """What `safety/incidents` says of a trip.

    Args:
        robot: The robot.
        guard: What guards it, right after the trip.
        violation: Why.
    """
    values = {
        "value": _number(violation.value),
        "limit": _number(violation.limit),
        "unit": violation.unit,
        "joint": violation.joint,
        "episode_id": guard.stopped_episode_id,
        "stop_category": str(robot.guard.stop.category),
        "suggested_severity": "near_miss",
    }
    return _array(
        [_status(DiagnosticStatus.ERROR, violation.code, violation.message, robot.name, values)]
    )


def health_message(
    robot: RobotConfig, guard: Guard, cycle_ms: Iterable[float], scheduling: str
) -> Any:
    """What `/diagnostics` says of the guard.

    Args:
        robot: The robot.
        guard: What guards it.
        cycle_ms: Periods of the last cycles, ms.
        scheduling: How its process is scheduled.
    """
    periods = sorted(cycle_ms)
    values = {
        "cycle_p50_ms": _number(periods[len(periods) // 2] if periods else None),
        "cycle_max_ms": _number(periods[-1] if periods else None),
        "requests": str(guard.counts.requests),
        "refused": str(guard.counts.refused),
        "scheduling": scheduling,
    }
    name = f"{robot.namespace}/guard"
    return _array([_status(_LEVELS[guard.state], name, guard.state, robot.name, values)])


def _guard_status(guard: Guard, hardware: str, last_stop_ns: int | None, now: float) -> Any:
    counts = guard.counts
    waits = guard.persisting(now) if guard.state is GuardState.INIT else []
    values = {
        "state": str(guard.state),
        "cause": str(guard.causes[0]) if guard.causes else "",
        "causes": ",".join(guard.causes),
        "waits_for": " ".join(dict.fromkeys(each.message for each in waits)),
        "requests": str(counts.requests),
        "passed": str(counts.passed),
        "clamped": str(counts.clamped),
        "refused": str(counts.refused),
        "missed": str(guard.peers.requests.missed),
        "last_stop_ns": "" if last_stop_ns is None else str(last_stop_ns),
        "state_stamp_ns": str(guard.joints.stamp_ns),
    }
    return _status(_LEVELS[guard.state], "guard", guard.state, hardware, values)


def _limit_status(gauge: Gauge, hardware: str) -> Any:
    both = gauge.low in {0.0, -gauge.high}
    values = {
        "value": _number(gauge.value),
        "limit": _number(gauge.high) if both else f"{gauge.low:.6g}..{gauge.high:.6g}",
        "unit": gauge.unit,
    }
    level = DiagnosticStatus.OK if gauge.is_within else DiagnosticStatus.ERROR
    text = "" if gauge.value is not None else "not measured"
    return _status(level, gauge.name, text, hardware, values)


def _array(statuses: list[Any]) -> Any:
    message = DiagnosticArray(status=statuses)
    message.header.stamp = time_of(time.time_ns())
    return message


def _status(level: bytes, name: str, message: str, hardware: str, values: Mapping[str, str]) -> Any:
    return DiagnosticStatus(
        level=level,
        name=str(name),
        message=str(message),
        hardware_id=hardware,
        values=[KeyValue(key=key, value=value) for key, value in values.items()],
    )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
