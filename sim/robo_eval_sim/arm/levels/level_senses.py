"""What is seen of the world."""

from __future__ import annotations

import math
from typing import ClassVar

from robo_eval_sim.arm.levels.axis import Axis
from robo_eval_sim.novelty import Range, novelty

_ANYWHERE = Range(0.0, 2 * math.pi, "rad")


@novelty("joint_noise", level=16, words=("joint", "noise", "increase"))
class JointNoise(Axis, effect="joints are read with noise"):
    """Standard deviation of what is read of each joint."""

    parameter = "joint_noise_rad"
    unit = "rad"
    span = (0.0005, 0.5)
    seeds = ("noise_seed",)


@novelty("object_noise", level=17, words=("object", "noise", "increase"))
class ObjectNoise(Axis, effect="things are seen with noise"):
    """Standard deviation of each coordinate read of things."""

    parameter = "object_noise_m"
    unit = "m"
    span = (0.0005, 0.2)
    seeds = ("noise_seed",)


@novelty("object_bias", level=18, words=("object", "bias", "increase"))
class ObjectBias(Axis, effect="things are seen beside their place"):
    """How far beside their place things are seen."""

    parameter = "object_bias_m"
    unit = "m"
    span = (0.001, 0.2)
    drawn: ClassVar = {"bias_direction_rad": _ANYWHERE}


@novelty("camera_shift", level=19, words=("camera", "position", None))
class CameraShift(Axis, effect="the camera has moved"):
    """How far the camera has moved sideways."""

    parameter = "camera_shift_m"
    unit = "m"
    span = (0.005, 0.5)


@novelty("camera_turn", level=20, words=("camera", "angle", "increase"))
class CameraTurn(Axis, effect="the camera has turned"):
    """How far the camera has turned about its axis of sight."""

    parameter = "camera_turn_rad"
    unit = "rad"
    span = (0.01, 1.5)


@novelty("light", level=21, words=("light", "value", "increase"))
class Light(Axis, effect="the light is weaker or stronger"):
    """Brightness as a share of the usual one."""

    parameter = "light"
    span = (0.05, 3.0)
    falls = True


@novelty("texture", level=25, words=("table", "texture", "increase"))
class Texture(Axis, effect="the table has squares of 5 cm"):
    """Contrast of dark and light squares."""

    parameter = "texture"
    span = (0.02, 1.0)


@novelty("light_turn", level=26, words=("light", "angle", "increase"))
class LightTurn(Axis, effect="the light comes from elsewhere"):
    """How far the direction of the light has turned about the vertical."""

    parameter = "light_turn_rad"
    unit = "rad"
    span = (0.05, math.pi)


@novelty("joint_bias", level=27, words=("joint", "bias", "increase"))
class JointBias(Axis, effect="joints are read beside their position"):
    """How far beside its position each joint is read, to a side that is drawn."""

    parameter = "joint_bias_rad"
    unit = "rad"
    span = (0.0005, 0.5)
    seeds = ("bias_seed",)
