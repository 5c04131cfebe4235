"""The log: records are appended to the chain of a station, and read back."""

from __future__ import annotations

import json
import re
import secrets
import socket
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from sqlalchemy import Connection, bindparam, or_, select
from sqlalchemy.exc import SQLAlchemyError

from robo_eval.core.errors import InputError
from robo_eval.log.chain import GENESIS, ChainLink
from robo_eval.log.provenance import software
from robo_eval.log.sql import Database, chunks, create, is_url, text_of
from robo_eval_incidents import redaction
from robo_eval_incidents.database import FORM, IncidentLogError
from robo_eval_incidents.kinds import (
    AHEAD_NS,
    KINDS,
    RECORD_ID,
    Body,
    Correction,
    Exposure,
    Nil,
    Opened,
    Redaction,
    Report,
    Review,
    Withdrawal,
    plain,
    section_of,
)
from robo_eval_incidents.record import (
    MOST_AFTER,
    STATION,
    Instant,
    Record,
    content_digest,
    new_id,
    now,
    place_of,
    record_of,
    salted,
)
from robo_eval_incidents.rows import Row, put_rows, rows_of, upsert
from robo_eval_incidents.schema import META, RECORDS, STATIONS
from robo_eval_incidents.state import (
    Incident,
    RefusedError,
    check,
    incident_of,
    incidents_of,
    newest,
    unknown_incident,
)
from robo_eval_incidents.text import name_of, shown_time
from robo_eval_incidents.words import Via

DATABASE: Final = "incidents.db"
"""Name of the incident log in a trial directory."""
EVIDENCE: Final = "incidents"
"""Folder beside a log file in which pieces of traces are kept."""
_ID: Final = re.compile(r"[0-9a-f-]{8,36}")
_PAGE: Final = 2_000
_STORED: Final = (RECORDS.c.content, RECORDS.c.texts)


class _Head(NamedTuple):
    """How far a chain has got: number and digest of its newest record, and when it was."""

    sequence: int
    sha256: str
    at: Instant


class Stored(NamedTuple):
    """A record as it is kept: its number, its canonical form, and the free texts beside that."""

    number: int
    content: str
    texts: str | None


