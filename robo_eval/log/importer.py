"""Episodes another lab logged in a table, brought into a trial directory of ours."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from robo_eval.core import door
from robo_eval.core.canonical import file_digest
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import EndReason
from robo_eval.core.names import unknown_name
from robo_eval.core.wording import counted
from robo_eval.log.column_map import ColumnMap, Constant
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.evidence_read import SEPARATOR
from robo_eval.log.files import explained
from robo_eval.log.import_plan import plan_of_import
from robo_eval.log.import_row import ImportedRow, RowMaker, check_new, put, write_trial

_REMARKS: Final = ("#", "%", "//")
"""What lines before the header begin with that hold remarks."""
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


class _Lines:
    """The lines of one table, which know in which line a record began.

    Args:
        lines: The lines, with their ends.
        comment: What lines begin with that are left out; empty for none.
    """

    def __init__(self, lines: Iterable[str], comment: str) -> None:
        self._lines = enumerate(lines, start=1)
        self._comment = comment
        self._back: list[str] = []
        self._begins = True
        self.first = 1
        self.comments = 0

    def skip(self, n: int) -> None:
        """Leave out the next lines."""
        for number, _ in islice(self._lines, n):
            self.first = number

    def put_back(self, text: str) -> None:
        """Give the line that was read last again."""
        self._back.append(text)

    def texts(self) -> Iterator[str]:
        """The lines; where a record begins, without those that are comments."""
        while True:
            if self._back:
                self._begins = False
                yield self._back.pop()
                continue
            number, text = next(self._lines, (0, None))
            if text is None:
                return
            if self._begins:
                self.first = number
                if self._comment and text.startswith(self._comment):
                    self.comments += 1
                    continue
            yield text

    def records(self, delimiter: str) -> Iterator[list[str]]:
        """The cells of each record.

        Raises:
            csv.Error: If one is none.
        """

        def parts() -> Iterator[str]:
            for text in self.texts():
                self._begins = False
                yield text

        rows = csv.reader(parts(), delimiter=delimiter, strict=True)
        while True:
            self._begins = True
            cells = next(rows, None)
            if cells is None:
                return
            self._begins = True
            yield cells


def _without_empty_end(cells: Sequence[str]) -> Sequence[str]:
    """The cells up to the last that is not blank."""
    n = max((place for place, cell in enumerate(cells, start=1) if cell.strip()), default=0)
    return cells[:n]


class _Reader:
    """Turns the lines of one table into values of our columns."""

    def __init__(self, path: Path, mapping: ColumnMap, sha256: str) -> None:
        self._path = path
        self._map = mapping
        self._delimiter = mapping.delimiter
        self.remarks = self.comments = 0
        self._maker = RowMaker(mapping, sha256=sha256, decimal=mapping.decimal)

    def rows(self) -> Iterator[ImportedRow]:
        """One row per line that is not blank.

        Raises:
            InputError: If a line cannot be an episode.
        """
        try:
            with (
                explained(self._path, "cannot be read"),
                self._path.open(encoding=self._encoding(), newline="") as file,
            ):
                lines = _Lines(file, self._map.comment)
                yield from self._rows(lines)
                self.comments = lines.comments
        except UnicodeError as err:
            raise self._not_utf8() from err

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

    def _encoding(self) -> str:
        with self._path.open("rb") as file:
            return "utf-16" if file.read(2) in door.UTF_16 else "utf-8-sig"

    def _rows(self, lines: _Lines) -> Iterator[ImportedRow]:
        header = self._header(lines)
        try:
            for cells in lines.records(self._delimiter):
                here = lines.first
                if any(cell.strip() for cell in cells):
                    yield self._row(f"{self._path}: line {here}", header, cells)
        except csv.Error as err:
            raise InputError(f"{self._path}: line {lines.first}: is not CSV: {err}") from err

    def _header(self, lines: _Lines) -> list[str]:
        """The names of the columns, after what may stand before them."""
        lines.skip(self._map.skip)
        wanted = {source.column for source in self._map.columns.values()}
        for text in lines.texts():
            sign = SEPARATOR.fullmatch(text.rstrip("\r\n"))
            if sign and "delimiter" not in self._map.model_fields_set:
                self._delimiter = sign["sign"]
            if sign:
                continue
            if "\0" in text:
                raise InputError(
                    f"{self._path}: line {lines.first}: holds NUL bytes; save the table as UTF-8"
                )
            header = self._names(text, lines)
            if text.startswith(_REMARKS) and not wanted <= set(header):
                self.remarks += 1
                continue
            self._check_header(header, lines)
            return header
        left_out = self._map.skip or self._map.comment or self.remarks
        problem = "only holds lines that are left out" if left_out else "is empty"
        raise InputError(f"{self._path}: {problem}; it needs a header line")

    def _names(self, text: str, lines: _Lines) -> list[str]:
        lines.put_back(text)
        try:
            return [name.strip() for name in next(lines.records(self._delimiter), [])]
        except csv.Error as err:
            if text.startswith(_REMARKS):
                return []
            raise InputError(f"{self._path}: line {lines.first}: is not CSV: {err}") from err

    def _not_utf8(self) -> InputError:
        # Read again: the error counts from the start of some buffer.
        try:
            door.decoded(door.bytes_of(self._path), self._path)
        except InputError as err:
            return err
        return InputError(f"{self._path}: changed while it was read; import it again")

    def _check_header(self, header: Sequence[str], lines: _Lines) -> None:
        where = f"{self._path}: line {lines.first}"
        for ours, source in self._map.columns.items():
            if (n := header.count(source.column)) > 1:
                often = "twice" if n == 2 else f"{n} times"
                raise InputError(
                    f"{where}: column {source.column!r} appears {often} (mapped to {ours!r})"
                )
            if source.column not in header:
                self._check_delimiter(where, header)
                self._check_later(where, lines)
                problem = unknown_name("column", source.column, [name for name in header if name])
                raise InputError(f"{where}: {problem} (mapped to {ours!r})")

    def _check_delimiter(self, where: str, header: Sequence[str]) -> None:
        """Refuse a header that the delimiter of the map does not divide, but another would."""
        for sign, written in ((";", "';'"), ("\t", "tab"), (",", "','")):
            if len(header) == 1 and sign in header[0]:
                raise InputError(
                    f"{where}: {self._delimiter!r} does not divide the header"
                    f" {header[0]!r:.60}; set delimiter: {written} in the column map"
                )

    def _check_later(self, where: str, lines: _Lines) -> None:
        """Refuse a header that stands further down, with the key of the map that says so."""
        wanted = {source.column for source in self._map.columns.values()}
        for number, text in islice(enumerate(lines.texts(), start=lines.first + 1), _PREFACE):
            cells = next(csv.reader([text], delimiter=self._delimiter), [])
            if wanted <= {cell.strip() for cell in cells}:
                raise InputError(
                    f"{where}: is not the header, which is in line {number}; set"
                    f" skip: {number - 1} in the column map"
                )

    def _row(self, where: str, header: Sequence[str], cells: Sequence[str]) -> ImportedRow:
        # Spreadsheets write empty cells for columns without a name, in some lines only.
        given, named = _without_empty_end(cells), _without_empty_end(header)
        if len(given) > len(header) or len(cells) < len(named):
            remark = "; set comment in the column map if such lines are remarks"
            hint = remark if cells[0].startswith(_REMARKS) else ""
            raise InputError(f"{where}: has {len(cells)} cells, the header has {len(header)}{hint}")
        theirs = dict(zip(header, cells, strict=False))
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
