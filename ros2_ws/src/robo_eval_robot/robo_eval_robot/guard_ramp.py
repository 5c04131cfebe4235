"""How one joint slows down to a standstill without going beyond its limits."""

from __future__ import annotations

import math

from robo_eval_robot.config import Limits


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

    def whole(self, step_s: float) -> tuple[float, float]:
        """Slow down to the standstill; gives how long that takes, s, and how far it goes.

        Args:
            step_s: Time from one command to the next, s.
        """
        began, steps = self.position, 0
        while self.velocity:
            self.go_on(step_s)
            steps += 1
        return steps * step_s, abs(self.position - began)
