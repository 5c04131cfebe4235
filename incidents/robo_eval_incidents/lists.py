"""What the lists of incidents are asked for: some of them, how many there are, and what is left."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from sqlalchemy import Select, case, func, or_, select, tuple_

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval.core.names import person_key, unknown_name
from robo_eval_incidents.database import IncidentLogError
from robo_eval_incidents.kinds import Exposure
from robo_eval_incidents.log import IncidentLog
from robo_eval_incidents.rows import Listed, folded
from robo_eval_incidents.rows import put_rows as put_rows
from robo_eval_incidents.rows import rows_of as rows_of
from robo_eval_incidents.schema import INCIDENTS, TIMES
from robo_eval_incidents.state import OPEN
from robo_eval_incidents.text import LATEST_NS, span_of
from robo_eval_incidents.words import Category, Severity, Status

_CURSOR: Final = re.compile(r"([0-9]{1,19})~([0-9a-f-]{36})")


# Lists of incidents ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which incidents are asked for: None asks for any, several words for any one of them.

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
        return [Listed.of(dict(row)) for row in rows]
    except (KeyError, TypeError, ValueError) as err:
        raise IncidentLogError(
            f"{log.name}: the lists hold what no record says; `robo-eval verify` says more"
        ) from err


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
    found = row.as_dict()
    for step, told in zip(row.steps, found["steps"], strict=True):
        told["overdue_days"] = overdue_days(step.due, today)
    return found
