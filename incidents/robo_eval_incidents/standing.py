"""How safe robots ran in a period, as an incident log has it: counts, rates and score."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from sqlalchemy import select

from robo_eval import formulas
from robo_eval.core.defaults import SEVERITIES
from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Side
from robo_eval.core.wording import counted
from robo_eval.metrics.attribution import Exposure
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.safety import Safety, safety_of
from robo_eval_incidents.hours import (
    Exposed,
    HoursRow,
    hours_rows,
    shifts,
    total_hours,
)
from robo_eval_incidents.lists import Filter, check_robot, filtered, tally, undecided
from robo_eval_incidents.log import IncidentLog
from robo_eval_incidents.rows import Listed
from robo_eval_incidents.schema import INCIDENTS
from robo_eval_incidents.spans import within
from robo_eval_incidents.words import Severity, Status

RATE_UNIT: Final = "incidents/1000 h"
RATE_UNIT_KM: Final = "incidents/1000 km"
_TIMES: Final = 10.0
"""Metrics have rates per 100 h."""
_AMOUNTS: Final = {"h": "hours", "km": "kilometres"}
_UNREVIEWED: Final = (Status.DRAFT, Status.REPORTED)
_OF_SIM: Final = "a simulation exposes nobody"
NO_RECORD: Final = "neither a report nor a nil report: nobody said that nothing happened"
_DEFAULT: Final = MetricConfig()
_PLACES: Final = ("robot", "counted_severity", "happened_ns", "latest_ns")


@dataclass(frozen=True, slots=True, kw_only=True)
class SideStanding:
    """How safe robots ran on one side.

    Attributes:
        side: Side.
        counts: Incidents by the severity they count at; None if nobody kept a record.
        unreviewed: How many of them not enough people have looked at; they count as well.
        hours: Hours of exposure that are known; None if none are.
        nil_hours: As many of them lie in shifts that were reported to be without incidents, and
            had none.
        rates: Incidents per 1,000 h by severity, each with Garwood's exact interval, of robots and
            times whose hours are known.
        km: Kilometres that are known; None if none are.
        rates_km: Incidents per 1,000 km, of robots and times whose kilometres are known; empty
            without kilometres.
        score: The safety score; its lower end is the pessimistic score. What it is without is its
            reason, as it is of a rate.
        is_valid: Whether the period counts: a critical incident ends it.
        undecided: Incidents of which only a day or a month is known, which may lie in the period
            or outside; they are not counted.
        left_out: Sums of hours that do not count, and why.
        without: Incidents that are in no rate per `h`, or per `km`, by the robot of which those
            were not known when they happened; by severity, and empty for a robot without any.
    """

    side: Side
    counts: Mapping[str, int] | None
    unreviewed: int
    hours: float | None
    nil_hours: float
    rates: Mapping[str, Estimate]
    km: float | None
    rates_km: Mapping[str, Estimate]
    score: Estimate
    is_valid: bool
    undecided: tuple[Listed, ...] = ()
    left_out: tuple[str, ...] = ()
    without: Mapping[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Which robots are in no rate, and how many incidents of them, in words."""
        return tuple(chain.from_iterable(unknown_text(*one) for one in self.without.items()))

    def as_dict(self) -> dict[str, Any]:
        """The standing of a side as JSON would have it."""
        return {
            "counts": None if self.counts is None else dict(self.counts),
            "unreviewed": self.unreviewed,
            "hours": self.hours,
            "nil_hours": self.nil_hours,
            "rates_per_1000_h": {name: rate.as_dict() for name, rate in self.rates.items()},
            "km": self.km,
            "rates_per_1000_km": {name: rate.as_dict() for name, rate in self.rates_km.items()},
            "score": self.score.as_dict(),
            "pessimistic": self.score.low,
            "is_valid": self.is_valid,
            "undecided": [{"name": one.name, "time": one.time} for one in self.undecided],
            "hours_left_out": list(self.left_out),
            "hours_unknown": self.without.get("h", {}),
            "km_unknown": self.without.get("km", {}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How safe robots ran in a period.

    Attributes:
        since_ns: Begin of the period, UTC; None for all before.
        until_ns: End of the period, UTC; None for all after.
        robot: The robot; None for all of them.
        sides: Each side apart: what a twin or a simulation shows never counts for a robot.
    """

    since_ns: int | None
    until_ns: int | None
    robot: str | None
    sides: Mapping[Side, SideStanding]

    @property
    def real(self) -> SideStanding:
        """The side of physical robots."""
        return self.sides[Side.REAL]

    def as_dict(self) -> dict[str, Any]:
        """The standing as JSON would have it."""
        return {
            "since_ns": self.since_ns,
            "until_ns": self.until_ns,
            "robot": self.robot,
            "sides": {side.value: one.as_dict() for side, one in self.sides.items()},
        }


def standing(
    log: IncidentLog,
    since_ns: int | None = None,
    until_ns: int | None = None,
    robot: str | None = None,
    *,
    config: MetricConfig = _DEFAULT,
) -> Standing:
    """How safe robots ran in a period.

    An incident of which only a day or a month is known counts in a period that holds it whole; one
    that may lie outside is named. An incident counts from its draft on, at the severity
    `counted_severity` has, until enough people have dismissed it: what nobody has looked at counts
    against a robot. It counts as well if no hours were logged for its time. Hours are those of
    `exposure.hours`, each once. Where no hours were logged there is no rate and no score, other
    than 0 after a critical incident. Incidents of a robot whose hours nobody knows are divided by
    those of no other one: they are named, and in no rate.

    Args:
        log: The log.
        since_ns: Begin of the period, UTC; None for all before.
        until_ns: End of the period, UTC; None for all after.
        robot: Only this robot.
        config: Weights and form of the score, and coverage of the intervals.

    Raises:
        InputError: If the period ends before it begins.
        UnknownNameError: If the log knows no such robot.
    """
    check_robot(log, robot)
    exposed = hours_rows(log, since_ns, until_ns)
    wanted = Filter(robot=robot, since_ns=since_ns, until_ns=until_ns)
    found = tally(log, replace(wanted, is_sure=True))
    open_ = undecided(log, wanted)
    recorded = recorded_sides(log, wanted)
    sides = {}
    for side in Side:
        counts = {
            name: sum(found.get((side, Severity(name), status), 0) for status in Status)
            for name in SEVERITIES
        }
        unreviewed = sum(
            count for (where, _, status), count in found.items()
            if where is side and status in _UNREVIEWED
        )  # fmt: skip
        own = [row for row in exposed.rows if row.side is side and robot in (None, row.robot)]
        maybe = tuple(one for one in open_ if one.side is side)
        if side is Side.REAL or own or any(counts.values()) or maybe:
            sides[side] = _of_side(
                side,
                counts if side in recorded else None,
                own,
                unreviewed,
                config,
                without=incidents_without(log, replace(wanted, side=side), exposed),
                maybe=maybe,
                left_out=tuple(one.why for one in exposed.not_counted_of(side, robot)),
            )
    return Standing(
        since_ns=since_ns, until_ns=until_ns, robot=robot, sides=MappingProxyType(sides)
    )


def recorded_sides(log: IncidentLog, wanted: Filter) -> frozenset[Side]:
    """Sides on which a record of incidents was kept: a log holds a report or a nil report of them.

    Args:
        log: The log.
        wanted: Of which robot and period; a nil report counts if its shift is partly within it.
    """
    query = filtered(
        select(INCIDENTS.c.side).distinct(),
        Filter(robot=wanted.robot, since_ns=wanted.since_ns, until_ns=wanted.until_ns),
    )
    found = {side for (side,) in log.database.rows(query)}
    if not found.issuperset(Side):
        period = (wanted.since_ns, wanted.until_ns)
        found.update(
            one.side.value
            for one in shifts(log, *period)
            if wanted.robot is None or wanted.robot in one.robots
        )
    return frozenset(map(Side, found))


def _of_side(
    side: Side,
    counts: dict[str, int] | None,
    rows: list[HoursRow],
    unreviewed: int,
    config: MetricConfig,
    *,
    without: Mapping[str, Mapping[str, Counter[str]]],
    maybe: tuple[Listed, ...],
    left_out: tuple[str, ...],
) -> SideStanding:
    hours, km = total_hours(rows, side), total_hours(rows, side, of="km")
    times = sum(row.times for row in rows if row.is_exposed)
    exposure = Exposure(hours=hours, episodes=times, unknown=0)
    without = {unit: one for unit, one in without.items() if {"h": hours, "km": km}[unit]}
    found = safety_of(_less(counts, without.get("h", {})), exposure, config)
    if counts is not None and counts[Severity.CRITICAL]:
        # One ends the period, whoever knows the hours of its robot.
        ended = safety_of(counts, exposure, config)
        found = replace(found, score=ended.score, is_valid=ended.is_valid)
    if side is Side.SIM:
        found = _without_values(found, _OF_SIM)
    elif counts is None:
        found = _without_values(found, NO_RECORD)
    lost = without.get("h", {})
    return SideStanding(
        side=side,
        counts=counts,
        unreviewed=unreviewed,
        hours=hours or None,
        nil_hours=math.fsum(row.nil_hours for row in rows if row.is_exposed),
        rates={
            name: marked(_per_1000_h(rate), "h", lost, name) for name, rate in found.rates.items()
        },
        km=km or None,
        rates_km=_rates_km(counts, without.get("km", {}), km, config.level)
        if counts is not None and side is not Side.SIM
        else {},
        score=marked(found.score, "h", lost) if found.is_valid else found.score,
        is_valid=found.is_valid,
        undecided=maybe,
        left_out=left_out,
        without=without,
    )


def incidents_without(
    log: IncidentLog, wanted: Filter, exposed: Exposed
) -> dict[str, dict[str, Counter[str]]]:
    """Incidents that happened while nobody knew hours, or kilometres, by unit, robot and severity.

    A robot of which some are known all the same, when it happened or at any other time that
    nothing else was logged of, is none of these.

    Args:
        log: The log.
        wanted: Of which side, robot and period.
        exposed: What was logged in it.
    """
    side, places = wanted.side, [INCIDENTS.c[name] for name in _PLACES]
    assert isinstance(side, Side)
    found: dict[str, dict[str, Counter[str]]] = {}
    for unit, unknown in exposed.unknown.items():
        own = {robot: spans for (robot, on), spans in unknown.items()
               if on is side and wanted.robot in (None, robot)}  # fmt: skip
        known = {
            row.robot
            for row in exposed.rows
            if row.side is side and row.is_exposed and (row.hours if unit == "h" else row.km)
        }
        lost: dict[str, Counter[str]] = defaultdict(Counter, {one: Counter() for one in own})
        query = filtered(select(*places), replace(wanted, is_sure=True))
        query = query.where(INCIDENTS.c.counts == 1, INCIDENTS.c.robot.not_in(known - own.keys()))
        for robot, severity, first, last in log.database.rows(query):
            span = np.array([first]), np.array([last + 1])
            if robot not in known or within(own[robot], *span)[0] == last + 1 - first:
                lost[robot][severity] += 1
        found[unit] = dict(sorted(lost.items()))
    return found


def unknown_text(unit: str, robots: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """What is in no rate per `h`, or per `km`, in words; see `incidents_without`."""
    for robot, counts in robots.items():
        if lost := sum(counts.values()):
            count, what = counted(lost, "incident"), _AMOUNTS[unit]
            yield f"rates per {unit} are without {count} of {robot} while no {what} of it are known"


def marked(
    found: Estimate, unit: str, robots: Mapping[str, Mapping[str, int]], *severities: str
) -> Estimate:
    """An estimate that says what it is without; where that is all there was, it has no value.

    Args:
        found: A rate, or the score.
        unit: What is not known: `h` or `km`.
        robots: Incidents that are not in it; see `incidents_without`.
        severities: Which of them it is of; all, if none is named.
    """
    lost = {robot: sum(counts[one] for one in severities or counts)
            for robot, counts in robots.items()}  # fmt: skip
    own = [robot for robot, count in lost.items() if count]
    if found.value is None or not own:
        return found
    of = own[0] if len(own) == 1 else counted(len(own), "robot")
    count, what = counted(sum(lost.values()), "incident"), _AMOUNTS[unit]
    found = replace(found, reason=f"without {count} of {of} while no {what} were known")
    return found if found.n else replace(found, value=None, low=None, high=None)


def _less(
    counts: dict[str, int] | None, without: Mapping[str, Mapping[str, int]]
) -> dict[str, int] | None:
    """Counts by severity without those of some robots."""
    if counts is None:
        return None
    lost: Counter[str] = Counter()
    for one in without.values():
        lost.update(one)
    return {name: count - lost[name] for name, count in counts.items()}


def _without_values(found: Safety, reason: str) -> Safety:
    def missing(one: Estimate) -> Estimate:
        return Estimate.missing(reason=reason, unit=one.unit, n=one.n, method=one.method)

    rates = {name: missing(rate) for name, rate in found.rates.items()}
    return replace(found, score=missing(found.score), rates=rates)


def by_severity(found: Iterable[Mapping[tuple[Side, Severity, Status], int]]) -> Counter[str]:
    """How many incidents some tallies have in all, by severity."""
    counts: Counter[str] = Counter()
    for one in found:
        for (_, severity, _), count in one.items():
            counts[severity.value] += count
    return counts


def _rates_km(
    counts: dict[str, int], lost: Mapping[str, Mapping[str, int]], km: float, level: float
) -> dict[str, Estimate]:
    """Incidents per 1,000 km by severity, each with Garwood's exact interval."""
    known = _less(counts, lost) or {}
    return {
        name: marked(rate_per_1000(count, km, level, RATE_UNIT_KM), "km", lost, name)
        for name, count in known.items()
        if km
    }


def rate_per_1000(count: int, amount: float, level: float, unit: str) -> Estimate:
    """Incidents per 1,000 hours or kilometres, with Garwood's exact interval.

    Args:
        count: Incidents.
        amount: Hours or kilometres, more than 0.
        level: Coverage of the interval.
        unit: What the rate is in.
    """
    ends = formulas.poisson_rate_ci(count, amount, conf=level)
    low, high = ends["lower_per_h"], ends["upper_per_h"]
    return Estimate(
        value=1000.0 * count / amount,
        low=None if low is None else 1000.0 * low,
        high=None if high is None else 1000.0 * high,
        level=level,
        n=count,
        method="garwood",
        unit=unit,
    )


def _per_1000_h(rate: Estimate) -> Estimate:
    def times(value: float | None) -> float | None:
        return None if value is None else _TIMES * value

    return replace(
        rate, value=times(rate.value), low=times(rate.low), high=times(rate.high), unit=RATE_UNIT
    )
