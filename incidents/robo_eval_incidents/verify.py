"""Whether an incident log still is what was recorded."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, create_engine, func, select

from robo_eval.core.canonical import file_digest
from robo_eval.core.errors import InputError, MissingExtraError
from robo_eval.core.wording import counted
from robo_eval.log.files import may_others
from robo_eval.log.signing import default_key
from robo_eval.log.verify import Problem
from robo_eval_incidents.checkpoint import (
    Checkpoint,
    check_stamp,
    read_checkpoint,
)
from robo_eval_incidents.database import create_tables
from robo_eval_incidents.listed_check import differences
from robo_eval_incidents.log import IncidentLog, heads_of, open_log
from robo_eval_incidents.record import GENESIS
from robo_eval_incidents.scan import Helpers, Scan
from robo_eval_incidents.schema import CHECKPOINTS, METADATA, RECORDS, USERS
from robo_eval_incidents.tables_cells import iso_of

_PARTS: Final = "SELECT type, name, sql FROM sqlite_schema WHERE name NOT GLOB 'sqlite_stat*'"
_TRIGGERS: Final = (
    "SELECT relname, tgname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid"
    " WHERE NOT tgisinternal AND relnamespace = current_schema()::regnamespace"
    " UNION ALL SELECT tablename, rulename FROM pg_rules WHERE schemaname = current_schema()"
)
_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_READ_OR_WRITE: Final = _WRITE | stat.S_IRGRP | stat.S_IROTH
_MOST: Final = 100
"""Problems of one kind that are listed."""


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
        made = "at no time it names" if self.time_ns is None else _second(self.time_ns)
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


def _second(time_ns: int) -> str:
    return iso_of(time_ns - time_ns % 10**9)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogReport:
    """What verification found.

    Attributes:
        log: The log.
        problems: Everything that is not as it was recorded.
        notes: What is fine but worth knowing, or could not be checked.
        records: Records that were checked.
        stations: Number and digest of the newest record of each station.
        checkpoints: Checkpoints that were compared with, those of the log itself included; one that
            is there and was given as well is one.
        kept: How the log stands to each sound checkpoint that was given.
    """

    log: str
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]
    records: int
    stations: dict[str, tuple[int, str]]
    checkpoints: int
    kept: tuple[Kept, ...] = ()

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
            "ok": self.ok,
            "problems": [problem.as_dict() for problem in self.problems],
            "notes": list(self.notes),
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
        InputError: If a file is not a checkpoint.
    """
    kept = [(str(path), read_checkpoint(path)) for path in checkpoints]
    with open_log(target, read_only=True) as log:
        check = _Check(log, target)
        try:
            check.run(kept, signed_by)
        except InputError as err:
            # Half of it can be read: what was found until then, and what ended it.
            check.problem(str(err).removeprefix(f"{log.name}: "))
    return LogReport(
        log=log.name,
        problems=tuple(check.problems),
        notes=tuple(check.notes),
        records=check.scan.records,
        stations=dict(sorted(check.scan.stations.items())),
        checkpoints=len(check.checkpoints),
        kept=tuple(check.kept),
    )


