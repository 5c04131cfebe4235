"""What the state of the arm holds, for the specifications of its tasks."""

from __future__ import annotations

from typing import Final

from robo_eval.core.task import QUATERNION, Part

ARM_STATE: Final = (
    Part(name="joint_position", size=7, unit="rad", about="from base to wrist"),
    Part(name="joint_velocity", size=7, unit="rad/s"),
    Part(name="gripper_width", size=1, unit="m", about="distance of the fingers"),
    Part(name="tip_position", size=3, unit="m", about="between the finger pads, in world"),
    Part(name="tip_quat_xyzw", size=4, unit=QUATERNION, about="in world"),
)
ARM_BODIES: Final = {"panda": "body"}
