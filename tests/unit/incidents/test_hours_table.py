"""Hours and kilometres of which only the period is known: read from tables, each counted once."""

from __future__ import annotations

import random
from datetime import date
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval.stats.rates import garwood_interval
from robo_eval_incidents.hours import hours, logged_times
from robo_eval_incidents.hours_table import HoursMap, import_hours, read_hours
from robo_eval_incidents.kinds import Exposure, Nil, Withdrawal, plain
from robo_eval_incidents.paper import printed
from robo_eval_incidents.rows import LoggedTime
from robo_eval_incidents.schema import TIMES
from robo_eval_incidents.standing import standing
from robo_eval_incidents.text import span_of, span_text
from robo_eval_incidents.totals import Piece, counted_once, heaviest
from robo_eval_incidents.trends import trends
from robo_eval_incidents.verify import verify_log
from robo_eval_incidents.words import Engagement, Via

HOUR = 3_600 * 10**9
JANUARY = span_of("2026-01")


def body(period: str, hours_: float | None, mode: str = "autonomous", **more: object) -> Exposure:
    begin, end = span_of(period)
    values = {"robot": "cart_1", "side": "real", "mode": mode, "start_ns": begin, "until_ns": end}
    seconds = None if hours_ is None else 3600.0 * hours_
    return Exposure.model_validate(values | {"seconds": seconds} | more)


def clocked(begin_h: float, length_h: float, mode: str = "autonomous", **more: object) -> Exposure:
    """Hours by the clock, which begin some hours after January did."""
    values = {"robot": "cart_1", "side": "real", "mode": mode, "seconds": 3600.0 * length_h}
    start = JANUARY[0] + round(begin_h * HOUR)
    return Exposure.model_validate(values | {"start_ns": start} | more)


@pytest.fixture
def table(tmp_path):
    def write(*lines: str, header: str = "robot,period,hours,km,mode"):
        path = tmp_path / "hours.csv"
        path.write_text("\n".join([header, *lines]) + "\n")
        return path

    return write


# Counting --------------------------------------------------------------------------------------


def test_what_was_logged_by_the_clock_is_a_part_of_the_sum(log, say):
    say(log, body("2026-01", 100, km=50.0))
    say(log, clocked(0, 8, km=6.0))
    say(log, clocked(20, 2, "manual"))
    rows = {row.mode: row for row in hours(log).rows}
    assert rows["autonomous"].hours == pytest.approx(100)
    assert rows["autonomous"].km == pytest.approx(50)
    assert rows["manual"].hours == pytest.approx(2)
    # More was logged by the clock than the sum says: no less than that counts.
    say(log, body("2026-02", 1))
    say(log, clocked(24 * 40, 5))
    assert hours(log).total() == pytest.approx(100 + 2 + 5)
    assert verify_log(log.database.path).ok


def test_a_sum_of_all_modes_holds_those_of_each(log, say):
    say(log, body("2026-01", 100, "unknown"))
    say(log, body("2026-01", 60))
    say(log, clocked(0, 10, "manual"))
    say(log, clocked(30, 9, "off"))
    found = hours(log)
    assert found.total() == pytest.approx(100)
    assert {row.mode.value: round(row.hours, 6) for row in found.rows} == {
        "autonomous": 60, "manual": 10, "unknown": 30, "off": 9,
    }  # fmt: skip


def test_of_two_sums_that_overlap_the_larger_one_counts_and_both_are_named(log, say):
    month = say(log, body("2026-01", 100))
    week = say(log, body("2026-01-03T00:00:00Z/2026-01-10T00:00:00Z", 40))
    found = hours(log)
    assert found.total() == pytest.approx(100)
    (overlap,) = found.of("overlap")
    assert [name for _, name in overlap.named] == [month.name, week.name]


QUARTER = "2026-01-01T00:00:00Z/2026-04-01T00:00:00Z"


@pytest.mark.parametrize("first", ["months", "quarter"])
def test_the_heaviest_sums_without_common_time_count_and_rates_name_the_rest(log, say, first):
    months = [body(f"2026-0{number}", 100) for number in (1, 2, 3)]
    made = {}
    for one in [*months, body(QUARTER, 150)][:: 1 if first == "months" else -1]:
        made[one.start_ns, one.end_ns] = say(log, one).name
    say(log, Nil(start_ns=JANUARY[0], end_ns=JANUARY[0] + HOUR, robot="cart_1"))
    assert hours(log).total() == pytest.approx(300)
    (why,) = standing(log).real.left_out
    quarter, rival = made[span_of(QUARTER)], made[JANUARY]
    assert why.startswith(f"{quarter}, cart_1 (real)")
    assert why.endswith(f"hours overlap {rival}, which counts")
    assert why in printed(log)


