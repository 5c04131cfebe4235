"""What an arm achieves that goes anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robo_eval.agents.base import Agent
from robo_eval.agents.registry import agent
from robo_eval_sim.arm.layout import LOWER_RAD, UPPER_RAD, WIDTH_M

LOW, HIGH = np.array([*LOWER_RAD, 0.0]), np.array([*UPPER_RAD, WIDTH_M])
"""Least and largest position of each joint, radians, and width of the gripper, metres."""


@agent("arm-random")
@dataclass(kw_only=True, eq=False)
class RandomTargets(Agent):
    """Draws every joint's target from its range, without looking."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._draw = np.random.default_rng(0)

    def reset(self, *, seed: int | None = None) -> None:
        """Start the draws over: the same seed gives the same targets, none gives fresh ones."""
        self._draw = np.random.default_rng(seed)

    def act(self, observation: NDArray[Any]) -> NDArray[np.float32]:  # type: ignore[override]
        """Any positions; for `action_mode="joint_position"`."""
        del observation
        return self._draw.uniform(LOW, HIGH).astype(np.float32)
