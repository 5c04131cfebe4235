"""Hours and shifts as they were logged, and what happens to those logged by mistake."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from robo_eval.core.kinds import Side
from robo_eval_incidents import IncidentLog, open_log
from robo_eval_incidents.database import IncidentLogError
from robo_eval_incidents.hours import (
    find_time,
    hours,
    log_exposure,
    logged_times,
    shifts,
)
from robo_eval_incidents.kinds import Exposure, Nil, Withdrawal
from robo_eval_incidents.lists import robots
from robo_eval_incidents.log import DATABASE
from robo_eval_incidents.merge import merge
from robo_eval_incidents.reader import read_incidents
from robo_eval_incidents.record import Record, new_id
from robo_eval_incidents.standing import standing
from robo_eval_incidents.state import RefusedError
from robo_eval_incidents.verify import verify_log
from robo_eval_incidents.words import Via

S = 10**9
HOUR = 3_600 * S
START = 1_772_000_000 * S
Say = Callable[..., Record]


def exposure(begin_h: float, end_h: float, **fields: Any) -> Exposure:
    """Exposure between two times, hours after START."""
    span = {"start_ns": START + round(begin_h * HOUR), "seconds": 3_600 * (end_h - begin_h)}
    values = {"robot": "arm-1", "side": "real", "mode": "autonomous", "task": "pick"}
    return Exposure.model_validate(values | span | fields)


def shift(begin_h: float, end_h: float, **fields: Any) -> Nil:
    span = {"start_ns": START + round(begin_h * HOUR), "end_ns": START + round(end_h * HOUR)}
    return Nil.model_validate(span | fields)


def withdrawal(record: Record, reason: str = "mistyped") -> Withdrawal:
    return Withdrawal(withdrawn_id=record.record_id, reason=reason)


# Taking back


def test_withdrawn_hours_stay_in_the_log_and_do_not_count(log: IncidentLog, say: Say) -> None:
    wrong = say(log, exposure(0, 800))
    say(log, exposure(800, 808))
    assert hours(log).total() == 808
    say(log, withdrawal(wrong), by="Reviewer B")
    assert hours(log).total() == 8
    assert standing(log).real.hours == 8
    assert [record.kind for record in log.records()] == [
        "opened", "exposure", "exposure", "withdrawal",
    ]  # fmt: skip
    assert verify_log(log.database.path).ok


def test_a_robot_that_was_mistyped_is_gone_with_its_hours(log: IncidentLog, say: Say) -> None:
    wrong = say(log, exposure(0, 1, robot="arm_l"))
    say(log, exposure(0, 1))
    assert robots(log) == ["arm-1", "arm_l"]
    say(log, withdrawal(wrong))
    assert robots(log) == ["arm-1"]


def test_without_its_nil_report_a_side_has_no_rates(log: IncidentLog, say: Say) -> None:
    say(log, exposure(0, 8))
    quiet = say(log, shift(0, 8))
    before = standing(log).real
    assert before.rates["critical"].value == 0
    assert before.nil_hours == 8
    assert read_incidents(log.database.path).silent == (Side.TWIN,)
    say(log, withdrawal(quiet))
    after = standing(log).real
    assert after.counts is None
    assert after.rates["critical"].value is None
    assert after.nil_hours == 0
    assert shifts(log) == []
    assert read_incidents(log.database.path).incidents is None


def test_withdrawn_hours_leave_a_gap_in_their_shift(log: IncidentLog, say: Say) -> None:
    say(log, shift(0, 8))
    wrong = say(log, exposure(0, 8))
    assert hours(log).of("gap") == []
    say(log, withdrawal(wrong))
    (gap,) = hours(log).of("gap")
    assert (gap.start_ns, gap.end_ns) == (START, START + 8 * HOUR)


def test_a_withdrawn_episode_is_no_end_of_its_run(log: IncidentLog, say: Say) -> None:
    of_run = {"trial": "a" * 64, "episode_id": "e"}
    say(log, exposure(0, 1, **of_run))
    middle = say(log, exposure(1, 2, **of_run))
    say(log, exposure(2, 3, **of_run))
    stray = say(log, exposure(0, 1, **of_run, start_ns=0))
    assert [gap.start_ns for gap in hours(log).of("gap")] == [HOUR]
    say(log, withdrawal(stray, "its clock was at 1970"))
    assert hours(log).of("gap") == []
    say(log, withdrawal(middle, "another robot"))
    (gap,) = hours(log).of("gap")
    assert (gap.start_ns, gap.end_ns) == (START + HOUR, START + 2 * HOUR)


def test_a_withdrawn_episode_is_not_logged_again(played: Any, log: IncidentLog, say: Say) -> None:
    trial = played()
    assert log_exposure(trial, log).added == 6
    first = next(record for record in log.records() if record.kind == "exposure")
    say(log, withdrawal(first))
    assert log_exposure(trial, log).added == 0
    assert sum(row.times for row in hours(log).rows) == 5


def test_what_is_withdrawn_already_is_not_withdrawn_again(log: IncidentLog, say: Say) -> None:
    wrong = say(log, exposure(0, 1))
    given = {"record_id": new_id(), "by": "Reviewer B"}
    first = say(log, withdrawal(wrong), **given)
    assert say(log, withdrawal(wrong), **given) == first, "sent twice it is one record"
    with pytest.raises(RefusedError, match="Reviewer B withdrew it already, in cell-1/3"):
        say(log, withdrawal(wrong))
    assert log.heads()["cell-1"].sequence == 3


def test_only_times_are_withdrawn(log: IncidentLog, say: Say, report: Any) -> None:
    others = [say(log, report()), next(log.records())]
    for record in others:
        with pytest.raises(RefusedError, match="neither exposure nor a nil report"):
            say(log, withdrawal(record))
    with pytest.raises(RefusedError, match="neither exposure nor a nil report"):
        say(log, Withdrawal(withdrawn_id=new_id(), reason="never was"))
    assert log.heads()["cell-1"].sequence == 2


@pytest.mark.parametrize("office", ["a-office", "z-office"])
def test_another_station_may_withdraw(tmp_path: Path, say: Say, office: str) -> None:
    names = ("cell", office, "lab")
    with ExitStack() as stack:
        cell, other, lab = (
            stack.enter_context(open_log(tmp_path / name / DATABASE, station=name, make=True))
            for name in names
        )
        wrong = say(cell, exposure(0, 100))
        merge(cell.database.path, other)
        say(other, withdrawal(wrong))
        merge(other.database.path, lab)
        assert hours(lab).rows == ()
        found = verify_log(lab.database.path)
        assert found.ok, found.problems
        with open_log(lab.database.path, read_only=True) as reading:
            assert logged_times(reading) == logged_times(lab)


# Listing


def test_exposure_that_touches_a_period(log: IncidentLog, say: Say) -> None:
    for start in (100, 200, 300):
        body = exposure(0, 50 / 3_600, start_ns=start * S)
        say(log, body)
    found, _ = logged_times(log)
    assert [one.start_ns // S for one in found] == [300, 200, 100]
    assert [one.end_ns // S for one in found] == [350, 250, 150]
    assert logged_times(log, 150 * S, 200 * S) == ([], False)
    assert len(logged_times(log, 149 * S, 201 * S)[0]) == 2


def test_times_are_listed_newest_first_with_who_took_them_back(log: IncidentLog, say: Say) -> None:
    say(log, exposure(0, 1))
    wrong = say(log, exposure(2, 300), by="Operator B")
    say(log, shift(1, 2, note="late shift"))
    say(log, exposure(4, 5, robot="cart-1"))
    say(log, withdrawal(wrong, "3 h, not 300 h"), by="Reviewer C")
    listed, more = logged_times(log)
    assert not more
    assert [one.name for one in listed] == ["cell-1/5", "cell-1/3", "cell-1/4", "cell-1/2"]
    assert [one.kind for one in listed] == ["exposure", "exposure", "nil", "exposure"]
    assert [one.what for one in listed] == ["autonomous, pick"] * 2 + ["late shift"] + [
        "autonomous, pick"
    ]
    assert (listed[1].by, listed[1].withdrawn_by) == ("Operator B", "Reviewer C")
    assert listed[1].reason == "3 h, not 300 h"
    assert [one.withdrawn_by for one in listed if one is not listed[1]] == [None] * 3
    newest, more = logged_times(log, limit=2)
    assert (list(newest), more) == (list(listed[:2]), True)
    of_cart, _ = logged_times(log, robot="cart-1")
    assert [one.name for one in of_cart] == ["cell-1/5", "cell-1/4"], "a shift is of all robots"
    period, _ = logged_times(log, START + 3 * HOUR, START + 4 * HOUR)
    assert [one.name for one in period] == ["cell-1/3"]


def test_a_time_is_found_by_its_number_and_by_its_id(log: IncidentLog, say: Say) -> None:
    record = say(log, shift(0, 1))
    assert find_time(log, "cell-1/2").record_id == record.record_id
    assert find_time(log, record.record_id).name == "cell-1/2"


@pytest.mark.parametrize(
    "name",
    ["cell-1/1", "cell-1/9", "cell-2/2", "", "/", "cell-1/x", "9" * 40, "cell-1/" + "9" * 40],
)
def test_what_is_no_time_is_refused(log: IncidentLog, say: Say, name: str) -> None:
    say(log, shift(0, 1))
    with pytest.raises(ValueError, match="no hours and no shift"):
        find_time(log, name)


@pytest.mark.parametrize("order", [1, -1])
def test_which_of_two_entries_counts_does_not_depend_on_when_they_came(
    tmp_path: Path, say: Say, order: int
) -> None:
    same = {"record_id": new_id(), "by": "robo-eval", "via": Via.RULE}
    with ExitStack() as stack:
        a, b, lab = (
            stack.enter_context(open_log(tmp_path / name / DATABASE, station=name, make=True))
            for name in ("a", "b", "lab")
        )
        say(a, exposure(0, 1), **same)
        say(b, exposure(0, 2), **same)
        for source in (a, b)[::order]:
            merge(source.database.path, lab)
            hours(lab)
        assert hours(lab).total() == 1
        with open_log(lab.database.path, read_only=True) as reading:
            assert hours(reading).total() == 1
        assert verify_log(lab.database.path).ok


def test_an_id_that_another_station_used_for_something_else_is_withdrawn_all_the_same(
    tmp_path: Path, say: Say, report: Any
) -> None:
    with (
        open_log(tmp_path / "a" / DATABASE, station="a", make=True) as a,
        open_log(tmp_path / "b" / DATABASE, station="b", make=True) as b,
    ):
        about = say(a, report())
        say(b, exposure(0, 999), record_id=about.record_id)
        merge(b.database.path, a)
        assert find_time(a, about.record_id).name == "b/2"
        say(a, Withdrawal(withdrawn_id=about.record_id, reason="not of ours"))
        assert hours(a).total() == 0


def test_what_two_stations_logged_is_found_by_either_number(tmp_path: Path, say: Say) -> None:
    same = {"record_id": new_id(), "by": "robo-eval", "via": Via.RULE}
    with (
        open_log(tmp_path / "a" / DATABASE, station="a", make=True) as first,
        open_log(tmp_path / "b" / DATABASE, station="b", make=True) as second,
    ):
        for log in (first, second):
            say(log, exposure(0, 1), **same)
        merge(second.database.path, first)
        found = {find_time(first, name).record_id for name in ("a/2", "b/2")}
        assert found == {same["record_id"]}
        say(first, Withdrawal(withdrawn_id=str(same["record_id"]), reason="a test run"))
        assert hours(first).rows == ()


# Shifts that were not without


def test_incidents_in_a_quiet_shift_are_named(log: IncidentLog, say: Say, report: Any) -> None:
    say(log, shift(0, 8), by="Operator B")
    say(log, shift(8, 16, robot="arm-2"))
    say(log, report(happened_ns=START + HOUR))
    say(log, report(happened_ns=START + 9 * HOUR))
    say(log, report(happened_ns=START + 8 * HOUR, robot="arm-2"))
    say(log, report(happened_ns=START + HOUR, side="twin"))
    first, second = found = hours(log).of("contradicted")
    assert (first.name, first.by, first.count, first.named[0][1]) == (
        "cell-1/2", "Operator B", 1, "cell-1/4",
    )  # fmt: skip
    assert (second.name, second.count, second.named[0][1]) == ("cell-1/3", 1, "cell-1/6")
    assert hours(log, START + 2 * HOUR).of("contradicted") == found, "a shift is one"
    quiet = next(record for record in log.records() if record.sequence == 2)
    say(log, withdrawal(quiet))
    assert hours(log).of("contradicted") == found[1:]


def test_a_shift_that_was_not_quiet_has_no_quiet_hours(
    log: IncidentLog, say: Say, report: Any
) -> None:
    say(log, exposure(0, 16))
    say(log, shift(0, 8))
    say(log, shift(8, 16))
    assert standing(log).real.nil_hours == 16
    for hour in range(5):
        say(log, report(robot="arm-1", happened_ns=START + hour * HOUR))
    (found,) = hours(log).of("contradicted")
    assert (found.count, len(found.named)) == (5, 3)
    assert standing(log).real.nil_hours == 8


def test_a_station_speaks_for_its_own_robots(tmp_path: Path, say: Say, report: Any) -> None:
    with ExitStack() as stack:
        cell, truck, lab = (
            stack.enter_context(open_log(tmp_path / name / DATABASE, station=name, make=True))
            for name in ("cell", "truck", "lab")
        )
        say(cell, exposure(0, 8))
        say(cell, shift(0, 8))
        say(truck, exposure(0, 8, robot="cart-1"))
        say(truck, exposure(0, 8, robot="cart-2"))
        say(truck, report(robot="cart-1", happened_ns=START + HOUR))
        for source in (cell, truck):
            merge(source.database.path, lab)
        assert hours(lab).of("contradicted") == []
        assert {row.robot: row.nil_hours for row in hours(lab).rows} == {
            "arm-1": 8, "cart-1": 0, "cart-2": 0,
        }  # fmt: skip
        assert standing(lab, robot="arm-1").real.counts is not None
        assert standing(lab, robot="cart-2").real.counts is None, "nobody said anything of it"


def test_many_shifts_are_looked_through_in_one_go(log: IncidentLog, say: Say, report: Any) -> None:
    """A shift is compared with the last one only, however many there are."""
    for number in range(300):
        say(log, shift(2 * number, 2 * number + 1, robot="arm-1"))
    say(log, report(robot="arm-1", happened_ns=START + 10 * HOUR))
    found = hours(log)
    assert len(found.of("gap")) == 300
    assert [one.name for one in found.of("contradicted")] == ["cell-1/7"]


# How they are found


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE times SET mode = 'off'", "cell-1/2: the lists show another mode"),
        ("DELETE FROM times WHERE kind = 'exposure'", "cell-1/2: is left out of the lists"),
        ("DROP INDEX times_by_start", "index times_by_start of the database is not"),
    ],
)
def test_changed_lists_of_times_are_found(
    log: IncidentLog, path: Path, say: Say, tamper: Any, statement: str, message: str
) -> None:
    wrong = say(log, exposure(0, 1))
    say(log, shift(0, 1))
    say(log, withdrawal(wrong))
    hours(log)
    log.close()
    assert verify_log(path).ok
    tamper(statement)
    assert [problem for problem in verify_log(path).problems if message in str(problem.what)]


@pytest.mark.parametrize("cell", ["end_ns = 'soon'", "start_ns = x'00'", "side = 'mars'"])
def test_hours_that_no_record_could_say_are_refused_in_one_line(
    log: IncidentLog, path: Path, say: Say, tamper: Any, cell: str
) -> None:
    say(log, exposure(0, 1))
    hours(log)
    log.close()
    tamper(f"UPDATE times SET {cell}")
    with open_log(path) as again, pytest.raises(IncidentLogError, match="`robo-eval verify` says"):
        hours(again)
    assert not verify_log(path).ok


def test_what_somebody_wrote_makes_no_record_another_one(
    log: IncidentLog, say: Say, report: Any
) -> None:
    say(log, report(description='"kind":"nil"', robot='"kind":"withdrawal"'))
    assert shifts(log) == []
    assert logged_times(log) == ([], False)
