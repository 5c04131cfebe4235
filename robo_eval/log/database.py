"""Opening the episode database, and what each of its failures means in one line.

Everybody who reads or writes rows comes through here, with the standard library alone.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from robo_eval.core import door
from robo_eval.core.episode import COLUMNS, SCHEMA_VERSION
from robo_eval.core.errors import TrialDirectoryError
from robo_eval.log.files import explained, part_of, sync_folder
from robo_eval.log.manifest import MANIFEST
from robo_eval.log.rows import CHAIN
from robo_eval.log.schema import KINDS, OPTIONAL, Kind

if TYPE_CHECKING:
    import tempfile

DATABASE: Final = "episodes.db"
"""Name of the database in a trial directory."""

_MAGIC: Final = b"SQLite format 3\x00"
_BUSY_S: Final = 5.0
"""How long a writer waits for another one."""
_COPIES: Final = 5
"""How often copying a database that somebody else writes to is tried."""
_COPY: Final = "restore it from a copy"

_UNREADABLE: Final = (
    "disk i/o error", "database is locked", "not a database", "unable to open",
)  # fmt: skip
"""Errors of SQLite that say nothing about what a database holds."""
_MEANINGS: Final = (
    ("database or disk is full", "the disk is full; free some space, nothing logged is lost"),
    ("disk i/o error", "the disk is full or failing; nothing logged before is lost"),
    ("readonly database", "is read-only; make file and folder writable"),
    ("database is locked", "is locked by another program; close that and try again"),
    ("malformed", f"is damaged; {_COPY}"),
    ("not a database", f"is not an SQLite database; name another file, or {_COPY}"),
    ("unable to open", "cannot be opened; check that file and folder are readable"),
    ("no such table", f"has not the tables it should have; {_COPY}"),
    ("no such column", f"has not the columns it should have; {_COPY}"),
)

_VERSIONS: Final = "alembic_version"
"""Table of one row that holds the schema version."""
_TYPES: Final = {Kind.INTEGER: "INTEGER", Kind.NUMBER: "FLOAT", Kind.TRUTH: "INTEGER"}
"""Other kinds are stored as text."""


def _column(name: str) -> str:
    return f"{name} {_TYPES.get(KINDS[name], 'TEXT')}{'' if name in OPTIONAL else ' NOT NULL'}"


_TABLES: Final = f"""
BEGIN;
CREATE TABLE episodes (
    sequence INTEGER NOT NULL PRIMARY KEY,
    {", ".join(map(_column, COLUMNS))},
    row_form INTEGER NOT NULL,
    previous_sha256 TEXT NOT NULL,
    row_sha256 TEXT NOT NULL,
    UNIQUE (episode_id)
);
CREATE TABLE {_VERSIONS} (version_num VARCHAR(32) NOT NULL PRIMARY KEY);
INSERT INTO {_VERSIONS} VALUES ('{SCHEMA_VERSION:04d}');
COMMIT;
PRAGMA journal_mode = WAL;
"""  # noqa: S608 - our own names


_File = tuple[int, int]
"""A file by device and number, whatever it is called."""
_counting: Final = threading.Lock()
_connections: Final[Counter[_File]] = Counter()
"""How many connections this process has to each file."""


class Connection(sqlite3.Connection):
    """A connection that is counted among those to its file, until it is closed."""

    file: _File | None = None
    copied: tempfile.TemporaryDirectory[str] | None = None
    """Where the copy lies that is read in place of the file."""

    def close(self) -> None:
        """Close it; a copy that was read goes."""
        file, self.file = self.file, None
        try:
            super().close()
            if self.copied is not None:
                self.copied.cleanup()
        finally:
            if file is not None:
                _forget(file)


class UnreadableError(TrialDirectoryError):
    """The database cannot be read, which says nothing about the rows in it."""


class SchemaVersionError(TrialDirectoryError):
    """The database is fine, but of another schema version than this program's."""


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn errors of SQLite into one line that names the file.

    Raises:
        TrialDirectoryError: In place of any database error of the body.
    """
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as found:
        err = undecoded(found) if isinstance(found, UnicodeDecodeError) else found
        is_unread = any(words in str(err).lower() for words in _UNREADABLE)
        kind = UnreadableError if is_unread else TrialDirectoryError
        raise kind(f"{path}: {meaning_of(err)}") from found


def undecoded(_err: UnicodeDecodeError) -> sqlite3.Error:
    """What an error of SQLite means that names bytes which are no text: a damaged file."""
    return sqlite3.DatabaseError("database disk image is malformed")


def meaning_of(err: BaseException | None) -> str:
    """What an error of SQLite means, in one line."""
    text = " ".join(str(err).split())
    return next((say for key, say in _MEANINGS if key in text.lower()), text)


def check_file(path: Path) -> None:
    """Refuse what cannot be such a database, before SQLite touches it.

    Raises:
        UnreadableError: If the file is empty, cut short or something else.
        TrialDirectoryError: If it is missing.
    """
    try:
        with door.opened(path) as file:
            head = file.read(100)
            size = os.fstat(file.fileno()).st_size
    except FileNotFoundError as err:
        raise TrialDirectoryError(f"{path}: is missing; {_COPY}") from err
    except OSError as err:
        raise UnreadableError(f"{path}: cannot be read: {err.strerror or err}") from err
    # SQLite would take an empty file for a new database.
    if size == 0:
        raise UnreadableError(f"{path}: is empty (0 bytes); {_COPY}")
    if head[:16] != _MAGIC:
        raise UnreadableError(f"{path}: is not an SQLite database; {_COPY}")
    page = int.from_bytes(head[16:18], "big")
    expected = (65536 if page == 1 else page) * int.from_bytes(head[28:32], "big")
    # While the write-ahead log holds pages, the file may rightly be shorter than its header says.
    if size < expected and not _has_content(_wal_of(path)):
        raise UnreadableError(f"{path}: is cut short: {size} of {expected} bytes; {_COPY}")


def connect(
    path: Path, *, durable: bool = True, read_only: bool = False, busy_s: float = _BUSY_S
) -> Connection:
    """Open an existing database of any schema version.

    Args:
        path: The database file.
        durable: Whether commits must survive a power cut, not only a killed process.
        read_only: Refuse writing; works on write-protected media as well.
        busy_s: How long a writer waits for another one.

    Raises:
        TrialDirectoryError: If it is missing, damaged, locked or no database.
    """
    file = _checked(path)
    try:
        connection = _connect(path, durable=durable, read_only=read_only, busy_s=busy_s)
    except BaseException:
        _forget(file)
        raise
    connection.file = file
    return connection


def _checked(path: Path) -> _File:
    """Check a file, and count one more connection to it.

    A process that closes a file loses all its locks on it, those of SQLite included: another one
    could then take away the write-ahead log under a connection, and with it what is committed
    next. So a file is looked into only while this process has no connection to it.
    """
    with _counting:
        file = _file_at(path)
        if file is None or not _connections[file]:
            check_file(path)
            file = _file_at(path)
        if file is None:
            raise TrialDirectoryError(f"{path}: was taken away while it was opened")
        _connections[file] += 1
    return file


def _forget(file: _File) -> None:
    with _counting:
        _connections[file] -= 1
        if not _connections[file]:
            del _connections[file]


def _file_at(path: Path) -> _File | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _connect(path: Path, *, durable: bool, read_only: bool, busy_s: float) -> Connection:
    copied: tempfile.TemporaryDirectory[str] | None = None
    uri = f"file:{quote(os.fsencode(path.absolute()))}?mode=rw"
    if read_only and not _can_write(path):
        if _has_content(_wal_of(path)):
            import tempfile

            # SQLite merges the newest rows only where it can write.
            copied = tempfile.TemporaryDirectory(prefix="robo-eval-")
            uri = f"file:{quote(os.fsencode(_copy_of(path, Path(copied.name))))}?mode=rw"
        else:
            uri = f"file:{quote(os.fsencode(path.absolute()))}?immutable=1"

    with translated(path):
        connection = sqlite3.connect(
            uri,
            uri=True,
            timeout=busy_s,
            isolation_level=None,
            # Whoever shares a connection between threads lets one of them in at a time.
            check_same_thread=False,
            factory=Connection,
        )
        connection.copied = copied
        try:
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            if read_only:
                connection.execute("PRAGMA query_only = ON")
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        except BaseException:
            connection.close()
            raise
    return connection


def _can_write(path: Path) -> bool:
    # As whom the process acts, not who started it.
    by_effective = os.access in os.supports_effective_ids
    for place in (path, path.parent):
        if not os.access(place, os.W_OK, effective_ids=by_effective):
            return False
    return not os.statvfs(path.parent).f_flag & os.ST_RDONLY


def _wal_of(path: Path) -> Path:
    """Where SQLite keeps what it has not yet merged into the file."""
    return path.with_name(f"{path.name}-wal")


def _has_content(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _copy_of(path: Path, folder: Path) -> Path:
    """A copy of a database and of its newest rows that belong together."""
    import shutil

    with explained(path, "cannot be copied"):
        for _ in range(_COPIES):
            before = _state_of(path)
            for file in (path, _wal_of(path)):
                if file.exists():
                    shutil.copyfile(file, folder / file.name)
            if _state_of(path) == before:
                return folder / path.name
    raise TrialDirectoryError(f"{path}: changes all the time; wait until the run has ended")


def _state_of(path: Path) -> list[tuple[int, int]]:
    found = [file.stat() for file in (path, _wal_of(path)) if file.exists()]
    return [(stat.st_size, stat.st_mtime_ns) for stat in found]


@contextmanager
def reading(path: Path) -> Iterator[Connection]:
    """An episode database of this program's schema, open for reading and closed at the end.

    Raises:
        SchemaVersionError: If it is of another schema version.
        TrialDirectoryError: If it cannot be read; in place of errors of SQLite in the body, too.
    """
    with closing(connect(path, read_only=True)) as connection, translated(path):
        check_version(connection, path)
        yield connection


def stored_rows(connection: Connection) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Every row as it is stored, in order: the columns that chain it, and its cells.

    Bytes that are no UTF-8 are kept in the way of file names, so that a row can be named by them.
    """
    connection.text_factory = lambda data: data.decode(errors="surrogateescape")
    rows = connection.execute(
        f"SELECT {', '.join((*CHAIN, *COLUMNS))} FROM episodes ORDER BY sequence"  # noqa: S608
    )
    for row in rows:
        chain = dict(zip(CHAIN, row, strict=False))
        yield chain, dict(zip(COLUMNS, row[len(CHAIN) :], strict=True))


