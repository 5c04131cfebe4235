"""Reading what people and robots noted beside the episodes."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, Final, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError

from robo_eval.core import door
from robo_eval.core.errors import InputError
from robo_eval.core.names import unknown_name
from robo_eval.log.csv_records import records
from robo_eval.log.evidence import FORMS, NAMES, Checkpoint, Evidence, Noted, PolicyNote
from robo_eval.log.evidence_cells import WordError
from robo_eval.log.incident_log import incidents_of, is_incident_log, read_incidents

COLUMN_OF: Final = {"time_ns": "time", "utc_offset_s": "time"}
"""Columns whose fields are called otherwise."""
_NO_CELLS: Final = ("line", "record")
"""Fields that say where a line is."""


def columns_of(form: type[Noted]) -> tuple[list[str], list[str]]:
    """Columns that a file of such lines needs, and further ones it may have."""
    needed: list[str] = []
    others: list[str] = []
    for one in fields(form):
        column = COLUMN_OF.get(one.name, one.name)
        if one.name not in _NO_CELLS and column not in needed:
            (needed if _is_needed(one) else others).append(column)
    return needed, others


def _is_needed(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def read_evidence(folder: Path | None, given: Mapping[str, Path] | None = None) -> Evidence:
    """Read what lies beside the episodes of a trial.

    Args:
        folder: The trial directory, in which `NAME.csv` is read for each of `NAMES`, and incidents
            from `incidents.db` if it is there. None where there is none.
        given: Files to read instead, by kind.

    Raises:
        InputError: If a given file is missing, a file is not CSV, lacks a column or has an unknown
            one, or a cell holds what its column cannot; the message names file, line and column.
            If incidents are in a log and in a table, or the log cannot be read.
        MissingExtraError: If there is an incident log, and its package is not installed.
    """
    found: dict[str, Any] = {}
    sources: dict[str, str] = {}
    files: dict[str, str] = {}
    for name in NAMES:
        path = (given or {}).get(name) or _beside(folder, name)
        if path is None:
            continue
        if name == "incidents" and is_incident_log(path):
            recorded = read_incidents(path)
            found[name] = recorded.incidents
            found |= {"silent": recorded.silent, "problems": recorded.problems}
            digest = recorded.sha256
        else:
            data = bytes_of(path, name)
            found[name] = tuple(_notes(path, name, data))
            digest = hashlib.sha256(data).hexdigest()
        if digest is not None:
            sources[path.name] = digest
        files[name] = str(path)
    evidence = Evidence(**found, sources=sources, files=files)
    for name, form in FORMS.items():
        if form.KEY:
            _check_keys(evidence, name)
    _check_checkpoints(evidence)
    return evidence


def _beside(folder: Path | None, name: str) -> Path | None:
    """The file of a trial directory that holds a kind of evidence; None if there is none."""
    if folder is None:
        return None
    if name == "incidents":
        return incidents_of(folder)
    path = folder / f"{name}.csv"
    # A link that leads nowhere is an error, not the absence of a file.
    return path if os.path.lexists(path) else None


def bytes_of(path: Path, name: str) -> bytes:
    """What a file of evidence holds.

    Args:
        path: The file.
        name: What it is of, for messages.

    Raises:
        InputError: If it is missing or cannot be read.
    """
    try:
        return door.bytes_of(path)
    except FileNotFoundError as err:
        raise InputError(f"{path}: no such file of {name}") from err
    except OSError as err:
        raise InputError(f"{path}: cannot be read: {err.strerror or err}") from err


def _notes(path: Path, name: str, data: bytes) -> Iterator[Noted]:
    """What the lines of a CSV file say."""
    found = records(path, data)
    header = found.header
    form = FORMS[name]
    _check_header(path, name, header)
    own = [(one, COLUMN_OF.get(one.name, one.name)) for one in fields(form)]
    places = [(one.name, header.index(column)) for one, column in own if column in header]
    hints = get_type_hints(form)
    # Empty cells of other columns take the default.
    empty = {
        one.name: None if type(None) in get_args(hints[one.name]) else ""
        for one, _ in own
        if _is_needed(one)
    }
    read = TypeAdapter(form).validator.validate_python
    for number, cells in found:
        given: dict[str, Any] = {**empty, "line": number}
        for field, place in places:
            if cell := cells[place].strip():
                given[field] = cell
        try:
            note: Noted = read(given)
        except ValidationError as err:
            raise _wrong(path, number, *_first_problem(err)) from err
        for column, problem in _contradictions(note):
            cell = dict(zip(header, cells, strict=True)).get(column, "").strip()
            raise _wrong(path, number, column, f"{cell!r:.60} {problem}")
        yield note


def _first_problem(err: ValidationError) -> tuple[str, str]:
    """Column of the first cell that will not do, and what is said of it."""
    first = err.errors(include_url=False)[0]
    field, cell, cause = str(first["loc"][0]), first["input"], first["ctx"]["error"]
    column = COLUMN_OF.get(field, field)
    if isinstance(cause, WordError):
        return column, str(unknown_name(column, cell, cause.valid))
    return column, str(cause)


def _contradictions(note: Noted) -> Iterator[tuple[str, str]]:
    """What the cells of a line cannot say: column, and what is wrong with it."""
    for name in note.POSITIVE:
        if getattr(note, name) < 1:
            yield name, "must be at least 1"
    for part, whole, what in note.PARTS:
        count, most = getattr(note, part), getattr(note, whole)
        if count is not None and count > most:
            yield part, f"is more than the {most} {what}"
    yield from note.check()


def check_columns(
    path: Path, header: Sequence[str], known: Collection[str], needed: Iterable[str], what: str
) -> None:
    """Refuse a header with a column that is none, one that is there twice, or without a needed one.

    Args:
        path: The table, for messages.
        header: Names of its columns.
        known: Columns that it may have; empty for any.
        needed: Columns that it has to have.
        what: What follows the name of a column that is missing.

    Raises:
        InputError: In that case; the message names file and column.
    """
    for column in header:
        if known and column not in known:
            raise InputError(f"{path}: {unknown_name('column', column, known)}")
    for column in needed:
        if column not in header:
            # What other programs write has columns of its own: a likely one may be meant.
            missing = f"column {column!r} is missing"
            name = missing if known else str(unknown_name("column", column, header))
            raise InputError(f"{path}: {name}; {what}")
    for column in needed if not known else header:
        if list(header).count(column) > 1:
            raise InputError(f"{path}: column {column!r} appears twice")


def _wrong(path: Path, line: int, column: str, what: str) -> InputError:
    return InputError(f"{path}: line {line}, column {column!r}: {what}")


def _check_header(path: Path, name: str, header: list[str]) -> None:
    needed, others = columns_of(FORMS[name])
    # Programs write pauses, and newer ones may say more of them.
    known = (*needed, *others, *(header if name == "pauses" else ()))
    check_columns(path, header, known, needed, f"{name} need {', '.join(needed)}")


def _check_checkpoints(evidence: Evidence) -> None:
    last: dict[tuple[str, str | None, str], Checkpoint] = {}
    for point in sorted(evidence.checkpoints or (), key=lambda one: one.time_ns):
        key = (point.side, point.policy, point.family)
        before = last.get(key)
        where = f"{evidence.files.get('checkpoints')}: line {point.line}"
        if before is not None and before.time_ns == point.time_ns:
            raise InputError(
                f"{where}, column 'time': family {point.family!r} has a checkpoint at that time"
                f" already, in line {before.line}"
            )
        if before is not None and point.resources < before.resources:
            raise InputError(
                f"{where}, column 'resources': {point.resources:g} is less than the"
                f" {before.resources:g} of line {before.line}; it is a running total"
            )
        last[key] = point


def _check_keys(evidence: Evidence, name: str) -> None:
    """Refuse what is said twice: of two lines nobody knows which one counts."""
    column, *more = FORMS[name].KEY
    seen: dict[tuple[object, ...], dict[str | None, Noted]] = defaultdict(dict)
    for note in getattr(evidence, name) or ():
        # Notes on a policy are of a side and a policy; a line without a policy is about every one.
        side, policy = (note.side, note.policy) if isinstance(note, PolicyNote) else (None, None)
        others = seen[side, *(getattr(note, key) for key in FORMS[name].KEY)]
        clash = [others[one] for one in others if None in (one, policy) or one == policy]
        if clash:
            same = f", with the same {' and '.join(more)}" if more else ""
            raise InputError(
                f"{evidence.files[name]}: {note.place}, column {column!r}:"
                f" {getattr(note, column)!r:.60} is in {clash[0].place} already{same}"
            )
        others[policy] = note
