"""Level 1: the cart is heavier."""

from __future__ import annotations

from typing import ClassVar

from robo_eval.core.kinds import Difficulty, Profile
from robo_eval_sim.novelty.base import Fixed, Level, Novelty, novelty, same
from robo_eval_sim.tasks.cartpole3d.layout import NOMINAL
from robo_eval_sim.tasks.cartpole3d.physics import Physics


@novelty("cart_mass", level=1, words=("cart", "mass", "increase"), usual=NOMINAL.cart_mass_kg)
class CartMass(Level):
    """Mass of the cart; its inertia scales with it."""

    effects: ClassVar = {
        Profile.PAPER: "the cart is heavier",
        Profile.COMPAT: "the cart weighs 10 kg at every difficulty",
    }
    tables: ClassVar = {
        Profile.PAPER: {
            Difficulty.EASY: {"cart_mass": Fixed(5.0, "kg")},
            Difficulty.MEDIUM: {"cart_mass": Fixed(10.0, "kg")},
            Difficulty.HARD: {"cart_mass": Fixed(50.0, "kg")},
        },
        Profile.COMPAT: same({"cart_mass": Fixed(10.0, "kg")}),
    }

    def physics(self, drawn: Novelty) -> Physics:
        """A heavier cart."""
        return Physics(cart_mass_kg=drawn.parameters["cart_mass"])