class IncidentLog:
    """An open incident log.

    Args:
        target: Path of an SQLite file, or URL of a PostgreSQL database.
        station: As whom to write; None for the log's own station.
        read_only: Refuse writing.
        is_new: Whether its file was made for this use: one that fails leaves no empty log.

    Attributes:
        name: What it is called in messages.
        meta: What it keeps of itself: `log_id`, and its own station.
        station: As whom it writes.
        is_named: Whether somebody said so; without, it can only be read.

    Raises:
        IncidentLogError: If it is missing, damaged, of another version, or cannot be reached.
    """

    def __init__(
        self,
        target: str | Path,
        *,
        station: str | None = None,
        read_only: bool = False,
        is_new: bool = False,
    ) -> None:
        self.is_new: Final = is_new
        self.database: Final = Database(target, FORM, read_only=read_only)
        self.name: Final = self.database.name
        self._statements: Final = _Statements(is_server=self.database.is_server)
        self._known: _Head | None = None
        try:
            self.meta: Final = self.database.persistently(self._read_meta)
            self.station: Final = station_name(station or self.meta.get("station") or "unnamed")
            self.is_named: Final = bool(station or self.meta.get("station"))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if error is not None and self.is_new:
            self._unmake()
        self.close()

    def _unmake(self) -> None:
        """Take away a file that was made for what was then refused, while nothing is in it."""
        # What cannot be taken away is an empty log, which does no harm.
        with suppress(IncidentLogError, SQLAlchemyError, OSError):
            # Only whoever is alone with a file can change that; no journal of it is left then.
            self.database.connected().exec_driver_sql("PRAGMA busy_timeout = 0")
            self.database.connected().exec_driver_sql("PRAGMA journal_mode = DELETE")
            with self.database.writing() as connection:
                if is_empty := not heads_of(connection):
                    # Who opens it now is refused, rather than writing into a file without a name.
                    RECORDS.drop(connection)
            if is_empty:
                Path(self.name).unlink()
            else:
                self.database.connected().exec_driver_sql("PRAGMA journal_mode = WAL")

    def close(self) -> None:
        """Close the database; what was appended stays."""
        self.database.close()

    @property
    def evidence_folder(self) -> Path | None:
        """What evidence is relative to; None for a log on a server."""
        path = self.database.path
        return None if path is None else path.parent

    def _read_meta(self) -> dict[str, str]:
        return {str(row.name): str(row.value) for row in self.database.rows(select(META))}

    # Writing -----------------------------------------------------------------------------------

    def record(
        self,
        kind: str,
        fields: Mapping[str, Any],
        *,
        by: str,
        via: Via,
        about: str | None = None,
        record_id: str | None = None,
    ) -> Record:
        """Record what somebody says; after this returned, it survives a power cut.

        Args:
            kind: Kind of the record.
            fields: What they say.
            by: Who.
            via: By which door.
            about: Id of the incident it is about, for all but a report and what is about none.
            record_id: Id of the record; a new one if none is given. The same id twice is one
                record.

        Returns:
            The record, with its place in the chain.

        Raises:
            RefusedError: If it may not follow what is recorded. Nothing was added.
            InputError: If a field or name is none, or there is no such incident. Nothing was added.
            IncidentLogError: If the database cannot be written. Nothing was added, unless a
                server went away for good in that moment.
        """
        return self.file(
            section_of(KINDS[kind], fields), by=by, via=via, incident_id=about, record_id=record_id
        )

    def file(
        self,
        body: Body,
        *,
        by: str,
        via: Via,
        incident_id: str | None = None,
        record_id: str | None = None,
    ) -> Record:
        """Record a body that was made already; see `record`."""
        self.check_named()
        entry = _Entry(
            body, name_of(by, "by"), via, incident_id, new_id() if record_id is None else record_id
        )
        if not RECORD_ID.fullmatch(entry.record_id):
            raise InputError(f"record_id {entry.record_id!r:.60}: is no UUID in lower case")
        if body.about_incident not in (None, incident_id is not None):
            word = "needs" if body.about_incident else "has no"
            raise InputError(f"a record of kind {body.kind!r} {word} incident_id")
        if not self.database.is_server:
            return self._append(entry)
        return self.database.persistently(lambda: self._append(entry))

    def redact(
        self, name: str, field: str, reason: str, *, by: str, via: Via
    ) -> tuple[Record, bool]:
        """Ask for a free text to be taken out, or, as the second person, take it out.

        Args:
            name: The record: its station and number, or its id.
            field: Path of the text, such as `description`.
            reason: Why.
            by: Who asks.
            via: By which door.

        Returns:
            The record of it, and whether the text is out now.

        Raises:
            InputError: If there is no such record or text, or the same person asks again.
            IncidentLogError: If this program may not change texts.
        """
        found = self.named(name)
        if not found:
            raise InputError(
                f"no record {name!r:.80} in this log; `robo-eval incidents show` has them"
            )
        first = found[0]
        fields = {
            "redacted_id": first.record_id,
            "subject_id": first.subject,
            "field": field,
            "reason": reason,
        }
        record = self.record("redaction", fields, by=by, via=via, about=first.incident_id)
        is_out = all(field in one.gone for one in self.named(first.record_id))
        if is_out:
            redaction.forget(self.database)
        return record, is_out

    def newest_ns(self) -> int:
        """When this station wrote its newest record, UTC; 0 if there is none."""
        with self.database.reading() as connection:
            head = self._head(connection.connection.driver_connection, None)
        return 0 if head is None else head.at.time_ns

    def check_named(self) -> None:
        """Refuse to write as nobody.

        Raises:
            InputError: If neither the caller nor the log says which station writes.
        """
        if not self.is_named:
            raise InputError(
                f"{self.name}: say which station writes, by --station or ROBO_EVAL_STATION;"
                " several stations share this log"
            )

    def _append(self, entry: _Entry) -> Record:
        # Who appends one record after another need not read where the chain ends.
        known, self._known = self._known, None
        with self.database.writing() as connection:
            driver: Any = connection.connection.driver_connection
            self._hold(driver, self.station, sorted(entry.subjects))
            found = self._told_of(driver, entry)
            same = next((one for one in found if one.record_id == entry.record_id), None)
            if same is not None:
                return _same(same, entry)
            after = _check(entry, found)
            head = self._head(driver, known)
            if entry.via is not Via.RULE:
                check_past(entry.body, 0 if head is None else head.at.time_ns)
            if head is None:
                _, head = self._put(driver, None, _opening())
            record, new = self._put(driver, head, entry, after)
            own = [*(one for one in found if one.subject == record.subject), record]
            put_rows(connection, rows_of(redaction.take_out(connection, own)))
        self._known = new
        return record

    def _hold(self, driver: Any, station: str, subjects: Sequence[str]) -> None:
        """Let nobody else write to this chain, or about the same, until the transaction ends.

        There is no row to lock of a station's first record, or of an incident: two that check at
        once would both pass. SQLite has one writer anyhow.
        """
        if self.database.is_server:
            for name in (f"station {station}", *subjects):
                driver.execute(self._statements.hold, {"name": name})

    def _told_of(self, driver: Any, entry: _Entry) -> list[Record]:
        """All that is recorded of what an entry is about, and what has its id."""
        subjects = list(entry.subjects)
        names = {"id": entry.record_id, "one": subjects[0], "other": subjects[-1]}
        rows = driver.execute(self._statements.told_of, names).fetchall()
        return [record_of(content, texts, where=self.name) for content, texts in rows]

    def _head(self, driver: Any, known: _Head | None) -> _Head | None:
        """The newest record of this chain, and that it is what was known."""
        row = driver.execute(self._statements.read_head, {"station": self.station}).fetchone()
        if row is None or (known is not None and known[:2] == row):
            return None if row is None else known
        place = {"station": self.station, "sequence": row[0]}
        last = driver.execute(self._statements.read_last, place).fetchone()
        # Where it was taken out, which verification finds, no incident is refused for that.
        return _Head(row[0], row[1], now() if last is None else _instant_in(last[0]))

    def _put(
        self,
        driver: Any,
        head: _Head | None,
        entry: _Entry,
        after: tuple[str, ...] = (),
    ) -> tuple[Record, _Head]:
        at = now()
        record = Record(
            station=self.station,
            sequence=1 if head is None else head.sequence + 1,
            previous_sha256=GENESIS if head is None else head.sha256,
            record_id=entry.record_id,
            incident_id=entry.record_id if isinstance(entry.body, Report) else entry.incident_id,
            at=at,
            clock_step_ns=0 if head is None else at.step_since(head.at),
            by=entry.by,
            via=entry.via,
            body=entry.body,
            after=after,
            salts=salted(entry.body.kind, entry.body),
        )
        row = row_of(record, *record.forms())
        driver.execute(self._statements.insert_record, row)
        new = _Head(record.sequence, row["sha256"], at)
        driver.execute(self._statements.put_head, row)
        return record, new

    def put_records(
        self, connection: Connection, station: str, rows: Sequence[tuple[Record, Row]]
    ) -> None:
        """Add records that follow the newest one of a station, with what the lists show of them.

        Args:
            connection: A transaction that writes.
            station: Their station.
            rows: The records, each with its row of `row_of`.
        """
        driver: Any = connection.connection.driver_connection
        subjects = sorted({record.subject for record, _ in rows})
        self._hold(driver, station, subjects)
        told = records_of(connection, self.name, subjects)
        for record, row in rows:
            told[record.subject].append(record)
            # What was taken out here does not come back with an older copy.
            left = redaction.without_redacted(told[record.subject])[-1]
            new = row if left is record else {**row, "texts": left.forms()[1]}
            driver.execute(self._statements.insert_record, new)
        driver.execute(self._statements.put_head, rows[-1][1])
        for own in told.values():
            put_rows(connection, rows_of(redaction.take_out(connection, own)))

    # Reading -----------------------------------------------------------------------------------

    def heads(self) -> dict[str, ChainLink]:
        """How far each station has got, by name."""
        with self.database.reading() as connection:
            return heads_of(connection)

    def records(self, *, station: str | None = None, after: int | None = None) -> Iterator[Record]:
        """Records in the order in which they arrived here, or those of a station in its own.

        Args:
            station: Only those of one station.
            after: Begin after this number: of the station, or of arrival; None for all.

        Raises:
            InputError: If a stored record is none; the message names it.
        """
        for number, content, texts in self.stored(station=station, after=after):
            yield record_of(content, texts, where=f"{self.name}: record {number}")

    def stored(self, *, station: str | None = None, after: int | None = None) -> Iterator[Stored]:
        """Records as they are kept; see `records`."""
        order = RECORDS.c.number if station is None else RECORDS.c.sequence
        query = select(order, *_STORED).order_by(order).limit(_PAGE)
        if station is not None:
            query = query.where(RECORDS.c.station == station)
        while True:
            rows = self.database.rows(query if after is None else query.where(order > after))
            for row in rows:
                yield Stored(*row)
            if len(rows) < _PAGE:
                return
            after = rows[-1][0]

    def find(self, record_id: str) -> Record | None:
        """The record with an id, the one that arrived first; None if there is none."""
        return next(iter(self.named(record_id)), None)

    def named(self, name: str) -> list[Record]:
        """Records of an id, of which several stations may have one, or the one `STATION/NUMBER`."""
        place = place_of(name)
        query = select(*_STORED).order_by(RECORDS.c.number)
        if place is None:
            query = query.where(RECORDS.c.record_id == name)
        else:
            query = query.where(RECORDS.c.station == place[0], RECORDS.c.sequence == place[1])
        rows = self.database.rows(query)
        return [record_of(*row, where=self.name) for row in rows]

    def incident(self, name: str) -> Incident:
        """An incident as it stands.

        Args:
            name: Its id, the beginning of its id (8 characters or more), or `STATION/NUMBER`.

        Raises:
            InputError: If there is none, or several begin so.
        """
        with self.database.reading() as connection:
            incident_id = self._id_of(connection, name)
            found = next(incidents_in(connection, self.name, [incident_id]), None)
        if found is None:
            raise unknown_incident(name)
        return found

    def incidents(self) -> list[Incident]:
        """All incidents as they stand, by when they happened."""
        return incidents_of(self.records())

    def incidents_with(self, ids: Sequence[str]) -> Iterator[Incident]:
        """Some incidents as they stand; see `incidents_in`."""
        for chunk in chunks(ids):
            with self.database.reading() as connection:
                found = list(incidents_in(connection, self.name, chunk))
            # Whoever goes through them holds no connection meanwhile.
            yield from found

    def _id_of(self, connection: Connection, name: str) -> str:
        query = select(RECORDS.c.record_id).distinct().limit(2)
        if place := place_of(name):
            query = query.where(RECORDS.c.station == place[0], RECORDS.c.sequence == place[1])
        elif _ID.fullmatch(name):
            query = query.where(
                RECORDS.c.record_id >= name,
                RECORDS.c.record_id < name + "g",
                RECORDS.c.kind == Report.kind,
            )
        else:
            raise unknown_incident(name)
        found = connection.execute(query).scalars().all()
        if len(found) > 1:
            raise InputError(f"several incidents begin with {name!r}; give more of the id")
        if not found:
            raise unknown_incident(name)
        return str(found[0])


