"""Whether the tables that lists are read from say what the records say."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from sqlalchemy import Column, Connection, func, or_, select

from robo_eval_incidents.bodies import Exposure, Report
from robo_eval_incidents.database import chunks
from robo_eval_incidents.followed import followed_until
from robo_eval_incidents.listed import Row, Said, exposed_row, first_row, incident_row
from robo_eval_incidents.log import heads_of, incidents_in
from robo_eval_incidents.schema import EXPOSED, PAGE, RECORDS

_TABLES: Final = {Report.kind: PAGE, Exposure.kind: EXPOSED}
"""The list of what records of some kinds say."""
_BATCH: Final = 2_000
"""Records that are looked at at once."""
_SOME: Final = 100
"""Rows that are named before it is enough."""


def differences(connection: Connection, name: str) -> Iterator[str]:
    """Where the tables say something else than the records they have followed.

    Args:
        connection: A transaction on the log.
        name: Of the log, for messages.
    """
    until = followed_until(connection)
    heads = {station: head.sequence for station, head in heads_of(connection).items()}
    if any(name not in heads or number > heads[name] for name, number in until.items()):
        return  # of another copy of the log; the next list makes them anew
    changed, newer = _touched(connection, until)
    told = changed | newer
    hours = _Hours(several=changed)
    seen: dict[str, set[str]] = {kind: set() for kind in _TABLES}
    for said, row in _beside(connection):
        if row is not None:
            seen[said["kind"]].add(said["record_id"])
        if said["sequence"] > until.get(said["station"], 0):
            continue
        if said["kind"] == Exposure.kind:
            hours.compare(said, row)
        elif said["record_id"] not in told and (wanted := first_row(said)) != row:
            yield _difference(said, wanted, row)
    yield from _changed_differences(connection, name, sorted(changed - newer))
    yield from hours.differences()
    for kind, table in _TABLES.items():
        for unknown in _unfounded(connection, next(iter(table.primary_key)), seen[kind]):
            yield f"the lists show {unknown}, of which there is no {kind}"


def _touched(connection: Connection, until: Mapping[str, int]) -> tuple[set[str], set[str]]:
    """What is told by more than one record: all of them followed, and some of them not yet."""
    columns = (RECORDS.c.about, RECORDS.c.station, RECORDS.c.sequence)
    ids = select(RECORDS.c.record_id).group_by(RECORDS.c.record_id).having(func.count() > 1)
    changed: set[str] = set()
    newer: set[str] = set()
    for query in (
        select(*columns).where(RECORDS.c.about.isnot(None)),
        select(RECORDS.c.record_id, *columns[1:]).where(RECORDS.c.record_id.in_(ids)),
    ):
        for told, station, sequence in connection.execute(query):
            (changed if sequence <= until.get(station, 0) else newer).add(told)
    return changed, newer


@dataclass(slots=True)
class _Hours:
    """Whether exposure is listed as recorded; `several` are what several stations recorded."""

    several: set[str]
    right: set[str] = field(default_factory=set)
    wrong: list[tuple[str, str]] = field(default_factory=list)

    def compare(self, said: Said, row: Row | None) -> None:
        """Look at a record and its row."""
        record_id = said["record_id"]
        wanted = exposed_row(said)
        if wanted != row:
            self.wrong.append((record_id, _difference(said, wanted, row)))
        elif record_id in self.several:
            self.right.add(record_id)

    def differences(self) -> Iterator[str]:
        """What is wrong; of an episode that two stations recorded, either may be listed."""
        yield from (what for record_id, what in self.wrong if record_id not in self.right)


def _unfounded(connection: Connection, key: Column[str], seen: set[str]) -> list[str]:
    """Rows of a list that are no record's."""
    if connection.execute(select(func.count()).select_from(key.table)).scalar() == len(seen):
        return []
    listed = connection.execute(select(key).order_by(key)).scalars()
    return list(islice((name for name in listed if name not in seen), _SOME))


def _beside(connection: Connection) -> Iterator[tuple[Said, Row | None]]:
    """What reports and exposure say, each with its row of the lists; None if it has none."""
    # One pass for both: reading the records is what costs.
    kinds = [RECORDS.c.content.contains(f'"kind":"{kind}"') for kind in _TABLES]
    query = (
        select(RECORDS.c.number, RECORDS.c.content, PAGE, EXPOSED)
        .join(PAGE, PAGE.c.incident_id == RECORDS.c.record_id, isouter=True)
        .join(EXPOSED, EXPOSED.c.record_id == RECORDS.c.record_id, isouter=True)
        .where(or_(*kinds))
        .order_by(RECORDS.c.number)
        .limit(_BATCH)
    )
    names = {kind: list(table.columns.keys()) for kind, table in _TABLES.items()}
    after = None
    while rows := connection.execute(
        query if after is None else query.where(RECORDS.c.number > after)
    ).fetchall():
        after = rows[-1][0]
        for _, content, *cells in rows:
            said = json.loads(content)
            kind = said["kind"]
            if kind in _TABLES:
                own = (
                    cells[: len(PAGE.columns)]
                    if kind == Report.kind
                    else cells[-len(EXPOSED.columns) :]
                )
                yield said, None if own[0] is None else dict(zip(names[kind], own, strict=True))


def _changed_differences(connection: Connection, name: str, ids: Sequence[str]) -> Iterator[str]:
    for chunk in chunks(ids):
        query = select(PAGE).where(PAGE.c.incident_id.in_(chunk))
        rows = {row["incident_id"]: dict(row) for row in connection.execute(query).mappings()}
        for wanted in map(incident_row, incidents_in(connection, name, chunk)):
            row = rows.get(wanted["incident_id"])
            if row != wanted:
                yield _difference(wanted, wanted, row)


def _difference(said: Said, wanted: Row, row: Row | None) -> str:
    place = f"{said['station']}/{said['sequence']}"
    if row is None:
        return f"{place}: is left out of the lists"
    names = [name for name in wanted if wanted[name] != row[name]]
    return f"{place}: the lists show another {', '.join(names)} than the records say"
