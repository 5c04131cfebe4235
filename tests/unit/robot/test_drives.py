"""The arm's drives: what they follow, what they cannot, and what their modes do."""

from __future__ import annotations

import ast
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import robo_eval_twin
from robo_eval.core.errors import InputError
from robo_eval_robot.config import RobotConfig, parse_robot
from robo_eval_twin.drives import Drives, Mode

SOURCES = Path(robo_eval_twin.__file__).parents[2]
TEXT = (SOURCES / "robo_eval_bringup/config/arm_twin.yaml").read_text()
TICK_S = 0.008
FIRST = "shoulder_pan_joint"
LIFT = 1  # its place: a vertical axis


def arm(interface: str = "position", holds: str = "brakes", **drive: Any) -> RobotConfig:
    data = yaml.safe_load(TEXT)
    data["controller"]["interface"] = interface
    data["twin"]["drive"] |= drive
    data["guard"]["stop"]["holds"] = holds
    return parse_robot(yaml.safe_dump(data), source="arm")


def drives(interface: str = "position", **drive: Any) -> Drives:
    config = arm(interface, **drive)
    assert config.twin is not None
    assert config.twin.drive is not None
    return Drives(config, config.twin.drive)


def play(one: Drives, seconds: float) -> list[dict[str, Any]]:
    """Rows of what it does, commands as they are."""
    rows = []
    for _ in range(round(seconds / TICK_S)):
        one.tick(TICK_S)
        rows.append(one.row())
    return rows


def ask(one: Drives, first: float) -> None:
    """A command that concerns the first joint; the others stay."""
    still = one.position if one._interface == "position" else np.zeros(6)
    one.hear([first, *still[1:]])


def events(rows: list[dict[str, Any]]) -> str:
    return "; ".join(event for row in rows for event in row["events"])


def first(rows: list[dict[str, Any]], what: str = "position") -> np.ndarray:
    return np.array([row[what][0] for row in rows])


def stream(one: Drives, speed: float, seconds: float, acceleration: float = 5.0) -> list[Any]:
    """Positions 50 times a second, up to a speed and then at it."""
    rows, place, now = [], float(one.position[0]), 0.0
    for number in range(round(seconds / TICK_S)):
        if number % round(0.02 / TICK_S) == 0:
            now = min(now + acceleration * 0.02, speed)
            place += now * 0.016
            ask(one, place)
        rows += play(one, TICK_S)
    return rows


def test_it_stands_where_it_starts_until_it_is_told_otherwise() -> None:
    one = drives()
    start = one.position.copy()
    rows = play(one, 1.0)
    assert rows[-1]["position"] == start.tolist()
    assert start[LIFT] == -1.0
    assert rows[-1]["command"] is None
    assert rows[-1]["mode"] == "running"
    assert rows[-1]["t_s"] == 1.0


def test_a_stream_within_the_limits_is_followed() -> None:
    one = drives()
    rows = stream(one, 2.0, 1.2)
    assert events(rows) == ""
    assert first(rows, "velocity")[-1] == pytest.approx(2.0, abs=0.1)
    assert abs(first(rows, "acceleration")).max() < 15.0
    place = np.diff(first(rows)) / TICK_S
    assert place == pytest.approx(first(rows, "velocity")[1:])


@pytest.mark.parametrize(
    ("interface", "command", "said"),
    [
        ("position", 6.5, f"position of {FIRST}"),
        ("position", 0.5, f"acceleration of {FIRST}"),
        ("position", math.nan, f"position of {FIRST}: nan"),
        ("velocity", 4.0, f"velocity of {FIRST}"),
        ("velocity", 3.0, f"acceleration of {FIRST}: 30 beyond 18"),
        ("effort", 160.0, f"effort of {FIRST}"),
        ("effort", 20.0, f"acceleration of {FIRST}: 20 beyond 18"),
    ],
)
def test_a_command_beyond_the_limits_is_a_protective_stop(
    interface: str, command: float, said: str
) -> None:
    one = drives(interface, gravity={})
    ask(one, command)
    rows = play(one, 1.0)
    assert said in events(rows)
    assert rows[-1]["mode"] == "protective_stop"
    assert abs(first(rows, "acceleration")).max() <= 18.0
    assert rows[-1]["velocity"] == [0.0] * 6


def test_a_speed_that_builds_up_beyond_its_limit_is_a_fault() -> None:
    one = drives("effort", gravity={})
    ask(one, 15.0)
    rows = play(one, 0.45)
    assert f"velocity of {FIRST}" in events(rows)
    assert abs(first(rows, "velocity")).max() <= 1.2 * 3.14


