"""What a trace says about an episode is what the environment observed."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Callable

import numpy as np
import pytest

from robo_eval.core.errors import InputError, ShapeError
from robo_eval_sim.tasks.cartpole3d.description import JOINTS, display_urdf
from robo_eval_sim.tasks.cartpole3d.motion import roll_pitch_yaw, trajectory_of


def test_trajectory_of_an_episode(make: Callable, balance: Callable, balls_of: Callable) -> None:
    env = make(level=16, difficulty="hard")
    env.unwrapped.records_motion = True
    seen = balance(env, seed=1)
    n = len(seen)
    actions, rewards = np.arange(n - 1) % 5, np.full(n - 1, 1 / 200)
    trajectory = env.unwrapped.trajectory(seen, actions, rewards)
    most = int(seen[:, 11].max())
    assert most > int(seen[0, 11])
    assert trajectory.joint_names == ("cart_x", "cart_y", "pole_roll", "pole_pitch")
    assert trajectory.frames == ("cart", "pole", *(f"ball_{i}" for i in range(most)))
    assert trajectory.stamp_ns.tolist() == [20_000_000 * tick for tick in range(n)]
    assert trajectory.actions.shape == (n - 1, 1)
    poses = trajectory.pose_world_frame
    assert poses.shape == (n, 2 + most, 7)
    for tick in (0, n // 2, n - 1):
        positions, _ = balls_of(seen[tick])
        count = len(positions)
        np.testing.assert_array_equal(np.float32(poses[tick, 2 : 2 + count, :3]), positions)
        assert np.isnan(poses[tick, 2 + count :]).all()
        np.testing.assert_array_equal(np.float32(poses[tick, 1, 3:]), seen[tick, 4:8])
        np.testing.assert_array_equal(np.float32(poses[tick, 0, :2]), seen[tick, :2])
    np.testing.assert_array_equal(np.float32(trajectory.joint_position[:, :2]), seen[:, :2])
    np.testing.assert_array_equal(np.float32(trajectory.joint_velocity[:, :2]), seen[:, 2:4])
    # The trace holds the engine's own numbers, not what was rounded for the policy.
    last = env.unwrapped.physical_state()
    assert trajectory.joint_position[-1, :2].tolist() == last["cart_position"]
    assert poses[-1, 1, 3:].tolist() == last["pole_quat_xyzw"]


def test_angles_are_those_of_the_rotation() -> None:
    rng = np.random.default_rng(0)
    angles = rng.uniform(-1.2, 1.2, (50, 3))
    quats = []
    for roll, pitch, yaw in angles:
        half = [(math.cos(a / 2), math.sin(a / 2)) for a in (roll, pitch, yaw)]
        (cr, sr), (cp, sp), (cy, sy) = half
        quats.append(
            (
                sr * cp * cy - cr * sp * sy,
                cr * sp * cy + sr * cp * sy,
                cr * cp * sy - sr * sp * cy,
                cr * cp * cy + sr * sp * sy,
            )
        )
    np.testing.assert_allclose(np.column_stack(roll_pitch_yaw(np.array(quats))), angles, atol=1e-12)


def test_joint_speeds_are_the_derivatives_of_joint_positions(
    make: Callable, balance: Callable
) -> None:
    env = make(balls=0)
    env.unwrapped.records_motion = True
    seen = balance(env, seed=2, ticks=120)
    idle = np.zeros(len(seen) - 1)
    trajectory = env.unwrapped.trajectory(seen, idle, idle)
    change = np.diff(trajectory.joint_position, axis=0) / 0.02
    # Positions follow the new velocities.
    np.testing.assert_allclose(change, trajectory.joint_velocity[1:], atol=2e-3)


def test_description_is_a_tree_with_the_joints() -> None:
    root = ET.fromstring(display_urdf())
    joints = {joint.get("name"): joint for joint in root.findall("joint")}
    assert set(joints) == set(JOINTS)
    kinds = {name: joint.get("type") for name, joint in joints.items()}
    assert kinds["cart_x"] == kinds["cart_y"] == "prismatic"
    links = {link.get("name") for link in root.findall("link")}
    children = {joint.find("child").get("link") for joint in joints.values()}
    assert links - children == {"world"}
    assert {"cart", "pole"} <= children


def test_description_shows_the_level_s_pole(make: Callable) -> None:
    env = make(level=9, difficulty="hard")
    env.unwrapped.records_motion = True
    observation, _ = env.reset(seed=1)
    trajectory = env.unwrapped.trajectory(observation[None], np.zeros(0), np.zeros(0))
    root = ET.fromstring(trajectory.robot_description)
    (pole,) = (link for link in root.findall("link") if link.get("name") == "pole")
    assert float(pole.find("visual/geometry/cylinder").get("length")) == 3.0


def test_arrays_that_do_not_fit_are_refused() -> None:
    rows = [(0.0,) * 7 + (1.0,) + (0.0,) * 4] * 4
    with pytest.raises(ShapeError, match="observations: shape"):
        trajectory_of(rows, np.zeros(12), np.zeros(3), np.zeros(3))
    with pytest.raises(ShapeError, match="observations: shape"):
        trajectory_of(rows, np.zeros((3, 320)), np.zeros(2), np.zeros(2))
    with pytest.raises(ShapeError, match="actions: 3 rows are needed, given 2"):
        trajectory_of(rows, np.zeros((4, 320)), np.zeros(2), np.zeros(3))
    with pytest.raises(ShapeError, match="rewards: 3 rows are needed, given 4"):
        trajectory_of(rows, np.zeros((4, 320)), np.zeros(3), np.zeros(4))


def test_motion_is_kept_only_if_asked_for(make: Callable) -> None:
    env = make()
    observation, _ = env.reset(seed=1)
    env.unwrapped.records_motion = True  # too late for this episode
    with pytest.raises(InputError, match=r"records_motion = True before reset"):
        env.unwrapped.trajectory(observation[None], np.zeros(0), np.zeros(0))
    env.reset()
    assert len(env.unwrapped.trajectory(observation[None], np.zeros(0), np.zeros(0)).stamp_ns) == 1
