"""A guard before an arm's drives, over real DDS; the drives write down how they moved."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import rclpy
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.context import Context

import robo_eval_twin
from robo_eval_robot import topics
from robo_eval_robot.config import read_robot
from robo_eval_twin import drives_node
from robo_eval_twin.drives_node import DrivesNode

SOURCES = Path(robo_eval_twin.__file__).parents[2]
ROBOT = SOURCES / "robo_eval_bringup/config/arm_twin.yaml"
RIG = Path(__file__).with_name("rig_arm.py")
DEADLINE_S = 120.0
PATIENT = {
    "cycle_hz: 50": "cycle_hz: 20",  # a guard that is late itself by ten cycles stops
    "command_age_s: 0.4": "command_age_s: 4.0",
    "state_age_s: 0.4": "state_age_s: 4.0",
    "_heartbeat_s: 0.8": "_heartbeat_s: 4.0",
    "within_s: 2.0": "within_s: 10.0",
}
"""No test here is about how soon the guard misses somebody, and computers can be busy."""
START: list[list[Any]] = [["until", "READY"], ["call", "safety/enable", True]]


@dataclass(frozen=True)
class Played:
    """What was told of each step, and what the drives did in each tick."""

    steps: list[dict[str, Any]]
    rows: list[dict[str, Any]]

    def column(self, what: str, since: int = 0) -> np.ndarray:
        """Of the first joint."""
        return np.array([row[what][0] for row in self.rows[since:]])

    def last(self, event: str) -> int:
        """The row of the last such event."""
        return max(number for number, row in enumerate(self.rows) if event in row["events"])

    def faults(self) -> list[str]:
        events = [event for row in self.rows for event in row["events"]]
        return [event for event in events if event.startswith("protective stop")]


class Processes:
    """What a test starts as modules, and the files they and others leave behind."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.record, self.robot = folder / "motion.jsonl", folder / "arm.yaml"
        text = ROBOT.read_text()
        for old, new in PATIENT.items():
            assert old in text
            text = text.replace(old, new)
        self.robot.write_text(text)
        self._folder, self._env = folder, environment
        self._started: list[subprocess.Popen[bytes]] = []

    def drives(self) -> None:
        record = f"record:={self.record}"
        self.start("robo_eval_twin.twin_node", self.robot, "--ros-args", "-p", record)

    def start(self, *arguments: object) -> None:
        errors = self._folder / f"{len(self._started)}.txt"
        with errors.open("wb") as file:
            command = [sys.executable, "-m", *map(str, arguments)]
            self._started.append(subprocess.Popen(command, env=self._env, stderr=file))

    def run(self, *arguments: object) -> str:
        """What a program says that has to succeed; all others end with it."""
        done = run(self._env, *arguments)
        self.end()
        if done.returncode:
            errors = [path.read_text()[-2000:] for path in self._folder.glob("*.txt")]
            pytest.fail("".join([done.stderr[-2000:], *errors]))
        return done.stdout

    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.record.read_text().splitlines()]

    def end(self) -> None:
        for process in self._started:
            process.send_signal(signal.SIGINT)
        for process in self._started:
            try:
                process.wait(30.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(30.0)


def run(environment: dict[str, str], *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


@pytest.fixture
def processes(tmp_path: Path, ros_environment: dict[str, str]) -> Iterator[Processes]:
    found = Processes(tmp_path, ros_environment)
    yield found
    found.end()


@pytest.fixture
def play(processes: Processes) -> Callable[..., Played]:
    """Start drives and guard, have the rig play steps, and read what was recorded."""

    def call(*steps: list[Any]) -> Played:
        processes.drives()
        robot = processes.robot
        processes.start("robo_eval_robot.guard_node", robot)
        told = json.loads(processes.run(RIG, robot, json.dumps([*START, *steps])))
        return Played(told[len(START) :], processes.rows())

    return call


def test_ticks_that_a_busy_computer_lost_are_played_and_stamps_are_of_the_clock(
    processes: Processes, ros_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ros_environment.items():
        monkeypatch.setenv(name, value)
    now_ns, config, told = 10**18, read_robot(processes.robot), []
    clock = SimpleNamespace(monotonic=lambda: (now_ns - 10**18) / 1e9, time_ns=lambda: now_ns)
    monkeypatch.setattr(drives_node, "time", clock)
    assert config.twin is not None
    assert config.twin.drive is not None
    rclpy.init(context=(context := Context()))
    node = DrivesNode(context, config, config.twin.drive)
    for name in ("_states", "_health"):
        monkeypatch.setattr(node, name, SimpleNamespace(publish=told.append))
    for late_s in (0.009, 1.0, 0.008, 0.001):
        now_ns += round(late_s * 1e9)
        node._tick()
        assert now_ns - topics.ns_of(told[-1].header.stamp) <= 8e6 + 1
    assert (len(told), node._ticks) == (3, 127)  # nothing is said twice
    node._drives.stop("a collision")
    now_ns += 8_000_000
    node._tick()
    status = told[-2].status[0]
    assert (status.level, status.name) == (DiagnosticStatus.ERROR, "/arm0/driver")
    assert status.message == "protective stop: a collision; mode: protective_stop"
    node.finish()
    node.node.destroy_node()
    rclpy.try_shutdown(context=context)


@pytest.mark.slow
def test_the_guide_s_program_stops_and_resets(
    processes: Processes, tmp_path: Path, ros_environment: dict[str, str]
) -> None:
    page = (SOURCES.parents[1] / "docs/guard.md").read_text()
    program = tmp_path / "ask_guard.py"
    program.write_text(page.split("<!-- file: ask_guard.py -->\n```python\n")[1].split("```")[0])
    processes.drives()
    processes.start("robo_eval_robot.guard_node", processes.robot)
    done = run(ros_environment, program, "/arm0/safety/stop")
    assert "stopped" in done.stdout, done.stderr
    while "READY" not in (done := run(ros_environment, program, "/arm0/safety/reset")).stdout:
        assert done.stdout, done.stderr  # not seen the drives yet
    done = run(ros_environment, program, "/nowhere/safety/stop")
    assert (done.returncode, done.stderr) == (1, "nobody offers /nowhere/safety/stop\n")


def test_what_a_guard_lets_through_is_followed_and_a_slow_stop_ends_at_standstill(
    play: Callable[..., Played],
) -> None:
    played = play(["move", 0.5, 1.5], ["call", "safety/stop"], ["wait", 1.0])
    assert played.steps[-1]["state"] == "PROTECTIVE_STOP"
    assert played.steps[-1]["causes"] == "operator_stop"
    assert played.faults() == []
    assert played.column("velocity").max() == pytest.approx(0.5, abs=0.2)
    assert played.column("position")[-1] == pytest.approx(0.6, abs=0.2)
    assert played.rows[-1]["velocity"] == pytest.approx([0.0] * 6, abs=1e-3)
    assert abs(played.column("acceleration")).max() <= 15.0
    assert [row["t_s"] for row in played.rows] == pytest.approx(
        np.arange(1, len(played.rows) + 1) * 0.008
    )


@pytest.mark.slow
def test_the_driver_s_own_faults_and_modes(play: Callable[..., Played]) -> None:
    played = play(
        ["set", "faults.power_off", "refused"],
        ["call", "driver/power_off"],
        ["set", "faults.deaf", True],
        ["move", 0.3, 0.5],
        ["set", "faults.deaf", False],
        ["call", "driver/protective_stop"],
        ["call", "driver/unlock_protective_stop"],
        ["call", "driver/reconnect"],
        ["wait", 2.0],
        ["call", "driver/estop", True],
        ["until", "ESTOP"],
        ["call", "driver/power_on"],
        ["call", "driver/estop", False],
    )
    said = [(step["success"], step["message"]) for step in played.steps if "success" in step]
    assert said == [
        (False, "refused"),
        (True, "is protective_stop"),
        (True, "is running"),
        (True, "is no_controller"),
        (True, "is power_off"),
        (True, "is power_off"),
        (True, "is power_off"),
    ]
    assert played.steps[3]["place"] == 0.0
    assert played.faults() == ["protective stop: asked for"]
    away = [row["t_s"] for row in played.rows if row["mode"] == "no_controller"]
    assert away[-1] - away[0] == pytest.approx(1.0, abs=0.02)
    assert played.rows[-1]["mode"] == "power_off"


@pytest.mark.slow
def test_the_preflight_moves_an_arm_that_plays_no_task(processes: Processes) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from robo_eval_robot.config import read_robot\n"
        "from robo_eval_robot.doctor import move\n"
        "path = Path(sys.argv[1])\n"
        "check = move(read_robot(path), path, lambda _: False)\n"
        "sys.exit(None if check.passed else check.found)"
    )
    processes.drives()
    processes.run("-c", program, processes.robot)
    moved = np.ptp([row["position"] for row in processes.rows()], axis=0)
    assert (moved > 1e-3).all()
    assert (moved < 0.5).all()
    assert not [event for row in processes.rows() for event in row["events"]]


@pytest.mark.slow
def test_a_recording_that_cannot_be_written_is_refused(ros_environment: dict[str, str]) -> None:
    record = ("--ros-args", "-p", "record:=/nowhere/motion.jsonl")
    done = run(ros_environment, "-m", "robo_eval_twin.twin_node", ROBOT, *record)
    assert done.returncode == 2
    assert "record: /nowhere/motion.jsonl: cannot be written: No such file" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("away", "back"),
    [
        (["call", "driver/power_off"], ["call", "driver/power_on"]),
        (["call", "driver/freedrive", True], ["call", "driver/freedrive", False]),
        (["call", "driver/controller", False], ["call", "driver/controller", True]),
    ],
    ids=["power", "freedrive", "controller"],
)
def test_drives_that_follow_again_do_not_jump(
    play: Callable[..., Played], away: list[Any], back: list[Any]
) -> None:
    played = play(
        ["move", 0.3, 0.5], ["call", "safety/stop"], ["wait", 0.5],
        away, ["hand", 0.6, 0.7], back, ["wait", 1.0],
    )  # fmt: skip
    again = played.last("mode: running")
    assert played.column("position")[again] - played.column("position")[0] > 0.4  # it was moved
    places = played.column("position", again)
    assert abs(places - places[0]).max() < 0.02
    assert abs(played.column("velocity", again)).max() < 0.1


@pytest.mark.slow
def test_a_pressed_emergency_stop_holds_whatever_other_sources_say(
    play: Callable[..., Played],
) -> None:
    played = play(["estop", True], ["wait", 1.0], ["call", "safety/reset"])
    assert played.steps[1]["state"] == "ESTOP"
    assert not played.steps[2]["success"], "another source had said that it is released"
    assert "pressed" in played.steps[2]["message"]


@pytest.mark.slow
def test_an_emergency_stop_that_falls_silent_stops(play: Callable[..., Played]) -> None:
    played = play(["move", 0.1, 0.5], ["set", "faults.estop_silent", True], ["move", 0.1, 2.5])
    assert played.steps[0]["state"] == "RUNNING"
    assert "estop" in played.steps[-1]["causes"]
