"""Whether an incident log still is what was recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, create_engine, select

from robo_eval.core.canonical import file_digest
from robo_eval.core.errors import InputError, MissingExtraError
from robo_eval.log.verify import Problem
from robo_eval_incidents.bodies import Account, Attachment, Body, Evidence, Report
from robo_eval_incidents.checkpoint import (
    Checkpoint,
    check_stamp,
    read_checkpoint,
)
from robo_eval_incidents.database import create_tables
from robo_eval_incidents.followed import differences
from robo_eval_incidents.log import IncidentLog, heads_of, open_log
from robo_eval_incidents.record import GENESIS, parsed
from robo_eval_incidents.schema import CHECKPOINTS, METADATA, RECORDS, USERS
from robo_eval_incidents.text import person_key

_PAGE: Final = 10_000
_PARTS: Final = "SELECT type, name, sql FROM sqlite_schema WHERE name NOT GLOB 'sqlite_stat*'"
_TRIGGERS: Final = (
    "SELECT relname, tgname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid"
    " WHERE NOT tgisinternal AND relnamespace = current_schema()::regnamespace"
    " UNION ALL SELECT tablename, rulename FROM pg_rules WHERE schemaname = current_schema()"
)
_MOST: Final = 100
"""Problems of one kind that are listed."""
_COLUMNS: Final = tuple(
    RECORDS.c[name]
    for name in ("number", "station", "sequence", "record_id", "about", "content", "sha256")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogReport:
    """What verification found.

    Attributes:
        log: The log.
        problems: Everything that is not as it was recorded.
        notes: What is fine but worth knowing, or could not be checked.
        records: Records that were checked.
        stations: Number and digest of the newest record of each station.
        checkpoints: Checkpoints that were compared with, those of the log itself included.
    """

    log: str
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]
    records: int
    stations: dict[str, tuple[int, str]]
    checkpoints: int

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def lines(self) -> Iterator[str]:
        """The findings, one line each."""
        for problem in self.problems:
            yield f"PROBLEM {problem}"
        for note in self.notes:
            yield f"note: {note}"
        stations = len(self.stations)
        yield (
            f"{self.records} incident records of {stations} station{'s' * (stations != 1)} and"
            f" {self.checkpoints} checkpoint{'s' * (self.checkpoints != 1)} checked"
        )
        for name, (sequence, head) in self.stations.items():
            yield f"  {name}: {sequence} records, chain head {head}"

    def as_dict(self) -> dict[str, Any]:
        """The findings, ready for JSON."""
        return {
            "log": self.log,
            "ok": self.ok,
            "problems": [
                {"file": problem.file, "row": problem.row, "what": problem.what}
                for problem in self.problems
            ],
            "notes": list(self.notes),
            "records": self.records,
            "checkpoints": self.checkpoints,
            "stations": {
                name: {"sequence": sequence, "chain_head": head}
                for name, (sequence, head) in self.stations.items()
            },
        }


def verify_log(
    target: str | Path, *, checkpoints: Sequence[Path] = (), signed_by: str | None = None
) -> LogReport:
    """Compare every record with its digest, its place in the chain, and with checkpoints.

    Finds any changed byte of the canonical form of a record or checkpoint; records that were
    removed, inserted, reordered or doubled; the loss of the newest ones back to the last checkpoint
    that was kept elsewhere; files of evidence beside the log that were changed; and lists that show
    something else than the records say. What it cannot find is in docs/threat_model.md.

    Args:
        target: Path of the file, a folder that holds `incidents.db`, or URL.
        checkpoints: Files of checkpoints that were kept elsewhere.
        signed_by: Fingerprint of the key that has to have signed each checkpoint; None for any.

    Raises:
        IncidentLogError: If the log is missing, is none, or is of another schema.
        InputError: If a file is no checkpoint.
    """
    kept = [(str(path), read_checkpoint(path)) for path in checkpoints]
    with open_log(target, read_only=True) as log:
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
        records=check.records,
        stations=dict(sorted(check.stations.items())),
        checkpoints=check.checkpoints,
    )


@dataclass(slots=True)
class _Check:
    """One pass over a log."""

    log: IncidentLog
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    records: int = 0
    checkpoints: int = 0
    stations: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Number and digest of the newest record seen."""
    wanted: dict[tuple[str, int], str] = field(default_factory=dict)
    """Digests that checkpoints name, by station and number."""
    found: dict[tuple[str, int], str] = field(default_factory=dict)
    """Digests of the records that checkpoints name."""
    reports: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)
    """Records by station and id; several stations may have drafted one event under one id."""
    about: set[str] = field(default_factory=set)
    accounts: dict[str, set[frozenset[str]]] = field(default_factory=dict)
    """Roles that records gave to each account."""
    evidence: list[tuple[str, str, str]] = field(default_factory=list)
    """Files whose digest was recorded: by which record, path, and SHA-256."""
    steps: int = 0
    """Records that were written after somebody set the clock."""

    def problem(self, what: str, row: int | None = None) -> None:
        """Note something that is not as it was recorded."""
        if len(self.problems) < _MOST:
            self.problems.append(Problem(file=self.log.name, what=what, row=row))
        elif len(self.problems) == _MOST:
            self.problems.append(Problem(file=self.log.name, what="and more of the kind"))

    def run(self, kept: Sequence[tuple[str, Checkpoint]], signed_by: str | None) -> None:
        """Check everything."""
        own = self._own_checkpoints()
        self._read_checkpoints(own, kept, signed_by)
        with self.log.database.reading() as connection:
            self._check_file(connection)
            for row in _rows(connection):
                self._check_record(*row)
            self._check_heads(connection)
            self._check_accounts(connection)
            if not self.problems:
                for what in differences(connection, self.log.name):
                    self.problem(what)
        self._compare_checkpoints(own, kept)
        if signed_by is not None and not self.checkpoints:
            self.problem(f"there is no checkpoint that {signed_by} could have signed")
        self._check_evidence()
        self._say_notes()

    # The database ------------------------------------------------------------------------------

    def _check_file(self, connection: Connection) -> None:
        """What SQLite says of pages, and of indexes that should hold what tables hold."""
        if self.log.database.is_server:
            self.notes.append("pages and indexes are the server's to check; see its amcheck")
            for table, name in connection.exec_driver_sql(_TRIGGERS):
                if table in METADATA.tables:
                    self.problem(f"table {table!r} has trigger or rule {name!r:.70}")
            return
        for (text,) in connection.exec_driver_sql("PRAGMA integrity_check(20)"):
            if text != "ok":
                self.problem(f"the database is damaged: {text}")
        found = set(connection.exec_driver_sql(_PARTS).all())
        for kind, name in sorted({part[:2] for part in found ^ _parts()}):
            self.problem(f"{kind} {name} of the database is not that of an incident log")

    def _check_accounts(self, connection: Connection) -> None:
        """That nobody may do on the web page what no record allowed."""
        for user in connection.execute(select(USERS.c.name, USERS.c.shown_name, USERS.c.roles)):
            roles = frozenset(str(user.roles).split())
            if roles not in self.accounts.get(user.name, ()):
                self.problem(f"account {user.shown_name}: has roles that no record gave to it")

    def _check_heads(self, connection: Connection) -> None:
        heads = {}
        for name, head in heads_of(connection).items():
            if type(name) is str and type(head.sequence) is int:
                heads[name] = (head.sequence, head.sha256)
            else:
                self.problem(f"station {name!s:.70}: has cells that are no text or number")
        for name in sorted(heads.keys() | self.stations.keys()):
            last, stated = self.stations.get(name, (0, GENESIS)), heads.get(name)
            if stated is None:
                self.problem(f"station {name}: is not in the table of stations")
            elif stated[0] > last[0]:
                self.problem(
                    f"station {name}: had {stated[0]} records, the newest {stated[0] - last[0]} are"
                    " missing"
                )
            elif stated != last:
                self.problem(f"station {name}: its newest record is not the one it stated")

    # Records -----------------------------------------------------------------------------------

    def _check_record(
        self,
        number: int,
        station: Any,  # noqa: ANN401 - cells of an untrusted file
        sequence: Any,  # noqa: ANN401
        record_id: Any,  # noqa: ANN401
        about: Any,  # noqa: ANN401
        content: Any,  # noqa: ANN401
        stated: Any,  # noqa: ANN401
    ) -> None:
        self.records += 1
        name = f"{station!s:.70}/{sequence!s:.20}"
        cells = (station, sequence, record_id, content)
        if tuple(map(type, cells)) != (str, int, str, str) or not isinstance(about, str | None):
            self.problem(f"{name}: has cells that are no text or number", number)
            return
        digest = sha256(content.encode()).hexdigest()
        if digest != stated:
            self.problem(
                f"{name}: was changed: its SHA-256 is {digest}, not {stated!s:.80}", number
            )
        if number < 1:
            self.problem(f"{name}: has the row number {number}, which no log gives", number)
        try:
            frame, body = parsed(content, where=name)
        except InputError as err:
            self.problem(str(err), number)
            return
        if (frame.station, frame.sequence, frame.record_id) != (station, sequence, record_id):
            self.problem(f"{name}: is filed as another record than it says it is", number)
        if about != (frame.incident_id if frame.incident_id != record_id else None):
            self.problem(f"{name}: is filed under another incident than it names", number)
        self._check_place(station, sequence, frame.previous_sha256, name, number)
        key = f"{station} {record_id}"
        if key in self.seen:
            self.problem(f"{name}: record {record_id} is there twice", number)
        self.seen.add(key)
        self.stations[station] = (sequence, digest)
        if (station, sequence) in self.wanted:
            self.found[station, sequence] = digest
        self.steps += bool(frame.clock_step_ns)
        self._note_said(name, record_id, about, body)

    def _note_said(self, name: str, record_id: str, about: str | None, body: Body) -> None:
        """What a record says that other checks need."""
        if about is not None:
            self.about.add(about)
        match body:
            case Report():
                self.reports.add(record_id)
                self._note_evidence(name, body.evidence)
            case Attachment():
                self._note_evidence(name, body.evidence)
            case Account():
                self.accounts.setdefault(person_key(body.user), set()).add(frozenset(body.roles))
            case _:
                pass

    def _check_place(
        self, station: str, sequence: int, previous: str, name: str, number: int
    ) -> None:
        last, head = self.stations.get(station, (0, GENESIS))
        if sequence == last + 1:
            if previous != head:
                self.problem(f"{name}: does not follow the record before it", number)
            return
        if sequence > last:
            between = sequence - last - 1
            self.problem(f"{name}: {between} record{'s' * (between > 1)} before it missing", number)
        else:
            self.problem(f"{name}: comes after {station}/{last}; records were moved", number)

    # Checkpoints -------------------------------------------------------------------------------

    def _own_checkpoints(self) -> list[Checkpoint]:
        query = select(CHECKPOINTS).order_by(CHECKPOINTS.c.number)
        with self.log.database.reading() as connection:
            rows = connection.execute(query).all()
        found = []
        for place, row in enumerate(rows, start=1):
            if not (isinstance(row.content, str) and isinstance(row.signature, str)):
                self.problem(f"checkpoint {place}: has cells that are no text")
                continue
            one = Checkpoint(content=row.content, signature=row.signature, stamp=row.stamp)
            if one.sha256 != row.sha256:
                self.problem(f"checkpoint {place}: is filed as another one than it is")
            found.append(one)
        return found

    def _read_checkpoints(
        self,
        own: Sequence[Checkpoint],
        kept: Sequence[tuple[str, Checkpoint]],
        signed_by: str | None,
    ) -> None:
        previous = GENESIS
        named = [(f"checkpoint {place}", one) for place, one in enumerate(own, start=1)]
        for place, checkpoint in named:
            problems = self._check_checkpoint(place, checkpoint, signed_by)
            if not problems and checkpoint.values.get("previous_sha256") != previous:
                self.problem(f"{place}: does not follow the one before it")
            previous = checkpoint.sha256
        for path, checkpoint in kept:
            self._check_checkpoint(path, checkpoint, signed_by)

    def _check_checkpoint(self, place: str, checkpoint: Checkpoint, signed_by: str | None) -> bool:
        self.checkpoints += 1
        problems = checkpoint.problems()
        for what in problems:
            self.problem(f"{place}: {what}")
        if problems:
            return True
        if signed_by is not None and checkpoint.signer != signed_by:
            self.problem(f"{place}: was signed by {checkpoint.signer}, not by {signed_by}")
        self._note_stamp(place, checkpoint)
        for name, (sequence, digest) in checkpoint.heads.items():
            self.wanted[name, sequence] = digest
        return False

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

    def _compare_checkpoints(
        self, own: Sequence[Checkpoint], kept: Sequence[tuple[str, Checkpoint]]
    ) -> None:
        named = [*((f"checkpoint {place}", one) for place, one in enumerate(own, start=1)), *kept]
        for place, checkpoint in named:
            if checkpoint.problems():
                continue
            for station, (sequence, digest) in sorted(checkpoint.heads.items()):
                last = self.stations.get(station, (0, GENESIS))[0]
                if last < sequence:
                    self.problem(
                        f"{place}: station {station} had {sequence} records, {sequence - last} of"
                        " them are lost"
                    )
                elif self.found.get((station, sequence)) != digest:
                    self.problem(
                        f"{place}: {station}/{sequence} is not the record it names; the chain was"
                        " written anew"
                    )

    # Evidence ----------------------------------------------------------------------------------

    def _note_evidence(self, name: str, pieces: Sequence[Evidence]) -> None:
        for piece in pieces:
            if piece.sha256 is not None:
                self.evidence.append((name, piece.uri, piece.sha256))

    def _check_evidence(self) -> None:
        """That files whose digest was recorded are the same; those that are elsewhere are noted."""
        folder = self.log.evidence_folder
        absent = []
        for name, uri, digest in self.evidence:
            path = None if folder is None else folder / uri
            if path is None or not path.is_file():
                absent.append(uri)
                continue
            try:
                same = file_digest(path) == digest
            except OSError as err:
                self.problem(f"{name}: its evidence {uri} cannot be read: {err.strerror or err}")
                continue
            if not same:
                self.problem(f"{name}: its evidence {uri} was changed")
        if absent:
            self.notes.append(
                f"{len(absent)} of {len(self.evidence)} pieces of evidence are not beside the log"
                f" and were not checked: {', '.join(absent[:3])}{' ...' * (len(absent) > 3)}"
            )

    def _say_notes(self) -> None:
        if self.steps:
            self.notes.append(
                f"the clock was set before {self.steps} record{'s' * (self.steps > 1)}; they say so"
            )
        waiting = len(self.about - self.reports)
        if waiting:
            self.notes.append(
                f"records are about {waiting} incident{'s' * (waiting > 1)} whose report is not"
                " here; merge the station that filed it"
            )
        if not self.checkpoints and self.records:
            self.notes.append(
                "no checkpoint: whoever can write the file can write all of it anew; make one with"
                " `robo-eval incidents checkpoint` and keep it elsewhere"
            )


@cache
def _parts() -> frozenset[tuple[str, str, str | None]]:
    """What an SQLite file of an incident log is made of: kind, name and text of each part."""
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        create_tables(connection, {})
        found = frozenset(tuple(row) for row in connection.exec_driver_sql(_PARTS))
    engine.dispose()
    return found


def _rows(connection: Connection) -> Iterator[Any]:
    """All records by their number, without the indexes."""
    query = select(*_COLUMNS).order_by(RECORDS.c.number).limit(_PAGE)
    after = None
    while True:
        rows = connection.execute(
            query if after is None else query.where(RECORDS.c.number > after)
        ).fetchall()
        yield from rows
        if len(rows) < _PAGE:
            return
        after = rows[-1][0]
