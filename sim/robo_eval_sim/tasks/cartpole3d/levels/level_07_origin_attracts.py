"""Level 7: balls are pulled to the origin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from robo_eval.core.kinds import Difficulty, Profile
from robo_eval_sim.novelty.base import Fixed, Level, both, novelty
from robo_eval_sim.tasks.cartpole3d.levels.pushing import BallPush, toward

if TYPE_CHECKING:
    from robo_eval_sim.tasks.cartpole3d.start import Vector3

_ORIGIN = (0.0, 0.0, 0.0)


class _Pull(BallPush):
    def forces(self, balls: Sequence[Vector3], tick: int) -> list[Vector3]:
        del tick
        force = self.drawn.parameters["force"]
        return [toward(ball, _ORIGIN, force) for ball in balls]


@novelty("origin_attracts", level=7, words=("block", "force", "toward location"))
class OriginAttracts(Level):
    """A force of constant size toward the middle of the floor."""

    effects: ClassVar = dict.fromkeys(
        Profile, "a constant force pulls every ball toward (0, 0, 0), the middle of the floor"
    )
    tables: ClassVar = both(
        {
            Difficulty.EASY: {"force": Fixed(15.0, "N")},
            Difficulty.MEDIUM: {"force": Fixed(25.0, "N")},
            Difficulty.HARD: {"force": Fixed(35.0, "N")},
        }
    )
    effect: ClassVar = _Pull
