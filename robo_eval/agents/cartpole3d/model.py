"""How cart, pole and balls move between contacts, as far as an agent needs to know.

The pole leans little (it may lean 10 degrees), so each horizontal axis is a planar pole on a
cart, linear in its state `[x, v, n, n']`: position (m) and velocity (m/s) of the cart, and the
horizontal part n of the pole's unit vector along this axis with its rate (1/s).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robo_eval.agents.linear_quadratic import Vector
from robo_eval.core.errors import ShapeError
from robo_eval_sim.tasks.cartpole3d.layout import (
    BALL_COUNT,
    BALL_WIDTH,
    FIRST_BALL,
    NOMINAL,
    TICK_S,
    NominalParameters,
)


def read_state(observation: NDArray[Any]) -> tuple[float, ...]:
    """Cart and pole, axis by axis: x, vx, nx, nx', y, vy, ny, ny'.

    Args:
        observation: An observation of CartPole3D, see `observation_size` in its `layout.py`.

    Raises:
        ShapeError: If it is too short to be one.
    """
    try:
        x, y, vx, vy, qx, qy, qz, qw, wx, wy, wz = observation[:BALL_COUNT].tolist()
    except (AttributeError, TypeError, ValueError) as err:
        shape = getattr(observation, "shape", type(observation).__name__)
        raise ShapeError(
            f"observation: CartPole3D's vector, at least {FIRST_BALL} numbers, is needed,"
            f" given {shape}"
        ) from err
    nx = 2.0 * (qx * qz + qw * qy)
    ny = 2.0 * (qy * qz - qw * qx)
    nz = 1.0 - 2.0 * (qx * qx + qy * qy)
    # The unit vector along the pole turns with the pole: n' = w x n.
    return x, vx, nx, wy * nz - wz * ny, y, vy, ny, wz * nx - wx * nz


def read_balls(observation: NDArray[Any]) -> tuple[Vector, Vector]:
    """Positions (N, 3) in metres and velocities (N, 3) in m/s of the balls that are there."""
    count = int(observation[BALL_COUNT])
    balls = observation[FIRST_BALL : FIRST_BALL + BALL_WIDTH * count].reshape(count, BALL_WIDTH)
    return balls[:, :3], balls[:, 3:]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanarModel:
    """One axis of a pole on a pushed cart, linear about upright.

    v' = cart_per_lean n + cart_per_newton F - damping v, and
    n'' = pole_per_lean n - pole_per_newton F - damping n'.

    Attributes:
        cart_per_lean: Acceleration of the cart for a lean of 1, m/s2 (negative).
        cart_per_newton: Acceleration of the cart for a push, 1/kg.
        pole_per_lean: Square of the rate at which a lean grows, 1/s2.
        pole_per_newton: Angular acceleration against a push, 1/(kg m).
        damping: Share of the velocities lost, 1/s.
    """

    cart_per_lean: float
    cart_per_newton: float
    pole_per_lean: float
    pole_per_newton: float
    damping: float = NOMINAL.damping

    @classmethod
    def from_parameters(cls, p: NominalParameters = NOMINAL) -> PlanarModel:
        """Derive the coefficients from masses, lengths and gravity.

        With q = [x, n] and small n the equations of motion are M q'' = G q + [F, 0] - c M q',
        where M = [[m_c + m_p, m_p l], [m_p l, I + m_p l^2]] and G = diag(0, m_p g l): every link
        loses momentum at the same rate c, so damping acts on both velocities alike.
        """
        lever = p.pole_mass_kg * p.pole_com_height_m
        turning = p.pole_inertia_kg_m2[0] + lever * p.pole_com_height_m
        total = p.cart_mass_kg + p.pole_mass_kg
        determinant = total * turning - lever * lever
        weight = lever * p.gravity_m_s2
        return cls(
            cart_per_lean=-lever * weight / determinant,
            cart_per_newton=turning / determinant,
            pole_per_lean=total * weight / determinant,
            pole_per_newton=lever / determinant,
            damping=p.damping,
        )

    def discrete(self, dt: float = TICK_S) -> tuple[Vector, Vector]:
        """Matrices A (4, 4) and B (4,) of one tick; velocities first, then positions."""
        keep = 1.0 - dt * self.damping
        rates = np.array(
            [
                [0.0, keep, dt * self.cart_per_lean, 0.0],
                [0.0, 0.0, dt * self.pole_per_lean, keep],
            ]
        )
        push = dt * np.array([self.cart_per_newton, -self.pole_per_newton])
        a = np.zeros((4, 4))
        b = np.zeros(4)
        for position, velocity, row in ((0, 1, 0), (2, 3, 1)):
            a[velocity] = rates[row]
            b[velocity] = push[row]
            a[position] = dt * a[velocity]
            a[position, position] += 1.0
            b[position] = dt * b[velocity]
        return a, b


class Flight:
    """Where freely flying balls are at given times, bounced off the walls.

    Nominal balls feel no gravity and lose speed as v' = -c v (1 + |v|), which keeps their
    direction; walls return them without loss, so a straight path is folded at the walls.

    Args:
        times: Shape (K,), seconds from now.
        radius: Radius of the balls, metres.
        damping: c, 1/s.
    """

    def __init__(
        self,
        times: Vector,
        *,
        radius: float = NOMINAL.ball_radius_m,
        damping: float = NOMINAL.damping,
    ) -> None:
        half = NOMINAL.arena_half_width_m - radius
        # Space a ball's centre moves in.
        self._low = np.array([-half, -half, NOMINAL.arena_floor_m + radius])
        self._high = np.array([half, half, NOMINAL.arena_ceiling_m - radius])
        self._lost = -np.expm1(-damping * times)
        self._damping = damping

    def __call__(self, position: Vector, velocity: Vector) -> Vector:
        """Positions, shape (N, K, 3), metres, of balls seen at (N, 3) with speeds (N, 3), m/s."""
        speed = np.sqrt((velocity * velocity).sum(1))[:, None]
        # Solving the law for v, and that for the distance, gives a logarithm.
        share = np.log1p(speed * self._lost) / (self._damping * np.maximum(speed, 1e-9))
        straight = position[:, None, :] + velocity[:, None, :] * share[:, :, None]
        return fold(straight, self._low, self._high)


def fold(straight: Vector, low: Vector, high: Vector) -> Vector:
    """Mirror coordinates back into [low, high], as often as needed."""
    width = high - low
    folded: Vector = np.abs((straight - high) % (2.0 * width) - width) + low
    return folded
