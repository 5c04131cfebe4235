"""Bringing together the chains of stations that were apart."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

from sqlalchemy import select

from robo_eval.core import door
from robo_eval.core.canonical import canonical_json, file_digest
from robo_eval.core.errors import InputError
from robo_eval.log.chain import START, ChainLink, break_before
from robo_eval.log.files import appearing, explained
from robo_eval.log.sql import is_url
from robo_eval_incidents.checkpoint import heads_stated, plain_heads
from robo_eval_incidents.database import IncidentLogError
from robo_eval_incidents.kinds import Attachment, Evidence, Redaction, Report
from robo_eval_incidents.log import DATABASE, EVIDENCE, IncidentLog, heads_of, open_log, row_of
from robo_eval_incidents.record import (
    FORM,
    MOST_BYTES,
    Record,
    line_of,
    parts_of_line,
    record_of,
    without_collector,
)
from robo_eval_incidents.redaction import forget
from robo_eval_incidents.rows import Row
from robo_eval_incidents.schema import RECORDS

EXPORT_SUFFIX: Final = ".jsonl"
"""Ending of a file of exported records."""
_KIND: Final = "export"
_BATCH: Final = 20_000
"""Records that are committed at once: pages that several of them change are written once."""
_BATCH_SERVER: Final = 400
"""The same on a server, which holds as many locks."""


_Line = tuple[str, str, str | None]
"""What to call a record, its canonical form, and the texts beside that."""


@dataclass(slots=True, kw_only=True)
class Merged:
    """What a merge brought.

    Attributes:
        added: Records that were new here, by station; a station of which none was is left out.
        known: Records that were here already.
        files: Pieces of evidence that were copied, relative to the folder of the log.
        left: Pieces of evidence that the source names and that could not be copied, with the
            reason.
    """

    added: dict[str, int] = field(default_factory=dict)
    known: int = 0
    files: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def export_records(log: IncidentLog) -> Iterator[str]:
    """Lines of a file that can be merged, and checked by any program that knows SHA-256.

    The first line says how far each station had got. Each further one is a record in its canonical
    form, station by station in the order of its chain.
    """
    heads = log.heads()
    first = {"form": FORM, "heads": plain_heads(heads), "kind": _KIND, "log_id": log.meta["log_id"]}
    yield canonical_json(first).decode() + "\n"
    for station, (last, _) in heads.items():
        for sequence, content, texts in log.stored(station=station):
            if sequence > last:
                break  # came meanwhile
            yield line_of(content, texts)


def check_source(source: str | Path) -> None:
    """Refuse what cannot be merged, before a log is made for it; see `merge`.

    Raises:
        InputError: If it is missing, or neither a log nor an export; the message names it.
        TrialDirectoryError: If it cannot be read.
    """
    if is_url(source):
        open_log(source, read_only=True).close()
        return
    if source == "":
        raise InputError("the name of a file to merge is empty")
    path = Path(source)
    path = path / DATABASE if path.is_dir() else path
    if not path.exists():
        raise IncidentLogError(
            f"{path}: no such file to merge; name a log, or a file *.jsonl of records"
        )
    if not _is_export(path):
        open_log(path, read_only=True).close()
        return
    lines = _lines(path)
    _stated(path, lines)
    for where, content, texts in islice(lines, 1):
        record_of(content, texts, where=where)


def merge(source: str | Path, into: IncidentLog) -> Merged:
    """Take in the records of another log; every chain stays as it is.

    May be done again at any time, after a crash as well: what is here already is left alone.

    Args:
        source: Path or URL of a log, a folder that holds `incidents.db`, or a file `*.jsonl` of
            what `export_records` gave.
        into: The log to add to.

    Returns:
        What was new.

    Raises:
        InputError: If a record of the source does not follow the one before it, or the source and
            this log hold different records of the same station and number. Of the station it
            names, nothing was added from there on; other stations went in.
        IncidentLogError: If one of them cannot be read or written.
    """
    if not is_url(source) and _is_export(Path(source)):
        return _merge_export(Path(source), into)
    with open_log(source, read_only=True) as log:
        if log.database.path is not None and log.database.path == into.database.path:
            raise InputError(f"{log.name}: is the log to merge into")
        stated = log.heads()
        merging = _Merge(into=into, name=log.name, folder=log.evidence_folder, stated=stated)
        return merging.run(_contents(log, stated, into.heads()))


def _merge_export(path: Path, into: IncidentLog) -> Merged:
    lines = _lines(path)
    stated = _stated(path, lines)
    return _Merge(into=into, name=str(path), folder=path.parent, stated=stated).run(lines)


def _stated(path: Path, lines: Iterator[_Line]) -> dict[str, ChainLink]:
    """How far each station had got, by the first line of an export.

    Raises:
        InputError: If an export does not begin so.
    """
    where, first, _ = next(lines, (f"{path}, line 1", "", None))
    try:
        values = json.loads(first)
        kind, form, heads = values["kind"], values["form"], heads_stated(values["heads"])
        if kind != _KIND:
            raise ValueError("its kind is another one")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as err:
        raise InputError(
            f"{where}: is not how an export begins; `robo-eval incidents export --out FILE.jsonl`"
            " writes one"
        ) from err
    if form != FORM:
        raise InputError(
            f"{where}: is of form {form!r:.20}, this program reads {FORM}; install a newer"
            " robo-eval"
        )
    return heads


def _is_export(path: Path) -> bool:
    # By its name: a database must not be looked into while this process has it open, see
    # `robo_eval.log.database.connect`.
    return path.suffix == EXPORT_SUFFIX and not path.is_dir()


def _contents(
    log: IncidentLog, stated: Mapping[str, ChainLink], known: Mapping[str, ChainLink]
) -> Iterator[_Line]:
    """Records of a log from the newest one that both have."""
    for station, (last, _) in stated.items():
        both = min(last, known[station].sequence) if station in known else 0
        for sequence, content, texts in log.stored(station=station, after=max(both - 1, 0)):
            if sequence > last:
                break  # came meanwhile
            yield f"{log.name}: {station}/{sequence}", content, texts


def _lines(path: Path) -> Iterator[_Line]:
    with explained(path, "cannot be read"), door.opened(path) as file:
        number = 0
        while line := file.readline(2 * MOST_BYTES):
            number += 1
            where = f"{path}, line {number}"
            if not line.endswith(b"\n"):
                raise InputError(f"{where}: ends in the middle of a record; export it again")
            try:
                yield where, *parts_of_line(line.decode().rstrip("\n"))
            except UnicodeDecodeError as err:
                raise InputError(f"{where}: is not UTF-8 text") from err


@dataclass(slots=True)
class _Chain:
    """A station of a source, record by record.

    Attributes:
        name: The station.
        stated: How far the source says it has got; None if it does not name it.
        here: How far it has got here.
        last: The newest record of the source seen.
        new: The newest new record, which no other has confirmed yet.
        problem: What is wrong; nothing more is taken then.
    """

    name: str
    stated: ChainLink | None
    here: ChainLink
    last: ChainLink | None = None
    new: tuple[Record, Row] | None = None
    problem: InputError | None = None


@dataclass(slots=True, kw_only=True)
class _Merge:
    """One merge, one station at a time.

    Attributes:
        into: The log to add to.
        name: What the source is called.
        folder: What its evidence is relative to; None if it has none.
        stated: How far it says its stations have got.
    """

    into: IncidentLog
    name: str
    folder: Path | None
    stated: Mapping[str, ChainLink]
    merged: Merged = field(default_factory=Merged)
    waiting: list[tuple[Record, Row]] = field(default_factory=list)
    """New records of a station that are sound: the next one, or the source, states their digest."""

    def run(self, lines: Iterable[_Line]) -> Merged:
        """Take in records: what to call each, its canonical form, and its texts."""
        with without_collector():
            return self._run(lines)

    def _run(self, lines: Iterable[_Line]) -> Merged:
        here = self.into.heads()
        chains: dict[str, _Chain] = {}
        chain: _Chain | None = None
        try:
            for where, content, texts in lines:
                record = record_of(content, texts, where=where, is_exact=True)
                row = row_of(record, content, texts)
                if chain is None or chain.name != record.station:
                    self._end(chain)
                    name = record.station
                    begun = _Chain(name, self.stated.get(name), here.get(name, START))
                    chain = chains.setdefault(name, begun)
                if chain.problem is None:
                    self._take(chain, where, record, row)
        except IncidentLogError:
            raise
        except InputError:
            # What came before is sound, and goes in.
            self._add()
            raise
        self._end(chain)
        for name, stated in self.stated.items():
            if name not in chains:
                chains[name] = unseen = _Chain(name, stated, here.get(name, START))
                self._end(unseen)
        problems = [one.problem for one in chains.values() if one.problem is not None]
        if problems:
            others = len(problems) - 1
            more = f"; and {others} more of its stations cannot be merged" if others else ""
            raise InputError(f"{problems[0]}{more}")
        return self.merged

    def _take(self, chain: _Chain, where: str, record: Record, row: Row) -> None:
        chain.problem = self._problem_of_place(chain, where, record)
        if chain.problem is not None:
            chain.new = None  # what nothing has confirmed may be what was changed
            return
        chain.last = ChainLink(record.sequence, row["sha256"])
        if record.sequence > chain.here.sequence:
            self._confirm(chain)
            chain.new = (record, row)
        elif record.sequence == chain.here.sequence and chain.last != chain.here:
            chain.problem = _fork(where, chain.name, record.sequence)
        else:
            self.merged.known += 1

    def _problem_of_place(self, chain: _Chain, where: str, record: Record) -> InputError | None:
        """Why a record follows neither the one before it, nor one that is here."""
        last = chain.last
        if last is None and record.sequence > 1:
            stored = self._digest_here(chain.name, record.sequence - 1)
            if stored is None:
                return InputError(
                    f"{where}: the records of station {chain.name} before it are not here; merge"
                    " those first"
                )
            last = ChainLink(record.sequence - 1, stored)
        match break_before(last or START, record.sequence, record.previous_sha256):
            case None:
                return None
            case "other" if chain.last is None:
                return _fork(where, chain.name, record.sequence - 1)
            case "other":
                return InputError(f"{where}: does not follow the record before it")
            case _:
                before = f"{chain.name}/{(last or START).sequence}"
                return InputError(f"{where}: follows {before}; records are missing or were moved")

    def _end(self, chain: _Chain | None) -> None:
        """That a source holds what it states, and if it is behind, the records that are here."""
        if chain is None or chain.problem is not None:
            self._add()
            return
        stated, last = chain.stated, chain.last
        if stated is None or last != stated:
            found, wanted = (last or START).sequence, (stated or START).sequence
            chain.problem = InputError(
                f"{self.name}: station {chain.name} ends with record {found}, and it is not record"
                f" {wanted} as stated; its end was lost or changed"
            )
        else:
            self._confirm(chain)
            is_behind = stated.sequence < chain.here.sequence
            if is_behind and self._digest_here(chain.name, stated.sequence) != stated.sha256:
                chain.problem = _fork(self.name, chain.name, stated.sequence)
        self._add()

    def _digest_here(self, station: str, sequence: int) -> str | None:
        query = select(RECORDS.c.sha256).where(
            RECORDS.c.station == station, RECORDS.c.sequence == sequence
        )
        with self.into.database.reading() as connection:
            return connection.execute(query).scalar()

    # Adding ------------------------------------------------------------------------------------

    def _confirm(self, chain: _Chain) -> None:
        if chain.new is not None:
            self._copy_evidence(chain.new[0])
            self.waiting.append(chain.new)
            chain.new = None
            if len(self.waiting) >= (_BATCH_SERVER if self.into.database.is_server else _BATCH):
                self._add()

    def _add(self) -> None:
        """Commit what waits, the station's head with its records."""
        if self.waiting:
            self.into.database.persistently(self._commit)
            if any(isinstance(record.body, Redaction) for record, _ in self.waiting):
                # Where another program is reading, the file is emptied when the log is closed.
                with suppress(IncidentLogError):
                    forget(self.into.database)
            station = self.waiting[0][0].station
            self.merged.added[station] = self.merged.added.get(station, 0) + len(self.waiting)
            self.waiting.clear()

    def _commit(self) -> None:
        station = self.waiting[0][0].station
        with self.into.database.writing() as connection:
            last = heads_of(connection).get(station, START)
            new = [one for one in self.waiting if one[0].sequence > last.sequence]
            if new and break_before(last, new[0][0].sequence, new[0][0].previous_sha256):
                # Somebody has added other records to this chain meanwhile.
                raise _fork(self.name, station, new[0][0].sequence)
            if new:
                self.into.put_records(connection, station, new)

    # Evidence ----------------------------------------------------------------------------------

    def _copy_evidence(self, record: Record) -> None:
        """Copy pieces of traces before the record that names them is committed."""
        body = record.body
        if not isinstance(body, Report | Attachment):
            return
        for evidence in body.evidence:
            # Elsewhere beside a log there may be other logs, and trials: nobody who sends records
            # puts files there.
            is_piece = Path(evidence.uri).parts[0] == EVIDENCE
            problem = self._copy(evidence) if is_piece else f"is not below {EVIDENCE}/"
            if problem is None:
                self.merged.files.append(evidence.uri)
            elif problem:
                self.merged.left.append(f"{evidence.uri}: {problem}")

    def _copy(self, evidence: Evidence) -> str | None:
        """Copy one file; why it was not, empty if there was no need."""
        target_folder = self.into.evidence_folder
        if target_folder is None:
            return f"a log on a server keeps no files; it stays in {self.folder}"
        if self.folder is None:
            return "the source keeps no files"
        source, target = self.folder / evidence.uri, target_folder / evidence.uri
        if target.exists():
            same = evidence.sha256 is None or file_digest(target) == evidence.sha256
            return "" if same else "another file of that name is here"
        if not source.resolve().is_relative_to(self.folder.resolve()):
            return "leads out of the folder of evidence"
        if not source.is_file():
            return f"is not in {self.folder}"
        return copy_checked(source, target, evidence.sha256)


def copy_checked(source: Path, target: Path, sha256: str | None) -> str | None:
    """Copy a file whole or not at all; says why if it is not the one that was recorded.

    Raises:
        TrialDirectoryError: If it cannot be read or written.
    """
    digest = hashlib.sha256()
    with explained(target, "cannot be written"):
        target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with appearing(target) as part:
            part.touch(mode=0o600)  # as the log itself
            with source.open("rb") as reader, part.open("wb") as writer:
                while chunk := reader.read(1 << 20):
                    digest.update(chunk)
                    writer.write(chunk)
            if sha256 is not None and digest.hexdigest() != sha256:
                raise _AnotherFileError
    except _AnotherFileError:
        return "was changed: it is not the file that was recorded"
    return None


class _AnotherFileError(Exception):
    """A file is not the one that was recorded."""


def _fork(where: str, station: str, sequence: int) -> InputError:
    return InputError(
        f"{where}: station {station} forks at {sequence} or before: the logs hold different"
        " records. Two machines wrote as one station, or one of the logs was changed; `robo-eval"
        " verify` on both, with checkpoints kept elsewhere, tells which"
    )
