"""A database of an older schema is upgraded on request, keeps its rows, and stays verifiable."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from robo_eval.core.errors import InputError, TrialDirectoryError
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.export import export_episodes
from robo_eval.log.rows import columns_of_form
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
    expected = rf"schema version 1, this program works with 3; .* robo-eval migrate {old}"
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
    with pytest.raises(TrialDirectoryError, match=r"version 2, .* works with 3; .*migrate"):
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


def test_a_step_that_fails_half_way_changes_nothing(former, monkeypatch):
    import alembic.op

    real = alembic.op.execute
    calls = []

    def second_fails(*args, **keywords):
        calls.append(args)
        if len(calls) == 2:  # the table has been copied by then
            raise sqlite3.OperationalError("database or disk is full")
        return real(*args, **keywords)

    monkeypatch.setattr(alembic.op, "execute", second_fails)
    with pytest.raises(TrialDirectoryError, match="disk is full"):
        migrate(former)
    assert columns(former / "episodes.db") == columns(V2 / "episodes.db")
    monkeypatch.undo()
    assert migrate(former) is not None
    assert verify_trial(former).ok


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
    assert [step.revision for step in scripts.walk_revisions()] == ["0003", "0002", "0001"]
