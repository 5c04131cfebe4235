"""The guard lets nothing beyond a limit pass, stops for every cause, and stays stopped."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_eval_robot.config import RobotConfig, parse_robot
from robo_eval_robot.guard import WITHHOLD_S, Answer, Guard, GuardState, Reaction
from robo_eval_robot.guard_checks import Code, Request, Violation
from robo_eval_robot.guard_messages import gauges
from robo_eval_robot.guard_watch import JointSample

JOINTS = ("slide", "turn")
POSITION = {"slide": (-1.0, 1.0), "turn": (-2.0, 3.0)}
VELOCITY = {"slide": 2.0, "turn": 3.0}
ACCELERATION = {"slide": 50.0, "turn": 60.0}
EFFORT = {"slide": 10.0, "turn": 5.0}
PERIOD_S = 0.01
NS = 1_000_000_000

ROBOT = """
name: bench
body: twin
namespace: /bench
control_rate_hz: 100
joints:
  slide:
    type: prismatic
    limits: {{position_m: [-1, 1], velocity_m_s: 2, acceleration_m_s2: 50, effort_n: 10}}
  turn:
    type: revolute
    limits: {{position_rad: [-2, 3], velocity_rad_s: 3, acceleration_rad_s2: 60, effort_nm: 5}}
  free: {{type: continuous}}
controller:
  topic: controller/commands
  interface: {interface}
  joints: [slide, turn]
  timeout_s: 0.25
  timeout_provided_by: a parameter of the driver
