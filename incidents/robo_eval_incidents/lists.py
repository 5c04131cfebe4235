"""The lists that follow the records: how each incident stands, logged times, and what is left."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, date, datetime
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy import Connection, Select, Table, bindparam, case, func, or_, select, tuple_
from sqlalchemy.dialects import postgresql, sqlite

from robo_eval.core.canonical import canonical_json
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval.core.names import person_key, unknown_name
from robo_eval.log.sql import text_of
from robo_eval_incidents.database import IncidentLogError
from robo_eval_incidents.kinds import Exposure, Nil, Withdrawal
from robo_eval_incidents.record import Record
from robo_eval_incidents.schema import INCIDENTS, TIMES
from robo_eval_incidents.state import OPEN, Incident, Step, incident_of
from robo_eval_incidents.text import LATEST_NS, span_of, span_text
from robo_eval_incidents.words import Category, Engagement, Severity, Status

if TYPE_CHECKING:
    from robo_eval_incidents.log import IncidentLog

Row = dict[str, Any]
_TIMES: Final = (Exposure, Nil)
_SHOWN: Final = 300
"""Characters of a description in a list."""
_STEP: Final = tuple(one.name for one in fields(Step))
_CURSOR: Final = re.compile(r"([0-9]{1,19})~([0-9a-f-]{36})")


# Rows of what records say ----------------------------------------------------------------------


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


def _incident_row(incident: Incident) -> Row:
    record, report, counted = incident.record, incident.report, incident.counted
    status, steps = incident.status, incident.steps()
    state = {
        "by": record.by,
        "description": report.description[:_SHOWN],
        "engagement": report.engagement.value,
        "policy": counted.policy,
        "steps": [_plain_step(step) for step in steps],
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


def _plain_step(step: Step) -> dict[str, Any]:
    found = {name: value for name in _STEP if (value := getattr(step, name))}
    return found | ({"due": step.due.isoformat()} if step.due else {})


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


def folded(text: str) -> str:
    """A text as it is searched in: upper and lower case are one."""
    return text.casefold()


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


# Lists of incidents ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which incidents are asked for; None for any, and of several words each will do.

    Attributes:
        side: Side.
        robot: Robot.
        severity: Severity that it has, or at which it counts.
        counted: Severity at which it counts.
        category: Category.
        status: Status.
        text: Part of the description, in any case.
        since_ns: Happened, or may have, at this time or later, UTC.
        until_ns: Happened, or may have, before this time, UTC.
        episode_id: Episode.
        is_sure: Whether only those are meant that happened in this time for sure.
    """

    side: Side | tuple[Side, ...] | None = None
    robot: str | tuple[str, ...] | None = None
    severity: Severity | tuple[Severity, ...] | None = None
    counted: Severity | None = None
    category: Category | tuple[Category, ...] | None = None
    status: Status | tuple[Status, ...] | None = None
    text: str | None = None
    since_ns: int | None = None
    until_ns: int | None = None
    episode_id: str | None = None
    is_sure: bool = False


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

    incident_id: str
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


class Page(NamedTuple):
    """Some incidents, newest first; `next` asks for the older ones, None if there are none."""

    rows: tuple[Listed, ...]
    next: str | None


def list_incidents(
    log: IncidentLog, wanted: Filter | None = None, *, after: str | None = None, limit: int = 50
) -> Page:
    """Incidents as they stand, newest first.

    Args:
        log: The log.
        wanted: Which; all if none is given.
        after: `next` of the page before.
        limit: How many at most.

    Raises:
        InputError: If `after` is none that a page gave.
    """
    query = filtered(select(INCIDENTS), wanted or Filter())
    if after is not None:
        found = _CURSOR.fullmatch(after)
        if found is None or int(found[1]) > LATEST_NS:
            raise InputError(f"after: {after!r:.60} is not what a page gave as its next")
        place = tuple_(INCIDENTS.c.happened_ns, INCIDENTS.c.id)
        query = query.where(place < (int(found[1]), found[2]))
    query = query.order_by(INCIDENTS.c.happened_ns.desc(), INCIDENTS.c.id.desc()).limit(limit + 1)
    rows = _listed(log, query)
    last = rows[limit - 1] if len(rows) > limit else None
    return Page(
        tuple(rows[:limit]), None if last is None else f"{last.happened_ns}~{last.incident_id}"
    )


def tally(
    log: IncidentLog, wanted: Filter | None = None
) -> dict[tuple[Side, Severity, Status], int]:
    """How many incidents count, by side, by the severity they count at, and by status."""
    columns = (INCIDENTS.c.side, INCIDENTS.c.counted_severity, INCIDENTS.c.status)
    query = filtered(select(*columns, func.count()), wanted or Filter())
    rows = log.database.rows(query.where(INCIDENTS.c.counts == 1).group_by(*columns))
    return {
        (Side(side), Severity(severity), Status(status)): count
        for side, severity, status, count in rows
    }


