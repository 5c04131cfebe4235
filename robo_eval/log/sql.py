"""A database of several tables: SQLite by path, PostgreSQL by URL, opened and explained alike."""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeVar

from sqlalchemy import (
    URL,
    Connection,
    Executable,
    MetaData,
    create_engine,
    inspect,
    make_url,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool, StaticPool
from sqlalchemy.sql import ClauseElement

from robo_eval.core.errors import (
    InputError,
    MissingExtraError,
    TrialDirectoryError,
    pip_install,
    said,
)
from robo_eval.log import database as files
from robo_eval.log.files import explained, part_of, sync_folder

_Result = TypeVar("_Result")

_BUSY_S: Final = 30.0
"""How long a writer waits for the others."""
_PAGE_BYTES: Final = 1_024
"""A record changes a page of each of several trees, and all of each is written: small ones cost
less. What reads all records is slower by it, by about a tenth."""
_WAL_PAGES: Final = 4_000
"""Pages SQLite gathers before it merges them into the file. A record changes several pages, most of
them the same as the record before, so merging seldom saves a fifth of the time; what was committed
is on the disk either way."""
_CACHE_KIB: Final = 16_000
"""Of the file that SQLite keeps in memory: as much as a search in 100,000 incidents reads."""
_PATIENCE_S: Final = 20.0
"""How long a server that went away is asked again."""
_NAMES: Final = 400
"""Names in one query."""
_DRIVER: Final = "postgresql+psycopg"
_LOST: Final = (
    "server closed the connection", "connection refused", "terminating connection",
    "the database system is", "connection is closed", "connection is lost", "connection reset",
    "consuming input failed", "connection has been closed", "could not receive data",
    "no such file or directory", "another command is already in progress",
)  # fmt: skip
"""What PostgreSQL's client says when the server went away, or is just coming up."""


class DatabaseError(InputError):
    """A database cannot be read or written; nothing was changed."""

    http_status = 503


class LostServerError(DatabaseError):
    """The database server went away; whether the last record arrived is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """Which tables a database has, and what it is called in messages.

    Attributes:
        noun: Such as `incident log`.
        tables: All of them; `meta` holds names and values, `version` among them.
        main: Name of the one that, with `meta`, tells such a database from others.
        version: Version of the tables.
        made_by: The command that makes one.
        lock: Advisory lock under which PostgreSQL's tables are made: a number of its own.
    """

    noun: str
    tables: MetaData
    main: str
    version: str
    made_by: str
    lock: int

    @property
    def a_noun(self) -> str:
        """The noun with its article."""
        return f"a{'n' if self.noun[0] in 'aeiou' else ''} {self.noun}"


class Database:
    """A database of a form, used by one thread at a time.

    Args:
        target: Path of an SQLite file, or a URL that begins with `postgresql://`.
        form: Its tables.
        read_only: Refuse writing; an SQLite file may then be on write-protected media.
        durable: Whether each transaction survives a power cut, too. Of an SQLite file that takes
            as long as many transactions; else it does from the next `flush` on.

    Raises:
        DatabaseError: If it is missing, damaged, of another schema, or cannot be reached.
        MissingExtraError: If PostgreSQL's driver is not installed.
    """

    def __init__(
        self, target: str | Path, form: Form, *, read_only: bool = False, durable: bool = True
    ) -> None:
        self._target = target
        self._durable = durable
        self._form = form
        self.is_server = is_url(target)
        self.name: Final = shown(target)
        self.read_only: Final = read_only
        self.lock = threading.RLock()
        self._connection: Connection | None = None
        try:
            self._check_version()
        except BaseException:
            self.close()
            raise

    @property
    def path(self) -> Path | None:
        """The file; None for a server."""
        return None if self.is_server else Path(self._target)

    def close(self) -> None:
        """Close the connection; what was committed stays."""
        with self.lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                with suppress(SQLAlchemyError):  # where the server went away first
                    connection.close()
                connection.engine.dispose()

    # Transactions ------------------------------------------------------------------------------

    def reading(self) -> AbstractContextManager[Connection]:
        """One state of the database, whoever writes meanwhile."""
        return _Transaction(
            self, "BEGIN ISOLATION LEVEL REPEATABLE READ" if self.is_server else "BEGIN"
        )

    def rows(self, query: Executable) -> Sequence[Any]:
        """The rows of a query."""
        with self.reading() as connection:
            return connection.execute(query).all()

    def writing(self) -> AbstractContextManager[Connection]:
        """A transaction: after it ended its changes survive a power cut; on any error none is made.

        Raises:
            DatabaseError: If the database cannot be written.
        """
        if self.read_only:
            raise DatabaseError(f"{self.name}: was opened for reading only")
        return _Transaction(self, "BEGIN" if self.is_server else "BEGIN IMMEDIATE")

    def roll_back(self, driver: Any) -> None:
        """End a transaction without its changes."""
        # SQLite ends the transaction itself after some errors, such as a full disk; a server may
        # be gone.
        if self.is_server:
            try:
                driver.execute("ROLLBACK")
            except driver_errors():
                self.close()
        elif driver.in_transaction:
            driver.execute("ROLLBACK")

    def persistently(self, work: Callable[[], _Result]) -> _Result:
        """Do something again while the server is away, for a while.

        Args:
            work: May be done several times, with the effect of once.
        """
        deadline = time.monotonic() + _PATIENCE_S
        wait_s = 0.05
        while True:
            try:
                return work()
            except LostServerError:
                self.close()
                if time.monotonic() + wait_s > deadline:
                    raise
            time.sleep(wait_s)
            wait_s = min(2.0 * wait_s, 1.0)

    # Connecting --------------------------------------------------------------------------------

    def connected(self) -> Connection:
        """The connection, made when it is first needed."""
        if self._connection is None:
            self._connection = (
                _connect_server(str(self._target), self._form)
                if self.is_server
                else self._connect_file()
            )
        return self._connection

    def _connect_file(self) -> Connection:
        path = Path(self._target)
        connection = _connect_file(path, read_only=self.read_only, durable=self._durable)
        connection.exec_driver_sql(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")
        connection.exec_driver_sql(f"PRAGMA cache_size = -{_CACHE_KIB}")
        # What is taken out of a page, such as a text that was redacted, is written over.
        connection.exec_driver_sql("PRAGMA secure_delete = ON")
        return connection

    def flush(self) -> None:
        """Have what was written survive a power cut from now on."""
        wal = Path(f"{self._target}-wal")
        if not (self.is_server or self._durable):
            with suppress(FileNotFoundError), explained(wal, "cannot be kept"), wal.open() as file:
                os.fsync(file.fileno())

    def _check_version(self) -> None:
        def read() -> str | None:
            with self.reading() as connection:
                return version_of(connection, self._form)

        found = self.persistently(read) if self.is_server else read()
        form = self._form
        if found is None:
            raise DatabaseError(f"{self.name}: is not {form.a_noun}; `{form.made_by}` makes one")
        if found != form.version:
            raise DatabaseError(
                f"{self.name}: is a log of version {found[:20]}, and this program works with"
                f" {form.version}; use the robo-eval that made it"
            )


class _Transaction:
    """What a database does while this is entered; errors of it become one line that names it.

    Not written as a generator: it is on the way of every record.
    """

    __slots__ = ("_begin", "_database", "_driver")

    def __init__(self, database: Database, begin: str) -> None:
        self._database = database
        self._begin = begin
        self._driver: Any = None

    def __enter__(self) -> Connection:
        database = self._database
        database.lock.acquire()
        try:
            connection = database.connected()
            # Kept: SQLAlchemy gives away no connection that was lost, not even to end with it.
            self._driver = connection.connection.driver_connection
            self._driver.execute(self._begin)
        except BaseException as err:
            database.lock.release()
            _raise_meaning(err, database.name, is_server=database.is_server)
            raise
        return connection

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        database = self._database
        try:
            if error is None:
                self._driver.execute("COMMIT")
                return
            database.roll_back(self._driver)
        except BaseException as err:
            if error is None:
                database.roll_back(self._driver)
            _raise_meaning(err, database.name, is_server=database.is_server)
            raise
        finally:
            database.lock.release()
        _raise_meaning(error, database.name, is_server=database.is_server)


def is_url(target: str | Path) -> bool:
    """Whether a database is named by URL, not by path."""
    return isinstance(target, str) and "://" in target


def chunks(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """Names, as many at once as one query asks for."""
    return (names[start : start + _NAMES] for start in range(0, len(names), _NAMES))


def shown(target: str | Path) -> str:
    """What a database is called in messages: never with a password."""
    if not is_url(target):
        return str(target)
    try:
        url = make_url(str(target))
        secret = dict.fromkeys(secrets_in(url), "***")
        return url.update_query_dict(secret).render_as_string(hide_password=True)
    except (ArgumentError, ValueError):
        return "the URL"


def secrets_in(url: URL) -> list[str]:
    """Names of what the query of a URL holds that nobody else may read.

    Drivers take a password as a parameter, too.
    """
    return [name for name in url.query if "password" in name.lower()]


@contextmanager
def translated(name: str, *, is_server: bool) -> Iterator[None]:
    """Turn errors of a database into one line that names it.

    Raises:
        DatabaseError: In place of any database error of the body.
    """
    try:
        yield
    except Exception as err:
        _raise_meaning(err, name, is_server=is_server)
        raise


def _raise_meaning(err: BaseException, name: str, *, is_server: bool) -> None:
    """Raise what an error of a database means; an error of something else means itself."""
    if isinstance(err, TrialDirectoryError):
        raise DatabaseError(str(err)) from err
    if isinstance(err, UnicodeDecodeError) and not is_server:
        err = files.undecoded(err)
    if not isinstance(err, driver_errors()):
        return
    cause: BaseException = getattr(err, "orig", None) or err
    if not is_server:
        raise DatabaseError(f"{name}: {files.meaning_of(cause)}") from err
    text = said(cause, named=False)
    if any(part in text.lower() for part in _LOST):
        raise LostServerError(f"{name}: cannot be reached: {text:.200}") from err
    raise DatabaseError(f"{name}: {text:.300}") from err


@cache
def driver_errors() -> tuple[type[Exception], ...]:
    """What drivers raise, of those that are installed."""
    try:
        import psycopg
    except ImportError:
        return (SQLAlchemyError, sqlite3.Error)
    return (SQLAlchemyError, sqlite3.Error, psycopg.Error)


def _connect_file(path: Path, *, read_only: bool = False, durable: bool = True) -> Connection:
    driver = files.connect(path, read_only=read_only, durable=durable, busy_s=_BUSY_S)
    engine = create_engine(
        "sqlite://", creator=lambda: driver, poolclass=StaticPool, isolation_level="AUTOCOMMIT"
    )
    try:
        return engine.connect()
    except BaseException:
        driver.close()
        raise


def _connect_server(target: str, form: Form) -> Connection:
    try:
        url = make_url(target)
    except (ArgumentError, ValueError) as err:
        raise DatabaseError(
            f"the URL of the {form.noun} cannot be read; it looks like"
            " postgresql://user@host/database"
        ) from err
    if url.get_backend_name() != "postgresql":
        raise DatabaseError(
            f"{url.get_backend_name()}: {form.a_noun} is an SQLite file, given by path, or in"
            " PostgreSQL, given as postgresql://user@host/database"
        )
    try:
        engine = create_engine(
            url.set(drivername=_DRIVER),
            isolation_level="AUTOCOMMIT",
            poolclass=NullPool,
            # Acknowledged is what would survive a power cut, whatever the server's default is.
            connect_args={"options": "-c synchronous_commit=on", "connect_timeout": 10},
        )
    except (ImportError, NoSuchModuleError) as err:
        raise MissingExtraError(
            f"PostgreSQL's driver is not installed; {pip_install('postgres')}"
        ) from err
    return engine.connect()


def version_of(connection: Connection, form: Form) -> str | None:
    """Version of the tables of a database; None if it is not of this form."""
    if not {form.main, "meta"} <= set(inspect(connection).get_table_names()):
        return None
    meta = form.tables.tables["meta"].c
    found = connection.execute(select(meta.value).where(meta.name == "version")).scalar()
    return "2 or older" if found is None else str(found)


@contextmanager
def opened_any_version(target: str | Path, form: Form) -> Iterator[Connection]:
    """A connection outside any transaction, to a database of whatever schema."""
    with translated(shown(target), is_server=is_url(target)):
        is_server = is_url(target)
        connection = (
            _connect_server(str(target), form) if is_server else _connect_file(Path(target))
        )
        try:
            yield connection
        finally:
            connection.close()
            connection.engine.dispose()


def create(target: str | Path, form: Form, meta: dict[str, str]) -> None:
    """Make the tables of a form.

    Args:
        target: Path of a file that is not there, or URL of a database without these tables.
        form: Its tables.
        meta: What is kept in the table `meta`.

    Raises:
        DatabaseError: If there is one already, or it cannot be written.
    """
    if is_url(target):
        _create_on_server(str(target), form, meta)
        return
    path = Path(target)
    if path.exists():
        raise DatabaseError(f"{path}: is there already")
    # Threads of one program may make it at once.
    part = part_of(path.with_name(f"{path.name}.{secrets.token_hex(4)}"))
    with translated(str(path), is_server=False), explained(path, "cannot be created"):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            # It tells of people. SQLite gives what it keeps beside the file the same rights.
            part.touch(mode=0o600, exist_ok=False)
            engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(part))
            with engine.connect() as connection:
                connection.exec_driver_sql(f"PRAGMA page_size = {_PAGE_BYTES}")
            with engine.begin() as connection:
                create_tables(connection, form, meta)
            with engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA journal_mode = WAL")
            engine.dispose()
            _take_name(part, path)
            sync_folder(path.parent)
        except FileExistsError as err:
            raise DatabaseError(f"{path}: is there already") from err
        finally:
            for leftover in path.parent.glob(f"{part.name}*"):
                leftover.unlink()


def _take_name(part: Path, path: Path) -> None:
    """Give a file its name; of two who do so at once, one is refused."""
    try:
        path.hardlink_to(part)
    except FileExistsError:
        raise
    except OSError:  # some file systems have no links
        part.replace(path)


def _create_on_server(target: str, form: Form, meta: dict[str, str]) -> None:
    with opened_any_version(target, form) as connection:
        connection.exec_driver_sql("BEGIN")
        # Two who create it at once would otherwise meet in the middle.
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({form.lock})")
        if version_of(connection, form) is not None:
            raise DatabaseError(f"{shown(target)}: there is {form.a_noun} already")
        create_tables(connection, form, meta)
        connection.exec_driver_sql("COMMIT")


def create_tables(connection: Connection, form: Form, meta: dict[str, str]) -> None:
    """Make the tables of a form in an empty database."""
    form.tables.create_all(connection)
    rows = [{"name": name, "value": value} for name, value in meta.items()]
    rows.append({"name": "version", "value": form.version})
    connection.execute(form.tables.tables["meta"].insert(), rows)


def text_of(statement: ClauseElement, *, is_server: bool) -> str:
    """The SQL of a statement as its driver takes it, with named parameters.

    Statements by way of SQLAlchemy cost several times what SQLite needs for them; those on the
    way of every record are compiled once and handed to the driver.
    """
    module: Any = postgresql if is_server else sqlite
    dialect = module.dialect(paramstyle="pyformat" if is_server else "named")
    return str(statement.compile(dialect=dialect))
