"""What the motion so far tells about the robot and its surroundings."""

from __future__ import annotations

from typing import Final

import numpy as np

from robo_eval.agents.cartpole3d.model import PlanarModel
from robo_eval.agents.linear_quadratic import Vector
from robo_eval_sim.tasks.cartpole3d.layout import TICK_S

_NOISE: Final = 0.05
"""Spread of what the linear model leaves out, rad/s2 for the pole and m/s2 for the cart."""
_GATE: Final = 8.0
"""Standard deviations beyond which a change of velocity is a blow, not a law."""
_SPREAD: Final = np.array([20.0, 0.7, 1.0, 1.0])
"""How far off the nominal coefficients of lean, push and the two steady parts may be."""
_WANDER: Final = 0.3
"""How much a steady acceleration may change from tick to tick, 1/s2: wind depends on motion."""
_PATIENCE: Final = 5
"""Blows in a row after which the belief itself is doubted."""


class OnlineModel:
    """A running least-squares estimate of one planar model for both axes, and their disturbances.

    Both axes obey the same law: acceleration = lean coefficient * lean + push coefficient * push +
    a steady acceleration of their own, which stands for wind or a slope. The estimate starts at
    the nominal robot with a wide spread; a Kalman filter with this state [lean, push, steady x,
    steady y] for pole and cart is recursive least squares in which only the steady part forgets.

    Attributes:
        ticks: Changes of velocity that were learnt from.
    """

    def __init__(self) -> None:
        self._nominal = PlanarModel.from_parameters()
        self._damping = self._nominal.damping
        self._last: tuple[float, ...] | None = None
        self.forget()

    def forget(self) -> None:
        """Back to the nominal robot."""
        nominal = self._nominal
        self.ticks = 0
        self._theta = np.zeros((4, 2))
        self._theta[0] = nominal.pole_per_lean, nominal.cart_per_lean
        self._theta[1] = -nominal.pole_per_newton, nominal.cart_per_newton
        self.doubt()

    def doubt(self) -> None:
        """Keep the estimate, but trust it as little as at the start."""
        self._cov = np.diag(_SPREAD * _SPREAD)
        self._blows = 0

    def coefficients(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Acceleration of the pole (rad/s2) and of the cart (m/s2), each as four coefficients.

        Of the lean, of the push (1/N), and the steady part along x and along y.
        """
        pole, cart = self._theta.T.tolist()
        return tuple(pole), tuple(cart)

    def start(self, state: tuple[float, ...]) -> None:
        """Note the state, see `read_state`, from which the next change is measured."""
        self._last = state

    def learn(self, state: tuple[float, ...], force: tuple[float, float]) -> None:
        """Learn from the change since the last state under this push (N, both axes)."""
        last, self._last = self._last, state
        if last is None:
            return
        self._cov[2, 2] += _WANDER * _WANDER * TICK_S
        self._cov[3, 3] += _WANDER * _WANDER * TICK_S
        for axis in (0, 1):
            i = 4 * axis
            vel, lean, rate = last[i + 1], last[i + 2], last[i + 3]
            pole = (state[i + 3] - rate) / TICK_S + self._damping * rate * (1.0 + abs(rate))
            cart = (state[i + 1] - vel) / TICK_S + self._damping * vel * (1.0 + abs(vel))
            regressors = np.array([lean, force[axis], 1.0 - axis, float(axis)])
            self._update(regressors, np.array([pole, cart]))

    def _update(self, regressors: Vector, measured: Vector) -> None:
        cov_r = self._cov @ regressors
        variance = _NOISE * _NOISE + float(regressors @ cov_r)
        error = measured - regressors @ self._theta
        if float(error @ error) > _GATE * _GATE * variance:
            self._blows += 1
            if self._blows > _PATIENCE:
                self.doubt()
            return
        self._blows = 0
        self.ticks += 1
        gain = cov_r / variance
        self._theta += gain[:, None] * error
        self._cov -= gain[:, None] * cov_r