state: {{rate_hz: 100{state}}}
guard: {{driver_heartbeat_s: 0.3, policy_heartbeat_s: 0.3{guard}}}
tasks: {{RoboEval/CartPole3D-v0: {{adapter: cartpole3d}}}}
"""
WORKSPACE = ", workspace: {topic: tool, x_m: [0, 1], y_m: [0, 1], z_m: [0, 1]}"
WRENCH = ", wrench: {force_n: 20, torque_nm: 3}"
CATEGORY = ", stop: {{category: {}, power_off: driver/power_off}}"


def robot(interface: str = "velocity", guard: str = "", state: str = "") -> RobotConfig:
    return parse_robot(ROBOT.format(interface=interface, guard=guard, state=state), source="test")


@dataclass
class Bench:
    """A guard with a robot that is well, and a clock."""

    robot: RobotConfig = field(default_factory=robot)
    now: float = 100.0
    stamp_ns: int = 50 * NS
    positions: tuple[float, float] = (0.0, 0.0)
    velocities: tuple[float, ...] = (0.0, 0.0)
    sent: list[tuple[float, ...]] = field(default_factory=list)
    trips: list[Violation] = field(default_factory=list)
    powers_off: int = 0

    def __post_init__(self) -> None:
        self.guard = Guard(self.robot, self.now)

    @property
    def state(self) -> GuardState:
        return self.guard.state

    def take(self, result: Reaction | Answer) -> Reaction:
        reaction = result.reaction if isinstance(result, Answer) else result
        if reaction.command is not None:
            self.sent.append(reaction.command)
        self.trips += reaction.incidents
        self.powers_off += reaction.power_off
        return reaction

    def joints(self, **changes: Any) -> Reaction:
        self.stamp_ns += int(PERIOD_S * NS)
        values = {
            "names": ("turn", "gripper", "slide"),
            "positions": (self.positions[1], 9e9, self.positions[0]),
            "velocities": (self.velocities[1], math.nan, self.velocities[0])
            if self.velocities
            else (),
            "stamp_ns": self.stamp_ns,
        }
        return self.take(self.guard.joint_state(JointSample(**{**values, **changes}), self.now))

    def tick(self, *, state: bool = True, policy: bool = True) -> Reaction:
        """A control period in which all is well, but for what is left out."""
        self.now += PERIOD_S
        if state:
            self.joints()
            self.guard.peers.heard_driver(self.now)
            for watch in self.guard.points:
                watch.see(dict.fromkeys(watch.quantities, 0.5), self.now)
        if policy:
            self.guard.peers.heard_policy(self.now)
            if self.state is GuardState.RUNNING:
                self.ask()
        return self.take(self.guard.cycle(self.now))

    def ask(self, values: tuple[float, ...] | None = None, **changes: Any) -> Reaction:
        """A request; for no motion, if nothing else is said."""
        if values is None:
            is_position = self.robot.controller.interface == "position"
            values = self.positions if is_position else (0.0, 0.0)
        age_ns = changes.pop("age_ns", 0)
        names = changes.pop("names", JOINTS)
        request = Request(names=names, values=values, stamp_ns=self.wall_ns - age_ns)
        return self.take(self.guard.request(request, wall_ns=self.wall_ns, now=self.now))

    @property
    def wall_ns(self) -> int:
        return 1_700_000_000 * NS + round(self.now * NS)

    def ready(self) -> Bench:
        if self.robot.state.mode is not None:
            self.guard.mode("running", self.now)
        self.ready_but_for()
        assert self.state is GuardState.READY, self.guard.persisting(self.now)
        return self

    def ready_but_for(self, *codes: Code) -> Bench:
        self.take(self.guard.estop(pressed=False, now=self.now))
        self.take(
            self.guard.graph(publishers=1, estop_sources=1, power_off_ready=True, now=self.now)
        )
        for _ in range(3):
            self.tick()
        assert [each.code for each in self.guard.persisting(self.now)] == list(codes)
        return self

    def running(self) -> Bench:
        self.ready()
        answer = self.guard.enable(on=True, now=self.now)
        assert answer.success, answer.message
        self.take(answer)
        self.tick()
        self.sent.clear()
        return self


def assert_stopped(bench: Bench, code: Code, value: float | None, limit: float | None, unit: str):
    """For this cause, with these numbers, and with a stop command at once."""
    assert bench.state is GuardState.PROTECTIVE_STOP
    first = bench.trips[0]
    assert (first.code, first.limit, first.unit) == (code, limit, unit)
    assert (
        first.value == pytest.approx(value, nan_ok=True) if value is not None else not first.value
    )
    assert first.message.endswith(".")
    assert bench.guard.causes[0] == code
    assert bench.sent[-1] == (0.0, 0.0)


def test_it_starts_stopped_and_says_what_it_waits_for() -> None:
    bench = Bench()
    bench.take(bench.guard.cycle(bench.now))
    answer = bench.guard.enable(on=True, now=bench.now)
    assert bench.state is GuardState.INIT
    assert not answer.success
    for part in ("joint states", "/bench/joint_states", "emergency stop", "heartbeat"):
        assert part in answer.message
    assert bench.sent == []


@pytest.mark.parametrize("missing", ["state", "estop", "driver", "second", "power_off"])
def test_it_is_not_ready_while_something_is_unknown(missing: str) -> None:
    bench = Bench(robot(guard=CATEGORY.format(1)))
    if missing != "estop":
        bench.guard.estop(pressed=False, now=bench.now)
    bench.guard.graph(
        publishers=2 if missing == "second" else 1,
        estop_sources=1,
        power_off_ready=missing != "power_off",
        now=bench.now,
    )
    for _ in range(5):
        bench.now += PERIOD_S
        if missing != "state":
            bench.joints()
        if missing != "driver":
            bench.guard.peers.heard_driver(bench.now)
        bench.take(bench.guard.cycle(bench.now))
    assert bench.state is GuardState.INIT
    assert not bench.guard.enable(on=True, now=bench.now).success
    assert bench.sent == []


def test_ready_passes_nothing_and_running_passes_all_unchanged() -> None:
    bench = Bench().ready()
    bench.ask((0.1, 0.2))
    assert bench.sent == []
    bench = bench.running()
    bench.now += PERIOD_S
    bench.ask((0.2, 0.1), names=("turn", "slide"))
    assert bench.sent == [(0.1, 0.2)]
    counts = bench.guard.counts
    assert counts.requests == counts.passed + counts.refused
    assert counts.refused == 1


@pytest.mark.parametrize(
    ("interface", "values", "code", "value", "limit", "unit"),
    [
        ("position", (1.1, 0.0), Code.COMMAND_POSITION, 1.1, 1.0, "m"),
        ("position", (0.0, -2.5), Code.COMMAND_POSITION, -2.5, -2.0, "rad"),
        ("velocity", (2.1, 0.0), Code.COMMAND_VELOCITY, 2.1, 2.0, "m/s"),
        ("velocity", (0.0, -3.1), Code.COMMAND_VELOCITY, -3.1, -3.0, "rad/s"),
        ("effort", (10.5, 0.0), Code.COMMAND_EFFORT, 10.5, 10.0, "N"),
        ("effort", (0.0, -5.5), Code.COMMAND_EFFORT, -5.5, -5.0, "N m"),
        ("effort", (math.nan, 0.0), Code.COMMAND_NOT_FINITE, math.nan, None, "N"),
        ("effort", (0.0, math.inf), Code.COMMAND_NOT_FINITE, math.inf, None, "N m"),
        ("effort", (0.0,), Code.COMMAND_LENGTH, 1.0, 2.0, "numbers"),
        ("effort", (), Code.COMMAND_LENGTH, 0.0, 2.0, "numbers"),
    ],
)
def test_a_wrong_request_stops(
    interface: str, values: tuple[float, ...], code: Code, value: float, limit: float, unit: str
) -> None:
    bench = Bench(robot(interface)).running()
    bench.now += PERIOD_S
    bench.ask(values)
    assert_stopped(bench, code, value, limit, unit)
    assert bench.guard.counts.refused == 1


@pytest.mark.parametrize(
    "names", [("slide",), ("slide", "slide"), ("slide", "trun"), (), ("slide", "turn", "free")]
)
def test_a_request_with_wrong_joints_stops(names: tuple[str, ...]) -> None:
    bench = Bench().running()
    bench.now += PERIOD_S
    bench.ask((0.0,) * len(names), names=names)
    assert_stopped(bench, Code.COMMAND_JOINTS, len(names), 2.0, "joints")


@pytest.mark.parametrize(("age_s", "code"), [(0.2, Code.COMMAND_AGE), (-0.2, Code.COMMAND_FUTURE)])
def test_a_request_from_another_time_stops(age_s: float, code: Code) -> None:
    bench = Bench().running()
    bench.now += PERIOD_S
    bench.ask(age_ns=int(age_s * NS))
    assert_stopped(bench, code, 0.2, 0.1, "s")


def test_a_jump_of_a_velocity_command_stops() -> None:
    bench = Bench().running()
    bench.now += PERIOD_S
    bench.ask((0.5, 0.6))  # 50 m/s^2 and 60 rad/s^2 over a period: just allowed
    assert bench.state is GuardState.RUNNING
    bench.now += PERIOD_S
    bench.ask((1.1, 0.6))
    assert_stopped(bench, Code.COMMAND_ACCELERATION, 1.1, bench.trips[0].limit, "m/s")
    assert bench.trips[0].limit == pytest.approx(1.0)


def test_a_pause_is_no_licence_for_a_jump() -> None:
    bench = Bench(robot(guard=", command_age_s: 0.03")).running()
    bench.now += 0.02
    bench.ask((0.9, 0.0))
    assert bench.state is GuardState.RUNNING
    bench.now += 1.0
    bench.ask((-0.7, 0.0))
    assert bench.trips[0].code == Code.COMMAND_ACCELERATION


def test_the_first_request_is_compared_with_what_was_measured_last() -> None:
    bench = Bench(robot("position")).ready()
    assert bench.guard.enable(on=True, now=bench.now).success
    bench.positions = (0.02, 0.0)  # it still came to rest: 0.02 m in a period are 200 m/s^2
    bench.tick(policy=False)
    bench.ask()
    assert bench.state is GuardState.RUNNING


@pytest.mark.parametrize("interface", ["position", "velocity", "effort"])
def test_a_step_is_limited_from_the_first_request_on(interface: str) -> None:
    # Of a position, little: the limits of velocity and acceleration hold as well.
    step = 0.002 if interface == "position" else 0.2
    bench = Bench(robot(interface, f", command_step: {step}"), positions=(0.5, 0.0)).ready()
    bench.guard.enable(on=True, now=bench.now)
    start = 0.5 if interface == "position" else 0.0
    bench.now += PERIOD_S
    bench.ask((start + step, 0.0))
    assert bench.state is GuardState.RUNNING
    bench.now += PERIOD_S
    bench.ask((start - 0.5 * step, 0.0))
    assert bench.trips[0].code == Code.COMMAND_STEP
    assert bench.trips[0].limit == pytest.approx(start, abs=1e-6)


def test_clamping_passes_the_limit_and_counts() -> None:
    bench = Bench(robot(guard=", on_excess: clamp")).running()
    bench.now += PERIOD_S
    bench.ask((9.0, -9.0))
    assert bench.sent[-1] == (pytest.approx(0.5), pytest.approx(-0.6))
    for _ in range(9):
        bench.now += PERIOD_S
        bench.ask((9.0, -9.0))
    assert bench.sent[-1] == (2.0, -3.0)
    assert (bench.guard.counts.clamped, bench.trips) == (10, [])
    bench.now += PERIOD_S
    bench.ask((math.nan, 0.0))
    assert bench.trips[0].code == Code.COMMAND_NOT_FINITE


def test_a_duplicate_and_an_overtaken_request_are_dropped() -> None:
    bench = Bench(robot("effort")).running()
    bench.now += PERIOD_S
    bench.ask((1.0, 1.0))
    bench.ask((1.0, 1.0))
    bench.ask((2.0, 2.0), age_ns=NS // 1000)
    assert bench.sent == [(1.0, 1.0)]
    assert (bench.guard.counts.refused, bench.state) == (2, GuardState.RUNNING)


def test_requests_go_on_when_the_computer_s_clock_is_set_back() -> None:
    bench = Bench(robot("effort")).running()
    hour_s = 3600.0
    for wall_s in (0.0, 0.02, -hour_s, -hour_s + 0.02, hour_s, hour_s + 0.02, 0.0):
        wall_ns = 1_800_000_000 * NS + round(wall_s * NS)
        bench.now += PERIOD_S
        request = Request(names=JOINTS, values=(1.0, 1.0), stamp_ns=wall_ns)
        bench.take(bench.guard.request(request, wall_ns=wall_ns, now=bench.now))
    assert bench.sent == [(1.0, 1.0)] * 7
    assert (bench.guard.counts.refused, bench.state) == (0, GuardState.RUNNING)


@pytest.mark.parametrize(
    ("changes", "code", "value", "limit", "unit"),
    [
        ({"positions": (1.5, 0.0)}, Code.POSITION, 1.5, 1.0, "m"),
        ({"positions": (0.0, -2.5)}, Code.POSITION, -2.5, -2.0, "rad"),
        ({"velocities": (-2.5, 0.0)}, Code.VELOCITY, -2.5, 2.0, "m/s"),
        ({"velocities": (1.0, 0.0)}, Code.ACCELERATION, 100.0, 50.0, "m/s^2"),
        ({"efforts": (0.0, 5.5)}, Code.EFFORT, 5.5, 5.0, "N m"),
        ({"positions": (math.nan, 0.0)}, Code.STATE_NOT_FINITE, math.nan, None, ""),
        ({"velocities": (0.0, math.nan)}, Code.STATE_NOT_FINITE, math.nan, None, ""),
        ({"efforts": (0.0, -math.inf)}, Code.STATE_NOT_FINITE, -math.inf, None, ""),
        ({"positions": (0.0,)}, Code.STATE_LENGTH, 1.0, 2.0, "numbers"),
        ({"efforts": (0.0,)}, Code.STATE_LENGTH, 1.0, 2.0, "numbers"),
        (
            {"names": ("slide", "other")},
            Code.STATE_JOINTS,
            1.0,
            2.0,
            "joints",
        ),
        ({"names": ("slide", "turn", "slide")}, Code.STATE_JOINTS, 2.0, 2.0, "joints"),
        ({"stamp_ns": 1}, Code.STATE_CLOCK, -50.04, 0.0, "s"),
    ],
)
def test_a_wrong_joint_state_stops(
    changes: dict[str, Any], code: Code, value: float, limit: float | None, unit: str
) -> None:
    bench = Bench().running()
    message = {"names": JOINTS, "positions": (0.0, 0.0), "velocities": (0.0, 0.0), "efforts": ()}
    bench.joints(**{**message, **changes})
    first = bench.trips[0]
    assert (first.code, first.limit, first.unit) == (code, limit, unit)
    assert first.value == pytest.approx(value, abs=0.02, nan_ok=True)
    assert bench.state is GuardState.PROTECTIVE_STOP
    assert bench.sent == [(0.0, 0.0)]


def test_velocity_by_difference_where_it_is_not_measured() -> None:
    for velocities in ((), (math.nan, math.nan)):
        bench = Bench(velocities=velocities).running()
        bench.positions = (0.015, 0.0)
        bench.joints()
        assert bench.guard.joints.velocities["slide"] == pytest.approx(1.5)
        assert bench.state is GuardState.RUNNING
        bench.positions = (0.045, 0.0)
        bench.joints()
        assert_stopped(bench, Code.VELOCITY, 3.0, 2.0, "m/s")


def test_joint_states_of_others_and_single_duplicates_are_ignored() -> None:
    bench = Bench().running()
    bench.joints(names=("gripper",), positions=(math.nan,), velocities=())
    bench.joints(stamp_ns=bench.stamp_ns - int(PERIOD_S * NS))
    assert bench.state is GuardState.RUNNING


def test_a_stamp_that_stands_still_stops() -> None:
    bench = Bench().running()
    still = bench.stamp_ns
    for _ in range(30):
        bench.now += PERIOD_S
        bench.joints(stamp_ns=still)
        bench.guard.peers.heard_driver(bench.now)
        bench.ask()
        bench.take(bench.guard.cycle(bench.now))
    assert bench.guard.causes[0] == Code.STATE_CLOCK
    assert not bench.guard.reset(bench.now).success


def test_limits_are_debounced_and_nan_is_not() -> None:
    bench = Bench(robot(guard=", debounce: 3")).running()
    for position in (1.5, 1.5, 0.0, 1.5, 1.5):
        bench.positions = (position, 0.0)
        bench.tick()
    assert bench.state is GuardState.RUNNING
    bench.tick()
    assert bench.guard.causes == [Code.POSITION]
    other = Bench(robot(guard=", debounce: 3")).running()
    other.positions = (math.nan, 0.0)
    other.joints()
    assert other.guard.causes == [Code.STATE_NOT_FINITE]


def test_leaving_the_workspace_stops() -> None:
    bench = Bench(robot(state=WORKSPACE)).running()
    bench.take(bench.guard.pose((0.5, 0.5, -0.1), bench.now))
    assert_stopped(bench, Code.WORKSPACE, -0.1, 0.0, "m")
    assert bench.trips[0].joint == "z"
    other = Bench(robot(state=WORKSPACE)).running()
    other.take(other.guard.pose((math.nan, 0.5, 0.5), other.now))
    assert other.guard.causes == [Code.WORKSPACE]


def test_too_much_force_or_torque_stops() -> None:
    bench = Bench(robot(state=WRENCH)).running()
    bench.take(bench.guard.wrench(25.0, 0.0, bench.now))
    assert_stopped(bench, Code.FORCE, 25.0, 20.0, "N")
    other = Bench(robot(state=WRENCH)).running()
    other.take(other.guard.wrench(0.0, 3.5, other.now))
    assert_stopped(other, Code.TORQUE, 3.5, 3.0, "N m")


@pytest.mark.parametrize(
    ("state", "code"), [(WORKSPACE, Code.WORKSPACE_AGE), (WRENCH, Code.WRENCH_AGE)]
)
def test_a_silent_sensor_stops(state: str, code: Code) -> None:
    bench = Bench(robot(state=state)).running()
    for _ in range(12):
        bench.now += PERIOD_S
        bench.joints()
        bench.guard.peers.heard_driver(bench.now)
        bench.guard.peers.heard_policy(bench.now)
        bench.ask()
        bench.take(bench.guard.cycle(bench.now))
    assert_stopped(bench, code, bench.trips[0].value, 0.1, "s")


@pytest.mark.parametrize(
    ("silent", "code", "limit"),
    [
        ("state", Code.STATE_AGE, 0.1),
        ("driver", Code.DRIVER_HEARTBEAT, 0.3),
        ("policy", Code.POLICY_HEARTBEAT, 0.3),
        ("requests", Code.COMMAND_AGE, 0.1),
    ],
)
def test_silence_stops(silent: str, code: Code, limit: float) -> None:
    bench = Bench().running()
    while not bench.trips:
        bench.now += PERIOD_S
        if silent != "state":
            bench.joints()
        if silent != "driver":
            bench.guard.peers.heard_driver(bench.now)
        if silent != "policy":
            bench.guard.peers.heard_policy(bench.now)
        if silent != "requests":
            bench.ask()
        bench.take(bench.guard.cycle(bench.now))
    assert_stopped(bench, code, bench.trips[0].value, limit, "s")
    assert limit < (bench.trips[0].value or 0.0) < limit + 3 * PERIOD_S


def test_a_policy_that_never_was_there_has_no_last_request() -> None:
    bench = Bench().ready()
    bench.take(bench.guard.enable(on=True, now=bench.now))
    while not bench.trips:
        bench.tick(policy=False)
    assert "No request has come in the 0.1" in bench.trips[0].message
    bench = Bench().running()
    while not bench.trips:
        bench.tick(policy=False)
    assert "last request is 0.1" in bench.trips[0].message


def test_the_policy_is_awaited_from_enabling_on() -> None:
    bench = Bench().ready()
    for _ in range(100):
        bench.tick(policy=False)
    bench.take(bench.guard.enable(on=True, now=bench.now))
    bench.tick(policy=False)
    assert bench.state is GuardState.RUNNING


def test_a_second_publisher_stops_and_keeps_from_enabling() -> None:
    bench = Bench().running()
    bench.take(
        bench.guard.graph(publishers=2, estop_sources=1, power_off_ready=False, now=bench.now)
    )
    assert_stopped(bench, Code.SECOND_PUBLISHER, 2.0, 1.0, "publishers")
    answer = bench.guard.reset(bench.now)
    assert not answer.success
    assert "/bench/controller/commands" in answer.message


def test_an_emergency_stop_that_nobody_sends_any_more_stops() -> None:
    bench = Bench().running()
    bench.take(
        bench.guard.graph(publishers=1, estop_sources=0, power_off_ready=True, now=bench.now)
    )
    assert_stopped(bench, Code.ESTOP_LOST, 0.0, 1.0, "publishers")
    assert not bench.guard.reset(bench.now).success
    bench.guard.graph(publishers=1, estop_sources=1, power_off_ready=True, now=bench.now)
    for _ in range(100):
        bench.tick()
    assert bench.guard.reset(bench.now).success


def test_a_robot_without_emergency_stop_misses_none() -> None:
    bench = Bench(robot(guard=", estop: {required: false}")).running()
    bench.take(
        bench.guard.graph(publishers=1, estop_sources=0, power_off_ready=True, now=bench.now)
    )
    assert bench.state is GuardState.RUNNING


def test_a_guard_that_was_frozen_stops() -> None:
    bench = Bench(robot(guard=", command_age_s: 2, state_age_s: 2")).running()
    bench.now += 0.15
    bench.guard.peers.heard_driver(bench.now)
    bench.take(bench.guard.cycle(bench.now))
    assert_stopped(bench, Code.GUARD_OVERRUN, 0.15, 0.1, "s")


def test_the_emergency_stop_outranks_and_releasing_it_clears_nothing() -> None:
    bench = Bench().running()
    bench.take(bench.guard.stop(bench.now))
    assert bench.state is GuardState.PROTECTIVE_STOP
    bench.sent.clear()
    bench.take(bench.guard.estop(pressed=True, now=bench.now))
    assert bench.state is GuardState.ESTOP
    assert bench.sent == [(0.0, 0.0)]
    assert bench.guard.causes == [Code.OPERATOR_STOP, Code.ESTOP]
    bench.tick()
    assert not bench.guard.reset(bench.now).success
    bench.take(bench.guard.estop(pressed=False, now=bench.now))
    bench.tick()
    assert bench.state is GuardState.ESTOP
    assert not bench.guard.enable(on=True, now=bench.now).success
    assert bench.guard.reset(bench.now).success
    assert bench.state is GuardState.READY
    bench.sent.clear()
    bench.tick()
    bench.ask((0.1, 0.1))
    assert bench.sent == []


def test_an_emergency_stop_pressed_before_the_start_is_latched_too() -> None:
    bench = Bench()
    bench.take(bench.guard.estop(pressed=True, now=bench.now))
    assert bench.state is GuardState.ESTOP
    assert bench.sent == [(0.0, 0.0)]


@pytest.mark.parametrize("braking", [0.0, 20.0])
def test_effort_is_braked_against_the_velocity(braking: float) -> None:
    stop = f", stop: {{braking: {braking}, within_s: 0.5}}"
    bench = Bench(robot("effort", stop), velocities=(0.4, -0.2)).running()
    bench.take(bench.guard.stop(bench.now))
    # -20 * 0.4 and 20 * 0.2; the limits are 10 N and 5 N m.
    assert bench.sent == [(-8.0, 4.0) if braking else (0.0, 0.0)]
    bench.velocities = (0.6, -0.3)
    bench.tick()
    assert bench.sent[-1] == ((-10.0, 5.0) if braking else (0.0, 0.0))
    bench.velocities = (0.1, 0.01)
    bench.tick()
    assert bench.sent[-1] == ((-2.0, 0.0) if braking else (0.0, 0.0))
    bench.now += 0.2  # the state is too old to brake by
    bench.take(bench.guard.cycle(bench.now))
    assert bench.sent[-1] == (0.0, 0.0)


def test_a_position_is_held_where_it_was_at_the_stop() -> None:
    bench = Bench(robot("position"), positions=(0.3, 0.4)).running()
    bench.take(bench.guard.stop(bench.now))
    bench.positions = (0.31, 0.4)
    bench.tick()
    assert bench.sent == [(0.3, 0.4), (0.3, 0.4)]


@pytest.mark.parametrize("category", [0, 1, 2])
def test_power_is_removed_as_the_category_says(category: int) -> None:
    bench = Bench(robot(guard=CATEGORY.format(category))).running()
    bench.velocities = (0.5, 0.0)
    bench.joints()
    bench.take(bench.guard.stop(bench.now))
    assert bench.powers_off == (1 if category == 0 else 0)
    bench.tick()
    bench.velocities = (0.0, 0.0)
    bench.tick()
    bench.tick()
    assert bench.powers_off == (0 if category == 2 else 1)


def test_a_robot_that_does_not_stand_in_time_is_left_to_its_driver() -> None:
    bench = Bench(robot(guard=CATEGORY.format(1))).running()
    bench.velocities = (0.5, 0.0)
    bench.joints()
    bench.take(bench.guard.stop(bench.now))
    for _ in range(120):
        bench.tick()
    assert [each.code for each in bench.trips] == [Code.OPERATOR_STOP, Code.NO_STANDSTILL]
    assert bench.trips[1].value == pytest.approx(0.5)
    assert bench.powers_off == 1
    bench.sent.clear()
    bench.tick()
    assert bench.sent == []
    assert not bench.guard.reset(bench.now).success
    bench.velocities = (0.0, 0.0)
    bench.guard.power_is_off()
    bench.tick()
    assert bench.guard.reset(bench.now).success


def test_withholding_sends_nothing_and_ends_in_ready() -> None:
    bench = Bench().ready()
    assert not bench.guard.withhold(bench.now).success
    bench = Bench().running()
    assert bench.guard.withhold(bench.now).success
    bench.sent.clear()
    for _ in range(int((0.25 + WITHHOLD_S) / PERIOD_S) - 2):
        bench.tick(policy=False)
        bench.ask((0.1, 0.1))
        assert bench.state is GuardState.WITHHELD
    for _ in range(4):
        bench.tick(policy=False)
    assert bench.state is GuardState.READY
    assert bench.sent == []


def test_a_violation_while_withholding_stops() -> None:
    bench = Bench().running()
    bench.guard.withhold(bench.now)
    bench.positions = (1.5, 0.0)
    bench.joints()
    assert_stopped(bench, Code.POSITION, 1.5, 1.0, "m")


def test_disabling_sends_one_stop_command() -> None:
    bench = Bench(robot("effort", ", stop: {braking: 20.0}"), velocities=(0.3, 0.0)).running()
    answer = bench.guard.enable(on=False, now=bench.now)
    bench.take(answer)
    bench.tick()
    assert (answer.success, bench.state) == (True, GuardState.READY)
    # Not braking: nobody would end it.
    assert bench.sent == [(0.0, 0.0)]


def test_the_end_of_the_guard_sends_a_stop_command() -> None:
    bench = Bench().running()
    bench.take(bench.guard.shut_down(bench.now))
    assert_stopped(bench, Code.GUARD_SHUTDOWN, None, None, "")
    idle = Bench().ready()
    idle.take(idle.guard.shut_down(idle.now))
    assert (idle.sent, idle.trips) == ([(0.0, 0.0)], [])


def test_a_failed_power_off_is_a_cause() -> None:
    bench = Bench(robot(guard=CATEGORY.format(0))).running()
    bench.take(bench.guard.stop(bench.now))
    bench.take(bench.guard.power_off_failed("it is stuck.", bench.now))
    assert bench.guard.causes == [Code.OPERATOR_STOP, Code.POWER_OFF]
    assert bench.trips[-1].message == "The driver did not remove power: it is stuck."


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1]",
        "null",
        '"x"',
        "[" * 50_000,
        '{"event": "tick"}',
        "x" * 70_000,
        '{"episode_id": "\\ud800"}',
        '{"episode_id": null, "text": "\\udfff"}',
    ],
)
def test_broken_events_are_ignored(text: str) -> None:
    bench = Bench()
    bench.guard.event(json.dumps({"event": "start", "episode_id": "e1"}))
    bench.guard.event(text)
    assert bench.guard.episode_id == "e1"
    bench.guard.event(json.dumps({"event": "end", "episode_id": None}))
    assert bench.guard.episode_id == ""


def test_half_characters_of_others_are_told_as_something_that_can_be_sent() -> None:
    bench = Bench(robot(state=", mode: {topic: driver/mode, follows: [running]}")).running()
    bench.guard.peers.beats.nodes = {"a": "/one\ud800", "b": "/two"}
    bench.take(bench.guard.mode("\ud800", bench.now))
    bench.take(bench.guard.power_off_failed("\udfff", bench.now))
    bench.guard.enable(on=False, now=bench.now)
    messages = [each.message for each in (*bench.trips, *bench.guard.persisting(bench.now))]
    messages.append(bench.guard.reset(bench.now).message)
    assert all(message.encode() for message in messages)
    bench = Bench().running()
    bench.ask((0.0, 0.0), names=("slide", "\ud800"))
    assert bench.trips[0].message.encode()


def test_late_causes_of_a_stop_are_of_the_episode_it_began_in() -> None:
    bench = Bench().running()
    bench.guard.event(json.dumps({"event": "start", "episode_id": "e-1"}))
    bench.tick(policy=False)
    bench.ask((99.0, 0.0))
    # The next one is set up while the guard is still stopped, and a twin is carried to its start.
    bench.guard.event(json.dumps({"event": "prepare", "episode_id": "e-2"}))
    bench.velocities = (1.5, 0.0)
    bench.tick()
    assert bench.trips[0].code is Code.COMMAND_VELOCITY
    assert bench.trips[-1].code is Code.ACCELERATION
    assert bench.guard.stopped_episode_id == "e-1"
    assert bench.guard.episode_id == "e-2"


def test_every_limit_has_a_gauge() -> None:
    bench = Bench(robot(state=WORKSPACE)).running()
    found = {gauge.name: gauge for gauge in gauges(bench.robot, bench.guard, bench.now)}
    for joint in JOINTS:
        for quantity in ("position", "velocity", "acceleration", "effort"):
            assert f"{joint} {quantity}" in found
    assert found["workspace z"].value == 0.5
    assert found["slide effort"].value is None
    assert {"state_age", "command_age", "policy_heartbeat", "driver_heartbeat"} <= set(found)
    assert all(gauge.is_within for gauge in found.values())


NUMBER = st.one_of(
    st.floats(-4.0, 4.0), st.floats(allow_nan=True, allow_infinity=True), st.just(0.0)
)
PAIR = st.tuples(NUMBER, NUMBER)
STEP = st.one_of(
    st.tuples(st.just("tick"), st.booleans()),
    st.tuples(st.just("tick"), st.just(True)),
    st.tuples(st.just("ask"), PAIR),
    st.tuples(st.just("ask_short"), NUMBER),
    st.tuples(st.just("ask_old"), st.integers(-NS // 2, NS // 2)),
    st.tuples(st.just("positions"), PAIR),
    st.tuples(st.just("velocities"), PAIR),
    st.tuples(st.just("stamp"), st.integers(-NS // 50, NS // 50)),
    st.tuples(st.just("estop"), st.booleans()),
    st.tuples(st.just("graph"), st.integers(1, 3)),
    st.tuples(st.just("wait"), st.floats(0.0, 0.5)),
    st.tuples(st.just("enable"), st.booleans()),
    st.tuples(st.just("stop"), st.none()),
    st.tuples(st.just("reset"), st.none()),
    st.tuples(st.just("recover"), st.none()),
    st.tuples(st.just("withhold"), st.none()),
)


def play(bench: Bench, step: tuple[str, Any]) -> Answer | None:
    """One thing that may happen; the answer, if it was a service."""
    kind, given_value = step
    guard, now = bench.guard, bench.now
    if kind == "tick":
        bench.tick(state=given_value)
    elif kind == "ask":
        bench.now += 0.001
        bench.ask(given_value)
    elif kind == "ask_short":
        bench.ask((given_value,))
    elif kind == "ask_old":
        bench.ask(age_ns=given_value)
    elif kind in {"positions", "velocities"}:
        setattr(bench, kind, given_value)
        bench.joints()
    elif kind == "stamp":
        bench.stamp_ns += given_value
    elif kind == "estop":
        bench.take(guard.estop(pressed=given_value, now=now))
    elif kind == "graph":
        bench.take(
            guard.graph(
                publishers=given_value,
                estop_sources=3 - given_value,
                power_off_ready=True,
                now=now,
            )
        )
    elif kind == "wait":
        bench.now += given_value
    elif kind == "recover":
        bench.positions, bench.velocities = (0.1, -0.1), (0.0, 0.0)
        bench.tick()
        bench.tick()
    else:
        answer = {
            "enable": lambda: guard.enable(on=bool(given_value), now=now),
            "stop": lambda: guard.stop(now),
            "reset": lambda: guard.reset(now),
            "withhold": lambda: guard.withhold(now),
        }[kind]()
        bench.take(answer)
        return answer
    return None


@given(asked=st.lists(PAIR, min_size=1, max_size=40), step=st.floats(0.01, 1.0))
def test_clamped_commands_keep_every_limit(asked: list[tuple[float, float]], step: float) -> None:
    bench = Bench(robot(guard=f", on_excess: clamp, command_step: {step}")).running()
    last = (0.0, 0.0)
    for values in asked:
        bench.now += PERIOD_S
        bench.sent.clear()
        bench.ask(values)
        if bench.state is not GuardState.RUNNING:
            assert not all(map(math.isfinite, values))
            assert bench.sent == [(0.0, 0.0)]
            return
        (command,) = bench.sent
        assert within(bench.robot, command)
        for joint, value, before in zip(JOINTS, command, last, strict=True):
            most = min(step, ACCELERATION[joint] * PERIOD_S)
            assert abs(value - before) <= most + 1e-6
        last = command


def within(robot_: RobotConfig, command: tuple[float, ...]) -> bool:
    limits = {
        "position": POSITION,
        "velocity": {name: (-limit, limit) for name, limit in VELOCITY.items()},
        "effort": {name: (-limit, limit) for name, limit in EFFORT.items()},
    }[robot_.controller.interface]
    return all(
        limits[name][0] <= value <= limits[name][1]
        for name, value in zip(JOINTS, command, strict=True)
    )


@given(
    interface=st.sampled_from(["position", "velocity", "effort"]),
    excess=st.sampled_from(["stop", "clamp"]),
    braking=st.sampled_from([0.0, 15.0]),
    starts=st.booleans(),
    steps=st.lists(STEP, max_size=60),
)
def test_whatever_happens(
    interface: str, excess: str, braking: float, starts: bool, steps: list[tuple[str, Any]]
) -> None:
    """Nothing beyond a limit; only stop commands after a trip; the first cause is kept."""
    options = f", on_excess: {excess}, stop: {{braking: {braking}}}"
    bench = Bench(robot(interface, options))
    if starts:
        bench.running()
    last = (0.0, 0.0)
    for step in steps:
        before, causes = bench.state, list(bench.guard.causes)
        persisting = bench.guard.persisting(bench.now)
        bench.sent.clear()
        answer = play(bench, step)
        stopped = {GuardState.PROTECTIVE_STOP, GuardState.ESTOP}
        for command in bench.sent:
            assert all(map(math.isfinite, command))
            is_hold = interface == "position" and (bench.state in stopped or before in stopped)
            assert within(bench.robot, command) or is_hold
        if before in stopped:
            if step[0] != "reset":
                assert bench.state in stopped
                assert bench.guard.causes[: len(causes)] == causes
            elif answer is not None and answer.success:
                assert not persisting
                assert bench.state is GuardState.READY
            if interface == "effort" and not braking:
                assert set(bench.sent) <= {(0.0, 0.0)}
            if interface == "velocity":
                for command in bench.sent:
                    assert all(
                        0.0 <= new * old <= old * old
                        for new, old in zip(command, last, strict=True)
                    )
        if before is GuardState.ESTOP and bench.state in stopped:
            assert bench.state is GuardState.ESTOP
        if bench.state is GuardState.RUNNING and before is not GuardState.RUNNING:
            assert step == ("enable", True)
            assert before is GuardState.READY or before is GuardState.INIT
            assert not persisting
        if before in {GuardState.INIT, GuardState.READY} and bench.state not in stopped:
            # What was let go in motion is slowed down, and nothing else.
            assert bench.sent == [] or bench.state is GuardState.RUNNING or any(last)
        last = bench.sent[-1] if bench.sent else last


WORD = st.one_of(
    st.sampled_from(["slide", "turn", "free", "gripper", "", "running"]),
    st.text(max_size=5),
    st.just("x" * 1_000_000),
)
WORDS = st.lists(WORD, max_size=4) | st.just(["turn", "slide"])
NUMBERS = st.lists(st.floats(), max_size=4) | st.lists(st.floats(-1.0, 1.0), min_size=2, max_size=2)
STAMP = st.integers(-(2**31) * NS, 2**31 * NS)
GARBAGE = st.one_of(
    st.tuples(st.just("request"), WORDS, NUMBERS, STAMP),
    st.tuples(st.just("joint_state"), WORDS, NUMBERS, NUMBERS, NUMBERS, STAMP),
    st.tuples(st.just("pose"), st.floats(), st.floats(), st.floats()),
    st.tuples(st.just("wrench"), st.floats(), st.floats()),
    st.tuples(st.just("mode"), WORD),
    st.tuples(st.just("event"), WORD),
    st.tuples(st.just("estop"), st.booleans(), WORD),
    st.tuples(st.just("power"), WORD),
    st.tuples(st.just("cycle")),
)


def throw(bench: Bench, kind: str, *given_values: Any) -> None:
    """One message of garbage on one of the guard's topics."""
    guard, now = bench.guard, bench.now
    if kind == "request":
        names, values, age_ns = given_values
        request = Request(names=names, values=values, stamp_ns=bench.wall_ns - age_ns)
        bench.take(guard.request(request, wall_ns=bench.wall_ns, now=now))
    elif kind == "joint_state":
        names, positions, velocities, efforts, stamp_ns = given_values
        sample = JointSample(
            names=names,
            positions=positions,
            velocities=velocities,
            efforts=efforts,
            stamp_ns=stamp_ns,
        )
        bench.take(guard.joint_state(sample, now))
    elif kind == "pose":
        bench.take(guard.pose(given_values, now))  # type: ignore[arg-type]
    elif kind == "wrench":
        bench.take(guard.wrench(*given_values, now))
    elif kind == "mode":
        bench.take(guard.mode(given_values[0], now))
    elif kind == "event":
        guard.event(given_values[0])
    elif kind == "estop":
        bench.take(guard.estop(pressed=given_values[0], now=now, source=given_values[1][:32]))
    elif kind == "power":
        bench.take(guard.power_off_failed(given_values[0], now))
    else:
        bench.take(guard.cycle(now))