@dataclass(frozen=True, slots=True)
class _Entry:
    """What somebody wants to have recorded."""

    body: Body
    by: str
    via: Via
    incident_id: str | None
    record_id: str

    @property
    def subjects(self) -> set[str]:
        """What has to be known before it can be recorded: one thing, or two."""
        about = self.incident_id or self.body.subject or self.record_id
        same_as = self.body.duplicate_of if isinstance(self.body, Review) else None
        return {about, same_as or about}


class _Statements:
    """What is run for every record, compiled once."""

    def __init__(self, *, is_server: bool) -> None:
        def compiled(statement: Any) -> str:
            return text_of(statement, is_server=is_server)

        station = STATIONS.c.station == bindparam("station")
        cells = {
            column.name: bindparam(column.name, type_=column.type)
            for column in RECORDS.columns
            if column is not RECORDS.c.number
        }
        self.insert_record: Final = compiled(RECORDS.insert().values(cells))
        self.put_head: Final = upsert(STATIONS, is_server=is_server)
        self.read_head: Final = compiled(
            select(STATIONS.c.sequence, STATIONS.c.sha256).where(station)
        )
        self.read_last: Final = compiled(
            select(RECORDS.c.content).where(
                RECORDS.c.station == bindparam("station"),
                RECORDS.c.sequence == bindparam("sequence"),
            )
        )
        self.told_of: Final = compiled(
            select(*_STORED)
            .where(
                or_(
                    RECORDS.c.record_id == bindparam("id"),
                    RECORDS.c.subject == bindparam("one"),
                    RECORDS.c.subject == bindparam("other"),
                )
            )
            .order_by(RECORDS.c.number)
        )
        self.hold: Final = "SELECT pg_advisory_xact_lock(hashtextextended(%(name)s, 7302411))"