def categories(log: IncidentLog, wanted: Filter) -> list[tuple[Category, int]]:
    """How many incidents count of each category, most first."""
    query = filtered(select(INCIDENTS.c.category, func.count()), wanted)
    query = query.where(INCIDENTS.c.counts == 1).group_by(INCIDENTS.c.category)
    found = [(Category(name), count) for name, count in log.database.rows(query)]
    return sorted(found, key=lambda one: (-one[1], one[0]))


def undecided(log: IncidentLog, wanted: Filter) -> list[Listed]:
    """Incidents that count, and may have happened in a period or outside it."""
    first, last = INCIDENTS.c.happened_ns, INCIDENTS.c.latest_ns
    beyond = [] if wanted.since_ns is None else [first < wanted.since_ns]
    beyond += [] if wanted.until_ns is None else [last >= wanted.until_ns]
    if not beyond:
        return []
    query = filtered(select(INCIDENTS), wanted)
    query = query.where(INCIDENTS.c.counts == 1, last > first, or_(*beyond))
    return _listed(log, query.order_by(first, INCIDENTS.c.id))


def robots(log: IncidentLog) -> list[str]:
    """Every robot that incidents, or hours that count, are of."""
    hours = select(TIMES.c.robot).where(
        TIMES.c.kind == Exposure.kind, TIMES.c.withdrawn_by.is_(None)
    )
    named = (select(INCIDENTS.c.robot).distinct(), hours.distinct())
    return sorted({robot for query in named for (robot,) in log.database.rows(query)})


def check_robot(log: IncidentLog, *names: str | None) -> None:
    """Refuse robots that neither an incident nor hours are of; None is none.

    Raises:
        UnknownNameError: If there is no such robot.
    """
    given = [name for name in names if name is not None]
    known = robots(log) if given else []
    for name in given:
        if name not in known:
            raise unknown_name("robot", name, known)


WORDS: Final[Mapping[str, type[StrEnum]]] = {
    "side": Side, "severity": Severity, "category": Category, "status": Status,
}  # fmt: skip
"""Filters that take some words only."""
_FILTERED: Final = (
    ("side", "side"), ("robot", "robot"), ("severity", "severity", "counted_severity"),
    ("category", "category"), ("status", "status"), ("episode_id", "episode_id"),
)  # fmt: skip
"""Filters, and the columns of which one has to have the word."""


def filtered(query: Select[Any], wanted: Filter) -> Select[Any]:
    """A query of the table of incidents, for those only that are asked for."""
    for name, *columns in _FILTERED:
        value = getattr(wanted, name)
        if value is not None:
            words = [str(one) for one in (value if isinstance(value, tuple) else (value,))]
            # A search reads the index that has words, not that of these columns, which has none.
            asked = [INCIDENTS.c[one].concat("") if wanted.text else INCIDENTS.c[one]
                     for one in columns]  # fmt: skip
            query = query.where(or_(*(one.in_(words) for one in asked)))
    if wanted.counted is not None:
        query = query.where(INCIDENTS.c.counted_severity == wanted.counted.value)
    first, last = INCIDENTS.c.happened_ns, INCIDENTS.c.latest_ns
    if wanted.since_ns is not None:
        query = query.where((first if wanted.is_sure else last) >= wanted.since_ns)
    if wanted.until_ns is not None:
        query = query.where((last if wanted.is_sure else first) < wanted.until_ns)
    if wanted.text:
        query = query.where(INCIDENTS.c.words.contains(folded(wanted.text), autoescape=True))
    return query


def _listed(log: IncidentLog, query: Select[Any]) -> list[Listed]:
    with log.database.reading() as connection:
        rows = connection.execute(query).mappings().all()
    try:
        return [_of_row(dict(row)) for row in rows]
    except (KeyError, TypeError, ValueError) as err:
        raise IncidentLogError(
            f"{log.name}: the lists hold what no record says; `robo-eval verify` says more"
        ) from err


def _of_row(row: Mapping[str, Any]) -> Listed:
    state = json.loads(row["state"])
    return Listed(
        incident_id=row["id"],
        station=row["station"],
        sequence=row["sequence"],
        happened_ns=row["happened_ns"],
        latest_ns=row["latest_ns"],
        robot=row["robot"],
        side=Side(row["side"]),
        severity=Severity(row["severity"]),
        counted_severity=Severity(row["counted_severity"]),
        category=Category(row["category"]),
        status=Status(row["status"]),
        engagement=Engagement(state["engagement"]),
        episode_id=row["episode_id"],
        policy=state["policy"],
        by=state["by"],
        description=state["description"],
        counts=bool(row["counts"]),
        steps=tuple(_step_of(one) for one in state["steps"]),
    )


