"""Missed ticks, periods and latencies of an episode, also when the driver's clock is set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import robo_eval_twin
from robo_eval_robot import timing as module
from robo_eval_robot.config import read_robot
from robo_eval_robot.snapshot import JointReading, Snapshot
from robo_eval_robot.timing import Pace, Timing

NS = 1_000_000_000
TICK_S = 0.02
TWIN = read_robot(Path(robo_eval_twin.__file__).with_name("gantry_twin.yaml"))


def seen(stamp: float, arrival: float | None = None, effort: float | None = None) -> Snapshot:
    """A state of a stamp and an arrival in ticks of 20 ms, with what the drive of x applied."""
    return Snapshot(
        stamp_ns=round(stamp * TICK_S * NS),
        received_s=(stamp if arrival is None else arrival) * TICK_S,
        joints={
            "cart_x": JointReading(position=0.0, effort=effort),
            "cart_y": JointReading(position=0.0, effort=0.0),
        },
    )


def missed(*states: tuple[float, float]) -> float:
    """Missed ticks of states with these stamps and arrivals, both in ticks of 20 ms."""
    timing = Timing(TICK_S)
    for stamp, arrival in states:
        timing.observed(seen(stamp, arrival))
    return timing.as_measures()["missed_ticks"]


@pytest.mark.parametrize("hours", [-1.0, 1.0])
def test_a_clock_that_is_set_misses_no_tick(hours: float) -> None:
    jump = hours * 3600.0 / 0.02
    assert missed((100, 0), (101, 1), (102 + jump, 2), (103 + jump, 3)) == 0
    assert missed((100, 0), (102 + jump, 4)) == 3


def test_lost_states_are_told_from_late_ones() -> None:
    assert missed((100, 0.0), (101, 1.9), (102, 2.0)) == 0  # late, and then two at once
    assert missed((100, 0.0), (103, 3.0)) == 2
    assert missed((100, 0.0), (150, 50.0)) == 49


# Whose fault it is ------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The conductor's clock, in ticks of 20 ms: a list of one number that a test sets."""
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0] * TICK_S)
    return now


def played(
    clock: list[float],
    periods: Sequence[tuple[float, float, Sequence[float]]],
) -> dict[str, float]:
    """Measures of periods: how long the policy took, how much of it without a processor, and the
    states that arrived until the next action, all in ticks."""
    timing = Timing(TICK_S)
    timing.observed(seen(0))
    for took, queued, stamps in periods:
        clock[0] += took
        timing.queued(queued * TICK_S)
        timing.requested([0.0])
        clock[0] = max(clock[0], stamps[-1])
        timing.observed(seen(stamps[-1]), [seen(stamp) for stamp in stamps])
    return timing.as_measures()


@pytest.mark.parametrize(
    ("took", "queued", "stamps", "late"),
    [
        (0.1, 0.0, [1], 0),
        (0.1, 0.0, [1, 2, 3, 4], 3),  # they waited, and nobody looked
        (0.1, 0.0, [4], 0),  # they were lost on the way
        (0.1, 0.0, [2, 4], 1),
        (3.2, 0.0, [1, 2, 3], 0),  # the policy thought that long
        (3.2, 0.0, [1, 2, 3, 4, 5, 6, 7], 3),
        (3.2, 3.0, [1, 2, 3], 2),  # it wanted to, and got no processor
        (1.9, 0.0, [1, 2], 0),
        (0.1, 0.0, [0.5, 1, 1.5, 2, 2.5, 3], 2),  # states come twice a tick
        (0.1, 0.0, [1, 1, 2, 2, 3, 3], 2),  # each came twice
    ],
)
def test_ticks_are_late_by_the_computer_or_missed_by_the_policy(
    clock: list[float], took: float, queued: float, stamps: list[float], late: int
) -> None:
    found = played(clock, [(took, queued, stamps)])
    assert found["late_ticks"] == late
    assert found["missed_ticks"] == max(0, stamps[-1] - 1)


@given(st.lists(st.floats(0.01, 9.0), min_size=1, max_size=20))
def test_a_slow_policy_alone_is_never_late(took: list[float]) -> None:
    """Whatever it takes, as long as it is asked the moment a state is there."""
    now, last, timing = [0.0], 0, Timing(TICK_S)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module.time, "monotonic", lambda: now[0] * TICK_S)
        timing.observed(seen(0))
        for one in took:
            now[0] += one
            timing.requested([0.0])
            newest = max(int(now[0] + 1e-6), last + 1)
            now[0] = max(now[0], newest)
            timing.observed(seen(newest), [seen(tick) for tick in range(last + 1, newest + 1)])
            last = newest
    assert timing.late_ticks == 0