@given(
    interface=st.sampled_from(["position", "velocity", "effort"]),
    excess=st.sampled_from(["stop", "clamp"]),
    runs=st.booleans(),
    messages=st.lists(st.tuples(st.floats(0.0, 0.05), GARBAGE), max_size=25),
)
def test_garbage_on_any_topic_moves_nothing_beyond_a_limit(
    interface: str, excess: str, runs: bool, messages: list[tuple[float, tuple[Any, ...]]]
) -> None:
    """It raises nothing, commands only what is finite and within limits, and is told briefly."""
    sensed = f"{WORKSPACE}{WRENCH}, mode: {{topic: mode, follows: [running]}}"
    bench = Bench(robot(interface, f", on_excess: {excess}", sensed))
    if runs:
        bench.running()
    for wait_s, (kind, *values) in messages:
        bench.now += wait_s
        before = bench.state
        bench.sent.clear()
        throw(bench, kind, *values)
        for command in bench.sent:
            assert all(map(math.isfinite, command))
            # A position may be held where the robot is, beyond its range.
            assert within(bench.robot, command) or interface == "position"
        if before in {GuardState.INIT, GuardState.READY} and kind != "estop":
            assert bench.state in {GuardState.INIT, GuardState.READY}
            assert bench.sent == []
        if before is not GuardState.RUNNING:
            assert bench.state is not GuardState.RUNNING
    assert all(len(trip.message) < 1000 for trip in bench.trips)
    assert all(len(each.message) < 1000 for each in bench.guard.persisting(bench.now))
