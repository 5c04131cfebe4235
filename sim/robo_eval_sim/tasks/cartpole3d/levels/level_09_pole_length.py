"""Level 9: the pole is longer."""

from __future__ import annotations

from typing import ClassVar

from robo_eval.core.kinds import Difficulty, Profile
from robo_eval_sim.novelty.base import Fixed, Level, Novelty, novelty
from robo_eval_sim.tasks.cartpole3d.layout import NOMINAL
from robo_eval_sim.tasks.cartpole3d.physics import Physics


@novelty("pole_length", level=9, words=("pole", "size", "increase"), usual=1.0)
class PoleLength(Level):
    """Length of the pole, with its mass and centre of mass (paper) or without (compat)."""

    effects: ClassVar = {
        Profile.PAPER: "the pole is longer; mass and height of its centre of mass scale with it",
        Profile.COMPAT: "the pole is longer; mass and centre of mass stay, inertia and reach grow",
    }
    tables: ClassVar = {
        Profile.PAPER: {
            Difficulty.EASY: {"factor": Fixed(1.5)},
            Difficulty.MEDIUM: {"factor": Fixed(2.0)},
            Difficulty.HARD: {"factor": Fixed(3.0)},
        },
        Profile.COMPAT: {
            Difficulty.EASY: {"pole_length": Fixed(3.0, "m")},
            Difficulty.MEDIUM: {"pole_length": Fixed(5.0, "m")},
            Difficulty.HARD: {"pole_length": Fixed(8.0, "m")},
        },
    }

    def physics(self, drawn: Novelty) -> Physics:
        """A longer pole."""
        if not drawn.is_paper:
            return Physics(pole_length_m=drawn.parameters["pole_length"])
        factor = drawn.parameters["factor"]
        return Physics(
            pole_length_m=factor * NOMINAL.pole_length_m,
            pole_com_height_m=factor * NOMINAL.pole_com_height_m,
            pole_mass_kg=factor * NOMINAL.pole_mass_kg,
        )
