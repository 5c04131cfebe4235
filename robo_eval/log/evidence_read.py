"""Reading what people and robots noted beside the episodes."""

from __future__ import annotations

import csv
import hashlib
import io
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from robo_eval.core import door
from robo_eval.core.errors import InputError
from robo_eval.core.names import unknown_name
from robo_eval.log.evidence import NAMES, Checkpoint, Evidence
from robo_eval.log.evidence_forms import COLUMNS, READERS
from robo_eval.log.evidence_line import Line
from robo_eval.log.incident_log import incidents_of, is_incident_log, read_incidents


def read_evidence(folder: Path | None, given: Mapping[str, Path] | None = None) -> Evidence:
    """Read what lies beside the episodes of a trial.

    Args:
        folder: The trial directory, in which `NAME.csv` is read for each of `NAMES`, and incidents
            from `incidents.db` if it is there. None where there is none.
        given: Files to read instead, by kind.

    Raises:
        InputError: If a given file is missing, a file is no CSV, lacks a column or has an unknown
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
            data = _bytes_of(path, name)
            lines = _lines(path, name, data)
            found[name] = tuple(READERS[name](Line(path, *line)) for line in lines)
            digest = hashlib.sha256(data).hexdigest()
        if digest is not None:
            sources[path.name] = digest
        files[name] = str(path)
    evidence = Evidence(**found, sources=sources, files=files)
    _check_unique(evidence)
    return evidence


def _beside(folder: Path | None, name: str) -> Path | None:
    """The file of a trial directory that holds a kind of evidence."""
    if folder is None:
        return None
    if name == "incidents":
        return incidents_of(folder)
    path = folder / f"{name}.csv"
    # A link that leads nowhere is an error, not the absence of a file.
    return path if os.path.lexists(path) else None


def _bytes_of(path: Path, name: str) -> bytes:
    try:
        return door.bytes_of(path)
    except FileNotFoundError as err:
        raise InputError(f"{path}: no such file of {name}") from err
    except OSError as err:
        raise InputError(f"{path}: cannot be read: {err.strerror or err}") from err


def _lines(path: Path, name: str, data: bytes) -> list[tuple[int, dict[str, str]]]:
    """The lines of a CSV file: number and cells by column."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as err:
        raise InputError(f"{path}: is not UTF-8 text: {err.reason} at byte {err.start}") from err
    found = records(path, text)
    _, header = next(found)
    _check_header(path, name, header)
    return [
        (line, dict(zip(header, (cell.strip() for cell in cells), strict=True)))
        for line, cells in found
    ]


def records(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """The cells of each record of a CSV text, with the line it begins in; the header comes first.

    Blank cells at the end that have no column are left out: spreadsheets write them.

    Raises:
        InputError: If it is no CSV, or a record has not as many cells as the header.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line, header = 1, None
    try:
        for cells in reader:
            while cells and not cells[-1].strip() and len(cells) > len(header or ()):
                del cells[-1]
            if header is None:
                header = [name.strip() for name in cells]
                yield line, header
            elif any(cell.strip() for cell in cells):
                if len(cells) != len(header):
                    raise InputError(
                        f"{path}: line {line} has {len(cells)} cells; the header names"
                        f" {len(header)}"
                    )
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as err:
        raise InputError(f"{path}: line {line}: no CSV: {err}") from err
    if header is None:
        yield 1, []


def _check_header(path: Path, name: str, header: list[str]) -> None:
    needed, others = COLUMNS[name]
    if len(header) == 1 and ";" in header[0]:
        raise InputError(f"{path}: its columns are divided by ';'; save it with commas")
    for column in header:
        # Programs write pauses, and newer ones may say more of them.
        if column not in (*needed, *others) and name != "pauses":
            raise InputError(f"{path}: {unknown_name('column', column, (*needed, *others))}")
        if header.count(column) > 1:
            raise InputError(f"{path}: column {column!r} appears twice")
    for column in needed:
        if column not in header:
            raise InputError(
                f"{path}: column {column!r} is missing; {name} need {', '.join(needed)}"
            )


def _check_unique(evidence: Evidence) -> None:
    seen: set[str] = set()
    for incident in evidence.incidents or ():
        if incident.incident_id in seen:
            raise InputError(
                f"{evidence.files['incidents']}: {incident.place}, column 'incident_id':"
                f" {incident.incident_id!r} appears twice; one event is one incident"
            )
        seen.add(incident.incident_id)
    _check_checkpoints(evidence)
    _check_keys(evidence, "anchors", "axis")
    _check_keys(evidence, "experts", "family")
    _check_keys(evidence, "probes", "probe", "assisted")
    _check_keys(evidence, "checklist", "item")
    _check_keys(evidence, "revisions", "revision")
    _check_keys(evidence, "retention", "family", "lag_days")
    rated: set[tuple[str | None, str]] = set()
    for rating in evidence.ratings or ():
        key = (rating.episode_id, rating.rater)
        if key in rated:
            raise InputError(
                f"{evidence.files['ratings']}: line {rating.line}, column 'rater':"
                f" {rating.rater!r} rates episode {rating.episode_id!r} twice"
            )
        rated.add(key)


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


def _check_keys(evidence: Evidence, kind: str, *columns: str) -> None:
    """Refuse what is said twice: of two lines nobody knows which one counts."""
    seen: dict[tuple[object, ...], dict[str | None, int]] = defaultdict(dict)
    for note in getattr(evidence, kind) or ():
        lines = seen[note.side, *(getattr(note, column) for column in columns)]
        # A line without a policy is about every policy.
        clash = [lines[one] for one in lines if None in (one, note.policy) or one == note.policy]
        if clash:
            raise InputError(
                f"{evidence.files[kind]}: line {note.line}, column {columns[0]!r}:"
                f" {getattr(note, columns[0])!r} is in line {clash[0]} already"
            )
        lines[note.policy] = note.line
