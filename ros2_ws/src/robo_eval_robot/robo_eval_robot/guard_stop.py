"""What is commanded to bring the robot to a standstill, and whether it stands."""

from __future__ import annotations

import math

from robo_eval_robot.config import Limits, RobotConfig
from robo_eval_robot.guard_checks import Code, InForce, Violation
from robo_eval_robot.guard_watch import JointWatch


class Ramp:
    """What is commanded of one joint from a motion to its standstill.

    Args:
        limits: Of the joint.
        position: Where it begins, m or rad.
        velocity: How fast, m/s or rad/s; no faster than the limit is taken.
        slowing: By how much it slows down already, m/s^2 or rad/s^2.
    """

    def __init__(
        self, limits: Limits, position: float, velocity: float, slowing: float = 0.0
    ) -> None:
        self._limits = limits
        # Where it begins beyond a limit, it may stay there: a stop must not begin a motion.
        self._low, self._high = min(limits.low, position), max(limits.high, position)
        self.position = position
        self.velocity = min(max(velocity, -limits.velocity), limits.velocity)
        self._slowing = max(slowing, 0.0)

    def go_on(self, elapsed_s: float) -> None:
        """Slow down further.

        Args:
            elapsed_s: Time since the last call, s.
        """
        speed = abs(self.velocity)
        slowing, jerk = self._limits.slowing
        if jerk is not None:
            # No more than can be taken back by the time it stands.
            slowing = min(slowing, self._slowing + jerk * elapsed_s, math.sqrt(2.0 * jerk * speed))
        self._slowing = slowing
        if not slowing:
            return  # it stands
        slower = max(speed - slowing * elapsed_s, 0.0)
        distance = 0.5 * (speed + slower) * min(elapsed_s, speed / slowing)
        position = self.position + math.copysign(distance, self.velocity)
        self.position = min(max(position, self._low), self._high)
        self.velocity = math.copysign(slower, self.velocity) if slower else 0.0


