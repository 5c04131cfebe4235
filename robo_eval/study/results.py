"""Results of pieces of work, kept by digest: one file that a killed run leaves whole."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from robo_eval.core import door
from robo_eval.core.errors import InputError

NAME: Final = "results.db"
_CREATE: Final = """
CREATE TABLE IF NOT EXISTS results (
    digest TEXT PRIMARY KEY, label TEXT NOT NULL, seconds REAL NOT NULL, value TEXT NOT NULL
) WITHOUT ROWID
"""


class Results:
    """What has been done already; each result is committed by itself.

    Args:
        path: SQLite file; made if it is not there.

    Raises:
        InputError: If it cannot be opened, or is something else.
    """

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        with self._explained():
            self._connection = sqlite3.connect(path, timeout=60.0, isolation_level=None)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.execute(_CREATE)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    def get(self, digest: str) -> dict[str, Any] | None:
        """The result of a piece of work; None if it was not done."""
        with self._explained():
            row = self._connection.execute(
                "SELECT value FROM results WHERE digest = ?", (digest,)
            ).fetchone()
        if row is None:
            return None
        try:
            value = door.json_of(row[0])
        except ValueError:
            return None  # done again, and replaced
        return value if isinstance(value, dict) else None

    def put(self, digest: str, label: str, value: dict[str, Any]) -> None:
        """Keep a result; it is there from now on, whatever happens.

        Args:
            digest: Of the piece of work.
            label: What it was, for people who look into the file.
            value: Plain data with a number `seconds`.
        """
        text = json.dumps(value, allow_nan=False, separators=(",", ":"))
        with self._explained():
            self._connection.execute(
                "INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?)",
                (digest, label, float(value["seconds"]), text),
            )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as err:
            if err.sqlite_errorcode == sqlite3.SQLITE_FULL:
                raise InputError(
                    f"{self.path}: the disk is full; what is in it is kept. Make room, and run the"
                    " same command again"
                ) from err
            raise InputError(
                f"{self.path}: cannot be used as results of a study: {err}; move it away to begin"
                " anew, or name another folder"
            ) from err
