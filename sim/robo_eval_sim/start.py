"""How an episode starts: where cart, pole and balls are, and how fast."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from robo_eval.core.cartpole3d import BALL_WIDTH, FIRST_BALL, NOMINAL
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Profile

if TYPE_CHECKING:
    import numpy as np

Vector3 = tuple[float, float, float]
Row = tuple[float, ...]
"""Numbers in the order of the observation, as many as there are."""

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
_MOST: Final = 16
"""Most starts drawn at a time."""
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


@dataclass(slots=True)
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

    @property
    def row(self) -> Row:
        """The numbers in the order of the observation."""
        head = (*self.cart_position, *self.cart_velocity, *self.pole_quat_xyzw)
        balls = [part for ball in self.balls for part in (*ball.position, *ball.velocity)]
        return *head, *self.pole_angular_velocity, float(len(self.balls)), *balls

    @classmethod
    def from_row(cls, row: Row, force: tuple[float, float] | None, tick: int = 0) -> Self:
        """The inverse of `row`."""
        x, y, vx, vy, a, b, c, d, p, q, r, _ = row[:FIRST_BALL]
        starts = range(FIRST_BALL, len(row), BALL_WIDTH)
        balls = [Ball(_triple(row[i : i + 3]), _triple(row[i + 3 : i + 6])) for i in starts]
        return cls((x, y), (vx, vy), force, (a, b, c, d), (p, q, r), balls, tick)

    def as_dict(self) -> dict[str, Any]:
        """As plain data for JSON."""
        return {
            "cart_position": list(self.cart_position),
            "cart_velocity": list(self.cart_velocity),
            "cart_force": None if self.cart_force is None else list(self.cart_force),
            "pole_quat_xyzw": list(self.pole_quat_xyzw),
            "pole_angular_velocity": list(self.pole_angular_velocity),
            "balls": [
                {"position": list(ball.position), "velocity": list(ball.velocity)}
                for ball in self.balls
            ],
            "tick": self.tick,
        }


def _triple(values: Sequence[float]) -> Vector3:
    x, y, z = values
    return x, y, z


class Drawn(NamedTuple):
    """The start of a level-0 episode as it is drawn.

    Attributes:
        row: In the order of the observation.
        force: Force on the cart during the hidden first tick, x, y in newtons.
        level_seed: Seed of what the level draws.
        frame: Direction of the pole, and its angular velocity in its own axes.
    """

    row: Row
    force: tuple[float, float]
    level_seed: int
    frame: tuple[Vector3, Vector3]


class Starts:
    """The starts of an environment's episodes, one after the other.

    Args:
        balls: Number of balls; none draws it.
        profile: In the `paper` profile balls do not overlap each other.
    """

    __slots__ = ("_balls", "_block", "_profile", "_ready", "_rng")

    def __init__(self, balls: int | None = None, profile: Profile = Profile.PAPER) -> None:
        self._balls = balls
        self._profile = profile
        self._rng: np.random.Generator | None = None
        self._ready: list[Drawn] = []
        self._block = 1

    def take(self, rng: np.random.Generator, *, is_fresh: bool = True) -> Drawn:
        """The next start.

        Just after a seed one start is drawn. Later ones are drawn several at a time, more and more
        of them, which takes half the time for each.

        Args:
            rng: Where randomness comes from.
            is_fresh: Whether the generator was just seeded, so that nothing of it is left.
        """
        if is_fresh or rng is not self._rng:
            self._rng, self._ready, self._block = rng, [], 1
        if not self._ready:
            self._ready = self._draw(rng, self._block)
            self._block = min(2 * self._block, _MOST)
        return self._ready.pop()

    def _draw(self, rng: np.random.Generator, count: int) -> list[Drawn]:
        size = _HEAD + _PER_BALL * (BALL_COUNTS[-1] if self._balls is None else self._balls)
        block: list[list[float]] = rng.random((count, size)).tolist()
        return [draw_row(rng, u, balls=self._balls, profile=self._profile) for u in block]


def draw_row(
    rng: np.random.Generator,
    u: list[float],
    *,
    balls: int | None = None,
    profile: Profile = Profile.PAPER,
) -> Drawn:
    """Draw the start of a level-0 episode; levels change it afterwards.

    The same generator gives the same start at every level, so that a level-0 episode with the
    same seed is a matched control. Written out, because this is half of what a reset costs beside
    its tick.

    Args:
        rng: Where further numbers come from if a ball must be drawn again.
        u: Uniform numbers in [0, 1), enough for the balls.
        balls: Number of balls; none draws it.
        profile: In the `paper` profile balls do not overlap each other.

    Raises:
        InputError: If there is no room for so many balls.
    """
    ux, uy, uf, ug, ua, ub, uc, up, uq, un, us = u[:_HEAD]
    x, y = _CART_WIDTH * ux - CART_RANGE_M, _CART_WIDTH * uy - CART_RANGE_M
    a, b, c = _TURN * ua - POLE_QUAT_PART, _TURN * ub - POLE_QUAT_PART, _TURN * uc - POLE_QUAT_PART
    norm = math.sqrt(a * a + b * b + c * c + 1.0)
    count = BALL_COUNTS[int(un * len(BALL_COUNTS))] if balls is None else balls
    row = [x, y, 0.0, 0.0, a / norm, b / norm, c / norm, 1.0 / norm]
    row += _RATE * up - POLE_RATE_RAD_S, _RATE * uq - POLE_RATE_RAD_S, 0.0, float(count)
    clearance = _DIAMETER if profile is Profile.PAPER else 0.0
    for first in range(_HEAD, _HEAD + _PER_BALL * count, _PER_BALL):
        p, q, r, vx, vy, vz, sx, sy, sz = u[first : first + _PER_BALL]
        p, q, r = _XY * p - BALL_XY_M, _XY * q - BALL_XY_M, _LOW + _HEIGHT * r
        if not _is_clear(p, q, r, row, clearance):
            p, q, r = _another_place(rng, row, clearance)
        vx, vy, vz = _SLOW + _FASTER * vx, _SLOW + _FASTER * vy, _SLOW + _FASTER * vz
        row += p, q, r, vx if sx < 0.5 else -vx, vy if sy < 0.5 else -vy, vz if sz < 0.5 else -vz
    force = _FORCE * uf - CART_FORCE_N, _FORCE * ug - CART_FORCE_N
    return Drawn(tuple(row), force, int(us * 2.0**53), pole_frame(row))


def pole_frame(row: Sequence[float]) -> tuple[Vector3, Vector3]:
    """Direction of the pole in world, and its angular velocity in its own axes (rad/s)."""
    x, y, z, w, a, b, c = row[4:11]
    nx, ny, nz = 2.0 * (x * z + y * w), 2.0 * (y * z - x * w), 1.0 - 2.0 * (x * x + y * y)
    return (nx, ny, nz), (
        (1.0 - 2.0 * (y * y + z * z)) * a + 2.0 * (x * y + z * w) * b + 2.0 * (x * z - y * w) * c,
        2.0 * (x * y - z * w) * a + (1.0 - 2.0 * (x * x + z * z)) * b + 2.0 * (y * z + x * w) * c,
        nx * a + ny * b + nz * c,
    )


_CART_WIDTH: Final = 2.0 * CART_RANGE_M
_FORCE: Final = 2.0 * CART_FORCE_N
_TURN: Final = 2.0 * POLE_QUAT_PART
_RATE: Final = 2.0 * POLE_RATE_RAD_S
_XY: Final = 2.0 * BALL_XY_M
_DIAMETER: Final = 2.0 * NOMINAL.ball_radius_m
_LOW: Final = BALL_Z_M[0]
_HEIGHT: Final = BALL_Z_M[1] - BALL_Z_M[0]
_SLOW: Final = BALL_SPEED_M_S[0]
_FASTER: Final = BALL_SPEED_M_S[1] - BALL_SPEED_M_S[0]


def _is_clear(x: float, y: float, z: float, row: Sequence[float], clearance: float) -> bool:
    """As `is_clear`, among the balls that a row holds so far."""
    a, b = x - row[0], y - row[1]
    if a * a + b * b < CART_CLEARANCE_M * CART_CLEARANCE_M:
        return False
    if clearance:
        for i in range(FIRST_BALL, len(row), BALL_WIDTH):
            a, b, c = x - row[i], y - row[i + 1], z - row[i + 2]
            if a * a + b * b + c * c < clearance * clearance:
                return False
    return True


def _another_place(rng: np.random.Generator, row: Sequence[float], clearance: float) -> Vector3:
    """Where a ball can be that was drawn too near to the cart or to another."""
    for _ in range(_TRIES):
        x, y, z = ball_position(rng.random(3).tolist())
        if _is_clear(x, y, z, row, clearance):
            return x, y, z
    raise InputError(
        f"balls: there is no room for more than {(len(row) - FIRST_BALL) // BALL_WIDTH} of them"
    )


def ball_position(u: Sequence[float], radius: float = NOMINAL.ball_radius_m) -> Vector3:
    """A place for a ball from three uniform numbers in [0, 1).

    Balls larger than usual keep off the walls; others start in x, y within 4 m and z from 1 to 9 m.
    """
    a, b, c = u
    reach = min(BALL_XY_M, NOMINAL.arena_half_width_m - radius)
    low = max(BALL_Z_M[0], NOMINAL.arena_floor_m + radius)
    high = min(BALL_Z_M[1], NOMINAL.arena_ceiling_m - radius)
    return 2.0 * reach * a - reach, 2.0 * reach * b - reach, low + (high - low) * c


def is_clear(
    position: Vector3,
    cart: tuple[float, float],
    others: list[Ball],
    clearance: float,
    cart_clearance: float = CART_CLEARANCE_M,
) -> bool:
    """Whether a ball's centre is far enough from the cart (horizontally) and from other balls."""
    x, y, z = position
    a, b = x - cart[0], y - cart[1]
    if a * a + b * b < cart_clearance * cart_clearance:
        return False
    if clearance:
        for other in others:
            p, q, r = other.position
            a, b, c = x - p, y - q, z - r
            if a * a + b * b + c * c < clearance * clearance:
                return False
    return True
