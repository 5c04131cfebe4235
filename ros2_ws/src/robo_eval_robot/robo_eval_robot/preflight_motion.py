"""How a joint is moved slowly and a little: what is asked of it, and how fast it moves."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Self

from robo_eval_robot.config import Limits, RobotConfig
from robo_eval_robot.snapshot import Snapshot

TOO_FAST: Final = 5.0
"""Times the slow speed that no joint may move at."""
_EFFORT_SHARE: Final = 0.05
_VELOCITY_SHARE: Final = 0.01
_ABOVE_STANDSTILL: Final = 3.0
_WINDOW: Final = 3
_STOP_SHARES: Final = (1.0 / 3.0, 2.0 / 3.0, 1.0)
"""Of the highest speed, from which a joint is stopped."""
_FASTEST: Final = 3.0
"""Times the slow speed that it is stopped from at most, if the file says nothing."""
_REACHED: Final = 0.9
"""Share of such a speed at which it is stopped, as a controller lags behind what is asked."""
_CAUTION: Final = 0.5
"""Share of a limit on the change of a command that is used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """What is asked of one joint.

    Attributes:
        joint: Its name.
        effort: N or N m.
        slow: Speed that it is to move at, m/s or rad/s.
        moving: Speed at which it counts as moving, m/s or rad/s.
        fastest: Highest speed from which it is stopped, m/s or rad/s.
        limits: Its limits, with their units.
    """

    joint: str
    effort: float
    slow: float
    moving: float
    fastest: float
    limits: Limits

    def stops(self) -> list[Self]:
        """The same at each speed from which it is stopped."""
        speeds = [share * self.fastest for share in _STOP_SHARES]
        return [replace(self, slow=speed, moving=_REACHED * speed) for speed in speeds]


def aims(config: RobotConfig) -> dict[str, Aim]:
    """What is asked of each commanded joint, in the controller's order."""
    found = {}
    still = config.guard.stop.standstill_velocity
    is_effort = config.controller.interface == "effort"
    for name in config.commanded:
        limits = config.limited[name]
        slow = config.preflight.velocity or max(
            _VELOCITY_SHARE * limits.velocity, _ABOVE_STANDSTILL * still
        )
        found[name] = Aim(
            joint=name,
            effort=config.preflight.effort or _EFFORT_SHARE * limits.effort,
            slow=slow,
            # A controller of velocity or position lags behind what is asked.
            moving=slow if is_effort else 0.5 * (slow + still),
            fastest=config.preflight.stop_velocity or min(_FASTEST * slow, limits.velocity),
            limits=limits,
        )
    return found


class Push:
    """The commands that move one joint and bring it to rest again.

    Args:
        config: The robot.
        aim: What is asked of the joint.
        start: Position of every commanded joint at the beginning, m or rad.
    """

    def __init__(self, config: RobotConfig, aim: Aim, start: Mapping[str, float]) -> None:
        limits = config.limited[aim.joint]
        self._names = config.commanded
        self._interface = config.controller.interface
        self._aim = aim
        self._start = dict(start)
        self._period_s = 1.0 / config.control_rate_hz
        middle = 0.5 * (limits.low + limits.high)
        self.direction: Final = 1.0 if start[aim.joint] <= middle else -1.0
        """Towards the middle of the joint's range."""
        self.asked = start[aim.joint] if self._interface == "position" else 0.0
        """The joint's number in the last command."""
        self._step = math.inf
        self._speed = 0.0
        change = _CAUTION * limits.acceleration * self._period_s
        if limits.jerk is not None:
            change = min(change, _CAUTION * limits.jerk * self._period_s**2)
        self._change = change
        """Most the speed that is asked for may change from one command to the next."""
        if self._interface == "velocity":
            self._step = change
        if config.guard.command_step is not None:
            self._step = min(self._step, _CAUTION * config.guard.command_step)

    def rest(self) -> list[float]:
        """A command that asks for no motion, in the controller's order."""
        return self._with(self._start[self._aim.joint] if self._interface == "position" else 0.0)

    def push(self) -> list[float]:
        """The next command of the motion."""
        if self._interface == "position":
            return self._at_speed(self.direction * self._aim.slow)
        size = self._aim.effort if self._interface == "effort" else self._aim.slow
        return self._towards(self.direction * size)

    def brake(self, speed: float) -> list[float]:
        """The next command while the joint is brought to rest.

        Args:
            speed: How fast it moves along what was asked, m/s or rad/s.
        """
        if self._interface == "position":
            return self._at_speed(0.0)
        if self._interface == "velocity":
            return self._towards(0.0)
        # Turned round, and less when it is slow, so that the joint is not pushed back.
        share = max(0.0, min(1.0, 2.0 * speed / self._aim.slow))
        return self._towards(-self.direction * self._aim.effort * share)

    def _at_speed(self, speed: float) -> list[float]:
        self._speed += max(-self._change, min(self._change, speed - self._speed))
        return self._towards(self.asked + self._speed * self._period_s)

    def _towards(self, target: float) -> list[float]:
        change = target - self.asked
        self.asked += max(-self._step, min(self._step, change))
        return self._with(self.asked)

    def _with(self, value: float) -> list[float]:
        others = self._start if self._interface == "position" else dict.fromkeys(self._names, 0.0)
        return [value if name == self._aim.joint else others[name] for name in self._names]


class Speeds:
    """Velocities of the joints, averaged over a few states so that noise is no motion."""

    def __init__(self) -> None:
        self._seen: deque[Snapshot] = deque(maxlen=_WINDOW)

    def see(self, snapshot: Snapshot) -> None:
        """Take the next state."""
        self._seen.append(snapshot)

    @property
    def is_known(self) -> bool:
        """Whether enough states were seen."""
        return len(self._seen) == _WINDOW

    def of(self, joint: str) -> float:
        """Velocity of a joint, m/s or rad/s; 0 before enough states were seen."""
        if not self.is_known:
            return 0.0
        measured = [snapshot.joints[joint].velocity for snapshot in self._seen]
        finite = [value for value in measured if value is not None and math.isfinite(value)]
        if len(finite) == _WINDOW:
            return sum(finite) / _WINDOW
        first, last = self._seen[0], self._seen[-1]
        elapsed_s = (last.stamp_ns - first.stamp_ns) / 1e9
        return (last.joints[joint].position - first.joints[joint].position) / elapsed_s

    def stand(self, joints: tuple[str, ...], limit: float) -> bool:
        """Whether joints are known to be slower than a limit."""
        return self.is_known and all(abs(self.of(name)) < limit for name in joints)
