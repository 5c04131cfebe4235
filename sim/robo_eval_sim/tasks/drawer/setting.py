"""What novelty can change about the arm and its drawer."""

from __future__ import annotations

from dataclasses import dataclass

from robo_eval_sim.arm.setting import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawerSetting(Setting):
    """As `Setting`; the object is the drawer.

    Attributes:
        object_mass_kg: Mass of the drawer.
    """

    object_mass_kg: float = 0.55
