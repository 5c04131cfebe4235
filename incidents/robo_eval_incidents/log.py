"""The log: records are appended to the chain of a station, and read back."""

from __future__ import annotations

import re
import secrets
import socket
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from sqlalchemy import Connection, Text, bindparam, exists, select, update
from sqlalchemy.dialects import postgresql, sqlite

from robo_eval.core.errors import InputError
from robo_eval.log.provenance import software
from robo_eval_incidents import workflow
from robo_eval_incidents.bodies import (
    AHEAD_NS,
    RECORD_ID,
    Body,
    Correction,
    Exposure,
    Nil,
    Opened,
    Report,
    Review,
    Withdrawal,
    plain,
)
from robo_eval_incidents.database import (
    Database,
    IncidentLogError,
    chunks,
    create,
    driver_errors,
    is_conflict,
    is_url,
    text_of,
)
from robo_eval_incidents.history import newest
from robo_eval_incidents.incident import Incident, incident_of, incidents_of, unknown_incident
from robo_eval_incidents.moments import shown_time
from robo_eval_incidents.record import (
    GENESIS,
    MOST_AFTER,
    STATION,
    Entry,
    Instant,
    Record,
    content_digest,
    new_id,
    now,
    place_of,
    record_of,
)
from robo_eval_incidents.schema import META, RECORDS, STATIONS, is_kind
from robo_eval_incidents.taxonomy import Via
from robo_eval_incidents.text import name_of

DATABASE: Final = "incidents.db"
"""Name of the incident log in a trial directory."""
EVIDENCE: Final = "incidents"
"""Folder beside a log file in which pieces of traces are kept."""
_ID: Final = re.compile(r"[0-9a-f-]{8,36}")
_PAGE: Final = 2_000
_TRIES: Final = 20

