"""Each check of the doctor finds its fault, and nothing where there is none."""

from __future__ import annotations

import fcntl
import math
import os
import re
import sys
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

# `ROBO_EVAL_REQUIRE_ALL` turns this skip into a failure, see tests/conftest.py.
pytest.importorskip("rclpy", reason="ROS 2 is not installed: pip install .[ros]")

from robo_eval.cli import doctor as verb
from robo_eval.core.errors import InputError, MissingExtraError
from robo_eval_robot import doctor_machine as machine
from robo_eval_robot import doctor_peers as peers
from robo_eval_robot import doctor_state as state
from robo_eval_robot import lock
from robo_eval_robot.config import RobotConfig, read_robot
from robo_eval_robot.doctor import stops_of
from robo_eval_robot.doctor_check import Check
from robo_eval_robot.hearing import Endpoint, Heard, JointMessage
from robo_eval_robot.preflight_report import JointFinding, StopFinding

ROBOT = read_robot(Path(str(files("robo_eval_twin").joinpath("gantry_twin.yaml"))))
JOINTS = tuple(ROBOT.joints)
WALL_NS = 1_700_000_000_000_000_000
STATES = "/twin0/joint_states"
COMMANDS = "/twin0/forward_effort_controller/commands"
REQUESTS = "/twin0/policy/joint_command"


def message(number: int, **changes: Any) -> JointMessage:
    stamp = WALL_NS + number * 20_000_000
    zeros = (0.0,) * len(JOINTS)
    made = JointMessage(
        received_s=5.0 + 0.02 * number,
        wall_ns=stamp + 1_000_000,
        stamp_ns=stamp,
        names=JOINTS,
        positions=zeros,
        velocities=zeros,
        efforts=zeros,
    )
    return replace(made, **changes)


def endpoint(node: str, **changes: Any) -> Endpoint:
    made = Endpoint(
        node=node, type="std_msgs/msg/Float64MultiArray", is_reliable=True, is_latched=False
    )
    return replace(made, **changes)


def heard(**changes: Any) -> Heard:
    """A sound robot, with changes."""
    driver = endpoint("/twin0/driver")
    times = [5.0 + 0.1 * number for number in range(20)]
    made = Heard(
        joints=[message(number) for number in range(100)],
        arrivals={"/twin0/imu_sensor_broadcaster/imu": times, "/twin0/heartbeat/driver": times},
        estop=[False],
        publishers={STATES: (replace(driver, type="sensor_msgs/msg/JointState"),)},
        subscribers={COMMANDS: (driver, endpoint("/twin0/guard"), endpoint("/twin0/recorder"))},
    )
    return replace(made, **changes)


def every(found: Heard, config: RobotConfig = ROBOT) -> dict[str, Any]:
    checks = [*state.state_checks(config, found), *peers.peer_checks(config, found)]
    assert len({check.name for check in checks}) == len(checks)
    return {check.name: check for check in checks}


def wrong(found: Heard) -> dict[str, Any]:
    """Checks that fail; each says what to do."""
    failed = {name: check for name, check in every(found).items() if check.passed is False}
    assert all(check.remedy and check.found for check in failed.values())
    return failed


def test_a_sound_robot_passes_every_check() -> None:
    assert {name for name, check in every(heard()).items() if check.passed is not True} == set()


def test_of_a_silent_robot_only_silence_is_said() -> None:
    names = set(every(Heard()))
    assert {"state rate", "joint names", "state stamps"}.isdisjoint(names)
    assert set(wrong(Heard())) == {
        "joint states",
        "IMU",
        "driver heartbeat",
        "controller",
        "e-stop",
    }


def test_a_controller_of_another_interface_fails() -> None:
    controller = ROBOT.controller.model_copy(update={"interface": "velocity"})
    check = peers.controller(ROBOT.model_copy(update={"controller": controller}), heard())
    assert check.passed is False
    assert (COMMANDS in check.found, "controller.interface" in check.remedy) == (True, True)


@given(rate_hz=st.floats(5.0, 500.0))
def test_a_rate_passes_within_a_fifth(rate_hz: float) -> None:
    joints = [message(number, received_s=number / rate_hz) for number in range(50)]
    share = rate_hz / ROBOT.state.rate_hz
    if abs(abs(share - 1.0) - 0.2) > 1e-6:
        assert state.rate(ROBOT, heard(joints=joints)).passed is (0.8 <= share <= 1.2)


