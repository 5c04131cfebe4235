"""The motion of one episode as arrays, ready to be written as a trace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trajectory:
    """States of one episode at T instants and the T - 1 actions between them.

    Attributes:
        stamp_ns: Time since the start of the episode, shape (T,), nanoseconds.
        joint_names: Joints of the robot description, J names.
        joint_position: Shape (T, J), metres or radians.
        joint_velocity: Shape (T, J), metres or radians per second.
        joint_effort: What the motors applied at the end of each tick, shape (T, J), newtons or N m;
            0 before the first one. None where nobody knows.
        frames: Names of the moving frames, F names; their parent is `world`.
        pose_world_frame: Shape (T, F, 7): position (m) and quaternion xyzw of each frame in
            world; NaN where a frame does not exist at that instant.
        actions: Shape (T - 1, A); a discrete action is one number.
        rewards: Shape (T - 1,).
        observations: Shape (T, D), what the policy saw.
        robot_description: URDF text, empty if there is none.
    """

    stamp_ns: NDArray[np.int64]
    joint_names: tuple[str, ...]
    joint_position: NDArray[np.float64]
    joint_velocity: NDArray[np.float64]
    frames: tuple[str, ...]
    pose_world_frame: NDArray[np.float64]
    actions: NDArray[np.float64]
    rewards: NDArray[np.float64]
    observations: NDArray[np.float64]
    robot_description: str
    joint_effort: NDArray[np.float64] | None = None