def open_log(
    target: str | Path,
    *,
    station: str | None = None,
    read_only: bool = False,
    make: bool = False,
) -> IncidentLog:
    """Open an incident log.

    Args:
        target: Path of an SQLite file, a trial directory or other folder that holds
            `incidents.db`, or URL of a PostgreSQL database.
        station: As whom to write; None for the log's own station.
        read_only: Refuse writing.
        make: Make the log if it is not there.

    Raises:
        IncidentLogError: If it is missing, damaged, of another version, or cannot be reached.
    """
    found: str | Path = target if is_url(target) else Path(target)
    is_new = False
    if isinstance(found, Path):
        found = found / DATABASE if found.is_dir() else found
        if make and not found.exists():
            is_new = _make_unless_there(found, station)
        elif not found.exists():
            raise IncidentLogError(
                f"{found}: no such incident log; `robo-eval incidents init` makes one"
            )
    return IncidentLog(found, station=station, read_only=read_only, is_new=is_new)


def _make_unless_there(path: Path, station: str | None) -> bool:
    try:
        make_log(path, station=station)
    except IncidentLogError:
        # Another process may have made it in this moment.
        if not path.exists():
            raise
        return False
    return True


def make_log(target: str | Path, *, station: str | None = None) -> None:
    """Make an empty incident log.

    Args:
        target: Path of a file that is not there, or URL of a PostgreSQL database.
        station: Its own station. A file has one in any case, named after this machine and a
            random number, so that files of two machines can be merged; a server has none.

    Raises:
        IncidentLogError: If there is one, or it cannot be written.
    """
    meta = {"log_id": new_id()}
    if station is not None:
        meta["station"] = station_name(station)
    elif not is_url(target):
        host = re.sub(r"[^A-Za-z0-9-]+", "-", socket.gethostname().split(".")[0]).strip("-")
        meta["station"] = f"{host[:40] or 'station'}-{secrets.token_hex(3)}"
    create(target, FORM, meta)


