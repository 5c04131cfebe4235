"""The motion of a CartPole3D episode as joints and frames, from its states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.errors import ShapeError
from robo_eval.core.trajectory import Trajectory
from robo_eval_sim.tasks.cartpole3d.description import JOINTS, display_urdf
from robo_eval_sim.tasks.cartpole3d.layout import (
    BALL_COUNT,
    BALL_WIDTH,
    CART_POSITION,
    CART_VELOCITY,
    FIRST_BALL,
    NOMINAL,
    POLE_ANGULAR_VELOCITY,
    POLE_QUAT_XYZW,
    TICK_S,
)
from robo_eval_sim.tasks.cartpole3d.physics import LEVEL_0, Physics
from robo_eval_sim.tasks.cartpole3d.start import Row

Array = NDArray[np.float64]


def roll_pitch_yaw(quat_xyzw: Array) -> tuple[Array, Array, Array]:
    """Angles of R = Rz(yaw) Ry(pitch) Rx(roll).

    Args:
        quat_xyzw: Shape (T, 4).

    Returns:
        Roll, pitch and yaw in radians, each of shape (T,).

    Example:
        >>> roll, pitch, yaw = roll_pitch_yaw(np.array([[0.0, 0.1, 0.0, 0.99498744]]))
        >>> round(float(pitch[0]), 4)
        0.2003
    """
    x, y, z, w = quat_xyzw.T
    roll = np.arctan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    pitch = np.arcsin(np.clip(2.0 * (w * y - x * z), -1.0, 1.0))
    yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    return roll, pitch, yaw


def turned(quat: Array, angles: Array) -> Array:
    """A quaternion xyzw turned a little about x and y of the world.

    Args:
        quat: Shape (4,).
        angles: Shape (2,), radians.
    """
    half_x, half_y = angles / 2.0
    a = np.array([half_x, half_y, 0.0, 1.0])
    a /= np.linalg.norm(a)
    ax, ay, az, aw = a
    x, y, z, w = quat
    return np.array(
        [
            aw * x + ax * w + ay * z - az * y,
            aw * y - ax * z + ay * w + az * x,
            aw * z + ax * y - ay * x + az * w,
            aw * w - ax * x - ay * y - az * z,
        ]
    )


def trajectory_of(
    rows: Sequence[Row],
    observations: NDArray[np.floating[Any]],
    actions: NDArray[np.floating[Any]],
    rewards: NDArray[np.floating[Any]],
    physics: Physics | None = None,
) -> Trajectory:
    """Joints and frames of an episode.

    Args:
        rows: T states in full precision, laid out as an observation without its padding.
        observations: Shape (T, D), what the policy saw.
        actions: Shape (T - 1,) or (T - 1, A).
        rewards: Shape (T - 1,).
        physics: Constants of the episode, for the robot description.

    Raises:
        ShapeError: If the arrays do not fit each other.
    """
    seen = np.asarray(observations, dtype=np.float64)
    if seen.ndim != 2 or len(seen) != len(rows) or len(seen) == 0:
        raise ShapeError(f"observations: shape ({len(rows)}, D) needed, given {seen.shape}")
    states = np.zeros((len(rows), max(len(row) for row in rows)))
    for index, row in enumerate(rows):
        states[index, : len(row)] = row
    done, earned = _rows("actions", actions, seen), _rows("rewards", rewards, seen)
    position, velocity = joints_of(states)
    frames, poses = _frames(states)
    return Trajectory(
        stamp_ns=np.arange(len(seen), dtype=np.int64) * round(TICK_S * 1e9),
        joint_names=JOINTS,
        joint_position=position,
        joint_velocity=velocity,
        frames=frames,
        pose_world_frame=poses,
        actions=done.reshape(len(done), 1) if done.ndim == 1 else done,
        rewards=earned.reshape(len(earned)),
        observations=seen,
        robot_description=display_urdf(physics or LEVEL_0, balls=len(frames) - 2),
    )


def _rows(name: str, values: NDArray[np.floating[Any]], seen: Array) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if len(array) != len(seen) - 1:
        raise ShapeError(f"{name}: {len(seen) - 1} rows are needed, given {len(array)}")
    return array


def joints_of(seen: Array) -> tuple[Array, Array]:
    """Positions and velocities of the joints, each of shape (T, 4), from states (T, 11+)."""
    roll, pitch, yaw = roll_pitch_yaw(seen[:, POLE_QUAT_XYZW])
    wx, wy, _ = seen[:, POLE_ANGULAR_VELOCITY].T
    forward = np.cos(yaw) * wx + np.sin(yaw) * wy
    roll_rate = forward / np.maximum(np.cos(pitch), 1e-9)
    pitch_rate = np.cos(yaw) * wy - np.sin(yaw) * wx
    return (
        np.column_stack([seen[:, CART_POSITION], roll, pitch]),
        np.column_stack([seen[:, CART_VELOCITY], roll_rate, pitch_rate]),
    )


def _frames(seen: Array) -> tuple[tuple[str, ...], Array]:
    """Names of the frames and their poses, shape (T, F, 7)."""
    counts = seen[:, BALL_COUNT].astype(np.int64)
    most = int(counts.max())
    poses = np.full((len(seen), 2 + most, 7), np.nan)
    poses[:, :2, :2] = seen[:, None, CART_POSITION]
    poses[:, 0, 2] = 0.0
    poses[:, 0, 3:] = (0.0, 0.0, 0.0, 1.0)
    poses[:, 1, 2] = NOMINAL.pivot_height_m
    poses[:, 1, 3:] = seen[:, POLE_QUAT_XYZW]
    numbers = seen[:, FIRST_BALL : FIRST_BALL + BALL_WIDTH * most]
    balls = numbers.reshape(len(seen), most, BALL_WIDTH)
    is_there = np.arange(most) < counts[:, None]
    poses[:, 2:, :3] = np.where(is_there[:, :, None], balls[:, :, :3], np.nan)
    poses[:, 2:, 3:] = np.where(is_there[:, :, None], (0.0, 0.0, 0.0, 1.0), np.nan)
    return ("cart", "pole", *(f"ball_{index}" for index in range(most))), poses
