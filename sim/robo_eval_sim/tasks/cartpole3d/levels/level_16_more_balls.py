"""Level 16: more and more balls."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from robo_eval.core.kinds import Difficulty, Profile
from robo_eval_sim.novelty.base import Fixed, Novelty, novelty
from robo_eval_sim.tasks.cartpole3d.layout import NOMINAL
from robo_eval_sim.tasks.cartpole3d.levels.spawning import Spawner, SpawningLevel
from robo_eval_sim.tasks.cartpole3d.start import Ball, ball_position, is_clear

if TYPE_CHECKING:
    import numpy as np

    from robo_eval_sim.tasks.cartpole3d.scene import World

_SPEED_M_S = (3.0, 5.0)
_TRIES = 100


class _MoreBalls(Spawner):
    def __init__(self, drawn: Novelty, world: World) -> None:
        super().__init__(drawn, world)
        self._started = world.cart_position

    def spawn(self, rng: np.random.Generator) -> None:
        is_paper = self.drawn.is_paper
        cart = self.world.cart_position if is_paper else self._started
        clearance = 2.0 * NOMINAL.ball_radius_m if is_paper else 0.0
        others = [Ball(position=position) for position in self.world.ball_positions]
        for place in rng.random((_TRIES, 3)).tolist():
            position = ball_position(place)
            if is_clear(position, cart[:2], others, clearance):
                signs = [1.0 if draw < 0.5 else -1.0 for draw in rng.random(3)]
                speeds = rng.uniform(*_SPEED_M_S, size=3).tolist()
                velocity = [sign * speed for sign, speed in zip(signs, speeds, strict=True)]
                self.world.add_ball(position, velocity)
                return


@novelty("more_balls", level=16, words=("block", "quantity", "increasing"))
class MoreBalls(SpawningLevel):
    """A moving ball appears every N ticks, placed as at the start."""

    effects: ClassVar = dict.fromkeys(
        Profile, "every N ticks a moving ball appears (3 to 5 m/s an axis)"
    )
    tables: ClassVar = {
        Profile.PAPER: {
            Difficulty.EASY: {"every": Fixed(20, "ticks")},
            Difficulty.MEDIUM: {"every": Fixed(10, "ticks")},
            Difficulty.HARD: {"every": Fixed(5, "ticks")},
        },
        Profile.COMPAT: {
            Difficulty.EASY: {"every": Fixed(3, "ticks")},
            Difficulty.MEDIUM: {"every": Fixed(2, "ticks")},
            Difficulty.HARD: {"every": Fixed(1, "ticks")},
        },
    }
    effect: ClassVar = _MoreBalls
