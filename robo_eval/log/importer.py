"""Episodes another lab logged in a table, brought into a trial directory of ours."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from robo_eval.core import door
from robo_eval.core.canonical import file_digest
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import EndReason
from robo_eval.core.names import unknown_name
from robo_eval.core.wording import counted
from robo_eval.log.column_map import ColumnMap, Constant
from robo_eval.log.csv_records import Records, opened
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.files import explained
from robo_eval.log.import_plan import plan_of_import
from robo_eval.log.import_row import ImportedRow, RowMaker, check_new, put, write_trial

_PREFACE: Final = 100
"""Lines that are looked at for the header."""


def import_csv(
    csv_path: Path | str | os.PathLike[str],
    column_map: Path | str | os.PathLike[str],
    out: Path | str | os.PathLike[str],
    *,
    warn: Callable[[str], None] | None = None,
) -> TrialDirectory:
    """Read episodes from a CSV file by a column map into a new trial directory.

    Everything is read and checked first; the directory then appears complete or not at all. Its
    plan says that it was imported, from which file (SHA-256) and by which map. docs/log.md
    describes the map.

    Args:
        csv_path: CSV file with a header line, in UTF-8, or in UTF-16 with its byte order mark.
        column_map: YAML file: where each of our columns comes from.
        out: Trial directory to create.
        warn: Called with what was left out, and with how many episodes have no score.

    Raises:
        InputError: If map or table are not usable; the message names file, line and column.
        TrialDirectoryError: If the directory exists or cannot be written.
    """
    source, folder = Path(csv_path), Path(out)
    check_new(folder)
    mapping = ColumnMap.read(Path(column_map))
    with explained(source, "cannot be read"):
        door.check_plain(source, most=door.LARGEST_FILE)
        sha256 = file_digest(source)
    reader = _Reader(source, mapping, sha256)
    values = list(reader.rows())
    if not values:
        raise InputError(f"{source}: holds no episodes, only a header line")
    if warn is not None:
        for note in reader.notes(values):
            warn(note)
    plan = plan_of_import(source, mapping.raw, sha256, [row.values for row in values])
    return write_trial(folder, plan, values)


class _Reader:
    """Turns the lines of one table into values of our columns."""

    def __init__(self, path: Path, mapping: ColumnMap, sha256: str) -> None:
        self._path = path
        self._map = mapping
        self._maker = RowMaker(mapping, sha256=sha256)
        self.remarks = self.comments = 0

    def rows(self) -> Iterator[ImportedRow]:
        """One row per line that is not blank.

        Raises:
            InputError: If a line cannot be an episode.
        """
        wanted = {source.column for source in self._map.columns.values()}
        with opened(self._path) as file:
            table = self._map.records(self._path, file, wanted)
            self._check_header(table)
            for line, cells in table:
                yield self._row(f"{self._path}: line {line}", table.header, cells)
            self.remarks, self.comments = table.remarks, table.comments

    def notes(self, rows: Sequence[ImportedRow]) -> Iterator[str]:
        """What somebody should know who looks at the rows only."""
        if self.remarks:
            lines = counted(self.remarks, "line")
            yield f"{self._path}: {lines} of remarks before the header left out"
        if self.comments:
            begin = "begins" if self.comments == 1 else "begin"
            yield (
                f"{self._path}: {counted(self.comments, 'line')} left out that {begin} with"
                f" {self._map.comment!r}"
            )
        missing = sum(row.values["end_reason"] is EndReason.NO_VERDICT for row in rows)
        if missing:
            episodes = counted(missing, "episode")
            yield f"{self._path}: {episodes} without a score, counted as missing (no_verdict)"

    def _check_header(self, table: Records) -> None:
        where, header = f"{self._path}: line {table.line}", table.header
        for ours, source in self._map.columns.items():
            if (n := header.count(source.column)) > 1:
                often = "twice" if n == 2 else f"{n} times"
                raise InputError(
                    f"{where}: column {source.column!r} appears {often} (mapped to {ours!r})"
                )
            if source.column not in header:
                if (other := table.other_delimiter()) is not None:
                    raise InputError(
                        f"{where}: {table.delimiter!r} does not divide the header"
                        f" {header[0]!r:.60}; set delimiter: {other} in the column map"
                    )
                self._check_later(where, table)
                problem = unknown_name("column", source.column, [name for name in header if name])
                raise InputError(f"{where}: {problem} (mapped to {ours!r})")

    def _check_later(self, where: str, table: Records) -> None:
        """Refuse a header that stands further down, with the key of the map that says so."""
        wanted = {source.column for source in self._map.columns.values()}
        for number, cells in table.following(_PREFACE):
            if wanted <= {cell.strip() for cell in cells}:
                raise InputError(
                    f"{where}: is not the header, which is in line {number}; set"
                    f" skip: {number - 1} in the column map"
                )

    def _row(self, where: str, header: Sequence[str], cells: Sequence[str]) -> ImportedRow:
        theirs = dict(zip(header, cells, strict=True))
        values: dict[str, Any] = {}
        sources: dict[str, str] = {}
        for ours, source in self._map.columns.items():
            sources[ours.partition(".")[0]] = source.column
            place = f"{where}, column {source.column!r}"
            put(values, ours, self._maker.value(place, ours, source, theirs[source.column].strip()))
        for ours, text in self._map.constants.items():
            place = f"{where}, constant {ours!r} of the column map"
            put(values, ours, self._maker.value(place, ours, Constant(), text))
        return self._maker.row(where, values, sources)
