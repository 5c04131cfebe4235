"""The preflight against a robot of point masses, with a clock that is turned by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

# `ROBO_EVAL_REQUIRE_ALL` turns this skip into a failure, see tests/conftest.py.
pytest.importorskip("rclpy", reason="ROS 2 is not installed: pip install .[ros]")

from robo_eval.core.errors import CheckFailedError, PlanError
from robo_eval_robot import preflight as module
from robo_eval_robot import topics
from robo_eval_robot.config import RobotConfig, parse_robot
from robo_eval_robot.link import RobotLink, RobotLostError
from robo_eval_robot.preflight import PreflightError, preflight
from robo_eval_robot.snapshot import JointReading, Snapshot

TICK_S = 0.02
MASS = 1.0


def robot(interface: str = "effort", **sections: Any) -> RobotConfig:
    limits = {
        "position_m": [-2, 2],
        "velocity_m_s": 6.0,
        "acceleration_m_s2": 40.0,
        "effort_n": 20.0,
    }
    data = {
        "name": "bench",
        "body": "physical",
        "namespace": "/bench",
        "control_rate_hz": 50,
        "joints": {name: {"type": "prismatic", "limits": limits} for name in ("a", "b")},
        "controller": {
            "topic": "commands",
            "interface": interface,
            "joints": ["a", "b"],
            "timeout_s": 0.25,
            "timeout_provided_by": "the firmware's watchdog",
        },
        "state": {"rate_hz": 50},
        "guard": {"stop": {"within_s": 1.0, "holds": "nothing_falls"}},
        "tasks": {"RoboEval/CartPole3D-v0": {"adapter": "cartpole3d"}},
        **sections,
    }
    return parse_robot(yaml.safe_dump(data), source="robot.yaml")


@dataclass
class Robot:
    """Two joints, a driver and a guard, as a link shows them; each state takes a tick."""

    config: RobotConfig
    map: Callable[[list[float]], list[float]] = list
    has_timeout: bool = True
    measures: bool = True
    effort_scale: float = 1.0
    load: float = 0.0
    states: float = float("inf")
    stops: dict[int, str] = field(default_factory=dict)
    now: float = 100.0
    ticks: int = 0
    position: list[float] = field(default_factory=lambda: [0.5, -0.5])
    velocity: list[float] = field(default_factory=lambda: [0.0, 0.0])
    command: list[float] = field(default_factory=list)
    commanded_at: float = -1.0
    requests: int = 0
    calls: list[str] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    trips: list[Any] = field(default_factory=list)
    complaints: dict[str, str] = field(default_factory=dict)
    answers_s: float = 0.0

    def __post_init__(self) -> None:
        self.guard = SimpleNamespace(state="READY", cause="")
        self.latest = self.snapshot()

    def snapshot(self) -> Snapshot:
        effort = [force * self.effort_scale for force in self.forces()]
        joints = {
            name: JointReading(
                position=self.position[i],
                velocity=self.velocity[i] if self.measures else None,
                effort=effort[i] if self.measures else None,
            )
            for i, name in enumerate(self.config.commanded)
        }
        stamp = round(self.ticks * TICK_S * 1e9)
        return Snapshot(stamp_ns=stamp, received_s=self.now, joints=joints)

    def is_braking(self) -> bool:
        silent = self.now - self.commanded_at
        return (
            not self.command
            or (self.has_timeout and silent > self.config.controller.timeout_s)
            or self.guard.state in ("PROTECTIVE_STOP", "ESTOP")
        )

    def forces(self) -> list[float]:
        if self.is_braking():
            return [-20.0 * MASS * v for v in self.velocity]
        if self.config.controller.interface != "effort":
            return [0.0, 0.0]
        return [force + self.load for force in self.command]

    def step(self) -> None:
        before = list(self.position)
        forces = self.forces()
        for i in range(2):
            if self.config.controller.interface == "effort" or self.is_braking():
                self.velocity[i] += forces[i] / MASS * TICK_S
            elif self.config.controller.interface == "velocity":
                self.velocity[i] = self.command[i]
            else:
                self.position[i] = self.command[i]
                self.velocity[i] = (self.position[i] - before[i]) / TICK_S
                continue
            self.position[i] += self.velocity[i] * TICK_S
        self.ticks += 1
        self.now += TICK_S
        self.latest = self.snapshot()

    # What the preflight sees of a link.

    def next_snapshot(self, after_ns: int, seconds: float) -> Snapshot | None:
        if self.ticks >= self.states:
            self.now += seconds
            return None
        while self.latest.stamp_ns <= after_ns:
            self.step()
        return self.latest

    state_patience_s, state_after, fresh = (
        RobotLink.state_patience_s, RobotLink.state_after, RobotLink.fresh,
    )  # fmt: skip

    def request(self, values: list[float]) -> None:
        self.requests += 1
        if self.requests in self.stops:
            self.guard = SimpleNamespace(state="PROTECTIVE_STOP", cause=self.stops[self.requests])
        if self.guard.state == "RUNNING":
            self.command, self.commanded_at = self.map(list(values)), self.now

    def call(self, name: str) -> str | None:
        self.calls.append(name)
        for _ in range(round(self.answers_s / TICK_S)):
            self.step()
        state = "WITHHELD" if name == topics.SAFETY_WITHHOLD else "PROTECTIVE_STOP"
        self.guard = SimpleNamespace(state=state, cause="operator_stop")
        return None

    def enable(self) -> None:
        if self.guard.state != "READY":
            raise CheckFailedError(f"the guard does not enable motion: is {self.guard.state}")
        self.guard = SimpleNamespace(state="RUNNING", cause="")

    def rest(self) -> None:
        if self.command and self.config.controller.interface != "position":
            self.command = [0.0, 0.0]

    def reset(self) -> None:
        if self.guard.cause != "operator_stop":
            self.calls.append("reset")
        self.rest()
        self.guard = SimpleNamespace(state="READY", cause="")

    def disable(self) -> None:
        if self.guard.state in ("RUNNING", "WITHHELD"):
            self.rest()
            self.guard = SimpleNamespace(state="READY", cause="")

    def wait(self, is_so: Callable[[], bool], seconds: float) -> bool:
        del seconds
        return is_so()

    def event(self, **fields: Any) -> None:
        self.events.append(fields)


class Nobody:
    """A stagehand that lets the guard be reset."""

    def may_reset(self, cause: str) -> None:
        self.cause = cause


@pytest.fixture
def fly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Run a preflight; gives what its file says, with the robot and the error."""

    def call(found: Robot, **options: Any) -> dict[str, Any]:
        clock = SimpleNamespace(monotonic=lambda: found.now, time_ns=lambda: 10**18)
        monkeypatch.setattr(module, "time", clock)
        file, problem = tmp_path / "preflight.json", ""
        try:
            preflight(found, found.config, Nobody(), file, **options)  # type: ignore[arg-type]
        except PreflightError as err:
            problem = str(err)
        said = json.loads(file.read_text())
        assert found.events[-1] == {"event": "preflight", "episode_id": None, **said}
        assert said["passed"] is (not problem)
        assert said["problem"] in problem
        assert found.guard.state not in ("RUNNING", "WITHHELD")
        return dict(said)

    return call


