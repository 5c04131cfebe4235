"""A task for policies that see fewer numbers than it shows."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from robo_eval.core.errors import InputError


class FirstNumbers(gymnasium.ObservationWrapper[NDArray[Any], Any, NDArray[Any]]):
    """Shows the first numbers of a flat observation alone.

    Args:
        env: A task whose observations are flat arrays; `gymnasium.wrappers.FlattenObservation`
            makes others so.
        n: How many numbers are seen.

    Raises:
        InputError: If observations are no flat arrays, or have fewer numbers.

    Example:
        >>> env = FirstNumbers(gymnasium.make("CartPole-v1"), 2)
        >>> env.reset(seed=0)[0].shape, env.observation_space.shape
        ((2,), (2,))
    """

    def __init__(self, env: gymnasium.Env[NDArray[Any], Any], n: int) -> None:
        super().__init__(env)
        space = env.observation_space
        if not isinstance(space, Box) or len(space.shape) != 1:
            raise InputError(f"FirstNumbers: a flat Box is needed, {env} shows {space}")
        if type(n) is not int or not 1 <= n <= space.shape[0]:
            raise InputError(
                f"FirstNumbers: n must be a whole number from 1 to {space.shape[0]}, given {n!r}"
            )
        self._n = n
        kind: Any = space.dtype
        self.observation_space = Box(space.low[:n], space.high[:n], dtype=kind.type)

    def observation(self, observation: NDArray[Any]) -> NDArray[Any]:
        """The first numbers, in memory of their own."""
        return np.array(observation[: self._n])
