"""The tables that lists are read from: made from the records, and made to follow them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from sqlalchemy import Column, Connection, Table, create_engine, delete, func, or_, select
from sqlalchemy.dialects import postgresql, sqlite

from robo_eval.core.errors import InputError
from robo_eval_incidents.bodies import Exposure, Report, plain
from robo_eval_incidents.database import IncidentLogError, LostServerError
from robo_eval_incidents.incident import Incident, incident_of
from robo_eval_incidents.log import IncidentLog, heads_of
from robo_eval_incidents.record import Record, record_of
from robo_eval_incidents.schema import EXPOSED, METADATA, PAGE, PAGED, RECORDS
from robo_eval_incidents.taxonomy import Status, Via

_BATCH: Final = 2_000
"""Records that are taken into the tables at once."""
_CHUNK: Final = 400
"""Names in one query."""
_SHOWN: Final = 300
"""Characters of a description in a list."""
_LISTED: Final = (Report.kind, Exposure.kind)
"""What there are lists of."""
_SOME: Final = 100
"""Rows that are named before it is enough."""
_FOLLOW_LOCK: Final = 7_302_412
"""Advisory lock under which the tables are brought up to date: a number of our own."""


@contextmanager
def followed(log: IncidentLog) -> Iterator[Connection]:
    """A connection on which the tables are as new as the records."""
    if log.database.read_only or not _brought_up_to_date(log):
        with _in_memory(log) as connection:
            yield connection
        return
    with log.database.reading() as connection:
        yield connection


def _brought_up_to_date(log: IncidentLog) -> bool:
    """Whether the tables follow the records; not where a disk is full, which hides no incident."""
    while _is_behind(log):
        try:
            with log.database.writing() as connection:
                if log.database.is_server:
                    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_FOLLOW_LOCK})")
                _follow(connection, log)
        except LostServerError:
            raise
        except IncidentLogError:
            return False
    return True


@contextmanager
def _in_memory(log: IncidentLog) -> Iterator[Connection]:
    """Tables of its own, for a log that cannot be written."""
    engine = create_engine("sqlite://")
    METADATA.create_all(engine)
    with engine.connect() as connection:
        by_incident: dict[str, list[Record]] = defaultdict(list)
        for record in log.records():
            if record.incident_id is not None:
                by_incident[record.incident_id].append(record)
            elif isinstance(record.body, Exposure):
                _put(connection, EXPOSED, [_exposed_row(record.record_id, plain(record.body))])
        found = (incident_of(own) for own in by_incident.values())
        rows = [_page_row(incident) for incident in found if incident is not None]
        if rows:
            connection.execute(PAGE.insert(), rows)
        yield connection
    engine.dispose()


def _is_behind(log: IncidentLog) -> bool:
    with log.database.reading() as connection:
        heads = {name: head.sequence for name, head in heads_of(connection).items()}
        return heads != _paged(connection)


def _paged(connection: Connection) -> dict[str, int]:
    rows = connection.execute(select(PAGED))
    # Cells of another type are somebody else's work.
    return {
        row.station: row.sequence
        for row in rows
        if type(row.station) is str and type(row.sequence) is int
    }


def _follow(connection: Connection, log: IncidentLog) -> None:
    """Take in the next records of each station."""
    heads, paged = heads_of(connection), _paged(connection)
    if any(name not in heads or number > heads[name].sequence for name, number in paged.items()):
        # The records are those of an older copy: nothing here can be relied on.
        for table in (PAGE, EXPOSED, PAGED):
            connection.execute(delete(table))
        paged = {}
    changed: set[str] = set()
    for station, head in heads.items():
        after = paged.get(station, 0)
        if head.sequence > after:
            new = _next_records(connection, log, station, after)
            changed.update(record.incident_id for record in new if record.incident_id is not None)
            hours = [
                _exposed_row(record.record_id, plain(record.body))
                for record in new
                if isinstance(record.body, Exposure)
            ]
            _put(connection, EXPOSED, hours)
            _put(connection, PAGED, [{"station": station, "sequence": new[-1].sequence}])
    _put(connection, PAGE, _rows_of(connection, log.name, sorted(changed)))


def _next_records(
    connection: Connection, log: IncidentLog, station: str, after: int
) -> list[Record]:
    query = (
        select(RECORDS.c.sequence, RECORDS.c.content)
        .where(RECORDS.c.station == station, RECORDS.c.sequence > after)
        .order_by(RECORDS.c.sequence)
        .limit(_BATCH)
    )
    found = [
        record_of(content, where=f"{log.name}: {station}/{sequence}")
        for sequence, content in connection.execute(query)
    ]
    if not found:
        raise InputError(
            f"{log.name}: records of station {station} are missing after {after}; `robo-eval"
            " verify` says more"
        )
    return found


def _rows_of(connection: Connection, name: str, ids: Sequence[str]) -> list[dict[str, Any]]:
    """How incidents stand; those whose report has not arrived are left out."""
    rows = []
    for start in range(0, len(ids), _CHUNK):
        chunk = ids[start : start + _CHUNK]
        records: dict[str, list[Record]] = defaultdict(list)
        for column in (RECORDS.c.record_id, RECORDS.c.about):
            query = select(RECORDS.c.content).where(column.in_(chunk))
            for content in connection.execute(query).scalars():
                record = record_of(content, where=name)
                records[str(record.incident_id)].append(record)
        found = (incident_of(own) for own in records.values())
        rows += [_page_row(incident) for incident in found if incident is not None]
    return rows


def _put(connection: Connection, table: Table, rows: Iterable[dict[str, Any]]) -> None:
    rows = list(rows)
    if not rows:
        return
    insert: Any = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    statement = insert(table)
    keys = [column.name for column in table.primary_key]
    statement = statement.on_conflict_do_update(
        index_elements=keys,
        set_={name: statement.excluded[name] for name in table.columns.keys() if name not in keys},  # noqa: SIM118
    )
    connection.execute(statement, rows)


def _page_row(incident: Incident) -> dict[str, Any]:
    return _row(
        incident.record,
        # Where and when it counts, in the words of now.
        plain(incident.counted_report) | {"description": incident.report.description},
        severity=incident.severity.value,
        counted_severity=incident.counted_severity.value,
        category=incident.category.value,
        status=incident.status.value,
        counts=int(incident.counts),
    )


def _first_row(values: Mapping[str, Any]) -> dict[str, Any]:
    """The row of an incident of which there is only the report, from what that says."""
    body = values["body"]
    return _row(
        values,
        body,
        severity=body["severity"],
        counted_severity=body["severity"],
        category=body["category"],
        status=(Status.DRAFT if values["via"] == Via.RULE else Status.REPORTED).value,
        counts=1,
    )


def _row(
    record: Record | Mapping[str, Any], body: Mapping[str, Any], **state: str | int
) -> dict[str, Any]:
    frame = (
        record
        if isinstance(record, Mapping)
        else {
            "record_id": record.record_id,
            "station": record.station,
            "sequence": record.sequence,
            "by": record.by,
        }
    )
    return {
        "incident_id": frame["record_id"],
        "station": frame["station"],
        "sequence": frame["sequence"],
        "happened_ns": body["happened_ns"],
        "robot": body["robot"],
        "side": body["side"],
        "engagement": body["engagement"],
        "episode_id": body.get("episode_id"),
        "policy": body.get("policy"),
        "by": frame["by"],
        "description": body["description"][:_SHOWN],
        **state,
    }


def _exposed_row(record_id: str, body: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "record_id": record_id,
        "robot": body["robot"],
        "side": body["side"],
        "mode": body["mode"],
        "task": body["task"],
        "policy": body.get("policy"),
        "episode_id": body.get("episode_id"),
        "trial": body.get("trial"),
        "start_ns": body["start_ns"],
        "end_ns": body["start_ns"] + round(body["seconds"] * 1e9),
    }


# Looking whether they do -----------------------------------------------------------------------


def differences(connection: Connection, name: str) -> Iterator[str]:
    """Where the tables say something else than the records they have followed.

    Args:
        connection: A transaction on the log.
        name: Of the log, for messages.
    """
    paged = _paged(connection)
    heads = {station: head.sequence for station, head in heads_of(connection).items()}
    if any(name not in heads or number > heads[name] for name, number in paged.items()):
        return  # of another copy of the log; the next list makes them anew
    changed, newer = _touched(connection, paged)
    told = changed | newer
    hours = _Hours(several=changed)
    seen: dict[str, set[str]] = {PAGE.name: set(), EXPOSED.name: set()}
    for record, row in _beside(connection):
        is_report = record["kind"] == Report.kind
        if row is not None:
            seen[PAGE.name if is_report else EXPOSED.name].add(record["record_id"])
        if record["sequence"] > paged.get(record["station"], 0):
            continue
        if not is_report:
            hours.compare(record, row)
        elif record["record_id"] not in told and (wanted := _first_row(record)) != row:
            yield _difference(record, wanted, row)
    yield from _changed_differences(connection, name, sorted(changed - newer))
    yield from hours.differences()
    for key, kind in ((PAGE.c.incident_id, Report.kind), (EXPOSED.c.record_id, Exposure.kind)):
        for unknown in _unfounded(connection, key, seen[key.table.name]):
            yield f"the lists show {unknown}, of which there is no {kind}"


def _touched(connection: Connection, paged: Mapping[str, int]) -> tuple[set[str], set[str]]:
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
            (changed if sequence <= paged.get(station, 0) else newer).add(told)
    return changed, newer


@dataclass(slots=True)
class _Hours:
    """Whether exposure is listed as recorded; `several` are what several stations recorded."""

    several: set[str]
    right: set[str] = field(default_factory=set)
    wrong: list[tuple[str, str]] = field(default_factory=list)

    def compare(self, record: Mapping[str, Any], row: Mapping[str, Any] | None) -> None:
        """Look at a record and its row."""
        record_id = record["record_id"]
        wanted = _exposed_row(record_id, record["body"])
        if wanted != row:
            self.wrong.append((record_id, _difference(record, wanted, row)))
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


def _beside(connection: Connection) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None]]:
    """What reports and exposure say, each with its row of the lists; None if it has none."""
    # One pass for both: reading the records is what costs.
    kinds = [RECORDS.c.content.contains(f'"kind":"{kind}"') for kind in _LISTED]
    query = (
        select(RECORDS.c.number, RECORDS.c.content, PAGE, EXPOSED)
        .join(PAGE, PAGE.c.incident_id == RECORDS.c.record_id, isouter=True)
        .join(EXPOSED, EXPOSED.c.record_id == RECORDS.c.record_id, isouter=True)
        .where(or_(*kinds))
        .order_by(RECORDS.c.number)
        .limit(_BATCH)
    )
    names = list(PAGE.columns.keys()), list(EXPOSED.columns.keys())
    after = None
    while rows := connection.execute(
        query if after is None else query.where(RECORDS.c.number > after)
    ).fetchall():
        for number, content, *cells in rows:
            after = number
            values = json.loads(content)
            if values["kind"] not in _LISTED:
                continue
            which = _LISTED.index(values["kind"])
            own = cells[len(names[0]) :] if which else cells[: len(names[0])]
            yield values, dict(zip(names[which], own, strict=True)) if own[0] is not None else None


def _changed_differences(connection: Connection, name: str, ids: Sequence[str]) -> Iterator[str]:
    for start in range(0, len(ids), _CHUNK):
        chunk = ids[start : start + _CHUNK]
        query = select(PAGE).where(PAGE.c.incident_id.in_(chunk))
        rows = {row["incident_id"]: dict(row) for row in connection.execute(query).mappings()}
        for wanted in _rows_of(connection, name, chunk):
            row = rows.get(wanted["incident_id"])
            if row != wanted:
                yield _difference(wanted, wanted, row)


def _difference(
    record: Mapping[str, Any], wanted: Mapping[str, Any], row: Mapping[str, Any] | None
) -> str:
    place = f"{record['station']}/{record['sequence']}"
    if row is None:
        return f"{place}: is left out of the lists"
    names = [name for name in wanted if wanted[name] != row[name]]
    return f"{place}: the lists show another {', '.join(names)} than the records say"
