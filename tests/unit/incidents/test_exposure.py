"""Hours of exposure: from episodes, each counted once, and what was not logged."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robo_eval.core.errors import InputError, TrialDirectoryError
from robo_eval.core.kinds import EndReason, Side
from robo_eval_incidents import IncidentLog, open_log
from robo_eval_incidents.hours import (
    exposure_of,
    hours,
    hours_rows,
    log_exposure,
    unplaced_episodes,
)
from robo_eval_incidents.kinds import Body, Exposure, Nil
from robo_eval_incidents.spans import clipped, holds, merged, without
from robo_eval_incidents.spans import within as _within
from robo_eval_incidents.verify import verify_log
from robo_eval_incidents.words import Engagement, Via

S = 10**9
HOUR = 3_600 * S
START = 1_772_000_000 * S

Say = Callable[..., Any]


def time(start_s: float, end_s: float, **fields: Any) -> Exposure:
    """Exposure between two times, seconds after START."""
    values = {"robot": "arm-1", "side": "real", "mode": "autonomous", "task": "pick"}
    span = {"start_ns": START + round(start_s * S), "seconds": end_s - start_s}
    return Exposure.model_validate(values | span | fields)


def shift(start_s: float, end_s: float, **fields: Any) -> Nil:
    return Nil(start_ns=START + round(start_s * S), end_ns=START + round(end_s * S), **fields)


def seconds(start_ns: int, end_ns: int) -> tuple[float, float]:
    return (start_ns - START) / S, (end_ns - START) / S


# From the episodes of a trial


def test_physical_episodes_are_exposure_and_simulated_ones_are_not(played):
    trial = played()
    found = exposure_of(trial)
    assert [one.side for one in found] == [Side.TWIN] * 3 + [Side.REAL] * 3
    first = found[3]
    assert (first.robot, first.mode, first.policy) == (
        "gantry-real",
        Engagement.AUTONOMOUS,
        "balancer",
    )
    assert (first.task, first.start_ns, first.seconds) == ("RoboEval/CartPole3D-v0", START, 3600.0)
    assert first.trial is not None
    assert len(first.trial) == 64
    assert len({one.episode_id for one in found}) == 6


def test_an_episode_in_which_somebody_stepped_in_is_assisted(played):
    assisted = {"interventions": 2, "success": False, "end_reason": EndReason.FAILURE}
    assert {one.mode for one in exposure_of(played(**assisted))} == {Engagement.ASSISTED}


def test_a_robot_without_a_name_has_hours_all_the_same(played):
    assert {one.robot for one in exposure_of(played(robot=None))} == {"unnamed"}


@pytest.mark.parametrize("unknown", [{"start_ns": None}, {"exposure_s": None}, {"exposure_s": 0.0}])
def test_hours_nobody_knows_are_not_made_up(played, log, unknown):
    trial = played(**unknown)
    assert exposure_of(trial) == ()
    assert len(unplaced_episodes(trial)) == 6
    assert log_exposure(trial, log).added == 0
    assert hours(log).total() == 0.0


def test_an_episode_that_no_record_can_hold_is_named(played):
    trial = played(robot="a\u202eb")
    with pytest.raises(InputError, match=r"trial: episode '.*': robot: .* character U\+202E"):
        exposure_of(trial)


def test_a_folder_that_is_no_trial_is_refused(tmp_path, log):
    with pytest.raises(TrialDirectoryError, match="no such trial"):
        log_exposure(tmp_path / "nothing", log)


def test_a_trial_is_logged_once_however_often_it_is_asked_for(played, log):
    trial = played()
    assert log_exposure(trial, log).added == 6
    assert log_exposure(trial, log).added == 0
    assert hours(log).total(Side.REAL) == pytest.approx(3.0)
    assert verify_log(log.name).ok


def test_one_plan_played_twice_has_the_hours_of_both(played, log):
    later = {"start_ns": START + 100 * HOUR}
    assert log_exposure(played("one"), log).added == 6
    # All at one time: what overlaps counts once.
    assert log_exposure(played("two", **later), log).added == 6
    assert hours(log).total() == pytest.approx(4.0)


def test_stations_that_log_one_trial_do_not_double_its_hours(played, log, tmp_path):
    from robo_eval_incidents.merge import merge

    trial = played()
    log_exposure(trial, log)
    with open_log(tmp_path / "other.db", station="cell-2", make=True) as other:
        log_exposure(trial, other)
    merge(tmp_path / "other.db", log)
    found = hours(log)
    assert found.total() == pytest.approx(3.0)
    assert found.of("overlap") == []


def test_twin_hours_are_never_those_of_a_robot(played, log):
    log_exposure(played(robot="gantry"), log)
    found = hours(log)
    assert (found.total(Side.REAL), found.total(Side.TWIN)) == pytest.approx((3.0, 3.0))
    assert found.total(Side.SIM) == 0.0
    assert found.of("overlap") == []
    assert found.as_dict()["hours"] == pytest.approx({"twin": 3.0, "real": 3.0})


# Rows


def test_hours_by_robot_side_mode_and_task(log, say):
    say(log, time(0, 3600))
    say(log, time(7200, 9000))
    say(log, time(9000, 10800, mode="assisted"))
    say(log, time(20000, 23600, task="place"))
    say(log, time(0, 1800, robot="arm-2"))
    rows = {
        (row.robot, row.mode.value, row.task): (row.hours, row.times) for row in hours(log).rows
    }
    assert rows == {
        ("arm-1", "autonomous", "pick"): (1.5, 2),
        ("arm-1", "assisted", "pick"): (0.5, 1),
        ("arm-1", "autonomous", "place"): (1.0, 1),
        ("arm-2", "autonomous", "pick"): (0.5, 1),
    }
    assert hours(log).total(robot="arm-1") == pytest.approx(3.0)


def test_a_period_takes_its_part_of_what_reaches_beyond_it(log, say):
    say(log, time(0, 3600))
    found = hours(log, START + 900 * S, START + 1800 * S)
    assert found.total() == pytest.approx(0.25)
    assert hours(log, START + 3600 * S).rows == ()


def test_a_period_that_ends_before_it_begins_is_refused(log):
    with pytest.raises(InputError, match="not after its begin"):
        hours(log, START, START)


def test_what_was_logged_twice_counts_once_and_is_named(log, say):
    say(log, time(0, 3600, episode_id="e1"))
    second = say(log, time(1800, 5400, mode="assisted"))
    found = hours(log)
    assert found.total() == pytest.approx(1.5)
    assert {row.mode.value: row.hours for row in found.rows} == {
        "autonomous": pytest.approx(1.0),
        "assisted": pytest.approx(0.5),
    }
    (overlap,) = found.of("overlap")
    assert seconds(overlap.start_ns, overlap.end_ns) == (1800, 3600)
    assert [name for _, name in overlap.named] == ["e1", second.name]


def test_rounding_is_no_overlap(log, say):
    say(log, time(0, 3600.0000004))
    say(log, time(3600, 7200))
    assert hours(log).of("overlap") == []


def test_a_robot_that_was_off_was_not_exposed(log, say):
    say(log, time(0, 7200, mode="off"))
    say(log, time(1800, 3600))
    found = hours(log)
    assert found.total() == pytest.approx(0.5)
    assert {row.mode.value: row.hours for row in found.rows} == {"off": 1.5, "autonomous": 0.5}
    assert len(found.of("overlap")) == 1


# What was not logged


def test_a_gap_is_a_time_of_a_shift_without_exposure(log, say):
    record = say(log, shift(0, 4 * 3600, robot="arm-1"))
    say(log, time(600, 3600))
    say(log, time(3700, 7200))
    say(log, time(0, 4 * 3600, robot="arm-2"))
    found = hours(log)
    assert [seconds(gap.start_ns, gap.end_ns) for gap in found.of("gap")] == [
        (0, 600),
        (7200, 14400),
    ]
    assert {(gap.robot, gap.within, gap.name) for gap in found.of("gap")} == {
        ("arm-1", "shift", f"{record.station}/{record.sequence}")
    }
    assert len(hours(log, gap_s=60).of("gap")) == 3


def test_a_shift_of_a_station_has_a_gap_only_where_no_robot_was_at_work(log, say):
    say(log, shift(0, 7200))
    say(log, time(0, 3000))
    say(log, time(2000, 5000, robot="arm-2"))
    (gap,) = hours(log).of("gap")
    assert (gap.robot, seconds(gap.start_ns, gap.end_ns)) == (None, (5000, 7200))


def test_a_run_has_a_gap_between_its_episodes(log, say):
    for start in (0, 7200):
        say(log, time(start, start + 3600, trial="a" * 64, episode_id=f"e{start}"))
    (gap,) = hours(log).of("gap")
    assert (gap.within, gap.name, gap.robot) == ("run", "a" * 64, "arm-1")
    assert seconds(gap.start_ns, gap.end_ns) == (3600, 7200)
    # The run began before the period, whose begin is in its gap.
    (gap,) = hours(log, START + 5000 * S, START + 6000 * S).of("gap")
    assert seconds(gap.start_ns, gap.end_ns) == (5000, 6000)


def test_a_gap_that_is_in_two_shifts_is_listed_once(log, say):
    say(log, shift(0, 3600, robot="arm-1"))
    say(log, shift(1800, 5400, robot="arm-1"))
    spans = [seconds(gap.start_ns, gap.end_ns) for gap in hours(log).of("gap")]
    assert spans == [(0, 3600), (3600, 5400)]


def test_a_robot_that_was_off_leaves_no_gap(log, say):
    say(log, shift(0, 3600, robot="arm-1"))
    say(log, time(0, 3600, mode="off"))
    assert hours(log).of("gap") == []


def test_an_incident_outside_all_logged_hours_is_listed(log, say, report):
    say(log, time(0, 3600, robot="ur5e"))
    within = say(log, report(happened_ns=START + 1800 * S))
    late = say(log, report(happened_ns=START + 3700 * S))
    twin = say(log, report(happened_ns=START + 1800 * S, side="twin"))
    say(log, report(happened_ns=START + 9000 * S, side="sim"))
    found = [one.named[0][0] for one in hours(log).of("outside")]
    assert found == [twin.record_id, late.record_id]
    assert within.record_id not in found
    assert [one.named[0][0] for one in hours(log, None, START + 3600 * S).of("outside")] == found[
        :1
    ]


def test_an_incident_at_the_edge_of_a_period_is_not_outside(log, say, report):
    say(log, time(0, 3600, robot="ur5e"))
    say(log, report(happened_ns=START + 1800 * S))
    assert hours(log, START + 1800 * S).of("outside") == []


# Against brute force, second by second

LAST = 40
SPANS = st.tuples(st.integers(0, LAST), st.integers(1, 12)).map(
    lambda pair: (pair[0], min(pair[0] + pair[1], LAST + 1))
)
TIMES = st.builds(
    lambda span, robot, side, mode, task: time(*span, robot=robot, side=side, mode=mode, task=task),
    SPANS,
    st.sampled_from(["a", "b"]),
    st.sampled_from(["real", "twin"]),
    st.sampled_from(["autonomous", "assisted", "off"]),
    st.sampled_from(["pick", "place"]),
)
SHIFTS = st.builds(
    lambda span, robot, side: shift(*span, robot=robot, side=side),
    SPANS,
    st.sampled_from(["a", "b", None]),
    st.sampled_from([Side.REAL, Side.TWIN]),
)
PERIODS = st.one_of(st.just((None, None)), SPANS)
EXAMPLES = settings.get_profile(settings.get_current_profile_name()).max_examples


@contextmanager
def filled(bodies: list[Body]) -> Iterator[IncidentLog]:
    with (
        tempfile.TemporaryDirectory() as folder,
        open_log(Path(folder) / "incidents.db", make=True) as log,
    ):
        for body in bodies:
            log.file(body, by="Operator A", via=Via.CLI)
        yield log


def ns(period: tuple[int | None, int | None]) -> list[int | None]:
    return [None if second is None else START + second * S for second in period]


def within(period: tuple[int | None, int | None]) -> range:
    return range(period[0] or 0, LAST + 1 if period[1] is None else period[1])


def begin_of(body: Exposure | Nil) -> int:
    return round((body.start_ns - START) / S)


def end_of(body: Exposure | Nil) -> int:
    is_nil = isinstance(body, Nil)
    return round((body.end_ns - START) / S) if is_nil else begin_of(body) + round(body.seconds)


def at(times: list[Exposure], second: int, robot: str, side: str) -> list[Exposure]:
    return [
        one
        for one in times
        if one.robot == robot and one.side == side and begin_of(one) <= second < end_of(one)
    ]


def seconds_of(found: list[Any]) -> set[tuple[Any, str, int]]:
    return {
        (one.robot, one.side.value, second)
        for one in found
        for second in range((one.start_ns - START) // S, (one.end_ns - START) // S)
    }


@settings(max_examples=max(EXAMPLES, 25))
@given(st.lists(TIMES, max_size=10), st.lists(SHIFTS, max_size=3), PERIODS)
def test_hours_overlaps_and_gaps_are_those_of_each_second(times, shifts, period):
    with filled([*times, *shifts]) as log:
        found = hours(log, *ns(period), gap_s=0.0)
    bodies = list(product("ab", ("real", "twin")))
    everywhere = [(*body, second) for body in bodies for second in within(period)]
    there = {place: at(times, place[2], *place[:2]) for place in everywhere}
    for robot, side in bodies:
        wall_s = sum(
            any(one.mode is not Engagement.OFF for one in own)
            for place, own in there.items()
            if place[:2] == (robot, side)
        )
        total = found.total(Side(side), robot)
        assert total * 3600 == pytest.approx(wall_s, abs=1e-6)
        assert total * 3600 <= len(within(period)) + 1e-6
    logged_s = sum(row.hours for row in found.rows) * 3600
    assert logged_s == pytest.approx(sum(map(bool, there.values())), abs=1e-6)
    assert seconds_of(found.of("overlap")) == {
        place for place, own in there.items() if len(own) > 1
    }
    gaps = seconds_of(found.of("gap"))
    assert gaps == {
        (watch.robot, watch.side.value, second)
        for watch in shifts
        for second in within(period)
        if begin_of(watch) <= second < end_of(watch)
        and not any(
            there[robot, watch.side.value, second]
            for robot in ("ab" if watch.robot is None else watch.robot)
        )
    }
    # Each once.
    assert sum((gap.end_ns - gap.start_ns) // S for gap in found.of("gap")) == len(gaps)


@given(st.lists(TIMES, min_size=1, max_size=8), st.integers(1, LAST))
def test_the_hours_of_two_halves_are_those_of_the_whole(times, middle):
    def seconds_by_row(log: IncidentLog, *period: int | None) -> dict[Any, float]:
        rows = hours_rows(log, *period).rows
        return {(row.robot, row.side, row.mode, row.task): row.hours * 3600 for row in rows}

    cut = START + middle * S
    with filled(times) as log:
        whole = seconds_by_row(log)
        halves = [seconds_by_row(log, None, cut), seconds_by_row(log, cut)]
    for key, total in whole.items():
        assert sum(half.get(key, 0.0) for half in halves) == pytest.approx(total, abs=1e-6)


# Spans

PAIRS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=8)


@given(PAIRS, PAIRS, st.integers(-3, 33), st.integers(0, 2))
def test_spans_are_sets_of_instants(first, second, instant, slack):
    def spans(pairs: list[tuple[int, int]]) -> Any:
        return np.array(pairs, dtype=np.int64).reshape(-1, 2)

    def points(found: Any) -> set[int]:
        return {point for start, end in found.tolist() for point in range(start, end)}

    one, other = merged(spans(first)), merged(spans(second))
    assert points(one) == points(spans(first))
    assert all(before[1] < after[0] for before, after in pairwise(one.tolist()))
    assert points(without(one, other)) == points(one) - points(other)
    ends = np.array([[0, 40], [instant, instant + 5]])
    inside = [len(points(one) & set(range(*span))) for span in ends.tolist()]
    assert _within(one, ends[:, 0], ends[:, 1]).tolist() == inside
    is_in = any(start - slack <= instant < end + (slack or 0) + (slack > 0)
                for start, end in one.tolist())  # fmt: skip
    assert holds(one, np.array([instant]), slack).tolist() == [is_in]
    assert points(clipped(spans([(3, 20)]), 5, None)) == set(range(5, 20))
