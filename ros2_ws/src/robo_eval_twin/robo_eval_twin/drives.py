"""Six drives without physics, as an arm's driver has them: modes, limits, and what they did.

Nothing here knows a guard: this is the witness of what commands do to a robot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final

import numpy as np

from robo_eval.core.errors import InputError
from robo_eval_robot.config import Drive, RobotConfig
from robo_eval_twin.body import Array


class Mode(StrEnum):
    """Whether the drives follow commands, and if not, why."""

    RUNNING = "running"
    NO_CONTROLLER = "no_controller"
    """Powered, and held by the drives: no controller takes commands."""
    FREEDRIVE = "freedrive"
    """Powered, and moved by hand."""
    PROTECTIVE_STOP = "protective_stop"
    """Braked by the drives themselves, until somebody unlocks them."""
    POWER_OFF = "power_off"
    """Held by brakes, which a person can release to move the arm by hand."""


_GUIDED: Final = (Mode.FREEDRIVE, Mode.POWER_OFF, Mode.NO_CONTROLLER)
"""Modes in which something else than commands can move the joints."""


class Drives:
    """Commanded joints of a robot that go where they are told to, as far as they can.

    Commands that ask more than the drives can do are a fault, which ends in a protective stop.
    A driver keeps its last command while the drives do not follow. When they follow again they go
    there as fast as they can: that is no fault, and it is what makes an old command dangerous.

    Args:
        config: The robot; its limits of velocity and acceleration are multiplied by the margin.
        drive: How the drives behave.
    """

    def __init__(self, config: RobotConfig, drive: Drive) -> None:
        self.joints = config.commanded
        self._interface = config.controller.interface
        own = config.twin
        has_timeout = own is None or own.has_command_timeout
        self._timeout_s = config.controller.timeout_s if has_timeout else math.inf
        limits = [each for name in self.joints if (each := config.limits(name)) is not None]
        self._low = np.array([each.low for each in limits])
        self._high = np.array([each.high for each in limits])
        self._speed = drive.margin * np.array([each.velocity for each in limits])
        self._acceleration = drive.margin * np.array([each.acceleration for each in limits])
        self._effort = np.array([each.effort for each in limits])
        self._bandwidth = drive.bandwidth_rad_s
        self._inertia = drive.inertia
        self._gravity = self._by_joint(drive.gravity)
        holds = config.guard.stop.holds if self._interface == "effort" else None
        self._is_compensated = holds == "gravity_compensation"
        self._is_braked_at_rest = holds == "brakes"
        self.position = self._by_joint(drive.start)
        """Metres or radians, shape (J,); so are the others."""
        self.velocity = np.zeros(len(limits))
        self.acceleration = np.zeros(len(limits))
        self.command: Array | None = None
        """Last command that was heard, in the unit of the interface; None if there is none."""
        self.mode = Mode.RUNNING
        self.events: list[str] = []
        """What happened since the last row."""
        self._hand = np.zeros(len(limits))
        self._quiet_s = 0.0
        self._catches_up = False
        self._time_s = 0.0

    @property
    def effort(self) -> Array:
        """Force or torque of the drives, N or N m, shape (J,)."""
        return self._inertia * self.acceleration + self._weight()

    def hear(self, command: Sequence[float]) -> None:
        """Take a command, in the order of the joints; it acts until the next one.

        One of another length is ignored, as a controller does. One that no drive can follow is a
        fault if the drives are to follow it, and ignored if not.
        """
        if self.mode is Mode.NO_CONTROLLER:
            return
        heard = np.array(command, dtype=float)
        if heard.shape != self.position.shape:
            self.events.append(f"ignored: a command of {heard.size} numbers")
            return
        low, high = {
            "position": (self._low, self._high),
            "velocity": (-self._speed, self._speed),
            "effort": (-self._effort, self._effort),
        }[self._interface]
        if self.mode is Mode.RUNNING and self._fault(self._interface, heard, low, high):
            return
        if ((heard >= low) & (heard <= high)).all():
            # Brakes close once an effort of zero was asked for as long as the timeout.
            is_rest = self._is_braked_at_rest and not heard.any()
            if not is_rest or self.command is None or self.command.any():
                self._quiet_s = 0.0
            self.command = heard

    # What people, circuits and other nodes do to it.

    def power(self, *, on: bool) -> None:
        """Release the brakes and follow commands, or apply them."""
        if on and self.mode is Mode.POWER_OFF:
            self._enter(Mode.RUNNING)
        elif not on:
            self._enter(Mode.POWER_OFF)

    def stop(self, why: str) -> None:
        """Make a protective stop, as after a collision."""
        if self.mode is not Mode.POWER_OFF:
            self.events.append(f"protective stop: {why}")
            self._enter(Mode.PROTECTIVE_STOP)

    def unlock(self) -> None:
        """End a protective stop: commands are followed again."""
        if self.mode is Mode.PROTECTIVE_STOP:
            self._enter(Mode.RUNNING)

    def freedrive(self, *, on: bool) -> None:
        """Let a hand move the joints, or follow commands again."""
        if self.mode is (Mode.RUNNING if on else Mode.FREEDRIVE):
            self._enter(Mode.FREEDRIVE if on else Mode.RUNNING)

    def switch(self, *, on: bool) -> None:
        """Activate the controller, or take it away together with its last command."""
        if self.mode is (Mode.NO_CONTROLLER if on else Mode.RUNNING):
            self._enter(Mode.RUNNING if on else Mode.NO_CONTROLLER)
            self.command = None

    def guide(self, velocity: Sequence[float]) -> None:
        """Move the joints otherwise than by commands, at these velocities until others are given.

        A hand can with freedrive or without power, another controller where ours is not active.

        Raises:
            InputError: If it is not a finite number for each joint.
        """
        if len(velocity) != len(self.joints) or not all(map(math.isfinite, velocity)):
            raise InputError(f"hand: {len(self.joints)} finite numbers are needed")
        if self.mode in _GUIDED:
            self._hand = np.clip(np.array(velocity, dtype=float), -self._speed, self._speed)

    def tick(self, elapsed_s: float) -> None:
        """Let time pass, seconds."""
        self._time_s += elapsed_s
        self._quiet_s += elapsed_s
        if self.mode is Mode.RUNNING and self._is_commanded():
            wanted = self._followed(elapsed_s)
        elif self._hand.any():
            wanted = (self._hand - self.velocity) / elapsed_s
        else:
            wanted = self._braked(elapsed_s)
        self.acceleration = wanted
        self.velocity = self.velocity + wanted * elapsed_s
        self.position = self.position + self.velocity * elapsed_s

    def row(self) -> dict[str, Any]:
        """What a recording says of this moment; events are told once."""
        events, self.events = self.events, []
        return {
            "t_s": round(self._time_s, 9),
            "mode": str(self.mode),
            "position": self.position.tolist(),
            "velocity": self.velocity.tolist(),
            "acceleration": self.acceleration.tolist(),
            "command": None if self.command is None else self.command.tolist(),
            "events": events,
        }

    # How it moves.

    def _enter(self, mode: Mode) -> None:
        self.events.append(f"mode: {mode}")
        self.mode, self._catches_up = mode, True
        self._hand = np.zeros(len(self.joints))

    def _is_commanded(self) -> bool:
        """Whether a command acts; a position is held for ever, as position controllers do."""
        is_heard = self._interface == "position" or self._quiet_s <= self._timeout_s
        return self.command is not None and is_heard

    def _followed(self, elapsed_s: float) -> Array:
        """Acceleration by which the command is followed; braking if that is a fault."""
        assert self.command is not None
        wanted = self._law(self.command)
        speed = self.velocity + wanted * elapsed_s
        if self._catches_up:
            can = (np.abs(wanted) <= self._acceleration).all()
            if not (can and (np.abs(speed) <= self._speed).all()):
                return self._hurried(self.command, elapsed_s)
            self._catches_up = False
        place = self.position + speed * elapsed_s
        if (
            self._fault("acceleration", wanted, -self._acceleration, self._acceleration)
            or self._fault("velocity", speed, -self._speed, self._speed)
            or self._fault("position", place, self._low, self._high)
        ):
            return self._braked(elapsed_s)
        return wanted

    def _law(self, command: Array) -> Array:
        """What the command asks of the drives: a critically damped servo, or a force."""
        if self._interface == "effort":
            pull = 0.0 if self._is_compensated else self._weight()
            asked: Array = (command - pull) / self._inertia
            return asked
        if self._interface == "velocity":
            return self._bandwidth * (command - self.velocity)
        error = command - self.position
        return self._bandwidth**2 * error - 2.0 * self._bandwidth * self.velocity

    def _hurried(self, command: Array, elapsed_s: float) -> Array:
        """As fast as the drives can towards a command that they do not follow yet."""
        goal = command
        if self._interface == "position":
            error = command - self.position
            away = np.abs(error)
            approach = np.minimum(np.sqrt(self._acceleration * away), self._bandwidth * away)
            goal = np.sign(error) * np.minimum(approach, self._speed)
        elif self._interface == "effort":
            goal = self.velocity + self._law(command) * elapsed_s
        return self._towards(np.clip(goal, -self._speed, self._speed), elapsed_s)

    def _braked(self, elapsed_s: float) -> Array:
        return self._towards(np.zeros(len(self.joints)), elapsed_s)

    def _towards(self, velocity: Array, elapsed_s: float) -> Array:
        wanted = (velocity - self.velocity) / elapsed_s
        return np.clip(wanted, -self._acceleration, self._acceleration)

    def _weight(self) -> Array:
        """Effort that holds the joints: at angle zero an arm is stretched out."""
        weight: Array = self._gravity * np.cos(self.position)
        return weight

    def _fault(self, what: str, values: Array, low: Array, high: Array) -> bool:
        """Make a protective stop if a value is beyond what the drives can do, or is none."""
        beyond = np.flatnonzero(~((values >= low) & (values <= high)))
        if not beyond.size:
            return False
        first = int(beyond[0])
        limit = high[first] if values[first] > high[first] else low[first]
        self.stop(f"{what} of {self.joints[first]}: {values[first]:.4g} beyond {limit:.4g}")
        return True

    def _by_joint(self, given: dict[str, float]) -> Array:
        return np.array([given.get(name, 0.0) for name in self.joints])
