"""The episode rows of a trial: appended in batches, chained, read back."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from robo_eval.core.episode import COLUMNS, Episode
from robo_eval.core.errors import InputError
from robo_eval.log import database
from robo_eval.log.chain import GENESIS
from robo_eval.log.database import DATABASE
from robo_eval.log.rows import CHAIN, ROW_FORM, Cell, cells_of, episode_of, row_digest

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DATABASE", "EpisodeStore"]

_PAGE: Final = 512
"""Rows read at once."""
_BLOCK: Final = 20_000
"""Rows read at once into a table, in which they stay anyway."""
_SELECT_HEAD: Final = "SELECT sequence, row_sha256 FROM episodes ORDER BY sequence DESC LIMIT 1"
_SELECT: Final = ", ".join(("sequence", *COLUMNS))
_ORDER: Final = (*CHAIN, *COLUMNS)
_INSERT: Final = (
    f"INSERT INTO episodes ({', '.join(_ORDER)})"  # noqa: S608 - our columns
    f" VALUES ({', '.join('?' * len(_ORDER))})"
)

_ordered: Final = itemgetter(*_ORDER)


class EpisodeStore:
    """The rows of one trial directory.

    Every row commits to the one before it by SHA-256 (`log.rows.row_digest`). A batch is one
    transaction: after `append` returned, its rows survive a killed process and, if `durable`,
    a power cut.

    Args:
        path: The trial directory.
        durable: Whether each commit waits for the disk.
        read_only: Refuse writing; works on write-protected media as well.

    Raises:
        TrialDirectoryError: If the database is missing, damaged, or of another schema version.
    """

    def __init__(
        self, path: Path | str | os.PathLike[str], *, durable: bool, read_only: bool = False
    ) -> None:
        self.path: Final = Path(path) / DATABASE
        self._connection = database.connect(self.path, durable=durable, read_only=read_only)
        try:
            database.check_version(self._connection, self.path)
            self._sequence, self._head = self._read_head()
            self._length = self._count()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the database; what was appended stays."""
        with database.translated(self.path):
            self._connection.close()

    def __len__(self) -> int:
        """How many rows there are, as of opening and own appends."""
        return self._length

    def head(self) -> str:
        """SHA-256 of the newest row, which commits to all rows; 64 zeros without rows."""
        return self._head

    def append(self, episodes: Sequence[Episode]) -> None:
        """Add rows, all or none.

        Raises:
            InputError: If an id is there already or a field holds NaN or something else its
                column cannot; the message names file, row and column. Nothing is added.
            TrialDirectoryError: If the database cannot be written. Nothing is added.
        """
        if not episodes:
            return
        connection = self._connection
        with database.translated(self.path):
            connection.execute("BEGIN IMMEDIATE")
            try:
                # Read again inside the transaction: another process may have appended.
                sequence, head = _head(connection.execute(_SELECT_HEAD).fetchone())
                if (sequence, head) != (self._sequence, self._head):
                    self._length = self._count()
                rows = self._chained(episodes, sequence, head)
                self._insert(rows)
                connection.execute("COMMIT")
            except BaseException:
                # SQLite ends the transaction itself after some errors, such as a full disk.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        self._sequence, self._head = sequence + len(rows), str(rows[-1]["row_sha256"])
        self._length += len(rows)

    def _chained(
        self, episodes: Sequence[Episode], sequence: int, head: str
    ) -> list[dict[str, Cell]]:
        rows = []
        for episode in episodes:
            sequence += 1
            cells = cells_of(episode, where=self._where(sequence))
            digest = row_digest(cells, sequence=sequence, previous_sha256=head)
            cells["sequence"] = sequence
            cells["row_form"] = ROW_FORM
            cells["previous_sha256"] = head
            cells["row_sha256"] = head = digest
            rows.append(cells)
        return rows

    def _insert(self, rows: Sequence[Mapping[str, Cell]]) -> None:
        try:
            self._connection.executemany(_INSERT, [_ordered(row) for row in rows])
        except sqlite3.IntegrityError as err:
            # Inside the transaction the rows before the refused one are there already.
            there = dict(self._connection.execute("SELECT episode_id, sequence FROM episodes"))
            for row in rows:
                name, sequence = row["episode_id"], row["sequence"]
                if there.get(name, sequence) != sequence:
                    raise InputError(
                        f"{self._where(sequence)}, column 'episode_id': {name!r} is row"
                        f" {there[name]} already; an episode is logged once"
                    ) from err
            raise

    def ids(self) -> set[str]:
        """The ids of all episodes."""
        with database.translated(self.path):
            result = self._connection.execute("SELECT episode_id FROM episodes")
            return {row[0] for row in result}

    def episodes(self) -> Iterator[Episode]:
        """All episodes in the order they were appended.

        Raises:
            InputError: If a stored cell is not what its column allows; names row and column.
        """
        after = 0
        while rows := self._page(after):
            for sequence, *cells in rows:
                after = sequence
                try:
                    episode = episode_of(cells, where=partial(self._where, after))
                except InputError as err:
                    raise InputError(f"{err}; `robo-eval verify` says more") from err
                yield episode

    def frame(self) -> pd.DataFrame:
        """All episodes as a table with the columns of `core.episode.COLUMNS`.

        Words are plain strings; missing texts are None, missing numbers NaN, whole numbers and
        truths of the nullable types `Int64` and `boolean`, mappings dictionaries.

        Raises:
            InputError: If a stored cell is not what its column allows; names row and column.
        """
        from robo_eval.log.columns import episodes_table

        frame = self._frame_of_columns()
        return episodes_table(self.episodes()) if frame is None else frame

    def _frame_of_columns(self) -> pd.DataFrame | None:
        """All rows at once; None if one of them needs to be looked at."""
        from robo_eval.log.columns import Column, table_of_columns

        columns = {name: Column(name) for name in COLUMNS}
        after = 0
        while rows := self._page(after, _BLOCK):
            sequences, *cells = zip(*rows, strict=True)
            after = sequences[-1]
            if not all(map(Column.add, columns.values(), cells)):
                return None
        return table_of_columns(columns) if after else None

    def _page(self, after: int, size: int = _PAGE) -> Sequence[Any]:
        with database.translated(self.path):
            return self._connection.execute(
                f"SELECT {_SELECT} FROM episodes WHERE sequence > ?"  # noqa: S608 - our columns
                f" ORDER BY sequence LIMIT {size}",
                (after,),
            ).fetchall()

    def _read_head(self) -> tuple[int, str]:
        with database.translated(self.path):
            return _head(self._connection.execute(_SELECT_HEAD).fetchone())

    def _count(self) -> int:
        with database.translated(self.path):
            (count,) = self._connection.execute("SELECT count(*) FROM episodes").fetchone()
        return int(count)

    def _where(self, sequence: Cell) -> str:
        return f"{self.path}: row {sequence}"


def _head(row: Sequence[Any] | None) -> tuple[int, str]:
    """Sequence number and digest of the newest row."""
    return (0, GENESIS) if row is None else (int(row[0]), str(row[1]))
