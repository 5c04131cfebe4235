"""The motion of an episode of the arm as joints and frames."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.errors import ShapeError
from robo_eval.core.trajectory import Trajectory
from robo_eval_sim.arm.description import arm_urdf, frames_of
from robo_eval_sim.arm.layout import FINGERS, JOINTS, TICK_S
from robo_eval_sim.arm.world import TORQUE, Row

Array = NDArray[np.float64]


def trajectory_of(
    rows: Sequence[tuple[Row, tuple[float, ...]]],
    names: tuple[str, ...],
    poses: Array,
    *,
    observations: Array,
    actions: Array,
    rewards: Array,
    things: str,
) -> Trajectory:
    """Joints and frames of an episode.

    Args:
        rows: T rows of the world, and poses of the tip.
        names: The things of the task, F names.
        poses: Shape (T, F, 7).
        observations: Shape (T, D), what the policy saw.
        actions: Shape (T - 1, A).
        rewards: Shape (T - 1,).
        things: Links of the things, URDF.

    Raises:
        ShapeError: If the arrays do not fit each other.
    """
    if not len(rows) == len(observations) == len(actions) + 1 == len(rewards) + 1:
        raise ShapeError(
            f"{len(rows)} states need as many observations and one action and reward less; given"
            f" {len(observations)}, {len(actions)} and {len(rewards)}"
        )
    states = np.array([row[: TORQUE.stop] for row, _ in rows])
    links, at = frames_of(states[:, :9])
    text = arm_urdf(for_engine=False)
    return Trajectory(
        stamp_ns=np.arange(len(states), dtype=np.int64) * round(TICK_S * 1e9),
        joint_names=(*JOINTS, *FINGERS),
        joint_position=states[:, :9],
        joint_velocity=states[:, 9:18],
        joint_effort=states[:, TORQUE],
        frames=(*links, *names),
        pose_world_frame=np.concatenate([at, poses], axis=1),
        actions=actions.reshape(len(actions), -1),
        rewards=rewards,
        observations=observations,
        robot_description=text.replace("</robot>", f"{things}</robot>"),
    )
