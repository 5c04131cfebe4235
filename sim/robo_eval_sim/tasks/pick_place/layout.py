"""What an observation of PickPlace holds; importing it loads no simulator."""

from __future__ import annotations

from typing import Final

from robo_eval_sim.arm.layout import ARM_SIZE

ENV: Final = "RoboEval/PickPlace-v0"
MAX_TICKS: Final = 200
OBJECT_POSITION: Final = slice(ARM_SIZE, ARM_SIZE + 3)
OBJECT_QUAT_XYZW: Final = slice(ARM_SIZE + 3, ARM_SIZE + 7)
OBJECT_VELOCITY: Final = slice(ARM_SIZE + 7, ARM_SIZE + 10)
OBJECT_ANGULAR_VELOCITY: Final = slice(ARM_SIZE + 10, ARM_SIZE + 13)
GOAL_POSITION: Final = slice(ARM_SIZE + 13, ARM_SIZE + 15)
OWN_SIZE: Final = 15
TOLERANCE_M: Final = 0.02
"""How far from its goal the thing may lie, horizontally."""
