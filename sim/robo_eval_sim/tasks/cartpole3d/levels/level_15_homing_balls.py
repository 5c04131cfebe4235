"""Level 15: balls are pulled to the pole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from robo_eval.core.kinds import Difficulty, Profile
from robo_eval_sim.novelty.base import Fixed, Level, both, novelty
from robo_eval_sim.tasks.cartpole3d.levels.pushing import BallPush, toward

if TYPE_CHECKING:
    from robo_eval_sim.tasks.cartpole3d.start import Vector3

_ABOVE_CART_M = 0.5


class _Pull(BallPush):
    def forces(self, balls: Sequence[Vector3], tick: int) -> list[Vector3]:
        del tick
        world = self.world
        if self.drawn.is_paper:
            target = world.pole_point(world.physics.pole_tip_height_m)[0]
        else:
            x, y, z = world.cart_position
            target = (x, y, z + _ABOVE_CART_M)
        force = self.drawn.parameters["force"]
        return [toward(ball, target, force) for ball in balls]


@novelty(
    "homing_balls",
    level=15,
    words=("block", "force", "toward pole"),
    compat=("block", "force", "toward cart"),
)
class HomingBalls(Level):
    """A force of constant size toward the pole's tip (paper) or above the cart (compat)."""

    effects: ClassVar = {
        Profile.PAPER: "a constant force pulls every ball toward the tip of the pole",
        Profile.COMPAT: "a constant force pulls every ball toward a point 0.5 m above the cart",
    }
    tables: ClassVar = both(
        {
            Difficulty.EASY: {"force": Fixed(10.0, "N")},
            Difficulty.MEDIUM: {"force": Fixed(20.0, "N")},
            Difficulty.HARD: {"force": Fixed(30.0, "N")},
        }
    )
    effect: ClassVar = _Pull