@pytest.mark.parametrize("interface", ["effort", "velocity", "position"])
@pytest.mark.parametrize("measures", [True, False])
def test_a_sound_robot_passes_whatever_its_interface(
    interface: str, measures: bool, fly: Callable[..., dict[str, Any]]
) -> None:
    found = Robot(robot(interface), measures=measures)
    said = fly(found)
    assert said["passed"], said["problem"]
    assert [joint["joint"] for joint in said["joints"]] == ["a", "b"]
    for joint in said["joints"]:
        assert 0.0 < joint["moved_s"] < 1.0
        assert joint["speed"] > 0.0
        assert joint["stopped_s"] <= said["allowed_s"] == 1.25
    assert said["round_trip_p50_s"] == pytest.approx(TICK_S)
    assert said["requests"] > 20
    assert found.calls == 2 * [*[topics.SAFETY_STOP] * 3, topics.SAFETY_WITHHOLD]
    assert max(abs(p - q) for p, q in zip(found.position, (0.5, -0.5), strict=True)) < 0.3
    assert found.events[0]["episode_id"] == "preflight"  # its stops are of no planned episode


def test_a_stop_by_the_driver_is_timed_from_the_last_request(
    fly: Callable[..., dict[str, Any]],
) -> None:
    """However long the guard takes to answer: too much, never too little."""
    said = fly(Robot(robot("velocity"), answers_s=0.2))
    assert said["passed"], said["problem"]
    assert all(joint["stopped_s"] > 0.25 for joint in said["joints"])


def test_an_axis_that_falls_is_said_with_the_driver_s_own_words(
    fly: Callable[..., dict[str, Any]],
) -> None:
    why = "protective stop: acceleration of a"
    found = Robot(robot(), stops={5: "mode"}, complaints={"/bench/driver": why})
    problem = fly(found)["problem"]
    assert f"/bench/driver: {why}" in problem
    assert "vertical axis falls" in problem
    assert "vertical axis" not in fly(Robot(robot("velocity"), stops={5: "mode"}))["problem"]


