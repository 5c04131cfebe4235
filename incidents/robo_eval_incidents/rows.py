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
        driver.execute(_upsert(table, is_server=connection.dialect.name == "postgresql"), row)


@cache
def _upsert(table: Table, *, is_server: bool) -> str:
    insert: Any = postgresql.insert if is_server else sqlite.insert
    names = [column.name for column in table.columns]
    cells = {name: bindparam(name, type_=table.c[name].type) for name in names}
    statement = insert(table).values(cells)
    new = {name: statement.excluded[name] for name in names if name != "id"}
    statement = statement.on_conflict_do_update(index_elements=["id"], set_=new)
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
