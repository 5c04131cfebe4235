"""Numbers of the arm that agents, robots and simulator agree on; importing it loads no simulator.

Lengths, limits and the chain are those of Franka's description of the Panda, which the pybullet
wheel carries; a test compares them.
"""

from __future__ import annotations

import math
from typing import Final

TICK_S: Final = 0.05
"""Control period, seconds."""
SUBSTEPS: Final = 12
"""Steps of the engine in a control period."""
JOINTS: Final = tuple(f"panda_joint{number}" for number in range(1, 8))
"""The joints that turn, from base to wrist."""
FINGERS: Final = ("panda_finger_joint1", "panda_finger_joint2")
LOWER_RAD: Final = (-2.9671, -1.8326, -2.9671, -3.1416, -2.9671, -0.0873, -2.9671)
UPPER_RAD: Final = (2.9671, 1.8326, 2.9671, 0.0, 2.9671, 3.8223, 2.9671)
SPEED_RAD_S: Final = (2.175, 2.175, 2.175, 2.175, 2.61, 2.61, 2.61)
"""Greatest speeds of the joints, Franka's."""
ACCELERATION_RAD_S2: Final = (15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0)
"""Greatest accelerations of the joints, Franka's."""
FASTEST_RAD_S: Final = min(SPEED_RAD_S)
"""What no joint exceeds: the engine can bound the joints of an arm by one speed alone."""
FINGER_SPEED_M_S: Final = 0.05
"""Greatest speed of each finger, Franka's."""
WIDTH_M: Final = 0.08
"""Distance of the fingers when the gripper is open."""
HAND_SPEED: Final = (0.5, 1.5)
"""Most that `ee_delta` moves the tip in a second: metres and radians."""
HOME_RAD: Final = (0.0, -math.pi / 4, 0.0, -3 * math.pi / 4, 0.0, math.pi / 2, math.pi / 4)
"""Where an episode begins, but for a small draw."""
TIP: Final = "panda_grasptarget"
"""Link of the description whose frame is the tip: between the finger pads."""

# Observation of every task with the arm, before what the task adds ------------------------------

JOINT_POSITION: Final = slice(0, 7)
JOINT_VELOCITY: Final = slice(7, 14)
GRIPPER_WIDTH: Final = 14
TIP_POSITION: Final = slice(15, 18)
TIP_QUAT_XYZW: Final = slice(18, 22)
ARM_SIZE: Final = 22
