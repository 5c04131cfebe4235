"""One process may have several connections to a database, and keeps what SQLite locks for it."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from robo_eval.core.errors import TrialDirectoryError
from robo_eval.log import database

COUNT = "SELECT count(*) FROM noted"
VISITOR = f"""
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
print(connection.execute("{COUNT}").fetchone()[0])
connection.close()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "noted.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE noted (number INTEGER PRIMARY KEY)")
        connection.commit()
    return path


def visit(path: Path) -> int:
    """Another process that reads, and tidies up if it believes to be the last one."""
    found = subprocess.run(
        [sys.executable, "-c", VISITOR, str(path)], capture_output=True, text=True, check=True
    )
    return int(found.stdout)


def test_a_second_connection_takes_no_lock_from_the_first(path):
    first = database.connect(path)
    for number in range(20):
        first.execute("INSERT INTO noted VALUES (?)", (number,))
        # Opened, checked and closed again, as a page does that shows what another thread writes.
        with closing(database.connect(path, read_only=True)) as second:
            assert second.execute(COUNT).fetchone() == (number + 1,)
        assert visit(path) == number + 1
    assert path.with_name("noted.db-wal").exists()
    first.close()
    assert visit(path) == 20


def test_a_file_is_checked_again_once_all_connections_are_closed(path):
    with closing(database.connect(path)), closing(database.connect(path)):
        pass
    path.write_bytes(b"something else")
    with pytest.raises(TrialDirectoryError, match="not an SQLite database"):
        database.connect(path)
    # A connection that was refused is none.
    with pytest.raises(TrialDirectoryError, match="not an SQLite database"):
        database.connect(path)
