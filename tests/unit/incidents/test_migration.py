"""Alembic's steps lead to the tables the program works with."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

import pytest
from sqlalchemy import create_engine, inspect

from robo_eval_incidents import migration, open_log
from robo_eval_incidents.bodies import Exposure
from robo_eval_incidents.database import IncidentLogError
from robo_eval_incidents.exposure import hours
from robo_eval_incidents.migration import migrate, upgrade
from robo_eval_incidents.page import Filter, list_incidents
from robo_eval_incidents.schema import METADATA, VERSION_TABLE
from robo_eval_incidents.times import logged_times
from robo_eval_incidents.verify import verify_log


def tables_of(engine):
    """All that a database says of its tables, in a form that can be compared."""
    inspector = inspect(engine)
    found = {}
    for table in inspector.get_table_names():
        if table == VERSION_TABLE:
            continue
        found[table] = {
            "columns": [
                (column["name"], str(column["type"]), column["nullable"], column["default"])
                for column in inspector.get_columns(table)
            ],
            "key": inspector.get_pk_constraint(table)["constrained_columns"],
            "unique": sorted(
                sorted(one["column_names"]) for one in inspector.get_unique_constraints(table)
            ),
            "indexes": sorted(
                (one["name"], one["column_names"]) for one in inspector.get_indexes(table)
            ),
        }
    return found


def test_the_steps_lead_to_the_tables_of_this_program(tmp_path):
    by_steps = create_engine(f"sqlite:///{tmp_path / 'steps.db'}")
    with by_steps.begin() as connection:
        upgrade(connection)
    at_once = create_engine(f"sqlite:///{tmp_path / 'once.db'}")
    METADATA.create_all(at_once)
    assert tables_of(by_steps) == tables_of(at_once)
    assert set(tables_of(by_steps)) == set(METADATA.tables)
    for engine in (by_steps, at_once):
        engine.dispose()


def test_a_log_of_this_version_is_left_alone(log, path):
    log.close()
    before = path.read_bytes()
    assert migrate(path) is None
    assert path.read_bytes() == before


def test_a_newer_log_is_refused_and_left_alone(log, path, tamper):
    log.close()
    tamper("UPDATE alembic_version SET version_num = '0999'")
    before = path.read_bytes()
    with pytest.raises(IncidentLogError, match="newer than this program"):
        migrate(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_log_is_refused(tmp_path):
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE other (id INTEGER)")
    with pytest.raises(IncidentLogError, match="is not an incident log"):
        migrate(path)


def test_a_version_no_step_leads_from_is_refused(log, path, tamper):
    log.close()
    tamper("UPDATE alembic_version SET version_num = '0000'")
    with pytest.raises(IncidentLogError, match="no way leads from schema version 0000"):
        migrate(path)


_NEXT = """
import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("stations", sa.Column("place", sa.Text, nullable=True))
    op.execute("UPDATE stations SET place = 'cell'")
    {then}
"""


@pytest.fixture
def a_second_version(tmp_path, monkeypatch):
    """Makes a program of version 0003; the argument is what its step does at last."""

    def make(then="pass"):
        scripts = tmp_path / "scripts with 100 % space"
        shutil.copytree(migration._SCRIPTS, scripts)
        (scripts / "versions" / "v0003_place.py").write_text(_NEXT.format(then=then))
        monkeypatch.setattr(migration, "_SCRIPTS", scripts)
        monkeypatch.setattr(migration, "CURRENT", "0003")

    return make


def test_a_step_keeps_every_record(log, path, report, say, a_second_version):
    for number in range(20):
        say(log, report(description=f"event {number}"))
    before = list(log.contents())
    log.close()
    a_second_version()
    assert migrate(path) == "0002"
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT number, content FROM records ORDER BY number"
        assert connection.execute(query).fetchall() == before
        assert connection.execute("SELECT place FROM stations").fetchall() == [("cell",)]
        assert connection.execute("SELECT * FROM alembic_version").fetchall() == [("0003",)]
    assert migrate(path) is None


def test_a_step_that_fails_changes_nothing(log, path, report, say, a_second_version):
    say(log, report())
    log.close()
    a_second_version(then="raise RuntimeError('power cut')")
    with pytest.raises(RuntimeError):
        migrate(path)
    with open_log(path) as again:
        assert again.heads()["cell-1"].sequence == 2
    assert verify_log(path).ok


# Every step that was taken: a log of each older version becomes one of this one


@pytest.fixture
def of_first_version(tmp_path, monkeypatch):
    """Makes a log of version 0001 with the records of another one."""

    def make(source):
        path = tmp_path / "old" / "incidents.db"
        path.parent.mkdir()
        engine = create_engine(f"sqlite:///{path}")
        with monkeypatch.context() as patch, engine.begin() as connection:
            patch.setattr(migration, "CURRENT", "0001")
            connection.exec_driver_sql(
                f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"
            )
            upgrade(connection)
        engine.dispose()
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("ATTACH ? AS source", (str(source),))
            for table in ("records", "stations", "meta", "checkpoints", "users"):
                connection.execute(f"INSERT INTO {table} SELECT * FROM source.{table}")
            for station, sequence in connection.execute("SELECT station, sequence FROM stations"):
                connection.execute("INSERT INTO paged VALUES (?, ?)", (station, sequence))
            connection.commit()
        return path

    return make


def test_a_log_of_the_first_version_lists_the_same_afterwards(
    log, path, report, say, nil, of_first_version
):
    for number in range(5):
        say(log, report(description=f"EVENT {number}"))
    say(log, nil(1))
    say(log, Exposure(robot="ur5e", side="real", mode="idle", start_ns=10**18, seconds=3_600.0))
    found = [list_incidents(log), hours(log), logged_times(log)]
    old = of_first_version(path)
    with pytest.raises(IncidentLogError, match="upgrade it with: robo-eval incidents migrate"):
        open_log(old)
    assert migrate(old) == "0001"
    checked = verify_log(old)
    assert checked.ok, checked.problems
    with open_log(old) as new:
        assert [list_incidents(new), hours(new), logged_times(new)] == found
        assert len(list_incidents(new, Filter(text="event 3")).rows) == 1
    checked = verify_log(old)
    assert checked.ok, checked.problems