def _total(number, mode, task, start_ns, end_ns, total_ns, km=None) -> LoggedTime:
    return LoggedTime(
        record_id=f"{number}", station="cell-1", sequence=number, kind="exposure", by="A. Example",
        robot="a", side=Side.REAL, mode=mode, task=task, start_ns=start_ns, end_ns=end_ns,
        total_ns=total_ns, km=km,
    )  # fmt: skip


@given(
    st.lists(
        st.tuples(st.integers(0, 8), st.integers(1, 4), st.integers(0, 5)), min_size=1, max_size=7
    )
)
def test_no_other_choice_of_sums_without_common_time_has_more(drawn):
    totals = [
        _total(place, Engagement.IDLE, "", begin, begin + length, weight)
        for place, (begin, length, weight) in enumerate(drawn)
    ]
    found = heaviest(totals, lambda one: one.total_ns or 0)
    best = max(
        sum(one.total_ns or 0 for one in some)
        for count in range(len(totals) + 1)
        for some in combinations(totals, count)
        if not any(a.overlaps(b) for a, b in combinations(some, 2))
    )
    assert sum(one.total_ns or 0 for one in found.values()) == best
    assert not any(a.overlaps(b) for a, b in combinations(found.values(), 2))
    # Nothing that would fit beside the chosen ones is lost.
    for one in totals:
        assert one.record_id in found or any(one.overlaps(kept) for kept in found.values())


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(
    ("lines", "right"),
    [
        # A sum of a mode over months whose sums are of all modes.
        ([(QUARTER, 90, "autonomous"), *((f"2026-0{n}", 100, "unknown") for n in (1, 2, 3))], 300),
        ([("2026-01-01/2026-02-28", 60, "autonomous"), ("2026-01", 100, "unknown"),
          ("2026-02", 100, "unknown")], 200),
        ([(QUARTER, 250, "autonomous"), *((f"2026-0{n}", 80, "unknown") for n in (1, 2, 3))], 250),
        # The manual hours may be those of February, which nothing else fills.
        ([("2026-01", 150, "autonomous"), ("2026-01-01/2026-02-28", 10, "manual"),
          ("2026-01", 100, "unknown"), ("2026-02", 100, "unknown")], 250),
        # Off is no mode at work.
        ([(QUARTER, 500, "off"), ("2026-01", 100, "unknown")], 100),
        ([("2026-01", 700, "autonomous"), ("2026-01", 700, "manual")], 744),
    ],
)  # fmt: skip
def test_sums_of_all_modes_hold_hours_of_one_mode_once(log, say, lines, right, backwards):
    for line in lines[:: -1 if backwards else 1]:
        say(log, body(*line))
    assert hours(log).total() == pytest.approx(right)
    assert standing(log).real.hours == pytest.approx(right)


def test_sums_of_two_tasks_add_up_and_one_of_all_tasks_holds_them(log, table):
    header = "robot,period,hours,km,mode,task"
    two = ["a,2026-01,100,10,,pick", "a,2026-01,50,5,,place"]
    import_hours(log, table(*two, header=header), by="Operator A")
    (pick, place) = hours(log).rows
    assert (pick.hours, place.hours) == (pytest.approx(100), pytest.approx(50))
    more = ["a,2026-Q1,200,40,autonomous,", "a,2026-01,40,4,autonomous,place"]
    import_hours(log, table(*more, header=header), by="Operator A")
    found = hours(log)
    # All hours of January may be autonomous ones of the quarter, which says nothing of tasks.
    assert found.total() == pytest.approx(200)
    assert sum(row.km or 0 for row in found.rows) == pytest.approx(40)
    assert not found.findings


def test_hours_beyond_those_of_their_period_do_not_count_and_are_named(log, say):
    say(log, clocked(0, 20, "manual"))
    one = say(log, body("2026-01", 744, "autonomous"))
    (beyond,) = hours(log).of("beyond")
    assert hours(log).total() == pytest.approx(744)
    (why,) = standing(log).real.left_out
    assert why.startswith(f"{one.name}, cart_1 (real), 2026-01: 20 h are more than")
    assert str(beyond) == why
    assert why in printed(log)
    say(log, body("2026-01", 744, "off"))
    say(log, body("2026-01", 744, "autonomous", robot="cart_2"))
    assert len(hours(log).of("beyond")) == 1