def check_version(connection: Connection, path: Path) -> None:
    """Refuse a database whose schema is older or newer than this program's, and leave it as it is.

    Raises:
        SchemaVersionError: With the versions and what to do; the connection is closed then.
        TrialDirectoryError: If the database is no episode log.
    """
    with translated(path):
        rows = connection.execute(f"SELECT version_num FROM {_VERSIONS}").fetchall()  # noqa: S608
        connection.execute("SELECT 1 FROM episodes LIMIT 1").fetchone()
    found = str(rows[0][0]) if len(rows) == 1 else ""
    if not found.isdecimal():
        raise TrialDirectoryError(f"{path}: its schema version cannot be read; {_COPY}")
    if int(found) != SCHEMA_VERSION:
        _close_unmerged(connection, path)
        raise SchemaVersionError(
            f"{path}: has schema version {int(found)}, this release reads version"
            f" {SCHEMA_VERSION} only; read it with the robo-eval that {MANIFEST} names"
        )


def _close_unmerged(connection: Connection, path: Path) -> None:
    """Close a connection, and leave what is in the write-ahead log there."""
    if connection.copied is None and _has_content(_wal_of(path)):
        # The last one to close merges it, except where it may only read.
        uri = f"file:{quote(os.fsencode(path.absolute()))}?mode=ro"
        with translated(path), closing(sqlite3.connect(uri, uri=True)) as last:
            last.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            connection.close()
    connection.close()


def create_database(path: Path) -> None:
    """Create an empty episode database; it appears under its name complete.

    Raises:
        TrialDirectoryError: If it cannot be written.
    """
    part = part_of(path)
    with translated(path), explained(path, "cannot be created"):
        try:
            with closing(sqlite3.connect(part)) as connection:
                connection.executescript(_TABLES)
            part.replace(path)
            sync_folder(path.parent)
        finally:
            for leftover in path.parent.glob(f"{part.name}*"):
                leftover.unlink()
