"""What the guard's commands do to drives that have limits and modes of their own.

The drives are the witness: they know nothing of the guard, and write down how they moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

import robo_eval_twin
from robo_eval.core.errors import InputError
from robo_eval_robot.config import RobotConfig, parse_robot
from robo_eval_robot.guard import Guard
from robo_eval_robot.guard_checks import Code, Request
from robo_eval_robot.guard_state import Answer, GuardState, Reaction
from robo_eval_robot.guard_watch import JointSample
from robo_eval_twin.drives import Drives, Mode

SOURCES = Path(robo_eval_twin.__file__).parents[2]
TEXT = (SOURCES / "robo_eval_bringup/config/arm_twin.yaml").read_text()
SPEED, ACCELERATION = 3.14, 15.0  # of each joint, in that file
STATE_MS = 8
CYCLE_MS = CONTROL_MS = 20
MS = 1_000_000
LIFT = 1  # the place of a vertical axis


def arm(interface: str = "position", **changes: Any) -> RobotConfig:
    """The arm's file; `stop__category=0` changes that key of `guard`, `drive__margin` a drive's."""
    data = yaml.safe_load(TEXT)
    data["controller"]["interface"] = interface
    if interface != "position":
        del data["guard"]["command_step"]
    for name, value in changes.items():
        section, _, key = name.rpartition("__")
        place = {"": data["guard"], "stop": data["guard"]["stop"], "drive": data["twin"]["drive"]}
        place[section][key] = value
    return parse_robot(yaml.safe_dump(data), source="arm")


class Cell:
    """A guard before drives, on a clock of whole milliseconds.

    Args:
        config: The robot.
        tick_ms: How finely the drives move.
    """

    def __init__(self, config: RobotConfig, tick_ms: int = 4) -> None:
        assert config.twin is not None
        assert config.twin.drive is not None
        self.ms, self.tick_ms = 100_000, tick_ms
        self.guard = Guard(config, self.now)
        self.drives = Drives(config, config.twin.drive)
        self.interface = config.controller.interface
        self.passed: list[tuple[int, tuple[float, ...]]] = []
        """When which request of the policy was passed on, ms."""
        self.powers_off = 0
        self.incidents: list[Code] = []
        self.guard.estop(pressed=False, now=self.now)
        self.play(40)
        assert self.guard.enable(on=True, now=self.now).success

    @property
    def now(self) -> float:
        return self.ms / 1000.0

    def take(self, result: Reaction | Answer) -> Any:
        reaction = result.reaction if isinstance(result, Answer) else result
        if reaction.command is not None:
            self.drives.hear(reaction.command)
        self.powers_off += reaction.power_off
        self.incidents += [each.code for each in reaction.incidents]
        return result

    def play(self, milliseconds: int) -> list[dict[str, Any]]:
        """Rows of what the drives did, one a tick."""
        rows = []
        for _ in range(0, milliseconds, self.tick_ms):
            self.ms += self.tick_ms
            self.drives.tick(self.tick_ms / 1000.0)
            if self.guard.peers.mode != self.drives.mode:
                self.take(self.guard.mode(str(self.drives.mode), self.now))
            rows.append(self.drives.row())
            if self.ms % STATE_MS == 0:
                self.take(self.guard.joint_state(self.sample(), self.now))
            if self.ms % CYCLE_MS == 0:
                self.guard.peers.heard_driver(self.now)
                self.guard.peers.heard_policy(self.now)
                self.take(self.guard.estop(pressed=False, now=self.now))
                look = {"publishers": 1, "estop_sources": 1, "power_off_ready": True}
                self.take(self.guard.graph(**look, now=self.now))
                self.take(self.guard.cycle(self.now))
        return rows

    def sample(self) -> JointSample:
        drives = self.drives
        return JointSample(
            names=drives.joints,
            positions=drives.position.tolist(),
            velocities=drives.velocity.tolist(),
            stamp_ns=self.ms * MS,
        )

    def ask(self, values: Sequence[float]) -> None:
        """What a policy asks for, stamped now."""
        request = Request(names=self.drives.joints, values=values, stamp_ns=self.ms * MS)
        reaction = self.guard.request(request, wall_ns=self.ms * MS, now=self.now)
        if self.guard.state is GuardState.RUNNING and reaction.command is not None:
            self.passed.append((self.ms, reaction.command))
        self.take(reaction)

    def move(self, speeds: float | Sequence[float], milliseconds: int) -> list[dict[str, Any]]:
        """Have joints speed up gently, and go on at these speeds; all within the limits.

        A number is the speed of the first joint.
        """
        wanted = np.zeros(6)
        wanted[: np.size(speeds)] = speeds
        rows, now, place = [], np.zeros(6), self.drives.position.copy()
        change = 5.0 * CONTROL_MS / 1000.0
        for _ in range(0, milliseconds, CONTROL_MS):
            now = now + np.clip(wanted - now, -change, change)
            place = place + now * CONTROL_MS / 1000.0
            self.ask((place if self.interface == "position" else now).tolist())
            rows += self.play(CONTROL_MS)
        assert self.guard.state is GuardState.RUNNING, self.incidents
        assert self.drives.mode is Mode.RUNNING
        return rows

    def stop(self, milliseconds: int) -> list[dict[str, Any]]:
        """Have somebody stop it; rows of what follows."""
        assert self.take(self.guard.stop(self.now)).success
        return self.play(milliseconds)

    def hand(self, speed: float, milliseconds: int) -> None:
        """Have a hand move the first joint."""
        self.drives.guide([speed, 0, 0, 0, 0, 0])
        self.play(milliseconds)


def column(rows: list[dict[str, Any]], what: str, joint: int = 0) -> np.ndarray:
    return np.array([row[what][joint] for row in rows])


def events(rows: list[dict[str, Any]]) -> str:
    return "; ".join(event for row in rows for event in row["events"])


@pytest.mark.parametrize(("interface", "speed"), [("position", 2.5), ("velocity", 3.0)])
def test_what_a_policy_asks_within_the_limits_is_followed(interface: str, speed: float) -> None:
    rows = Cell(arm(interface)).move(speed, 1200)
    assert events(rows) == ""
    assert column(rows, "velocity")[-1] == pytest.approx(speed, abs=0.1)


# A stop decelerates ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("interface", "speed"),
    [
        ("position", 0.5),
        ("position", 2.5),
        ("velocity", 1.0),
        ("velocity", 3.0),
    ],
)
def test_a_stop_decelerates_within_the_limits_and_ends_at_standstill(
    interface: str, speed: float
) -> None:
    check_stop(Cell(arm(interface)), speed)


@pytest.mark.parametrize("interface", ["position", "velocity"])
@settings(max_examples=10)
@given(speeds=st.lists(st.floats(-2.8, 2.8), min_size=6, max_size=6), moved_ms=st.integers(5, 40))
@example(speeds=[2.5, -2.5, 2.5, 0.0, 0.0, 0.1], moved_ms=40)
def test_every_joint_is_stopped_within_its_limits(
    interface: str, speeds: list[float], moved_ms: int
) -> None:
    check_stop(Cell(arm(interface)), speeds, moved_ms * CONTROL_MS)


def check_stop(cell: Cell, speeds: float | list[float], moved_ms: int = 1200) -> None:
    """A stop from these speeds, by what the drives did."""
    cell.move(speeds, moved_ms)
    rows = cell.stop(2000)
    assert events(rows) == "", "the drives could not follow the stop"
    for joint in range(6):
        assert abs(column(rows, "acceleration", joint)).max() <= 1.05 * ACCELERATION
    assert rows[-1]["velocity"] == pytest.approx([0.0] * 6, abs=1e-3)


def test_efforts_need_something_that_holds_vertical_axes_at_zero() -> None:
    with pytest.raises(InputError, match=r"guard\.stop\.holds: is missing.*gravity_compensation"):
        arm("effort")
    assert arm("effort", stop__holds="brakes").guard.stop.holds == "brakes"


# A stop never ends in a jump -------------------------------------------------------------------


@pytest.fixture
def guided() -> Cell:
    """Stopped, at a standstill, and then free to be moved by hand."""
    cell = Cell(arm())
    cell.move(0.3, 400)
    cell.stop(1000)
    cell.drives.freedrive(on=True)
    return cell


def test_a_reset_is_refused_while_a_joint_moves(guided: Cell) -> None:
    guided.hand(0.3, 500)
    assert not guided.take(guided.guard.reset(guided.now)).success


def test_a_reset_moves_nothing(guided: Cell) -> None:
    guided.hand(0.5, 1000)
    guided.hand(0.0, 500)
    stands = guided.drives.position.copy()
    guided.drives.freedrive(on=False)
    guided.play(100)
    assert guided.take(guided.guard.reset(guided.now)).success
    rows = guided.play(1000)
    assert abs(column(rows, "position") - stands[0]).max() < 0.01


# Limits are over time --------------------------------------------------------------------------


@pytest.mark.parametrize("on_excess", ["stop", "clamp"])
@pytest.mark.parametrize(
    "gap_ms",
    [1, 2, 5, CONTROL_MS],
)
def test_no_rate_of_requests_passes_a_speed_beyond_the_limit(gap_ms: int, on_excess: str) -> None:
    cell = Cell(arm(on_excess=on_excess), tick_ms=1)
    place = cell.drives.position.copy()
    for number in range(40):
        place[0] += min(0.003 * (number + 1), 0.05)
        cell.ask(place.tolist())
        cell.play(gap_ms)
    times_s = np.array([ms for ms, _ in cell.passed]) / 1000.0
    places = np.array([command[0] for _, command in cell.passed])
    if len(places) > 1:
        passed = (places[-1] - places[0]) / max(times_s[-1] - times_s[0], CONTROL_MS / 1000.0)
        assert passed <= 1.01 * SPEED


def test_no_requests_pass_that_reverse_at_once() -> None:
    cell = Cell(arm())
    cell.move(2.5, 800)
    place = np.array(cell.passed[-1][1])
    for _ in range(20):
        place[0] -= 0.05
        cell.ask(place.tolist())
        cell.play(CONTROL_MS)
    places = np.array([command[0] for _, command in cell.passed])
    accelerations = np.diff(places, 2) / (CONTROL_MS / 1000.0) ** 2
    assert abs(accelerations).max() <= 1.05 * ACCELERATION


def test_a_stiff_but_legal_step_of_velocity_stops_nothing() -> None:
    cell = Cell(arm("velocity", debounce=1, drive__bandwidth_rad_s=100.0, drive__margin=50.0))
    for _ in range(10):
        cell.ask([0.29, 0, 0, 0, 0, 0])
        cell.play(CONTROL_MS)
    assert cell.incidents == []


# Power that is not removed ---------------------------------------------------------------------


def test_power_that_is_not_removed_is_asked_for_again_and_told() -> None:
    cell = Cell(arm(stop__category=0))
    cell.move(0.3, 400)
    cell.stop(5000)  # the driver never answers
    assert cell.powers_off > 1
    assert Code.POWER_OFF in cell.incidents
