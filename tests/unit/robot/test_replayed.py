"""A motion is put together from three clocks: of the driver, of the policy, of the recorder."""

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from robo_eval.core.errors import InputError
from robo_eval.log.joint_trace import JointTrace
from robo_eval_robot import replayed
from robo_eval_robot.adapter import load_adapter
from robo_eval_robot.config import read_robot

JOINTS = ("cart_x", "cart_y", "pole_roll", "pole_pitch")
TICK_NS = 20_000_000
HOUR_NS = 3600 * 10**9


def trace(names, stamps, received, effort, set_back=0):
    count = len(stamps)
    position = np.zeros((count, len(names)))
    position[:, 0] = 0.001 * np.maximum(np.arange(count) - 1, 0)  # held for one tick
    return JointTrace(
        stamp_ns=np.array(stamps),
        received_ns=np.array(received),
        names=names,
        position=position,
        velocity=np.zeros((count, len(names))),
        effort=np.array(effort, dtype=float),
        imu_stamp_ns=np.array(stamps),
        imu=np.tile([0.0, 0, 0, 1, 0, 0, 0], (count, 1)),
        set_back=set_back,
    )


@pytest.fixture
def motion(monkeypatch):
    """Seven states, the first of them held, and commands of a policy whose clock is an hour off."""
    config = read_robot(Path(str(files("robo_eval_twin").joinpath("gantry_twin.yaml"))))
    adapter = load_adapter(config, "RoboEval/CartPole3D-v0", {"balls": 0})

    def read(lost=(), commands=(1, 2, 3, 4, 5), set_back=0):
        kept = [tick for tick in range(7) if tick not in lost]
        whole = trace(
            JOINTS,
            [tick * TICK_NS for tick in range(7)],
            [HOUR_NS // 2 + tick * TICK_NS for tick in range(7)],
            [[tick, 0, 0, 0] for tick in range(7)],
        )
        states = JointTrace(
            **{
                name: getattr(whole, name)[kept]
                for name in ("stamp_ns", "received_ns", "position", "velocity", "effort",
                             "imu_stamp_ns", "imu")
            },
            names=JOINTS,
            set_back=set_back,
        )  # fmt: skip
        asked = trace(
            JOINTS[:2],
            [HOUR_NS + (1 + number) * TICK_NS for number in range(len(commands))],
            [HOUR_NS // 2 + (1 + number) * TICK_NS + 5_000_000 for number in range(len(commands))],
            [[command, 0] for command in commands],
        )

        def found(_bag, topic, _imu=None):
            if "command" not in topic:
                return states
            if not commands:
                raise InputError("no such topic")
            return asked

        monkeypatch.setattr(replayed, "read_joint_trace", found)
        start = {
            "cart_position": [0.0, 0.0], "cart_velocity": [0.0, 0.0],
            "pole_quat_xyzw": [0.0, 0.0, 0.0, 1.0], "pole_angular_velocity": [0.0, 0.0, 0.0],
            "balls": [], "tick": 0,
        }  # fmt: skip
        return replayed.motion_of(Path("bag"), config, adapter, start, ticks=5)

    return read


def test_commands_belong_to_the_tick_after_the_state_they_answer(motion):
    found = motion()
    assert [force[0] for force in found.applied] == [2, 3, 4, 5, 6]
    assert [force[0] for force in found.asked] == [1, 2, 3, 4, 5]
    assert found.stamp_ns == [tick * TICK_NS for tick in range(6)]


def test_a_lost_state_is_none_and_its_tick_keeps_its_command(motion):
    found = motion(lost=(3,))
    assert [state is None for state in found.states] == [False, False, True, False, False, False]
    assert [force and force[0] for force in found.applied] == [2, None, 4, 5, 6]
    assert [force[0] for force in found.asked] == [1, 2, 3, 4, 5]
    assert found.stamp_ns[2] == 2 * TICK_NS


def test_a_bag_without_commands_has_a_motion(motion):
    assert motion(commands=()).asked == [None] * 5


def test_stamps_that_go_back_are_counted(motion):
    assert motion(set_back=2).set_back == 2