def test_a_command_of_another_length_is_ignored() -> None:
    one = drives()
    one.hear([1.0])
    assert "ignored" in events(play(one, 0.1))
    assert one.command is None
    assert one.mode is Mode.RUNNING


@pytest.mark.parametrize("interface", ["velocity", "effort"])
def test_it_brakes_when_commands_stop_coming(interface: str) -> None:
    one = drives(interface, gravity={})
    ask(one, 1.0)
    moving, later = play(one, 0.5), play(one, 0.5)
    assert first(moving, "velocity")[-1] > 0.4
    assert first(later, "velocity")[-1] == 0.0
    assert events(moving + later) == ""


def test_without_a_timeout_it_goes_on() -> None:
    config = arm("velocity")
    assert config.twin is not None
    assert config.twin.drive is not None
    twin = config.twin.model_copy(update={"has_command_timeout": False})
    one = Drives(config.model_copy(update={"twin": twin}), config.twin.drive)
    ask(one, 1.0)
    assert first(play(one, 2.0), "velocity")[-1] == pytest.approx(1.0)


def test_an_arm_without_effort_falls_and_its_brakes_hold_it() -> None:
    one = drives("effort", start={"shoulder_lift_joint": 0.0})
    weight = one.effort.tolist()
    assert weight[LIFT] == 40.0
    one.hear(weight)
    assert play(one, 0.2)[-1]["velocity"] == pytest.approx([0.0] * 6, abs=1e-6)
    one.hear([0.0] * 6)
    assert "acceleration of shoulder_lift_joint: -40" in events(play(one, 0.1))
    one = drives("effort", start={"shoulder_lift_joint": 0.0}, inertia=5.0)
    one.hear([0.0] * 6)
    fallen = play(one, 0.3)[-1]
    assert fallen["position"][LIFT] < -0.3
    one.power(on=False)
    rows = play(one, 1.0)
    assert rows[-1]["velocity"] == [0.0] * 6
    assert rows[-1]["position"][LIFT] == rows[-2]["position"][LIFT]


def test_with_gravity_compensation_an_effort_of_zero_holds() -> None:
    one = drives("effort", holds="gravity_compensation")
    one.hear([0.0] * 6)
    rows = play(one, 0.4)
    assert (events(rows), rows[-1]["velocity"]) == ("", [0.0] * 6)
    assert one.effort[LIFT] == pytest.approx(40.0 * math.cos(-1.0))  # it carries the arm
    one.hear([0.0, 5.0, *[0.0] * 4])
    assert play(one, 0.1)[-1]["velocity"][LIFT] == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize(("holds", "falls"), [("brakes", False), ("nothing_falls", True)])
def test_brakes_close_after_the_timeout_of_an_effort_of_zero(holds: str, falls: bool) -> None:
    one = drives("effort", holds=holds, inertia=50.0)
    for _ in range(40):  # a guard that has stopped the robot says so in every cycle
        one.hear([0.0] * 6)
        play(one, 0.02)
    assert bool(one.velocity[LIFT]) is falls
    one.hear([1.0, *[0.0] * 5])
    assert play(one, 0.1)[-1]["velocity"][LIFT] != 0.0  # they open for what is asked


def test_powered_on_again_it_goes_where_it_was_last_told() -> None:
    """Which is what makes an old command dangerous; no fault tells of it."""
    one = drives()
    ask(one, 0.0)
    one.power(on=False)
    one.guide([0.5, 0, 0, 0, 0, 0])
    play(one, 1.0)
    one.guide([0.0] * 6)
    assert play(one, 0.2)[-1]["position"][0] == pytest.approx(0.5, abs=0.05)
    one.power(on=True)
    rows = play(one, 2.0)
    assert events(rows) == "mode: running"
    assert first(rows)[-1] == pytest.approx(0.0, abs=0.01)
    assert abs(first(rows, "velocity")).max() > 1.5


def test_powered_on_without_a_command_it_stays() -> None:
    one = drives()
    one.power(on=False)
    play(one, 0.2)
    one.power(on=True)
    rows = play(one, 0.5)
    assert rows[-1]["velocity"] == [0.0] * 6
    assert rows[-1]["position"] == rows[0]["position"]