@pytest.mark.parametrize("interface", ["effort", "velocity"])
def test_a_driver_without_timeout_fails(interface: str, fly: Callable[..., dict[str, Any]]) -> None:
    found = Robot(robot(interface), has_timeout=False)
    said = fly(found)
    assert "the driver does not stop by itself: a moves at" in said["problem"]
    assert "the firmware's watchdog" in said["problem"]
    assert found.calls[3:] == [topics.SAFETY_WITHHOLD, topics.SAFETY_STOP]
    assert found.guard.state == "PROTECTIVE_STOP"


@pytest.mark.parametrize("interface", ["effort", "velocity", "position"])
@pytest.mark.parametrize("measures", [True, False])
def test_time_and_distance_of_a_stop_are_told_for_three_speeds(
    interface: str, measures: bool, fly: Callable[..., dict[str, Any]]
) -> None:
    said = fly(Robot(robot(interface, preflight={"stop_velocity": 0.9}), measures=measures))
    assert said["passed"], said["problem"]
    for joint in said["joints"]:
        assert [stop["asked"] for stop in joint["stops"]] == pytest.approx([0.3, 0.6, 0.9])
        times = [stop["stop_s"] for stop in joint["stops"]]
        assert times == sorted(times)
        for stop in joint["stops"]:
            # The bench brakes by 20/s; three states have to be below 0.02 m/s in the mean.
            speed, distance, ticks = stop["speed"], 0.0, 0
            while speed >= 0.02:
                speed *= 1.0 - 20.0 * TICK_S
                distance, ticks = distance + speed * TICK_S, ticks + 1
            assert ticks * TICK_S <= stop["stop_s"] + 1e-9 <= (ticks + 3.1) * TICK_S
            assert stop["distance"] == pytest.approx(distance, rel=0.4)
            if interface == "effort":
                assert stop["expected_s"] is stop["expected_distance"] is None
            else:
                limit = 0.9 * 40.0
                assert stop["expected_s"] == pytest.approx(stop["speed"] / limit, abs=0.0101)
                assert stop["expected_distance"] == pytest.approx(
                    0.5 * stop["speed"] ** 2 / limit, abs=1e-9
                )


def test_without_a_word_the_stops_are_from_slow_motions(fly: Callable[..., dict[str, Any]]) -> None:
    said = fly(Robot(robot("velocity")))
    assert [stop["asked"] for stop in said["joints"][0]["stops"]] == pytest.approx(
        [0.06, 0.12, 0.18]
    )


def test_a_stop_that_removes_power_is_not_asked_for(fly: Callable[..., dict[str, Any]]) -> None:
    stop = {"within_s": 1.0, "category": 1, "power_off": "driver/power_off"}
    said = fly(found := Robot(robot("velocity", guard={"stop": stop})))
    assert (said["passed"], said["joints"][0]["stops"]) == (True, [])
    assert topics.SAFETY_STOP not in found.calls


def test_a_stop_that_takes_longer_than_promised_fails(fly: Callable[..., dict[str, Any]]) -> None:
    guard = {"stop": {"within_s": 0.1, "holds": "nothing_falls"}}
    said = fly(Robot(robot(guard=guard, preflight={"stop_velocity": 3.0})))
    assert "a does not stand within the 0.1 s that guard.stop.within_s" in said["problem"]
    assert "raise guard.stop.braking, 0 now" in said["problem"]
    assert len(said["joints"][0]["stops"]) < 3
    assert said["joints"][1]["stops"] == []


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"map": lambda v: [v[1], v[0]]}, "a was asked to move and b moves"),
        ({"map": lambda v: [-v[0], v[1]]}, "a moves the wrong way"),
        ({"map": lambda v: [v[0], -v[1]]}, "b moves the wrong way"),
        ({"map": lambda v: [1000.0 * v[0], v[1]]}, "is the unit of commands"),
        ({"map": lambda v: [0.0, 0.0]}, "a does not move: 0 m/s at most in 2 s with 1 N"),
        ({"effort_scale": 57.3}, "measured effort changed by"),
        ({"effort_scale": -1.0}, "measured effort changed by"),
        ({"load": 0.5}, "while nothing is asked of it"),
    ],
)
def test_wrong_order_sign_and_unit_are_named(
    wrong: dict[str, Any], problem: str, fly: Callable[..., dict[str, Any]]
) -> None:
    found = Robot(robot(), **wrong)
    assert problem in fly(found)["problem"]
    assert topics.SAFETY_STOP not in found.calls  # its brake may push the wrong way