@pytest.mark.parametrize(
    ("name", "changes", "found"),
    [
        ("joint names", {"names": ("cart_x", "cart_y", "pole_roll", "pole_pitsch")}, "pole_pitch"),
        (
            "joint names",
            {"names": ("cart_x", "cart_x", "cart_y", "pole_roll", "pole_pitch")},
            "twice",
        ),
        ("state fields", {"velocities": (0.0,)}, "velocity has 1 numbers for 4 joints"),
        ("state fields", {"positions": ()}, "position is empty"),
        ("state numbers", {"positions": (0.0, math.nan, 0.0, 0.0)}, "cart_y position is nan"),
        ("state numbers", {"efforts": (0.0, math.inf, 0.0, 0.0)}, "cart_y effort is inf"),
        ("state stamps", {"stamp_ns": WALL_NS}, "stand still"),
    ],
)
def test_a_fault_in_joint_states_is_found(name: str, changes: dict[str, Any], found: str) -> None:
    joints = [message(number, **changes) for number in range(100)]
    assert found in wrong(heard(joints=joints))[name].found


def test_a_near_name_is_offered() -> None:
    names = ("cart_x", "cart_y", "pole_roll", "pole_pitsch")
    joints = [message(number, names=names) for number in range(100)]
    assert "pole_pitsch" in wrong(heard(joints=joints))["joint names"].remedy


def test_joints_of_others_are_listed_and_joints_in_pieces_refused() -> None:
    extra = message(3, names=("gripper",), positions=(0.0,), velocities=(), efforts=())
    joints = [*heard().joints, extra]
    assert every(heard(joints=joints))["joint names"].found.endswith("gripper, which are ignored")
    halves = [message(number, names=JOINTS[number % 2 :: 2]) for number in range(100)]
    assert "several messages" in wrong(heard(joints=halves))["joint names"].found


def test_stamps_that_go_back_fail_and_another_clock_is_a_note() -> None:
    back = [message(number, stamp_ns=WALL_NS - number) for number in range(100)]
    assert wrong(heard(joints=back))["state stamps"].found == "go back at times"
    late = [message(n, wall_ns=message(n).stamp_ns - 3_000_000_000) for n in range(100)]
    note = every(heard(joints=late))["wall clock"]
    assert (note.passed, note.found) == (None, "stamps are 3 s ahead of this clock")


def test_what_is_never_measured_is_a_note() -> None:
    joints = [message(number, velocities=(math.nan,) * 4) for number in range(100)]
    assert every(heard(joints=joints))["state numbers"].passed is None
    joints = [message(number, efforts=()) for number in range(100)]
    assert every(heard(joints=joints))["state fields"].passed is None


def test_a_heartbeat_that_pauses_fails() -> None:
    arrivals = {**heard().arrivals, "/twin0/heartbeat/driver": [5.0, 5.1, 6.0, 6.1]}
    assert "0.9 s" in wrong(heard(arrivals=arrivals))["driver heartbeat"].found


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"is_reliable": False}, "reliability BEST_EFFORT, RELIABLE is requested"),
        ({"type": "std_msgs/msg/String"}, "publishes std_msgs/msg/String"),
    ],
)
def test_delivery_that_does_not_match_names_what_differs(
    changes: dict[str, Any], found: str
) -> None:
    driver = endpoint("/twin0/driver", **{"type": "sensor_msgs/msg/JointState", **changes})
    check = wrong(heard(publishers={STATES: (driver,)}))["delivery of joint_states"]
    assert found in check.found
    assert "/twin0/driver" in check.found


@pytest.mark.parametrize(
    ("subscribers", "found"),
    [
        ((endpoint("/twin0/guard"), endpoint("/twin0/recorder")), "nobody listens"),
        ((endpoint("/c", type="std_msgs/msg/Float64"),), "/c takes std_msgs/msg/Float64"),
        ((endpoint("/c", is_latched=True),), "/c requests durability TRANSIENT_LOCAL"),
    ],
)
def test_a_controller_that_hears_nothing_fails(
    subscribers: tuple[Endpoint, ...], found: str
) -> None:
    assert found in wrong(heard(subscribers={COMMANDS: subscribers}))["controller"].found


def test_rivals_are_named() -> None:
    publishers = {COMMANDS: (endpoint("/twin0/guard"), endpoint("/teleop")), REQUESTS: ()}
    assert "/teleop" in wrong(heard(publishers=publishers))["one commander"].found
    publishers = {COMMANDS: (endpoint("/twin0/guard"),) * 2}
    assert "a second guard" in wrong(heard(publishers=publishers))["one commander"].found
    publishers = {REQUESTS: (endpoint("/twin0/conductor"),)}
    assert every(heard(publishers=publishers))["one policy"].passed is None
    publishers = {REQUESTS: (endpoint("/twin0/conductor"), endpoint("/joystick"))}
    assert "/joystick" in wrong(heard(publishers=publishers))["one policy"].found


