"""How the joints of the arm follow one another, for agents, robots and simulator.

The numbers are those of Franka's description of the Panda, which the pybullet wheel carries; a test
compares them.
"""

from __future__ import annotations

import math
from typing import Final

from robo_eval.agents.kinematics import Chain, Joint
from robo_eval_sim.arm.layout import JOINTS, LOWER_RAD, TIP, UPPER_RAD

_QUARTER: Final = math.pi / 2
_ORIGINS: Final = (
    ((0.0, 0.0, 0.333), (0.0, 0.0, 0.0)),
    ((0.0, 0.0, 0.0), (-_QUARTER, 0.0, 0.0)),
    ((0.0, -0.316, 0.0), (_QUARTER, 0.0, 0.0)),
    ((0.0825, 0.0, 0.0), (_QUARTER, 0.0, 0.0)),
    ((-0.0825, 0.384, 0.0), (-_QUARTER, 0.0, 0.0)),
    ((0.0, 0.0, 0.0), (_QUARTER, 0.0, 0.0)),
    ((0.088, 0.0, 0.0), (_QUARTER, 0.0, 0.0)),
)
CHAIN: Final = Chain(
    [
        *(
            Joint(name=name, xyz=xyz, rpy=rpy, lower=low, upper=high)
            for name, (xyz, rpy), low, high in zip(
                JOINTS, _ORIGINS, LOWER_RAD, UPPER_RAD, strict=True
            )
        ),
        # Flange, hand and half a finger; the fingers move along its y axis.
        Joint(name=TIP, xyz=(0.0, 0.0, 0.107 + 0.105), rpy=(0.0, 0.0, -math.pi / 4), axis=None),
    ]
)
"""The arm from its base to its tip."""
