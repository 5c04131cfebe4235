"""What is commanded to bring the robot to a standstill, and whether it stands."""

from __future__ import annotations

from robo_eval_robot.config import RobotConfig
from robo_eval_robot.guard_checks import Code, Violation
from robo_eval_robot.guard_watch import JointWatch


class StopMotion:
    """One stop after the other: the commands, and what comes of them.

    Args:
        robot: The robot.
        joints: What is measured of it.
    """

    def __init__(self, robot: RobotConfig, joints: JointWatch) -> None:
        self._names = robot.commanded
        self._interface = robot.controller.interface
        self._stop = robot.guard.stop
        self._joints = joints
        self._effort = []
        for name in self._names:
            limits = robot.limits(name)
            assert limits is not None  # a commanded joint has limits, see RobotConfig
            self._effort.append(limits.effort)
        self._hold: tuple[float, ...] | None = None
        self._began = 0.0
        self._has_stood = False
        self.is_silent = False
        """Whether commands are withheld, so that the driver's own timeout acts."""
        self._asked_power_off = False

    def begin(self, now: float) -> None:
        """Start a stop: positions are held where they are now.

        Args:
            now: Monotonic time, s.
        """
        self._began = now
        self._hold = self._measured_positions()
        self._has_stood = self.is_silent = self._asked_power_off = False

    def stands(self, now: float) -> bool:
        """Whether every commanded joint is known to stand.

        Args:
            now: Monotonic time, s.
        """
        if not (self._joints.is_fresh(now) and self._joints.knows_velocity()):
            return False
        limit = self._stop.standstill_velocity
        return all(abs(self._joints.velocities[name]) <= limit for name in self._names)

    def is_over(self, now: float) -> bool:
        """Whether the robot has come to a standstill as it should, or stands now."""
        return (self._has_stood and not self.is_silent) or self.stands(now)

    def command(self, now: float) -> tuple[float, ...] | None:
        """The stop command of this moment, to be renewed as the robot slows down.

        Args:
            now: Monotonic time, s.

        Returns:
            Numbers in the controller's order; None if a position was to be held and none is known,
            or if commands are withheld.
        """
        if self.is_silent:
            return None
        if self._interface == "position":
            return self._hold
        if self._interface == "velocity" or not self._joints.is_fresh(now):
            return self.rest()
        return tuple(
            self._brake(self._joints.velocities.get(name, 0.0), limit)
            for name, limit in zip(self._names, self._effort, strict=True)
        )

    def rest(self) -> tuple[float, ...] | None:
        """A last stop command before silence.

        Without braking: a driver goes on with the last effort until its own timeout, and braking
        would turn into pushing back.
        """
        if self._interface == "position":
            return self._hold
        return tuple(0.0 for _ in self._names)

    def proceed(self, now: float) -> Violation | None:
        """See how far the stop has come; once a cycle.

        Args:
            now: Monotonic time, s.

        Returns:
            That the robot does not stand in time, once; from then on commands are withheld.
        """
        if self.stands(now):
            self._has_stood = True
        late_s = now - self._began
        if self._joints.age_s(now) is None:
            return None  # no robot was ever there
        if self._has_stood or self.is_silent or late_s <= self._stop.within_s:
            return None
        self.is_silent = True
        speeds = [abs(v) for n, v in self._joints.velocities.items() if n in self._names]
        known = self._joints.is_fresh(now) and self._joints.knows_velocity()
        return Violation(
            code=Code.NO_STANDSTILL,
            message=f"The robot {'does not stand' if known else 'was not seen to stand'}"
            f" {late_s:.2f} s after the stop; commands are withheld so that the driver stops it.",
            value=max(speeds) if known else None,
            limit=self._stop.standstill_velocity,
            unit="of velocity",
        )

    def wants_power_off(self) -> bool:
        """Whether the driver has to be asked to remove power now; true once a stop."""
        due = {
            0: True,
            1: self._has_stood or self.is_silent,
            2: self.is_silent and self._stop.power_off is not None,
        }[self._stop.category]
        wants = due and not self._asked_power_off
        self._asked_power_off = self._asked_power_off or due
        return wants

    def _brake(self, velocity: float, limit: float) -> float:
        if self._stop.braking <= 0.0 or abs(velocity) <= self._stop.standstill_velocity:
            return 0.0
        return min(max(-self._stop.braking * velocity, -limit), limit)

    def _measured_positions(self) -> tuple[float, ...] | None:
        try:
            return tuple(self._joints.positions[name] for name in self._names)
        except KeyError:
            return None
