"""Whether a policy's request may go to the robot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from robo_eval_robot.config import RobotConfig

_S_PER_NS: Final = 1e-9
_ROUNDING: Final = 1.0 + 1e-9
"""A change of exactly the limit, computed from binary fractions, is not beyond it."""


class Code(StrEnum):
    """What a guard stops for."""

    OPERATOR_STOP = "operator_stop"
    ESTOP = "estop"
    ESTOP_LOST = "estop_lost"
    COMMAND_JOINTS = "command_joints"
    COMMAND_LENGTH = "command_length"
    COMMAND_NOT_FINITE = "command_not_finite"
    COMMAND_POSITION = "command_position"
    COMMAND_VELOCITY = "command_velocity"
    COMMAND_EFFORT = "command_effort"
    COMMAND_ACCELERATION = "command_acceleration"
    COMMAND_STEP = "command_step"
    COMMAND_AGE = "command_age"
    COMMAND_FUTURE = "command_future"
    POLICY_HEARTBEAT = "policy_heartbeat"
    DRIVER_HEARTBEAT = "driver_heartbeat"
    STATE_JOINTS = "state_joints"
    STATE_LENGTH = "state_length"
    STATE_NOT_FINITE = "state_not_finite"
    STATE_CLOCK = "state_clock"
    STATE_AGE = "state_age"
    POSITION = "position"
    VELOCITY = "velocity"
    ACCELERATION = "acceleration"
    EFFORT = "effort"
    WORKSPACE = "workspace"
    WORKSPACE_AGE = "workspace_age"
    FORCE = "force"
    TORQUE = "torque"
    WRENCH_AGE = "wrench_age"
    SECOND_PUBLISHER = "second_publisher"
    POWER_OFF = "power_off"
    NO_STANDSTILL = "no_standstill"
    GUARD_OVERRUN = "guard_overrun"
    GUARD_SHUTDOWN = "guard_shutdown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """Something that does not hold, with the numbers that say so."""

    code: Code
    message: str
    """One sentence for people."""
    value: float | None = None
    """What was found; None if nothing was."""
    limit: float | None = None
    """What would have been allowed."""
    unit: str = ""
    joint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a policy asks for."""

    names: Sequence[str]
    """Joints, in any order."""
    values: Sequence[float]
    """One a joint: position, velocity or effort, as the controller takes it."""
    stamp_ns: int
    """Wall clock when it was asked, in ns since 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What becomes of a request."""

    command: tuple[float, ...] | None
    """To pass on, in the controller's order; None if the request is refused."""
    violations: tuple[Violation, ...] = ()
    """What to stop for."""
    clamped: bool = False
    """Whether a limit was passed on instead of what was asked."""


@dataclass(frozen=True, slots=True)
class _Window:
    """Between which numbers a joint's command may lie, and what it means to lie outside."""

    code: Code
    low: float
    high: float
    unit: str


