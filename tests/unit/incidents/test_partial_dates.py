"""Incidents of which only a day, a month or nothing is known of the time."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from robo_eval.core.errors import InputError
from robo_eval_incidents.facts import history, of_incident
from robo_eval_incidents.hours import hours, may_lie_in, speaking_against
from robo_eval_incidents.kinds import Correction, Exposure, Nil, Report, plain, times_of
from robo_eval_incidents.lists import Filter, list_incidents
from robo_eval_incidents.paper import printed
from robo_eval_incidents.standing import standing
from robo_eval_incidents.tables import export
from robo_eval_incidents.tables_read import import_reports
from robo_eval_incidents.text import LATEST_NS, shown_span, span_of, span_text

S = 10**9
HOUR = 3_600 * S


def ns(*parts: int) -> int:
    return int(datetime(*parts, tzinfo=UTC).timestamp()) * S


NOVEMBER = (ns(2025, 11, 1), ns(2025, 12, 1))
CHICAGO = ns(2025, 11, 2, 6, 30)


# Reading ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2026-01 Europe/Berlin", "2026-01 UTC+01:00"),
        ("2026-03 Europe/Berlin", "2026-03 UTC+01:00/2026-03 UTC+02:00"),
        ("2026-03 Europe/London", "2026-03 UTC+00:00/2026-03 UTC+01:00"),
        ("2026-02 America/St_Johns", "2026-02 UTC-03:30"),
        ("2025", "2025"),
        ("2026-02 Pacific/Auckland", "2026-02 UTC+13:00"),
        ("2026-02 Pacific/Pago_Pago", "2026-02 UTC-11:00"),
        ("2026-02-01T09:07:00Z/2026-03-01T09:07:00Z", "2026-02-01T09:07:00Z/2026-03-01T09:07:00Z"),
        ("2026-02-01 Europe/Berlin", "2026-01-31T23:00:00Z/2026-02-01T23:00:00Z"),
    ],
)
def test_months_of_a_zone_are_shown_as_months_and_read_again(text, shown):
    begin, end = span_of(text)
    assert span_text(begin, end) == shown
    assert span_of(shown) == (begin, end)


@pytest.mark.parametrize(
    ("text", "begin", "end"),
    [
        ("2025-11", *NOVEMBER),
        ("2025-12", ns(2025, 12, 1), ns(2026, 1, 1)),
        ("2024-02-29", ns(2024, 2, 29), ns(2024, 3, 1)),
        ("2025-11-07", ns(2025, 11, 7), ns(2025, 11, 8)),
        ("2025-11-07 Europe/Berlin", ns(2025, 11, 6, 23), ns(2025, 11, 7, 23)),
        # The clocks go back in it: a day of 25 hours.
        ("2025-10-26 Europe/Berlin", ns(2025, 10, 25, 22), ns(2025, 10, 26, 23)),
        ("2025-11-07T17:06 America/Chicago", ns(2025, 11, 7, 23, 6), None),
        # Clocks showed it twice.
        ("2025-11-02T01:30 America/Chicago", CHICAGO, CHICAGO + HOUR + 1),
        ("2025-11-07T17:06:00+01:00", ns(2025, 11, 7, 16, 6), None),
        ("2025-11-07T10:00:00Z/2025-11-09T10:00:00Z", ns(2025, 11, 7, 10), ns(2025, 11, 9, 10)),
        # The day that ends it is a part of it.
        ("2025-11-07/2025-11-09", ns(2025, 11, 7), ns(2025, 11, 10)),
        ("2025-10/2025-11", ns(2025, 10, 1), ns(2025, 12, 1)),
        ("2025-Q4", ns(2025, 10, 1), ns(2026, 1, 1)),
        ("unknown", 0, LATEST_NS),
        (" now ", 5, None),
    ],
)
def test_a_time_is_read_as_far_as_it_is_known(text, begin, end):
    assert span_of(text, 5) == (begin, end)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is not a time"),
        ("2025-11-07T17:06", "names no zone; write it like .*2025-11-07, 2025-11"),
        ("2025-11-31", "is not a time"),
        ("2025-13", "is not a time"),
        ("07.11.2025", "is not a time"),
        ("NOV-2025", "is not a time"),
        ("1969-12", "is not a time"),
        ("2025-11 Mars/Base", "'Mars/Base' is no zone; write it like Europe/Berlin"),
        ("2025-03-09T02:30 America/Chicago", "clocks skipped there"),
        ("2025-11-09T10:00:00Z/2025-11-07T10:00:00Z", "ends before it begins"),
    ],
)
def test_what_is_no_time_is_refused_with_what_would_do(text, problem):
    with pytest.raises(ValueError, match=problem):
        span_of(text)


@given(st.integers(0, LATEST_NS - 1), st.one_of(st.none(), st.integers(1, 90 * 24 * HOUR)))
@example(0, LATEST_NS)
@example(ns(2025, 11, 1), NOVEMBER[1] - NOVEMBER[0])
def test_what_is_written_is_read_again(begin, length):
    end = None if length is None else min(begin + length, LATEST_NS)
    assert span_of(span_text(begin, end)) == (begin, end)


def test_people_read_what_is_not_known():
    shown = [shown_span(*span_of(text)) for text in ("2025-11", "2025-11-07", "unknown")]
    assert shown == [
        "2025-11 UTC, on a day not known",
        "2025-11-07 UTC, at a time not known",
        "at a time not known",
    ]


# Counting --------------------------------------------------------------------------------------


def test_it_counts_in_a_period_that_holds_it_whole_and_is_named_where_it_may_lie(log, say, report):
    say(log, Exposure(robot="ur5e", side="real", mode="autonomous", start_ns=0, seconds=3600.0))
    rng = random.Random(0)
    spans = {}
    for _ in range(30):
        begin = rng.randrange(100) * HOUR
        end = rng.choice([None, begin + rng.randrange(1, 60) * HOUR])
        made = say(log, report(happened_ns=begin, until_ns=end))
        spans[made.name] = (begin, begin + 1 if end is None else end)
    for _ in range(200):
        since, until = sorted(rng.sample(range(-5, 170), 2))
        since, until = max(since, 0) * HOUR, max(until, 1) * HOUR
        sure = {name for name, (a, b) in spans.items() if since <= a and b <= until}
        maybe = {name for name, (a, b) in spans.items() if a < until and b > since} - sure
        real = standing(log, since, until).real
        assert (sum(real.counts.values()) if real.counts else 0) == len(sure)
        assert {one.name for one in real.undecided} == maybe
        listed = list_incidents(log, Filter(since_ns=since, until_ns=until)).rows
        assert {one.name for one in listed} == sure | maybe, "none that may lie in it is hidden"


def test_without_any_time_it_counts_in_all_there_is_and_is_named_elsewhere(log, say, report):
    made = say(log, report(**times_of("unknown"), severity="critical"))
    whole, part = standing(log).real, standing(log, *NOVEMBER).real
    assert (whole.counts["critical"], whole.is_valid, whole.undecided) == (1, False, ())
    assert [one.name for one in part.undecided] == [made.name]
    assert part.as_dict()["undecided"] == [{"name": made.name, "time": "unknown"}]
    assert f"{made.name} (unknown): may lie in this period or outside" in printed(log, *NOVEMBER)


def test_a_shift_is_contradicted_only_by_what_surely_was_in_it(log, say, report):
    day = span_of("2025-11-07")
    say(log, report(**times_of("2025-11-07")))
    begin = day[0] + 8 * HOUR
    quiet = say(log, Nil(start_ns=begin, end_ns=begin + 8 * HOUR, robot="ur5e"))
    assert speaking_against(log, quiet) is None
    assert [one.robot for one in may_lie_in(log, quiet)] == ["ur5e"]
    other = say(log, Nil(start_ns=begin, end_ns=begin + 8 * HOUR, robot="other"))
    assert may_lie_in(log, other) == []
    whole = say(log, Nil(start_ns=day[0], end_ns=day[1], robot="ur5e"))
    found = speaking_against(log, whole)
    assert found is not None
    assert found.count == 1


def test_it_is_outside_all_hours_only_if_none_of_its_day_was_logged(log, say, report):
    say(log, report(**times_of("2025-11-07")))
    assert len(hours(log).of("outside")) == 1
    hour = {"robot": "ur5e", "side": "real", "mode": "autonomous", "seconds": 3600.0}
    say(log, Exposure(**hour, start_ns=ns(2025, 11, 8, 2)))
    assert len(hours(log).of("outside")) == 1
    say(log, Exposure(**hour, start_ns=ns(2025, 11, 7, 22)))
    assert hours(log).of("outside") == []


# Changing --------------------------------------------------------------------------------------


def test_a_month_becomes_a_time_and_the_history_says_so(log, say, report):
    made = say(log, report(**times_of("2025-11")))
    fields = times_of("2025-11-07T10:00:00Z")
    assert fields["until_ns"] is None
    say(log, Correction(fields=fields, reason="the gate log"), incident_id=made.record_id)
    incident = log.incident(made.name)
    assert (incident.report.happened_ns, incident.report.until_ns) == (ns(2025, 11, 7, 10), None)
    assert "until_ns" not in plain(incident.report)
    steps = [fact.text for step in history(incident) for fact in step.facts]
    assert "2025-11 UTC, on a day not known → 2025-11-07 10:00:00 UTC" in steps
    assert dict(fact[:2] for fact in of_incident(incident))["When"] == "2025-11-07 10:00:00 UTC"


def test_a_wider_time_of_a_major_one_counts_once_it_is_reviewed(log, say, report):
    made = say(log, report(**times_of("2025-11-07"), severity="major"))
    fields = times_of("2025-11")
    say(log, Correction(fields=fields, reason="x"), incident_id=made.record_id, by="Operator B")
    incident = log.incident(made.name)
    assert incident.counts_elsewhere
    assert (incident.report.time, incident.counted.time) == ("2025-11", "2025-11-07")


def test_only_a_begin_that_is_to_come_is_refused(log, say, report):
    month = datetime.now(UTC).strftime("%Y-%m")
    assert say(log, report(**times_of(month))).sequence, "the month it is now"
    with pytest.raises(InputError, match="still to come"):
        say(log, report(**times_of("2200-01")))
    with pytest.raises(ValueError, match="is not after happened_ns"):
        Report.model_validate({**plain(report()), "until_ns": 1})


# Tables ----------------------------------------------------------------------------------------


def test_a_table_says_a_day_a_month_or_unknown_and_comes_back_as_it_was(log, tmp_path):
    table = tmp_path / "crashes.csv"
    lines = [
        "a,2025-11,minor,car_1,d",
        "b,2025-11-07,minor,car_1,d",
        "c,2025-11-02T01:30 America/Chicago,minor,car_1,d",
        "e,unknown,minor,car_1,d",
    ]
    table.write_text("source_id,time,severity,robot,description\n" + "\n".join(lines) + "\n")
    assert len(import_reports(log, table, by="Operator A").added) == len(lines)
    assert import_reports(log, table, by="Operator A").known == len(lines)
    out = tmp_path / "out.csv"
    export(log, out)
    text = out.read_text("utf-8-sig")
    for time in ("2025-11,", "2025-11-07,", "2025-11-02T06:30:00Z/2025-11-02T07:30:0", "unknown,"):
        assert f",{time}" in text
    assert import_reports(log, out, by="Operator A").known == len(lines)


@pytest.mark.parametrize(
    ("cell", "problem"),
    [
        ("2025-11-07T17:06", "line 2, column time: .*names no zone"),
        ("", "line 2, column time: is missing"),
        ("-10min", "line 2, column time: .*no time of its own"),
    ],
)
def test_a_cell_that_is_no_time_is_named(log, tmp_path, cell, problem):
    table = tmp_path / "t.csv"
    table.write_text(f"source_id,time,severity,robot,description\nx,{cell},minor,car_1,d\n")
    with pytest.raises(InputError, match=problem):
        import_reports(log, table, by="Operator A")
    assert log.heads() == {}
