"""How an episode starts: where cart, pole and balls are, and how fast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from robo_eval_sim.tasks.cartpole3d.layout import BALL_WIDTH, FIRST_BALL, NOMINAL

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


def pole_frame(row: Sequence[float]) -> tuple[Vector3, Vector3]:
    """Direction of the pole in world, and its angular velocity in its own axes (rad/s)."""
    x, y, z, w, a, b, c = row[4:11]
    nx, ny, nz = 2.0 * (x * z + y * w), 2.0 * (y * z - x * w), 1.0 - 2.0 * (x * x + y * y)
    return (nx, ny, nz), (
        (1.0 - 2.0 * (y * y + z * z)) * a + 2.0 * (x * y + z * w) * b + 2.0 * (x * z - y * w) * c,
        2.0 * (x * y - z * w) * a + (1.0 - 2.0 * (x * x + z * z)) * b + 2.0 * (y * z + x * w) * c,
        nx * a + ny * b + nz * c,
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
