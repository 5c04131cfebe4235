"""Times that were logged: exposure, and shifts without incidents; withdrawn ones do not count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, Table, select

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval_incidents.followed import followed
from robo_eval_incidents.log import IncidentLog
from robo_eval_incidents.schema import EXPOSED, RECORDS, SHIFTS, WITHDRAWN
from robo_eval_incidents.spans import Span
from robo_eval_incidents.taxonomy import Engagement

_DIGITS: Final = 15
"""No station has written so many records that their number is longer."""


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
        robot: Robot; None for all of the station.
        side: Side.
        start_ns: Begin, UTC.
        end_ns: End, UTC.
        note: What was said with it.
    """

    name: str
    by: str
    robot: str | None
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
        return self.robot is None or robot in (None, self.robot)


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


def exposed(
    log: IncidentLog, since_ns: int | None = None, until_ns: int | None = None
) -> list[Exposed]:
    """Times of exposure that touch a period, by their start.

    Args:
        log: The log.
        since_ns: Begin of the period, UTC; None for all before.
        until_ns: End of the period, UTC; None for all after.
    """
    names = Exposed.__dataclass_fields__
    query = select(*(EXPOSED.c[name] for name in names))
    query = _in_period(EXPOSED, still_counting(EXPOSED, query), since_ns, until_ns)
    with followed(log) as connection:
        rows = connection.execute(query).mappings().all()
    return [
        Exposed(**{**row, "side": Side(row["side"]), "mode": Engagement(row["mode"])})
        for row in rows
    ]


def shifts(
    log: IncidentLog, since_ns: int | None = None, until_ns: int | None = None
) -> list[Shift]:
    """Shifts without incidents that touch a period, by their begin; see `exposed`."""
    query = _in_period(SHIFTS, still_counting(SHIFTS, select(SHIFTS)), since_ns, until_ns)
    with followed(log) as connection:
        rows = connection.execute(query).all()
    return [
        Shift(
            name=f"{row.station}/{row.sequence}",
            by=row.by,
            robot=row.robot,
            side=Side(row.side),
            start_ns=row.start_ns,
            end_ns=row.end_ns,
            note=row.note,
        )
        for row in rows
    ]


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
    found: list[Row[Any]] = []
    with followed(log) as connection:
        for table in (EXPOSED, SHIFTS):
            query = _in_period(table, select(table), since_ns, until_ns)
            if robot is not None:
                query = query.where((table.c.robot == robot) | table.c.robot.is_(None))
            query = query.order_by(None).order_by(table.c.start_ns.desc(), table.c.record_id.desc())
            found += connection.execute(query.limit(limit + 1)).all()
        found.sort(key=lambda row: (row.start_ns, row.record_id), reverse=True)
        return _entries(connection, found[:limit]), len(found) > limit


def find_time(log: IncidentLog, name: str) -> LoggedTime:
    """An entry of exposure or of a shift.

    Args:
        log: The log.
        name: Its station and number, or the id of its record.

    Raises:
        InputError: If there is none.
    """
    station, _, number = name.rpartition("/")
    found: list[Row[Any]] = []
    with followed(log) as connection:
        for table in (EXPOSED, SHIFTS):
            query = select(table).where(table.c.record_id == name)
            # What several stations logged is listed as one of them has it.
            if number.isascii() and number.isdecimal() and len(number) <= _DIGITS:
                ids = select(RECORDS.c.record_id).where(
                    RECORDS.c.station == station, RECORDS.c.sequence == int(number)
                )
                query = select(table).where(table.c.record_id.in_(ids))
            found += connection.execute(query).all()
        if not found:
            raise InputError(
                f"no hours and no shift {name!r:.80} in this log; `robo-eval incidents exposure"
                " --times` has them"
            )
        return _entries(connection, found)[0]


def _entries(connection: Connection, rows: Sequence[Row[Any]]) -> list[LoggedTime]:
    """Entries with how they were withdrawn, if they were."""
    query = select(WITHDRAWN).where(WITHDRAWN.c.withdrawn_id.in_([row.record_id for row in rows]))
    withdrawn = connection.execute(query.order_by(WITHDRAWN.c.record_id.desc()))
    by_id = {row.withdrawn_id: row for row in withdrawn}
    return [_entry(row, by_id.get(row.record_id)) for row in rows]


def _entry(row: Row[Any], withdrawal: Row[Any] | None) -> LoggedTime:
    is_shift = hasattr(row, "note")
    what = row.note if is_shift else ", ".join(filter(None, (row.mode, row.task)))
    return LoggedTime(
        record_id=row.record_id,
        name=f"{row.station}/{row.sequence}",
        kind="nil" if is_shift else "exposure",
        by=row.by,
        robot=row.robot,
        side=Side(row.side),
        start_ns=row.start_ns,
        end_ns=row.end_ns,
        what=what,
        withdrawn_by=None if withdrawal is None else withdrawal.by,
        reason=None if withdrawal is None else withdrawal.reason,
    )


def still_counting(table: Table, query: Select[Any]) -> Select[Any]:
    """A query of exposure or shifts, without those that were withdrawn."""
    return query.where(table.c.record_id.not_in(select(WITHDRAWN.c.withdrawn_id)))


def _in_period(
    table: Table, query: Select[Any], since_ns: int | None, until_ns: int | None
) -> Select[Any]:
    if since_ns is not None:
        query = query.where(table.c.end_ns > since_ns)
    if until_ns is not None:
        query = query.where(table.c.start_ns < until_ns)
    return query.order_by(table.c.start_ns, table.c.record_id)
