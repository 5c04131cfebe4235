"""Level 5: balls push each other apart (paper) or are pulled together (compat)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from robo_eval.core.kinds import Difficulty, Profile
from robo_eval_sim.novelty.base import Fixed, Level, Novelty, Range, novelty, same
from robo_eval_sim.tasks.cartpole3d.layout import EPISODE_TICKS
from robo_eval_sim.tasks.cartpole3d.levels.pushing import BallPush, mean_point, toward

if TYPE_CHECKING:
    import numpy as np

    from robo_eval_sim.tasks.cartpole3d.scene import World
    from robo_eval_sim.tasks.cartpole3d.start import Vector3

_SEED = "force_seed"


class _Push(BallPush):
    def __init__(self, drawn: Novelty, world: World) -> None:
        super().__init__(drawn, world)
        force = drawn.parameters["force"]
        if drawn.is_paper:
            self._sizes = [-force] * (EPISODE_TICKS + 1)
        else:
            import numpy as np  # the list of levels answers without it

            # All ticks at once, so that a tick's force depends on nothing but its number.
            rng = np.random.default_rng(drawn.parameters[_SEED])
            low, high = force
            self._sizes = rng.uniform(low, high, EPISODE_TICKS + 1).tolist()

    def forces(self, balls: Sequence[Vector3], tick: int) -> list[Vector3]:
        if len(balls) < 2:
            return []
        middle = mean_point(balls)
        size = self._sizes[tick + 1]
        return [toward(ball, middle, size) for ball in balls]


@novelty(
    "balls_apart",
    level=5,
    words=("block", "force", "away block"),
    compat=("block", "force", "toward block"),
)
class BallsApart(Level):
    """A force on each ball along the line to the mean position of all."""

    effects: ClassVar = {
        Profile.PAPER: "balls push each other apart: a force away from their mean position",
        Profile.COMPAT: "balls are pulled toward their mean position, by a force drawn each tick",
    }
    tables: ClassVar = {
        Profile.PAPER: {
            Difficulty.EASY: {"force": Fixed(2.0, "N")},
            Difficulty.MEDIUM: {"force": Fixed(4.0, "N")},
            Difficulty.HARD: {"force": Fixed(6.0, "N")},
        },
        Profile.COMPAT: same({"force": Range(0.0, 6.0, "N")}),
    }
    effect: ClassVar = _Push

    def sample(
        self, difficulty: Difficulty, profile: Profile, rng: np.random.Generator, *, balls: int
    ) -> dict[str, Any]:
        """The force, or its range and the seed of its draws."""
        entry = self.tables[profile][difficulty]["force"]
        if isinstance(entry, Fixed):
            return super().sample(difficulty, profile, rng, balls=balls)
        return {"force": [entry.low, entry.high], _SEED: int(rng.integers(2**32))}