def test_modes_follow_what_is_done_to_it() -> None:
    one = drives()

    def does(ask: Any, **how: bool) -> Mode:
        ask(**how)
        return one.mode

    assert does(one.freedrive, on=True) is Mode.FREEDRIVE
    assert does(one.switch, on=False) is Mode.FREEDRIVE
    assert does(one.freedrive, on=False) is Mode.RUNNING
    assert does(one.switch, on=False) is Mode.NO_CONTROLLER
    assert does(one.unlock) is Mode.NO_CONTROLLER
    assert does(one.power, on=True) is Mode.NO_CONTROLLER
    assert does(one.switch, on=True) is Mode.RUNNING
    one.stop("a collision")
    assert does(one.power, on=True) is Mode.PROTECTIVE_STOP
    assert does(one.unlock) is Mode.RUNNING
    assert does(one.power, on=False) is Mode.POWER_OFF
    one.stop("a collision")
    assert does(one.unlock) is Mode.POWER_OFF
    assert does(one.power, on=True) is Mode.RUNNING
    assert one.row()["events"][-1] == "mode: running"
    assert one.row()["events"] == []


def test_a_controller_that_is_switched_forgets_its_command() -> None:
    one = drives()
    ask(one, 0.1)
    one.switch(on=False)
    ask(one, 0.2)
    assert one.command is None
    one.switch(on=True)
    assert play(one, 0.5)[-1]["velocity"] == [0.0] * 6


def test_a_hand_moves_only_what_a_hand_can_move() -> None:
    one = drives()
    one.guide([0.3] * 6)
    assert play(one, 0.2)[-1]["velocity"] == [0.0] * 6
    one.freedrive(on=True)
    one.guide([0.3] * 6)
    assert play(one, 0.2)[-1]["velocity"] == pytest.approx([0.3] * 6)
    one.freedrive(on=False)
    assert play(one, 0.2)[-1]["velocity"] == [0.0] * 6
    with pytest.raises(InputError, match="6 finite numbers"):
        one.guide([math.nan] * 6)


@given(
    interface=st.sampled_from(["position", "velocity", "effort"]),
    orders=st.lists(
        st.one_of(
            st.sampled_from(["off", "on", "stop", "unlock", "free", "firm", "away", "back"]),
            st.floats(-7.0, 7.0) | st.just(math.nan),
        ),
        max_size=12,
    ),
)
def test_whatever_is_asked_it_stays_within_its_own_limits(
    interface: str, orders: list[str | float]
) -> None:
    one = drives(interface, gravity={})
    does: dict[str, Any] = {
        "off": lambda: one.power(on=False),
        "on": lambda: one.power(on=True),
        "stop": lambda: one.stop("x"),
        "unlock": one.unlock,
        "free": lambda: one.freedrive(on=True),
        "firm": lambda: one.freedrive(on=False),
        "away": lambda: one.switch(on=False),
        "back": lambda: one.switch(on=True),
    }
    for order in orders:
        if isinstance(order, str):
            does[order]()
        else:
            ask(one, order)
        for row in play(one, 0.1):
            values = [*row["position"], *row["velocity"], *row["acceleration"]]
            assert all(map(math.isfinite, values))
            assert max(map(abs, row["velocity"])) <= 1.2 * 3.14 + 1e-9
            assert max(map(abs, row["acceleration"])) <= 1.2 * 15.0 + 1e-9
            assert interface != "position" or abs(row["position"][0]) <= 6.28 + 1e-9


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("gravity: {shoulder_lift", "gravity: {shoulder_lft", "twin.drive.gravity: unknown"),
        ("start: {shoulder_lift", "start: {shoulder_lft", "did you mean 'shoulder_lift_joint'"),
        ("elbow_joint: 1.0", "elbow_joint: 4.0", "twin.drive.start.elbow_joint: 4 is beyond"),
        ("elbow_joint: 1.0", "elbow_joint: .nan", "twin.drive.start.elbow_joint"),
        ("margin: 1.2", "margin: 0.9", "twin.drive.margin"),
        ("margin: 1.2", "margin_deg: 1.2", "twin.drive.margin_deg"),
        ("twin:\n", "twin:\n  perturbation: {seed: 1}\n", "twin.perturbation: "),
        ("tasks: {}", "tasks: {MyLab/Turn-v0: {adapter: a}}", "tasks: "),
        ("follows: [running]", "follows: []", "state.mode.follows"),
        ("topic: driver/mode", "topic: 'driver mode'", "state.mode.topic"),
    ],
)
def test_a_wrong_file_is_refused_with_its_field(old: str, new: str, said: str) -> None:
    assert old in TEXT
    with pytest.raises(InputError) as caught:
        parse_robot(TEXT.replace(old, new, 1), source="arm.yaml")
    message = str(caught.value)
    assert message.startswith("arm.yaml: ")
    assert said in message
    assert "\n" not in message


def test_the_witness_knows_nothing_of_the_guard() -> None:
    package = Path(robo_eval_twin.__file__).parent
    for name in ("drives.py", "drives_node.py"):
        for node in ast.walk(ast.parse((package / name).read_text())):
            if isinstance(node, ast.ImportFrom):
                assert "guard" not in str(node.module)
