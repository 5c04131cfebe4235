"""Level 13: balls attract each other (paper) or are pushed apart (compat)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from robo_eval.core.kinds import Difficulty, Profile
from robo_eval_sim.novelty.base import Fixed, Level, both, novelty
from robo_eval_sim.tasks.cartpole3d.levels.pushing import BallPush, mean_point, toward

if TYPE_CHECKING:
    from robo_eval_sim.tasks.cartpole3d.start import Vector3


class _Pull(BallPush):
    def forces(self, balls: Sequence[Vector3], tick: int) -> list[Vector3]:
        del tick
        n = len(balls)
        if n < 2:
            return []
        force = self.drawn.parameters["force"]
        # The mean of the others lies beyond the mean of all, on the line from the ball.
        size = force if self.drawn.is_paper else -force
        middle = mean_point(balls)
        return [toward(ball, middle, size) for ball in balls]


@novelty(
    "balls_attract",
    level=13,
    words=("block", "force", "toward block"),
    compat=("block", "force", "away block"),
)
class BallsAttract(Level):
    """A force of constant size between each ball and the others."""

    effects: ClassVar = {
        Profile.PAPER: "balls attract each other: a force toward the mean position of the others",
        Profile.COMPAT: "balls are pushed away from the mean position of all balls",
    }
    tables: ClassVar = both(
        {
            Difficulty.EASY: {"force": Fixed(1.0, "N")},
            Difficulty.MEDIUM: {"force": Fixed(3.0, "N")},
            Difficulty.HARD: {"force": Fixed(5.0, "N")},
        }
    )
    effect: ClassVar = _Pull
