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
_ROUNDING_OF_VALUE: Final = 1e-12
_JITTER: Final = 1.0
"""Control periods that a request may be early by at first, with none that was late."""
_MOST_JITTER: Final = 2.0
"""Control periods that requests may be early by, after others that were late by as much."""
_LEAST_S: Final = 1e-6
"""Shortest time that rates are told by."""
_HALVINGS: Final = 40
"""How exactly it is found how far a joint may go: to a millionth of a millionth."""


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
    COMMAND_JERK = "command_jerk"
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
    OTHER_AUTHOR = "other_author"
    MODE = "mode"
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

    def __post_init__(self) -> None:
        # Names and words of others are part of it, and half a character cannot be sent.
        text = self.message.encode(errors="replace").decode()
        object.__setattr__(self, "message", text)


def too_long(code: Code, message: str, seconds: float | None, limit_s: float) -> Violation:
    """Something that is longer ago than it may be; None if it never was."""
    return Violation(code=code, message=message, value=seconds, limit=limit_s, unit="s")


def counted(code: Code, message: str, count: int, limit: int, unit: str) -> Violation:
    """Something of which there is another number than there should be."""
    return Violation(code=code, message=message, value=float(count), limit=float(limit), unit=unit)


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
    origin: float = 0.0
    per: float = 1.0
    """A command as a rate, as it is told: its distance from the origin, divided by this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InForce:
    """The command that the controller acts on."""

    values: Sequence[float]
    """In the controller's order and the unit of its interface."""
    rates: Sequence[Sequence[float]]
    """How fast each changes, and how fast that does; per second."""
    at: float
    """When it was passed on; monotonic time, s."""


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
        self.last = InForce(values=(), rates=(), at=0.0)
        """What was passed on last."""
        self.is_new = True
        """Whether nothing was since it began."""
        self._last_stamp_ns: int | None = None
        self._spare_s = self._late_s = self._pace_s = 0.0
        self._ranges: list[_Window] = []
        self._rates: list[list[tuple[Code, float, str]]] = []
        self._limits = [robot.limited[name] for name in self._joints]
        for limits in self._limits:
            unit, force = limits.unit, limits.force_unit
            rates = [
                (Code.COMMAND_VELOCITY, limits.velocity, f"{unit}/s"),
                (Code.COMMAND_ACCELERATION, limits.acceleration, f"{unit}/s^2"),
            ]
            if limits.jerk is not None:
                rates.append((Code.COMMAND_JERK, limits.jerk, f"{unit}/s^3"))
            window, known = {
                "position": (_Window(Code.COMMAND_POSITION, limits.low, limits.high, unit), 0),
                "velocity": (_Window(rates[0][0], -rates[0][1], rates[0][1], rates[0][2]), 1),
                "effort": (_Window(Code.COMMAND_EFFORT, -limits.effort, limits.effort, force), 3),
            }[self._interface]
            self._ranges.append(window)
            self._rates.append(rates[known:])

    def begin(self, start: Sequence[float], velocities: Sequence[float], now: float) -> None:
        """Forget earlier requests.

        Args:
            start: What the first request is compared with, in the controller's order: measured
                positions or velocities, or efforts of zero.
            velocities: How fast the joints move, m/s or rad/s.
            now: Monotonic time, s.
        """
        # From within the range, so that a clamped command always exists.
        values = tuple(
            min(max(value, window.low), window.high)
            for value, window in zip(start, self._ranges, strict=True)
        )
        is_position = self._interface == "position"
        rates = tuple((speed if is_position else 0.0, 0.0) for speed in velocities)
        self.last = InForce(values=values, rates=rates, at=now)
        self.is_new = True
        self._last_stamp_ns, self._pace_s = None, self._period_s
        self._late_s = _JITTER * self._period_s
        self._spare_s = _MOST_JITTER * self._period_s  # the first may come at once

    def judge(self, request: Request, wall_ns: int, now: float) -> Judged:
        """Check a request, and remember it if it is passed on.

        Args:
            request: What was asked.
            wall_ns: Wall clock, ns since 1970.
            now: Monotonic time, s.
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
        claimed_s = self._claimed_s(request.stamp_ns)
        waited_s = claimed_s if self._last_stamp_ns is not None else now - self.last.at
        passed_s = now - self.last.at + self._spare_s
        # A control loop that was late is early next, and means its pace or its period.
        for told_s in (self._pace_s, self._period_s, claimed_s):
            if told_s > claimed_s + self._late_s:
                continue
            elapsed_s = max(min(told_s, passed_s), _LEAST_S)
            command, excesses = self._limit(asked, elapsed_s)
            if not excesses:
                break
        if excesses and (command is None or self._guard.on_excess == "stop"):
            return Judged(command=None, violations=tuple(excesses))
        assert command is not None
        rates = [self._changes(number, new, elapsed_s) for number, new in enumerate(command)]
        self.is_new = False
        self.last = InForce(values=command, rates=rates, at=now)
        self._last_stamp_ns = request.stamp_ns
        most_s = _MOST_JITTER * self._period_s
        self._spare_s = min(max(passed_s - elapsed_s, 0.0), most_s)
        self._late_s = min(max(self._late_s + waited_s - elapsed_s, 0.0), most_s)
        self._pace_s = elapsed_s
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
            named = ", ".join(f"{name:.80}" for name in request.names[:8]) or "no joint"
            text = f"A request names {named} and not {', '.join(self._joints)}."
            return counted(Code.COMMAND_JOINTS, text, len(request.names), wanted, "joints")
        if (count := len(request.values)) != wanted:
            field = self._interface
            text = f"A request holds {count} numbers in its field {field} for {wanted} joints."
            return counted(Code.COMMAND_LENGTH, text, count, wanted, "numbers")
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
        text = f"A request is stamped {abs(age_s):.3f} s in the {'past' if late else 'future'}."
        code = Code.COMMAND_AGE if late else Code.COMMAND_FUTURE
        return too_long(code, text, abs(age_s), limit_s)

    def _claimed_s(self, stamp_ns: int) -> float:
        """How long ago the last request was made, by the stamps of both."""
        if self._last_stamp_ns is None:
            return self._period_s
        # A pause is no licence for a jump.
        return min((stamp_ns - self._last_stamp_ns) * _S_PER_NS, self._guard.command_age_s)

    def _limit(
        self, asked: Sequence[float], elapsed_s: float
    ) -> tuple[tuple[float, ...] | None, list[Violation]]:
        """The nearest command within all limits, if there is one, and what was beyond which."""
        command, excesses, exists = [], [], True
        for number, value in enumerate(asked):
            windows = self._windows(number, elapsed_s)
            if self._interface == "position":
                windows.append(self._stoppable(number, value, windows, elapsed_s))
            excesses += [
                _excess(self._joints[number], value, window)
                for window in windows
                if not window.low <= value <= window.high
            ]
            low = max(window.low for window in windows)
            high = min(window.high for window in windows)
            exists = exists and low <= high + _ROUNDING_OF_VALUE
            command.append(min(max(value, low), high))
        return (tuple(command) if exists else None), excesses

    def _windows(self, number: int, elapsed_s: float) -> list[_Window]:
        """Limits of a joint's next command: its range, its step, and each of its rates."""
        windows = [self._ranges[number]]
        last, unit = self.last.values[number], self._ranges[number].unit
        if self._guard.command_step is not None:
            change = self._guard.command_step * _ROUNDING
            windows.append(_Window(Code.COMMAND_STEP, last - change, last + change, unit))
        told = self._interface == "position"  # as a rate: 50 rad/s says more than 0.05 rad
        goes_on = last  # where it would be if the rates so far went on
        for order, (code, limit, rate_unit) in enumerate(self._rates[number], 1):
            per = elapsed_s**order
            change = limit * per * _ROUNDING + _ROUNDING_OF_VALUE
            origin = (goes_on, per) if told else (0.0, 1.0)
            of = rate_unit if told else unit
            windows.append(_Window(code, goes_on - change, goes_on + change, of, *origin))
            if order < len(self._rates[number]):
                goes_on += self.last.rates[number][order - 1] * per
        return windows

    def _stoppable(
        self, number: int, asked: float, windows: Sequence[_Window], elapsed_s: float
    ) -> _Window:
        """From where a stop still ends before the end of the joint's range."""
        low, high = max(each.low for each in windows), min(each.high for each in windows)
        place, bounds = min(max(asked, low), high), [-math.inf, math.inf]
        for side, (sign, inner) in enumerate(((-1.0, high), (1.0, low))):
            if self._overshoots(number, place, sign, elapsed_s):
                good, bad = inner, place
                for _ in range(_HALVINGS):
                    middle = 0.5 * (good + bad)
                    beyond = self._overshoots(number, middle, sign, elapsed_s)
                    good, bad = (good, middle) if beyond else (middle, bad)
                bounds[side] = good
        return _Window(Code.COMMAND_POSITION, bounds[0], bounds[1], self._ranges[number].unit)

    def _overshoots(self, number: int, value: float, sign: float, elapsed_s: float) -> bool:
        """Whether a stop from a command would end beyond the upper end, or with -1 the lower."""
        limits, period_s = self._limits[number], self._period_s
        rate, change = self._changes(number, value, elapsed_s)
        end = limits.high if sign > 0.0 else limits.low
        slowing, jerk = limits.slowing
        # What ends within one period needs no room.
        spare = 0.5 * period_s**2 * (slowing if jerk is None else min(slowing, jerk * period_s))
        return limits.stop_distance(sign * rate, -sign * change) > sign * (end - value) + spare

    def _changes(self, number: int, value: float, elapsed_s: float) -> tuple[float, float]:
        """How fast a joint's command changes, and how fast that does."""
        before = self.last.rates[number][0]
        rate = (value - self.last.values[number]) / elapsed_s
        return rate, (rate - before) / elapsed_s


def _excess(joint: str, value: float, window: _Window) -> Violation:
    limit = window.high if value > window.high else window.low
    value, limit = ((each - window.origin) / window.per for each in (value, limit))
    return Violation(
        code=window.code,
        message=f"A request asks {value:.6g} {window.unit} of {joint}, beyond {limit:.6g}"
        f" ({window.code.removeprefix('command_')}).",
        value=value,
        limit=limit,
        unit=window.unit,
        joint=joint,
    )
