"""Level 12: balls gain speed when they bounce."""

from __future__ import annotations

import math
from typing import ClassVar

from robo_eval.core.kinds import Difficulty, Profile
from robo_eval_sim.novelty.base import Level, Novelty, Range, novelty
from robo_eval_sim.tasks.cartpole3d.physics import Physics


def _tables(name: str) -> dict[Difficulty, dict[str, Range]]:
    return {
        Difficulty.EASY: {name: Range(1.05, 1.15)},
        Difficulty.MEDIUM: {name: Range(1.20, 1.30)},
        Difficulty.HARD: {name: Range(1.35, 1.45)},
    }


@novelty("restitution", level=12, words=("block", "bounce", "increase"), usual=1.0)
class Restitution(Level):
    """Restitution above 1 where a ball meets a wall or a ball.

    The engine multiplies the coefficients of both bodies. The paper's profile gives the product,
    the compat profile the coefficient of each body.
    """

    effects: ClassVar = {
        Profile.PAPER: "balls leave walls and each other faster than they came",
        Profile.COMPAT: "as in the paper, with the square of the drawn coefficient",
    }
    tables: ClassVar = {
        Profile.PAPER: _tables("restitution"),
        Profile.COMPAT: _tables("coefficient"),
    }

    def physics(self, drawn: Novelty) -> Physics:
        """Livelier walls and balls."""
        if drawn.is_paper:
            each = math.sqrt(drawn.parameters["restitution"])
        else:
            each = drawn.parameters["coefficient"]
        return Physics(wall_restitution=each, ball_restitution=each)
