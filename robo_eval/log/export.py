"""The rows of a trial as one table for other tools, and such a table read back."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from robo_eval.core import door
from robo_eval.core.episode import COLUMNS, SCHEMA_VERSION, Episode
from robo_eval.core.errors import InputError, MissingExtraError, pip_install
from robo_eval.core.names import unknown_name
from robo_eval.log.csv_records import Records, opened
from robo_eval.log.files import explained, write_atomically
from robo_eval.log.rows import Cell, cells_of, episode_of
from robo_eval.log.schema import KINDS, OPTIONAL, Kind

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_T = TypeVar("_T")
StrPath = str | os.PathLike[str]

_TRUTHS: Final = {"true": 1, "false": 0}
_PARSERS: Final[dict[Kind, Callable[[str], Cell]]] = {
    Kind.INTEGER: int,
    Kind.NUMBER: float,
    Kind.TRUTH: _TRUTHS.__getitem__,
}
_VERSION_KEY: Final = b"robo_eval.schema_version"


def export_episodes(trial: StrPath, out: StrPath, *, force: bool = False) -> int:
    """Write the rows of a trial as Parquet or CSV, by the ending of the file name.

    Columns are those of `core.episode.COLUMNS`; mappings are JSON text. In CSV a missing text and
    an empty one look the same. The file appears complete or not at all.

    Args:
        trial: The trial directory.
        out: File to write.
        force: Replace a file that is there.

    Returns:
        The number of rows.

    Raises:
        InputError: If the ending is neither .parquet nor .csv, or the file is there already.
        MissingExtraError: If it is .parquet and pyarrow is not installed.
        TrialDirectoryError: If the trial cannot be read or the file not be written.
    """
    target = Path(out)
    write = _format_of(target, {".parquet": _parquet, ".csv": _csv})
    # A link that leads nowhere is there as well.
    if not force and (target.exists() or target.is_symlink()):
        raise InputError(f"{target}: exists already; choose another --out, or replace it: --force")
    from robo_eval.log.store import EpisodeStore

    with EpisodeStore(trial, durable=False, read_only=True) as store:
        episodes = list(store.episodes())
    write_atomically(target, write(episodes))
    return len(episodes)


def read_episodes(path: StrPath) -> pd.DataFrame:
    """Read a table that `export_episodes` wrote; the result equals `EpisodeStore.frame`.

    From CSV, empty texts of columns that may be missing come back as missing.

    Raises:
        InputError: If the ending is unknown, a column is missing, or a cell holds something its
            column cannot; the message names file, row and column.
        MissingExtraError: If it is Parquet and pyarrow is not installed.
        TrialDirectoryError: If the file cannot be read.
    """
    source = Path(path)
    read = _format_of(source, {".parquet": _parquet_rows, ".csv": _csv_rows})
    from robo_eval.log.columns import episodes_table

    if read is _parquet_rows:
        frame = _parquet_frame(source)
        if frame is not None:
            return frame
    return episodes_table(
        episode_of(cells, where=partial(_where, source, number))
        for number, cells in enumerate(read(source), start=1)
    )


def _where(path: Path, number: int) -> str:
    return f"{path}: row {number}"


def _format_of(path: Path, formats: Mapping[str, _T]) -> _T:
    suffix = path.suffix.lower()
    if suffix not in formats:
        raise InputError(f"{path}: the name must end in {' or '.join(formats)}")
    if suffix == ".parquet":
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError as err:
            raise MissingExtraError(
                f"{path}: Parquet is read and written with the pyarrow library, a CSV file without;"
                f" run: {pip_install('parquet')}"
            ) from err
    return formats[suffix]


# CSV -------------------------------------------------------------------------------------------


def _csv(episodes: Iterable[Episode]) -> bytes:
    text = io.StringIO(newline="")
    # With both characters in its line ends, the writer also quotes texts that hold one of them.
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for episode in episodes:
        cells = cells_of(episode, where=episode.episode_id)
        writer.writerow([_csv_text(name, cells[name]) for name in COLUMNS])
    return text.getvalue().encode()


def _csv_text(name: str, cell: Cell) -> str:
    if cell is None:
        return ""
    if KINDS[name] is Kind.TRUTH:
        return "true" if cell else "false"
    return repr(cell) if isinstance(cell, float) else str(cell)


def _csv_rows(path: Path) -> Iterator[list[Any]]:
    with opened(path) as file:
        table = Records(path, file)
        _check_header(path, table.header)
        places = [table.header.index(name) for name in COLUMNS]
        for number, (_, row) in enumerate(table, start=1):
            yield [
                _csv_cell(path, number, name, row[place])
                for name, place in zip(COLUMNS, places, strict=True)
            ]


def _csv_cell(path: Path, number: int, name: str, text: str) -> Cell:
    if text == "" and name in OPTIONAL:
        return None
    parse = _PARSERS.get(KINDS[name], str)
    try:
        return parse(text)
    except (ValueError, KeyError) as err:
        raise InputError(
            f"{_where(path, number)}, column {name!r}: {text!r:.60} is not {_article(KINDS[name])}"
        ) from err


def _article(kind: Kind) -> str:
    return {
        Kind.INTEGER: "a whole number",
        Kind.NUMBER: "a number",
        Kind.TRUTH: "true or false",
    }.get(kind, "a text")


def _check_header(path: Path, header: Sequence[str]) -> None:
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        extra = [name for name in header if name not in COLUMNS]
        hint = f"; {unknown_name('column', extra[0], COLUMNS)}" if extra else ""
        raise InputError(f"{path}: column {missing[0]!r} is missing{hint}")


# Parquet ---------------------------------------------------------------------------------------


def _parquet(episodes: Sequence[Episode]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [cells_of(episode, where=episode.episode_id) for episode in episodes]
    schema = parquet_schema()
    arrays = []
    for column in schema:
        values: list[Any] = [row[column.name] for row in rows]
        if KINDS[column.name] is Kind.TRUTH:
            values = [None if value is None else bool(value) for value in values]
        arrays.append(pa.array(values, type=column.type))
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), sink, compression="zstd")
    return sink.getvalue()


def parquet_schema() -> pa.Schema:
    """The columns of an exported Parquet file, with their types."""
    import pyarrow as pa

    types = {Kind.INTEGER: pa.int64(), Kind.NUMBER: pa.float64(), Kind.TRUTH: pa.bool_()}
    return pa.schema(
        [
            pa.field(name, types.get(KINDS[name], pa.string()), nullable=name in OPTIONAL)
            for name in COLUMNS
        ],
        metadata={_VERSION_KEY: json.dumps(SCHEMA_VERSION).encode()},
    )


def _parquet_table(path: Path) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with explained(path, "cannot be read"):
        data = door.bytes_of(path)
    try:
        table = pq.read_table(io.BytesIO(data))
    except (pa.ArrowException, OSError, ValueError) as err:
        raise InputError(f"{path}: is not a Parquet file, or damaged: {err!s:.200}") from err
    _check_header(path, table.column_names)
    return table.select(list(COLUMNS))


def _parquet_frame(path: Path) -> pd.DataFrame | None:
    """All rows at once; None if one of them needs to be looked at."""
    from robo_eval.log.columns import Column, table_of_columns

    table = _parquet_table(path)
    columns = {name: Column(name) for name in COLUMNS}
    for name, column in columns.items():
        if not all(column.add_arrow(chunk) for chunk in table[name].chunks):
            return None
    return table_of_columns(columns) if table.num_rows else None


def _parquet_rows(path: Path) -> Iterator[list[Any]]:
    for batch in _parquet_table(path).to_batches(max_chunksize=1024):
        columns = [column.to_pylist() for column in batch.columns]
        yield from (list(row) for row in zip(*columns, strict=True))