_MODES = (Engagement.AUTONOMOUS, Engagement.MANUAL, Engagement.UNKNOWN)
_SUM = st.tuples(
    st.sampled_from(_MODES), st.sampled_from(["", "pick", "place"]), st.integers(0, 4),
    st.integers(1, 4), st.booleans(),
)  # fmt: skip


@given(
    st.lists(st.integers(0, 3), min_size=20, max_size=20),
    st.lists(_SUM, max_size=6),
    st.integers(0, 3),
)
def test_counted_hours_are_no_more_than_there_were_and_no_less_than_is_sure(ledger, sums, by_clock):
    """Sums are those of a known ledger: hours in five days, of two modes and two tasks."""
    day = 24 * HOUR
    places = list(product(range(5), _MODES[:2], ["pick", "place"]))
    of = dict(zip(places, ledger, strict=True))

    def within(mode, task, first, days):
        return [
            place for place in places
            if first <= place[0] < first + days and mode in (place[1], Engagement.UNKNOWN)
            and task in (place[2], "")
        ]  # fmt: skip

    def total(number, mode, task, first, days):
        amount = sum(of[place] for place in within(mode, task, first, days))
        end = first + days
        return _total(number, mode, task, first * day, end * day, amount * HOUR, amount)

    pieces = [
        Piece(at * day, (at + 1) * day, mode, task, min(by_clock, of[at, mode, task]))
        for at, mode, task in places
        if by_clock
    ]
    known = {
        "km": pieces,
        "hours": [one._replace(amount=one.amount * HOUR) for one in pieces],
    }
    totals = [total(number, *drawn[:4]) for number, drawn in enumerate(sums)]
    counted, dropped = counted_once(totals, known, lambda at: at)
    assert all(one.rival for one in dropped)
    clocked_h = sum(one.amount for one in pieces)
    of_hours = clocked_h + sum(one.ns or 0 for one in counted) / HOUR
    of_km = clocked_h + sum(one.km or 0 for one in counted)
    assert of_hours == of_km
    # No hour twice: never more than the days that something was said of have in all.
    said = {place for drawn in sums for place in within(*drawn[:4])}
    assert of_hours <= clocked_h + sum(
        of[place] - (min(by_clock, of[place]) if by_clock else 0) for place in said
    )
    # None lost: no less than sums that count say that have nothing in common with each other.
    kept = [one.total for one in counted]
    best = max(
        sum((one.total_ns or 0) // HOUR for one in some)
        for count in range(len(kept) + 1)
        for some in combinations(kept, count)
        if not any(set(within(*_place(a))) & set(within(*_place(b)))
                   for a, b in combinations(some, 2))
    )  # fmt: skip
    assert of_hours >= best


def _place(total: LoggedTime) -> tuple[Any, ...]:
    day = 24 * HOUR
    first = total.start_ns // day
    return total.mode, total.task, first, total.end_ns // day - first


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(1, 4), st.integers(1, 4)), max_size=8))
def test_what_counts_fits_into_every_time_and_only_what_does_not_is_dropped(drawn):
    modes = [one for one in Engagement if one not in (Engagement.OFF, Engagement.UNKNOWN)]
    totals = [
        _total(
            place, modes[place % len(modes)], f"{place}", begin * HOUR, (begin + length) * HOUR,
            min(length, amount) * HOUR,
        )
        for place, (begin, length, amount) in enumerate(drawn)
    ]  # fmt: skip
    counted, dropped = counted_once(totals, {"hours": [], "km": []}, lambda at: at)
    for begin, end in combinations(range(14), 2):
        inner = [
            one.ns or 0
            for one in counted
            if begin * HOUR <= one.total.start_ns and one.total.end_ns <= end * HOUR
        ]
        assert sum(inner) <= (end - begin) * HOUR
    is_full = any(
        sum(one.total_ns or 0 for one in totals
            if begin * HOUR <= one.start_ns and one.end_ns <= end * HOUR) > (end - begin) * HOUR
        for begin, end in combinations(range(14), 2)
    )  # fmt: skip
    assert bool(dropped) == is_full


def test_hours_and_kilometres_of_a_quarter_and_its_months_count_each_by_themselves(log, say):
    for number in (1, 2, 3):
        say(log, body(f"2026-0{number}", 100))
    say(log, body(QUARTER, None, km=900.0))
    (row,) = hours(log).rows
    assert (row.hours, row.km) == (pytest.approx(300), pytest.approx(900))
    assert standing(log).real.left_out == ()