# From a command to what shows it ------------------------------------------------------------------


def latencies(
    clock: list[float], events: Sequence[tuple[float, str, float | None]]
) -> dict[str, float]:
    """Measures of what was asked for and what states showed, at times in ticks."""
    timing = Timing(TICK_S, TWIN)
    for at, what, effort in events:
        clock[0] = at
        if what == "asks":
            timing.requested([effort, 0.0])
        else:
            timing.answered([seen(at, effort=effort)])
    return {
        name: round(value / TICK_S, 6)
        for name, value in timing.as_measures().items()
        if name.startswith("command_latency")
    }


def test_a_command_has_arrived_with_the_state_that_shows_it(clock: list[float]) -> None:
    found = latencies(
        clock,
        [
            (0.0, "shows", 0.0), (0.1, "asks", 0.0), (0.9, "asks", 5.0),
            (1.0, "shows", 0.0), (2.0, "shows", 5.0), (2.1, "asks", -5.0),
            (2.9, "shows", 5.0), (5.1, "shows", -4.0), (6.0, "shows", -5.0),
        ],
    )  # fmt: skip
    assert found == {
        "command_latency_p50_s": 2.05, "command_latency_p99_s": 2.981,
        "command_latency_max_s": 3.0,
    }  # fmt: skip


def test_commands_on_their_way_are_answered_in_turn(clock: list[float]) -> None:
    """A delay of three ticks, and another command in each."""
    efforts = [0.0, 5.0, -5.0, 5.0, 5.0, -5.0, 0.0, 0.0, 0.0, 0.0]
    events: list[tuple[float, str, float | None]] = [(-1.0, "shows", 0.0)]
    for tick, effort in enumerate(efforts):
        events.append((tick, "shows", efforts[tick - 3] if tick >= 3 else 0.0))
        events.append((tick, "asks", effort))
    found = latencies(clock, events)
    assert found["command_latency_p50_s"] == found["command_latency_max_s"] == 3.0


def test_a_command_that_was_overtaken_counts_for_nothing(clock: list[float]) -> None:
    found = latencies(
        clock,
        [
            (0.0, "shows", 0.0), (0.1, "asks", 0.0), (0.2, "asks", 5.0), (0.3, "asks", -5.0),
            (1.0, "shows", -5.0), (1.1, "asks", 5.0), (2.0, "shows", 5.0),
            (2.1, "asks", 0.0), (60.0, "shows", 0.0), (60.1, "asks", 4.0), (61.0, "shows", 4.0),
        ],
    )  # fmt: skip
    assert found == {f"command_latency_{name}_s": 0.9 for name in ("p50", "p99", "max")}


@pytest.mark.parametrize("effort", [None, float("nan")])
def test_what_is_not_measured_has_no_latency(clock: list[float], effort: float | None) -> None:
    events = [
        (0.0, "shows", effort),
        (0.1, "asks", 0.0),
        (0.2, "asks", 5.0),
        (1.0, "shows", effort),
    ]
    assert latencies(clock, events) == {}


def test_a_command_that_changes_nothing_or_is_no_number_is_not_waited_for(
    clock: list[float],
) -> None:
    asks = [
        (0.1 * i, "asks", value) for i, value in enumerate((1.0, 1.0, 1.0 + 1e-200, float("nan")))
    ]
    assert latencies(clock, [(0.0, "shows", 0.0), *asks, (1.0, "shows", 1.0)]) == {}


@given(state_hz=st.floats(20.0, 1000.0), control_hz=st.floats(5.0, 200.0))
def test_ticks_are_a_period_apart_on_average_whatever_the_rate_of_states(
    state_hz: float, control_hz: float
) -> None:
    control_hz = min(control_hz, state_hz)
    pace, stamp, count = Pace(1.0 / control_hz, state_hz), 0, 200
    state_ns = NS / state_hz
    for _ in range(count):
        due = pace.next(round(stamp * state_ns))
        stamp = max(stamp + 1, -int(-(due - 1) // state_ns))  # the first one at or after it
    assert stamp * state_ns == pytest.approx(count * NS / control_hz, abs=2.0 * state_ns)


def test_after_a_late_tick_a_whole_period_passes() -> None:
    pace = Pace(TICK_S, 100.0)
    assert pace.next(0) == 15_000_000
    assert pace.next(80_000_000) == 95_000_000
    assert pace.next(10_000_000) == 25_000_000  # the clock was set back