_RECORD: Final = ("station", "sequence", "record_id", "about", "content", "sha256")
_HEAD: Final = ("sequence", "sha256", "time_ns", "monotonic_ns", "boot_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """How far a station has got.

    Attributes:
        sequence: Number of its newest record.
        sha256: Digest of that record.
        at: When it was written.
    """

    sequence: int
    sha256: str
    at: Instant


class IncidentLog:
    """An open incident log.

    Args:
        target: Path of an SQLite file, or URL of a PostgreSQL database.
        station: As whom to write; None for the log's own station.
        read_only: Refuse writing.

    Attributes:
        name: What it is called in messages.
        meta: What it keeps of itself: `log_id`, and its own station.
        station: As whom it writes.
        is_named: Whether somebody said so; without, it can only be read.

    Raises:
        IncidentLogError: If it is missing, damaged, of another schema, or cannot be reached.
    """

    def __init__(
        self, target: str | Path, *, station: str | None = None, read_only: bool = False
    ) -> None:
        self.database: Final = Database(target, read_only=read_only)
        self.name: Final = self.database.name
        self._statements: Final = _Statements(is_server=self.database.is_server)
        self._known: Head | None = None
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
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the database; what was appended stays."""
        self.database.close()

    @property
    def evidence_folder(self) -> Path | None:
        """What evidence is relative to; None for a log on a server."""
        path = self.database.path
        return None if path is None else path.parent

    def _read_meta(self) -> dict[str, str]:
        with self.database.reading() as connection:
            return {str(row.name): str(row.value) for row in connection.execute(select(META))}

    # Writing -----------------------------------------------------------------------------------

    def file(
        self,
        body: Body,
        *,
        by: str,
        via: Via,
        incident_id: str | None = None,
        record_id: str | None = None,
    ) -> Record:
        """Record what somebody says; after this returned, it survives a power cut.

        Args:
            body: What they say.
            by: Who.
            via: By which door.
            incident_id: Incident it is about, for all but a report and what is about none.
            record_id: Id of the record; a new one if none is given. The same id twice is one
                record.

        Returns:
            The record, with its place in the chain.

        Raises:
            RefusedError: If it may not follow what is recorded. Nothing was added.
            InputError: If a name is none, or there is no such incident. Nothing was added.
            IncidentLogError: If the database cannot be written. Nothing was added, unless a
                server went away for good in that moment.
        """
        return self.append(
            Entry(
                body=body,
                by=by,
                via=via,
                incident_id=incident_id,
                record_id=record_id or new_id(),
            )
        )

    def append(self, entry: Entry) -> Record:
        """Record an entry; see `file`."""
        self.check_named()
        entry = _checked(entry)
        if not self.database.is_server:
            return self._append(entry)
        return self.database.persistently(lambda: self._append(entry))

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

    def _append(self, entry: Entry) -> Record:
        # Who appends one record after another need not read where the chain ends.
        known, self._known = self._known, None
        for _ in range(_TRIES):
            try:
                with self.database.writing() as connection:
                    record, head = self._add(connection, entry, known)
            except _ConflictError:
                found = self.find(entry.record_id)
                if found is not None:
                    return _same(found, entry)
                # Another process has just begun the same chain, or gone on with it.
                known = None
            else:
                self._known = head
                return record
        raise IncidentLogError(f"{self.name}: others write all the time; try again")

    def _add(self, connection: Connection, entry: Entry, known: Head | None) -> tuple[Record, Head]:
        driver: Any = connection.connection.driver_connection
        head = known or self._head(driver)
        if head is None:
            head = self._put(driver, None, _opening())[1]
        if entry.via is not Via.RULE:
            _check_past(entry.body, head.at.time_ns)
        after = () if entry.incident_id is None else self._follows(connection, entry)
        if isinstance(entry.body, Withdrawal):
            self._check_withdrawal(connection, entry.body, entry.record_id)
        return self._put(driver, head, entry, after)

    def _follows(self, connection: Connection, entry: Entry) -> tuple[str, ...]:
        """What an entry comes after; refuses one that may not follow."""
        incident_id = str(entry.incident_id)
        incident = incident_of(self._about(connection, incident_id))
        if incident is None:
            raise unknown_incident(incident_id)
        if any(record.record_id == entry.record_id for record in incident.records):
            raise _ConflictError
        same_as = None
        if isinstance(entry.body, Review) and entry.body.duplicate_of is not None:
            same_as = incident_of(self._about(connection, entry.body.duplicate_of))
            if same_as is None:
                raise unknown_incident(entry.body.duplicate_of)
        workflow.check(incident, entry.body, entry.by, same_as)
        return newest(incident.records)[-MOST_AFTER:]

    def _check_withdrawal(self, connection: Connection, body: Withdrawal, record_id: str) -> None:
        """Refuse to withdraw what is not a time, or was withdrawn."""
        contents = select(RECORDS.c.content)
        # Another station may have used an id for something else.
        named = connection.execute(contents.where(RECORDS.c.record_id == body.withdrawn_id))
        if not any(isinstance(self._record(one).body, Exposure | Nil) for one in named.scalars()):
            raise workflow.RefusedError(
                f"record {body.withdrawn_id} is neither exposure nor a nil report of this log; only"
                " those are withdrawn"
            )
        withdrawn = contents.where(is_kind(Withdrawal.kind, is_server=self.database.is_server))
        for before in map(self._record, connection.execute(withdrawn).scalars()):
            is_same = isinstance(before.body, Withdrawal) and (
                before.body.withdrawn_id == body.withdrawn_id
            )
            if is_same and before.record_id == record_id:
                raise _ConflictError
            if is_same:
                raise workflow.RefusedError(
                    f"{before.by} withdrew it already, in {before.station}/{before.sequence}"
                )

    def _head(self, driver: Any) -> Head | None:  # noqa: ANN401 - of either driver
        row = driver.execute(self._statements.read_head, {"station": self.station}).fetchone()
        return None if row is None else _head_of(row)

    def _put(
        self,
        driver: Any,  # noqa: ANN401 - of either driver
        head: Head | None,
        entry: Entry,
        after: tuple[str, ...] = (),
    ) -> tuple[Record, Head]:
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
        )
        content = record.content()
        sha256 = content_digest(content)
        new = Head(sequence=record.sequence, sha256=sha256, at=at)
        row = head_row(self.station, new)
        # The head first: who holds it is the only one to add to the chain, so that no two ever
        # wait for each other.
        if head is None:
            driver.execute(self._statements.put_head, row)
        else:
            moved = {**row, "its": self.station, "before": head.sha256}
            if not driver.execute(self._statements.move_head, moved).rowcount:
                raise _ConflictError
        try:
            done = driver.execute(self._statements.insert_record, row_of(record, content, sha256))
        except driver_errors() as err:
            if is_conflict(err):
                raise _ConflictError from err
            raise
        if not done.rowcount:
            raise _ConflictError
        return record, new

    def put_heads(self, connection: Connection, heads: Mapping[str, Head]) -> None:
        """Note newest records that came with others of their chains, in the same transaction."""
        driver: Any = connection.connection.driver_connection
        for station, head in heads.items():
            driver.execute(self._statements.put_head, head_row(station, head))

    # Reading -----------------------------------------------------------------------------------

    def heads(self) -> dict[str, Head]:
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
        for number, content in self.contents(station=station, after=after):
            yield record_of(content, where=f"{self.name}: record {number}")

    def contents(
        self, *, station: str | None = None, after: int | None = None
    ) -> Iterator[tuple[int, str]]:
        """Canonical forms of records with their numbers; see `records`."""
        order = RECORDS.c.number if station is None else RECORDS.c.sequence
        query = select(order, RECORDS.c.content).order_by(order).limit(_PAGE)
        if station is not None:
            query = query.where(RECORDS.c.station == station)
        while True:
            with self.database.reading() as connection:
                rows = connection.execute(
                    query if after is None else query.where(order > after)
                ).fetchall()
            for number, content in rows:
                after = number
                yield number, content
            if len(rows) < _PAGE:
                return

    def find(self, record_id: str) -> Record | None:
        """The record with an id, the one that arrived first; None if there is none."""
        query = select(RECORDS.c.content).where(RECORDS.c.record_id == record_id)
        with self.database.reading() as connection:
            content = connection.execute(query.order_by(RECORDS.c.number).limit(1)).scalar()
        return None if content is None else self._record(content)

    def incident(self, name: str) -> Incident:
        """An incident as it stands.

        Args:
            name: Its id, the beginning of its id (8 characters or more), or `STATION/NUMBER`.

        Raises:
            InputError: If there is none, or several begin so.
        """
        with self.database.reading() as connection:
            found = incident_of(self._about(connection, self._id_of(connection, name)))
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
                RECORDS.c.content.contains('"kind":"report"'),
            )
        else:
            raise unknown_incident(name)
        found = connection.execute(query).scalars().all()
        if len(found) > 1:
            raise InputError(f"several incidents begin with {name!r}; give more of the id")
        if not found:
            raise unknown_incident(name)
        return str(found[0])

    def _about(self, connection: Connection, incident_id: str) -> list[Record]:
        """All records of an incident, its report first."""
        contents = select(RECORDS.c.content)
        first = connection.execute(contents.where(RECORDS.c.record_id == incident_id))
        others = connection.execute(contents.where(RECORDS.c.about == incident_id))
        return [self._record(row[0]) for rows in (first, others) for row in rows]

    def _record(self, content: str) -> Record:
        return record_of(content, where=self.name)


