"""What specifications of the arm's tasks share: its state, its constants and its channels."""

from __future__ import annotations

from typing import Final

from robo_eval.core.task import QUATERNION, Channel, Constant, Part
from robo_eval_sim.arm.layout import JOINTS, SUBSTEPS, TICK_S
from robo_eval_sim.arm.levels.axis import Axis
from robo_eval_sim.arm.levels.level_body import Delay, Gain, Payload
from robo_eval_sim.arm.levels.level_senses import JointNoise, ObjectNoise
from robo_eval_sim.arm.levels.level_things import Friction, ObjectMass, SlideFriction
from robo_eval_sim.arm.setting import Setting

ARM_STATE: Final = (
    Part(name="joint_position", size=7, unit="rad", about="from base to wrist"),
    Part(name="joint_velocity", size=7, unit="rad/s"),
    Part(name="gripper_width", size=1, unit="m", about="distance of the fingers"),
    Part(name="tip_position", size=3, unit="m", about="between the finger pads, in world"),
    Part(name="tip_quat_xyzw", size=4, unit=QUATERNION, about="in world"),
)
ARM_BODIES: Final = {"panda": "body"}
ARM_CHANNELS: Final = (
    *(Channel(name=joint, unit="rad", noise="joint_noise_rad") for joint in JOINTS),
    Channel(name="gripper_width", unit="m", noise=""),
)
_STAGES: Final[dict[type[Axis], str]] = {
    Gain: "free",
    Delay: "free",
    ObjectMass: "held",
    Payload: "held",
    Friction: "sliding",
    SlideFriction: "sliding",
    JointNoise: "noise",
    ObjectNoise: "noise",
}
"""Axes of novelty whose constant calibration can find, and where it shows."""
_QUANTA: Final = {"delay_s": TICK_S / SUBSTEPS}
_WANTED: Final = 0.05
"""Half-width that is narrow enough, as a share of what is usual."""


def arm_constants(setting: type[Setting] = Setting, *, without: str = "") -> tuple[Constant, ...]:
    """What calibration can find in a task, from its axes of novelty, widened to what is usual.

    Args:
        setting: Of the task; its defaults are what is usual.
        without: A constant that does nothing there.
    """
    found = []
    for axis, stage in _STAGES.items():
        name, (least, high) = axis.parameter, axis.span
        usual, quantum = float(getattr(setting(), name)), _QUANTA.get(name, 0.0)
        if name == without:
            continue
        # What is usual lies inside, or it would look as if the search had met its end.
        low = least if least < usual else 0.0
        found.append(
            Constant(
                name=name,
                unit=axis.unit,
                low=low,
                high=max(high, usual),
                nominal=usual,
                wanted=quantum or _WANTED * usual or least,
                about=(axis.__doc__ or "").rstrip("."),
                stage=stage,
                quantum=quantum,
                is_log=low > 0.0,
            )
        )
    return tuple(found)