def test_a_sum_counts_in_a_period_that_holds_its_own_and_is_named_in_others(log, say):
    sums = {"2026-01": 10, "2026-02": 20, "2026-03": 30}
    made = {name: say(log, body(name, float(length))) for name, length in sums.items()}
    rng = random.Random(0)
    first, last = JANUARY[0], span_of("2026-03")[1]
    for _ in range(60):
        since, until = sorted(rng.sample(range(first // HOUR, last // HOUR + 1, 24), 2))
        since, until = since * HOUR, until * HOUR
        spans = {name: span_of(name) for name in sums}
        whole = {n for n, (a, b) in spans.items() if since <= a and b <= until}
        part = {n for n, (a, b) in spans.items() if a < until and b > since} - whole
        found = hours(log, since, until)
        assert found.total() == pytest.approx(sum(sums[name] for name in whole))
        named = {one.named[0][1] for one in found.of("part")}
        assert named == {made[name].name for name in part}
        assert (standing(log, since, until).real.hours or 0.0) == pytest.approx(found.total())


def test_an_incident_in_a_period_with_a_sum_is_not_outside_all_hours(log, say, report):
    say(log, report(robot="cart_1", happened_ns=JANUARY[0] + 5 * HOUR))
    say(log, Nil(start_ns=JANUARY[0] + 50 * HOUR, end_ns=JANUARY[0] + 58 * HOUR, robot="cart_1"))
    assert {one.kind for one in hours(log).findings} == {"outside", "gap"}
    say(log, body("2026-01", 100))
    assert hours(log).findings == ()
    say(log, body("2026-01", 100, "off"))
    assert hours(log).total() == pytest.approx(100)


def test_rates_by_kilometre_are_those_of_robots_that_went_some(log, say, report):
    say(log, body("2026-01", 100, km=2000.0))
    say(log, body("2026-01", 50, robot="arm_1"))
    for robot in ("cart_1", "cart_1", "arm_1"):
        say(log, report(robot=robot, severity="minor", happened_ns=JANUARY[0] + HOUR))
    real = standing(log).real
    assert (real.counts["minor"], real.km) == (3, 2000.0)
    rate = real.rates_km["minor"]
    low, high = garwood_interval(2, 2000.0)
    assert (rate.n, rate.value, rate.unit) == (2, pytest.approx(1.0), "incidents/1000 km")
    assert (rate.low, rate.high) == (pytest.approx(1000 * low), pytest.approx(1000 * high))
    assert real.rates["minor"].value == pytest.approx(1000 * 3 / 150)
    assert standing(log, robot="arm_1").real.rates_km == {}
    assert "Per 1,000 km, of robots that went 2,000 km" in printed(log)


# Unknown ---------------------------------------------------------------------------------------


@pytest.fixture
def fleet(log, say, report):
    """cart_1 has a meter; cart_2 has none and had three near misses, cart_3 is without km."""
    say(log, body("2026-01", 10, km=100.0))
    say(log, body("2026-01", None, robot="cart_2", km=50.0))
    for _ in range(3):
        say(log, report(robot="cart_2", happened_ns=JANUARY[0] + HOUR))
    return log


def test_hours_that_nobody_knows_are_unknown_and_no_zero(fleet):
    known, unknown = hours(fleet).rows
    assert (known.hours, known.km) == (pytest.approx(10), pytest.approx(100))
    assert (unknown.hours, unknown.km) == (None, pytest.approx(50))
    assert len(hours(fleet).of("outside")) == 3, "their time was not logged"
    assert verify_log(fleet.database.path).ok


def test_incidents_of_a_robot_are_divided_by_hours_and_kilometres_of_no_other(fleet, say, report):
    real = standing(fleet).real
    rate = real.rates["near_miss"]
    assert (rate.value, rate.low, rate.n) == (None, None, 0), "none of them is in it"
    assert rate.reason == "without 3 incidents of cart_2 while no hours were known"
    assert (real.score.value, real.score.reason) == (None, rate.reason)
    assert real.rates["minor"].value == 0.0
    assert real.rates["minor"].reason is None
    assert real.rates_km["near_miss"].value == pytest.approx(1000 * 3 / 150)
    assert real.counts["near_miss"] == 3
    assert real.as_dict()["hours_unknown"] == {"cart_2": {"near_miss": 3}}
    assert real.as_dict()["km_unknown"] == {}
    (text,) = real.unknown
    assert text.startswith("rates per h are without 3 incidents of cart_2 while no hours")
    assert text in printed(fleet)
    say(fleet, body("2026-01", 5, robot="cart_3"))
    for _ in range(2):
        say(fleet, report(robot="cart_3", happened_ns=JANUARY[0] + HOUR))
    real = standing(fleet).real
    assert real.rates_km["near_miss"].value == pytest.approx(1000 * 3 / 150)
    assert real.rates["near_miss"].value == pytest.approx(1000 * 2 / 15)
    assert "without 3 incidents of cart_2" in str(real.rates["near_miss"].reason)
    assert real.score.value is not None
    assert "without 3 incidents of cart_2" in str(real.score.reason)
    assert "without 2 incidents of cart_3" in str(real.rates_km["near_miss"].reason)
    assert real.as_dict()["km_unknown"] == {"cart_3": {"near_miss": 2}}


def test_a_robot_of_which_nothing_was_logged_is_in_no_rate_and_a_critical_one_still_ends_it(
    log, say, report
):
    say(log, body("2026-01", 10))
    say(log, report(robot="cart_2", severity="minor", happened_ns=JANUARY[0] + HOUR))
    real = standing(log).real
    assert (real.rates["minor"].value, real.score.value) == (None, None)
    assert real.without["h"] == {"cart_2": {"minor": 1}}
    say(log, report(robot="cart_2", severity="critical", happened_ns=JANUARY[0] + HOUR))
    real = standing(log).real
    assert (real.score.value, real.is_valid) == (0.0, False)


def test_a_month_without_hours_is_left_out_and_one_with_hours_of_the_robot_counts(log, say, report):
    february = span_of("2026-02")[0]
    say(log, body("2026-01", 100, km=10.0))
    say(log, body("2026-02", None, km=10.0))
    for time_ns in (JANUARY[0] + HOUR, february + HOUR, february + HOUR):
        say(log, report(robot="cart_1", happened_ns=time_ns))
    real = standing(log).real
    assert real.rates["near_miss"].value == pytest.approx(1000 * 1 / 100)
    assert real.rates_km["near_miss"].value == pytest.approx(1000 * 3 / 20)
    assert real.without["h"] == {"cart_1": {"near_miss": 2}}
    (month,) = trends(log, months=1, today=date(2026, 2, 20)).months
    assert month.rate.value is None
    # A part of it by the clock: then its hours are known, and what was outside them counts.
    say(log, clocked(24 * 40, 2))
    real = standing(log).real
    assert real.rates["near_miss"].value == pytest.approx(1000 * 3 / 102)
    assert real.without["h"] == {}


def test_a_month_in_trends_names_whose_hours_are_not_known(fleet):
    found = trends(fleet, months=1, today=date(2026, 1, 20))
    (month,) = found.months
    assert (month.rate.value, sum(month.counts.values())) == (None, 3)
    assert "cart_2" in month.rate.reason
    assert "3 incidents of cart_2" in found.unknown[0]
    assert found.as_dict()["months"][0]["hours_unknown"] == {"cart_2": {"near_miss": 3}}


def test_a_log_that_has_kilometres_in_no_time_reads_as_unknown_and_takes_no_line_again(log, table):
    path = table("cart_1,2026-01,,25,")
    (line,) = read_hours(path)
    # As an older program wrote it.
    old = body("2026-01", 0.0, "unknown", km=25.0)
    log.file(old, by="Operator A", via=Via.IMPORT, record_id=line.record_id)
    assert import_hours(log, path, by="Operator A") == (0, 0)
    assert hours(log).rows[0].hours is None
    assert verify_log(log.database.path).ok


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"hours_": None}, "seconds: is missing; only kilometres of a period"),
        ({"hours_": 745.0}, "745 h are more than the 744 h of the period"),
        ({"hours_": 1.0, "until_ns": JANUARY[0]}, "the period is between 0 and 366 days"),
        ({"hours_": 1.0, "km": -1.0}, "km"),
    ],
)
def test_sums_that_cannot_be_are_refused(fields, problem):
    with pytest.raises(ValueError, match=problem):
        body("2026-01", **fields)