@dataclass(slots=True)
class _Check:
    """One pass over a log."""

    log: IncidentLog
    target: str | Path
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    checkpoints: set[str] = field(default_factory=set)
    """What the checkpoints that were looked at say."""
    kept: list[Kept] = field(default_factory=list)
    wanted: set[tuple[str, int]] = field(default_factory=set)
    """Records that checkpoints name, by station and number."""
    scan: Scan = field(default_factory=Scan)
    """What the records say."""

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
            self._run_on(connection)
        if self.log.database.is_server:
            self.notes.append("pages and indexes are the server's to check; see its amcheck")
        self._compare_checkpoints(own, kept)
        if signed_by is not None and not self.checkpoints:
            self.problem(f"there is no checkpoint that {signed_by} could have signed")
        self._check_evidence()
        self._note_rights()
        self._say_notes()

    def _run_on(self, connection: Connection) -> None:
        newest = connection.execute(select(func.max(RECORDS.c.number))).scalar()
        name = self.log.name
        with Helpers(self.target, name, newest, self.wanted, _look_aside) as helpers:
            self.scan = helpers.scan(connection)
            for problem in self.scan.problems:
                self.problem(problem.what, problem.row)
            self._check_ids(connection)
            self._check_heads(connection)
            self._check_accounts(connection)
            parts, lists = helpers.aside() or _looked_at(self.log, connection)
            for what in parts:
                self.problem(what)
            # Lists of records that are none differ from them anyhow.
            for what in [] if self.problems else lists:
                self.problem(what)

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
            if roles not in self.scan.accounts.get(user.name, ()):
                self.problem(f"account {user.shown_name}: has roles that no record gave to it")

    def _check_heads(self, connection: Connection) -> None:
        heads = {}
        for name, head in heads_of(connection).items():
            if type(name) is str and type(head.sequence) is int:
                heads[name] = (head.sequence, head.sha256)
            else:
                self.problem(f"station {name!s:.70}: has cells that are neither text nor number")
        for name in sorted(heads.keys() | self.scan.stations.keys()):
            last, stated = self.scan.stations.get(name, (0, GENESIS)), heads.get(name)
            if stated is None:
                self.problem(f"station {name}: is not in the table of stations")
            elif stated[0] > last[0]:
                self.problem(
                    f"station {name}: had {stated[0]} records, the newest {stated[0] - last[0]} are"
                    " missing"
                )
            elif stated != last:
                self.problem(f"station {name}: its newest record is not the one it stated")

    # Checkpoints -------------------------------------------------------------------------------

    def _own_checkpoints(self) -> list[Checkpoint]:
        query = select(CHECKPOINTS).order_by(CHECKPOINTS.c.number)
        with self.log.database.reading() as connection:
            rows = connection.execute(query).all()
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
        self.checkpoints.add(checkpoint.content)
        problems = checkpoint.problems()
        for what in problems:
            self.problem(f"{place}: {what}")
        if problems:
            return True
        if signed_by is not None and checkpoint.signer != signed_by:
            self.problem(f"{place}: was signed by {checkpoint.signer}, not by {signed_by}")
        self._note_stamp(place, checkpoint)
        for name, (sequence, _) in checkpoint.heads.items():
            self.wanted.add((name, sequence))
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
        for number, checkpoint in enumerate(own, start=1):
            if not checkpoint.problems():
                self._compare(f"checkpoint {number}", checkpoint)
        for file, checkpoint in kept:
            if not checkpoint.problems():
                fits = self._compare(file, checkpoint)
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
            elif self.scan.found.get((station, sequence)) != digest:
                self.problem(
                    f"{place}: {station}/{sequence} is not the record it names; the chain was"
                    " written anew"
                )
                fits = False
        return fits

    def _standing(self, file: str, checkpoint: Checkpoint, *, fits: bool) -> Kept:
        heads = {station: sequence for station, (sequence, _) in checkpoint.heads.items()}
        later = (self._last(name) - heads.get(name, 0) for name in self.scan.stations)
        return Kept(
            file=file,
            signer=checkpoint.signer,
            time_ns=checkpoint.time_ns,
            covered=sum(heads.values()),
            since=sum(count for count in later if count > 0),
            fits=fits,
        )

    def _last(self, station: str) -> int:
        return self.scan.stations.get(station, (0, GENESIS))[0]

    # Evidence ----------------------------------------------------------------------------------

    def _check_evidence(self) -> None:
        """That files whose digest was recorded are the same; those that are elsewhere are noted."""
        folder = self.log.evidence_folder
        scan, absent = self.scan, []
        for name, uri, digest in scan.evidence:
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
                f"{len(absent)} of {len(scan.evidence)} pieces of evidence are not beside the log"
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
        steps = self.scan.steps
        if steps:
            self.notes.append(f"the clock was set before {counted(steps, 'record')}; they say so")
        waiting = len(self.scan.about - self.scan.reports)
        if waiting:
            self.notes.append(
                f"records are about {counted(waiting, 'incident')} whose report is not"
                " here; merge the station that filed it"
            )
        if not self.checkpoints and self.scan.records:
            self.notes.append(
                "no checkpoint: whoever can write the file can write all of it anew; make one with"
                " `robo-eval incidents checkpoint` and keep it elsewhere"
            )


def _look_aside(target: str | Path) -> tuple[list[str], list[str]]:
    with open_log(target, read_only=True) as log, log.database.reading() as connection:
        return _looked_at(log, connection)


def _looked_at(log: IncidentLog, connection: Connection) -> tuple[list[str], list[str]]:
    """What is wrong with the database as such, and where its lists are."""
    parts = _server_parts(connection) if log.database.is_server else _file_parts(connection)
    try:
        lists = list(islice(differences(connection, log.name), _MOST + 1))
    except Exception as err:  # noqa: BLE001 - of records that are none, which others tell of
        lists = [f"the lists cannot be compared with the records: {' '.join(str(err).split())}"]
    return parts, lists


def _server_parts(connection: Connection) -> list[str]:
    return [
        f"table {table!r} has trigger or rule {name!r:.70}"
        for table, name in connection.exec_driver_sql(_TRIGGERS)
        if table in METADATA.tables
    ]


def _file_parts(connection: Connection) -> list[str]:
    """What SQLite says of pages and indexes; parts that no log has, or that are missing."""
    checked = connection.exec_driver_sql("PRAGMA integrity_check(20)").scalars()
    problems = [f"the database is damaged: {text}" for text in checked if text != "ok"]
    found = set(connection.exec_driver_sql(_PARTS).all())
    return problems + [
        f"{kind} {name} of the database is not that of an incident log"
        for kind, name in sorted({part[:2] for part in found ^ _parts()})
    ]


@cache
def _parts() -> frozenset[tuple[str, str, str | None]]:
    """What an SQLite file of an incident log is made of: kind, name and text of each part."""
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        create_tables(connection, {})
        found = frozenset(tuple(row) for row in connection.exec_driver_sql(_PARTS))
    engine.dispose()
    return found
