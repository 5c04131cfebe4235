"""Balls that appear during an episode, as several levels have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from robo_eval.core.kinds import Difficulty, Profile
from robo_eval_sim.novelty.base import Effect, Level, Novelty
from robo_eval_sim.tasks.cartpole3d.layout import BALL_SLOTS, EPISODE_TICKS
from robo_eval_sim.tasks.cartpole3d.physics import Physics
from robo_eval_sim.tasks.cartpole3d.start import BALL_COUNTS

if TYPE_CHECKING:
    import numpy as np

    from robo_eval_sim.tasks.cartpole3d.scene import World

_SEED = "spawn_seed"


class Spawner(Effect[Any]):
    """Calls `spawn` every N ticks, N being the parameter `every`."""

    world: World

    def after(self, tick: int) -> None:
        """Let something appear if it is time."""
        if tick % self.drawn.parameters["every"] == 0:
            import numpy as np  # the list of levels answers without it

            # A generator for each tick: to go on from a tick, nothing before it matters.
            self.spawn(np.random.default_rng([self.drawn.parameters[_SEED], tick]))

    def spawn(self, rng: np.random.Generator) -> None:
        """Let something appear."""
        raise NotImplementedError


class SpawningLevel(Level):
    """A level whose effect is a `Spawner`; it logs the seed of what appears."""

    def sample(
        self, difficulty: Difficulty, profile: Profile, rng: np.random.Generator, *, balls: int
    ) -> dict[str, Any]:
        """Draw the parameters and the seed."""
        drawn = super().sample(difficulty, profile, rng, balls=balls)
        return {**drawn, _SEED: int(rng.integers(2**32))}

    def physics(self, drawn: Novelty) -> Physics:
        """Room for all balls that can appear, as far as an observation shows them."""
        most = BALL_COUNTS[-1] + EPISODE_TICKS // drawn.parameters["every"]
        return Physics(pool=min(most, BALL_SLOTS[drawn.profile]))
