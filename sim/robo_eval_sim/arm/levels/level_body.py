"""The arm, and what acts on it."""

from __future__ import annotations

import math
from typing import ClassVar

from robo_eval_sim.arm.levels.axis import Axis
from robo_eval_sim.novelty import Range, novelty

_ANYWHERE = Range(0.0, 2 * math.pi, "rad")


@novelty("payload", level=10, words=("hand", "mass", "increase"))
class Payload(Axis, effect="the hand carries a load"):
    """What the hand weighs more."""

    parameter = "payload_kg"
    unit = "kg"
    span = (0.05, 30.0)


@novelty("gravity_tilt", level=11, words=("gravity", "angle", "increase"))
class GravityTilt(Axis, effect="gravity leans"):
    """Angle between gravity and the vertical."""

    parameter = "tilt_rad"
    unit = "rad"
    span = (0.01, 1.5)
    drawn: ClassVar = {"tilt_direction_rad": _ANYWHERE}


@novelty("delay", level=12, words=("action", "delay", "increase"))
class Delay(Axis, effect="commands act later"):
    """How much later a command acts."""

    parameter = "delay_s"
    unit = "s"
    span = (0.004, 2.0)


@novelty("gain", level=13, words=("action", "size", "increase"))
class Gain(Axis, effect="commands are carried out in part"):
    """Share of a commanded change of position that is carried out."""

    parameter = "gain"
    span = (0.02, 3.0)
    falls = True


@novelty("backlash", level=14, words=("joint", "play", "increase"))
class Backlash(Axis, effect="the joints have play"):
    """Play of every joint."""

    parameter = "backlash_rad"
    unit = "rad"
    span = (0.001, 0.5)


@novelty("gripper_wear", level=15, words=("gripper", "force", "increase"))
class GripperWear(Axis, effect="the gripper is weaker"):
    """Force of the gripper as a share of the usual one."""

    parameter = "grip"
    span = (0.001, 2.0)
    falls = True