# Tables ----------------------------------------------------------------------------------------


def test_a_table_is_logged_once_and_can_be_taken_back(log, say, table):
    path = table("cart_1,2026-01,120.5,310,autonomous", "", "cart_1,2026-02-03,,25,")
    assert import_hours(log, path, by="Operator A") == (2, 0)
    added = list(log.records())[-2:]
    assert [plain(one.body)["km"] for one in added] == [310.0, 25.0]
    assert added[0].body.seconds == pytest.approx(120.5 * 3600)
    assert "seconds" not in plain(added[1].body)
    assert added[1].body.mode == "unknown"
    assert import_hours(log, path, by="Operator A") == (0, 0)
    listed, _ = logged_times(log)
    assert {one.what for one in listed} == {
        "autonomous, 120.5 h in that time, 310 km", "unknown, hours not known, 25 km",
    }  # fmt: skip
    other = table("cart_1,2026-01,130,310,autonomous")
    with pytest.raises(InputError, match=f"line 2, column period: .*as {added[0].name}; withdraw"):
        import_hours(log, other, by="Operator A")
    say(log, Withdrawal(withdrawn_id=added[0].record_id, reason="mistyped"))
    assert import_hours(log, other, by="Operator A") == (1, 0)
    assert hours(log).total() == pytest.approx(130)
    # What was taken back does not come again with the table it is from.
    with_other = [row.total_ns for row in _totals(log)]
    path = table("cart_1,2026-01,120.5,310,autonomous", "", "cart_1,2026-02-03,,25,")
    assert import_hours(log, path, by="Operator A") == (0, 1)
    assert [row.total_ns for row in _totals(log)] == with_other


