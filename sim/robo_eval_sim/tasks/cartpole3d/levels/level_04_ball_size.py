"""Level 4: balls are larger."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from robo_eval.core.kinds import Difficulty, Profile
from robo_eval_sim.novelty.base import Fixed, Level, Novelty, novelty, same
from robo_eval_sim.tasks.cartpole3d.layout import NOMINAL
from robo_eval_sim.tasks.cartpole3d.levels.placing import place
from robo_eval_sim.tasks.cartpole3d.physics import Physics
from robo_eval_sim.tasks.cartpole3d.start import CART_CLEARANCE_M

if TYPE_CHECKING:
    import numpy as np

    from robo_eval_sim.tasks.cartpole3d.start import Start


@novelty("ball_size", level=4, words=("block", "size", "increase"), usual=NOMINAL.ball_radius_m)
class BallSize(Level):
    """Radius of the balls; their mass stays 1 kg."""

    effects: ClassVar = {
        Profile.PAPER: "balls are larger, of the same mass",
        Profile.COMPAT: (
            "balls have twice the radius and may start inside each other, walls and cart"
        ),
    }
    span: ClassVar = (0.05, 1.75)  # as large as four that surely find room
    tables: ClassVar = {
        Profile.PAPER: {
            Difficulty.EASY: {"ball_radius": Fixed(0.75, "m")},
            Difficulty.MEDIUM: {"ball_radius": Fixed(1.0, "m")},
            Difficulty.HARD: {"ball_radius": Fixed(1.5, "m")},
        },
        Profile.COMPAT: same({"ball_radius": Fixed(1.0, "m")}),
    }

    def arrange(
        self, start: Start, drawn: Novelty, rng: np.random.Generator, *, balls: int | None
    ) -> None:
        """Move balls that would start inside something; the reference leaves them."""
        del balls
        if drawn.is_paper:
            radius = drawn.parameters["ball_radius"]
            clearance = max(CART_CLEARANCE_M, NOMINAL.cart_radius_m + radius)
            place(start, rng, len(start.balls), radius=radius, cart_clearance=clearance)

    def physics(self, drawn: Novelty) -> Physics:
        """Larger balls."""
        return Physics(ball_radius_m=drawn.parameters["ball_radius"])
