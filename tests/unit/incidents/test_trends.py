"""Rates month by month, what the incidents were, and how long corrective actions wait."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from robo_eval.core.errors import InputError, UnknownNameError
from robo_eval.stats.rates import garwood_interval
from robo_eval_incidents.kinds import Action, Effectiveness, Exposure, Review, times_of
from robo_eval_incidents.text import period_of
from robo_eval_incidents.trends import trends

TODAY = date(2026, 3, 15)


def ns(*parts: int) -> int:
    return int(datetime(*parts, tzinfo=UTC).timestamp()) * 10**9


def worked(month: int, hours: float, **more: object) -> Exposure:
    values = {"robot": "ur5e", "side": "real", "mode": "autonomous", "seconds": 3600.0 * hours}
    return Exposure.model_validate(values | {"start_ns": ns(2026, month, 2)} | more)


def test_each_month_has_its_hours_counts_and_rate(log, say, report):
    for month, hours in ((1, 100.0), (2, 50.0)):
        say(log, worked(month, hours))
    say(log, worked(2, 70.0, side="twin"))
    for day in (3, 4, 5):
        say(log, report(severity="minor", happened_ns=ns(2026, 1, day)))
    say(log, report(severity="major", happened_ns=ns(2026, 2, 28)))
    say(log, report(severity="major", happened_ns=ns(2026, 2, 20), side="twin"))
    say(log, report(**times_of("2026-02")))
    say(log, report(**times_of("unknown")))
    found = trends(log, months=4, today=TODAY)
    assert [one.month for one in found.months] == ["2025-12", "2026-01", "2026-02", "2026-03"]
    january, february, march = found.months[1:]
    assert january.counts == {"near_miss": 0, "minor": 3, "major": 0, "critical": 0}
    assert (february.counts["near_miss"], february.counts["major"]) == (1, 1)
    low, high = garwood_interval(3, 100.0)
    assert (january.rate.value, january.rate.n) == (pytest.approx(30.0), 3)
    assert (january.rate.low, january.rate.high) == pytest.approx((1000 * low, 1000 * high))
    assert february.rate.value == pytest.approx(40.0)
    assert (march.rate.value, march.rate.reason) == (None, "no hours were logged")
    assert found.undecided == 1, "the one of which nobody knows when it was"


def total(period: str, hours: float, robot: str = "ur5e") -> Exposure:
    begin, end = period_of(period)
    values = {"robot": robot, "side": "real", "mode": "autonomous", "start_ns": begin}
    return Exposure.model_validate(values | {"until_ns": end, "seconds": 3600.0 * hours})


@pytest.mark.parametrize("period", ["2026-01 Europe/Berlin", "2026-Q1", "2026-01-20/2026-02-10"])
def test_sums_of_no_month_are_named_once_and_not_taken_for_no_hours(log, say, period):
    name = say(log, total(period, 40.0)).name
    say(log, total(period, 40.0, robot="other"))
    found = trends(log, months=3, robot="ur5e", today=TODAY)
    (text,) = found.left_out
    assert name in text
    assert found.as_dict()["hours_left_out"] == [text]
    assert [one.rate.value for one in found.months] == [None] * 3
    assert "logged" not in str(found.months[0].rate.reason)


def test_months_are_those_of_the_zone_that_is_named(log, say, report):
    say(log, total("2026-01 Europe/Berlin", 40.0))
    say(log, report(**times_of("2026-01 Europe/Berlin")))
    (january, _, _) = trends(log, months=3, zone="Europe/Berlin", today=TODAY).months
    assert (january.month, january.hours, january.counts["near_miss"]) == ("2026-01", 40.0, 1)
    assert trends(log, months=3, zone="Europe/Berlin", today=TODAY).undecided == 0
    with pytest.raises(InputError, match=r"zone: .*Mars"):
        trends(log, zone="Mars")


def test_the_year_is_crossed_and_the_longest_look_back_fits(log):
    found = trends(log, months=120, today=date(2026, 1, 1))
    assert (found.months[0].month, found.months[-1].month) == ("2016-02", "2026-01")
    assert len({one.month for one in found.months}) == 120


def test_categories_come_most_first_and_those_dismissed_do_not_count(log, say, report):
    for category, count in (("collision", 2), ("fire", 3), ("watchdog", 2)):
        for _ in range(count):
            made = say(log, report(category=category, happened_ns=ns(2026, 2, 3)))
    say(log, Review(verdict="dismissed", note="a drill"), incident_id=made.record_id, by="B")
    found = trends(log, today=TODAY)
    assert found.categories == (("fire", 3), ("collision", 2), ("watchdog", 1))


def test_open_actions_are_told_by_how_long_they_are_overdue(log, say, report):
    made = say(log, report(severity="major", happened_ns=ns(2026, 2, 3)))
    days = [None, "2026-03-15", "2026-03-14", "2026-03-08", "2026-03-07", "2026-02-13",
            "2026-02-12", "2025-12-15", "2025-12-14"]  # fmt: skip
    for due in days:
        say(log, Action(what="x", owner="Operator C", due=due), incident_id=made.record_id, by="B")
    done = say(log, Action(what="y", owner="C", due="2025-01-01"), incident_id=made.record_id)
    effective = Effectiveness(action_id=done.record_id, is_effective=True, how="seen")
    say(log, effective, incident_id=made.record_id, by="B")
    assert trends(log, today=TODAY).ages == {
        "no day was set": 1, "not due yet": 1, "1 to 7 days overdue": 2,
        "8 to 30 days overdue": 2, "31 to 90 days overdue": 2, "longer overdue": 1,
    }  # fmt: skip


def test_what_cannot_be_shown_is_refused(log):
    with pytest.raises(InputError, match="from 1 to 120, given 0"):
        trends(log, months=0)
    with pytest.raises(UnknownNameError, match="mule"):
        trends(log, robot="mule")


def test_the_page_shows_them(web, browse):
    operator = browse("operator")
    page = operator.get("/trends?months=24")
    assert page.status_code == 200
    assert page.text.count('<th scope="row">20') == 24
    assert operator.get("/trends?months=0").status_code == 422
    assert operator.get("/trends?months=many").status_code == 200
    assert operator.get("/trends?robot=mule").status_code == 422
    assert web.client.get("/trends").status_code == 303


def test_a_month_without_a_record_of_incidents_has_no_rate(log, say, report):
    say(log, worked(1, 100.0))
    say(log, worked(2, 100.0))
    say(log, report(happened_ns=ns(2026, 2, 3)))
    january, february = trends(log, months=3, today=TODAY).months[:2]
    assert january.rate.value is None
    assert "nobody said that nothing happened" in str(january.rate.reason)
    assert february.rate.value == pytest.approx(10.0)
