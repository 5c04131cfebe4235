"""CartPole3D's observation with a name for each number, as published agents read it."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from robo_eval.core.errors import InputError
from robo_eval_sim.tasks.cartpole3d.layout import BALL_COUNT, BALL_WIDTH, FIRST_BALL, TICK_S

_DIGITS = 6
_AXES = ("x", "y", "z")
_FAR, _FAST = 100.0, 200.0


class NamedObservation(gymnasium.ObservationWrapper[dict[str, Any], Any, NDArray[np.float32]]):
    """The named form of the public reference program, numbers rounded to 6 decimals.

    `cart` holds x, y, z position and velocity; `pole` its x, y, z, w quaternion and x, y, z
    velocity, which is an angular velocity; `blocks` one entry for each ball, with an id from 0,
    position and velocity. `time_stamp` counts seconds of the episode, not of the day. Hints and
    pictures of the reference are left out, since they tell what a trial may want to hide.

    Args:
        env: A CartPole3D environment.

    Raises:
        InputError: If the environment is another.
    """

    def __init__(self, env: gymnasium.Env[NDArray[np.float32], Any]) -> None:
        super().__init__(env)
        space = env.observation_space
        is_ours = isinstance(space, spaces.Box) and len(space.shape) == 1
        if not is_ours or (space.shape[0] - FIRST_BALL) % (BALL_WIDTH + 1):  # type: ignore[index]
            raise InputError(f"NamedObservation: a CartPole3D environment is needed, given {env}")
        self.observation_space = spaces.Dict(
            {
                "cart": spaces.Dict(_numbers("position", _FAR) | _numbers("velocity", _FAST)),
                "pole": spaces.Dict(
                    {f"{axis}_quaternion": _number(1.0) for axis in (*_AXES, "w")}
                    | _numbers("velocity", _FAST)
                ),
                "blocks": spaces.Sequence(
                    spaces.Dict(
                        {"id": _number(1e4)}
                        | _numbers("position", _FAR)
                        | _numbers("velocity", _FAST)
                    )
                ),
                "time_stamp": _number(1e4),
            }
        )
        self._ticks = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start an episode; its time stamps begin with 0."""
        self._ticks = 0
        return super().reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[dict[str, Any], Any, bool, bool, dict[str, Any]]:
        """One tick."""
        self._ticks += 1
        return super().step(action)

    def observation(self, observation: NDArray[np.float32]) -> dict[str, Any]:
        """The named form of an observation vector."""
        row = observation.tolist()
        balls = [
            row[first : first + BALL_WIDTH]
            for first in range(FIRST_BALL, FIRST_BALL + BALL_WIDTH * int(row[BALL_COUNT]), 6)
        ]
        return {
            "cart": _named("position", (*row[0:2], 0.0)) | _named("velocity", (*row[2:4], 0.0)),
            "pole": {
                f"{axis}_quaternion": _array(value)
                for axis, value in zip((*_AXES, "w"), row[4:8], strict=True)
            }
            | _named("velocity", row[8:11]),
            "blocks": tuple(
                {"id": _array(index)} | _named("position", ball[:3]) | _named("velocity", ball[3:])
                for index, ball in enumerate(balls)
            ),
            "time_stamp": _array(TICK_S * self._ticks),
        }


def _array(value: float) -> NDArray[np.float64]:
    return np.array(round(value, _DIGITS))


def _named(what: str, values: Any) -> dict[str, NDArray[np.float64]]:
    return {f"{axis}_{what}": _array(value) for axis, value in zip(_AXES, values, strict=True)}


def _number(limit: float) -> spaces.Space[Any]:
    return spaces.Box(-limit, limit, shape=(), dtype=np.float64)


def _numbers(what: str, limit: float) -> dict[str, spaces.Space[Any]]:
    return {f"{axis}_{what}": _number(limit) for axis in _AXES}
