"""An agent that says so when its episodes take another time than the first of the trial did.

    robo-eval compete practice examples/competitions/cartpole3d_open.yaml \
        --factory examples.competitions.watchful:cart_pole --baselines
"""

from __future__ import annotations

import math
from typing import Any

from robo_eval.agents import make_agent


class Watchful:
    """Plays as another agent does, and declares.

    Args:
        name: Of that agent.
        **kwargs: Its keywords.
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        self.agent = make_agent(name, **kwargs)

    def begin_trial(self) -> None:
        """Forget how long episodes usually take."""
        self.usual = 0

    def reset(self) -> None:
        """Begin an episode."""
        self.agent.reset()
        self.ticks = 0

    def act(self, observation: Any) -> Any:
        """What the other agent does."""
        self.ticks += 1
        return self.agent.act(observation)

    def declare(self) -> dict[str, float]:
        """How probable a change is, by how much longer or shorter the episode was."""
        self.usual = self.usual or self.ticks
        off = abs(math.log(self.ticks / self.usual))
        return {"probability": off / (off + 0.3)}


def cart_pole() -> Watchful:
    """For CartPole3D."""
    return Watchful("adaptive", memory="trial")


def pick_place() -> Watchful:
    """For PickPlace."""
    return Watchful("pick-place")
