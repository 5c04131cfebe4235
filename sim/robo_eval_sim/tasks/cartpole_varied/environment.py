"""Gymnasium's CartPole with other parameters: `RoboEval/CartPoleVaried-v0`."""

from __future__ import annotations

import functools
import math
from typing import Any, Final

from gymnasium.envs.classic_control.cartpole import CartPoleEnv

from robo_eval.core.canonical import digest
from robo_eval.core.errors import InputError
from robo_eval.core.sources import source_of

_MOST: Final = 1e4
"""Beyond this a tick of 20 ms is no step of an integration any more."""


class CartPoleVariedEnv(CartPoleEnv):
    """CartPole-v1 whose force, gravity and pole are keywords of `gymnasium.make`.

    With the defaults it is CartPole-v1, step by step. Actions 0 and 1 push to the left and to the
    right; the observation is position (m), velocity (m/s), angle (rad) and angular velocity
    (rad/s); every tick is worth 1; an episode ends at 12 degrees, at 2.4 m, or after 500 ticks.

    Args:
        force_mag: Force of a push, N.
        gravity: Acceleration of free fall, m/s2.
        length: Half the length of the pole, m, as Gymnasium counts it.
        masspole: Mass of the pole, kg; the cart's is 1 kg.
        sutton_barto_reward: As CartPole-v1 takes it.
        render_mode: As CartPole-v1 takes it.

    Raises:
        InputError: If a parameter is not a number above 0 and up to 10,000.

    Version history:
        v0: first.
    """

    def __init__(
        self,
        *,
        force_mag: float = 10.0,
        gravity: float = 9.8,
        length: float = 0.5,
        masspole: float = 0.1,
        sutton_barto_reward: bool = False,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(sutton_barto_reward=sutton_barto_reward, render_mode=render_mode)
        self.force_mag = _checked("force_mag", force_mag)
        self.gravity = _checked("gravity", gravity)
        self.length = _checked("length", length)
        self.masspole = _checked("masspole", masspole)
        self.total_mass = self.masspole + self.masscart
        self.polemass_length = self.masspole * self.length

    @property
    def digest(self) -> str:
        """SHA-256 of the source text of this module and of Gymnasium's, and of the time limit.

        It does not cover the keywords of `gymnasium.make`.
        """
        return _digest(getattr(self.spec, "max_episode_steps", None))


@functools.cache
def _digest(limit: int | None) -> str:
    modules = (__name__, CartPoleEnv.__module__)
    return digest({"source": {name: source_of(name) for name in modules}, "limit": limit})


def _checked(name: str, value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (is_number and math.isfinite(value) and 0.0 < value <= _MOST):
        raise InputError(f"{name} is {value!r}; it must be a number above 0 and up to {_MOST:g}")
    return float(value)
