"""How a thing is picked up and put down by somebody who sees where it is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval.agents.arm.mover import CLOSED, OPEN, Array, Staged, Wish, downwards, raised, yaw_of
from robo_eval.agents.registry import agent
from robo_eval_sim.arm.layout import ARM_SIZE, GRIPPER_WIDTH, TIP_POSITION
from robo_eval_sim.tasks.pick_place.layout import (
    GOAL_POSITION,
    OBJECT_POSITION,
    OBJECT_QUAT_XYZW,
    OWN_SIZE,
    TOLERANCE_M,
)

_ABOVE_M: Final = 0.10
_ALIGNED_M: Final = 0.008
_LOW_M: Final = 0.03
_LEVEL_M: Final = 0.006
_MISSED_M: Final = 0.006
"""A closed gripper this narrow holds nothing."""
_LOST_M: Final = 0.05
_GRIP_TICKS: Final = 5
_RELEASE_TICKS: Final = 4
_PATIENCE: Final = 40
"""Ticks after which a stage that does not come to its end is begun again."""


@agent("pick-place")
@dataclass(kw_only=True, eq=False)
class PickPlace(Staged):
    """Goes above the thing, down, grips, lifts, carries, puts down, lets go."""

    def reset(self, *, seed: int | None = None) -> None:
        """Forget the last episode."""
        super().reset(seed=seed)
        self._height = self._yaw = 0.0

    def act(self, observation: NDArray[Any]) -> NDArray[np.float32]:  # type: ignore[override]
        """Targets of the joints and of the gripper."""
        seen = self.seen(observation, ARM_SIZE + OWN_SIZE, "PickPlace")
        tip, thing, goal = seen[TIP_POSITION], seen[OBJECT_POSITION], seen[GOAL_POSITION]
        self._ticks += 1
        if self._stage == self._above:
            self._yaw = yaw_of(seen[OBJECT_QUAT_XYZW])
        place, width = self._stage(tip, thing, goal, float(seen[GRIPPER_WIDTH]))
        return self.moved(seen, place, downwards(self._yaw), width)

    # Each stage says where the tip is to be and how wide the gripper, and goes on to the next one.

    def _above(self, tip: Array, thing: Array, _goal: Array, _width: float) -> Wish:
        beside = math.hypot(*(tip - thing)[:2])
        if beside < _ALIGNED_M and tip[2] < thing[2] + _ABOVE_M + _LOW_M:
            return self._go(self._down, thing, OPEN)
        return raised(thing, _ABOVE_M), OPEN

    def _down(self, tip: Array, thing: Array, _goal: Array, _width: float) -> Wish:
        if abs(tip[2] - thing[2]) < _LEVEL_M or self._ticks > _PATIENCE:
            self._height, self._at = float(tip[2]), tip
            return self._go(self._grip, tip, CLOSED)
        return thing, OPEN

    def _grip(self, _tip: Array, thing: Array, _goal: Array, width: float) -> Wish:
        is_closing = not self.has_gripped(width)
        if is_closing or self._ticks <= _GRIP_TICKS:
            return self._at, CLOSED
        if self.recovers and width < _MISSED_M:
            return self._again(thing)
        return self._go(self._lift, raised(self._at, _ABOVE_M), CLOSED)

    def _lift(self, tip: Array, thing: Array, _goal: Array, _width: float) -> Wish:
        place = np.array([tip[0], tip[1], self._height + _ABOVE_M])
        if self._is_lost(tip, thing):
            return self._again(thing)
        if tip[2] > self._height + 0.8 * _ABOVE_M or self._ticks > _PATIENCE:
            return self._go(self._carry, place, CLOSED)
        return place, CLOSED

    def _carry(self, tip: Array, thing: Array, goal: Array, _width: float) -> Wish:
        # What matters is where the thing is, and not the tip.
        place = np.array([*(tip[:2] + goal - thing[:2]), self._height + _ABOVE_M])
        if self._is_lost(tip, thing):
            return self._again(thing)
        if math.hypot(*(goal - thing[:2])) < _LEVEL_M or self._ticks > _PATIENCE:
            return self._go(self._lower, place, CLOSED)
        return place, CLOSED

    def _lower(self, tip: Array, thing: Array, goal: Array, _width: float) -> Wish:
        place = np.array([*(tip[:2] + goal - thing[:2]), self._height])
        if self._is_lost(tip, thing):
            return self._again(thing)
        if tip[2] < self._height + _LEVEL_M or self._ticks > _PATIENCE:
            return self._go(self._release, tip, OPEN)
        return place, CLOSED

    def _release(self, tip: Array, _thing: Array, _goal: Array, _width: float) -> Wish:
        if self._ticks > _RELEASE_TICKS:
            return self._go(self._leave, tip, OPEN)
        return tip, OPEN

    def _leave(self, tip: Array, thing: Array, goal: Array, _width: float) -> Wish:
        is_there = math.hypot(*(goal - thing[:2])) < 0.8 * TOLERANCE_M
        if self.recovers and not is_there and self._ticks > 2 * _RELEASE_TICKS:
            return self._again(thing)
        return np.array([tip[0], tip[1], self._height + _ABOVE_M]), OPEN

    def _is_lost(self, tip: Array, thing: Array) -> bool:
        return self.recovers and math.dist(tip, thing) > _LOST_M

    def _again(self, thing: Array) -> Wish:
        return self._go(self._above, raised(thing, _ABOVE_M), OPEN)
