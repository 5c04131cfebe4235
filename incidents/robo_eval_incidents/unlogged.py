"""Where reports, hours and shifts do not fit: gaps, incidents outside all hours, or denied."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Select, func, select

from robo_eval.core.kinds import Side
from robo_eval.log.evidence import PHYSICAL
from robo_eval_incidents.bodies import Nil
from robo_eval_incidents.followed import followed
from robo_eval_incidents.log import IncidentLog
from robo_eval_incidents.page import Filter, filtered
from robo_eval_incidents.record import Record
from robo_eval_incidents.schema import EXPOSED, PAGE
from robo_eval_incidents.spans import Span, clipped, holds, merged, without
from robo_eval_incidents.times import Shift, shifts, withdrawals

_NAMED: Final = 3
"""Incidents that are named of a shift that was to be without."""
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
    bodies: frozenset[Body]
    """Whose hours fill it."""
    span: Span
    within: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradicted:
    """A shift that was reported to be without incidents, and had some that count.

    Attributes:
        shift: Station and number of the nil report.
        by: Who made it.
        side: Side.
        start_ns: Begin of the shift, UTC.
        end_ns: End of the shift, UTC.
        incidents: How many there were.
        named: Id, and station and number, of the first of them.
    """

    shift: str
    by: str
    side: Side
    start_ns: int
    end_ns: int
    incidents: int
    named: tuple[tuple[str, str], ...]

    @property
    def names(self) -> str:
        """The incidents in words: the first of them, and how many more there are."""
        rest = self.incidents - len(self.named)
        return ", ".join(name for _, name in self.named) + (f" and {rest} more" if rest else "")


def gaps_in(
    log: IncidentLog,
    logged: Mapping[Body, Sequence[Span]],
    told: Iterable[Shift],
    since_ns: int | None,
    until_ns: int | None,
    least_ns: int,
) -> Iterator[Gap]:
    """Times within shifts and runs of which nothing was logged.

    Args:
        log: The log.
        logged: Times that were logged, by robot and side.
        told: Shifts without incidents.
        since_ns: Begin of the period, UTC; None for all before.
        until_ns: End of the period, UTC; None for all after.
        least_ns: The shortest gap.
    """
    known = {body: merged(spans) for body, spans in logged.items()}
    at_work: dict[frozenset[Body], list[Span]] = {}
    watched: dict[tuple[str | None, Side, frozenset[Body]], int] = {}
    for watch in sorted(
        (*_shifts(told), *_runs(log)), key=lambda one: (one.span, one.name, one.robot or "")
    ):
        start, end = clipped(watch.span, since_ns, until_ns)
        # A gap is listed once, however many shifts and runs it is in; they come by their start.
        whose = (watch.robot, watch.side, watch.bodies)
        until = watched.get(whose, start)
        watched[whose] = max(end, until)
        if watch.bodies not in at_work:
            own = (span for body in watch.bodies for span in known.get(body, ()))
            at_work[watch.bodies] = merged(own)
        for gap_start, gap_end in without(
            merged([(max(start, until), end)]), at_work[watch.bodies]
        ):
            if gap_end - gap_start >= max(least_ns, 1):
                yield Gap(
                    robot=watch.robot, side=watch.side, start_ns=gap_start, end_ns=gap_end,
                    within=watch.within, name=watch.name,
                )  # fmt: skip


def _shifts(told: Iterable[Shift]) -> Iterator[_Watch]:
    for shift in told:
        if shift.side is not Side.SIM:
            yield _Watch(
                robot=shift.robot,
                side=shift.side,
                bodies=frozenset((robot, shift.side) for robot in shift.robots),
                span=shift.span,
                within="shift",
                name=shift.name,
            )


def _runs(log: IncidentLog) -> Iterator[_Watch]:
    # What was withdrawn between two others was played all the same, and is a gap; a withdrawn end
    # is none of the run: its clock may have been wrong.
    keys = (EXPOSED.c.trial, EXPOSED.c.robot, EXPOSED.c.side)
    query = select(*keys, func.min(EXPOSED.c.start_ns), func.max(EXPOSED.c.end_ns))
    query = query.where(EXPOSED.c.trial.isnot(None)).group_by(*keys)
    withdrawn = withdrawals(log)
    spans: dict[tuple[str, str, str], Span] = {}
    with followed(log) as connection:
        if withdrawn:
            query = query.add_columns(EXPOSED.c.record_id).group_by(EXPOSED.c.record_id)
        for row in connection.execute(query):
            if withdrawn.keys().isdisjoint(row[5:]):
                trial, robot, side, start, end = row[:5]
                first, last = spans.get((trial, robot, side), (start, end))
                spans[trial, robot, side] = (min(first, start), max(last, end))
    for (trial, robot, side), span in spans.items():
        body = (robot, Side(side))
        yield _Watch(
            robot=robot, side=body[1], bodies=frozenset({body}), span=span, within="run", name=trial
        )


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
    log: IncidentLog, told: Sequence[Shift], since_ns: int | None, until_ns: int | None
) -> Iterator[Contradicted]:
    """Shifts that were reported to be without incidents, and had some that count.

    Args:
        log: The log.
        told: The shifts.
        since_ns: Begin of the period, UTC; None for all before.
        until_ns: End of the period, UTC; None for all after.
    """
    if not told:
        return
    incidents: dict[Body, list[tuple[int, str, str]]] = defaultdict(list)
    columns = (PAGE.c.happened_ns, PAGE.c.incident_id, PAGE.c.station, PAGE.c.sequence)
    query = _happened(select(*columns, PAGE.c.robot, PAGE.c.side), since_ns, until_ns)
    with followed(log) as connection:
        for happened_ns, incident_id, station, sequence, robot, side in connection.execute(
            query.order_by(*columns[:2])
        ):
            incidents[robot, Side(side)].append((happened_ns, incident_id, f"{station}/{sequence}"))
    for shift in told:
        count, first = 0, []
        for robot in sorted(shift.robots):
            own = incidents.get((robot, shift.side), [])
            begin, end = (bisect_left(own, (ns, "")) for ns in shift.span)
            count += end - begin
            first += own[begin : min(end, begin + _NAMED)]
        if count:
            yield Contradicted(
                shift=shift.name,
                by=shift.by,
                side=shift.side,
                start_ns=shift.start_ns,
                end_ns=shift.end_ns,
                incidents=count,
                named=tuple((one[1], one[2]) for one in sorted(first)[:_NAMED]),
            )


def speaking_against(log: IncidentLog, record: Record) -> Contradicted | None:
    """What speaks against a nil report that was just made; None if nothing does.

    Args:
        log: The log.
        record: The report.
    """
    body = record.body
    if not isinstance(body, Nil):
        return None
    name = f"{record.station}/{record.sequence}"
    told = [one for one in shifts(log, body.start_ns, body.end_ns) if one.name == name]
    return next(contradicted_in(log, told, body.start_ns, body.end_ns), None)


def _happened(query: Select[Any], since_ns: int | None, until_ns: int | None) -> Select[Any]:
    """Only incidents of a period that count."""
    return filtered(query, Filter(since_ns=since_ns, until_ns=until_ns)).where(PAGE.c.counts == 1)