class _ConflictError(Exception):
    """A record with this id, or at this place of the chain, is there already."""


class _Statements:
    """What is run for every record, compiled once."""

    def __init__(self, *, is_server: bool) -> None:
        insert: Any = postgresql.insert if is_server else sqlite.insert
        put = insert(STATIONS).values({name: bindparam(name) for name in ("station", *_HEAD)})
        put = put.on_conflict_do_update(
            index_elements=["station"], set_={name: put.excluded[name] for name in _HEAD}
        )
        cells = (bindparam(name, type_=RECORDS.c[name].type) for name in _RECORD)
        is_new = ~exists().where(RECORDS.c.record_id == bindparam("record_id", type_=Text))
        self.insert_record: Final = text_of(
            insert(RECORDS).from_select(_RECORD, select(*cells).where(is_new)), is_server=is_server
        )
        self.put_head: Final = text_of(put, is_server=is_server)
        moved = update(STATIONS).values({name: bindparam(name) for name in _HEAD})
        is_old = STATIONS.c.sha256 == bindparam("before")
        self.move_head: Final = text_of(
            moved.where(STATIONS.c.station == bindparam("its"), is_old),
            is_server=is_server,
        )
        self.read_head: Final = text_of(
            select(*(STATIONS.c[name] for name in _HEAD))
            .where(STATIONS.c.station == bindparam("station"))
            .with_for_update(),
            is_server=is_server,
        )


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
        IncidentLogError: If it is missing, damaged, of another schema, or cannot be reached.
    """
    found: str | Path = target if is_url(target) else Path(target)
    if isinstance(found, Path):
        found = found / DATABASE if found.is_dir() else found
        if make and not found.exists():
            _make_unless_there(found, station)
        elif not found.exists():
            raise IncidentLogError(
                f"{found}: no such incident log; `robo-eval incidents init` makes one"
            )
    return IncidentLog(found, station=station, read_only=read_only)


def _make_unless_there(path: Path, station: str | None) -> None:
    try:
        make_log(path, station=station)
    except IncidentLogError:
        # Another process may have made it in this moment.
        if not path.exists():
            raise


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
    create(target, meta)


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
        records: dict[str, list[Record]] = defaultdict(list)
        for column in (RECORDS.c.record_id, RECORDS.c.about):
            query = select(RECORDS.c.content).where(column.in_(chunk))
            for content in connection.execute(query).scalars():
                record = record_of(content, where=name)
                records[str(record.incident_id)].append(record)
        found = (incident_of(records[incident_id]) for incident_id in chunk)
        yield from (incident for incident in found if incident is not None)


def heads_of(connection: Connection) -> dict[str, Head]:
    """How far each station has got, by name."""
    query = select(STATIONS.c.station, *(STATIONS.c[name] for name in _HEAD))
    rows = connection.execute(query.order_by(STATIONS.c.station))
    return {row[0]: _head_of(row[1:]) for row in rows}


def _head_of(row: Any) -> Head:  # noqa: ANN401 - a row of either driver
    sequence, sha256, time_ns, monotonic_ns, boot_id = row
    at = Instant(time_ns=time_ns, monotonic_ns=monotonic_ns, boot_id=boot_id)
    return Head(sequence=sequence, sha256=sha256, at=at)


def head_row(station: str, head: Head) -> dict[str, Any]:
    """The row of a station's newest record."""
    return {
        "station": station,
        "sequence": head.sequence,
        "sha256": head.sha256,
        "time_ns": head.at.time_ns,
        "monotonic_ns": head.at.monotonic_ns,
        "boot_id": head.at.boot_id,
    }


