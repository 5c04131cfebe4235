"""What lies on the table."""

from __future__ import annotations

import math
from typing import ClassVar

from robo_eval_sim.arm.levels.axis import Axis
from robo_eval_sim.novelty import Range, novelty

_ANYWHERE = Range(0.0, 2 * math.pi, "rad")
_GROWS = "arm and things would be inside each other"
_MOVES = "what the arm may be holding does not jump"


@novelty("object_mass", level=1, words=("object", "mass", "increase"))
class ObjectMass(Axis, effect="the object is heavier"):
    """Mass of the object."""

    parameter = "object_mass_kg"
    unit = "kg"
    span = (0.005, 8.0)


@novelty("object_size", level=2, words=("object", "size", "increase"))
class ObjectSize(Axis, effect="the object is larger"):
    """Edge or diameter of the object; its mass stays."""

    parameter = "object_size_m"
    unit = "m"
    span = (0.015, 0.075)
    no_onset = _GROWS


@novelty("object_shape", level=3, words=("object", "shape", None))
class ObjectShape(Axis, effect="the object is a cylinder (1) or a capsule (2)"):
    """1 is a cylinder that stands upright, 2 a capsule."""

    parameter = "object_shape"
    span = (1, 2)
    is_count = True
    no_onset = _GROWS


@novelty("mass_offset", level=4, words=("object", "balance", None))
class MassOffset(Axis, effect="the object's centre of mass is beside its middle"):
    """Distance of the object's centre of mass from its middle."""

    parameter = "mass_offset_m"
    unit = "m"
    span = (0.001, 0.02)
    drawn: ClassVar = {"mass_direction_rad": _ANYWHERE}


@novelty("friction", level=5, words=("object", "friction", "increase"))
class Friction(Axis, effect="the object is more slippery"):
    """Coefficient between the object and what it touches."""

    parameter = "friction"
    span = (0.02, 2.0)
    falls = True


@novelty("restitution", level=6, words=("object", "bounce", "increase"))
class Restitution(Axis, effect="object and table bounce"):
    """How much object and table bounce."""

    parameter = "restitution"
    span = (0.05, 1.0)


@novelty("distractors", level=7, words=("obstacle", "quantity", "increase"))
class Distractors(Axis, effect="there are further things on the table"):
    """Further things on the table."""

    parameter = "distractors"
    span = (1, 40)
    seeds = ("place_seed",)
    is_count = True
    no_onset = _GROWS


@novelty("goal_shift", level=8, words=("goal", "position", None))
class GoalShift(Axis, effect="the goal moves"):
    """How far the goal moves, at the onset, in a direction in which it can be reached."""

    parameter = "goal_shift_m"
    unit = "m"
    span = (0.01, 0.3)
    drawn: ClassVar = {"goal_direction_rad": _ANYWHERE}


@novelty("path_blocked", level=9, words=("wall", "quantity", "increase"))
class PathBlocked(Axis, effect="a wall stands in the way"):
    """Height of a wall; where it stands is drawn so that the hand has room."""

    parameter = "block_height_m"
    unit = "m"
    span = (0.01, 0.5)
    drawn: ClassVar = {
        "block_x_m": Range(0.3, 0.65, "m"),
        "block_y_m": Range(-0.25, 0.25, "m"),
        "block_turn_rad": Range(0.0, math.pi, "rad"),
    }
    no_onset = _GROWS


@novelty("fixture_shift", level=22, words=("fixture", "position", None))
class FixtureShift(Axis, effect="the fixture stands beside the place that is known of it"):
    """How far the fixture stands beside the place that is known of it."""

    parameter = "fixture_shift_m"
    unit = "m"
    span = (0.001, 0.15)
    drawn: ClassVar = {"fixture_direction_rad": _ANYWHERE}
    no_onset = _MOVES


@novelty("fixture_turn", level=23, words=("fixture", "angle", "increase"))
class FixtureTurn(Axis, effect="the fixture is turned further than is known of it"):
    """How far the fixture is turned beside what is known of it."""

    parameter = "fixture_turn_rad"
    unit = "rad"
    span = (0.005, 0.8)
    no_onset = _MOVES


@novelty("slide_friction", level=24, words=("slide", "friction", "increase"))
class SlideFriction(Axis, effect="what slides runs heavily"):
    """Force that a sliding part needs to move."""

    parameter = "slide_friction_n"
    unit = "N"
    span = (1.5, 100.0)