class RequestCheck:
    """Judges requests one after the other, while the robot is enabled.

    Args:
        robot: The robot; every commanded joint has limits.
    """

    def __init__(self, robot: RobotConfig) -> None:
        self._joints = robot.commanded
        self._order = {name: number for number, name in enumerate(self._joints)}
        self._interface = robot.controller.interface
        self._guard = robot.guard
        self._period_s = 1.0 / robot.control_rate_hz
        self._last: tuple[float, ...] = ()
        self._last_stamp_ns: int | None = None
        self._ranges: list[_Window] = []
        self._accelerations: list[float] = []
        self._units: list[str] = []
        for name in self._joints:
            limits = robot.limits(name)
            assert limits is not None  # a commanded joint has limits, see RobotConfig
            force = "N" if limits.unit == "m" else "N m"
            window = {
                "position": _Window(Code.COMMAND_POSITION, limits.low, limits.high, limits.unit),
                "velocity": _Window(
                    Code.COMMAND_VELOCITY, -limits.velocity, limits.velocity, f"{limits.unit}/s"
                ),
                "effort": _Window(Code.COMMAND_EFFORT, -limits.effort, limits.effort, force),
            }[self._interface]
            self._ranges.append(window)
            self._accelerations.append(limits.acceleration)
            self._units.append(limits.unit)

    def begin(self, start: Sequence[float]) -> None:
        """Forget earlier requests.

        Args:
            start: What the first request is compared with, in the controller's order: measured
                positions or velocities, or efforts of zero.
        """
        # From within the range, so that a clamped command always exists.
        self._last = tuple(
            min(max(value, window.low), window.high)
            for value, window in zip(start, self._ranges, strict=True)
        )
        self._last_stamp_ns = None

    def judge(self, request: Request, wall_ns: int) -> Judged:
        """Check a request, and remember it if it is passed on.

        Args:
            request: What was asked.
            wall_ns: Wall clock, ns since 1970.
        """
        broken = self._shape(request) or self._age(request, wall_ns)
        if broken is not None:
            return Judged(command=None, violations=(broken,))
        self._forget_stamp_ahead_of(wall_ns)
        if self._last_stamp_ns is not None and request.stamp_ns <= self._last_stamp_ns:
            # A duplicate, or one overtaken on its way: what came later counts.
            return Judged(command=None)
        asked = [0.0] * len(self._joints)
        for name, value in zip(request.names, request.values, strict=True):
            asked[self._order[name]] = float(value)
        command, excesses = self._limit(asked, request.stamp_ns)
        if excesses and self._guard.on_excess == "stop":
            return Judged(command=None, violations=tuple(excesses))
        self._last = command
        self._last_stamp_ns = request.stamp_ns
        return Judged(command=command, clamped=bool(excesses))

    def _forget_stamp_ahead_of(self, wall_ns: int) -> None:
        """A stamp the clock has not reached is of before the clock was set back.

        Compared with it every request would look overtaken, for as long as the clock was set back.
        """
        ahead_ns = (self._last_stamp_ns or 0) - wall_ns
        if ahead_ns * _S_PER_NS > self._guard.command_age_s:
            self._last_stamp_ns = None

    def _shape(self, request: Request) -> Violation | None:
        wanted = len(self._joints)
        if len(request.names) != wanted or set(request.names) != set(self._order):
            return Violation(
                code=Code.COMMAND_JOINTS,
                message=f"A request names {', '.join(request.names[:8]) or 'no joint'} and not"
                f" {', '.join(self._joints)}.",
                value=float(len(request.names)),
                limit=float(wanted),
                unit="joints",
            )
        if len(request.values) != wanted:
            return Violation(
                code=Code.COMMAND_LENGTH,
                message=f"A request holds {len(request.values)} numbers in its field"
                f" {self._interface} for {wanted} joints.",
                value=float(len(request.values)),
                limit=float(wanted),
                unit="numbers",
            )
        for name, value in zip(request.names, request.values, strict=True):
            if not math.isfinite(value):
                return Violation(
                    code=Code.COMMAND_NOT_FINITE,
                    message=f"A request asks {value} of {name}.",
                    value=float(value),
                    unit=self._ranges[self._order[name]].unit,
                    joint=name,
                )
        return None

    def _age(self, request: Request, wall_ns: int) -> Violation | None:
        age_s = (wall_ns - request.stamp_ns) * _S_PER_NS
        limit_s = self._guard.command_age_s
        if abs(age_s) <= limit_s:
            return None
        late = age_s > 0
        return Violation(
            code=Code.COMMAND_AGE if late else Code.COMMAND_FUTURE,
            message=f"A request is stamped {abs(age_s):.3f} s in the"
            f" {'past' if late else 'future'}.",
            value=abs(age_s),
            limit=limit_s,
            unit="s",
        )

    def _limit(
        self, asked: Sequence[float], stamp_ns: int
    ) -> tuple[tuple[float, ...], list[Violation]]:
        """The nearest command within all limits, and what was beyond which of them."""
        period_s = self._since_last_s(stamp_ns)
        command, excesses = [], []
        for number, value in enumerate(asked):
            allowed = value
            for window in self._windows(number, period_s):
                if not window.low <= value <= window.high:
                    excesses.append(_excess(self._joints[number], value, window))
                allowed = min(max(allowed, window.low), window.high)
            command.append(allowed)
        return tuple(command), excesses

    def _since_last_s(self, stamp_ns: int) -> float:
        if self._last_stamp_ns is None:
            return self._period_s
        # A pause is no licence for a jump.
        return min((stamp_ns - self._last_stamp_ns) * _S_PER_NS, self._guard.command_age_s)

    def _windows(self, number: int, period_s: float) -> list[_Window]:
        """Limits of a joint's next command; each holds the last one, so all overlap."""
        windows = [self._ranges[number]]
        last, unit = self._last[number], self._ranges[number].unit
        if self._interface == "velocity":
            change = self._accelerations[number] * period_s * _ROUNDING
            windows.append(_Window(Code.COMMAND_ACCELERATION, last - change, last + change, unit))
        if self._guard.command_step is not None:
            change = self._guard.command_step * _ROUNDING
            windows.append(_Window(Code.COMMAND_STEP, last - change, last + change, unit))
        return windows


def _excess(joint: str, value: float, window: _Window) -> Violation:
    limit = window.high if value > window.high else window.low
    return Violation(
        code=window.code,
        message=f"A request asks {value:.6g} {window.unit} of {joint}, beyond {limit:.6g}"
        f" ({window.code.removeprefix('command_')}).",
        value=value,
        limit=limit,
        unit=window.unit,
        joint=joint,
    )
