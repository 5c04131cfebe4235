"""A database of an older schema is upgraded on request, keeps its rows, and stays verifiable."""

import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from robo_eval.core.episode import SCHEMA_VERSION as CURRENT_VERSION
from robo_eval.core.errors import InputError, TrialDirectoryError
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.export import export_episodes
from robo_eval.log.migrations.table_sql import without_not_null
from robo_eval.log.rows import SINCE, columns_of_form
from robo_eval.log.store import EpisodeStore, migrate
from robo_eval.log.verify import verify_trial

V1 = Path(__file__).parent / "data/schema_v1"
V2 = Path(__file__).parent / "data/schema_v2"
NOT_KNOWN = ("start_ns", "duration_s", "exposure_s", "ticks")


@pytest.fixture
def old(tmp_path):
    folder = tmp_path / "old 100%"
    shutil.copytree(V1, folder)
    return folder


@pytest.fixture
def former(tmp_path):
    folder = tmp_path / "former"
    shutil.copytree(V2, folder)
    return folder


def columns(file: Path) -> dict[str, tuple[str, int, int]]:
    with sqlite3.connect(file) as raw:
        rows = raw.execute("pragma table_info(episodes)").fetchall()
    return {name: (kind, needed, key) for _, name, kind, needed, _, key in rows}


def test_the_fixture_really_is_of_version_1(old):
    found = set(columns(old / "episodes.db"))
    assert found == {*columns_of_form(1), "sequence", "previous_sha256", "row_sha256"}
    assert not found & {"profile", "stated_success_probability", "row_form"}


def test_reading_an_old_trial_names_the_command(old):
    before = (old / "episodes.db").read_bytes()
    expected = (
        rf"schema version 1, this program works with {CURRENT_VERSION}; .* robo-eval migrate {old}"
    )
    with pytest.raises(TrialDirectoryError, match=expected):
        EpisodeStore(old, durable=False)
    trial = TrialDirectory.open(old)
    for read in (trial.frame, lambda: verify_trial(old), lambda: trial.lock().__enter__()):
        with pytest.raises(TrialDirectoryError, match="robo-eval migrate"):
            read()
    with pytest.raises(TrialDirectoryError, match="robo-eval migrate"):
        export_episodes(old, old.parent / "x.csv")
    assert (old / "episodes.db").read_bytes() == before


def test_upgrade_keeps_rows_and_digests(old, make_episode):
    with sqlite3.connect(old / "episodes.db") as raw:
        before = raw.execute("select episode_id, quality, row_sha256 from episodes").fetchall()
    copy = migrate(old)
    assert copy == old / "episodes-schema-1.db"
    assert columns(copy).keys() == columns(V1 / "episodes.db").keys()
    with sqlite3.connect(old / "episodes.db") as raw:
        assert raw.execute("select episode_id, quality, row_sha256 from episodes").fetchall() == (
            before
        )
    report = verify_trial(old)
    assert report.ok, report.problems
    assert report.rows == 6
    trial = TrialDirectory.open(old)
    assert trial.frame()["profile"].isna().all()
    with trial.lock(), EpisodeStore(old, durable=False) as store:
        store.append([make_episode(99, plan_digest=trial.plan_digest)])
        trial.write_manifest(status="complete", store=store)
    report = verify_trial(old)
    assert report.ok, report.problems
    assert report.rows == 7


def test_the_fixture_really_is_of_version_2(former):
    found = columns(former / "episodes.db")
    assert [found[name][1] for name in NOT_KNOWN] == [1, 1, 1, 1]
    with sqlite3.connect(former / "episodes.db") as raw:
        assert raw.execute("select distinct row_form from episodes").fetchall() == [(2,)]


def test_a_trial_of_version_2_keeps_rows_and_digests(former, make_episode):
    with pytest.raises(
        TrialDirectoryError, match=rf"version 2, .* works with {CURRENT_VERSION}; .*migrate"
    ):
        EpisodeStore(former, durable=False)
    with sqlite3.connect(former / "episodes.db") as raw:
        names = ", ".join(columns(former / "episodes.db"))
        before = raw.execute(f"select {names} from episodes").fetchall()
    assert migrate(former) == former / "episodes-schema-2.db"
    with sqlite3.connect(former / "episodes.db") as raw:
        assert raw.execute(f"select {names} from episodes").fetchall() == before
    report = verify_trial(former)
    assert report.ok, report.problems
    assert (report.rows, report.notes) == (6, ())
    trial = TrialDirectory.open(former)
    not_known = dict.fromkeys(NOT_KNOWN)
    with trial.lock(), EpisodeStore(former, durable=False) as store:
        store.append([make_episode(99, plan_digest=trial.plan_digest, **not_known)])
        with pytest.raises(InputError, match="is row 7 already"):
            store.append([make_episode(99, plan_digest=trial.plan_digest)])
        trial.write_manifest(status="complete", store=store)
    report = verify_trial(former)
    assert report.ok, report.problems
    assert report.rows == 7
    frame = trial.frame()
    assert frame["ticks"].isna().tolist() == [False] * 6 + [True]
    assert frame["ticks"].iloc[0] == 32


