"""What pushing without looking achieves."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from robo_eval.agents.base import Agent
from robo_eval.agents.registry import agent
from robo_eval_sim.tasks.cartpole3d.layout import Action

_ACTIONS = tuple(int(action) for action in Action)


@agent("random")
@dataclass(kw_only=True, eq=False)
class RandomPushes(Agent):
    """Draws each of the five actions with the same probability, without looking."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._draw = random.Random(0)  # noqa: S311 - pushes, not secrets

    def reset(self, *, seed: int | None = None) -> None:
        """Start the draws over: the same seed gives the same pushes, none gives fresh ones."""
        self._draw.seed(seed)

    def act(self, observation: NDArray[Any]) -> int:
        """One of the five actions."""
        del observation
        return _ACTIONS[int(self._draw.random() * len(_ACTIONS))]