def _totals(log):
    with log.database.reading() as connection:
        return connection.execute(select(TIMES).where(TIMES.c.withdrawn_by.is_(None))).all()


@pytest.mark.parametrize("is_one_table", [True, False])
@pytest.mark.parametrize("order", [1, -1])
def test_hours_and_kilometres_of_one_month_may_stand_in_two_lines(log, table, is_one_table, order):
    lines = ["cart_1,2026-01,120.5,,autonomous", "cart_1,2026-01,,310,autonomous"][::order]
    for some in [lines] if is_one_table else [[one] for one in lines]:
        import_hours(log, table(*some), by="Operator A")
    (row,) = hours(log).rows
    assert (row.hours, row.km) == (pytest.approx(120.5), pytest.approx(310))
    assert hours(log).findings == ()
    for line, what in (("90,", "hours"), (",90", "kilometres"), ("90,90", "hours")):
        with pytest.raises(InputError, match=f"cart_1 has other {what} of 2026-01 in the log, as"):
            import_hours(log, table(f"cart_1,2026-01,{line},autonomous"), by="Operator A")


def test_two_lines_of_one_period_in_one_table_are_refused(log, table):
    path = table("arm_1,2026-06,90,,autonomous", "arm_1,2026-06,80,,autonomous")
    with pytest.raises(InputError, match=r"line 3, .*other hours of 2026-06 in .*line 2; put them"):
        import_hours(log, path, by="Operator A")
    assert hours(log).rows == ()


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("cart_1,2026-01,800,,", "line 3, column hours: 800 h are more than the 744 h"),
        ("cart_1,2026-01,\"120,5\",,", "line 3, column hours: '120,5' is not a number"),
        ("cart_1,2026-01,-3,,", "line 3, column hours: '-3' is less than 0"),
        ("cart_1,2026-01,1_0,,", "line 3, column hours: '1_0' is not a number"),
        ("cart_1,2026-01,0,3,", "line 3, column hours: 0 h for some km; leave"),
        ("cart_1,2026-01,,,", "line 3, column hours: is missing, and so is km"),
        ("cart_1,,3,,", "line 3, column period: is missing"),
        ("cart_1,unknown,3,,", "line 3, column period: 'unknown' is no period; write it like"),
        ("cart_1,2026-01-02T10:00:00Z,3,,", "line 3, column period: .*is no period; write it"),
        ("cart_1,JAN 2026,3,,", "line 3, column period: 'JAN 2026' is no period; write it"),
        ("cart_1,2026-01,\"1,034.5\",,", "column hours: '1,034.5' .*; write it like 1234.5"),
        ("cart_1,2026-01,7:75,,", "column hours: '7:75' is not a number"),
        ("cart_1,2200-01,3,,", "line 3, column period: end: .*still to come"),
        ("cart_1,2026-01,3,,fast", "line 3, column mode: unknown"),
        (",2026-01,3,,", "line 3, column robot"),
        ("a,2026-02,1,,", "line 3, column period: says the same as .*line 2"),
    ],
)  # fmt: skip
def test_one_bad_line_keeps_all_of_them_out(log, table, line, problem):
    path = table("a,2026-02,1,,", line)
    with pytest.raises(InputError, match=problem):
        import_hours(log, path, by="Operator A")
    assert log.heads() == {}


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ("robot,period,hour", "unknown column 'hour'; did you mean 'hours'"),
        ("robot,hours", "column 'period' is missing"),
        ("robot,period", "column 'hours' is missing; hours have robot, period, hours, km"),
        ("robot,period,hours,hours", "column 'hours' appears twice"),
        ("robot;period;hours", "divided by ';'"),
    ],
)
def test_a_header_that_is_none_is_named(table, header, problem):
    with pytest.raises(InputError, match=problem):
        read_hours(table(header=header))


