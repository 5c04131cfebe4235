"""The tables that lists are read from: made from the records, and made to follow them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy import Connection, Table, create_engine, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from robo_eval.core.errors import InputError
from robo_eval_incidents.bodies import Exposure
from robo_eval_incidents.database import IncidentLogError, LostServerError
from robo_eval_incidents.incident import incident_of
from robo_eval_incidents.listed import Row, exposed_row, incident_row, said_by
from robo_eval_incidents.log import IncidentLog, heads_of, incidents_in
from robo_eval_incidents.record import Record, record_of
from robo_eval_incidents.schema import EXPOSED, METADATA, PAGE, PAGED, RECORDS

_BATCH: Final = 2_000
"""Records that are taken into the tables at once."""
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
        times: list[Record] = []
        for record in log.records():
            if record.incident_id is not None:
                by_incident[record.incident_id].append(record)
            elif record.kind == Exposure.kind:
                times.append(record)
        _put_exposed(connection, times)
        found = (incident_of(own) for own in by_incident.values())
        rows = [incident_row(incident) for incident in found if incident is not None]
        if rows:
            connection.execute(PAGE.insert(), rows)
        yield connection
    engine.dispose()


def _is_behind(log: IncidentLog) -> bool:
    with log.database.reading() as connection:
        heads = {name: head.sequence for name, head in heads_of(connection).items()}
        return heads != followed_until(connection)


def followed_until(connection: Connection) -> dict[str, int]:
    """Up to which record of each station the tables have been brought."""
    rows = connection.execute(select(PAGED))
    # Cells of another type are somebody else's work.
    return {
        row.station: row.sequence
        for row in rows
        if type(row.station) is str and type(row.sequence) is int
    }


def _follow(connection: Connection, log: IncidentLog) -> None:
    """Take in the next records of each station."""
    heads, paged = heads_of(connection), followed_until(connection)
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
            _put_exposed(connection, new)
            _put(connection, PAGED, [{"station": station, "sequence": new[-1].sequence}])
    found = incidents_in(connection, log.name, sorted(changed))
    _put(connection, PAGE, [incident_row(incident) for incident in found])


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


def _put_exposed(connection: Connection, records: Sequence[Record]) -> None:
    rows = [exposed_row(said_by(one)) for one in records if one.kind == Exposure.kind]
    # Of what several stations recorded the same one is listed, in whatever order they came.
    _put(connection, EXPOSED, rows, keep_first=True)


def _put(
    connection: Connection, table: Table, rows: Sequence[Row], *, keep_first: bool = False
) -> None:
    """Put rows in place of those that are there; `keep_first` keeps that of the first station."""
    if not rows:
        return
    insert: Any = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    statement = insert(table)
    keys = [column.name for column in table.primary_key]
    statement = statement.on_conflict_do_update(
        index_elements=keys,
        set_={name: statement.excluded[name] for name in table.columns.keys() if name not in keys},  # noqa: SIM118
        where=statement.excluded.station <= table.c.station if keep_first else None,
    )
    connection.execute(statement, rows)
