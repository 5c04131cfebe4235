"""Where reports, hours and shifts do not fit: gaps, incidents outside all hours, or denied."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Select, func, select

from robo_eval.core.kinds import Side
from robo_eval.log.evidence import PHYSICAL
from robo_eval_incidents.followed import followed
from robo_eval_incidents.log import IncidentLog
from robo_eval_incidents.schema import EXPOSED, PAGE
from robo_eval_incidents.spans import Span, clipped, holds, merged, without
from robo_eval_incidents.times import shifts

SLACK_NS: Final = 10**9
"""Clocks of people and robots may differ by so much."""

Body = tuple[str, Side]
"""A robot, and the side it is on: a twin of the same name is another body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A time within a shift or run of which no exposure was logged.

    Attributes:
        robot: Robot; None where a shift of a whole station had no robot at work.
        side: Side.
        start_ns: Start, UTC.
        end_ns: End, UTC.
        within: What it is a part of: `shift` of a nil report, or `run`, a trial.
        name: Station and number of the nil report, or digest of the trial's plan.
    """

    robot: str | None
    side: Side
    start_ns: int
    end_ns: int
    within: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """An incident at a time of which no exposure of its robot was logged; it counts all the same.

    Attributes:
        incident_id: Its id.
        name: Station and number.
        robot: Robot.
        side: Side.
        happened_ns: When it happened, UTC.
    """

    incident_id: str
    name: str
    robot: str
    side: Side
    happened_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Watch:
    """A time in which hours should have been logged."""

    robot: str | None
    side: Side
    span: Span
    within: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradicted:
    """An incident that counts, in a shift somebody reported to be without.

    Attributes:
        shift: Station and number of the nil report.
        by: Who made it.
        incident_id: The incident.
        name: Its station and number.
        robot: Its robot.
        side: Side.
        happened_ns: When it happened, UTC.
    """

    shift: str
    by: str
    incident_id: str
    name: str
    robot: str
    side: Side
    happened_ns: int


def gaps_in(
    log: IncidentLog,
    logged: Mapping[Body, Sequence[Span]],
    since_ns: int | None,
    until_ns: int | None,
    least_ns: int,
) -> Iterator[Gap]:
    """Times within shifts and runs of which nothing was logged.

    Args:
        log: The log.
        logged: Times that were logged, by robot and side.
        since_ns: Begin of the period, UTC; None for all before.
        until_ns: End of the period, UTC; None for all after.
        least_ns: The shortest gap.
    """
    by_body: dict[tuple[str | None, Side], list[Span]] = defaultdict(list)
    for (robot, side), spans in logged.items():
        by_body[robot, side] += spans
        by_body[None, side] += spans
    known = {body: merged(spans) for body, spans in by_body.items()}
    told: dict[tuple[str | None, Side], list[Span]] = defaultdict(list)
    for watch in sorted(
        (*_shifts(log), *_runs(log)), key=lambda one: (one.span, one.name, one.robot or "")
    ):
        body = (watch.robot, watch.side)
        whole = merged([clipped(watch.span, since_ns, until_ns)])
        # A gap is listed once, however many shifts and runs it is in.
        for start, end in without(without(whole, told[body]), known.get(body, [])):
            if end - start >= max(least_ns, 1):
                yield Gap(
                    robot=watch.robot, side=watch.side, start_ns=start, end_ns=end,
                    within=watch.within, name=watch.name,
                )  # fmt: skip
        told[body] = merged((*told[body], *whole))


def _shifts(log: IncidentLog) -> Iterator[_Watch]:
    for shift in shifts(log):
        if shift.side is not Side.SIM:
            yield _Watch(
                robot=shift.robot,
                side=shift.side,
                span=shift.span,
                within="shift",
                name=shift.name,
            )


def _runs(log: IncidentLog) -> Iterator[_Watch]:
    # What was withdrawn was played all the same: its time is a gap now.
    keys = (EXPOSED.c.trial, EXPOSED.c.robot, EXPOSED.c.side)
    query = select(*keys, func.min(EXPOSED.c.start_ns), func.max(EXPOSED.c.end_ns))
    with followed(log) as connection:
        rows = connection.execute(query.where(EXPOSED.c.trial.isnot(None)).group_by(*keys))
        for trial, robot, side, start, end in rows.fetchall():
            yield _Watch(robot=robot, side=Side(side), span=(start, end), within="run", name=trial)


def outside_of(
    log: IncidentLog,
    exposed: Mapping[Body, Sequence[Span]],
    since_ns: int | None,
    until_ns: int | None,
) -> Iterator[Outside]:
    """Incidents that count, on physical sides, at a time without exposure.

    Args:
        log: The log.
        exposed: Times of exposure, by robot and side.
        since_ns: Begin of the period, UTC; None for all before.
        until_ns: End of the period, UTC; None for all after.
    """
    query = _happened(select(PAGE), since_ns, until_ns).where(PAGE.c.side.in_(PHYSICAL))
    spans = {body: merged(own) for body, own in exposed.items()}
    with followed(log) as connection:
        rows = connection.execute(query.order_by(PAGE.c.happened_ns, PAGE.c.incident_id)).all()
    for row in rows:
        body = (row.robot, Side(row.side))
        if not holds(spans.get(body, []), row.happened_ns, SLACK_NS):
            yield Outside(
                incident_id=row.incident_id,
                name=f"{row.station}/{row.sequence}",
                robot=row.robot,
                side=Side(row.side),
                happened_ns=row.happened_ns,
            )


def contradicted_in(
    log: IncidentLog, since_ns: int | None, until_ns: int | None
) -> Iterator[Contradicted]:
    """Incidents that count, in shifts that were reported to be without.

    Args:
        log: The log.
        since_ns: Begin of the period, UTC; None for all before.
        until_ns: End of the period, UTC; None for all after.
    """
    told = shifts(log, since_ns, until_ns)
    if not told:
        return
    query = _happened(select(PAGE), since_ns, until_ns)
    with followed(log) as connection:
        rows = connection.execute(query.order_by(PAGE.c.happened_ns, PAGE.c.incident_id)).all()
    times = [row.happened_ns for row in rows]
    for shift in told:
        for row in rows[bisect_left(times, shift.start_ns) : bisect_left(times, shift.end_ns)]:
            if row.side == shift.side.value and shift.is_of(row.robot):
                yield Contradicted(
                    shift=shift.name,
                    by=shift.by,
                    incident_id=row.incident_id,
                    name=f"{row.station}/{row.sequence}",
                    robot=row.robot,
                    side=shift.side,
                    happened_ns=row.happened_ns,
                )


def _happened(query: Select[Any], since_ns: int | None, until_ns: int | None) -> Select[Any]:
    """Only incidents of a period that count."""
    query = query.where(PAGE.c.counts == 1)
    if since_ns is not None:
        query = query.where(PAGE.c.happened_ns >= since_ns)
    if until_ns is not None:
        query = query.where(PAGE.c.happened_ns < until_ns)
    return query