@pytest.mark.parametrize("change", ["ticks = null", "duration_s = null", "row_form = 3"])
def test_a_changed_row_of_version_2_is_still_found_after_the_upgrade(former, change):
    migrate(former)
    with sqlite3.connect(former / "episodes.db") as raw:
        raw.execute(f"update episodes set {change} where sequence = 3")
    assert {problem.row for problem in verify_trial(former).problems} == {3}


def test_an_upgrade_keeps_a_view_and_an_index_of_somebody(former):
    with sqlite3.connect(former / "episodes.db") as raw:
        raw.execute("create view good as select episode_id from episodes where success")
        raw.execute("create index by_quality on episodes (quality)")
    migrate(former)
    with sqlite3.connect(former / "episodes.db") as raw:
        assert len(raw.execute("select * from good").fetchall()) == 3
        kinds = raw.execute("select type from sqlite_schema where name = 'by_quality'").fetchall()
    assert kinds == [("index",)]
    assert verify_trial(former).ok


@pytest.mark.parametrize("version", ["old", "former"])
def test_an_upgraded_database_has_the_columns_of_a_new_one(version, trial, request):
    folder = request.getfixturevalue(version)
    migrate(folder)
    for question in ("table_info(episodes)", "index_list(episodes)"):
        found = []
        for path in (folder, trial.path):
            with sqlite3.connect(path / "episodes.db") as raw:
                # Without the place of a column, in which versions differ.
                found.append({row[1:] for row in raw.execute(f"pragma {question}")})
        assert found[0] == found[1]


def test_nothing_to_upgrade(trial):
    assert migrate(trial.path) is None
    assert not list(trial.path.glob("episodes-schema-*"))


def test_a_changed_old_row_is_still_found_after_the_upgrade(old):
    migrate(old)
    with sqlite3.connect(old / "episodes.db") as raw:
        raw.execute("update episodes set ticks = 199 where sequence = 2")
        raw.execute("update episodes set profile = 'paper' where sequence = 4")
    rows = {problem.row for problem in verify_trial(old).problems}
    assert rows == {2, 4}


def test_a_newer_schema_is_refused(trial):
    with sqlite3.connect(trial.path / "episodes.db") as raw:
        raw.execute("update alembic_version set version_num = '0099'")
    for use in (lambda: EpisodeStore(trial.path, durable=False), lambda: migrate(trial.path)):
        with pytest.raises(TrialDirectoryError, match=r"schema version 99.*install a newer"):
            use()


def test_an_upgrade_that_fails_changes_nothing(old, monkeypatch):
    import alembic.op

    def fail(*_args, **_keywords):
        raise sqlite3.OperationalError("database or disk is full")

    real = alembic.op.add_column
    calls = []

    def second_fails(*args, **keywords):
        calls.append(args)
        return fail() if len(calls) == 2 else real(*args, **keywords)

    monkeypatch.setattr(alembic.op, "add_column", second_fails)
    with pytest.raises(TrialDirectoryError, match="disk is full"):
        migrate(old)
    assert columns(old / "episodes.db").keys() == columns(V1 / "episodes.db").keys()
    monkeypatch.undo()
    assert migrate(old) is not None
    assert verify_trial(old).ok


def test_a_step_that_fails_half_way_changes_nothing(former):
    with closing(sqlite3.connect(former / "episodes.db")) as raw:
        raw.create_collation("lab", lambda a, b: (a > b) - (a < b))
        raw.execute("create index by_policy on episodes (policy collate lab)")
        raw.commit()
    before = contents(former / "episodes.db")
    # Only noticed when the table has been copied and dropped.
    expected = r"episodes\.db: index 'by_policy' cannot be made again .*no such collation.*drop it"
    with pytest.raises(TrialDirectoryError, match=expected):
        migrate(former)
    assert contents(former / "episodes.db") == before
    with closing(sqlite3.connect(former / "episodes.db")) as raw:
        raw.execute("drop index by_policy")
        raw.commit()
    assert migrate(former) is not None
    assert verify_trial(former).ok


ADDED = {
    "trigger": "create trigger guard before update on episodes"
    " begin select raise(abort, 'rows: append-only :x 100%'); end",
    "second trigger": 'create trigger "after all" after delete on episodes'
    " begin insert into notes values (old.episode_id); end",
    "expression index": "create index by_half on episodes (quality / 2) where quality > 0.1",
    "descending index": "create index newest on episodes (start_ns desc)",
    "collated index": "create unique index by_id on episodes (episode_id collate nocase)",
    "column without type": "alter table episodes add column remark",
    "column with collation": "alter table episodes add column tag text collate nocase default 'x'",
    "unnamed check": "alter table episodes add column stars integer"
    " check (stars is not null or episodes.ticks is not null)",
    "generated column": "alter table episodes add column half as (quality / 2)",
    "column named in capitals": 'alter table episodes add column "Not NULL, ticks" text',
}


