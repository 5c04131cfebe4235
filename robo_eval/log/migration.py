"""Bringing the episode database of an older version up to date."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from sqlalchemy import Connection

from robo_eval.log import database
from robo_eval.log.database import DATABASE
from robo_eval.log.files import explained, part_of, sync_folder
from robo_eval.log.lock import RunLock
from robo_eval.log.schema import CURRENT

_SCRIPTS: Final = Path(__file__).parent / "migrations"


def migrate(path: Path | str | os.PathLike[str]) -> Path | None:
    """Upgrade the database of a trial directory to the schema of this program.

    The old database is copied first, to `episodes-schema-<version>.db` beside it. Rows keep the
    canonical form they were written in, so that their digests stay verifiable.

    Returns:
        The copy; None if nothing was to do.

    Raises:
        TrialDirectoryError: If a run is under way, or the database is damaged, newer than this
            program, or cannot be written. The database is unchanged then.
    """
    trial = Path(path)
    file = trial / DATABASE
    database.check_file(file)
    with RunLock(trial):
        connection = database.connect(file)
        try:
            found = database.schema_version(connection, file)
            if found == CURRENT:
                return None
            if int(found) > int(CURRENT):
                database.check_version(connection, file)
            copy = _back_up(file, trial / f"episodes-schema-{int(found)}.db")
            _upgrade(connection, file)
        finally:
            database.close(connection)
    return copy


def _back_up(file: Path, copy: Path) -> Path:
    part = part_of(copy)
    with explained(copy, "the old database cannot be kept"), database.translated(copy):
        try:
            with closing(sqlite3.connect(file)) as old, closing(sqlite3.connect(part)) as new:
                old.backup(new)
                new.execute("PRAGMA journal_mode = DELETE")
            part.replace(copy)
            sync_folder(copy.parent)
        finally:
            part.unlink(missing_ok=True)
    return copy


def _upgrade(connection: Connection, file: Path) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    # A percent sign would start an interpolation.
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    with database.translated(file):
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        try:
            command.upgrade(config, CURRENT)
            connection.exec_driver_sql("COMMIT")
        except BaseException:
            connection.exec_driver_sql("ROLLBACK")
            raise
