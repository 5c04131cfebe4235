"""The rows of the lists that follow the records: how they are written, and what one says."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final

from pydantic import Field, TypeAdapter
from sqlalchemy import Connection, Table, bindparam
from sqlalchemy.dialects import postgresql, sqlite

from robo_eval.core.canonical import canonical_json
from robo_eval.core.kinds import Side
from robo_eval.log.sql import text_of
from robo_eval_incidents.kinds import Exposure, Nil, Withdrawal
from robo_eval_incidents.record import Record
from robo_eval_incidents.schema import INCIDENTS, TIMES
from robo_eval_incidents.state import Incident, Step, incident_of
from robo_eval_incidents.text import span_text
from robo_eval_incidents.words import Category, Engagement, Severity, Status

Row = dict[str, Any]
HOUR_NS: Final = 3_600 * 10**9
_TIMES: Final = (Exposure, Nil)
_SHOWN: Final = 300
"""Characters of a description in a list."""


def rows_of(records: Sequence[Record]) -> Iterator[tuple[Table, Row]]:
    """Rows of one subject.

    Args:
        records: All records of it, in any order.
    """
    about = [one for one in records if one.incident_id is not None]
    if about and (incident := incident_of(about)) is not None:
        yield INCIDENTS, _incident_row(incident)
        if len(about) == len(records):
            return
    # What several stations logged is listed as the first of them has it.
    logged = [one for one in records if isinstance(one.body, _TIMES)]
    if logged:
        back = [one for one in records if isinstance(one.body, Withdrawal)]
        yield TIMES, _time_row(min(logged, key=_place), min(back, key=_place, default=None))


def _place(record: Record) -> tuple[str, int]:
    return record.station, record.sequence


def put_rows(connection: Connection, rows: Iterable[tuple[Table, Row]]) -> None:
    """Put rows in the place of those of the same subjects."""
    driver: Any = connection.connection.driver_connection
    for table, row in rows:
        driver.execute(upsert(table, is_server=connection.dialect.name == "postgresql"), row)


@cache
def upsert(table: Table, *, is_server: bool) -> str:
    """What puts a row into a table, in the place of the one with the same key."""
    insert: Any = postgresql.insert if is_server else sqlite.insert
    keys = table.primary_key.columns.keys()
    cells = {one.name: bindparam(one.name, type_=one.type) for one in table.columns}
    statement = insert(table).values(cells)
    new = {name: statement.excluded[name] for name in cells if name not in keys}
    statement = statement.on_conflict_do_update(index_elements=keys, set_=new)
    return text_of(statement, is_server=is_server)


# Incidents -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """An incident in a list.

    Attributes:
        incident_id: Its id.
        station: Station it was filed at.
        sequence: Number of its report there.
        happened_ns: When it counts as having happened, UTC.
        latest_ns: The last instant at which it can have: another one if only a day is known.
        robot: Robot it counts for.
        side: Side it counts on.
        severity: How bad it is.
        counted_severity: How bad it counts.
        category: What kind of event.
        status: How far it has got.
        engagement: Who was in control.
        episode_id: Episode.
        policy: Policy.
        by: Who reported it.
        description: Beginning of what happened.
        counts: Whether it counts.
        steps: What comes next, what is due first before the rest.
    """

    incident_id: Annotated[str, Field(alias="id")]
    station: str
    sequence: int
    happened_ns: int
    latest_ns: int
    robot: str
    side: Side
    severity: Severity
    counted_severity: Severity
    category: Category
    status: Status
    engagement: Engagement
    episode_id: str | None
    policy: str | None
    by: str
    description: str
    counts: bool
    steps: tuple[Step, ...]

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Listed:
        """What a row says.

        Raises:
            ValueError: If it is none of a list.
        """
        return _LISTED.validate_python({**row, **json.loads(row["state"])})

    @property
    def name(self) -> str:
        """What people call it: station and number."""
        return f"{self.station}/{self.sequence}"

    @property
    def time(self) -> str:
        """When it counts as having happened, as far as that is known; see `text.span_of`."""
        return span_text(self.happened_ns, self.until_ns)

    @property
    def until_ns(self) -> int | None:
        """Where the time ends in which it happened; None if that is an instant."""
        return None if self.latest_ns == self.happened_ns else self.latest_ns + 1

    def as_dict(self) -> dict[str, Any]:
        """The incident as JSON has it."""
        return {"name": self.name, "time": self.time, **_LISTED.dump_python(self, mode="json")}


_LISTED: Final = TypeAdapter(Listed)
_STEPS: Final = TypeAdapter(list[Step])


def _incident_row(incident: Incident) -> Row:
    record, report, counted = incident.record, incident.report, incident.counted
    status, steps = incident.status, incident.steps()
    state = {
        "by": record.by,
        "description": report.description[:_SHOWN],
        "engagement": report.engagement.value,
        "policy": counted.policy,
        "steps": _STEPS.dump_python(steps, mode="json", exclude_defaults=True),
    }
    days = [step.due.isoformat() for step in steps if step.due is not None]
    return {
        "id": incident.incident_id,
        "station": record.station,
        "sequence": record.sequence,
        "happened_ns": counted.happened_ns,
        "latest_ns": counted.latest_ns,
        "robot": counted.robot,
        "side": counted.side.value,
        "severity": incident.severity.value,
        "counted_severity": incident.counted_severity.value,
        "rank": incident.counted_severity.rank,
        "highest_severity": incident.highest_severity.value,
        "category": incident.category.value,
        "status": status.value,
        "counts": int(status is not Status.DISMISSED),
        "episode_id": counted.episode_id,
        "due": min(days, default=None),
        "words": folded(report.description),
        "state": canonical_json(state).decode(),
    }


def folded(text: str) -> str:
    """A text as it is searched in: upper and lower case are one."""
    return text.casefold()


# Logged times ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedTime:
    """Hours, or a shift without incidents, as somebody logged them.

    Attributes:
        record_id: The record of it.
        station: Station it was logged at.
        sequence: Number of its record there.
        kind: `exposure` or `nil`.
        by: Who logged it.
        robot: Robot; None for all of the station.
        side: Side.
        mode: Who was in control; `unknown` for all modes together, and of a shift.
        task: Task of hours, empty if not known; of a shift its note.
        start_ns: Start, UTC.
        end_ns: End, UTC.
        total_ns: How long within that time, -1 if nobody said; None if all of it.
        km: How far; None if nobody said.
        withdrawn_by: Who withdrew it; None if it counts.
        reason: Why; None if it counts.
        robots: Robots it speaks for: its own, or those that whoever asked names for all.
    """

    record_id: Annotated[str, Field(alias="id")]
    station: str
    sequence: int
    kind: str
    by: str
    robot: str | None
    side: Side
    mode: Engagement
    task: Annotated[str, Field(alias="what")]
    start_ns: int
    end_ns: int
    total_ns: int | None
    km: float | None
    withdrawn_by: str | None = None
    reason: str | None = None
    robots: frozenset[str] = frozenset()

    @classmethod
    def of(cls, row: Mapping[str, Any], of_all: Iterable[str] = ()) -> LoggedTime:
        """What a row says.

        Args:
            row: The row.
            of_all: Robots it speaks for if it names none.

        Raises:
            ValueError: If it is none of a list.
        """
        robots = {row["robot"]} if row["robot"] else of_all
        mode = row["mode"] or Engagement.UNKNOWN
        return _TIME.validate_python({**row, "mode": mode, "robots": frozenset(robots)})

    @property
    def name(self) -> str:
        """What people call it: station and number."""
        return f"{self.station}/{self.sequence}"

    @property
    def ns(self) -> int | None:
        """How long a total is; see `known_ns`."""
        return known_ns(self)

    @property
    def what(self) -> str:
        """Mode, task and amounts of hours, the note of a shift, in words."""
        amounts = []
        if self.total_ns is not None:
            hours = None if self.ns is None else f"{self.ns / HOUR_NS:,.6g} h in that time"
            amounts.append(hours or "hours not known")
        if self.km is not None:
            amounts.append(f"{self.km:,.10g} km")
        mode = self.mode if self.kind == Exposure.kind else ""
        return ", ".join(filter(None, (mode, self.task, *amounts)))

    @property
    def bodies(self) -> frozenset[tuple[str, Side]]:
        """Robots it speaks for, on its side."""
        return frozenset((robot, self.side) for robot in self.robots)

    def overlaps(self, other: LoggedTime) -> bool:
        """Whether two periods have time in common."""
        return self.start_ns < other.end_ns and other.start_ns < self.end_ns

    def as_dict(self) -> dict[str, Any]:
        """The time as JSON has it."""
        names = ("record_id", "name", "kind", "by", "robot", "side", "start_ns", "end_ns", "what",
                 "withdrawn_by", "reason")  # fmt: skip
        return {name: getattr(self, name) for name in names}


_TIME: Final = TypeAdapter(LoggedTime)


def known_ns(row: Any) -> int | None:
    """How long a total is; None if nobody said.

    Logs of older programs have 0 where only kilometres were given: nobody drives in no time.
    """
    return None if row.total_ns < 0 or (not row.total_ns and row.km) else int(row.total_ns)


def _time_row(logged: Record, withdrawal: Record | None) -> Row:
    body = logged.body
    assert isinstance(body, _TIMES)
    hours = body if isinstance(body, Exposure) else None
    taken = None if withdrawal is None else withdrawal.body
    return {
        "id": logged.record_id,
        "station": logged.station,
        "sequence": logged.sequence,
        "kind": logged.kind,
        "by": logged.by,
        "robot": body.robot or None,
        "side": body.side.value,
        "mode": hours and hours.mode.value,
        "what": body.task if isinstance(body, Exposure) else body.note,
        "episode_id": hours and hours.episode_id,
        "trial": hours and hours.trial,
        "start_ns": body.start_ns,
        "end_ns": body.end_ns,
        "total_ns": hours and hours.total_ns,
        "km": hours and hours.km,
        "withdrawn_by": withdrawal and withdrawal.by,
        "reason": taken.reason if isinstance(taken, Withdrawal) else None,
    }
