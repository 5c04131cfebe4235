"""Opening the episode database, and what each of its failures means in one line."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from sqlalchemy import Connection, create_engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import StaticPool

from robo_eval.core import door
from robo_eval.core.episode import COLUMNS
from robo_eval.core.errors import TrialDirectoryError
from robo_eval.log.files import explained, part_of, sync_folder
from robo_eval.log.rows import CHAIN
from robo_eval.log.schema import CURRENT, METADATA, VERSION_TABLE

DATABASE: Final = "episodes.db"
"""Name of the database in a trial directory."""

_MAGIC: Final = b"SQLite format 3\x00"
_BUSY_S: Final = 5.0
"""How long a writer waits for another one."""
_COPIED: Final = "robo_eval_copied"
_FILE: Final = "robo_eval_file"
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
    ("not a database", f"is not an SQLite database; {_COPY}"),
    ("unable to open", "cannot be opened; check that file and folder are readable"),
    ("no such table", f"has not the tables it should have; {_COPY}"),
    ("no such column", f"has not the columns it should have; {_COPY}"),
)


_File = tuple[int, int]
"""A file by device and number, whatever it is called."""
_counting: Final = threading.Lock()
_connections: Final[Counter[_File]] = Counter()
"""How many connections this process has to each file."""


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
    except (SQLAlchemyError, sqlite3.Error) as err:
        # SQLAlchemy's own errors have several lines.
        cause = err.orig if isinstance(err, DBAPIError) else err
        is_unread = any(words in str(cause).lower() for words in _UNREADABLE)
        kind = UnreadableError if is_unread else TrialDirectoryError
        raise kind(f"{path}: {meaning_of(cause)}") from err


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
    connection.info[_FILE] = file
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
            # SQLite merges the newest rows only where it can write.
            copied = tempfile.TemporaryDirectory(prefix="robo-eval-")
            uri = f"file:{quote(os.fsencode(_copy_of(path, Path(copied.name))))}?mode=rw"
        else:
            uri = f"file:{quote(os.fsencode(path.absolute()))}?immutable=1"

    def open_file() -> sqlite3.Connection:
        return sqlite3.connect(
            uri,
            uri=True,
            timeout=busy_s,
            isolation_level=None,
            # Whoever shares a connection between threads lets one of them in at a time.
            check_same_thread=False,
        )

    engine = create_engine(
        "sqlite://", creator=open_file, poolclass=StaticPool, isolation_level="AUTOCOMMIT"
    )
    with translated(path):
        connection = engine.connect()
        connection.info[_COPIED] = copied
        try:
            connection.exec_driver_sql(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            if read_only:
                connection.exec_driver_sql("PRAGMA query_only = ON")
            connection.exec_driver_sql("SELECT count(*) FROM sqlite_schema").scalar()
        except BaseException:
            close(connection)
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


def close(connection: Connection) -> None:
    """Close a connection, its file included."""
    copied = connection.info.pop(_COPIED, None)
    file = connection.info.pop(_FILE, None)
    try:
        connection.close()
        connection.engine.dispose()
        if copied is not None:
            copied.cleanup()
    finally:
        if file is not None:
            _forget(file)


@contextmanager
def opened(path: Path, *, read_only: bool = False) -> Iterator[Connection]:
    """An open episode database, closed at the end; see `connect`."""
    connection = connect(path, read_only=read_only)
    try:
        yield connection
    finally:
        close(connection)


def schema_version(connection: Connection, path: Path) -> str:
    """The schema version of a database, as a revision such as `0002`.

    Raises:
        TrialDirectoryError: If the database is no episode log.
    """
    with translated(path):
        rows = connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").fetchall()  # noqa: S608
        connection.exec_driver_sql("SELECT 1 FROM episodes LIMIT 1").fetchall()
    if len(rows) != 1 or not str(rows[0][0]).isdecimal():
        raise TrialDirectoryError(f"{path}: its schema version cannot be read; {_COPY}")
    return str(rows[0][0])


def stored_rows(connection: Connection) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Every row as it is stored, in order: the columns that chain it, and its cells.

    Bytes that are no UTF-8 are kept in the way of file names, so that a row can be named by them.
    """
    driver: Any = connection.connection.driver_connection
    driver.text_factory = lambda data: data.decode(errors="surrogateescape")
    rows = connection.exec_driver_sql(
        f"SELECT {', '.join((*CHAIN, *COLUMNS))} FROM episodes ORDER BY sequence"  # noqa: S608
    )
    for row in rows:
        chain = dict(zip(CHAIN, row, strict=False))
        yield chain, dict(zip(COLUMNS, row[len(CHAIN) :], strict=True))


def check_version(connection: Connection, path: Path) -> None:
    """Refuse a database whose schema is older or newer than this program's.

    Raises:
        SchemaVersionError: With the command that upgrades it, or what to install.
        TrialDirectoryError: If the database is no episode log.
    """
    found = schema_version(connection, path)
    if int(found) < int(CURRENT):
        raise SchemaVersionError(
            f"{path}: has schema version {int(found)}, this program works with {int(CURRENT)};"
            f" upgrade it with: robo-eval migrate {path.parent}"
        )
    if int(found) > int(CURRENT):
        raise SchemaVersionError(
            f"{path}: has schema version {int(found)}, which is newer than this program's"
            f" {int(CURRENT)}; install a newer robo-eval to read it"
        )


def create_database(path: Path) -> None:
    """Create an empty episode database; it appears under its name complete.

    Raises:
        TrialDirectoryError: If it cannot be written.
    """
    part = part_of(path)
    with translated(path), explained(path, "cannot be created"):
        try:
            # Made by sqlite3 first: `connect` refuses what does not exist.
            engine = create_engine(
                "sqlite://", creator=lambda: sqlite3.connect(part), poolclass=StaticPool
            )
            with engine.begin() as connection:
                METADATA.create_all(connection)
                connection.exec_driver_sql(
                    f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"
                )
                connection.exec_driver_sql(
                    f"INSERT INTO {VERSION_TABLE} VALUES (?)",  # noqa: S608 - our own constant
                    (CURRENT,),
                )
            with engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA journal_mode = WAL")
            engine.dispose()
            part.replace(path)
            sync_folder(path.parent)
        finally:
            for leftover in path.parent.glob(f"{part.name}*"):
                leftover.unlink()
