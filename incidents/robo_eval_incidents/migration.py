"""Bringing the incident log of an older version up to date."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from sqlalchemy import Connection

from robo_eval_incidents.database import (
    IncidentLogError,
    is_url,
    opened_any_version,
    shown,
    version_of,
)
from robo_eval_incidents.schema import CURRENT

_SCRIPTS: Final = Path(__file__).parent / "migrations"


def migrate(target: str | Path) -> str | None:
    """Upgrade an incident log to the schema of this program; records keep their form.

    Args:
        target: Path of an SQLite file, or URL of a PostgreSQL database.

    Returns:
        The version it had; None if nothing was to do.

    Raises:
        IncidentLogError: If it is not an incident log, is newer than this program, or cannot be
            written. Nothing was changed then.
    """
    name = shown(target)
    with opened_any_version(target) as connection:
        found = version_of(connection)
        if found is None:
            raise IncidentLogError(f"{name}: is not an incident log")
        if found == CURRENT:
            return None
        if not found.isdecimal() or int(found) > int(CURRENT):
            raise IncidentLogError(
                f"{name}: has schema version {found[:20]}, which is newer than this program's"
                f" {CURRENT}; install a newer robo-eval to use it"
            )
        connection.exec_driver_sql("BEGIN" if is_url(target) else "BEGIN IMMEDIATE")
        try:
            upgrade(connection)
            connection.exec_driver_sql("COMMIT")
        except BaseException as err:
            connection.exec_driver_sql("ROLLBACK")
            if type(err).__name__ == "CommandError":  # Alembic's, imported where it is needed
                raise IncidentLogError(
                    f"{name}: no way leads from schema version {found} to {CURRENT}: {err}"
                ) from err
            raise
    return found


def upgrade(connection: Connection) -> None:
    """Take all steps that are missing, in the transaction of the caller."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    # A percent sign would start an interpolation.
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, CURRENT)
