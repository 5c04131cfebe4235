"""`robo-eval doctor` looks at real processes: a twin, nothing, and robots with faults."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tests.ros.conftest import end

TWIN = Path(str(files("robo_eval_twin").joinpath("gantry_twin.yaml")))
RIG = Path(__file__).with_name("rig_robot.py")
COMMANDS = "forward_effort_controller/commands"


@pytest.fixture
def beside(tmp_path: Path, ros_environment: dict[str, str]) -> Iterator[Callable[..., None]]:
    """Start a robot beside the test; it is ended afterwards."""
    running: list[subprocess.Popen[str]] = []

    def call(*args: str, says: str = "") -> None:
        with (tmp_path / "robot.txt").open("w") as errors:
            process = subprocess.Popen(
                [sys.executable, *args],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=ros_environment,
            )
        running.append(process)
        if says:
            assert process.stdout is not None
            assert process.stdout.readline().startswith(says), (tmp_path / "robot.txt").read_text()

    yield call
    for process in running:
        end(process)


@pytest.fixture
def rig(beside: Callable[..., None]) -> Callable[..., None]:
    """Start a robot with chosen faults."""

    def call(**options: Any) -> None:
        beside(str(RIG), json.dumps(options), says="up")

    return call


def table(text: str) -> dict[str, dict[str, Any]]:
    return {check["name"]: check for check in json.loads(text)["checks"]}


def failed(checks: dict[str, dict[str, Any]]) -> set[str]:
    return {name for name, check in checks.items() if check["passed"] is False}


@pytest.mark.slow
def test_a_twin_passes_and_stops_by_itself(
    beside: Callable[..., None], cli: Callable[..., Any]
) -> None:
    beside("-m", "robo_eval_twin.twin_node", str(TWIN))
    done = cli("doctor", TWIN, "--json", "--move")
    checks = table(done.out)
    assert (done.code, failed(checks)) == (0, set()), done.err
    assert "50 Hz wanted" in checks["state rate"]["found"]
    assert checks["controller"]["found"].startswith("/twin0/twin listens on")
    assert "released" in checks["e-stop"]["found"]
    assert checks["stops of cart_x"]["found"].count("from ") == 3
    assert "not running" in checks["guard"]["found"]
    assert "after the last command" in checks["preflight"]["found"]


@pytest.mark.slow
def test_an_absent_robot_still_gives_the_table(cli: Callable[..., Any]) -> None:
    done = cli("doctor", TWIN, "--move")
    assert done.code == 1
    assert "preflight" not in done.out
    for name in ("joint states", "IMU", "driver heartbeat", "controller", "e-stop"):
        assert f"FAIL {name}: " in done.out
    assert "ROS_DOMAIN_ID" in done.out
    assert "checks failed: joint states, IMU" in done.err


def test_faults_are_named_with_their_remedies(
    rig: Callable[..., None], cli: Callable[..., Any]
) -> None:
    rig(
        rate_hz=25.0,
        best_effort=True,
        joints=["cart_x", "cart_y", "pole_roll", "pole_tilt", "gripper"],
        late_s=5.0,
        velocity=False,
        estop=[],
        controller=False,
        rivals=[COMMANDS, "policy/joint_command"],
    )
    done = cli("doctor", TWIN, "--json")
    checks = table(done.out)
    assert done.code == 1
    assert failed(checks) >= {
        "state rate",
        "joint names",
        "delivery of joint_states",
        "controller",
        "one commander",
        "one policy",
        "e-stop",
    }
    assert checks["joint names"]["found"] == "not there: pole_pitch"
    assert "reliability BEST_EFFORT" in checks["delivery of joint_states"]["found"]
    assert "/twin0/rival" in checks["one commander"]["found"]
    assert "/twin0/rival" in checks["one policy"]["found"]
    assert checks["wall clock"]["passed"] is None
    assert "chrony" in checks["wall clock"]["remedy"]
    assert "velocity" in checks["state fields"]["found"]
    assert all(checks[name]["remedy"] for name in failed(checks))


@pytest.mark.slow
def test_the_emergency_stop_is_seen_pressed_and_released(
    rig: Callable[..., None], cli: Callable[..., Any]
) -> None:
    rig(estop=[False, True], nan=True)
    done = cli("doctor", TWIN, "--json", "--estop")
    checks = table(done.out)
    assert checks["e-stop pressed"]["passed"] is True, done.err
    assert "press the emergency stop" in done.err
    assert checks["state numbers"]["found"] == "cart_x position is nan"
    assert failed(checks) <= {"state numbers", "e-stop"}
    assert done.code == 1


def test_a_broken_robot_file_is_one_line(cli: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "robot.yaml"
    file.write_text(TWIN.read_text().replace("rate_hz: 50", "rate_hz: fast", 1))
    done = cli("doctor", file)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "rate_hz" in done.err
