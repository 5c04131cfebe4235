"""How a drawer is opened or closed by somebody who sees its handle."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval.agents.arm.mover import CLOSED, Array, Staged, Wish, downwards, raised
from robo_eval.agents.registry import agent
from robo_eval_sim.arm.layout import ARM_SIZE, GRIPPER_WIDTH, TIP_POSITION
from robo_eval_sim.tasks.drawer.layout import (
    CABINET_YAW,
    GOAL_OPENING,
    HANDLE_POSITION,
    OPENING,
    OWN_SIZE,
    TOLERANCE_M,
)

_AROUND_M: Final = 0.05
"""Width of a gripper whose fingers go down on both sides of the handle, clear of the front."""
_ABOVE_M: Final = 0.08
_ALIGNED_M: Final = 0.008
_LEVEL_M: Final = 0.006
_MISSED_M: Final = 0.01
"""A closed gripper this narrow holds nothing: the handle is 2 cm thick."""
_LOST_M: Final = 0.05
_GRIP_TICKS: Final = 5
_PATIENCE: Final = 40
_STEP_M: Final = 0.05
"""How far the tip is asked to go in a tick: the arm would go faster than it can stop."""


@agent("drawer")
@dataclass(kw_only=True, eq=False)
class Drawer(Staged):
    """Goes above the handle, down, grips, pulls or pushes until the drawer is where it is to be."""

    def act(self, observation: NDArray[Any]) -> NDArray[np.float32]:  # type: ignore[override]
        """Targets of the joints and of the gripper."""
        seen = self.seen(observation, ARM_SIZE + OWN_SIZE, "Drawer")
        self._ticks += 1
        place, width = self._stage(seen)
        # The fingers open along the way of the drawer.
        return self.moved(seen, place, downwards(math.pi / 2 + seen[CABINET_YAW]), width)

    # Each stage says where the tip is to be and how wide the gripper, and goes on to the next one.

    def _above(self, seen: Array) -> Wish:
        tip, handle = seen[TIP_POSITION], seen[HANDLE_POSITION]
        beside = math.hypot(*(tip - handle)[:2])
        if beside < _ALIGNED_M and tip[2] < handle[2] + 1.3 * _ABOVE_M:
            return self._go(self._down, handle, _AROUND_M)
        return raised(handle, _ABOVE_M), _AROUND_M

    def _down(self, seen: Array) -> Wish:
        tip, handle = seen[TIP_POSITION], seen[HANDLE_POSITION]
        if abs(tip[2] - handle[2]) < _LEVEL_M or self._ticks > _PATIENCE:
            self._at = tip
            return self._go(self._grip, tip, CLOSED)
        return handle, _AROUND_M

    def _grip(self, seen: Array) -> Wish:
        is_closing = not self.has_gripped(float(seen[GRIPPER_WIDTH]))
        if is_closing or self._ticks <= _GRIP_TICKS:
            return self._at, CLOSED
        if self.recovers and seen[GRIPPER_WIDTH] < _MISSED_M:
            return self._again(seen)
        return self._go(self._move, self._at, CLOSED)

    def _move(self, seen: Array) -> Wish:
        tip, handle, yaw = seen[TIP_POSITION], seen[HANDLE_POSITION], seen[CABINET_YAW]
        if self.recovers and (math.dist(tip, handle) > _LOST_M or seen[GRIPPER_WIDTH] < _MISSED_M):
            return self._again(seen)
        left = float(seen[GOAL_OPENING] - seen[OPENING])
        if abs(left) < 0.3 * TOLERANCE_M:
            return tip, CLOSED
        by = math.copysign(min(abs(left), _STEP_M), left)
        out = np.array([-math.cos(yaw) * by, -math.sin(yaw) * by, 0.0])
        return np.array([*(tip + out)[:2], self._at[2]]), CLOSED

    def _again(self, seen: Array) -> Wish:
        return self._go(self._above, raised(seen[HANDLE_POSITION], _ABOVE_M), _AROUND_M)
