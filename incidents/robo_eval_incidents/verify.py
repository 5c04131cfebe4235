"""Whether an incident log still is what was recorded."""

from __future__ import annotations

import marshal
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from sqlalchemy import (
    Connection,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
    create_engine,
    func,
    select,
)

from robo_eval.core.canonical import file_digest
from robo_eval.core.errors import InputError, MissingExtraError
from robo_eval.core.names import person_key
from robo_eval.core.wording import counted
from robo_eval.log.chain import START, ChainLink, break_text
from robo_eval.log.files import may_others
from robo_eval.log.signing import default_key
from robo_eval.log.sql import create_tables, text_of
from robo_eval.log.verify import Findings, Problem
from robo_eval_incidents.checkpoint import Checkpoint, check_stamp, read_checkpoint
from robo_eval_incidents.database import FORM
from robo_eval_incidents.kinds import Account, Attachment, Evidence, Redaction, Report
from robo_eval_incidents.log import IncidentLog, open_log, records_of
from robo_eval_incidents.record import Record, content_digest, record_of, without_collector
from robo_eval_incidents.redaction import asked, is_decided
from robo_eval_incidents.rows import Row, rows_of
from robo_eval_incidents.schema import (
    CHECKPOINTS,
    INCIDENTS,
    METADATA,
    RECORDS,
    STATIONS,
    STAY,
    TIMES,
    USERS,
    WORDS,
)
from robo_eval_incidents.text import iso_of, when

_PARTS: Final = """SELECT type, name, sql FROM sqlite_schema
    WHERE NOT (type = 'table' AND name GLOB 'sqlite_stat[0-9]')"""
