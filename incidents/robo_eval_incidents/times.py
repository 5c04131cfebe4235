"""Times that were logged: exposure, and shifts without incidents; withdrawn ones do not count."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, select

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval_incidents.bodies import Exposure, Nil, Withdrawal
from robo_eval_incidents.database import IncidentLogError
from robo_eval_incidents.followed import followed
from robo_eval_incidents.log import IncidentLog
from robo_eval_incidents.record import Record, place_of, record_of
from robo_eval_incidents.schema import EXPOSED, PAGE, RECORDS, is_kind
from robo_eval_incidents.spans import Span, clipped
from robo_eval_incidents.taxonomy import Engagement


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposed:
    """A time in which a robot was exposed.

    Attributes:
        record_id: The record of it.
        robot: Robot.
        side: Side.
        mode: Who was in control.
        task: Task; empty if not known.
        policy: Policy, if known.
        episode_id: Episode, if it was one.
        trial: Trial, if it was an episode.
        start_ns: Start, UTC.
        end_ns: End, UTC.
    """

    record_id: str
    robot: str
    side: Side
    mode: Engagement
    task: str
    policy: str | None
    episode_id: str | None
    trial: str | None
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """A shift without incidents, as somebody reported it.

    Attributes:
        name: Station and number of the nil report.
        by: Who reported it.
        robot: Robot it is about; None for all robots of its station.
        robots: Robots it speaks for: that one, or those its station has records of on this side.
        side: Side.
        start_ns: Begin, UTC.
        end_ns: End, UTC.
        note: What was said with it.
    """

    name: str
    by: str
    robot: str | None
    robots: frozenset[str]
    side: Side
    start_ns: int
    end_ns: int
    note: str

    @property
    def span(self) -> Span:
        """Begin and end."""
        return self.start_ns, self.end_ns

    def is_of(self, robot: str | None) -> bool:
        """Whether it says something of a robot; None for any."""
        return robot is None or robot in self.robots


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedTime:
    """An entry of exposure or of a shift, as somebody made it.

    Attributes:
        record_id: The record of it.
        name: Its station and number.
        kind: `exposure` or `nil`.
        by: Who logged it.
        robot: Robot; None for all of the station.
        side: Side.
        start_ns: Start, UTC.
        end_ns: End, UTC.
        what: Mode and task of exposure, the note of a nil report.
        withdrawn_by: Who withdrew it; None if it counts.
        reason: Why; None if it counts.
    """

    record_id: str
    name: str
    kind: str
    by: str
    robot: str | None
    side: Side
    start_ns: int
    end_ns: int
    what: str
    withdrawn_by: str | None
    reason: str | None


# Exposure --------------------------------------------------------------------------------------


def exposed(
    log: IncidentLog, since_ns: int | None = None, until_ns: int | None = None
) -> list[Exposed]:
    """Times of exposure that touch a period, by their start.

    Args:
        log: The log.
        since_ns: Begin of the period, UTC; None for all before.
        until_ns: End of the period, UTC; None for all after.
    """
    withdrawn = withdrawals(log)
    query = select(*(EXPOSED.c[name] for name in Exposed.__dataclass_fields__))
    query = _in_period(query, since_ns, until_ns).order_by(EXPOSED.c.start_ns, EXPOSED.c.record_id)
    with followed(log) as connection:
        rows = connection.execute(query).mappings().all()
    try:
        return [
            Exposed(**{**row, "side": Side(row["side"]), "mode": Engagement(row["mode"])})
            for row in rows
            if row["record_id"] not in withdrawn and row["end_ns"] - row["start_ns"] >= 0
        ]
    except (TypeError, ValueError) as err:
        raise IncidentLogError(
            f"{log.name}: the list of hours holds what no record says; `robo-eval verify` says more"
        ) from err


def exposed_robots(log: IncidentLog) -> set[str]:
    """Every robot that hours are of."""
    withdrawn = withdrawals(log)
    query = select(EXPOSED.c.robot)
    if withdrawn:
        query = query.add_columns(EXPOSED.c.record_id)
    with followed(log) as connection:
        rows = connection.execute(query.distinct()).all()
    return {row[0] for row in rows if not withdrawn or row[1] not in withdrawn}


def _in_period(query: Select[Any], since_ns: int | None, until_ns: int | None) -> Select[Any]:
    if since_ns is not None:
        query = query.where(EXPOSED.c.end_ns > since_ns)
    if until_ns is not None:
        query = query.where(EXPOSED.c.start_ns < until_ns)
    return query


# Shifts ----------------------------------------------------------------------------------------


def shifts(
    log: IncidentLog, since_ns: int | None = None, until_ns: int | None = None
) -> list[Shift]:
    """Shifts without incidents that touch a period, by their begin; see `exposed`."""
    withdrawn = withdrawals(log)
    told = [
        (record, nil)
        for record, nil in _nil_reports(log, since_ns, until_ns)
        if record.record_id not in withdrawn
    ]
    of_all = any(not nil.robot for _, nil in told)
    known = _robots_by_station(log) if of_all else {}
    found = [_shift(record, nil, known) for record, nil in told]
    return sorted(found, key=lambda one: (one.start_ns, one.name))


def _robots_by_station(log: IncidentLog) -> dict[tuple[str, str], frozenset[str]]:
    """Robots that incidents or hours are of, by the station that filed them and their side."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    with followed(log) as connection:
        for table in (PAGE, EXPOSED):
            query = select(table.c.station, table.c.side, table.c.robot).distinct()
            for station, side, robot in connection.execute(query):
                found[station, side].add(robot)
    return {place: frozenset(robots) for place, robots in found.items()}


