"""Level 8: balls appear where the cart is heading."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from robo_eval.core.kinds import Difficulty, Profile
from robo_eval_sim.novelty.base import Fixed, Novelty, both, novelty
from robo_eval_sim.tasks.cartpole3d.layout import NOMINAL
from robo_eval_sim.tasks.cartpole3d.levels.spawning import Spawner, SpawningLevel

if TYPE_CHECKING:
    import numpy as np

    from robo_eval_sim.tasks.cartpole3d.scene import World
    from robo_eval_sim.tasks.cartpole3d.start import Vector3

_FARTHEST_M = 10.0
_HEIGHT_M = 1.0
_CLEARANCE_M = 0.75
_TRIES = 100
_REACH_M = {
    Profile.PAPER: NOMINAL.arena_half_width_m - NOMINAL.ball_radius_m,  # not inside a wall
    Profile.COMPAT: 4.5,
}
_STILL = (0.0, 0.0, 0.0)


class _Obstacles(Spawner):
    def __init__(self, drawn: Novelty, world: World) -> None:
        super().__init__(drawn, world)
        self._started = self._before = world.cart_position

    def spawn(self, rng: np.random.Generator) -> None:
        cart = self.world.cart_position
        heading = math.atan2(cart[1] - self._before[1], cart[0] - self._before[0])
        self._before = cart
        is_paper = self.drawn.is_paper
        origin, kept_off = (cart, cart) if is_paper else (_STILL, self._started)
        for distance in (_FARTHEST_M * rng.random(_TRIES)).tolist():
            at = (
                origin[0] + distance * math.cos(heading),
                origin[1] + distance * math.sin(heading),
                _HEIGHT_M,
            )
            if self._is_free(at, kept_off):
                self.world.add_ball(at, _STILL)
                return

    def _is_free(self, at: Vector3, cart: Vector3) -> bool:
        if max(abs(at[0]), abs(at[1])) > _REACH_M[self.drawn.profile]:
            return False
        if math.dist(at[:2], cart[:2]) < _CLEARANCE_M:
            return False
        least = 2.0 * NOMINAL.ball_radius_m if self.drawn.is_paper else _CLEARANCE_M
        return all(math.dist(at[:2], ball[:2]) >= least for ball in self.world.ball_positions)


@novelty("obstacles_ahead", level=8, words=("obstacle", "quantity", "increasing"))
class ObstaclesAhead(SpawningLevel):
    """A ball that rests in the air at 1 m appears every N ticks."""

    effects: ClassVar = {
        Profile.PAPER: "every N ticks a resting ball appears ahead of the cart",
        Profile.COMPAT: (
            "every N ticks a resting ball appears, from the origin in the direction the cart moves"
        ),
    }
    tables: ClassVar = both(
        {
            Difficulty.EASY: {"every": Fixed(50, "ticks")},
            Difficulty.MEDIUM: {"every": Fixed(15, "ticks")},
            Difficulty.HARD: {"every": Fixed(7, "ticks")},
        }
    )
    effect: ClassVar = _Obstacles
