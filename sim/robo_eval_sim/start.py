"""How an episode starts: where cart, pole and balls are, and how fast."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from robo_eval.core.cartpole3d import BALL_WIDTH, FIRST_BALL, NOMINAL
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Profile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
_MOST: Final = 64
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

    __slots__ = ("_balls", "_block", "_profile", "_ready", "_rng", "_size")

    def __init__(self, balls: int | None = None, profile: Profile = Profile.PAPER) -> None:
        self._balls = balls
        self._profile = profile
        self._size = _HEAD + _PER_BALL * (BALL_COUNTS[-1] if balls is None else balls)
        self._rng: np.random.Generator | None = None
        self._ready: list[Drawn] = []
        self._block = 1

    def take(self, rng: np.random.Generator, *, is_fresh: bool = True) -> Drawn:
        """The next start.

        Just after a seed one start is drawn. Later ones are drawn several at a time, more and more
        of them, which takes a third of the time for each.

        Args:
            rng: Where randomness comes from.
            is_fresh: Whether the generator was just seeded, so that nothing of it is left.

        Raises:
            InputError: If there is no room for so many balls.
        """
        if is_fresh or rng is not self._rng:
            self._rng, self._ready, self._block = rng, [], 1
        if not self._ready:
            u = rng.random((self._block, self._size))
            self._ready = draw_starts(rng, u, balls=self._balls, profile=self._profile)
            self._block = min(2 * self._block, _MOST)
        return self._ready.pop()


def draw_starts(
    rng: np.random.Generator,
    u: NDArray[np.float64],
    *,
    balls: int | None = None,
    profile: Profile = Profile.PAPER,
) -> list[Drawn]:
    """Draw the starts of level-0 episodes; levels change them afterwards.

    The same generator gives the same start at every level, so that a level-0 episode with the
    same seed is a matched control.

    Args:
        rng: Where further numbers come from if a ball must be drawn again.
        u: Uniform numbers in [0, 1), shape (N, 11 + 9 B) where B is `balls`, or the most there
            can be.
        balls: Number of balls; none draws it.
        profile: In the `paper` profile balls do not overlap each other.

    Raises:
        InputError: If there is no room for so many balls.
    """
    scale, offset = _scale_and_offset(u.shape[1])
    values = u * scale + offset
    parts = values[:, _HEAD:].reshape(len(u), -1, _PER_BALL)
    velocity = parts[:, :, 3:6]
    velocity[parts[:, :, 6:9] >= 0.5] *= -1.0
    heads = values[:, :_HEAD].tolist()
    numbers = parts[:, :, :BALL_WIDTH].reshape(len(u), -1).tolist()
    clearance = _DIAMETER if profile is Profile.PAPER else 0.0
    return [
        _drawn(rng, head, row, balls, clearance) for head, row in zip(heads, numbers, strict=True)
    ]


def _drawn(
    rng: np.random.Generator,
    head: list[float],
    numbers: list[float],
    balls: int | None,
    clearance: float,
) -> Drawn:
    """One start from numbers that have their units; written out, as each reset needs it."""
    x, y, force_x, force_y, a, b, c, rate_x, rate_y, choice, seed = head
    count = BALL_COUNTS[int(choice)] if balls is None else balls
    del numbers[BALL_WIDTH * count :]
    placed: list[list[float]] = []
    for i in range(0, len(numbers), BALL_WIDTH):
        at = numbers[i : i + 3]
        if not _is_clear(at, x, y, placed, clearance):
            at = numbers[i : i + 3] = _another_place(rng, x, y, placed, clearance)
        placed.append(at)
    norm = math.sqrt(a * a + b * b + c * c + 1.0)
    turned = a / norm, b / norm, c / norm, 1.0 / norm
    row = (x, y, 0.0, 0.0, *turned, rate_x, rate_y, 0.0, float(count), *numbers)
    return Drawn(row, (force_x, force_y), int(seed), pole_frame(row))


@functools.cache
def _scale_and_offset(size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What turns uniform numbers into metres, newtons and so on, each of shape (size,)."""
    import numpy as np

    head = [*_CART, *_CART, *_PUSH, *_PUSH, *_TURN, *_TURN, *_TURN, *_RATE, *_RATE, *_COUNT, *_SEED]
    ball = [*_XY, *_XY, *_Z, *_SPEED, *_SPEED, *_SPEED, *_SIGN, *_SIGN, *_SIGN]
    both = np.array(head + ball * ((size - _HEAD) // _PER_BALL))
    return both[::2], both[1::2]


def pole_frame(row: Sequence[float]) -> tuple[Vector3, Vector3]:
    """Direction of the pole in world, and its angular velocity in its own axes (rad/s)."""
    x, y, z, w, a, b, c = row[4:11]
    nx, ny, nz = 2.0 * (x * z + y * w), 2.0 * (y * z - x * w), 1.0 - 2.0 * (x * x + y * y)
    return (nx, ny, nz), (
        (1.0 - 2.0 * (y * y + z * z)) * a + 2.0 * (x * y + z * w) * b + 2.0 * (x * z - y * w) * c,
        2.0 * (x * y - z * w) * a + (1.0 - 2.0 * (x * x + z * z)) * b + 2.0 * (y * z + x * w) * c,
        nx * a + ny * b + nz * c,
    )


def _about(reach: float) -> tuple[float, float]:
    """Scale and offset of what lies between minus and plus a value."""
    return 2.0 * reach, -reach


_CART: Final = _about(CART_RANGE_M)
_PUSH: Final = _about(CART_FORCE_N)
_TURN: Final = _about(POLE_QUAT_PART)
_RATE: Final = _about(POLE_RATE_RAD_S)
_COUNT: Final = (len(BALL_COUNTS), 0.0)
_SEED: Final = (2.0**53, 0.0)
_XY: Final = _about(BALL_XY_M)
_Z: Final = (BALL_Z_M[1] - BALL_Z_M[0], BALL_Z_M[0])
_SPEED: Final = (BALL_SPEED_M_S[1] - BALL_SPEED_M_S[0], BALL_SPEED_M_S[0])
_SIGN: Final = (1.0, 0.0)
_DIAMETER: Final = 2.0 * NOMINAL.ball_radius_m


def _is_clear(
    at: Sequence[float], x: float, y: float, placed: list[list[float]], clearance: float
) -> bool:
    """As `is_clear`, for what is drawn at each reset."""
    p, q, r = at
    a, b = p - x, q - y
    if a * a + b * b < CART_CLEARANCE_M * CART_CLEARANCE_M:
        return False
    if clearance:
        for a, b, c in placed:
            a, b, c = p - a, q - b, r - c
            if a * a + b * b + c * c < clearance * clearance:
                return False
    return True


def _another_place(
    rng: np.random.Generator, x: float, y: float, placed: list[list[float]], clearance: float
) -> list[float]:
    """Where a ball can be that was drawn too near to the cart or to another."""
    for _ in range(_TRIES):
        at = list(ball_position(rng.random(3).tolist()))
        if _is_clear(at, x, y, placed, clearance):
            return at
    raise InputError(f"balls: there is no room for more than {len(placed)} of them")


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
