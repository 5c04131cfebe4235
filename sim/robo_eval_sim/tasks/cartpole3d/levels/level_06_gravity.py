"""Level 6: gravity is stronger (paper) or begins to act on balls (compat)."""

from __future__ import annotations

from typing import ClassVar

from robo_eval.core.kinds import Difficulty, Profile
from robo_eval_sim.novelty.base import Fixed, Level, Novelty, novelty, same
from robo_eval_sim.tasks.cartpole3d.layout import NOMINAL
from robo_eval_sim.tasks.cartpole3d.physics import Physics


@novelty(
    "gravity",
    level=6,
    words=("location", "gravity", "increase"),
    compat=("block", "gravity", "increase"),
    usual=NOMINAL.gravity_m_s2,
)
class Gravity(Level):
    """Gravity on every body, balls included."""

    effects: ClassVar = {
        Profile.PAPER: "gravity is stronger, and balls feel it too",
        Profile.COMPAT: "balls fall; gravity itself stays as it is",
    }
    tables: ClassVar = {
        Profile.PAPER: {
            Difficulty.EASY: {"gravity": Fixed(20.0, "m/s2")},
            Difficulty.MEDIUM: {"gravity": Fixed(30.0, "m/s2")},
            Difficulty.HARD: {"gravity": Fixed(40.0, "m/s2")},
        },
        Profile.COMPAT: same({"gravity": Fixed(NOMINAL.gravity_m_s2, "m/s2")}),
    }

    def physics(self, drawn: Novelty) -> Physics:
        """Gravity that acts on everything."""
        return Physics(gravity_m_s2=drawn.parameters["gravity"], balls_fall=True)
