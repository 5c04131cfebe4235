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
from robo_eval_robot.guard import Answer, Guard, GuardState, Reaction
from robo_eval_robot.guard_checks import Code, Request
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
        places = {
            "": [data["guard"]],
            "stop": [data["guard"]["stop"]],
            "mode": [data["state"]["mode"]],
            "drive": [data["twin"]["drive"]],
            "limits": [each["limits"] for each in data["joints"].values()],
        }
        for place in places[section]:
            place[key] = value
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
        self.powers_off = self.heard = 0
        self.incidents: list[Code] = []
        self.said: Mode | None = None
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
            self.heard += 1
        self.powers_off += reaction.power_off
        self.incidents += [each.code for each in reaction.incidents]
        return result

    def play(self, milliseconds: int) -> list[dict[str, Any]]:
        """Rows of what the drives did, one a tick."""
        rows = []
        for _ in range(0, milliseconds, self.tick_ms):
            self.ms += self.tick_ms
            self.drives.tick(self.tick_ms / 1000.0)
            if self.said is not self.drives.mode:
                self.said = self.drives.mode
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


@pytest.mark.parametrize("how", ["disabled", "reset"])
@pytest.mark.parametrize("unpowered", [False, True])
def test_a_robot_that_is_moved_while_nothing_else_is_sent_stays_there(
    how: str, unpowered: bool
) -> None:
    cell = Cell(arm())
    cell.move(0.3, 400)
    if how == "disabled":
        cell.take(cell.guard.enable(on=False, now=cell.now))
    else:
        cell.stop(1000)
        assert cell.take(cell.guard.reset(cell.now)).success
    cell.play(1000)
    check_hand_is_followed(cell, unpowered=unpowered)
    assert cell.guard.state is GuardState.READY
    cell.heard = 0
    cell.play(1000)
    assert not cell.heard, "nothing is sent once it stands"


@pytest.mark.parametrize("unpowered", [False, True])
def test_a_robot_that_was_left_to_its_driver_is_held_again_where_it_is(unpowered: bool) -> None:
    cell = Cell(arm())
    cell.move(0.3, 400)
    cell.stop(8)
    check_hand_is_followed(cell, unpowered=unpowered, milliseconds=3000)
    assert Code.NO_STANDSTILL in cell.incidents
    assert "remove power" in cell.take(cell.guard.reset(cell.now)).message  # it never answered


def check_hand_is_followed(cell: Cell, *, unpowered: bool, milliseconds: int = 1000) -> None:
    """A hand moves it, and it stays there when it follows commands again."""
    cell.drives.power(on=False) if unpowered else cell.drives.freedrive(on=True)
    cell.hand(0.5, milliseconds)
    cell.hand(0.0, 500)
    stands = cell.drives.position.copy()
    cell.drives.power(on=True) if unpowered else cell.drives.freedrive(on=False)
    rows = cell.play(1500)
    assert abs(column(rows, "position") - stands[0]).max() < 0.005


@pytest.mark.parametrize("interface", ["position", "velocity"])
@pytest.mark.parametrize("slowed_ms", [0, 40, 100, 220, 300])
def test_motion_is_not_enabled_while_a_joint_moves(interface: str, slowed_ms: int) -> None:
    cell = Cell(arm(interface))
    cell.move(2.5, 1200)
    cell.take(cell.guard.enable(on=False, now=cell.now))
    rows = cell.play(slowed_ms)
    answer = cell.take(cell.guard.enable(on=True, now=cell.now))
    assert (answer.success, answer.message) == (False, "The robot does not stand.")
    check_rows(rows + cell.play(1500))
    assert cell.take(cell.guard.enable(on=True, now=cell.now)).success


# Whatever is asked for, at any moment -----------------------------------------------------------

PHASES = st.lists(st.tuples(st.floats(-14.0, 14.0), st.integers(1, 12)), min_size=1, max_size=6)
"""How a policy speeds up or slows down, and for how many control periods."""
OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["stop", "disable", "enable", "withhold", "reset", "remote", "silence"]),
        st.integers(0, 120),
    ),
    min_size=1,
    max_size=4,
)
"""What is asked for, and for how many ticks of the drives nothing else is."""


