"""What an observation of Drawer holds; importing it loads no simulator."""

from __future__ import annotations

from typing import Final

from robo_eval_sim.arm.layout import ARM_SIZE

ENV: Final = "RoboEval/Drawer-v0"
MAX_TICKS: Final = 200
HANDLE_POSITION: Final = slice(ARM_SIZE, ARM_SIZE + 3)
CABINET_YAW: Final = ARM_SIZE + 3
OPENING: Final = ARM_SIZE + 4
OPENING_SPEED: Final = ARM_SIZE + 5
GOAL_OPENING: Final = ARM_SIZE + 6
OWN_SIZE: Final = 7
RANGE_M: Final = 0.2
"""How far the drawer can be pulled out."""
TOLERANCE_M: Final = 0.01
"""How far from its goal the drawer may stop."""
MOTIONS: Final = ("open", "close")
