"""Whether what is measured of the robot is within its limits, and fresh."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Final

from robo_eval_robot.config import RobotConfig
from robo_eval_robot.guard_checks import Code, Violation, counted, too_long

_S_PER_NS: Final = 1e-9
_HASTE: Final = 2.0
"""Times its limit that a joint may be thought to move at."""
_QUANTITY: Final = {
    Code.POSITION: "position of",
    Code.VELOCITY: "velocity of",
    Code.ACCELERATION: "acceleration of",
    Code.EFFORT: "effort of",
    Code.WORKSPACE: "workspace's",
    Code.FORCE: "measured",
    Code.TORQUE: "measured",
}


@dataclass(frozen=True, slots=True)
class JointSample:
    """One message of joint states; its fields are in the order of `sensor_msgs/JointState`."""

    names: Sequence[str]
    positions: Sequence[float]
    velocities: Sequence[float] = ()
    """Empty if they are not measured."""
    efforts: Sequence[float] = ()
    """Empty if they are not measured."""
    _: KW_ONLY
    stamp_ns: int


class Debounce:
    """Lets a violation pass once it was there a number of times in a row."""

    def __init__(self, samples: int) -> None:
        self._samples = samples
        self._counts: dict[tuple[Code, str], int] = {}

    def lasting(self, violations: Iterable[Violation]) -> tuple[Violation, ...]:
        """Those of a sample that were in all of the last samples."""
        found = tuple(violations)
        self._counts = {
            (each.code, each.joint): self._counts.get((each.code, each.joint), 0) + 1
            for each in found
        }
        return tuple(each for each in found if self._counts[each.code, each.joint] >= self._samples)


class SpeedChange:
    """How fast a velocity changes from one control period to the next.

    A stiff drive takes each step of its commands at once: from sample to sample that is any
    acceleration, and from the mean of a period to that of the next what was commanded.

    Args:
        period_s: Control period.
    """

    def __init__(self, period_s: float) -> None:
        self._period_ns = round(period_s / _S_PER_NS)
        self._seen: list[tuple[int, float]] = []

    def see(self, stamp_ns: int, velocity: float) -> float | None:
        """Take a sample.

        Args:
            stamp_ns: Its stamp; later than that of the last one.
            velocity: Measured, m/s or rad/s.

        Returns:
            Mean acceleration, m/s² or rad/s²; None before there is a period to compare with.
        """
        self._seen.append((stamp_ns, velocity))
        periods = [(stamp_ns - stamp) // self._period_ns for stamp, _ in self._seen]
        split = len(periods) - periods.count(0)
        # One at least: joint states may be rarer than commands.
        before = self._seen[max(split - max(periods.count(1), 1), 0) : split]
        after = self._seen[split:]
        self._seen = before + after
        if not before:
            return None
        elapsed_ns = _mean(stamp_ns - t for t, _ in before) - _mean(stamp_ns - t for t, _ in after)
        change = _mean(v for _, v in after) - _mean(v for _, v in before)
        return change / (max(elapsed_ns, self._period_ns) * _S_PER_NS)


class JointWatch:
    """Remembers the newest joint state and finds what is wrong with it.

    Args:
        robot: The robot; joints it does not name are ignored.
    """

    def __init__(self, robot: RobotConfig) -> None:
        self._commanded = robot.commanded
        self._topic = robot.topic(robot.state.joint_states)
        self._age_s = robot.guard.state_age_s
        self._limits = robot.limited
        self._debounce = Debounce(robot.guard.debounce)
        period_s = 1.0 / robot.control_rate_hz
        self._changes: defaultdict[str, SpeedChange] = defaultdict(lambda: SpeedChange(period_s))
        self.positions: dict[str, float] = {}
        """By joint, newest first measured ones; m or rad."""
        self.places: dict[str, float] = {}
        """Newest positions that the joints can have reached since they were seen before."""
        self._placed: dict[str, float] = {}
        self.velocities: dict[str, float] = {}
        """Measured, or by difference of positions; m/s or rad/s."""
        self.accelerations: dict[str, float] = {}
        self.efforts: dict[str, float] = {}
        self._measured: dict[str, float] = {}
        self._stamp_ns: int | None = None
        self._seen: float | None = None
        self._still: float | None = None
        self._wrong: tuple[Violation, ...] = ()

    def see(self, sample: JointSample, now: float) -> tuple[Violation, ...]:
        """Take a message.

        Args:
            sample: The message.
            now: Monotonic time, s.

        Returns:
            What to stop for.
        """
        where = {name: number for number, name in enumerate(sample.names) if name in self._limits}
        if not where:
            return ()  # of a gripper, say, that publishes on the same topic
        broken = self._broken(sample, where)
        if broken is not None:
            self._wrong = (broken,)
            return self._wrong
        if self._stamp_ns is not None and sample.stamp_ns <= self._stamp_ns:
            return self._not_later(sample, now)
        self._take(sample, where, now)
        self._wrong = tuple(self._excesses())
        return self._debounce.lasting(self._wrong)

    @property
    def stamp_ns(self) -> int:
        """Stamp of the newest joint state that was looked at; 0 before the first."""
        return self._stamp_ns or 0

    def is_fresh(self, now: float) -> bool:
        """Whether the newest joint state is recent enough to move by."""
        return self._seen is not None and now - self._seen <= self._age_s

    def age_s(self, now: float) -> float | None:
        """Seconds since the newest joint state; None if there was none."""
        return None if self._seen is None else now - self._seen

    def knows_velocity(self) -> bool:
        """Whether the velocity of every commanded joint is known."""
        return all(name in self.velocities for name in self._commanded)

    def persisting(self, now: float) -> tuple[Violation, ...]:
        """What is wrong at this moment, without debouncing.

        Args:
            now: Monotonic time, s.
        """
        if self._seen is None:
            text = f"No joint states have come on {self._topic} yet."
            return (*self._wrong, Violation(code=Code.STATE_AGE, message=text))
        if not self.is_fresh(now):
            return (*self._wrong, self._too_old(now))
        if not self.knows_velocity():
            text = "Velocities are not known before the second joint state."
            return (*self._wrong, Violation(code=Code.STATE_AGE, message=text))
        return self._wrong

    def stale(self, now: float) -> tuple[Violation, ...]:
        """The violation of a state that is too old, if it is.

        Args:
            now: Monotonic time, s.
        """
        return () if self.is_fresh(now) else (self._too_old(now),)

    def _too_old(self, now: float) -> Violation:
        age_s = self.age_s(now)
        if age_s is not None and self._still is not None and now - self._still <= self._age_s:
            text = f"Joint states come, but their stamps have stood still for {age_s:.3f} s."
            return too_long(Code.STATE_CLOCK, text, age_s, self._age_s)
        text = "No joint states have come."
        if age_s is not None:
            text = f"The newest joint state is {age_s:.3f} s old."
        return too_long(Code.STATE_AGE, text, age_s, self._age_s)

    def _broken(self, sample: JointSample, where: dict[str, int]) -> Violation | None:
        missing = [name for name in self._commanded if name not in where]
        if missing or len(set(sample.names)) < len(sample.names):
            return Violation(
                code=Code.STATE_JOINTS,
                message=f"A joint state lacks {missing[0]}."
                if missing
                else "A joint state names a joint twice.",
                value=float(len(where)),
                limit=float(len(self._limits)),
                unit="joints",
                joint=missing[0] if missing else "",
            )
        count = len(sample.names)
        for field in (sample.positions, sample.velocities, sample.efforts):
            if len(field) != count and (len(field) > 0 or field is sample.positions):
                text = f"A joint state holds {len(field)} numbers for {count} joints."
                return counted(Code.STATE_LENGTH, text, len(field), count, "numbers")
        return self._not_finite(sample, where)

    def _not_finite(self, sample: JointSample, where: dict[str, int]) -> Violation | None:
        fields = (
            (sample.positions, None),
            (sample.velocities, self._measured),
            (sample.efforts, self.efforts),
        )
        for values, before in fields:
            for name, number in where.items() if len(values) else ():
                value = values[number]
                # Drivers fill with NaN what they never measure; what was measured must stay.
                unmeasured = before is not None and math.isnan(value) and name not in before
                if not math.isfinite(value) and not unmeasured:
                    return Violation(
                        code=Code.STATE_NOT_FINITE,
                        message=f"A joint state says {value} of {name}.",
                        value=float(value),
                        joint=name,
                    )
        return None

    def _not_later(self, sample: JointSample, now: float) -> tuple[Violation, ...]:
        assert self._stamp_ns is not None
        if sample.stamp_ns == self._stamp_ns:
            # One may be a duplicate; if they go on, the state's age shows it.
            self._still = now
            return ()
        back_s = (self._stamp_ns - sample.stamp_ns) * _S_PER_NS
        self._stamp_ns = sample.stamp_ns
        self._changes.clear()
        text = f"The stamp of joint states went back by {back_s:.6g} s."
        self._wrong = (too_long(Code.STATE_CLOCK, text, -back_s, 0.0),)
        return self._wrong

    def _take(self, sample: JointSample, where: dict[str, int], now: float) -> None:
        before = self._stamp_ns
        elapsed_s = None if before is None else (sample.stamp_ns - before) * _S_PER_NS
        self.accelerations = {}
        for name, number in where.items():
            position = float(sample.positions[number])
            measured = _finite(sample.velocities, number)
            if elapsed_s is not None and name in self.positions and measured is None:
                self.velocities[name] = (position - self.positions[name]) / elapsed_s
            if measured is not None:
                self._measured[name] = self.velocities[name] = measured
                acceleration = self._changes[name].see(sample.stamp_ns, measured)
                if acceleration is not None:
                    self.accelerations[name] = acceleration
            else:
                self._measured.pop(name, None)
                self._changes.pop(name, None)
            self.positions[name] = position
            reach = _HASTE * self._limits[name].velocity * (now - self._placed.get(name, now))
            if name not in self.places or abs(position - self.places[name]) <= reach:
                self.places[name], self._placed[name] = position, now
            effort = _finite(sample.efforts, number)
            if effort is not None:
                self.efforts[name] = effort
        self._stamp_ns, self._seen, self._still = sample.stamp_ns, now, None

    def _excesses(self) -> Iterable[Violation]:
        for name, limits in self._limits.items():
            position = self.positions.get(name)
            if position is not None and not limits.low <= position <= limits.high:
                limit = limits.high if position > limits.high else limits.low
                yield beyond(Code.POSITION, name, position, limit, limits.unit)
            for code, value, limit, unit in self.magnitudes(name):
                if value is not None and abs(value) > limit:
                    yield beyond(code, name, value, limit, unit)

    def magnitudes(self, joint: str) -> tuple[tuple[Code, float | None, float, str], ...]:
        """What is measured of a joint without regard to its sign, with limit and unit."""
        limits, unit = self._limits[joint], self._limits[joint].unit
        speed, change = self.velocities.get(joint), self.accelerations.get(joint)
        return (
            (Code.VELOCITY, speed, limits.velocity, f"{unit}/s"),
            (Code.ACCELERATION, change, limits.acceleration, f"{unit}/s^2"),
            (Code.EFFORT, self.efforts.get(joint), limits.effort, limits.force_unit),
        )


class PointWatch:
    """Watches quantities of one more topic: where a frame is, or what a sensor feels.

    Args:
        robot: The robot.
        topic: Its name in the robot file.
        quantities: By name, what its code is, its lower and upper limit, and its unit.
        age_code: What it is when messages stop.
    """

    def __init__(
        self,
        robot: RobotConfig,
        topic: str,
        quantities: dict[str, tuple[Code, float, float, str]],
        age_code: Code,
    ) -> None:
        self._topic = robot.topic(topic)
        self.quantities = quantities
        self._age_code = age_code
        self._age_s = robot.guard.state_age_s
        self._debounce = Debounce(robot.guard.debounce)
        self.values: dict[str, float] = {}
        self._seen: float | None = None
        self._wrong: tuple[Violation, ...] = ()

    def see(self, values: dict[str, float], now: float) -> tuple[Violation, ...]:
        """Take a message.

        Args:
            values: By name, in the units of the quantities.
            now: Monotonic time, s.

        Returns:
            What to stop for.
        """
        self._seen, self.values = now, values
        wrong = []
        for name, (code, low, high, unit) in self.quantities.items():
            value = values[name]
            if not low <= value <= high:  # NaN is not, either
                wrong.append(beyond(code, name, value, low if value < low else high, unit))
        self._wrong = tuple(wrong)
        return self._debounce.lasting(wrong)

    def persisting(self, now: float) -> tuple[Violation, ...]:
        """What is wrong at this moment, without debouncing.

        Args:
            now: Monotonic time, s.
        """
        return (*self._wrong, *self.stale(now))

    def stale(self, now: float) -> tuple[Violation, ...]:
        """The violation of a message that is too old or never came, if so.

        Args:
            now: Monotonic time, s.
        """
        if self._seen is None:
            text = f"Nothing has come on {self._topic} yet."
            return (Violation(code=self._age_code, message=text),)
        age_s = now - self._seen
        if age_s <= self._age_s:
            return ()
        text = f"The newest message on {self._topic} is {age_s:.3f} s old."
        return (too_long(self._age_code, text, age_s, self._age_s),)


def workspace_watch(robot: RobotConfig) -> PointWatch | None:
    """Watches that a frame stays in its box; quantities `x`, `y`, `z` in metres."""
    if (box := robot.state.workspace) is None:
        return None
    sides = {"x": box.x_m, "y": box.y_m, "z": box.z_m}
    limits = {name: (Code.WORKSPACE, low, high, "m") for name, (low, high) in sides.items()}
    return PointWatch(robot, box.topic, limits, Code.WORKSPACE_AGE)


def wrench_watch(robot: RobotConfig) -> PointWatch | None:
    """Watches the norms of a measured wrench; quantities `force` in N and `torque` in N m."""
    if (wrench := robot.state.wrench) is None:
        return None
    limits = {
        "force": (Code.FORCE, 0.0, wrench.force_n, "N"),
        "torque": (Code.TORQUE, 0.0, wrench.torque_nm, "N m"),
    }
    return PointWatch(robot, wrench.topic, limits, Code.WRENCH_AGE)


def beyond(code: Code, name: str, value: float, limit: float, unit: str) -> Violation:
    """A measured quantity beyond its limit."""
    return Violation(
        code=code,
        message=f"The {_QUANTITY.get(code, code)} {name} is {value:.6g} {unit}, beyond"
        f" {limit:.6g} {unit}.",
        value=value,
        limit=limit,
        unit=unit,
        joint=name,
    )


def _mean(values: Iterable[float]) -> float:
    found = tuple(values)
    return sum(found) / len(found)


def _finite(values: Sequence[float], number: int) -> float | None:
    if len(values) == 0 or math.isnan(values[number]):
        return None
    return float(values[number])
