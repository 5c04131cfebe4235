"""Level 3: all balls start toward one point, equally fast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from robo_eval.core.kinds import Difficulty, Profile
from robo_eval_sim.novelty.base import Level, Novelty, Range, novelty, same
from robo_eval_sim.tasks.cartpole3d.levels.pushing import toward
from robo_eval_sim.tasks.cartpole3d.start import BALL_XY_M, BALL_Z_M

if TYPE_CHECKING:
    import numpy as np

    from robo_eval_sim.tasks.cartpole3d.start import Start


@novelty("common_target", level=3, words=("block", "direction", "toward location"))
class CommonTarget(Level):
    """One point and one speed for all balls, both drawn once an episode."""

    effects: ClassVar = dict.fromkeys(
        Profile, "all balls start toward one random point with one common speed"
    )
    tables: ClassVar = {
        Profile.PAPER: {
            Difficulty.EASY: {"speed": Range(2.0, 5.0, "m/s")},
            Difficulty.MEDIUM: {"speed": Range(5.0, 8.0, "m/s")},
            Difficulty.HARD: {"speed": Range(8.0, 12.0, "m/s")},
        },
        Profile.COMPAT: same({"speed": Range(0.0, 10.0, "m/s")}),
    }

    no_onset = "it changes how balls start, and nothing later"

    def sample(
        self, difficulty: Difficulty, profile: Profile, rng: np.random.Generator, *, balls: int
    ) -> dict[str, Any]:
        """Draw the speed and the point."""
        x, y = rng.uniform(-BALL_XY_M, BALL_XY_M, size=2).tolist()
        drawn = super().sample(difficulty, profile, rng, balls=balls)
        return {**drawn, "target": [x, y, float(rng.uniform(*BALL_Z_M))]}

    def arrange(
        self, start: Start, drawn: Novelty, rng: np.random.Generator, *, balls: int | None
    ) -> None:
        """Turn the balls to the point."""
        del rng, balls
        for ball in start.balls:
            ball.velocity = toward(
                ball.position, drawn.parameters["target"], drawn.parameters["speed"]
            )
