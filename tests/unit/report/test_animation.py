"""Tests of episodes packed for drawing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from robo_eval.core.trajectory import Trajectory
from robo_eval.report.animation import pack, solids, unpack

TASK = "RoboEval/CartPole3D-v0"


def test_positions_come_back_to_the_millimetre(trajectory: Callable[..., Trajectory]) -> None:
    motion = trajectory(120)
    header, positions = unpack(pack(motion, key="k", label="l", caption="c", task=TASK))
    expected = motion.pose_world_frame[..., :3]
    np.testing.assert_array_equal(np.isnan(positions), np.isnan(expected))
    np.testing.assert_allclose(positions, expected, atol=5.01e-4)
    assert header["ticks"] == 120
    assert header["frames"] == ["cart", "pole", "ball_00", "ball_01"]
    assert header["roles"] == ["base", "body", "thing", "thing"]


def test_tilt_is_that_of_the_pole_in_degrees(trajectory: Callable[..., Trajectory]) -> None:
    motion = trajectory(120)
    header, _ = unpack(pack(motion, key="k", label="l", caption="c", task=TASK))
    expected = np.degrees(0.1 * np.sin(5 * np.arange(120) * 0.02))
    np.testing.assert_allclose(header["tilt"]["roll"], expected, atol=0.0051)
    np.testing.assert_allclose(header["tilt"]["pitch"], 0.0, atol=0.0051)
    assert header["tilt"]["limit"] == 10.0


def test_pushes_point_where_the_actions_push(trajectory: Callable[..., Trajectory]) -> None:
    header, _ = unpack(pack(trajectory(7), key="k", label="l", caption="c", task=TASK))
    assert header["pushes"] == [[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1], [0, 0]]


def test_an_unknown_task_has_neither_arena_nor_pushes(
    trajectory: Callable[..., Trajectory],
) -> None:
    header, _ = unpack(pack(trajectory(7), key="k", label="l", caption="c", task="Other-v0"))
    assert (header["arena"], header["pushes"], header["tilt"]) == (None, None, None)


def test_a_long_episode_is_thinned_and_a_far_position_is_kept_in_range(
    trajectory: Callable[..., Trajectory],
) -> None:
    motion = trajectory(5000)
    poses = motion.pose_world_frame.copy()
    poses[:, 2, 0] = 1e9
    clip = pack(replace(motion, pose_world_frame=poses), key="k", label="l", caption="c")
    header, positions = unpack(clip)
    assert header["ticks"] <= 600
    assert header["times_ms"][-1] > 99_000
    assert np.nanmax(positions) <= 32.767
    assert len(clip.packed) < 100_000


def test_a_robot_description_gives_the_solids() -> None:
    urdf = """<robot name="r"><link name="arm"><visual><origin xyz="0 0 0.3" rpy="0 1.5707963 0"/>
      <geometry><cylinder radius="0.02" length="0.6"/></geometry></visual>
      <visual><geometry><box size="1 2 3"/></geometry></visual></link></robot>"""
    cylinder, box, other = solids(["arm", "thing"], urdf)
    assert (cylinder.kind, cylinder.size, cylinder.offset) == ("cylinder", (0.02, 0.6), (0, 0, 0.3))
    np.testing.assert_allclose(cylinder.turn, (0, np.sqrt(0.5), 0, np.sqrt(0.5)), atol=1e-6)
    assert (box.kind, box.size) == ("box", (1.0, 2.0, 3.0))
    assert (other.frame, other.kind) == (1, "sphere")


def test_a_description_that_cannot_be_read_costs_only_the_shapes() -> None:
    for text in (
        "<robot",
        "<!DOCTYPE x [<!ENTITY a 'b'>]><robot/>",
        (
            "<robot><link name='pole'>"
            "<visual><geometry><box size='1 nan 3'/></geometry></visual></link></robot>"
        ),
    ):
        assert [solid.kind for solid in solids(["pole", "ball_00"], text)] == ["sphere", "sphere"]
