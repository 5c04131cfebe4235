"""A guard before an arm's drives, over real DDS; the drives write down how they moved."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import robo_eval_twin

SOURCES = Path(robo_eval_twin.__file__).parents[2]
ROBOT = SOURCES / "robo_eval_bringup/config/arm_twin.yaml"
RIG = Path(__file__).with_name("rig_arm.py")
DEADLINE_S = 120.0
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


@pytest.fixture
def play(tmp_path: Path, ros_environment: dict[str, str]) -> Iterator[Callable[..., Played]]:
    """Start drives and guard, have the rig play steps, and read what was recorded."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*arguments: object) -> None:
        started.append(
            subprocess.Popen(
                [sys.executable, "-m", *map(str, arguments)],
                env=ros_environment,
                stderr=(tmp_path / f"{len(started)}.txt").open("wb"),
            )
        )

    def end() -> None:
        for process in started:
            process.send_signal(signal.SIGINT)
        for process in started:
            try:
                process.wait(30.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(30.0)

    def call(*steps: list[Any]) -> Played:
        record = tmp_path / "motion.jsonl"
        arguments = ("--ros-args", "-p", f"record:={record}")
        start("robo_eval_twin.twin_node", ROBOT, *arguments)
        start("robo_eval_robot.guard_node", ROBOT)
        done = subprocess.run(
            [sys.executable, str(RIG), str(ROBOT), json.dumps([*START, *steps])],
            env=ros_environment,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        end()
        errors = "".join(path.read_text()[-2000:] for path in tmp_path.glob("*.txt"))
        if done.returncode:
            pytest.fail(f"{done.stderr[-2000:]}{errors}")
        rows = [json.loads(line) for line in record.read_text().splitlines()]
        return Played(json.loads(done.stdout)[len(START) :], rows)

    yield call
    end()


def today(reason: str) -> pytest.MarkDecorator:
    """What the guard does not do yet; only what is asserted may fail."""
    return pytest.mark.xfail(strict=True, raises=AssertionError, reason=reason)


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
    assert "state_age" in played.steps[8]["causes"]
    assert played.rows[-1]["mode"] == "power_off"


@pytest.mark.slow
def test_a_recording_that_cannot_be_written_is_refused(ros_environment: dict[str, str]) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "robo_eval_twin.twin_node", str(ROBOT)),
            *("--ros-args", "-p", "record:=/nowhere/motion.jsonl"),
        ],
        env=ros_environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 2
    assert "record: /nowhere/motion.jsonl: cannot be written: No such file" in done.stderr


@pytest.mark.slow
@today("the guard streams the position of the stop for ever, whatever the driver's mode")
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


@today("what any source of the emergency stop said last counts for all of them")
@pytest.mark.slow
def test_a_pressed_emergency_stop_holds_whatever_other_sources_say(
    play: Callable[..., Played],
) -> None:
    played = play(["estop", True], ["wait", 1.0], ["call", "safety/reset"])
    assert played.steps[1]["state"] == "ESTOP"
    assert not played.steps[2]["success"], "another source had said that it is released"


@today("the guard waits for no second word of an emergency stop that has been heard once")
@pytest.mark.slow
def test_an_emergency_stop_that_falls_silent_stops(play: Callable[..., Played]) -> None:
    played = play(["move", 0.1, 0.5], ["set", "faults.estop_silent", True], ["move", 0.1, 2.5])
    assert played.steps[0]["state"] == "RUNNING"
    assert played.steps[-1]["state"] in {"PROTECTIVE_STOP", "ESTOP"}
