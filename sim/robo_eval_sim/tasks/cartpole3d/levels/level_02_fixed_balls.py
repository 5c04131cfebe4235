"""Level 2: balls stand still and cannot be moved."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from robo_eval.core.kinds import Difficulty, Profile
from robo_eval_sim.novelty.base import Fixed, Level, Novelty, novelty, same
from robo_eval_sim.tasks.cartpole3d.levels.placing import place
from robo_eval_sim.tasks.cartpole3d.physics import LEVEL_0, Physics

if TYPE_CHECKING:
    import numpy as np

    from robo_eval_sim.tasks.cartpole3d.start import Start

_FIXED = Physics(ball_kind="fixed")


@novelty("fixed_balls", level=2, words=("block", "speed", "decrease"))
class FixedBalls(Level):
    """Immovable obstacles: in the cart's plane (paper) or anywhere in the room (compat)."""

    effects: ClassVar = {
        Profile.PAPER: "balls are immovable and stand on the floor in the cart's plane",
        Profile.COMPAT: "balls are immovable, anywhere in the room",
    }
    span: ClassVar = (1, 20)  # so many surely find room
    tables: ClassVar = {
        Profile.PAPER: {
            Difficulty.EASY: {"balls": Fixed(2), "cart_distance": Fixed(2.0, "m")},
            Difficulty.MEDIUM: {"balls": Fixed(3), "cart_distance": Fixed(1.5, "m")},
            Difficulty.HARD: {"balls": Fixed(4), "cart_distance": Fixed(1.0, "m")},
        },
        Profile.COMPAT: same({}),
    }

    def arrange(
        self, start: Start, drawn: Novelty, rng: np.random.Generator, *, balls: int | None
    ) -> None:
        """Stop the balls; in the paper's profile put them on the floor."""
        if drawn.is_paper:
            count = drawn.parameters["balls"] if balls is None else balls
            place(
                start,
                rng,
                count,
                radius=LEVEL_0.ball_radius_m,
                cart_clearance=drawn.parameters["cart_distance"],
                z=LEVEL_0.ball_radius_m,
            )
        for ball in start.balls:
            ball.velocity = (0.0, 0.0, 0.0)

    def physics(self, drawn: Novelty) -> Physics:
        """Balls without mass, which the engine never moves."""
        del drawn
        return _FIXED