def row_of(record: Record, content: str, sha256: str) -> dict[str, Any]:
    """The row of a record."""
    is_about = record.incident_id is not None and record.incident_id != record.record_id
    return {
        "station": record.station,
        "sequence": record.sequence,
        "record_id": record.record_id,
        "about": record.incident_id if is_about else None,
        "content": content,
        "sha256": sha256,
    }


def _opening() -> Entry:
    body = Opened(software=software())
    return Entry(body=body, by="robo-eval", via=Via.RULE, record_id=new_id())


def _checked(entry: Entry) -> Entry:
    by = name_of(entry.by, "by")
    if not RECORD_ID.fullmatch(entry.record_id):
        raise InputError(f"record_id {entry.record_id!r:.60}: is no UUID in lower case")
    if entry.body.about_incident != (entry.incident_id is not None):
        word = "needs" if entry.body.about_incident else "has no"
        raise InputError(f"a record of kind {entry.body.kind!r} {word} incident_id")
    return entry if by == entry.by else replace(entry, by=by)


def _check_past(body: Body, newest_ns: int) -> None:
    """Refuse what somebody says of a time to come; a rule speaks by the clock of its robot.

    Where the clock was set back, the newest record of the station tells how late it is at least.
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


def _same(found: Record, entry: Entry) -> Record:
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
