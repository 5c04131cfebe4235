"""How much is won by seeing the balls and stepping aside in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval.agents.base import Agent
from robo_eval.agents.cartpole3d.balancer import AxisPush
from robo_eval.agents.cartpole3d.model import (
    Flight,
    PlanarModel,
    read_balls,
    read_state,
)
from robo_eval.agents.linear_quadratic import Vector, cost_to_go
from robo_eval.agents.registry import agent
from robo_eval_sim.tasks.cartpole3d.layout import BALL_COUNT, NOMINAL, POLE_LIMIT_RAD, TICK_S

_SIDES: Final = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
"""Where each candidate goes: stay, or one step along +x, -x, +y, -y, as the actions push."""
_POLE_LOW: Final = NOMINAL.pivot_height_m + 0.05
_POLE_HIGH: Final = NOMINAL.pivot_height_m + 0.05 + NOMINAL.pole_length_m
_CART_TOP: Final = 0.3
"""Heights of the lower and upper end of the pole and of the cart's top, metres."""
_NEARBY_M: Final = 3.0
"""Balls whose centre stays farther away than this along some axis are left out: pole and ball
reach 1.8 m up and 0.6 m aside, a step and danger the rest."""
_SAFE_LEAN: Final = 0.5 * POLE_LIMIT_RAD
"""Predicted lean that costs nothing yet."""


@agent("lookahead")
@dataclass(kw_only=True, eq=False)
class Lookahead(Agent):
    """Balancer that predicts the balls and goes to the side where they come least near.

    Each tick it compares five candidates: staying, or one step along an axis. For each it
    predicts the path of cart and pole under the balancing law and the flight of the balls, adds
    up how near they come, and pushes as the balancer would toward the best candidate.

    Attributes:
        horizon_s: How far it predicts.
        knots: At how many instants it compares.
        step_m: Length of a step.
        reach_m: Clearance at which a ball's danger has fallen to 1/e.
        step_cost: Danger that must be saved for a step to pay.
        room_m: Farthest from the centre it steps along each axis.
        lean_cost: Danger of a predicted lean of 10 degrees.
        position_weight: Cost of 1 m away from where it wants to be, 1/m2.
        velocity_weight: Cost of moving, s2/m2.
        lean_weight: Cost of leaning.
        push_weight: Cost of pushing, 1/N2.
    """

    horizon_s: float = 1.3
    knots: int = 13
    step_m: float = 0.8
    reach_m: float = 0.3
    step_cost: float = 0.05
    room_m: float = 3.9
    lean_cost: float = 1.0
    position_weight: float = 10.0
    velocity_weight: float = 1.0
    lean_weight: float = 100.0
    push_weight: float = 0.001

    def __post_init__(self) -> None:
        for field, low, high in (
            ("horizon_s", TICK_S, 4.0),
            ("knots", 1, 200),
            ("step_m", 0.0, 10.0),
            ("reach_m", 1e-3, 10.0),
            ("step_cost", 0.0, 1e3),
            ("room_m", 0.0, 4.45),
            ("lean_cost", 0.0, 1e6),
            ("position_weight", 0.0, 1e6),
            ("velocity_weight", 0.0, 1e6),
            ("lean_weight", 0.0, 1e6),
            ("push_weight", 1e-9, 1e6),
        ):
            self._check_number(field, low=low, high=high)
        super().__post_init__()
        a, b = PlanarModel.from_parameters().discrete()
        weights = np.array([self.position_weight, self.velocity_weight, self.lean_weight, 1.0])
        p = cost_to_go(a, b, weights, self.push_weight)
        self._push = AxisPush(a, b, p)
        gain = (b @ p @ a) / (self.push_weight + b @ p @ b)
        closed = a - np.outer(b, gain)
        ticks = np.unique(np.linspace(1, self.horizon_s / TICK_S, int(self.knots)).round())
        self._flight = Flight(ticks * TICK_S)
        powers = np.stack([np.linalg.matrix_power(closed, int(k)) for k in ticks])
        self._to_cart, self._to_lean = powers[:, 0, :].copy(), powers[:, 2, :].copy()
        self._steps = self.step_m * _SIDES
        self._home: Vector | None = None

    def reset(self, *, seed: int | None = None) -> None:
        """Forget where it wanted to be."""
        del seed
        self._home = None

    def act(self, observation: NDArray[Any]) -> int:
        """The balancer's push toward the safest of the five candidates."""
        state = read_state(observation)
        if self._home is None:
            self._home = np.array([state[0], state[4]])
        if observation[BALL_COUNT] > 0:
            flight = self._nearby(observation, state[0], state[4])
            if len(flight):
                self._home = self._safest(np.array(state).reshape(2, 4), self._home, flight)
        hx, hy = self._home.tolist()
        return self._push.choose(state[0] - hx, *state[1:4], state[4] - hy, *state[5:8])

    def _nearby(self, observation: NDArray[Any], x: float, y: float) -> Vector:
        """Flights, shape (N, K, 3), of the balls that come near enough to matter."""
        flight = self._flight(*read_balls(observation))
        far = np.abs(flight - np.array([x, y, 0.0])).max(-1).min(-1)
        found: Vector = flight[far < _NEARBY_M]
        return found

    def _safest(self, axes: Vector, home: Vector, flight: Vector) -> Vector:
        """The home, of five, on the way to which the balls come least near."""
        homes = axes[:, 0] + self._steps
        np.minimum(np.maximum(homes, -self.room_m, out=homes), self.room_m, out=homes)
        homes[0] = home
        best: Vector = homes[int(self._danger(axes, homes, flight).argmin())]
        return best

    def _danger(self, axes: Vector, homes: Vector, flight: Vector) -> Vector:
        """How near the balls come on the way to each home, shape (5,)."""
        # The closed loop is linear: a home adds its share to the way to the origin.
        cart = self._to_cart @ axes.T + (1.0 - self._to_cart[:, :1]) * homes[:, None, :]
        lean = self._to_lean @ axes.T - self._to_lean[:, :1] * homes[:, None, :]
        off = flight[None, :, :, :2] - cart[:, None]
        height = flight[:, :, 2]
        beside = np.minimum(np.maximum(height, _POLE_LOW), _POLE_HIGH)
        on_pole = off - lean[:, None] * (beside - NOMINAL.pivot_height_m)[..., None]
        to_pole = np.sqrt(_square(on_pole) + (height - beside) ** 2) - NOMINAL.pole_radius_m
        from_rim = np.maximum(np.sqrt(_square(off)) - NOMINAL.cart_radius_m, 0.0)
        to_cart = np.sqrt(from_rim**2 + np.maximum(height - _CART_TOP, 0.0) ** 2)
        nearest = np.minimum(to_pole, to_cart).min(-1) - NOMINAL.ball_radius_m
        danger: Vector = np.exp(nearest / -self.reach_m).sum(-1)
        steep = np.abs(lean).max(axis=(1, 2)) / _SAFE_LEAN - 1.0
        danger += self.lean_cost * np.maximum(steep, 0.0)
        danger[1:] += self.step_cost
        return danger


def _square(plane: Vector) -> Vector:
    """Squared length of the vectors along the last axis, which has two entries."""
    squared: Vector = plane[..., 0] ** 2 + plane[..., 1] ** 2
    return squared
