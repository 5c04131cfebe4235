"""Lists of incidents, a page at a time, from tables that follow the records."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Select, func, select, tuple_

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval_incidents.bodies import LATEST_NS
from robo_eval_incidents.followed import followed
from robo_eval_incidents.listed import folded
from robo_eval_incidents.log import IncidentLog
from robo_eval_incidents.schema import PAGE
from robo_eval_incidents.taxonomy import Category, Engagement, Severity, Status
from robo_eval_incidents.times import exposed_robots

_SHOWN: Final = tuple(column for column in PAGE.c if column is not PAGE.c.words)
_CURSOR: Final = re.compile(r"([0-9]{1,19})~([0-9a-f-]{36})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which incidents are asked for; None for any.

    Attributes:
        side: Side.
        robot: Robot.
        severity: Severity.
        category: Category.
        status: Status.
        text: Part of the description, in any case.
        since_ns: Happened at this time or later, UTC.
        until_ns: Happened before this time, UTC.
        episode_id: Episode.
    """

    side: Side | None = None
    robot: str | None = None
    severity: Severity | None = None
    category: Category | None = None
    status: Status | None = None
    text: str | None = None
    since_ns: int | None = None
    until_ns: int | None = None
    episode_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRow:
    """An incident in a list.

    Attributes:
        incident_id: Its id.
        station: Station it was filed at.
        sequence: Number of its report there.
        happened_ns: When it happened, UTC.
        robot: Robot.
        side: Side.
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
    """

    incident_id: str
    station: str
    sequence: int
    happened_ns: int
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

    @property
    def name(self) -> str:
        """What people call it: station and number."""
        return f"{self.station}/{self.sequence}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some incidents, newest first.

    Attributes:
        rows: The incidents.
        next: What to ask for the older ones with; None if there are none.
    """

    rows: tuple[PageRow, ...]
    next: str | None


# Asking ----------------------------------------------------------------------------------------


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
    query = filtered(select(*_SHOWN), wanted or Filter())
    place = tuple_(PAGE.c.happened_ns, PAGE.c.incident_id)
    if after is not None:
        found = _CURSOR.fullmatch(after)
        if found is None or int(found[1]) > LATEST_NS:
            raise InputError(f"after: {after!r:.60} is not what a page gave as its next")
        query = query.where(place < (int(found[1]), found[2]))
    query = query.order_by(PAGE.c.happened_ns.desc(), PAGE.c.incident_id.desc()).limit(limit + 1)
    with followed(log) as connection:
        found_rows = [_row(row) for row in connection.execute(query).mappings()]
    rows = tuple(found_rows[:limit])
    last = rows[-1] if len(found_rows) > limit else None
    return Page(rows=rows, next=None if last is None else f"{last.happened_ns}~{last.incident_id}")


def tally(log: IncidentLog, wanted: Filter | None = None) -> dict[tuple[str, str], int]:
    """How many incidents count, by side and by the severity they count at."""
    columns = (PAGE.c.side, PAGE.c.counted_severity)
    query = filtered(select(*columns, func.count()), wanted or Filter())
    with followed(log) as connection:
        rows = connection.execute(query.where(PAGE.c.counts == 1).group_by(*columns))
        return {(side, severity): count for side, severity, count in rows}


def robots(log: IncidentLog) -> list[str]:
    """Every robot that incidents or hours are of."""
    with followed(log) as connection:
        found = set(connection.execute(select(PAGE.c.robot).distinct()).scalars())
    return sorted(found | exposed_robots(log))


def filtered(query: Select[Any], wanted: Filter) -> Select[Any]:
    """A query of the table of incidents, for those only that are asked for."""
    for name in ("side", "robot", "severity", "category", "status", "episode_id"):
        value = getattr(wanted, name)
        if value is not None:
            # A search reads the index that has words, not that of this column, which has none.
            column = PAGE.c[name].concat("") if wanted.text else PAGE.c[name]
            query = query.where(column == str(value))
    if wanted.since_ns is not None:
        query = query.where(PAGE.c.happened_ns >= wanted.since_ns)
    if wanted.until_ns is not None:
        query = query.where(PAGE.c.happened_ns < wanted.until_ns)
    if wanted.text:
        query = query.where(PAGE.c.words.contains(folded(wanted.text), autoescape=True))
    return query


def _row(row: Any) -> PageRow:  # noqa: ANN401 - a row of the table
    return PageRow(
        **{
            **row,
            "side": Side(row["side"]),
            "severity": Severity(row["severity"]),
            "counted_severity": Severity(row["counted_severity"]),
            "category": Category(row["category"]),
            "status": Status(row["status"]),
            "engagement": Engagement(row["engagement"]),
            "counts": bool(row["counts"]),
        }
    )
