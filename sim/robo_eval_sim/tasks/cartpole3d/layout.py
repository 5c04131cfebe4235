"""What simulator, robot and agents of CartPole3D share: layout, actions, nominal values.

Frames follow REP-103: world x forward, y left, z up; right-handed; SI units.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from robo_eval.core.errors import InputError

ENV: Final = "RoboEval/CartPole3D-v0"

TICK_S: Final = 0.02
"""Control and physics period, seconds."""
EPISODE_TICKS: Final = 200
"""Ticks of a full episode (4 s)."""
POLE_LIMIT_RAD: Final = 0.17453292519943295
"""Roll or pitch of the pole at which an episode ends: 10 degrees, each axis by itself."""
_SIN_LIMIT: Final = math.sin(POLE_LIMIT_RAD)
_TAN_LIMIT: Final = math.tan(POLE_LIMIT_RAD)
PUSH_N: Final = 10.0
"""Force an action applies to the cart for one tick, newtons."""


class Action(IntEnum):
    """Discrete actions and the world direction of their push."""

    NOTHING = 0
    RIGHT = 1
    LEFT = 2
    FORWARD = 3
    BACKWARD = 4


PUSHES: Final[tuple[tuple[float, float], ...]] = (
    (0.0, 0.0),
    (PUSH_N, 0.0),
    (-PUSH_N, 0.0),
    (0.0, PUSH_N),
    (0.0, -PUSH_N),
)
"""Force (x, y) in world axes of each action, newtons."""

CART_POSITION: Final = slice(0, 2)
CART_VELOCITY: Final = slice(2, 4)
POLE_QUAT_XYZW: Final = slice(4, 8)
POLE_ANGULAR_VELOCITY: Final = slice(8, 11)
BALL_COUNT: Final = 11
FIRST_BALL: Final = 12
BALL_WIDTH: Final = 6
BALL_SLOTS: Final[dict[str, int]] = {"paper": 44, "compat": 204}
"""Most balls there can be, and so the number of ball slots of the observation, by profile."""


def observation_size(profile: str) -> int:
    """Length of the observation vector (float32): 12 numbers, 6 a ball slot, 1 a slot of mask.

    Layout: cart x, y (m); cart vx, vy (m/s); pole orientation quaternion x, y, z, w in world;
    pole angular velocity (rad/s, world axes); number of balls; then for each slot position
    (m) and velocity (m/s) of its ball, world axes; last the mask: for each slot 1 if there is a
    ball, else 0. Slots without a ball hold 0.

    Example:
        >>> observation_size("paper")
        320
    """
    return FIRST_BALL + (BALL_WIDTH + 1) * BALL_SLOTS[profile]


def ball_mask(profile: str) -> slice:
    """Where the mask of the ball slots is.

    Example:
        >>> ball_mask("paper")
        slice(276, 320, None)
    """
    slots = BALL_SLOTS[profile]
    first = FIRST_BALL + BALL_WIDTH * slots
    return slice(first, first + slots)


@dataclass(frozen=True, slots=True, kw_only=True)
class NominalParameters:
    """Level-0 physics, measured on the public reference program (SI units)."""

    gravity_m_s2: float = 9.8
    cart_mass_kg: float = 1.0
    cart_radius_m: float = 0.5
    cart_inertia_kg_m2: tuple[float, float, float] = (0.0878727, 0.0878727, 0.1686727)
    pivot_height_m: float = 0.2
    pole_mass_kg: float = 0.1
    pole_length_m: float = 1.0
    pole_radius_m: float = 0.03
    pole_com_height_m: float = 1.0
    """Centre of mass above the pivot: near the top of the pole."""
    pole_inertia_kg_m2: tuple[float, float, float] = (0.00846993, 0.00846993, 7.26e-5)
    """Principal moments about the centre of mass; the last is about the pole's own axis."""
    ball_radius_m: float = 0.5
    ball_mass_kg: float = 1.0
    damping: float = 0.04
    """Force -damping m v (1 + |v|) and torque -damping I w (1 + |w|) on every moving body."""
    arena_half_width_m: float = 4.95
    arena_floor_m: float = -0.05
    arena_ceiling_m: float = 9.95


NOMINAL: Final = NominalParameters()


def action_index(action: Any) -> int:
    """Number of an action, whatever integer it is: Python's, NumPy's, or an array of no dimension.

    Networks of Stable-Baselines3 answer with the last.

    Raises:
        InputError: If it is none of 0 to 4.

    Example:
        >>> action_index(2)
        2
    """
    try:
        if not isinstance(action, bool):
            index = operator.index(action)
            if 0 <= index < len(PUSHES):
                return index
    except TypeError:
        pass
    raise InputError(
        f"action: a whole number from 0 to {len(PUSHES) - 1} is needed, given {action!r:.80}"
    )


def has_fallen(x: float, y: float, z: float, w: float) -> bool:
    """Whether roll or pitch of a pole with this orientation is beyond the limit.

    The same rule for simulator and robot. With R = Rz Ry Rx, the lowest row of R holds -sin(pitch)
    and the ratio tan(roll).
    """
    upright = 1.0 - 2.0 * (x * x + y * y)
    return not (
        abs(2.0 * (x * z - w * y)) <= _SIN_LIMIT
        and abs(2.0 * (y * z + w * x)) <= _TAN_LIMIT * upright
    )