def _step_of(values: dict[str, Any]) -> Step:
    due = values.get("due")
    not_by = tuple(values.get("not_by", ()))
    return Step(**{**values, "not_by": not_by, "due": date.fromisoformat(due) if due else None})


# What is left to do ----------------------------------------------------------------------------


def utc_today() -> date:
    """The day by which it is decided what is overdue."""
    return datetime.now(UTC).date()


def overdue_days(due: date | None, today: date) -> int:
    """Whole days since something was due; 0 if its day is not over."""
    return 0 if due is None else max(0, (today - due).days)


@dataclass(frozen=True, slots=True)
class Todo:
    """Incidents that something is left to do about, and how many there are in all."""

    rows: list[Listed]
    count: int


def todo(
    log: IncidentLog,
    *,
    robot: str | None = None,
    owner: str | None = None,
    overdue: bool = False,
    today: date | None = None,
    after: int = 0,
    limit: int | None = None,
) -> Todo:
    """What is left to do: overdue first, then as bad as it counts, then the oldest.

    Args:
        log: The log.
        robot: Only incidents of this robot.
        owner: Only corrective actions of this person.
        overdue: Only corrective actions whose day is over.
        today: The day to compare with; the present one, UTC, if none is given.
        after: How many to leave out at the beginning.
        limit: How many at most; None for all.

    Raises:
        UnknownNameError: If the log knows no such robot, or nobody of that name owns an open
            action where others do.
    """
    check_robot(log, robot)
    today = today or utc_today()
    late = INCIDENTS.c.due < today.isoformat()
    query = select(INCIDENTS).where(INCIDENTS.c.status.in_([one.value for one in OPEN]))
    if robot is not None:
        query = query.where(INCIDENTS.c.robot == robot)
    if overdue and owner is None:
        query = query.where(late)
    ordered = query.order_by(
        case((late, 0), else_=1), INCIDENTS.c.rank.desc(), INCIDENTS.c.happened_ns, INCIDENTS.c.id
    )
    if owner is None and not overdue:
        # Whole incidents: the database turns the pages.
        page = ordered.offset(after) if limit is None else ordered.offset(after).limit(limit)
        with log.database.reading() as connection:
            count = connection.execute(query.with_only_columns(func.count())).scalar_one()
        return Todo([_in_order(row, today) for row in _listed(log, page)], count)
    found: list[Listed] = []
    owners: dict[str, str] = {}
    for row in _listed(log, ordered):
        steps = [step for step in row.steps if not overdue or overdue_days(step.due, today)]
        owners |= {person_key(one.owner): one.owner for one in row.steps if one.owner is not None}
        if owner is not None:
            steps = [
                one for one in steps if one.owner and person_key(one.owner) == person_key(owner)
            ]
        if steps:
            found.append(_in_order(replace(row, steps=tuple(steps)), today))
    if owner is not None and owners and person_key(owner) not in owners:
        raise unknown_name("owner", owner, sorted(owners.values()))
    # An incident that is overdue for another owner is not for this one.
    found.sort(key=lambda row: not overdue_days(row.steps[0].due, today))
    return Todo(found[after:][:limit], len(found))


def of_kinds(
    log: IncidentLog, kinds: Sequence[str], robot: str | None = None, since: date | None = None
) -> list[Listed]:
    """Incidents of real robots that count, of some severities and categories; oldest first.

    Args:
        log: The log.
        kinds: Severities at which they count, and categories.
        robot: Only those of this robot.
        since: Only those that may have happened on this day, UTC, or later.
    """
    begin = None if since is None else span_of(since.isoformat())[0]
    query = filtered(select(INCIDENTS), Filter(side=Side.REAL, robot=robot, since_ns=begin))
    columns = (INCIDENTS.c.counted_severity, INCIDENTS.c.category)
    query = query.where(INCIDENTS.c.counts == 1, or_(*(one.in_(kinds) for one in columns)))
    return _listed(log, query.order_by(INCIDENTS.c.happened_ns, INCIDENTS.c.id))


def _in_order(row: Listed, today: date) -> Listed:
    """With the steps that are overdue first."""
    steps = sorted(row.steps, key=lambda step: -overdue_days(step.due, today))
    return replace(row, steps=tuple(steps))


def row_dict(row: Listed, today: date) -> dict[str, Any]:
    """An incident in a list as JSON has it, with what comes next."""
    steps = [
        {**asdict(step), "due": step.due and step.due.isoformat(),
         "not_by": list(step.not_by), "overdue_days": overdue_days(step.due, today)}
        for step in row.steps
    ]  # fmt: skip
    return {"name": row.name, "time": row.time, **asdict(row), "steps": steps}
