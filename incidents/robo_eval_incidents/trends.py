"""How incidents go over time: rates month by month, what they are, and how long actions wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import Any, Final

from robo_eval.core.defaults import SEVERITIES
from robo_eval.core.errors import InputError
from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Side
from robo_eval.log.cells import zone_of
from robo_eval_incidents.hours import Finding, hours_rows, total_hours
from robo_eval_incidents.lists import (
    Filter,
    categories,
    check_robot,
    overdue_days,
    tally,
    todo,
    undecided,
    utc_today,
)
from robo_eval_incidents.log import IncidentLog
from robo_eval_incidents.standing import (
    NO_RECORD,
    RATE_UNIT,
    by_severity,
    incidents_without,
    marked,
    rate_per_1000,
    recorded_sides,
    unknown_text,
)
from robo_eval_incidents.text import span_of
from robo_eval_incidents.words import Category

MOST_MONTHS: Final = 120
_AGES: Final = (
    ("no day was set", None), ("not due yet", 0), ("1 to 7 days overdue", 7),
    ("8 to 30 days overdue", 30), ("31 to 90 days overdue", 90), ("longer overdue", 10**6),
)  # fmt: skip
_NO_HOURS: Final = "no hours were logged"
_NO_OWN_HOURS: Final = "no hours are known of this month alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Month:
    """Incidents of real robots in a month.

    Attributes:
        month: The month, such as `2026-03`.
        hours: Hours of exposure.
        counts: Incidents that count, by severity.
        rate: All of them per 1,000 h, with Garwood's exact interval.
        without: Those that are not in the rate, by robot whose hours are not known, and severity.
        not_counted: Sums of hours that touch the month and do not count in it.
    """

    month: str
    hours: float
    counts: Mapping[str, int]
    rate: Estimate
    without: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    not_counted: Sequence[Finding] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trends:
    """How incidents of real robots went over some months, and what is open now.

    Attributes:
        robot: The robot; None for all.
        zone: The zone whose months they are.
        months: The months, oldest first; the last one is not over.
        undecided: How many incidents may lie in one of the months or outside; none counts them.
        categories: Incidents of these months by what they are, most first.
        ages: Corrective actions that were not found effective, by how long they are overdue.
    """

    robot: str | None
    zone: str
    months: tuple[Month, ...]
    undecided: int
    categories: tuple[tuple[Category, int], ...]
    ages: Mapping[str, int]

    @property
    def unknown(self) -> list[str]:
        """Which robots are in no rate of a month, and how many incidents of them, in words."""
        return [f"{one.month}: {text}" for one in self.months
                for text in unknown_text("h", one.without)]  # fmt: skip

    @property
    def left_out(self) -> tuple[str, ...]:
        """Sums of hours that count in no month, and why; each once."""
        told = (
            f"{one}, lies in no month of {self.zone} whole" if one.kind == "part" else one.why
            for month in self.months
            for one in month.not_counted
        )
        return tuple(dict.fromkeys(told))

    def as_dict(self) -> dict[str, Any]:
        """The trends as JSON would have them."""
        months = [
            {"month": one.month, "hours": one.hours, "counts": dict(one.counts),
             "rate_per_1000_h": one.rate.as_dict(), "hours_unknown": one.without}
            for one in self.months
        ]  # fmt: skip
        return {
            "robot": self.robot,
            "zone": self.zone,
            "months": months,
            "hours_left_out": list(self.left_out),
            "undecided": self.undecided,
            "categories": {name.value: count for name, count in self.categories},
            "ages": dict(self.ages),
        }


def trends(
    log: IncidentLog,
    *,
    months: int = 12,
    robot: str | None = None,
    zone: str = "UTC",
    today: date | None = None,
    level: float = 0.95,
) -> Trends:
    """How incidents of real robots went over some months.

    Args:
        log: The log.
        months: How many, the present one included.
        robot: Only this robot.
        zone: Whose months they are, such as `Europe/Berlin`.
        today: The present day, UTC, if not the one it is.
        level: Coverage of the intervals.

    Raises:
        InputError: If `months` is none that fits.
        UnknownNameError: If the log knows no such robot.
    """
    if not 1 <= months <= MOST_MONTHS:
        raise InputError(f"months: from 1 to {MOST_MONTHS}, given {months}")
    check_robot(log, robot)
    try:
        names = _names(months, today or datetime.now(zone_of(zone)).date())
    except ValueError as err:
        raise InputError(f"zone: {err}") from err
    today = today or utc_today()
    periods = {name: _within(name, zone, robot) for name in names}
    found = tuple(_month(log, *one, robot, level) for one in periods.items())
    whole = replace(periods[names[-1]], since_ns=periods[names[0]].since_ns)
    lost = {one.incident_id for wanted in periods.values() for one in undecided(log, wanted)}
    return Trends(
        robot=robot,
        zone=zone,
        months=found,
        undecided=len(lost),
        categories=tuple(categories(log, replace(whole, is_sure=True))),
        ages=_ages(log, robot, today),
    )


def _names(count: int, today: date) -> list[str]:
    names: list[str] = []
    first = today.replace(day=1)
    for _ in range(count):
        names.insert(0, f"{first:%Y-%m}")
        first = (first - timedelta(days=1)).replace(day=1)
    return names


def _within(month: str, zone: str, robot: str | None) -> Filter:
    since, until = span_of(month, zone=zone)
    return Filter(side=Side.REAL, robot=robot, since_ns=since, until_ns=until)


def _month(log: IncidentLog, name: str, wanted: Filter, robot: str | None, level: float) -> Month:
    counts = by_severity([tally(log, replace(wanted, is_sure=True))])
    exposed = hours_rows(log, wanted.since_ns, wanted.until_ns)
    hours = total_hours(exposed.rows, Side.REAL, robot)
    without = incidents_without(log, wanted, exposed)["h"] if hours else {}
    left_out = sum(one.total() for one in without.values())
    not_counted = exposed.not_counted_of(Side.REAL, robot)
    if hours and Side.REAL not in recorded_sides(log, wanted):
        rate = Estimate.missing(reason=NO_RECORD, unit=RATE_UNIT, n=0)
    elif hours:
        rate = rate_per_1000(counts.total() - left_out, hours, level, RATE_UNIT)
        rate = marked(rate, "h", without)
    else:
        reason = _NO_OWN_HOURS if not_counted else _NO_HOURS
        rate = Estimate.missing(reason=reason, unit=RATE_UNIT, n=counts.total())
    return Month(
        month=name, hours=hours, counts={one: counts[one] for one in SEVERITIES}, rate=rate,
        without=without, not_counted=not_counted,
    )  # fmt: skip


def _ages(log: IncidentLog, robot: str | None, today: date) -> dict[str, int]:
    found = dict.fromkeys((name for name, _ in _AGES), 0)
    for row in todo(log, robot=robot, today=today).rows:
        for step in row.steps:
            if step.verb == "check":
                days = None if step.due is None else overdue_days(step.due, today)
                found[_age(days)] += 1
    return found


def _age(days: int | None) -> str:
    return next(
        name
        for name, most in _AGES
        if (most is None) == (days is None) and (days is None or most is None or days <= most)
    )