def seen(lines) -> list[tuple[Any, ...]]:
    """Robot, period, hours and kilometres of lines."""
    return [
        (
            one.robot, span_text(one.start_ns, one.until_ns),
            None if one.seconds is None else round(one.seconds / 3600, 6), one.km,
        )
        for one, _ in lines
    ]  # fmt: skip


def test_quarters_miles_and_lengths_by_the_clock_need_no_map(table):
    path = table(
        "a,2024-Q1,7:30,1034.5", "b,2024-01-01/2024-01-31,1:15:36,", "c,2024Q4,,0",
        header="robot,period,hours,miles",
    )  # fmt: skip
    assert seen(read_hours(path)) == [
        ("a", "2024-Q1", 7.5, 1664.866368), ("b", "2024-01", 1.26, None),
        ("c", "2024-Q4", None, 0.0),
    ]  # fmt: skip
    with pytest.raises(InputError, match="km and miles; leave one"):
        read_hours(table(header="robot,period,km,miles"))


def mapped(tmp_path, text: str) -> HoursMap:
    path = tmp_path / "map.yaml"
    path.write_text(text)
    return HoursMap.read(path)


def test_a_table_with_other_columns_and_signs_is_read_by_a_map(log, table, tmp_path):
    own = mapped(
        tmp_path,
        """
columns:
  robot: Fahrzeug
  period: {columns: [Jahr, Quartal], formats: ["%Y Q%q", "%b %Y"]}
  hours: {column: Minuten, unit: min}
  km: Strecke
  mode: {column: Art, values: {auto: autonomous}, otherwise: unknown}
constants: {side: real}
delimiter: ";"
decimal: ","
thousands: "."
missing: [k. A.]
""",
    )
    header = "Fahrzeug;Jahr;Quartal;Minuten;Strecke;Art;Summe"
    path = table("a;2024;Q1;630;1.664,87;auto;1", "b;JAN 2024;;k. A.;81,27;x;1", header=header)
    assert seen(read_hours(path, own)) == [
        ("a", "2024-Q1", 10.5, 1664.87), ("b", "2024-01", None, 81.27),
    ]  # fmt: skip
    assert import_hours(log, path, by="Operator A", columns=own) == (2, 0)
    assert import_hours(log, path, by="Operator A", columns=own) == (0, 0)
    assert [row.mode.value for row in hours(log).rows] == ["autonomous", "unknown"]
    for line, problem in (
        (
            "a;2024;Q1;1;1.664,8.7;auto;1",
            r"line 2, column Strecke \(km\): '1.664,8.7' is not a num",
        ),
        ("a;2024;Q5;1;1;auto;1", r"line 2, column Jahr \+ Quartal \(period\): .*none of %Y Q%q"),
        (
            "a;JAN 2024;;50000;1;auto;1",
            r"column Minuten \(hours\): 833.333 h are more than the 744",
        ),
        ("a;2024;Q1;;k. A.;auto;1", r"column Minuten \(hours\): is missing, and so is km"),
    ):
        with pytest.raises(InputError, match=problem):
            read_hours(table(line, header=header), own)


WIDE = """
columns:
  robot: VIN NUMBER
  period: {formats: ["%b %Y"]}
  km: {unit: mi}
thousands: ","
"""


def test_a_column_a_month_is_a_line_a_month(table, tmp_path):
    own = mapped(tmp_path, WIDE)
    header = 'Permit,VIN NUMBER,DEC 2023,"JAN\n2024",ANNUAL TOTAL'
    path = table('x,CAR1,"1,000",2.5,"1,002.5"', "x,CAR2,,0,0", ",,,,", header=header)
    assert seen(read_hours(path, own)) == [
        ("CAR1", "2023-12", None, 1609.344), ("CAR1", "2024-01", None, 4.02336),
        ("CAR2", "2024-01", None, 0.0),
    ]  # fmt: skip
    with pytest.raises(InputError, match="line 3, column DEC 2023: 'far' is not a number"):
        read_hours(table("x,CAR1,far,1,1", header=header), own)
    with pytest.raises(InputError, match="no column is called by a period"):
        read_hours(table("CAR1,1", header="VIN NUMBER,January"), own)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("km: {unit: mi}", "km: {column: K, unit: mi}", "columns.period: hours or km go without"),
        ("unit: mi", "unit: miles", "columns.km.unit: unknown unit 'miles'.*mi"),
        ("km: {unit: mi}", "mode: M", "says nothing about hours or km"),
        ("robot: VIN NUMBER", "robots: V", "unknown column 'robots'; did you mean 'robot'"),
        ("robot: VIN NUMBER", "robot: {formats: []}", "columns.robot: names no column"),
        ('thousands: ","', 'thousand: ","', "unknown key 'thousand'; did you mean"),
        ('thousands: ","', "constants: {mode: fast}", "constants.mode: unknown word 'fast'"),
    ],
)
def test_a_map_of_hours_that_is_none_is_refused_with_its_place(tmp_path, old, new, problem):
    with pytest.raises(InputError, match=problem):
        mapped(tmp_path, WIDE.replace(old, new))


