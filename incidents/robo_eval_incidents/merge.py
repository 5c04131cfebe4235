"""Bringing together the chains of stations that were apart."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final, TypeAlias

from sqlalchemy import select

from robo_eval.core import door
from robo_eval.core.canonical import canonical_json, file_digest
from robo_eval.core.errors import InputError
from robo_eval.log.files import appearing, explained
from robo_eval_incidents.bodies import Attachment, Evidence, Report
from robo_eval_incidents.checkpoint import heads_stated, plain_heads
from robo_eval_incidents.database import IncidentLogError, is_url
from robo_eval_incidents.log import (
    DATABASE,
    EVIDENCE,
    Head,
    IncidentLog,
    heads_of,
    open_log,
    row_of,
)
from robo_eval_incidents.record import FORM, GENESIS, MOST_BYTES, Record, content_digest, record_of
from robo_eval_incidents.schema import RECORDS

EXPORT_SUFFIX: Final = ".jsonl"
"""Ending of a file of exported records."""
_KIND: Final = "export"
_BATCH: Final = 2_000


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
    heads = {name: (head.sequence, head.sha256) for name, head in log.heads().items()}
    first = {"form": FORM, "heads": plain_heads(heads), "kind": _KIND, "log_id": log.meta["log_id"]}
    yield canonical_json(first).decode() + "\n"
    for station, (last, _) in heads.items():
        for sequence, content in log.contents(station=station):
            if sequence > last:
                break  # came meanwhile
            yield content + "\n"


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
    for where, content in islice(lines, 1):
        record_of(content, where=where)


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
        stated = {name: (head.sequence, head.sha256) for name, head in log.heads().items()}
        merging = _Merge(into=into, name=log.name, folder=log.evidence_folder, stated=stated)
        return merging.run(_contents(log, stated, into.heads()))


def _merge_export(path: Path, into: IncidentLog) -> Merged:
    lines = _lines(path)
    stated = _stated(path, lines)
    return _Merge(into=into, name=str(path), folder=path.parent, stated=stated).run(lines)


def _stated(path: Path, lines: Iterator[tuple[str, str]]) -> dict[str, tuple[int, str]]:
    """How far each station had got, by the first line of an export.

    Raises:
        InputError: If an export does not begin so.
    """
    where, first = next(lines, (f"{path}, line 1", ""))
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
    log: IncidentLog, stated: Mapping[str, tuple[int, str]], known: Mapping[str, Head]
) -> Iterator[tuple[str, str]]:
    """Records of a log from the newest one that both have; each with what to call it."""
    for station, (last, _) in stated.items():
        both = min(last, known[station].sequence) if station in known else 0
        for sequence, content in log.contents(station=station, after=max(both - 1, 0)):
            if sequence > last:
                break  # came meanwhile
            yield f"{log.name}: {station}/{sequence}", content


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    with explained(path, "cannot be read"), door.opened(path) as file:
        number = 0
        while line := file.readline(MOST_BYTES + 2):
            number += 1
            where = f"{path}, line {number}"
            if not line.endswith(b"\n"):
                raise InputError(f"{where}: ends in the middle of a record; export it again")
            try:
                yield where, line.decode().rstrip("\n")
            except UnicodeDecodeError as err:
                raise InputError(f"{where}: is not UTF-8 text") from err


_New: TypeAlias = tuple[Record, str, str]
"""A record that is not here yet, with its canonical form and digest."""


@dataclass(slots=True, kw_only=True)
class _Merge:
    """One merge.

    Attributes:
        into: The log to add to.
        name: What the source is called.
        folder: What its evidence is relative to; None if it has none.
        stated: How far it says its stations have got.
    """

    into: IncidentLog
    name: str
    folder: Path | None
    stated: Mapping[str, tuple[int, str]]
    merged: Merged = field(default_factory=Merged)
    last: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Number and digest of the newest record of the source seen, by station."""
    here: dict[str, Head] = field(default_factory=dict)
    """How far each station has got here."""
    refused: dict[str, InputError] = field(default_factory=dict)
    """What is wrong, by station; of such a one nothing more is taken."""
    newest: dict[str, _New] = field(default_factory=dict)
    """New records that no other has confirmed yet, by station."""
    waiting: list[_New] = field(default_factory=list)
    """New records that are sound: the next one names their digest, or the source states it."""

    def run(self, contents: Iterable[tuple[str, str]]) -> Merged:
        """Take in records."""
        self.here = self.into.heads()
        try:
            for where, content in contents:
                self._take(where, content)
        except IncidentLogError:
            raise
        except InputError:
            # What came before is sound, and goes in.
            self._add()
            raise
        self._add()
        for station, stated in self.stated.items():
            if station not in self.refused:
                self._check_end(station, stated)
        if self.refused:
            first, *others = self.refused.values()
            more = f"; and {len(others)} more of its stations cannot be merged" if others else ""
            raise InputError(f"{first}{more}")
        return self.merged

    def _take(self, where: str, content: str) -> None:
        record = record_of(content, where=where)
        if record.content() != content:
            raise InputError(f"{where}: is not in its canonical form")
        sha256 = content_digest(content)
        station = record.station
        if station in self.refused or not self._is_in_place(where, record):
            return
        head = self.here.get(station)
        here = 0 if head is None else head.sequence
        if record.sequence <= here:
            if record.sequence == here and head is not None and head.sha256 != sha256:
                self.refused[station] = _fork(where, station, here)
                return
            self.merged.known += 1
        else:
            if station in self.newest:
                self._confirm(station)
            self.newest[station] = (record, content, sha256)
        self.last[station] = (record.sequence, sha256)
        if station in self.newest and self.last[station] == self.stated.get(station):
            self._confirm(station)

    def _confirm(self, station: str) -> None:
        new = self.newest.pop(station)
        self._copy_evidence(new[0])
        self.waiting.append(new)
        if len(self.waiting) >= _BATCH:
            self._add()

    def _is_in_place(self, where: str, record: Record) -> bool:
        """Whether a record follows the one before it, or one that is here."""
        problem = self._problem_of_place(where, record)
        if problem is not None:
            # What nothing has confirmed may be what was changed.
            self.newest.pop(record.station, None)
            self.refused[record.station] = problem
        return problem is None

    def _problem_of_place(self, where: str, record: Record) -> InputError | None:
        station, before = record.station, record.sequence - 1
        if station in self.last:
            sequence, sha256 = self.last[station]
            if sequence != before:
                return InputError(
                    f"{where}: follows {station}/{sequence}; records are missing or were moved"
                )
        elif before == 0:
            sha256 = GENESIS
        else:
            stored = self._digest_here(station, before)
            if stored is None:
                return InputError(
                    f"{where}: the records of station {station} before it are not here; merge"
                    " those first"
                )
            sha256 = stored
        if record.previous_sha256 == sha256:
            return None
        if station in self.last:
            return InputError(f"{where}: does not follow the record before it")
        return _fork(where, station, before)

    def _check_end(self, station: str, stated: tuple[int, str]) -> None:
        """That a source holds what it states, and if it is behind, the records that are here."""
        last = self.last.get(station)
        head = self.here.get(station)
        if last != stated:
            self.refused[station] = InputError(
                f"{self.name}: station {station} ends with record {last[0] if last else 0},"
                f" and it is not record {stated[0]} as stated; its end was lost or changed"
            )
            return
        is_behind = head is not None and stated[0] < head.sequence
        if is_behind and self._digest_here(station, stated[0]) != stated[1]:
            self.refused[station] = _fork(self.name, station, stated[0])

    def _digest_here(self, station: str, sequence: int) -> str | None:
        query = select(RECORDS.c.sha256).where(
            RECORDS.c.station == station, RECORDS.c.sequence == sequence
        )
        with self.into.database.reading() as connection:
            return connection.execute(query).scalar()

    # Adding ------------------------------------------------------------------------------------

    def _add(self) -> None:
        """Commit what waits, each station's head with its records."""
        if not self.waiting:
            return
        self.into.database.persistently(self._commit)
        for record, _, sha256 in self.waiting:
            station = record.station
            self.merged.added[station] = self.merged.added.get(station, 0) + 1
            self.here[station] = Head(sequence=record.sequence, sha256=sha256, at=record.at)
        self.waiting.clear()

    def _commit(self) -> None:
        with self.into.database.writing() as connection:
            heads = heads_of(connection)
            new = [
                one for one in self.waiting
                if one[0].station not in heads or one[0].sequence > heads[one[0].station].sequence
            ]  # fmt: skip
            self._check_still(heads, new)
            if new:
                connection.execute(RECORDS.insert(), [row_of(*one) for one in new])
            newest = {
                record.station: Head(sequence=record.sequence, sha256=sha256, at=record.at)
                for record, _, sha256 in new
            }
            self.into.put_heads(connection, newest)

    def _check_still(self, heads: Mapping[str, Head], new: Sequence[_New]) -> None:
        """That nobody has added other records to these chains meanwhile."""
        last = {station: head.sha256 for station, head in heads.items()}
        for record, _, sha256 in new:
            if record.previous_sha256 != last.get(record.station, GENESIS):
                raise _fork(self.name, record.station, record.sequence)
            last[record.station] = sha256

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