_SERVER_PARTS: Final = """
WITH own AS (SELECT oid, relname, relkind FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace)
SELECT 'table', relname, '' FROM own WHERE relkind = 'r'
UNION ALL SELECT 'view', relname, '' FROM own WHERE relkind IN ('v', 'm')
UNION ALL SELECT 'index', own.relname, whose.relname || ' ' || (
        SELECT string_agg(attname, ' ' ORDER BY place) || CASE WHEN indpred IS NULL THEN ''
            ELSE ' where' END
        FROM unnest(indkey) WITH ORDINALITY AS key(number, place)
        JOIN pg_attribute ON attrelid = indrelid AND attnum = key.number)
    FROM pg_index
    JOIN own ON own.oid = indexrelid JOIN own whose ON whose.oid = indrelid WHERE indisvalid
UNION ALL SELECT 'constraint', conname, relname FROM pg_constraint
    JOIN own ON own.oid = conrelid WHERE contype <> 'n'
UNION ALL SELECT 'trigger', tgname, relname || ' ' || proname || ' ' || tgtype FROM pg_trigger
    JOIN own ON own.oid = tgrelid JOIN pg_proc ON pg_proc.oid = tgfoid
    WHERE NOT tgisinternal AND tgenabled IN ('O', 'A') AND tgqual IS NULL
UNION ALL SELECT 'row security', relname, relname FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relrowsecurity
UNION ALL SELECT 'rule', rulename, tablename FROM pg_rules WHERE schemaname = current_schema()
UNION ALL SELECT 'function', proname, prosrc FROM pg_proc
    WHERE pronamespace = current_schema()::regnamespace AND proname = 'records_stay'
"""
"""Parts of a database on a server: kind, name, and the table they are of, with what they do."""
_TRIGGERS: Final = {"records_stay": 27, "records_stay_all": 34}
"""Triggers, and when they act, in bits of PostgreSQL: before each row that is updated or deleted,
and before all are truncated."""
_PAGE: Final = 10_000
_CELLS: Final = (str, int, str, str)
_MAPPED_BYTES: Final = 1 << 40
_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_READ_OR_WRITE: Final = _WRITE | stat.S_IRGRP | stat.S_IROTH
_MOST: Final = 100
"""Problems of one kind that are listed."""
_Named = tuple[str, str | None, Checkpoint]
"""A checkpoint, with what it is called before, and its file: None of one that the log keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a checkpoint says that was kept elsewhere, and how the log stands to it.

    Attributes:
        file: The checkpoint.
        signer: Fingerprint of the key that signed it.
        time_ns: When it was made, as it says; None if it does not.
        covered: Records it covers.
        since: Records that were added to the log since, those that were merged included.
        fits: Whether the log holds all that it covers.
    """

    file: str
    signer: str
    time_ns: int | None
    covered: int
    since: int
    fits: bool

    def __str__(self) -> str:
        made = "at no time it names" if self.time_ns is None else when(self.time_ns)
        signed = f"{self.file}: signed by key {self.signer}, {made}"
        if not self.fits:
            return f"{signed}, covers {self.covered} records; the log does not hold all of them"
        verb = "was" if self.since == 1 else "were"
        return (
            f"{signed}, covers {self.covered} of {self.covered + self.since} records;"
            f" {self.since or 'none'} {verb} added since"
        )

    def as_dict(self) -> dict[str, Any]:
        """The same, ready for JSON."""
        return {
            "file": self.file,
            "signed_by": self.signer,
            "time": None if self.time_ns is None else iso_of(self.time_ns),
            "covered": self.covered,
            "since": self.since,
            "fits": self.fits,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LogReport(Findings):
    """What verification found.

    Attributes:
        log: The log.
        records: Records that were checked.
        stations: Number and digest of the newest record of each station.
        checkpoints: Checkpoints that were compared with, those of the log itself included; one that
            is there and was given as well is one.
        kept: How the log stands to each sound checkpoint that was given.
    """

    log: str
    records: int
    stations: dict[str, tuple[int, str]]
    checkpoints: int
    kept: tuple[Kept, ...] = ()

    def lines(self) -> Iterator[str]:
        """The findings, one line each."""
        yield from Findings.lines(self)
        stations = len(self.stations)
        yield (
            f"{self.records} incident records of {counted(stations, 'station')} and"
            f" {counted(self.checkpoints, 'checkpoint')} checked"
        )
        for name, (sequence, head) in self.stations.items():
            yield f"  {name}: {sequence} records, chain head {head}"
        yield from map(str, self.kept)

    def as_dict(self) -> dict[str, Any]:
        """The findings, ready for JSON."""
        return {
            "log": self.log,
            **Findings.as_dict(self),
            "records": self.records,
            "checkpoints": self.checkpoints,
            "kept": [one.as_dict() for one in self.kept],
            "stations": {
                name: {"sequence": sequence, "chain_head": head}
                for name, (sequence, head) in self.stations.items()
            },
        }


def verify_log(
    target: str | Path, *, checkpoints: Sequence[Path] = (), signed_by: str | None = None
) -> LogReport:
    """Compare every record with its digest, its place in the chain, and with checkpoints.

    Finds any changed byte of the canonical form of a record or checkpoint, or of a free text;
    records that were removed, inserted, reordered or doubled; the loss of the newest ones back to
    the last checkpoint that was kept elsewhere; files of evidence beside the log that were changed;
    and lists that show something else than the records say. What it cannot find is in
    docs/threat_model.md.

    Args:
        target: Path of the file, a folder that holds `incidents.db`, or URL.
        checkpoints: Files of checkpoints that were kept elsewhere.
        signed_by: Fingerprint of the key that has to have signed each checkpoint; None for any.

    Raises:
        IncidentLogError: If the log is missing, is none, or is of another version.
        InputError: If a file is not a checkpoint.
    """
    kept = [(str(path), read_checkpoint(path)) for path in checkpoints]
    with open_log(target, read_only=True) as log, without_collector():
        check = _Check(log)
        try:
            check.run(kept, signed_by)
        except InputError as err:
            # Half of it can be read: what was found until then, and what ended it.
            check.problem(str(err).removeprefix(f"{log.name}: "))
    return LogReport(
        log=log.name,
        problems=tuple(check.problems),
        notes=tuple(check.notes),
        records=check.count,
        stations=dict(sorted(check.last.items())),
        checkpoints=len(check.checkpoints),
        kept=tuple(check.kept),
    )


def _mark(row: tuple[Any, ...]) -> int:
    """What tells a row from others, under a key of this process that nobody knows.

    Of numbers alone, hashes are known: one added to 2**61 - 1 has the same.
    """
    return hash(marshal.dumps(row, 0))


@dataclass(slots=True)
class _Check:
    """One pass over a log."""

    log: IncidentLog
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    checkpoints: set[str] = field(default_factory=set)
    """What the checkpoints that were looked at say."""
    kept: list[Kept] = field(default_factory=list)
    count: int = 0
    last: dict[str, ChainLink] = field(default_factory=dict)
    """The newest record of each station."""
    wanted: dict[tuple[str, int], str] = field(default_factory=dict)
    """Records that checkpoints name, by station and number, with the digests they have here."""
    several: set[str] = field(default_factory=set)
    """What more than one record tells of."""
    told: dict[str, list[Record]] = field(default_factory=lambda: defaultdict(list))
    """Those records."""
    rows: dict[tuple[str, str], int] = field(default_factory=dict)
    """What the lists have to show, by table and id: hashes of rows."""
    reports: set[str] = field(default_factory=set)
    about: set[str] = field(default_factory=set)
    accounts: dict[str, dict[str, Account]] = field(default_factory=lambda: defaultdict(dict))
    """The newest record of an account, by its name and by station."""
    evidence: list[tuple[str, Evidence]] = field(default_factory=list)
    gone: list[tuple[Record, str]] = field(default_factory=list)
    """Free texts that are missing: of which record, under which path."""
    redactions: list[Record] = field(default_factory=list)
    steps: int = 0
    """Records that were written after somebody set the clock."""

    def problem(self, what: str, row: int | None = None, *, file: str | None = None) -> None:
        """Note something that is not as it was recorded, in the log if no file is named."""
        if len(self.problems) < _MOST:
            self.problems.append(Problem(file=file or self.log.name, what=what, row=row))
        elif len(self.problems) == _MOST:
            self.problems.append(Problem(file=self.log.name, what="and more of the kind"))

    def run(self, kept: Sequence[tuple[str, Checkpoint]], signed_by: str | None) -> None:
        """Check everything."""
        named = [
            *((f"checkpoint {n}", None, one) for n, one in enumerate(self._own_checkpoints(), 1)),
            *((file, file, one) for file, one in kept),
        ]
        self._read_checkpoints(named, signed_by)
        with self.log.database.reading() as connection:
            parts = _server_parts if self.log.database.is_server else _file_parts
            for what in parts(connection):
                self.problem(what)
            self._read_records(connection)
            self._check_ids(connection)
            self._check_heads(connection)
            self._check_accounts(connection)
            # Lists of records that are none differ from them anyhow.
            if not self.problems:
                self._check_lists(connection)
        if self.log.database.is_server:
            self.notes.append("pages and indexes are the server's to check; see its amcheck")
        self._check_texts()
        self._compare_checkpoints(named)
        if signed_by is not None and not self.checkpoints:
            self.problem(f"there is no checkpoint that {signed_by} could have signed")
        self._check_evidence()
        self._note_rights()
        self._say_notes()

    # Records -----------------------------------------------------------------------------------

    def _read_records(self, connection: Connection) -> None:
        counted = select(RECORDS.c.subject).group_by(RECORDS.c.subject).having(func.count() > 1)
        self.several = set(connection.execute(counted).scalars())
        # By their number, without the indexes.
        query = select(RECORDS).order_by(RECORDS.c.number).limit(_PAGE)
        after = None
        while rows := connection.execute(
            query if after is None else query.where(RECORDS.c.number > after)
        ).fetchall():
            for row in rows:
                self._take(row)
            after = rows[-1][0]

    def _take(self, row: Sequence[Any]) -> None:
        """Look at the next record: cells of an untrusted file."""
        number, station, sequence, record_id, subject, kind, content, texts, stated = row
        self.count += 1
        cells = type(station), type(sequence), type(record_id), type(content)
        if cells != _CELLS or not (texts is None or type(texts) is str):
            name = f"{station!s:.70}/{sequence!s:.20}"
            self.problem(f"{name}: has cells that are neither text nor number", number)
            return
        name = f"{station:.70}/{sequence}"
        digest = content_digest(content)
        if digest != stated:
            self.problem(
                f"{name}: was changed: its SHA-256 is {digest}, not {stated!s:.80}", number
            )
        if number < 1:
            self.problem(f"{name}: has the row number {number}, which no log gives", number)
        try:
            record = record_of(content, texts, where=name)
        except InputError as err:
            self.problem(str(err), number)
            # What follows it, or is about it, is not to blame.
            self.last[station] = ChainLink(sequence, digest)
            if kind == Report.kind:
                self.reports.add(record_id)
            return
        if (record.station, record.sequence, record.record_id) != (station, sequence, record_id):
            self.problem(f"{name}: is filed as another record than it says it is", number)
        if (record.subject, record.kind) != (subject, kind):
            self.problem(f"{name}: is filed under another incident or kind than it names", number)
        last = self.last.get(station, START)
        if broken := break_text(last, sequence, record.previous_sha256, "record"):
            self.problem(f"{name}: {broken}", number)
        self.last[station] = ChainLink(sequence, digest)
        if (station, sequence) in self.wanted:
            self.wanted[station, sequence] = digest
        self.steps += bool(record.clock_step_ns)
        self._note_said(record)

    def _note_said(self, record: Record) -> None:
        """What a record says that other checks need."""
        if record.subject in self.several:
            self.told[record.subject].append(record)
        else:
            self._expect([record])
        body = record.body
        if record.gone:
            self.gone += [(record, path) for path in record.gone]
        if record.incident_id not in (None, record.record_id):
            self.about.add(str(record.incident_id))
        match body:
            case Report() | Attachment():
                self.evidence += [(record.name, one) for one in body.evidence if one.sha256]
                if isinstance(body, Report):
                    self.reports.add(record.record_id)
            case Redaction():
                self.redactions.append(record)
            case Account():
                self.accounts[person_key(body.user)][record.station] = body
            case _:
                pass

    # The database ------------------------------------------------------------------------------

    def _check_ids(self, connection: Connection) -> None:
        """That no station has a record twice; several may have drafted one event under one id."""
        columns = (RECORDS.c.record_id, RECORDS.c.station)
        query = select(*columns).group_by(*columns).having(func.count() > 1).limit(_MOST)
        for record_id, station in connection.execute(query):
            self.problem(f"station {station!s:.70}: record {record_id!s:.70} is there twice")

    def _check_accounts(self, connection: Connection) -> None:
        """That nobody may do on the web page what no record allowed."""
        for user in connection.execute(select(USERS.c.name, USERS.c.shown_name, USERS.c.roles)):
            roles = frozenset(str(user.roles).split())
            given = self.accounts.get(user.name, {}).values()
            if person_key(str(user.shown_name)) != user.name:
                self.problem(f"account {user.name!s:.70}: goes by another name than its own")
            # Those of another station came by a merge, and may be older or newer.
            elif not any(frozenset(one.roles) == roles for one in given):
                self.problem(f"account {user.shown_name}: has roles that no record gave to it")

    def _check_heads(self, connection: Connection) -> None:
        heads = {}
        for name, *head in connection.execute(select(STATIONS)):
            if type(name) is str and type(head[0]) is int:
                heads[name] = ChainLink(*head)
            else:
                self.problem(f"station {name!s:.70}: has cells that are neither text nor number")
        for name in sorted(heads.keys() | self.last.keys()):
            last, stated = self.last.get(name, START), heads.get(name)
            if stated is None:
                self.problem(f"station {name}: is not in the table of stations")
            elif stated.sequence > last.sequence:
                missing = stated.sequence - last.sequence
                self.problem(
                    f"station {name}: had {stated.sequence} records, the newest {missing} are"
                    " missing"
                )
            elif stated != last:
                self.problem(f"station {name}: its newest record is not the one it stated")

    # Free texts --------------------------------------------------------------------------------

    def _check_texts(self) -> None:
        """That no text is missing but what two people asked to take out, and that this is out."""
        told = asked(self.redactions)
        for record, path in self.gone:
            own = told.get((record.record_id, path), ())
            if is_decided(own):
                names = " and ".join(one.by for one in own)
                why = own[0].body.reason if isinstance(own[0].body, Redaction) else ""
                self.notes.append(
                    f"{record.name}: {path} was taken out at {when(own[-1].at.time_ns)}, asked for"
                    f" by {names}: {why}"
                )
            else:
                self.problem(f"{record.name}: its {path} is missing, and was not to be taken out")
        for (record_id, path), own in told.items():
            for record in self.log.named(record_id) if is_decided(own) else ():
                if path in record.salts:
                    self.problem(f"{record.name}: its {path} was to be taken out, and is there")

    # Lists -------------------------------------------------------------------------------------

    def _expect(self, records: Sequence[Record]) -> None:
        for table, row in rows_of(records):
            self.rows[table.name, row["id"]] = _mark(tuple(row.values()))

    def _check_lists(self, connection: Connection) -> None:
        """That the lists show what the records say, and nothing else."""
        while self.told:
            self._expect(self.told.popitem()[1])
        for table, what in ((INCIDENTS, "report"), (TIMES, "exposure or nil report")):
            names = table.columns.keys()
            query = text_of(select(table), is_server=self.log.database.is_server)
            # By the driver: each row is looked at, and few are shown.
            for row in connection.connection.driver_connection.execute(query):  # type: ignore[union-attr]
                wanted = self.rows.pop((table.name, row[0]), None)
                if wanted is None:
                    self.problem(f"the lists show {row[0]!s:.70}, of which there is no {what}")
                elif wanted != _mark(row):
                    shown = dict(zip(names, row, strict=True))
                    self.problem(self._difference(connection, table, shown))
        for name, record_id in sorted(self.rows):
            own = self._wanted_row(connection, METADATA.tables[name], record_id)
            self.problem(f"{own['station']}/{own['sequence']}: is left out of the lists")

    def _difference(self, connection: Connection, table: Table, row: Row) -> str:
        wanted = self._wanted_row(connection, table, row["id"])
        names = ", ".join(name for name in wanted if wanted[name] != row[name])
        place = f"{wanted['station']}/{wanted['sequence']}"
        return f"{place}: the lists show another {names} than the records say"

    def _wanted_row(self, connection: Connection, table: Table, record_id: str) -> Row:
        records = records_of(connection, self.log.name, [record_id])[record_id]
        return next(row for own, row in rows_of(records) if own is table)

    # Checkpoints -------------------------------------------------------------------------------

    def _own_checkpoints(self) -> list[Checkpoint]:
        query = select(CHECKPOINTS).order_by(CHECKPOINTS.c.number)
        rows = self.log.database.rows(query)
        found = []
        for place, row in enumerate(rows, start=1):
            if not (isinstance(row.content, str) and isinstance(row.signature, str)):
                self.problem(f"checkpoint {place}: has cells that are not text")
                continue
            one = Checkpoint(content=row.content, signature=row.signature, stamp=row.stamp)
            if one.sha256 != row.sha256:
                self.problem(f"checkpoint {place}: is filed as another one than it is")
            found.append(one)
        return found

    def _read_checkpoints(self, named: Iterable[_Named], signed_by: str | None) -> None:
        """Look at each checkpoint itself, and whether those of the log follow each other."""
        previous = START.sha256
        for place, file, checkpoint in named:
            self.checkpoints.add(checkpoint.content)
            said = f"{place}: " if file is None else ""
            problems = checkpoint.problems()
            for what in problems:
                self.problem(f"{said}{what}", file=file)
            if not problems:
                who = checkpoint.signer
                if signed_by not in (None, who):
                    self.problem(f"{said}was signed by {who}, not by {signed_by}", file=file)
                self._note_stamp(place, checkpoint)
                self.wanted |= {(name, at): "" for name, (at, _) in checkpoint.heads.items()}
            if file is None:
                if not problems and checkpoint.values.get("previous_sha256") != previous:
                    self.problem(f"{place}: does not follow the one before it")
                previous = checkpoint.sha256

    def _note_stamp(self, place: str, checkpoint: Checkpoint) -> None:
        try:
            found = check_stamp(checkpoint)
        except MissingExtraError as err:
            self.notes.append(f"{place}: its time stamp was not checked: {err}")
            return
        if found is None:
            return
        if found.problem is not None:
            self.problem(f"{place}: {found.problem}")
        else:
            self.notes.append(
                f"{place}: stamped {found.time}; whom to trust for it is for `openssl ts -verify`"
            )

    def _compare_checkpoints(self, named: Iterable[_Named]) -> None:
        for place, file, checkpoint in named:
            if not checkpoint.problems():
                fits = self._compare(place, checkpoint)
                if file is not None:
                    self.kept.append(self._standing(file, checkpoint, fits=fits))

    def _compare(self, place: str, checkpoint: Checkpoint) -> bool:
        """Whether the log holds the records that a checkpoint names."""
        fits = True
        for station, (sequence, digest) in sorted(checkpoint.heads.items()):
            last = self._last(station)
            if last < sequence:
                self.problem(
                    f"{place}: station {station} had {sequence} records, {sequence - last} of"
                    " them are lost"
                )
                fits = False
            elif self.wanted[station, sequence] != digest:
                self.problem(
                    f"{place}: {station}/{sequence} is not the record it names; the chain was"
                    " written anew"
                )
                fits = False
        return fits

    def _standing(self, file: str, checkpoint: Checkpoint, *, fits: bool) -> Kept:
        heads = {station: sequence for station, (sequence, _) in checkpoint.heads.items()}
        later = (self._last(name) - heads.get(name, 0) for name in self.last)
        return Kept(
            file=file,
            signer=checkpoint.signer,
            time_ns=checkpoint.time_ns,
            covered=sum(heads.values()),
            since=sum(count for count in later if count > 0),
            fits=fits,
        )

    def _last(self, station: str) -> int:
        return self.last.get(station, START).sequence

    # Evidence ----------------------------------------------------------------------------------

    def _check_evidence(self) -> None:
        """That files whose digest was recorded are the same; those that are elsewhere are noted."""
        folder, absent = self.log.evidence_folder, []
        for name, piece in self.evidence:
            path = None if folder is None else folder / piece.uri
            what = f"{name}: its evidence {piece.uri}"
            try:
                if path is None or not path.is_file():
                    absent.append(piece.uri)
                elif file_digest(path) != piece.sha256:
                    self.problem(f"{what} was changed")
            except OSError as err:
                self.problem(f"{what} cannot be read: {err.strerror or err}")
        if absent:
            self.notes.append(
                f"{len(absent)} of {len(self.evidence)} pieces of evidence are not beside the log"
                f" and were not checked: {', '.join(absent[:3])}{' ...' * (len(absent) > 3)}"
            )

    def _note_rights(self) -> None:
        """Whether others of this machine can write the log, or use the key to sign with."""
        log = self.log.database.path
        if log is not None and may_others(log, _WRITE):
            self.notes.append(f"others can write {log}; take that away: chmod go-w {log}")
        try:
            key = default_key()
        except InputError:
            return  # there is no place for one
        if may_others(key, _READ_OR_WRITE):
            self.notes.append(
                f"others can read or write the key {key}; take that away: chmod go-rw {key}"
            )

    def _say_notes(self) -> None:
        if self.steps:
            before = counted(self.steps, "record")
            self.notes.append(f"the clock was set before {before}; they say so")
        waiting = len(self.about - self.reports)
        if waiting:
            self.notes.append(
                f"records are about {counted(waiting, 'incident')} whose report is not"
                " here; merge the station that filed it"
            )
        if not self.checkpoints and self.count:
            self.notes.append(
                "no checkpoint: whoever can write the file can write all of it anew; make one with"
                " `robo-eval incidents checkpoint` and keep it elsewhere"
            )


def _server_parts(connection: Connection) -> Iterator[str]:
    """Parts on a server that are missing or disabled, and what was added to the tables of a log."""
    found = {tuple(row) for row in connection.exec_driver_sql(_SERVER_PARTS)}
    wanted = {("function", "records_stay", STAY)}
    for table in METADATA.tables.values():
        wanted.add(("table", table.name, ""))
        for key in (table.primary_key, *table.constraints):
            if isinstance(key, PrimaryKeyConstraint | UniqueConstraint):
                name = str(key.name or f"{table.name}_pkey")
                wanted.add(("constraint", name, table.name))
                wanted.add(("index", name, " ".join((table.name, *key.columns.keys()))))
        for index in table.indexes - {WORDS}:
            is_part = index.dialect_options["postgresql"]["where"] is not None
            words = (table.name, *index.columns.keys(), *(["where"] if is_part else []))
            wanted.add(("index", str(index.name), " ".join(words)))
    wanted |= {
        ("trigger", name, f"records records_stay {acts}") for name, acts in _TRIGGERS.items()
    }
    lacking = {part[:2] for part in wanted - found}
    for kind, name in sorted(lacking):
        yield f"{kind} {name} of the database is missing, or not that of an incident log"
    for kind, name, table in sorted(one for one in found - wanted if one[:2] not in lacking):
        # Other programs may have tables of their own beside these.
        if kind == "view" or (table.split(" ")[0] in METADATA.tables and kind != "table"):
            yield f"{kind} {name:.70} of the database is not that of an incident log"


def _file_parts(connection: Connection) -> Iterator[str]:
    """What SQLite says of pages and indexes; parts that no log has, or that are missing."""
    # The check goes from page to page and back: mapped, the file is read in half the time.
    connection.exec_driver_sql(f"PRAGMA mmap_size = {_MAPPED_BYTES}")
    for text in connection.exec_driver_sql("PRAGMA integrity_check(20)").scalars():
        if text != "ok":
            yield f"the database is damaged: {text}"
    connection.exec_driver_sql("PRAGMA mmap_size = 0")
    found = set(connection.exec_driver_sql(_PARTS).all())
    for kind, name in sorted({part[:2] for part in found ^ _parts()}):
        yield f"{kind} {name} of the database is not that of an incident log"


@cache
def _parts() -> frozenset[tuple[str, str, str | None]]:
    """What an SQLite file of an incident log is made of: kind, name and text of each part."""
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        create_tables(connection, FORM, {})
        found = frozenset(tuple(row) for row in connection.exec_driver_sql(_PARTS))
    engine.dispose()
    return found