@pytest.mark.parametrize(
    ("header", "formats", "problem"),
    [
        ("MAY 2025,JUNE 2025,JULY 2025", "['%b %Y']", "line 1: column 'JUNE 2025' is no period"),
        ("Feb 2024,M\u00e4r 2024", "['%b %Y']", "column 'M\u00e4r 2024' is no period.*`ignore`"),
        ("Jan-24,Sept-24", "['%b-%y']", "column 'Sept-24' is no period"),
        ("2025-01,2025-2", "[]", "column '2025-2' is no period.*add what it is written in"),
        ("Feb 2024,TOTAL 2024", "['%b %Y']", "column 'TOTAL 2024' is no period"),
        ("JAN 2025,JAN 2025", "['%b %Y']", "columns 'JAN 2025' and 'JAN 2025' are of one period"),
        ("JAN 2025,01/2025", "['%b %Y', '%m/%Y']", "columns 'JAN 2025' and '01/2025' are of one"),
    ],
)
def test_no_month_of_a_wide_table_is_lost(table, tmp_path, header, formats, problem):
    own = mapped(tmp_path, f"columns: {{robot: VIN, period: {{formats: {formats}}}, km: {{}}}}")
    path = table("a" + ",1" * (header.count(",") + 1), header=f"VIN,{header}")
    with pytest.raises(InputError, match=problem):
        read_hours(path, own)


def test_what_looks_like_a_month_and_is_none_is_ignored_by_name(table, tmp_path):
    own = mapped(
        tmp_path,
        "columns: {robot: VIN, period: {formats: ['%b %Y']}, km: {}}\nignore: [TOTAL 2024]\n",
    )
    path = table("a,p7,1,5", header="VIN,Permit 2,Feb 2024,TOTAL 2024")
    assert seen(read_hours(path, own)) == [("a", "2024-02", None, 1.0)]


@pytest.mark.parametrize("name", ["Total", "TOTALS", "Grand total", "Summe", "Gesamt"])
def test_a_line_that_adds_up_the_others_is_no_robot(table, name):
    with pytest.raises(InputError, match=rf"line 3, column robot: '{name}' is no robot but a sum"):
        read_hours(table("a,2026-01,5,,", f"{name},2026-01,5,,"))


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        ("{columns: [from, to]}", "2024-01-01,2024-01-31"),
        ("{columns: [from, to]}", "2024-01-01T00:00:00Z,2024-02-01T00:00:00Z"),
        ("{columns: [from, to]}", "2024-01-01,2024-01"),
        ("{columns: [from, to], formats: ['%d.%m.%Y']}", "01.01.2024,31.01.2024"),
        ("{columns: [from, to], unit: excel}", "45292,45322"),
        ("{columns: [from, to], formats: ['%b %Y']}", "JAN,2024"),
    ],
)
def test_a_period_may_stand_in_two_columns(table, tmp_path, columns, line):
    own = mapped(tmp_path, f"columns: {{robot: VIN, period: {columns}, hours: h}}\n")
    path = table(f"a,{line},5", header="VIN,from,to,h")
    assert seen(read_hours(path, own)) == [("a", "2024-01", 5.0, None)]
    with pytest.raises(InputError, match=r"line 2, column from \+ to \(period\)"):
        read_hours(table("a,2024-01-05,soon,5", header="VIN,from,to,h"), own)


def test_periods_are_of_the_zone_of_the_map(table, tmp_path):
    own = mapped(tmp_path, "columns: {robot: r, period: p, hours: h}\nzone: Europe/Berlin\n")
    path = table("a,2026-01,1", "a,2026-Q2,1", "a,2026-02-01/2026-02-03,1", header="r,p,h")
    assert [(one.start_ns, one.until_ns) for one, _ in read_hours(path, own)] == [
        span_of(text)
        for text in (
            "2025-12-31T23:00:00Z/2026-01-31T23:00:00Z",
            "2026-03-31T22:00:00Z/2026-06-30T22:00:00Z",
            "2026-01-31T23:00:00Z/2026-02-03T23:00:00Z",
        )
    ]
