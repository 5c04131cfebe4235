"""How the guard's state and its incidents look as ROS messages."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

from robo_eval_robot.config import RobotConfig
from robo_eval_robot.guard import Guard
from robo_eval_robot.guard_checks import Violation
from robo_eval_robot.guard_gauges import Gauge, gauges
from robo_eval_robot.guard_state import GuardState
from robo_eval_robot.topics import time_of

_LEVELS: Final = {
    GuardState.INIT: DiagnosticStatus.ERROR,
    GuardState.READY: DiagnosticStatus.OK,
    GuardState.RUNNING: DiagnosticStatus.OK,
    GuardState.WITHHELD: DiagnosticStatus.WARN,
    GuardState.PROTECTIVE_STOP: DiagnosticStatus.ERROR,
    GuardState.ESTOP: DiagnosticStatus.ERROR,
}


def state_message(robot: RobotConfig, guard: Guard, *, last_stop_ns: int | None, now: float) -> Any:  # noqa: ANN401 - a ROS message
    """What `safety/state` says: first the guard, then one status a limit.

    Args:
        robot: The robot.
        guard: What guards it.
        last_stop_ns: Wall clock of the last stop, ns since 1970; None if there was none.
        now: Monotonic time, s.
    """
    limits = (_limit_status(gauge, robot.name) for gauge in gauges(robot, guard, now))
    return _array([_guard_status(guard, robot.name, last_stop_ns, now), *limits])


def incident_message(robot: RobotConfig, guard: Guard, violation: Violation) -> Any:  # noqa: ANN401
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
) -> Any:  # noqa: ANN401 - a ROS message
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


def _guard_status(guard: Guard, hardware: str, last_stop_ns: int | None, now: float) -> Any:  # noqa: ANN401
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


def _limit_status(gauge: Gauge, hardware: str) -> Any:  # noqa: ANN401 - a ROS message
    both = gauge.low in {0.0, -gauge.high}
    values = {
        "value": _number(gauge.value),
        "limit": _number(gauge.high) if both else f"{gauge.low:.6g}..{gauge.high:.6g}",
        "unit": gauge.unit,
    }
    level = DiagnosticStatus.OK if gauge.is_within else DiagnosticStatus.ERROR
    text = "" if gauge.value is not None else "not measured"
    return _status(level, gauge.name, text, hardware, values)


def _array(statuses: list[Any]) -> Any:  # noqa: ANN401 - a ROS message
    message = DiagnosticArray(status=statuses)
    message.header.stamp = time_of(time.time_ns())
    return message


def _status(level: bytes, name: str, message: str, hardware: str, values: Mapping[str, str]) -> Any:  # noqa: ANN401 - a ROS message
    return DiagnosticStatus(
        level=level,
        name=str(name),
        message=str(message),
        hardware_id=hardware,
        values=[KeyValue(key=key, value=value) for key, value in values.items()],
    )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
