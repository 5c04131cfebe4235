"""Taking a free text out of the log: two people ask for it, and every digest stays what it was."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from sqlalchemy import Connection, update
from sqlalchemy.exc import SQLAlchemyError

from robo_eval.core.names import person_key
from robo_eval.log.sql import Database
from robo_eval_incidents.database import IncidentLogError
from robo_eval_incidents.kinds import KINDS, Redaction, plain, private_texts
from robo_eval_incidents.record import GONE, Record, text_digest
from robo_eval_incidents.schema import RECORDS
from robo_eval_incidents.state import RefusedError
from robo_eval_incidents.text import same_person

Asked = Mapping[tuple[str, str], Sequence[Record]]
"""Who asked for which text to be taken out: records of redactions by record and path."""


def asked(records: Iterable[Record]) -> Asked:
    """What some records ask to take out."""
    found: defaultdict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        if isinstance(record.body, Redaction):
            found[record.body.redacted_id, record.body.field].append(record)
    return found


def is_decided(own: Sequence[Record]) -> bool:
    """Whether two people asked for it."""
    return len({person_key(record.by) for record in own}) > 1


def paths_of(record: Record) -> list[str]:
    """Free texts that a record has, those taken out included."""
    return [path for _, _, path in private_texts(record.kind, plain(record.body))]


def gone_of(records: Iterable[Record]) -> set[str]:
    """Fields of a report of which a text was taken out, there or in a correction."""
    paths = (path for one in records for path in one.gone)
    return {path.removeprefix("fields.").partition(".")[0] for path in paths}


def without_redacted(records: Sequence[Record]) -> list[Record]:
    """Records of a subject, without the texts that two people asked to take out."""
    decided = {key for key, own in asked(records).items() if is_decided(own)}
    if not decided:
        return list(records)
    return [
        _without(one, {path for record_id, path in decided if record_id == one.record_id})
        for one in records
    ]


def _without(record: Record, paths: set[str]) -> Record:
    values = plain(record.body)
    gone, salts = dict(record.gone), dict(record.salts)
    for holder, key, path in private_texts(record.kind, values):
        if path in paths and path in salts:
            gone[path], holder[key] = text_digest(salts.pop(path), holder[key]), GONE
    if len(gone) == len(record.gone):
        return record
    body = KINDS[record.kind].model_validate(values)
    return replace(record, body=body, salts=salts, gone=gone)


def take_out(connection: Connection, records: Sequence[Record]) -> list[Record]:
    """Take out of the database what two people asked for; the records as they are then.

    Args:
        connection: A transaction that writes.
        records: All records of a subject.
    """
    left = without_redacted(records)
    for before, after in zip(records, left, strict=True):
        if after is not before:
            of_it = (RECORDS.c.station == after.station) & (RECORDS.c.sequence == after.sequence)
            connection.execute(update(RECORDS).where(of_it).values(texts=after.forms()[1]))
    return left


def check(body: Redaction, by: str, records: Sequence[Record]) -> None:
    """Refuse a redaction that names no text, or that the same person asked for already.

    Args:
        body: The redaction.
        by: Who asks for it.
        records: All records of its subject.

    Raises:
        RefusedError: If it may not follow; the message says why and what would do.
    """
    named = [one for one in records if one.record_id == body.redacted_id]
    paths = sorted({path for one in named for path in paths_of(one)})
    if not named:
        raise RefusedError(f"there is no record {body.redacted_id} about that in this log")
    if body.field not in paths:
        raise RefusedError(
            f"record {named[0].name} has no free text {body.field!r:.40}; it has"
            f" {', '.join(paths) or 'none'}"
        )
    if all(body.field in one.gone for one in named):
        raise RefusedError(f"{body.field} of record {named[0].name} was taken out already")
    own = asked(records).get((body.redacted_id, body.field), ())
    if any(same_person(one.by, by) for one in own):
        raise RefusedError(f"{by} asked for it already; a second person has to ask for the same")


_WITH_TEXTS: Final = ("records", "incidents", "times")
"""Tables that hold free texts."""
_IS_OWNER: Final = """SELECT bool_and(pg_has_role(relowner, 'USAGE')) FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relname = ANY(%(tables)s)"""


def forget(database: Database) -> None:
    """Let the files of a database hold nothing any more that was taken out of its tables.

    An SQLite file is written anew, and the log of its newest pages emptied. A server keeps dead
    rows until they are vacuumed.

    Raises:
        IncidentLogError: If somebody else is reading, or this role may not vacuum.
    """
    connection = database.connected()
    if database.is_server:
        tables = {"tables": list(_WITH_TEXTS)}
        if not connection.exec_driver_sql(_IS_OWNER, tables).scalar():
            raise IncidentLogError(
                f"{database.name}: the text is out of the rows, and not yet out of the files: the"
                f" owner of the tables has to vacuum them (VACUUM FULL {', '.join(_WITH_TEXTS)})"
            )
        for table in _WITH_TEXTS:
            connection.exec_driver_sql(f"VACUUM (FULL) {table}")
        return
    try:
        # Where pages were divided, copies of rows may be left that no cell is of.
        connection.exec_driver_sql("VACUUM")
        busy = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").scalar()
    except SQLAlchemyError:
        busy = True
    if busy:
        raise IncidentLogError(
            f"{database.name}: the text is out of the tables, and not yet out of the file beside"
            f" it, {database.name}-wal, which another program is reading: close that program"
        )