def station_name(name: str) -> str:
    """A station's name.

    Raises:
        InputError: If it is none.
    """
    if not STATION.fullmatch(name):
        raise InputError(
            f"station {name!r:.80}: a name has letters, digits, dots, dashes and underscores, 64 at"
            " most, and begins with a letter or digit"
        )
    return name


def incidents_in(connection: Connection, name: str, ids: Sequence[str]) -> Iterator[Incident]:
    """Some incidents as they stand; those whose report has not arrived are left out.

    Args:
        connection: A transaction on the log.
        name: Of the log, for messages.
        ids: Their ids, each once.

    Yields:
        The incidents, in the order of their ids.
    """
    for chunk in chunks(ids):
        own = records_of(connection, name, chunk)
        found = (incident_of([r for r in own[one] if r.incident_id is not None]) for one in chunk)
        yield from (incident for incident in found if incident is not None)


def records_of(
    connection: Connection, name: str, subjects: Sequence[str]
) -> dict[str, list[Record]]:
    """All records of some subjects, by subject, in the order in which they arrived."""
    found: dict[str, list[Record]] = defaultdict(list)
    for chunk in chunks(subjects):
        query = select(*_STORED).where(RECORDS.c.subject.in_(chunk)).order_by(RECORDS.c.number)
        for row in connection.execute(query):
            record = record_of(*row, where=name)
            found[record.subject].append(record)
    return found


