"""Episodes another lab logged in a table, brought into a trial directory of ours."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from robo_eval.core import door
from robo_eval.core.canonical import file_digest
from robo_eval.core.errors import InputError
from robo_eval.core.plan import TrialPlan
from robo_eval.core.wording import counted
from robo_eval.log.cells import CellError
from robo_eval.log.column_map import COUNTED, ColumnMap, Source
from robo_eval.log.csv_records import opened
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.files import explained
from robo_eval.log.import_row import RowMaker
from robo_eval.log.import_score import ImportedRow, counts_of, decimals_of
from robo_eval.log.import_trial import check_new, plan_of_import, write_trial


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
    rows, plan, notes = read_rows(source, Path(column_map))
    return write_trial(folder, plan, rows, notes=notes, warn=warn)


def read_rows(source: Path, column_map: Path) -> tuple[list[ImportedRow], TrialPlan, Iterator[str]]:
    """The episodes of a table by a map, the plan they make, and what was left out.

    Raises:
        InputError: As `import_csv`.
    """
    with opened(source), explained(source, "cannot be read"):
        door.check_plain(source, most=door.LARGEST_FILE)
        sha256 = file_digest(source)
    mapping = ColumnMap.read(column_map)
    reader = _TableReader(source, mapping, sha256)
    rows = list(reader.rows())
    if not rows:
        left_out = ", ".join(reader.left_out()) or "only a header line"
        raise InputError(f"{source}: holds no episodes: {left_out}")
    return rows, plan_of_import(source, reader.maker, rows), reader.notes(rows)


class _Part(NamedTuple):
    """What is read of a line: our columns, and the cells of each."""

    policy: str | None
    columns: Mapping[str, Source]
    at: Mapping[str, Sequence[int]]


class _TableReader:
    """Turns the lines of one table into values of our columns."""

    def __init__(self, path: Path, mapping: ColumnMap, sha256: str) -> None:
        self._path = path
        self._map = mapping
        self.maker = RowMaker(mapping, sha256=sha256)
        self._wanted = {
            name: ours
            for _, own in mapping.sources()
            for ours, source in own.items()
            for name in source.names
        }
        self.remarks = self.comments = self.uncounted = self.untried = self._decimals = 0

    def rows(self) -> Iterator[ImportedRow]:
        """One row per line that is not blank.

        Raises:
            InputError: If a line cannot be an episode.
        """
        with self._map.table(self._path, self._wanted) as table:
            index = table.header.index
            parts = [
                _Part(policy, own, {ours: [*map(index, one.names)] for ours, one in own.items()})
                for policy, own in self._map.sources()
            ]
            rates = [
                (part.at["rate"][0], part.columns["rate"].unit)
                for part in parts
                if "rate" in part.columns
            ]
            lines = list(table) if rates else table
            # A rate that ends in 0 may be written without it: the others tell the decimals.
            read = self._map.reading
            for at, unit in rates:
                found = [decimals_of(cells[at].strip(), read, unit) for _, cells in lines]
                self._decimals = max(self._decimals, *found, 0)
            for line, cells in lines:
                where = f"{self._path}: line {line}"
                for part in parts:
                    yield from self._rows(where, part, cells)
            self.remarks, self.comments = table.remarks, table.comments

    def notes(self, rows: Sequence[ImportedRow]) -> Iterator[str]:
        """What somebody should know who looks at the rows only."""
        yield from (f"{self._path}: {one}" for one in self.left_out())
        yield from self.maker.notes(self._path, rows)

    def left_out(self) -> Iterator[str]:
        """What of the table became no row."""
        if self.remarks:
            lines = counted(self.remarks, "line")
            yield f"{lines} of remarks before the header left out"
        if self.comments:
            begin = "begins" if self.comments == 1 else "begin"
            lines = counted(self.comments, "line")
            yield f"{lines} left out that {begin} with {self._map.comment!r}"
        if self.uncounted:
            cells = counted(self.uncounted, "cell")
            yield f"{cells} without a number of successes left out"
        if self.untried:
            yield f"{counted(self.untried, 'cell')} of 0 trials left out"

    def _rows(self, where: str, part: _Part, cells: Sequence[str]) -> Iterator[ImportedRow]:
        """The rows a line stands for, of one policy where it has columns for each."""
        policy, columns, at = part
        row = ImportedRow(where, {} if policy is None else {"policy": policy})

        def text_of(ours: str, _source: Source) -> str:
            if len(places := at[ours]) == 1:
                return cells[places[0]].strip()
            given = (cells[place].strip() for place in places)
            between = " " if ours == "start_ns" else " / "
            return between.join(one for one in given if one not in self._map.missing)

        self.maker.add_columns(row, columns, text_of)
        values = row.values
        name = values.get("episode_id")
        if policy is not None and name is not None:
            name = values["episode_id"] = f"{name}-{policy}"
        given_counts = {count: values.pop(count) for count in COUNTED if count in values}
        if not given_counts:
            yield self.maker.finish(row)
            return
        try:
            counts = counts_of(given_counts, self._map.reading, columns, self._decimals)
        except CellError as err:
            named = " + ".join(row.sources[count] for count in given_counts if count in row.sources)
            raise InputError(f"{where}, column {named!r}: {err}") from err
        if counts is None:
            self.uncounted += 1
            return
        successes, trials = counts
        self.untried += not trials
        values.setdefault("end_detail", f"one of {trials} in a line; their order is not known")
        for number in range(1, trials + 1):
            own = {**values, "success": number <= successes}
            if name is not None:
                own["episode_id"] = f"{name}-{number}"
            yield self.maker.finish(ImportedRow(where, own, dict(row.sources)))
