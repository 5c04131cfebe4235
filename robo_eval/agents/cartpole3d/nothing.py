"""What happens when nobody pushes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from robo_eval.agents.base import Agent
from robo_eval.agents.registry import agent
from robo_eval_sim.tasks.cartpole3d.layout import Action


@agent("nothing")
@dataclass(kw_only=True, eq=False)
class Nothing(Agent):
    """Never pushes: how long the pole stands by itself."""

    def act(self, observation: NDArray[Any]) -> int:
        """Action 0, whatever is seen."""
        del observation
        return int(Action.NOTHING)
