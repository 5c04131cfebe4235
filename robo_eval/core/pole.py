"""When the pole of CartPole3D has fallen: the same rule for simulator and robot."""

from __future__ import annotations

import math
from typing import Final

from robo_eval.core.cartpole3d import POLE_LIMIT_RAD

_SIN_LIMIT: Final = math.sin(POLE_LIMIT_RAD)
_TAN_LIMIT: Final = math.tan(POLE_LIMIT_RAD)


def has_fallen(x: float, y: float, z: float, w: float) -> bool:
    """Whether roll or pitch of a pole with this orientation is beyond the limit.

    With R = Rz Ry Rx, the lowest row of R holds -sin(pitch) and the ratio tan(roll).
    """
    upright = 1.0 - 2.0 * (x * x + y * y)
    return not (
        abs(2.0 * (x * z - w * y)) <= _SIN_LIMIT
        and abs(2.0 * (y * z + w * x)) <= _TAN_LIMIT * upright
    )
