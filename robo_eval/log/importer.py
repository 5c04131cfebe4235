"""Episodes another lab logged in a table, brought into a trial directory of ours."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from robo_eval.core import door
from robo_eval.core.canonical import file_digest
from robo_eval.core.errors import InputError
from robo_eval.core.names import unknown_name
from robo_eval.log.column_map import ColumnMap, Source, read_column_map
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.files import explained
from robo_eval.log.import_plan import plan_of_import
from robo_eval.log.import_row import (
    NEEDED,
    SCORES,
    ImportedRow,
    RowMaker,
    check_new,
    put,
    write_trial,
)


def import_csv(
    csv_path: Path | str | os.PathLike[str],
    column_map: Path | str | os.PathLike[str],
    out: Path | str | os.PathLike[str],
) -> TrialDirectory:
    """Read episodes from a CSV file by a column map into a new trial directory.

    Everything is read and checked first; the directory then appears complete or not at all. Its
    plan says that it was imported, from which file (SHA-256) and by which map. docs/log.md
    describes the map.

    Args:
        csv_path: CSV file in UTF-8 with a header line.
        column_map: YAML file: where each of our columns comes from.
        out: Trial directory to create.

    Raises:
        InputError: If map or table are not usable; the message names file, line and column.
        TrialDirectoryError: If the directory exists or cannot be written.
    """
    source, folder = Path(csv_path), Path(out)
    check_new(folder)
    mapping = read_column_map(Path(column_map))
    with explained(source, "cannot be read"):
        door.check_plain(source, most=door.LARGEST_FILE)
        sha256 = file_digest(source)
    reader = _Reader(source, mapping, sha256)
    values = list(reader.rows())
    if not values:
        raise InputError(f"{source}: holds no episodes, only a header line")
    plan = plan_of_import(source, mapping.raw, sha256, [row.values for row in values])
    return write_trial(folder, plan, values)


class _Reader:
    """Turns the lines of one table into values of our columns."""

    def __init__(self, path: Path, mapping: ColumnMap, sha256: str) -> None:
        self._path = path
        self._map = mapping
        self._maker = RowMaker(
            sha256=sha256,
            missing=mapping.missing,
            decimal=mapping.decimal,
            success_quality=mapping.success_quality,
            assisted_success=mapping.assisted_success,
        )

    def rows(self) -> Iterator[ImportedRow]:
        """One row per line that is not blank.

        Raises:
            InputError: If a line cannot be an episode.
        """
        with (
            explained(self._path, "cannot be read"),
            self._path.open(encoding="utf-8-sig", newline="") as file,
        ):
            lines = csv.reader(file, delimiter=self._map.delimiter, strict=True)
            try:
                header = [name.strip() for name in next(lines, [])]
                self._check_header(header)
                for cells in lines:
                    if not any(cell.strip() for cell in cells):
                        continue
                    yield self._row(f"{self._path}: line {lines.line_num}", header, cells)
            except csv.Error as err:
                raise InputError(
                    f"{self._path}: line {lines.line_num + 1}: is no CSV: {err}"
                ) from err
            except UnicodeDecodeError as err:
                raise self._not_utf8() from err

    def _not_utf8(self) -> InputError:
        # Read again: the error counts from the start of some buffer.
        data = door.bytes_of(self._path)
        try:
            data.decode()
        except UnicodeDecodeError as err:
            line = data.count(b"\n", 0, err.start) + 1
            given = f": byte 0x{data[err.start]:02x}"
        else:  # written meanwhile
            line, given = 1, ""
        return InputError(
            f"{self._path}: line {line}: is no CSV in UTF-8{given}; save the table as UTF-8"
        )

    def _check_header(self, header: Sequence[str]) -> None:
        if not header:
            raise InputError(f"{self._path}: is empty; it needs a header line")
        for name in header:
            if header.count(name) > 1:
                raise InputError(f"{self._path}: line 1: column {name!r} appears twice")
        for ours, source in self._map.columns.items():
            if source.column not in header:
                self._check_delimiter(header)
                problem = unknown_name("column", source.column, header)
                raise InputError(f"{self._path}: line 1: {problem} (mapped to {ours!r})")
        given = {name.partition(".")[0] for name in (*self._map.columns, *self._map.constants)}
        for name in NEEDED:
            if name not in given:
                raise InputError(
                    f"{self._path}: the column map says nothing about {name!r}; add it to columns"
                    " or constants"
                )
        if not given & set(SCORES):
            raise InputError(
                f"{self._path}: the column map must say where success, end_reason or quality is"
            )

    def _check_delimiter(self, header: Sequence[str]) -> None:
        """Refuse a header that the delimiter of the map does not divide, but another would."""
        for sign, written in ((";", "';'"), ("\t", "tab"), (",", "','")):
            if len(header) == 1 and sign in header[0]:
                raise InputError(
                    f"{self._path}: line 1: {self._map.delimiter!r} does not divide the header"
                    f" {header[0]!r:.60}; set delimiter: {written} in the column map"
                )

    def _row(self, where: str, header: Sequence[str], cells: Sequence[str]) -> ImportedRow:
        if len(cells) != len(header):
            raise InputError(f"{where}: has {len(cells)} cells, the header has {len(header)}")
        theirs = dict(zip(header, cells, strict=True))
        values: dict[str, Any] = {}
        sources: dict[str, str] = {}
        for ours, source in self._map.columns.items():
            sources[ours.partition(".")[0]] = source.column
            place = f"{where}, column {source.column!r}"
            put(values, ours, self._maker.value(place, ours, source, theirs[source.column].strip()))
        for ours, text in self._map.constants.items():
            place = f"{where}, constant {ours!r} of the column map"
            source = Source(column=ours, is_constant=True)
            put(values, ours, self._maker.value(place, ours, source, text))
        return self._maker.row(where, values, sources)
