"""A stop slows down within the limits, never ends in a jump, and every fault ends at standstill."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_eval.core.errors import InputError
from robo_eval_robot.config import Limits, RobotConfig, parse_robot
from robo_eval_robot.guard import GuardState
from robo_eval_robot.guard_checks import Code
from robo_eval_robot.guard_stop import Ramp
from robo_eval_robot.guard_watch import SpeedChange
from tests.unit.robot.test_guard import (
    ACCELERATION,
    CATEGORY,
    JOINTS,
    NS,
    PERIOD_S,
    ROBOT,
    VELOCITY,
    Bench,
    robot,
)

CREEP = 0.02  # what a robot that counts as standing may move in the time it has to stop
MODE = ", mode: {topic: driver/mode, follows: [running, reduced]}"
POSITIVE = st.floats(0.1, 50.0)


def place(bench: Bench, positions: tuple[float, float]) -> None:
    """The next joint state, with the velocities that lead there."""
    before, bench.positions = bench.positions, positions
    bench.velocities = tuple(
        (new - old) / PERIOD_S for new, old in zip(positions, before, strict=True)
    )
    bench.tick(policy=False)


def play(bench: Bench, command: tuple[float, float] | None = None) -> None:
    """A control period in which the robot does what it was asked for last."""
    if command is not None:
        bench.ask(command)
    sent = bench.sent[-1] if bench.sent else None
    if bench.robot.controller.interface == "position":
        place(bench, sent or bench.positions)
    else:
        bench.velocities = sent or (0.0, 0.0)
        bench.tick(policy=False)
    bench.guard.peers.heard_policy(bench.now)


def speed_up(bench: Bench, speeds: tuple[float, float], periods: int = 30) -> None:
    """Move with a share of each limit of velocity, gently."""
    bench.now += PERIOD_S  # since the last request
    now = [0.0, 0.0]
    wanted = list(bench.positions)
    is_position = bench.robot.controller.interface == "position"
    for _ in range(periods):
        for i, joint in enumerate(JOINTS):
            target = speeds[i] * VELOCITY[joint]
            most = 0.5 * ACCELERATION[joint] * PERIOD_S
            now[i] += min(max(target - now[i], -most), most)
            wanted[i] = wanted[i] + now[i] * PERIOD_S if is_position else now[i]
        play(bench, (wanted[0], wanted[1]))
    assert bench.state is GuardState.RUNNING, bench.trips


def guided(**options: str) -> Bench:
    """Stopped, at a standstill, of a robot that is told positions."""
    bench = Bench(robot("position", **options)).ready()
    assert bench.guard.enable(on=True, now=bench.now).success
    bench.take(bench.guard.stop(bench.now))
    for _ in range(5):
        bench.tick()
    return bench


# A stop never ends in a jump -------------------------------------------------------------------


def test_the_hold_follows_a_robot_that_a_hand_moves() -> None:
    """As through power-off and hand guiding: it was held 0.43 rad from where it was."""
    bench = guided()
    for number in range(1, 44):
        place(bench, (0.0, 0.01 * number))
    for _ in range(5):
        place(bench, (0.0, 0.43))
    assert bench.sent[-1] == (pytest.approx(0.0), pytest.approx(0.43))


def test_the_hold_is_where_the_robot_is_while_it_follows_no_commands() -> None:
    bench = guided(state=MODE)
    for word in ("power_off", "hand", "running"):
        bench.take(bench.guard.mode(word, bench.now))
        for number in range(5):
            place(bench, (0.002 * number, -0.003 * number))
            if word != "running":
                assert bench.sent[-1] == bench.positions
    bench.take(bench.guard.mode("reduced", bench.now))
    place(bench, (0.001, -0.001))
    for _ in range(3):
        place(bench, (0.001, -0.001))
    # Less than what counts as creeping, and taken anew all the same.
    assert bench.sent[-1] == (0.001, -0.001)


def test_a_hold_stays_against_a_load_that_pulls() -> None:
    bench = guided()
    for _ in range(200):
        place(bench, (-0.5 * CREEP, 0.0))
    assert bench.sent[-1] == (0.0, 0.0)


@given(
    moves=st.lists(
        st.tuples(
            st.sampled_from(["running", "running", "reduced", "power_off", "hand"]),
            st.floats(-1.0, 1.0),
            st.floats(-1.0, 1.0),
            st.integers(1, 20),
            st.booleans(),
        ),
        max_size=12,
    ),
    category=st.sampled_from([1, 2]),
)
def test_however_it_is_moved_it_is_held_where_it_is(
    moves: list[tuple[str, float, float, int, bool]], category: int
) -> None:
    bench = guided(state=MODE, guard=CATEGORY.format(category))
    for word, slide, turn, periods, removed in moves:
        bench.take(bench.guard.mode(word, bench.now))
        if removed:
            bench.guard.power_is_off()
        for _ in range(periods):
            speeds = zip(bench.positions, (slide * 2.0, turn * 3.0), strict=True)
            first, second = (place_ + speed * PERIOD_S for place_, speed in speeds)
            place(bench, (min(max(first, -0.9), 0.9), min(max(second, -1.9), 1.9)))
            assert bench.sent[-1] == pytest.approx(bench.positions, abs=CREEP + 1e-9)
        bench.sent.clear()
        answer = bench.guard.reset(bench.now)
        bench.take(answer)
        stands = max(map(abs, bench.velocities)) <= 0.02
        assert bench.sent == []  # it moves nothing
        if answer.success:
            assert stands
            assert word in {"running", "reduced"}
            return
    bench.take(bench.guard.mode("power_off", bench.now))
    for _ in range(3):
        place(bench, bench.positions)
    bench.guard.power_is_off()
    bench.take(bench.guard.mode("running", bench.now))
    for _ in range(3):
        place(bench, bench.positions)
    assert bench.guard.reset(bench.now).success


@pytest.mark.parametrize("interface", ["position", "velocity", "effort"])
@pytest.mark.parametrize("velocities", [(0.0, 0.3), (-0.03, 0.0)])
def test_a_reset_is_refused_while_a_joint_moves(
    interface: str, velocities: tuple[float, float]
) -> None:
    bench = Bench(robot(interface)).running()
    bench.take(bench.guard.stop(bench.now))
    for _ in range(20):
        bench.tick()
    bench.velocities = velocities
    bench.tick()
    answer = bench.guard.reset(bench.now)
    assert not answer.success
    assert "does not stand" in answer.message
    bench.velocities = (0.0, 0.0)
    bench.tick()
    assert bench.guard.reset(bench.now).success


def test_a_position_that_no_joint_can_have_reached_is_not_held() -> None:
    bench = Bench(robot("position")).running()
    bench.positions = (0.9, 0.0)
    bench.tick(policy=False)
    bench.take(bench.guard.stop(bench.now))
    bench.positions = (0.0, 0.0)
    for _ in range(3):
        bench.tick()
    assert set(bench.sent) == {(0.0, 0.0)}


def test_a_mode_in_which_nothing_is_followed_stops_and_keeps_from_enabling() -> None:
    bench = Bench(robot(state=MODE)).ready_but_for(Code.MODE)
    assert "driver/mode" in bench.guard.enable(on=True, now=bench.now).message
    bench.take(bench.guard.mode("running", bench.now))
    bench = bench.running()
    bench.take(bench.guard.mode("protective_stop", bench.now))
    assert bench.guard.causes == [Code.MODE]
    bench.tick()
    assert "'protective_stop'" in bench.guard.reset(bench.now).message
    bench.take(bench.guard.mode("running", bench.now))
    bench.tick()
    assert bench.guard.reset(bench.now).success


# A stop slows down -----------------------------------------------------------------------------


def changes(bench: Bench, joint: int) -> list[float]:
    """Accelerations of a joint that follows what was sent, one command a period."""
    numbers = [command[joint] for command in bench.sent]
    if bench.robot.controller.interface == "position":
        numbers = [(new - old) / PERIOD_S for old, new in pairwise(numbers)]
    return [(new - old) / PERIOD_S for old, new in pairwise(numbers)]


@given(
    interface=st.sampled_from(["position", "velocity"]),
    speeds=st.tuples(st.floats(-0.95, 0.95), st.floats(-0.95, 0.95)),
    periods=st.integers(1, 40),
    how=st.sampled_from(["stop", "disable", "shut_down"]),
)
def test_every_stop_slows_down_within_the_limits(
    interface: str, speeds: tuple[float, float], periods: int, how: str
) -> None:
    bench = Bench(robot(interface)).running()
    speed_up(bench, speeds, periods)
    if how == "stop":
        bench.take(bench.guard.stop(bench.now))
    elif how == "disable":
        bench.take(bench.guard.enable(on=False, now=bench.now))
    elif how == "shut_down":
        bench.take(bench.guard.shut_down(bench.now))
    for _ in range(40):
        play(bench)
    settled = bench.sent[-1]
    for _ in range(10):
        play(bench)
    assert bench.sent[-1] == settled
    assert set(bench.guard.causes) <= {Code.OPERATOR_STOP, Code.GUARD_SHUTDOWN}
    for joint, name in enumerate(JOINTS):
        assert max(map(abs, changes(bench, joint)), default=0.0) <= ACCELERATION[name] * (1 + 1e-6)
    if interface == "velocity":
        assert settled == (0.0, 0.0)


@pytest.mark.parametrize("interface", ["position", "velocity", "effort"])
def test_the_end_of_the_guard_slows_the_robot_down_before_the_silence(interface: str) -> None:
    bench = Bench(robot(interface)).running()
    if interface != "effort":
        speed_up(bench, (0.9, -0.9))
    bench.take(bench.guard.shut_down(bench.now))
    last = bench.sent[-1]
    while True:
        bench.now += PERIOD_S
        command = bench.guard.slow_down(bench.now)  # no state is heard meanwhile
        if command is None:
            break
        assert interface != "effort"
        assert 0.0 <= (command[0] - last[0] if interface == "position" else command[0]) <= 1.8
        last = command
    assert interface == "position" or last == (0.0, 0.0)


@given(
    speed=st.floats(-5.0, 5.0),
    velocity=POSITIVE,
    acceleration=POSITIVE,
    jerk=st.one_of(st.none(), st.floats(1.0, 500.0)),
    steps=st.lists(st.floats(0.001, 0.05), min_size=1, max_size=100),
)
def test_a_ramp_keeps_every_limit_and_ends(
    speed: float, velocity: float, acceleration: float, jerk: float | None, steps: list[float]
) -> None:
    limits = Limits(
        low=-1e6, high=1e6, velocity=velocity, acceleration=acceleration, effort=1.0, jerk=jerk,
        unit="rad",
    )  # fmt: skip
    ramp = Ramp(limits, 0.0, speed)
    slowing = 0.0
    for step in steps:
        before, place_ = ramp.velocity, ramp.position
        ramp.go_on(step)
        assert abs(before) <= velocity
        assert abs(ramp.velocity) <= abs(before)
        assert ramp.velocity * before >= 0.0
        assert abs(ramp.position - place_) <= abs(before) * step + 1e-12
        change = (abs(before) - abs(ramp.velocity)) / step
        assert change <= acceleration * (1 + 1e-9)
        if jerk is not None and ramp.velocity:
            assert change - slowing <= jerk * step * (1 + 1e-9) + 1e-9
        slowing = change
    for _ in range(100_000):
        if not ramp.velocity:
            return
        ramp.go_on(0.01)
    assert ramp.velocity == 0.0


@pytest.mark.parametrize("interface", ["position", "velocity"])
def test_a_stop_pushes_no_robot_that_is_blocked(interface: str) -> None:
    bench = Bench(robot(interface)).running()
    asked = 0.0
    for _ in range(5):
        bench.now += PERIOD_S
        asked += 0.002 if interface == "position" else 0.2
        bench.ask((asked, 0.0))
        bench.joints()
        bench.guard.peers.heard_driver(bench.now)
    bench.take(bench.guard.stop(bench.now))
    for _ in range(20):
        bench.tick()
    assert bench.sent[-1][0] <= (asked if interface == "position" else 0.0)
    assert max(command[0] for command in bench.sent) <= asked


def test_a_file_that_gives_too_little_time_to_slow_down_is_refused() -> None:
    with pytest.raises(InputError, match=r"guard\.stop\.within_s: 0\.03 s .* at least 0\.0444"):
        robot("position", ", stop: {within_s: 0.03}")
    robot("effort", ", stop: {within_s: 0.03}")
    text = ROBOT.format(interface="velocity", guard="", state="").replace(
        "effort_n: 10}", "effort_n: 10, jerk_m_s3: 40}"
    )
    with pytest.raises(InputError, match=r"slide needs to stop .* 0\.471"):
        parse_robot(text.replace("0.3}", "0.3, stop: {within_s: 0.1}}"), source="test")


# Limits are over time --------------------------------------------------------------------------


def asks_often(config: RobotConfig, gap_s: float, stamp_s: float, step: float) -> Bench:
    bench = Bench(config).ready()
    bench.take(bench.guard.enable(on=True, now=bench.now))
    at, ahead_s = 0.0, 0.0
    for number in range(100):
        bench.now += gap_s
        ahead_s = min(max(ahead_s + stamp_s - gap_s, -0.09), 0.09)
        at += min(0.1 * number, 1.0) * step
        bench.ask((0.0, at), age_ns=-round(ahead_s * NS))
        bench.joints()
        bench.guard.peers.heard_driver(bench.now)
        bench.guard.peers.heard_policy(bench.now)
    return bench


@pytest.mark.parametrize(
    ("gap_s", "stamp_s"), [(0.001, 0.001), (0.002, 0.002), (0.001, 0.01), (0.003, 0.05)]
)
def test_many_small_steps_are_no_way_round_the_limit_of_velocity(
    gap_s: float, stamp_s: float
) -> None:
    """With 1000 requests a second 49.9 rad/s got through, and with false stamps, too."""
    bench = asks_often(robot("position", ", command_step: 0.05"), gap_s, stamp_s, 0.05)
    limits = {Code.COMMAND_VELOCITY: (3.0, "rad/s"), Code.COMMAND_ACCELERATION: (60.0, "rad/s^2")}
    limit, unit = limits[bench.trips[0].code]
    assert abs(bench.trips[0].limit or 0.0) == pytest.approx(limit)
    assert bench.trips[0].unit == unit


@given(
    jitter=st.lists(st.floats(0.0, 1.9 * PERIOD_S), min_size=5, max_size=60),
    tick=st.booleans(),
    first=st.integers(1, 3),
)
def test_a_loop_that_is_late_and_then_early_is_no_violation(
    jitter: list[float], tick: bool, first: int
) -> None:
    """A busy machine holds requests up; the policy means its control periods.

    By two of them at most: what was late by more and comes at once, no drive can follow.
    """
    bench = Bench(robot("position", ", state_age_s: 1, command_age_s: 0.1")).ready()
    bench.take(bench.guard.enable(on=True, now=bench.now))
    began, at, speed = bench.now, 0.0, 0.0
    for number, late_s in enumerate(jitter):
        due = began + (number + first) * PERIOD_S
        bench.now = max(due + late_s, bench.now + 1e-5)
        speed = min(speed + 0.5, 1.5)
        at += speed * PERIOD_S
        # Stamped when it is sent, or on its way for as long as it is late.
        bench.ask((0.0, at), age_ns=0 if tick else round((bench.now - due) * NS))
    assert bench.trips == []


def test_slow_requests_may_step_as_far_as_fast_ones_in_the_same_time() -> None:
    bench = asks_often(robot("position"), 0.001, 0.001, 0.0005)
    assert bench.trips == []
    bench = asks_often(robot("position"), 0.01, 0.01, 0.005)
    assert bench.trips == []


ONE_AHEAD = [(19, 18)]
MANY_AHEAD = [(1, number) for number in range(19)]
HELD_UP = [(1, number - 18) for number in range(19)]


@pytest.mark.parametrize("excess", ["stop", "clamp"])
@pytest.mark.parametrize("speed", [1.0, 2.0])
@pytest.mark.parametrize(
    ("waits", "burst"), [(1, ONE_AHEAD), (1, MANY_AHEAD), (0, MANY_AHEAD), (19, HELD_UP)]
)
def test_motion_of_many_periods_does_not_pass_at_one_instant(
    excess: str, speed: float, waits: int, burst: list[tuple[int, int]]
) -> None:
    """Periods of motion and of the stamp: nothing is earned by stamps, little by being late."""
    bench = Bench(robot("position", f", on_excess: {excess}, command_age_s: 0.2")).ready()
    bench.take(bench.guard.enable(on=True, now=bench.now))
    at = 0.0
    for number in range(30):
        bench.now += PERIOD_S
        at += min(0.2 * number, speed) * PERIOD_S
        bench.ask((0.0, at))
    assert bench.trips == []
    before = at
    bench.now += waits * PERIOD_S
    bench.sent.clear()
    for periods, ahead in burst:
        at += periods * speed * PERIOD_S
        bench.ask((0.0, at), age_ns=-round((ahead + (waits == 0)) * PERIOD_S * NS))
    assert excess == "clamp" or bench.state is GuardState.PROTECTIVE_STOP
    most = max((command[1] for command in bench.sent), default=before)
    assert most - before <= VELOCITY["turn"] * 3 * PERIOD_S + 1e-3


@given(
    asked=st.lists(
        st.tuples(st.floats(0.0, 0.03), st.floats(0.0, 0.05), st.floats(-0.1, 0.1)), max_size=60
    ),
    excess=st.sampled_from(["stop", "clamp"]),
    jerk=st.booleans(),
)
def test_no_requests_pass_a_limit_of_velocity_or_acceleration(
    asked: list[tuple[float, float, float]], excess: str, jerk: bool
) -> None:
    text = ROBOT.format(interface="position", guard=f", on_excess: {excess}", state="")
    if jerk:
        text = text.replace("effort_nm: 5}", "effort_nm: 5, jerk_rad_s3: 2000}")
    bench = Bench(parse_robot(text, source="test")).ready()
    bench.take(bench.guard.enable(on=True, now=bench.now))
    passed = [(bench.now, 0.0)]
    ahead_s = at = 0.0
    for gap_s, stamp_s, step in asked:
        bench.now += gap_s
        ahead_s = min(max(ahead_s + stamp_s - gap_s, -0.09), 0.09)
        at += step
        bench.sent.clear()
        bench.ask((0.0, at), age_ns=-round(ahead_s * NS))
        if bench.state is not GuardState.RUNNING:
            break
        passed += [(bench.now, command[1]) for command in bench.sent]
    for number, (then, before) in enumerate(passed):
        for now, after in passed[number + 1 :]:
            # What waited on its way may come at once: as much as fits in two periods.
            most = VELOCITY["turn"] * (now - then + 2.0 * PERIOD_S)
            assert abs(after - before) <= most + 1e-3
            assert -2.0 <= after <= 3.0


@given(
    steps=st.lists(st.floats(-1.0, 1.0), min_size=4, max_size=30),
    samples=st.integers(1, 20),
    stiffness=st.floats(0.0, 1.0),
    shift=st.floats(0.0, 1.0),
)
def test_a_stiff_drive_that_does_what_it_may_is_no_acceleration(
    steps: list[float], samples: int, stiffness: float, shift: float
) -> None:
    period_s, most = 0.05, 15.0
    watch = SpeedChange(period_s)
    before = 0.0
    for number, step in enumerate(steps):
        after = before + step * most * period_s
        for sample in range(samples):
            share = (sample + shift) / samples
            velocity = after if share >= stiffness else before + (after - before) * share
            stamp_ns = round((number + sample / samples) * period_s * NS)
            found = watch.see(stamp_ns, velocity)
            assert found is None or abs(found) <= most * (1.0 + 1e-6)
        before = after


def test_an_acceleration_that_goes_on_is_seen_at_any_rate_of_states() -> None:
    for samples in (1, 2, 5, 25):
        watch = SpeedChange(0.05)
        found = [
            watch.see(round(i * 0.05 / samples * NS), i * 20.0 * 0.05 / samples) for i in range(60)
        ]
        assert found[-1] == pytest.approx(20.0)


@pytest.mark.parametrize("key", ["velocity_m_s: 2, ", "acceleration_m_s2: 50, "])
def test_a_position_robot_without_its_limits_is_refused(key: str) -> None:
    text = ROBOT.format(interface="position", guard="", state="")
    with pytest.raises(InputError, match=rf"joints\.slide\.limits\.{key.partition(':')[0]}"):
        parse_robot(text.replace(key, ""), source="robot.yaml")


# Emergency stops, and power --------------------------------------------------------------------


def test_a_pressed_source_wins_until_it_is_released_itself() -> None:
    bench = Bench().running()
    for source, pressed in (("a", False), ("b", True), ("a", False), ("c", False)):
        bench.take(bench.guard.estop(pressed=pressed, now=bench.now, source=source))
    assert bench.state is GuardState.ESTOP
    bench.tick()
    assert not bench.guard.reset(bench.now).success
    bench.take(bench.guard.estop(pressed=False, now=bench.now, source="b"))
    assert bench.guard.reset(bench.now).success


@given(
    said=st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), min_size=1, max_size=20),
    looks=st.lists(st.booleans(), min_size=20, max_size=20),
)
def test_it_is_pressed_as_long_as_any_source_says_so(
    said: list[tuple[str, bool]], looks: list[bool]
) -> None:
    bench = Bench().ready()
    newest: dict[str, bool] = {}
    for (source, pressed), look in zip(said, looks, strict=False):
        newest[source] = pressed
        bench.take(bench.guard.estop(pressed=pressed, now=bench.now, source=source))
        if look:
            look_around(bench, dict.fromkeys("abc", "/panel"))
        bench.tick()
        codes = {each.code for each in bench.guard.persisting(bench.now)}
        assert (Code.ESTOP in codes) == any(newest.values())


def look_around(bench: Bench, nodes: dict[str, str]) -> None:
    bench.now += 0.001
    bench.take(
        bench.guard.graph(
            publishers=1,
            estop_sources=len(nodes),
            power_off_ready=True,
            now=bench.now,
            estop_nodes=nodes,
        )
    )


def test_a_source_that_is_gone_stops_and_stays_pressed_until_its_node_is_back() -> None:
    bench = Bench().running()
    bench.take(bench.guard.estop(pressed=False, now=bench.now, source="a1"))
    bench.take(bench.guard.estop(pressed=False, now=bench.now, source="b1"))
    look_around(bench, {"": "/driver", "a1": "/gate", "b1": "/panel"})
    assert bench.state is GuardState.RUNNING
    look_around(bench, {"": "/driver", "b1": "/panel"})
    assert bench.guard.causes == [Code.ESTOP_LOST]
    assert "/gate" in bench.trips[0].message
    look_around(bench, {"": "/driver", "a2": "/gate", "b1": "/panel"})
    bench.tick()
    assert not bench.guard.reset(bench.now).success  # it has said nothing yet
    bench.take(bench.guard.estop(pressed=True, now=bench.now, source="a2"))
    look_around(bench, {"": "/driver", "a3": "/gate", "b1": "/panel"})
    bench.take(bench.guard.estop(pressed=False, now=bench.now, source="b1"))
    bench.tick()
    answer = bench.guard.reset(bench.now)
    assert not answer.success
    assert "pressed: /gate" in answer.message
    bench.take(bench.guard.estop(pressed=False, now=bench.now, source="a3"))
    bench.tick()
    assert bench.guard.reset(bench.now).success


@pytest.mark.parametrize("pressed", [False, True])
def test_a_node_that_was_started_again_is_heard_before_its_end_is_seen(pressed: bool) -> None:
    """The graph shows a process that was killed for many seconds; what is latched is said once."""
    bench = Bench().ready()
    bench.take(bench.guard.estop(pressed=pressed, now=bench.now, source="a1"))
    look_around(bench, {"a1": "/driver"})
    look_around(bench, {"a1": "/driver", "a2": "/driver"})
    bench.take(bench.guard.estop(pressed=False, now=bench.now, source="a2"))
    look_around(bench, {"a2": "/driver"})
    codes = {each.code for each in bench.guard.persisting(bench.now)}
    assert codes == ({Code.ESTOP, Code.ESTOP_LOST} if pressed else set())


def test_two_sources_of_one_node_s_name_do_not_speak_for_each_other() -> None:
    bench = Bench().running()
    look_around(bench, {"": "/panel", "a": "/estop", "b": "/estop"})
    for source, pressed in (("a", False), ("b", False), ("a", True)):
        bench.take(bench.guard.estop(pressed=pressed, now=bench.now, source=source))
    look_around(bench, {"": "/panel", "b": "/estop"})
    for _ in range(3):
        bench.tick()
        bench.take(bench.guard.estop(pressed=False, now=bench.now, source="b"))
        look_around(bench, {"": "/panel", "b": "/estop"})
    codes = {each.code for each in bench.guard.persisting(bench.now)}
    assert codes == {Code.ESTOP, Code.ESTOP_LOST}
    assert not bench.guard.reset(bench.now).success
    look_around(bench, {"": "/panel", "b": "/estop", "c": "/estop"})
    bench.take(bench.guard.estop(pressed=False, now=bench.now, source="c"))
    bench.tick()
    assert bench.guard.reset(bench.now).success


def test_a_source_that_is_gone_is_a_loss_though_another_of_that_name_is_heard() -> None:
    bench = Bench().running()
    look_around(bench, {"": "/panel", "a": "/estop", "b": "/estop"})
    for source in "ba":
        bench.take(bench.guard.estop(pressed=False, now=bench.now, source=source))
    bench.tick()
    bench.take(bench.guard.estop(pressed=False, now=bench.now, source="b"))
    look_around(bench, {"": "/panel", "b": "/estop"})
    bench.take(bench.guard.estop(pressed=False, now=bench.now, source="b"))
    assert bench.guard.causes == [Code.ESTOP_LOST]
    bench.tick()
    assert not bench.guard.reset(bench.now).success


@pytest.mark.parametrize("required", ["true", "false"])
def test_a_source_that_is_silent_beyond_its_deadline_stops(required: str) -> None:
    bench = Bench(robot(guard=f", estop: {{deadline_s: 0.2, required: {required}}}"))
    bench.take(bench.guard.estop(pressed=False, now=bench.now, source="b"))
    bench.running()
    while bench.state is GuardState.RUNNING:
        bench.tick()
        bench.take(bench.guard.estop(pressed=False, now=bench.now, source=""))
    assert bench.guard.causes == [Code.ESTOP_LOST]
    assert (bench.trips[0].limit, bench.trips[0].unit) == (0.2, "s")
    assert 0.2 < (bench.trips[0].value or 0.0) < 0.23
    bench.tick()
    assert not bench.guard.reset(bench.now).success
    for source in ("", "b"):
        bench.take(bench.guard.estop(pressed=False, now=bench.now, source=source))
    assert bench.guard.reset(bench.now).success


@pytest.mark.parametrize("category", [0, 1])
@pytest.mark.parametrize("refused", [False, True])
def test_power_that_stays_is_asked_for_again_and_is_an_incident(
    category: int, refused: bool
) -> None:
    bench = Bench(robot(guard=CATEGORY.format(category))).running()
    bench.take(bench.guard.stop(bench.now))
    for _ in range(350):
        asked = bench.powers_off
        bench.tick()
        if refused and bench.powers_off > asked:
            bench.take(bench.guard.power_off_failed("it is stuck.", bench.now))
    assert bench.powers_off == 4
    assert bench.guard.causes == [Code.OPERATOR_STOP, Code.POWER_OFF]
    assert [each.code for each in bench.trips].count(Code.POWER_OFF) == 1
    bench.guard.power_is_off()
    for _ in range(250):
        bench.tick()
    assert bench.powers_off == 4


def wait(bench: Bench, periods: int) -> None:
    for _ in range(periods):
        bench.tick()


@pytest.mark.parametrize("category", [0, 1])
def test_a_reset_waits_for_the_power_to_be_removed(category: int) -> None:
    bench = Bench(robot(guard=CATEGORY.format(category))).running()
    bench.take(bench.guard.stop(bench.now))
    wait(bench, 60)
    answer = bench.guard.reset(bench.now)
    assert not answer.success
    assert "did not remove power" in answer.message
    wait(bench, 300)
    assert bench.powers_off == 4
    assert Code.POWER_OFF in bench.guard.causes
    bench.guard.power_is_off()
    assert bench.guard.reset(bench.now).success


@pytest.mark.parametrize("says", ["done", "refused"])
def test_an_answer_belongs_to_the_stop_it_was_asked_in(says: str) -> None:
    bench = Bench(robot(guard=CATEGORY.format(0))).running()
    bench.take(bench.guard.stop(bench.now))
    before = bench.guard.stops
    bench.guard.power_is_off(before)
    assert bench.guard.reset(bench.now).success
    assert bench.guard.enable(on=True, now=bench.now).success
    bench.take(bench.guard.stop(bench.now))
    # It was asked twice in the stop before, and the second answer is late.
    if says == "done":
        bench.guard.power_is_off(before)
    else:
        bench.take(bench.guard.power_off_failed("it is stuck.", bench.now, before))
    assert bench.guard.causes == [Code.OPERATOR_STOP]
    assert not bench.guard.reset(bench.now).success
    bench.guard.power_is_off(bench.guard.stops)
    assert bench.guard.reset(bench.now).success


@pytest.mark.parametrize("category", [0, 1])
def test_a_driver_that_says_it_removed_power_and_goes_on_is_asked_again(category: int) -> None:
    bench = Bench(robot(guard=CATEGORY.format(category), state=MODE)).running()
    bench.take(bench.guard.stop(bench.now))
    wait(bench, 5)
    bench.guard.power_is_off()
    assert not bench.guard.reset(bench.now).success
    wait(bench, 110)
    assert bench.powers_off == 2
    assert Code.POWER_OFF in bench.guard.causes
    assert "mode 'running'" in bench.trips[-1].message
    bench.take(bench.guard.mode("power_off", bench.now))
    bench.take(bench.guard.mode("running", bench.now))  # somebody switched it on again
    wait(bench, 110)
    assert bench.powers_off == 2
    assert bench.guard.reset(bench.now).success
