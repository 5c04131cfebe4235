"""What specifications of the arm's tasks share: its state, its constants and its channels."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

from robo_eval.core.task import QUATERNION, Channel, Constant, Part
from robo_eval_sim.arm.layout import JOINTS, SUBSTEPS, TICK_S

if TYPE_CHECKING:
    from robo_eval_sim.arm.levels.axis import Axis
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
_QUANTA: Final = {"delay_s": TICK_S / SUBSTEPS}
_WANTED: Final = 0.05
"""Half-width that is narrow enough, as a share of what is usual."""


@functools.cache
def arm_constants(
    setting: type[Setting] | None = None, *, without: str = ""
) -> tuple[Constant, ...]:
    """What calibration can find in a task, from its axes of novelty, widened to what is usual.

    Args:
        setting: Of the task; its defaults are what is usual. Without, that of every arm.
        without: A constant that does nothing there.
    """
    # Axes are looked for when somebody asks, as levels are.
    from robo_eval_sim.arm.levels import level_body, level_senses, level_things
    from robo_eval_sim.arm.setting import Setting

    defaults = (setting or Setting)()
    stages: dict[type[Axis], str] = {
        level_body.Gain: "free",
        level_body.Delay: "free",
        level_things.ObjectMass: "held",
        level_body.Payload: "loaded",
        level_things.Friction: "sliding",
        level_things.SlideFriction: "sliding",
        level_senses.JointNoise: "noise",
        level_senses.ObjectNoise: "noise",
    }
    found = []
    for axis, stage in stages.items():
        name, (least, high) = axis.parameter, axis.span
        usual, quantum = float(getattr(defaults, name)), _QUANTA.get(name, 0.0)
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