def check_rows(rows: list[dict[str, Any]], most: float = 1.05 * ACCELERATION) -> None:
    """The drives could follow, and no joint was accelerated beyond its limit."""
    assert "protective stop" not in events(rows)
    for joint in range(6):
        assert abs(column(rows, "acceleration", joint)).max(initial=0) <= most


def act(cell: Cell, phases: list[tuple[float, int]], joint: int = 0) -> list[dict[str, Any]]:
    """Have a policy move one joint within its limits, as long as the guard lets it."""
    speed, rows, place = 0.0, [], cell.drives.position.copy()
    for change, periods in phases:
        for _ in range(periods):
            if cell.guard.state is not GuardState.RUNNING:
                return rows
            speed = float(np.clip(speed + change * CONTROL_MS / 1000.0, -2.9, 2.9))
            place[joint] += speed * CONTROL_MS / 1000.0
            wanted = np.zeros(6)
            wanted[joint] = speed
            cell.ask((place if cell.interface == "position" else wanted).tolist())
            rows += cell.play(CONTROL_MS)
    return rows


@pytest.mark.parametrize("interface", ["position", "velocity"])
@settings(max_examples=40)
@given(phases=PHASES, operations=OPERATIONS, excess=st.sampled_from(["stop", "clamp"]))
@example(phases=[(10.0, 8), (-10.0, 7)], operations=[("stop", 0)], excess="stop")
@example(phases=[(12.0, 10), (-14.0, 9)], operations=[("disable", 0)], excess="stop")
@example(phases=[(12.5, 10)], operations=[("withhold", 10), ("stop", 0)], excess="stop")
@example(phases=[(12.5, 10)], operations=[("stop", 5), ("remote", 0)], excess="stop")
@example(phases=[(12.5, 10)], operations=[("disable", 60), ("stop", 0)], excess="stop")
@example(phases=[(12.5, 10)], operations=[("disable", 15), ("enable", 5)], excess="stop")
def test_the_drives_can_follow_whatever_is_asked_for(
    interface: str, phases: list[tuple[float, int]], operations: list[tuple[str, int]], excess: str
) -> None:
    cell = Cell(arm(interface, mode__follows=["running", "remote"], on_excess=excess))
    rows = act(cell, phases)
    for what, ticks in operations:
        guard, now = cell.guard, cell.now
        if what in {"enable", "disable"}:
            cell.take(guard.enable(on=what == "enable", now=now))
        elif what == "remote":
            cell.take(guard.mode("remote", now))
        elif what != "silence":
            cell.take(getattr(guard, what)(now))
        rows += cell.play(ticks * cell.tick_ms)
    # When nothing comes, the drives brake by themselves as much as they can.
    withheld = interface == "velocity" and "withhold" in dict(operations)
    check_rows(rows + cell.play(1500), 1.2 * ACCELERATION if withheld else 1.05 * ACCELERATION)
    assert cell.drives.velocity == pytest.approx([0.0] * 6, abs=1e-3)


@settings(max_examples=40)
@given(
    phases=PHASES,
    excess=st.sampled_from(["stop", "clamp"]),
    jerk=st.sampled_from([None, 300.0, 1000.0]),
    operation=st.sampled_from(["stop", "disable", None]),
)
@example(phases=[(5.0, 25), (0.0, 60)], excess="stop", jerk=None, operation=None)
@example(phases=[(5.0, 10), (0.0, 106)], excess="stop", jerk=None, operation="stop")
@example(phases=[(5.0, 25), (0.0, 30)], excess="clamp", jerk=None, operation="stop")
@example(phases=[(5.0, 20), (0.0, 90)], excess="clamp", jerk=300.0, operation=None)
def test_a_joint_stops_before_the_end_of_its_range(
    phases: list[tuple[float, int]], excess: str, jerk: float | None, operation: str | None
) -> None:
    config = arm(on_excess=excess, drive__start={"elbow_joint": 2.4}, limits__jerk_rad_s3=jerk)
    cell = Cell(config)
    rows = act(cell, phases, joint=2)
    if operation == "stop":
        cell.take(cell.guard.stop(cell.now))
    elif operation == "disable":
        cell.take(cell.guard.enable(on=False, now=cell.now))
    check_rows(rows + cell.play(1500))


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
