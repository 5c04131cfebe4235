"""How an episode starts: where cart, pole and balls are, and how fast."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self

from robo_eval.core.cartpole3d import NOMINAL
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Profile

if TYPE_CHECKING:
    import numpy as np

Vector3 = tuple[float, float, float]

CART_RANGE_M: Final = 3.0
CART_FORCE_N: Final = 1.0
POLE_QUAT_PART: Final = 0.01
POLE_RATE_RAD_S: Final = 0.01
BALL_COUNTS: Final = (2, 3, 4)
BALL_XY_M: Final = 4.0
BALL_Z_M: Final = (1.0, 9.0)
BALL_SPEED_M_S: Final = (6.0, 10.0)
CART_CLEARANCE_M: Final = 1.0
"""Least horizontal distance of a ball from the cart."""
_HEAD: Final = 11
_PER_BALL: Final = 9
_TRIES: Final = 1000


@dataclass(slots=True)
class Ball:
    """One ball at the start.

    Attributes:
        position: Centre in world, metres.
        velocity: In world, m/s.
    """

    position: Vector3
    velocity: Vector3 = (0.0, 0.0, 0.0)


@dataclass(slots=True, kw_only=True)
class Start:
    """Everything drawn before the first tick.

    Attributes:
        cart_position: x, y in metres.
        cart_velocity: x, y in m/s.
        cart_force: Force on the cart during the hidden first tick, x, y in newtons; none if the
            episode starts from a given physical state, which has no hidden tick.
        pole_quat_xyzw: Orientation of the pole in world.
        pole_angular_velocity: In world axes, rad/s.
        balls: The balls in the room.
        tick: Ticks that have already passed.
    """

    cart_position: tuple[float, float] = (0.0, 0.0)
    cart_velocity: tuple[float, float] = (0.0, 0.0)
    cart_force: tuple[float, float] | None = None
    pole_quat_xyzw: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 1.0)
    pole_angular_velocity: Vector3 = (0.0, 0.0, 0.0)
    balls: list[Ball] = field(default_factory=list)
    tick: int = 0

    def as_dict(self) -> dict[str, Any]:
        """As plain data for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The inverse of `as_dict`, also after a round trip through JSON."""
        force = data["cart_force"]
        x, y, z, w = data["pole_quat_xyzw"]
        return cls(
            cart_position=_pair(data["cart_position"]),
            cart_velocity=_pair(data["cart_velocity"]),
            cart_force=None if force is None else _pair(force),
            pole_quat_xyzw=(x, y, z, w),
            pole_angular_velocity=_triple(data["pole_angular_velocity"]),
            balls=[
                Ball(_triple(ball["position"]), _triple(ball["velocity"])) for ball in data["balls"]
            ],
            tick=int(data["tick"]),
        )


def _pair(values: Any) -> tuple[float, float]:  # noqa: ANN401 - from JSON
    x, y = values
    return float(x), float(y)


def _triple(values: Any) -> Vector3:  # noqa: ANN401 - from JSON
    x, y, z = values
    return float(x), float(y), float(z)


def draw_start(
    rng: np.random.Generator, *, balls: int | None = None, profile: Profile = Profile.PAPER
) -> tuple[Start, int]:
    """Draw the start of a level-0 episode; levels change it afterwards.

    The same generator gives the same start at every level, so that a level-0 episode with the
    same seed is a matched control.

    Args:
        rng: Where randomness comes from.
        balls: Number of balls; none draws it.
        profile: In the `paper` profile balls do not overlap each other.

    Returns:
        The start, and the seed of what the level draws.

    Raises:
        InputError: If there is no room for so many balls.
    """
    slots = BALL_COUNTS[-1] if balls is None else balls
    # One call for all numbers: for so few, calls cost more than numbers.
    u = rng.random(_HEAD + _PER_BALL * slots).tolist()
    cart = x, y = 2.0 * CART_RANGE_M * u[0] - CART_RANGE_M, 2.0 * CART_RANGE_M * u[1] - CART_RANGE_M
    count = BALL_COUNTS[int(u[9] * len(BALL_COUNTS))] if balls is None else balls
    clearance = 2.0 * NOMINAL.ball_radius_m if profile is Profile.PAPER else 0.0
    placed: list[Ball] = []
    for first in range(_HEAD, _HEAD + _PER_BALL * count, _PER_BALL):
        position = ball_position(u[first : first + 3])
        tries = 0
        while not is_clear(position, cart, placed, clearance):
            tries += 1
            if tries > _TRIES:
                raise InputError(f"balls: there is no room for {count} balls, fewer would do")
            position = ball_position(rng.random(3).tolist())
        placed.append(Ball(position, _ball_velocity(u[first + 3 : first + _PER_BALL])))
    start = Start(
        cart_position=(x, y),
        cart_force=(
            2.0 * CART_FORCE_N * u[2] - CART_FORCE_N,
            2.0 * CART_FORCE_N * u[3] - CART_FORCE_N,
        ),
        pole_quat_xyzw=_small_turn(u[4], u[5], u[6]),
        pole_angular_velocity=(
            2.0 * POLE_RATE_RAD_S * u[7] - POLE_RATE_RAD_S,
            2.0 * POLE_RATE_RAD_S * u[8] - POLE_RATE_RAD_S,
            0.0,
        ),
        balls=placed,
    )
    return start, int(u[10] * 2.0**53)


def _small_turn(u: float, v: float, w: float) -> tuple[float, float, float, float]:
    """A quaternion along (a, b, c, 1) with small a, b, c."""
    scale = 2.0 * POLE_QUAT_PART
    a, b, c = scale * u - POLE_QUAT_PART, scale * v - POLE_QUAT_PART, scale * w - POLE_QUAT_PART
    norm = math.sqrt(a * a + b * b + c * c + 1.0)
    return a / norm, b / norm, c / norm, 1.0 / norm


def ball_position(u: Sequence[float], radius: float = NOMINAL.ball_radius_m) -> Vector3:
    """A place for a ball from three uniform numbers in [0, 1).

    Balls larger than usual keep off the walls; others start in x, y within 4 m and z from 1 to 9 m.
    """
    a, b, c = u
    reach, low, high = BALL_XY_M, *BALL_Z_M
    if radius > NOMINAL.ball_radius_m:
        reach = min(reach, NOMINAL.arena_half_width_m - radius)
        low = max(low, NOMINAL.arena_floor_m + radius)
        high = min(high, NOMINAL.arena_ceiling_m - radius)
    return 2.0 * reach * a - reach, 2.0 * reach * b - reach, low + (high - low) * c


def _ball_velocity(u: Sequence[float]) -> Vector3:
    """Speed along each axis from three numbers in [0, 1), signs from three more."""
    a, b, c, i, j, k = u
    low, high = BALL_SPEED_M_S
    width = high - low
    return (
        low + width * a if i < 0.5 else -low - width * a,
        low + width * b if j < 0.5 else -low - width * b,
        low + width * c if k < 0.5 else -low - width * c,
    )


def is_clear(
    position: Vector3,
    cart: tuple[float, float],
    others: list[Ball],
    clearance: float,
    cart_clearance: float = CART_CLEARANCE_M,
) -> bool:
    """Whether a ball's centre is far enough from the cart (horizontally) and from other balls."""
    x, y, z = position
    if (x - cart[0]) ** 2 + (y - cart[1]) ** 2 < cart_clearance * cart_clearance:
        return False
    if clearance:
        for other in others:
            a, b, c = other.position
            if (x - a) ** 2 + (y - b) ** 2 + (z - c) ** 2 < clearance * clearance:
                return False
    return True
