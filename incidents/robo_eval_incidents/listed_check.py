"""Whether the tables that lists are read from say what the records say."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from sqlalchemy import Column, Connection, Table, func, or_, select

from robo_eval_incidents.bodies import Report
from robo_eval_incidents.followed import followed_until, incident_rows
from robo_eval_incidents.listed import BY_RECORD, Row, Said, first_row
from robo_eval_incidents.log import heads_of
from robo_eval_incidents.schema import PAGE, RECORDS

_KINDS: Final = (Report.kind, *BY_RECORD)
"""What there are lists of."""
_BATCH: Final = 2_000
"""Records that are looked at at once."""
_CHUNK: Final = 400
"""Names in one query."""
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
    times = _Times(several=changed)
    seen: dict[str, set[str]] = {kind: set() for kind in _KINDS}
    for said, row in _beside(connection):
        if row is not None:
            seen[said["kind"]].add(said["record_id"])
        if said["sequence"] > until.get(said["station"], 0):
            continue
        if said["kind"] != Report.kind:
            times.compare(said, row)
        elif said["record_id"] not in told and (wanted := first_row(said)) != row:
            yield _difference(said, wanted, row)
    yield from _changed_differences(connection, name, sorted(changed - newer))
    yield from times.differences()
    for kind, known in seen.items():
        for unknown in _unfounded(connection, _key(_table(kind)), known):
            yield f"the lists show {unknown}, of which there is no {kind}"


def _table(kind: str) -> Table:
    return PAGE if kind == Report.kind else BY_RECORD[kind][0]


def _key(table: Table) -> Column[str]:
    return next(iter(table.primary_key))


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
class _Times:
    """Whether times are listed as recorded; `several` are what several stations recorded."""

    several: set[str]
    right: set[str] = field(default_factory=set)
    wrong: list[tuple[str, str]] = field(default_factory=list)

    def compare(self, said: Said, row: Row | None) -> None:
        """Look at a record and its row."""
        record_id = said["record_id"]
        wanted = BY_RECORD[said["kind"]][1](said)
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
    """What is listed of what records say, each with its row; None if it has none."""
    # Reading the records is what costs: one pass, and with reports, which are most, their rows.
    query = (
        select(RECORDS.c.number, RECORDS.c.content, PAGE)
        .join(PAGE, PAGE.c.incident_id == RECORDS.c.record_id, isouter=True)
        .where(or_(*(RECORDS.c.content.contains(f'"kind":"{kind}"') for kind in _KINDS)))
        .order_by(RECORDS.c.number)
        .limit(_BATCH)
    )
    names = list(PAGE.columns.keys())
    after = None
    while rows := connection.execute(
        query if after is None else query.where(RECORDS.c.number > after)
    ).fetchall():
        after = rows[-1][0]
        times: dict[str, list[Said]] = defaultdict(list)
        for _, content, *cells in rows:
            said = json.loads(content)
            if said["kind"] == Report.kind:
                yield said, None if cells[0] is None else dict(zip(names, cells, strict=True))
            elif said["kind"] in BY_RECORD:
                times[said["kind"]].append(said)
        for kind, own in times.items():
            yield from _with_rows(connection, _table(kind), own)


def _with_rows(
    connection: Connection, table: Table, records: Sequence[Said]
) -> Iterator[tuple[Said, Row | None]]:
    for start in range(0, len(records), _CHUNK):
        chunk = records[start : start + _CHUNK]
        rows = _rows(connection, table, [said["record_id"] for said in chunk])
        yield from ((said, rows.get(said["record_id"])) for said in chunk)


def _rows(connection: Connection, table: Table, ids: Sequence[str]) -> dict[str, Row]:
    key = _key(table)
    found = connection.execute(select(table).where(key.in_(ids))).mappings()
    return {row[key.name]: dict(row) for row in found}


def _changed_differences(connection: Connection, name: str, ids: Sequence[str]) -> Iterator[str]:
    for start in range(0, len(ids), _CHUNK):
        chunk = ids[start : start + _CHUNK]
        rows = _rows(connection, PAGE, chunk)
        for wanted in incident_rows(connection, name, chunk):
            row = rows.get(wanted["incident_id"])
            if row != wanted:
                yield _difference(wanted, wanted, row)


def _difference(said: Said, wanted: Row, row: Row | None) -> str:
    place = f"{said['station']}/{said['sequence']}"
    if row is None:
        return f"{place}: is left out of the lists"
    names = [name for name in wanted if wanted[name] != row[name]]
    return f"{place}: the lists show another {', '.join(names)} than the records say"
