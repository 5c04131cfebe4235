"""Level 11: some balls start toward the cart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from robo_eval.core.kinds import Difficulty, Profile
from robo_eval_sim.novelty.base import Fixed, Level, Novelty, Range, both, novelty
from robo_eval_sim.tasks.cartpole3d.levels.pushing import toward

if TYPE_CHECKING:
    import numpy as np

    from robo_eval_sim.tasks.cartpole3d.start import Start

AIM_HEIGHT_M = 0.5
_SPEED = Range(0.0, 10.0, "m/s")


@novelty("aimed_balls", level=11, words=("block", "direction", "toward cart"))
class AimedBalls(Level):
    """Each ball is aimed at a point 0.5 m above the cart with a probability."""

    effects: ClassVar = dict.fromkeys(
        Profile, "each ball with a probability starts toward a point 0.5 m above the cart"
    )
    span: ClassVar = (0.01, 1.0)
    no_onset = "it changes how balls start, and nothing later"
    tables: ClassVar = both(
        {
            Difficulty.EASY: {"probability": Fixed(0.25), "speed": _SPEED},
            Difficulty.MEDIUM: {"probability": Fixed(0.5), "speed": _SPEED},
            Difficulty.HARD: {"probability": Fixed(0.75), "speed": _SPEED},
        }
    )

    def sample(
        self, difficulty: Difficulty, profile: Profile, rng: np.random.Generator, *, balls: int
    ) -> dict[str, Any]:
        """Draw who is aimed, and the speed of each who is; none stands for the others."""
        table = self.tables[profile][difficulty]
        probability = table["probability"].draw(rng)
        is_aimed = (rng.random(balls) < probability).tolist()
        speeds = [float(table["speed"].draw(rng)) for _ in range(balls)]
        return {
            "probability": probability,
            "speed": [
                speed if chosen else None for speed, chosen in zip(speeds, is_aimed, strict=True)
            ],
        }

    def arrange(
        self, start: Start, drawn: Novelty, rng: np.random.Generator, *, balls: int | None
    ) -> None:
        """Aim the chosen balls."""
        del rng, balls
        aim = (*start.cart_position, AIM_HEIGHT_M)
        for ball, speed in zip(start.balls, drawn.parameters["speed"], strict=True):
            if speed is not None:
                ball.velocity = toward(ball.position, aim, speed)
