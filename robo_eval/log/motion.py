"""The motion of an episode that was played in a simulator, as its environment describes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from robo_eval.core.errors import InputError
from robo_eval.core.trajectory import Trajectory
from robo_eval.log.planned_row import tick_s_of


def trajectory_of(
    env: gymnasium.Env[Any, Any],
    observations: Sequence[Any],
    actions: Sequence[Any],
    rewards: Sequence[float],
) -> Trajectory:
    """The motion of the episode just played; without a description, what was seen and done alone.

    Args:
        env: Where it was played; its `records_motion` was set before, where it has that.
        observations: From reset to end.
        actions: One less.
        rewards: As many as actions.

    Raises:
        InputError: If the environment describes its motion as something else.
    """
    seen = _flat_rows(env.observation_space, observations)
    done = _flat_rows(env.action_space, actions)
    earned = np.asarray(rewards, dtype=np.float64)
    describe = getattr(env.unwrapped, "trajectory", None)
    if describe is not None:
        trajectory = describe(seen, done, earned)
        if not isinstance(trajectory, Trajectory):
            raise InputError(f"{env.spec}: trajectory() must return a Trajectory")
        return trajectory
    n = len(seen)
    tick_ns = round((tick_s_of(env) or 1.0) * 1e9)
    return Trajectory(
        stamp_ns=np.arange(n, dtype=np.int64) * tick_ns,
        joint_names=(),
        joint_position=np.zeros((n, 0)),
        joint_velocity=np.zeros((n, 0)),
        frames=(),
        pose_world_frame=np.zeros((n, 0, 7)),
        actions=done,
        rewards=earned,
        observations=seen,
        robot_description="",
    )


def _flat_rows(space: gymnasium.Space[Any], values: Sequence[Any]) -> NDArray[np.float64]:
    if isinstance(space, gymnasium.spaces.Discrete):
        return np.asarray(values, dtype=np.float64).reshape(len(values), 1)
    if isinstance(space, gymnasium.spaces.Box):
        return np.asarray(values, dtype=np.float64).reshape(len(values), -1)
    flat = [gymnasium.spaces.flatten(space, value) for value in values]
    return np.asarray(flat, dtype=np.float64).reshape(len(values), -1)