def test_a_pressed_emergency_stop_fails() -> None:
    assert wrong(heard(estop=[False, True]))["e-stop"].found == "is pressed"


@pytest.mark.parametrize(
    ("said", "passed", "text"),
    [
        ({}, True, "not running"),
        ({"state": "READY"}, True, "READY"),
        ({"state": "INIT", "waits_for": "No joint states."}, None, "No joint states."),
        ({"state": "ESTOP", "causes": "estop"}, None, "safety/reset"),
    ],
)
def test_the_guard_is_told(said: dict[str, str], passed: bool | None, text: str) -> None:
    check = every(heard(guard=said))["guard"]
    assert check.passed is passed
    assert text in f"{check.found} {check.remedy}"


# This machine.


def test_a_lock_that_is_held_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lock"
    monkeypatch.setattr(machine, "lock_file", lambda _robot: path)
    assert machine.lock("arm").passed is True
    path.write_text('{"pid": 4711}')
    assert machine.lock("arm").passed is True
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        held = machine.lock("arm")
    assert (held.passed, held.found) == (False, "process 4711 holds it")


def test_who_holds_a_robot_is_told_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    for module in (machine, lock):
        monkeypatch.setattr(module, "lock_file", lambda _robot: path)
    monkeypatch.setattr(sys, "argv", ["/usr/bin/robo-eval", "run", "plan\n.yaml"])
    with lock.robot_lock("arm"):
        found = machine.lock("arm").found
        with pytest.raises(InputError, match=re.escape("robo-eval run plan\\n.yaml")):
            lock.robot_lock("arm").__enter__()
    assert f"process {os.getpid()} of user" in found
    assert "('robo-eval run plan\\n.yaml') holds it" in found


def test_stops_are_a_table_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    stop = StopFinding(
        asked=0.2, speed=0.164, stop_s=0.416, distance=0.0362, expected_s=0.02,
        expected_distance=0.000994,
    )  # fmt: skip
    check = stops_of(JointFinding(joint="cart_x", stops=[stop] * 3), ROBOT)
    assert check.found.count("from 0.164 m/s, 0.416 s, 0.0362 m") == 3
    verb._print("twin", [Check("preflight", passed=True, found="stands"), check])
    told = capsys.readouterr().out
    assert "stops of" not in told
    words = " ".join(told.split("\nstops\n")[1].split())
    assert words.startswith("joint from time distance time of ramp distance of ramp ")
    assert words.count("cart_x 0.164 m/s 0.416 s 0.0362 m 0.020 s 0.000994 m") == 3
    stop.expected_s = stop.expected_distance = None
    verb._print("twin", [stops_of(JointFinding(joint="cart_x", stops=[stop]), ROBOT)])
    assert "ramp" not in capsys.readouterr().out


def test_a_folder_that_is_not_there_yet_is_measured_above(tmp_path: Path) -> None:
    assert str(tmp_path) in machine.disk_space(tmp_path / "runs" / "today").found
    assert machine.disk_speed(tmp_path / "runs").found.endswith("MiB/s with fsync")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type("Usage", (), {"free": 5 << 20, "total": 10 << 20})
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda _folder: usage)
    assert machine.disk_space(tmp_path).passed is False


def test_wheels_beside_a_sourced_ros_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "version", lambda _name: "9.1")
    assert machine.installations({"AMENT_PREFIX_PATH": sys.prefix}).passed is True
    mixed = machine.installations({"AMENT_PREFIX_PATH": os.pathsep.join(["/opt/ros/jazzy"])})
    assert mixed.passed is False
    assert "/opt/ros/jazzy" in mixed.found


def test_settings_are_shown() -> None:
    found = machine.ros_settings({"ROS_DOMAIN_ID": "42"}).found
    assert "ROS_DOMAIN_ID 42" in found
    assert "SUBNET" in found


def test_without_ros_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verb, "has_ros", lambda: False)
    with pytest.raises(MissingExtraError, match=r"robo-eval-stack\[ros\]"):
        verb.doctor(Path("robot.yaml"))


def test_a_user_without_the_right_to_real_time_priority_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    assert machine.precedence(0).passed
    before = os.sched_getscheduler(0)
    assert machine.precedence(10).passed in {True, None}
    assert os.sched_getscheduler(0) == before
    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    check = machine.precedence(10)
    assert check.passed is None
    assert "rtprio 10" in check.remedy