def test_a_late_message_is_forgiven_twice(fly: Callable[..., dict[str, Any]]) -> None:
    found = Robot(robot(), stops={5: "command_age", 30: "state_age"})
    assert (fly(found)["repeated"], found.calls.count("reset")) == (2, 2)
    found = Robot(robot(), stops={5: "command_age", 30: "state_age", 40: "command_age"})
    assert "the guard is PROTECTIVE_STOP" in fly(found)["problem"]


def test_a_stop_between_two_motions_is_forgiven_too(
    fly: Callable[..., dict[str, Any]],
) -> None:
    found = Robot(robot())
    disable, times = found.disable, iter([False, True])

    def late() -> None:
        disable()
        if next(times, False):
            found.guard = SimpleNamespace(state="PROTECTIVE_STOP", cause="command_age")

    found.disable = late  # type: ignore[method-assign]
    said = fly(found)
    assert (said["passed"], said["repeated"]) == (True, 1)


def test_any_other_stop_of_the_guard_fails_at_once(fly: Callable[..., dict[str, Any]]) -> None:
    found = Robot(robot(), stops={5: "estop"})
    assert fly(found)["problem"] == "the guard is PROTECTIVE_STOP: estop"
    assert "reset" not in found.calls


def test_a_robot_that_falls_silent_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Robot(robot(), states=15)
    clock = SimpleNamespace(monotonic=lambda: found.now, time_ns=lambda: 10**18)
    monkeypatch.setattr(module, "time", clock)
    with pytest.raises(RobotLostError, match="no state for"):
        preflight(found, found.config, Nobody(), tmp_path / "p.json")  # type: ignore[arg-type]
    assert found.guard.state == "READY"


def test_nothing_moves_unless_a_person_agrees(tmp_path: Path) -> None:
    found = Robot(robot(preflight={"stop_velocity": 0.6}))
    with pytest.raises(PreflightError, match="was not confirmed"):
        preflight(
            found,  # type: ignore[arg-type]
            found.config,
            Nobody(),  # type: ignore[arg-type]
            tmp_path / "p.json",
            ask=lambda text: (
                not (
                    "from up to 0.6 m/s" in text
                    and "vertical axis falls" in text
                    and "Is the robot clear" in text
                )
            ),
        )
    assert (found.requests, found.ticks) == (0, 0)


def test_a_robot_of_efforts_is_told_what_a_vertical_axis_does(
    fly: Callable[..., dict[str, Any]],
) -> None:
    assert "brakes" in fly(Robot(robot()))["at_zero_effort"]
    assert fly(Robot(robot("velocity")))["at_zero_effort"] == ""
    falls = fly(Robot(robot(), load=3.0))
    assert "gravity compensation" in falls["problem"]


def test_a_position_robot_is_moved_within_its_limits_of_change(
    fly: Callable[..., dict[str, Any]],
) -> None:
    seen: list[list[float]] = []
    config = robot(
        "position",
        preflight={"velocity": 1.0},
        guard={"stop": {"within_s": 1.0}},
    )
    assert fly(Robot(config, map=lambda values: seen.append(values) or values))["passed"]
    for joint in range(2):
        places = [values[joint] for values in seen]
        speeds = [(new - old) / TICK_S for old, new in pairwise(places)]
        changes = [abs(new - old) / TICK_S for old, new in pairwise(speeds)]
        assert sum(change > 40.0 for change in changes) <= 6  # between one motion and the next


def test_commands_stay_within_the_limits_of_change(fly: Callable[..., dict[str, Any]]) -> None:
    seen: list[list[float]] = []

    def listen(values: list[float]) -> list[float]:
        seen.append(values)
        return values

    guard = {"stop": {"within_s": 1.0, "holds": "nothing_falls"}, "command_step": 0.2}
    assert fly(Robot(robot(guard=guard), map=listen))["passed"]
    steps = [abs(x - y) for one, two in pairwise(seen) for x, y in zip(one, two, strict=True)]
    within = [step for step in steps if step <= 0.1 + 1e-9]
    assert len(steps) - len(within) <= 11  # between one motion and the next


def test_the_file_says_how_slowly_and_is_checked() -> None:
    config = robot(preflight={"effort": 3.0, "velocity": 0.1, "within_s": 1.0})
    assert config.preflight.effort == 3.0
    with pytest.raises(PlanError, match=r"preflight\.velocity: 0\.01 is a standstill"):
        robot(preflight={"velocity": 0.01})
    for wrong in (0.05, 6.1):
        with pytest.raises(PlanError, match=r"preflight\.stop_velocity: .* above 0\.06.* most 6"):
            robot(preflight={"stop_velocity": wrong})