def add_to(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / "episodes.db")) as raw:
        raw.execute("create table notes (text)")
        for statement in statements:
            raw.execute(statement)
        raw.commit()


def contents(file: Path) -> tuple[list, list]:
    """All that SQLite says of a database, and its rows."""
    with closing(sqlite3.connect(file)) as raw:
        schema = raw.execute("select type, name, tbl_name, sql from sqlite_schema").fetchall()
        return sorted(schema, key=str), raw.execute("select * from episodes").fetchall()


@pytest.mark.parametrize("version", ["old", "former"])
@pytest.mark.parametrize("added", [*ADDED, "all"])
def test_an_upgrade_keeps_what_somebody_added(added, version, request):
    folder = request.getfixturevalue(version)
    add_to(folder, *(ADDED.values() if added == "all" else [ADDED[added]]))
    schema, rows = contents(folder / "episodes.db")
    migrate(folder)
    upgraded, upgraded_rows = contents(folder / "episodes.db")
    with closing(sqlite3.connect(folder / "episodes.db")) as raw:
        assert raw.execute("pragma integrity_check").fetchall() == [("ok",)]
    others = [row for row in schema if row[1] != "episodes"]
    assert [row for row in upgraded if row[1] != "episodes"] == others
    if version == "former":
        later = [name for name, version in SINCE.items() if version > 2]
        assert upgraded_rows == [(*row, *[None] * len(later)) for row in rows]
        (before,), (after,) = (
            [row[3] for row in found if row[1] == "episodes"] for found in (schema, upgraded)
        )
        for name in NOT_KNOWN:
            kind = columns(V2 / "episodes.db")[name][0]
            before = before.replace(f"\t{name} {kind} NOT NULL", f"\t{name} {kind}")
        # What was added since stands behind the rest.
        assert re.sub(rf", ({'|'.join(later)}) TEXT", "", after) == before
    found = columns(folder / "episodes.db")
    assert [found[name][1] for name in NOT_KNOWN] == [0, 0, 0, 0]
    report = verify_trial(folder)
    assert report.ok, report.problems


def test_a_guard_against_edits_still_guards_after_the_upgrade(former):
    add_to(former, ADDED["trigger"])
    migrate(former)
    with (
        closing(sqlite3.connect(former / "episodes.db")) as raw,
        pytest.raises(sqlite3.IntegrityError, match="rows: append-only :x 100%"),
    ):
        raw.execute("update episodes set quality = 1")


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("ticks INTEGER NOT NULL", "ticks INTEGER"),
        ('"ticks" INTEGER not /* ! */ null', '"ticks" INTEGER'),
        ("[Ticks] INT DEFAULT (1) NOT NULL CHECK (ticks NOT NULL)",
         "[Ticks] INT DEFAULT (1) CHECK (ticks NOT NULL)"),
        ("ticks INT CONSTRAINT t NOT NULL ON CONFLICT ABORT UNIQUE", "ticks INT UNIQUE"),
        ("ticks NOT NULL", "ticks"),
        ("ticks INT DEFAULT 'NOT NULL' -- NOT NULL,\n NOT NULL",
         "ticks INT DEFAULT 'NOT NULL' -- NOT NULL,\n"),
        ("other TEXT NOT NULL", "other TEXT NOT NULL"),
        ("other TEXT DEFAULT ', ticks NOT NULL' NOT NULL",
         "other TEXT DEFAULT ', ticks NOT NULL' NOT NULL"),
    ],
)  # fmt: skip
def test_only_the_constraint_goes(column, expected):
    sql = "CREATE TABLE episodes (\n\ta NUMERIC(10, 2) NOT NULL, {}, PRIMARY KEY (a)) STRICT"
    assert without_not_null(sql.format(column), ("ticks",)) == sql.format(expected)


def test_an_error_of_the_upgrade_itself_is_one_line(former, monkeypatch):
    import alembic.command
    from sqlalchemy.exc import CompileError

    def fail(*_args):
        raise CompileError("no type\nfor a column")

    monkeypatch.setattr(alembic.command, "upgrade", fail)
    with pytest.raises(TrialDirectoryError, match=r"episodes\.db: no type for a column"):
        migrate(former)


def test_a_running_trial_is_not_upgraded(old):
    from robo_eval.log.lock import RunLock

    with RunLock(old), pytest.raises(TrialDirectoryError, match="is writing here"):
        migrate(old)


def test_what_is_no_trial_is_not_upgraded(tmp_path):
    with pytest.raises(TrialDirectoryError, match=r"episodes\.db: is missing"):
        migrate(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_scripts_of_every_version_are_in_the_package():
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    import robo_eval.log.migrations
    from robo_eval.log.schema import CURRENT

    config = Config()
    folder = Path(robo_eval.log.migrations.__file__).parent
    config.set_main_option("script_location", str(folder))
    scripts = ScriptDirectory.from_config(config)
    assert scripts.get_heads() == [CURRENT]
    assert [step.revision for step in scripts.walk_revisions()] == ["0004", "0003", "0002", "0001"]