def withdrawals(log: IncidentLog) -> dict[str, Record]:
    """Records that took hours or shifts back, by the id of what they took back."""
    found: dict[str, Record] = {}
    for record in _of_kind(log, Withdrawal.kind):
        if isinstance(record.body, Withdrawal):
            found.setdefault(record.body.withdrawn_id, record)
    return found


def _nil_reports(
    log: IncidentLog, since_ns: int | None, until_ns: int | None
) -> Iterator[tuple[Record, Nil]]:
    for record in _of_kind(log, Nil.kind):
        if isinstance(nil := record.body, Nil):
            start_ns, end_ns = clipped((nil.start_ns, nil.end_ns), since_ns, until_ns)
            if start_ns < end_ns:
                yield record, nil


def _of_kind(log: IncidentLog, kind: str) -> list[Record]:
    """Records of a kind there is an index of, by station and number."""
    columns = (RECORDS.c.station, RECORDS.c.sequence, RECORDS.c.content)
    query = select(*columns).where(is_kind(kind, is_server=log.database.is_server))
    with log.database.reading() as connection:
        rows = connection.execute(query.order_by(*columns[:2])).all()
    return [
        record_of(content, where=f"{log.name}: {station}/{sequence}")
        for station, sequence, content in rows
    ]


def _shift(record: Record, nil: Nil, known: Mapping[tuple[str, str], frozenset[str]]) -> Shift:
    of_station = known.get((record.station, nil.side.value), frozenset())
    return Shift(
        name=f"{record.station}/{record.sequence}",
        by=record.by,
        robot=nil.robot or None,
        robots=frozenset({nil.robot}) if nil.robot else of_station,
        side=nil.side,
        start_ns=nil.start_ns,
        end_ns=nil.end_ns,
        note=nil.note,
    )


# Both, as they were logged ---------------------------------------------------------------------


def logged_times(
    log: IncidentLog,
    since_ns: int | None = None,
    until_ns: int | None = None,
    *,
    robot: str | None = None,
    limit: int = 50,
) -> tuple[Sequence[LoggedTime], bool]:
    """Entries of exposure and of shifts that touch a period, newest first, withdrawn ones as well.

    Args:
        log: The log.
        since_ns: Begin of the period, UTC; None for all before.
        until_ns: End of the period, UTC; None for all after.
        robot: Only what is of this robot.
        limit: How many at most.

    Returns:
        The entries, and whether there are more.
    """
    withdrawn = withdrawals(log)
    query = _in_period(select(EXPOSED), since_ns, until_ns)
    if robot is not None:
        query = query.where(EXPOSED.c.robot == robot)
    query = query.order_by(EXPOSED.c.start_ns.desc(), EXPOSED.c.record_id.desc()).limit(limit + 1)
    with followed(log) as connection:
        rows = connection.execute(query).all()
    found = [_time_of_exposure(row, withdrawn) for row in rows]
    found += [
        _time_of_shift(record, nil, withdrawn)
        for record, nil in _nil_reports(log, since_ns, until_ns)
        if robot is None or not nil.robot or nil.robot == robot
    ]
    found.sort(key=lambda one: (one.start_ns, one.record_id), reverse=True)
    return found[:limit], len(found) > limit


def find_time(log: IncidentLog, name: str) -> LoggedTime:
    """An entry of exposure or of a shift.

    Args:
        log: The log.
        name: Its station and number, or the id of its record.

    Raises:
        InputError: If there is none.
    """
    withdrawn = withdrawals(log)
    for record in _named(log, name):
        if isinstance(record.body, Nil):
            return _time_of_shift(record, record.body, withdrawn)
        if isinstance(record.body, Exposure):
            # What several stations logged is listed as one of them has it.
            with followed(log) as connection:
                query = select(EXPOSED).where(EXPOSED.c.record_id == record.record_id)
                return _time_of_exposure(connection.execute(query).one(), withdrawn)
    raise InputError(
        f"no hours and no shift {name!r:.80} in this log; `robo-eval incidents exposure --times`"
        " has them"
    )


def _named(log: IncidentLog, name: str) -> list[Record]:
    """Records of an id, of which other stations may have some, or the one with a number."""
    query = select(RECORDS.c.content).where(RECORDS.c.record_id == name)
    if place := place_of(name):
        query = select(RECORDS.c.content).where(
            RECORDS.c.station == place[0], RECORDS.c.sequence == place[1]
        )
    with log.database.reading() as connection:
        contents = connection.execute(query.order_by(RECORDS.c.station)).scalars().all()
    return [record_of(content, where=log.name) for content in contents]


def _time_of_exposure(row: Any, withdrawn: Mapping[str, Record]) -> LoggedTime:  # noqa: ANN401
    return LoggedTime(
        record_id=row.record_id,
        name=f"{row.station}/{row.sequence}",
        kind=Exposure.kind,
        by=row.by,
        robot=row.robot,
        side=Side(row.side),
        start_ns=row.start_ns,
        end_ns=row.end_ns,
        what=", ".join(filter(None, (row.mode, row.task))),
        **_taken_back(withdrawn.get(row.record_id)),
    )


def _time_of_shift(record: Record, nil: Nil, withdrawn: Mapping[str, Record]) -> LoggedTime:
    return LoggedTime(
        record_id=record.record_id,
        name=f"{record.station}/{record.sequence}",
        kind=Nil.kind,
        by=record.by,
        robot=nil.robot or None,
        side=nil.side,
        start_ns=nil.start_ns,
        end_ns=nil.end_ns,
        what=nil.note,
        **_taken_back(withdrawn.get(record.record_id)),
    )


def _taken_back(withdrawal: Record | None) -> dict[str, str | None]:
    if withdrawal is None or not isinstance(withdrawal.body, Withdrawal):
        return {"withdrawn_by": None, "reason": None}
    return {"withdrawn_by": withdrawal.by, "reason": withdrawal.body.reason}