def heads_of(connection: Connection) -> dict[str, ChainLink]:
    """How far each station has got, by name."""
    rows = connection.execute(select(STATIONS).order_by(STATIONS.c.station))
    return {station: ChainLink(sequence, sha256) for station, sequence, sha256 in rows}


def row_of(record: Record, content: str, texts: str | None) -> Row:
    """The row of a record whose forms are known; see `Record.forms`."""
    return {
        "station": record.station,
        "sequence": record.sequence,
        "record_id": record.record_id,
        "subject": record.subject,
        "kind": record.kind,
        "content": content,
        "texts": texts,
        "sha256": content_digest(content),
    }


def _instant_in(content: str) -> Instant:
    """When a record was written, by its canonical form."""
    values = json.loads(content)
    return Instant(**{name: values[name] for name in ("time_ns", "monotonic_ns", "boot_id")})


def _opening() -> _Entry:
    return _Entry(Opened(software=software()), "robo-eval", Via.RULE, None, new_id())


def _check(entry: _Entry, found: Sequence[Record]) -> tuple[str, ...]:
    """What an entry comes after; refuses one that may not follow.

    Args:
        entry: The entry.
        found: All records of its subjects.
    """
    body = entry.body
    if isinstance(body, Withdrawal):
        _check_withdrawal(body, found)
    if isinstance(body, Redaction):
        redaction.check(body, entry.by, found)
    if entry.incident_id is None:
        return ()
    incident = _incident_in(found, entry.incident_id)
    same_as = None
    if isinstance(body, Review) and body.duplicate_of is not None:
        same_as = _incident_in(found, body.duplicate_of)
    check(incident, body, entry.by, same_as)
    return newest(incident.records)[-MOST_AFTER:]


def _incident_in(found: Sequence[Record], incident_id: str) -> Incident:
    incident = incident_of([one for one in found if one.incident_id == incident_id])
    if incident is None:
        raise unknown_incident(incident_id)
    return incident


def _check_withdrawal(body: Withdrawal, found: Sequence[Record]) -> None:
    """Refuse to withdraw what is not a time, or was withdrawn."""
    if not any(isinstance(one.body, Exposure | Nil) for one in found):
        raise RefusedError(
            f"record {body.withdrawn_id} is neither exposure nor a nil report of this log; only"
            " those are withdrawn"
        )
    before = next((one for one in found if isinstance(one.body, Withdrawal)), None)
    if before is not None:
        raise RefusedError(f"{before.by} withdrew it already, in {before.name}")


def check_past(body: Body, newest_ns: int) -> None:
    """Refuse what somebody says of a time to come; a rule speaks by the clock of its robot.

    Args:
        body: What they say.
        newest_ns: When the station wrote its newest record: where the clock was set back, that
            tells how late it is at least.

    Raises:
        InputError: If it is about such a time.
    """
    match body:
        case Report():
            named, time_ns = "time", body.happened_ns
        case Correction():
            named, time_ns = "time", int(body.fields.get("happened_ns", 0))
        case Nil() | Exposure():
            named, time_ns = "end", body.end_ns
        case _:
            return
    if time_ns > max(time.time_ns(), newest_ns) + AHEAD_NS:
        raise InputError(
            f"{named}: {shown_time(time_ns)} is still to come by the clock of this machine; give"
            " the time at which it happened"
        )


def _same(found: Record, entry: _Entry) -> Record:
    about = found.record_id if entry.incident_id is None else entry.incident_id
    is_same = (found.by, found.kind, plain(found.body)) == (
        entry.by,
        entry.body.kind,
        plain(entry.body),
    )
    if not is_same or found.incident_id not in (None, about):
        raise InputError(
            f"record {entry.record_id} is in the log already and says something else; give a new id"
        )
    return found