class StopMotion:
    """One stop after the other: the commands, and what comes of them.

    Velocities and positions slow down within the limits of the joints. A position is then held
    where the robot stands, and wherever it comes to stand if it is moved: by hand, without power,
    or by another controller.

    Args:
        robot: The robot.
        joints: What is measured of it.
    """

    def __init__(self, robot: RobotConfig, joints: JointWatch) -> None:
        self._names = robot.commanded
        self._interface = robot.controller.interface
        self._stop = robot.guard.stop
        self._creep = self._stop.standstill_velocity * self._stop.within_s
        """How far a robot that counts as standing may creep before it counts as moved, m or rad."""
        self._age_s = robot.guard.command_age_s
        self._period_s = 1.0 / robot.control_rate_hz
        self._joints = joints
        self._limits = [robot.limited[name] for name in self._names]
        self._ramps: list[Ramp] | None = None
        """None if no position is known to hold."""
        self._ramped = 0.0
        self._follows = False
        """Whether the position that is held is the measured one, until the robot stands."""
        self._began = 0.0
        self.has_stood = True
        """Whether the robot was seen to stand since the last stop began."""
        self._is_driven = True
        self._was_late = False
        self.is_silent = False
        """Whether commands are withheld, so that the driver's own timeout acts."""

    def begin(self, now: float, command: InForce | None, *, moves: bool) -> None:
        """Start a stop.

        Args:
            now: Monotonic time, s.
            command: What the robot acts on; None if that is not known.
            moves: Whether it was the guard that let the robot move.
        """
        self.begin_anew(now)
        self._ramped = now
        self._follows = not moves
        self._ramps = self._from_here(now, command, moves=moves)

    def begin_anew(self, now: float) -> None:
        """Go on slowing down, and count the time to a standstill from now on.

        Args:
            now: Monotonic time, s.
        """
        self._began = now
        self.has_stood = self._was_late = self.is_silent = False

    def take_anew(self) -> None:
        """Hold the robot wherever it is: power, mode or controller have changed."""
        self._follows, self.is_silent = True, False

    def drive(self, now: float, *, is_driven: bool) -> None:
        """Learn that the driver's mode has changed.

        Args:
            now: Monotonic time, s.
            is_driven: Whether the robot follows commands in it, as far as is known.
        """
        # One that went on following is not pulled back while it moves.
        if not (self._is_driven and is_driven) or self.stands(now):
            self.take_anew()
        self._is_driven = is_driven

    def stands(self, now: float) -> bool:
        """Whether every commanded joint is known to stand.

        Args:
            now: Monotonic time, s.
        """
        if not self._knows(now):
            return False
        limit = self._stop.standstill_velocity
        return all(abs(self._joints.velocities[name]) <= limit for name in self._names)

    def _knows(self, now: float) -> bool:
        return self._joints.is_fresh(now) and self._joints.knows_velocity()

    @property
    def slows_down(self) -> bool:
        """Whether a command of a stop has not reached its end yet."""
        return (
            self._interface != "effort"
            and not (self._follows or self.is_silent)
            and any(ramp.velocity for ramp in self._ramps or ())
        )

    def command(self, now: float) -> tuple[float, ...] | None:
        """The stop command of this moment, to be renewed as the robot slows down.

        Args:
            now: Monotonic time, s.

        Returns:
            Numbers in the controller's order; None if a position was to be held and none is known,
            or if commands are withheld.
        """
        if self.is_silent and self._is_driven:
            return None
        if self._interface != "effort":
            return self._slowed(now)
        if not self._joints.is_fresh(now):
            return self.rest()
        return tuple(
            self._brake(self._joints.velocities.get(name, 0.0), limits.effort)
            for name, limits in zip(self._names, self._limits, strict=True)
        )

    def renewed(self, now: float) -> tuple[float, ...] | None:
        """The hold of a robot that was let go, if something else than commands has moved it.

        Args:
            now: Monotonic time, s.
        """
        self.has_stood = self.has_stood or self.stands(now)
        if self._interface != "position" or self._ramps is None:
            return None  # nothing was ever held
        return self._slowed(now) if self._follows or not self._is_driven else None

    def last(self, now: float) -> tuple[float, ...] | None:
        """A stop command that silence may follow; None if commands are withheld.

        Without braking by effort: a driver goes on with the last one until its own timeout, and
        braking would turn into pushing back.

        Args:
            now: Monotonic time, s.
        """
        if self._interface == "effort" and not self.is_silent:
            return self.rest()
        return self.command(now)

    def rest(self) -> tuple[float, ...] | None:
        """What ends a stop, whatever is measured."""
        if self._interface != "position":
            return tuple(0.0 for _ in self._names)
        return None if self._ramps is None else tuple(ramp.position for ramp in self._ramps)

    def proceed(self, now: float) -> Violation | None:
        """See how far the stop has come; once a cycle.

        Args:
            now: Monotonic time, s.

        Returns:
            That the robot does not stand in time, once; from then on commands are withheld.
        """
        self.has_stood = self.has_stood or self.stands(now)
        late_s = now - self._began
        if self._joints.age_s(now) is None:
            return None  # no robot was ever there
        if self.has_stood or self._was_late or late_s <= self._stop.within_s:
            return None
        self._was_late = self.is_silent = True
        speeds = [abs(v) for n, v in self._joints.velocities.items() if n in self._names]
        known = self._knows(now)
        return Violation(
            code=Code.NO_STANDSTILL,
            message=f"The robot {'does not stand' if known else 'was not seen to stand'}"
            f" {late_s:.2f} s after the stop; commands are withheld so that the driver stops it.",
            value=max(speeds) if known else None,
            limit=self._stop.standstill_velocity,
            unit="of velocity",
        )

    @property
    def wants_power_off(self) -> bool:
        """Whether this stop has come so far that the driver has to remove power."""
        return {
            0: True,
            1: self.has_stood or self._was_late,
            2: self._was_late and self._stop.power_off is not None,
        }[self._stop.category]

    def _brake(self, velocity: float, limit: float) -> float:
        if self._stop.braking <= 0.0 or abs(velocity) <= self._stop.standstill_velocity:
            return 0.0
        return min(max(-self._stop.braking * velocity, -limit), limit)

    def _slowed(self, now: float) -> tuple[float, ...] | None:
        """Velocities or positions of this moment."""
        elapsed_s, self._ramped = now - self._ramped, now
        if self._interface == "position" and self._is_moved(now):
            self._ramps = self._from_here(now, None, moves=False)
        for ramp in self._ramps or ():
            ramp.go_on(elapsed_s)
        if self._interface == "velocity":
            return tuple(ramp.velocity for ramp in self._ramps) if self._ramps else self.rest()
        return self.rest()

    def _is_moved(self, now: float) -> bool:
        """Whether to hold the robot where it is and not where it was."""
        if self.has_stood and not self.slows_down:
            self._follows = self._follows or any(
                abs(ramp.position - self._joints.places.get(name, ramp.position)) > self._creep
                for name, ramp in zip(self._names, self._ramps or (), strict=False)
            )
        moved = self._follows or not self._is_driven or self._ramps is None
        self._follows = self._follows and not self.stands(now)
        return moved

    def _from_here(self, now: float, command: InForce | None, *, moves: bool) -> list[Ramp] | None:
        """A ramp for each joint, from what it is asked for if it does that."""
        ramps = []
        for number, (name, limits) in enumerate(zip(self._names, self._limits, strict=True)):
            place, velocity = self._joints.places.get(name), self._joints.velocities.get(name)
            if command is not None:
                asked, rates = command.values[number], command.rates[number]
                fast, change = (asked, rates[0]) if self._interface == "velocity" else rates
                # Never faster than it was asked to be, nor than it is.
                speed = fast if velocity is None else velocity
                slow = _between(speed, 0.0, fast)
                # One that lags still comes to a place where nothing is asked of it any more.
                near = place is None or abs(asked - place) <= self._creep + abs(speed) * self._age_s
                if self._interface == "velocity" or near:
                    ramp = Ramp(limits, asked, slow, -math.copysign(change, change * slow))
                    ramp.go_on(min(max(now - command.at, 0.0), self._period_s))
                    ramps.append(ramp)
                    continue
            if place is None:
                return None
            ramps.append(Ramp(limits, place, velocity or 0.0 if moves else 0.0))
        return ramps


def _between(value: float, one: float, other: float) -> float:
    return min(max(value, min(one, other)), max(one, other))
