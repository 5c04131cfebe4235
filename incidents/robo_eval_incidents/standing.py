"""How safe robots ran in a period, as an incident log has it: counts, rates and score."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from sqlalchemy import select

from robo_eval import formulas
from robo_eval.core.defaults import SEVERITIES
from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Side
from robo_eval.metrics.attribution import Exposure
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.safety import Safety, safety_of
from robo_eval_incidents.hours import HoursRow, hours_rows, shifts, total_hours, total_km
from robo_eval_incidents.lists import Filter, Listed, check_robot, filtered, tally, undecided
from robo_eval_incidents.log import IncidentLog
from robo_eval_incidents.schema import INCIDENTS
from robo_eval_incidents.words import Severity, Status

RATE_UNIT: Final = "incidents/1000 h"
RATE_UNIT_KM: Final = "incidents/1000 km"
_TIMES: Final = 10.0
"""Metrics have rates per 100 h."""
_UNREVIEWED: Final = (Status.DRAFT, Status.REPORTED)
_OF_SIM: Final = "a simulation exposes nobody"
NO_RECORD: Final = "neither a report nor a nil report: nobody said that nothing happened"
_DEFAULT: Final = MetricConfig()


@dataclass(frozen=True, slots=True, kw_only=True)
class SideStanding:
    """How safe robots ran on one side.

    Attributes:
        side: Side.
        counts: Incidents by the severity they count at; None if nobody kept a record.
        unreviewed: How many of them not enough people have looked at; they count as well.
        hours: Hours of exposure; None if none were logged.
        nil_hours: As many of them lie in shifts that were reported to be without incidents, and
            had none.
        rates: Incidents per 1,000 h by severity, each with Garwood's exact interval.
        km: Kilometres of robots of which some were logged; None if of none.
        rates_km: Incidents of those robots per 1,000 km; empty without kilometres.
        score: The safety score; its lower end is the pessimistic score.
        is_valid: Whether the period counts: a critical incident ends it.
        undecided: Incidents of which only a day or a month is known, which may lie in the period
            or outside; they are not counted.
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
    than 0 after a critical incident.

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
    rows, left_out = hours_rows(log, since_ns, until_ns)
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
        own = [row for row in rows if row.side is side and robot in (None, row.robot)]
        km = total_km(own, side)
        of_those = [tally(log, replace(wanted, is_sure=True, robot=name, side=side)) for name in km]
        maybe = tuple(one for one in open_ if one.side is side)
        if side is Side.REAL or own or any(counts.values()) or maybe:
            sides[side] = _of_side(
                side,
                counts if side in recorded else None,
                own,
                unreviewed,
                config,
                km=math.fsum(km.values()),
                counts_km=by_severity(of_those),
                maybe=maybe,
                left_out=tuple(
                    str(one)
                    for one in left_out
                    if one.kind == "part" and one.side is side and robot in (None, one.robot)
                ),
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
    with log.database.reading() as connection:
        found = set(connection.execute(query).scalars())
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
    km: float,
    counts_km: Counter[str],
    maybe: tuple[Listed, ...],
    left_out: tuple[str, ...],
) -> SideStanding:
    hours = total_hours(rows, side)
    times = sum(row.times for row in rows if row.is_exposed)
    exposure = Exposure(hours=hours, episodes=times, unknown=0)
    found = safety_of(counts, exposure, config)
    if side is Side.SIM:
        found = _without_values(found, _OF_SIM)
    elif counts is None:
        found = _without_values(found, NO_RECORD)
    return SideStanding(
        side=side,
        counts=counts,
        unreviewed=unreviewed,
        hours=hours or None,
        nil_hours=math.fsum(row.nil_hours for row in rows if row.is_exposed),
        rates={name: _per_1000_h(rate) for name, rate in found.rates.items()},
        km=km or None,
        rates_km=_rates_km(counts_km, km, config.level)
        if counts is not None and side is not Side.SIM
        else {},
        score=found.score,
        is_valid=found.is_valid,
        undecided=maybe,
        left_out=left_out,
    )


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


def _rates_km(counts: Counter[str], km: float, level: float) -> dict[str, Estimate]:
    """Incidents per 1,000 km by severity, each with Garwood's exact interval."""
    if not km:
        return {}
    return {name: rate_per_1000(counts[name], km, level, RATE_UNIT_KM) for name in SEVERITIES}


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
