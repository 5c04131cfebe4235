"""A database that cannot be used is named in one line, and stays as it is."""

import contextlib
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from robo_eval.analysis.comparison import check_copies
from robo_eval.core.episode import SCHEMA_VERSION
from robo_eval.core.errors import TrialDirectoryError
from robo_eval.log import database
from robo_eval.log.export import export_episodes
from robo_eval.log.store import EpisodeStore
from robo_eval.log.verify import verify_trial


def other_tables(file: Path) -> None:
    file.unlink()
    with contextlib.closing(sqlite3.connect(file)) as raw:
        raw.execute("create table notes (text)")


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def edit(statement: str):
    def change(file: Path) -> None:
        with contextlib.closing(sqlite3.connect(file)) as raw:
            raw.execute(statement)
            raw.commit()

    return change


def scramble(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[4096:12288] = os.urandom(8192)
    file.write_bytes(data)


DAMAGE = {
    "gone": (lambda file: file.unlink(), "is missing"),
    "a folder": (lambda file: (file.unlink(), file.mkdir()), "is a folder, not a file"),
    "zero bytes": (lambda file: file.write_bytes(b""), "is empty"),
    "text": (lambda file: file.write_text("not a database" * 99), "not an SQLite database"),
    "header only": (lambda file: os.truncate(file, 100), "cut short"),
    "half": (lambda file: os.truncate(file, 8000), "cut short"),
    "another database": (other_tables, "has not the tables"),
    "table dropped": (edit("drop table episodes"), "has not the tables"),
    "version dropped": (edit("delete from alembic_version"), "schema version cannot be read"),
    "version nonsense": (
        edit("update alembic_version set version_num = 'x'"),
        "schema version cannot be read",
    ),
    "column dropped": (edit("alter table episodes drop column operator"), "has not the columns"),
    "scrambled": (scramble, "damaged"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_one_clear_error(finished, name):
    change, reason = DAMAGE[name]
    file = finished.path / "episodes.db"
    change(file)
    before = file.read_bytes() if file.is_file() else None
    with (
        pytest.raises(TrialDirectoryError, match=rf"episodes\.db: .*{reason}"),
        EpisodeStore(finished.path, durable=False) as store,
    ):
        list(store.episodes())
    report = verify_trial(finished.path)
    assert not report.ok
    assert any("episodes.db" in line for line in report.lines())
    assert (file.read_bytes() if file.is_file() else None) == before


VERSION = "update alembic_version set version_num = '{}'"


@pytest.mark.parametrize("version", ["0003", "0099"])
def test_a_log_of_another_version_is_refused_and_stays_as_it_is(finished, version):
    file = finished.path / "episodes.db"
    edit(VERSION.format(version))(file)
    before = contents(finished.path)
    expected = rf"{file}: has schema version {int(version)}, .*reads version {SCHEMA_VERSION} only;"
    other = finished.path.parent / "rows.csv"
    for use in (
        lambda: EpisodeStore(finished.path, durable=False),
        lambda: verify_trial(finished.path),
        lambda: finished.lock().__enter__(),
        lambda: export_episodes(finished.path, other),
        lambda: check_copies([finished]),
    ):
        with pytest.raises(TrialDirectoryError, match=rf"{expected} .*manifest\.json") as caught:
            use()
        assert caught.value.exit_code == 2
        assert "\n" not in str(caught.value)
    assert contents(finished.path) == before
    assert not other.exists()


def test_newest_rows_of_a_log_of_another_version_stay_where_they_are(trial, tmp_path, make_episode):
    killed = tmp_path / "killed"
    with EpisodeStore(trial.path, durable=False) as store:
        store.append([make_episode(0)])
        edit(VERSION.format("0003"))(trial.path / "episodes.db")
        shutil.copytree(trial.path, killed)
    before = contents(killed)
    assert before["episodes.db-wal"]
    for read_only in (True, False):
        with pytest.raises(TrialDirectoryError, match="has schema version 3"):
            EpisodeStore(killed, durable=False, read_only=read_only)
    after = contents(killed)
    del after["episodes.db-shm"], before["episodes.db-shm"]  # an index SQLite makes of the log
    assert after == before


def test_a_database_that_is_made_by_hand_is_read_by_its_version(tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "episodes.db")) as raw:
        raw.execute("create table alembic_version (version_num text)")
        raw.execute("insert into alembic_version values ('0001')")
        raw.execute("create table episodes (id text)")
        raw.commit()
    before = contents(tmp_path)
    with pytest.raises(TrialDirectoryError, match="has schema version 1"):
        EpisodeStore(tmp_path, durable=False)
    assert contents(tmp_path) == before


def test_a_locked_database_is_named(trial, make_episode, monkeypatch):
    monkeypatch.setitem(database.connect.__kwdefaults__, "busy_s", 0.05)
    with EpisodeStore(trial.path, durable=False) as store:
        other = sqlite3.connect(trial.path / "episodes.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(TrialDirectoryError, match=r"episodes\.db: is locked by another"):
            store.append([make_episode(0)])
        other.execute("ROLLBACK")
        other.close()
        store.append([make_episode(0)])
        assert store.ids() == {"e0"}


FULL = """
import sys
from robo_eval.core.errors import TrialDirectoryError
from robo_eval.log.store import EpisodeStore
sys.path.insert(0, sys.argv[2])
from conftest import make_episode
make = make_episode.__wrapped__() if hasattr(make_episode, "__wrapped__") else None
with EpisodeStore(sys.argv[1], durable=False) as store:
    for i in range(0, 4000, 8):
        try:
            store.append([make(j, initial_state={"x": "y" * 1000}) for j in range(i, i + 8)])
        except TrialDirectoryError as err:
            print(err, file=sys.stderr)
            sys.exit(2)
        print(i + 8, flush=True)
"""


def fill(trial: Path, limit: int | None = None) -> tuple[int, str, int]:
    """Write rows until it fails; returns exit code, message and acknowledged rows."""
    preexec = None
    if limit is not None:

        def preexec() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = subprocess.run(
        [sys.executable, "-c", FULL, str(trial), str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        # Python would keep the byte code it was cut off in.
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=preexec,
        timeout=240,
    )
    return done.returncode, done.stderr, int(done.stdout.split()[-1]) if done.stdout else 0


def check_after_full_disk(trial: Path, make_episode, acknowledged: int) -> None:
    assert acknowledged > 0
    with EpisodeStore(trial, durable=False) as store:
        names = [episode.episode_id for episode in store.episodes()]
        assert names == [f"e{i}" for i in range(acknowledged)]
        store.append([make_episode(10_000)])
    problems = [p for p in verify_trial(trial).problems if "another plan" not in p.what]
    assert problems == []


@pytest.mark.parametrize("limit", [150_000, 1_000_000])
def test_a_file_size_limit_loses_no_acknowledged_row(trial, make_episode, limit):
    code, message, acknowledged = fill(trial.path, limit)
    assert code == 2, message
    assert len(message.strip().splitlines()) == 1
    assert "episodes.db" in message
    assert "full" in message
    check_after_full_disk(trial.path, make_episode, acknowledged)


def fill_up(file: Path) -> None:
    with contextlib.suppress(OSError), file.open("wb", buffering=0) as rest:
        while True:
            rest.write(bytes(4096))


def test_a_full_disk_loses_no_acknowledged_row(tmp_path, plan, make_episode):
    from robo_eval.log.directory import TrialDirectory

    mount = tmp_path / "small"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(mount)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        # The limit on file sizes above makes the same errors without rights.
        pytest.skip("needs the right to mount a small file system")
    try:
        trial = TrialDirectory.create(mount / "trial", plan)
        code, message, acknowledged = fill(trial.path)
        assert code == 2, message
        assert "full" in message
        copy = tmp_path / "copy"
        shutil.copytree(trial.path, copy)
        check_after_full_disk(copy, make_episode, acknowledged)
        fill_up(mount / "rest")
        with pytest.raises(TrialDirectoryError, match=r"manifest\.json: .*No space"):
            trial.write_manifest(status="interrupted")
        assert trial.manifest.status == "created"
        with pytest.raises(TrialDirectoryError, match="free some space"):
            TrialDirectory.check_new(mount / "second", needed_bytes=10_000_000)
    finally:
        subprocess.run(["umount", str(mount)], check=True)


def test_a_write_protected_trial_can_be_read(finished, tmp_path, make_episode):
    mount = tmp_path / "protected"
    mount.mkdir()
    bind = ["mount", "--bind", str(finished.path), str(mount)]
    if shutil.which("mount") is None or subprocess.run(bind, capture_output=True).returncode:
        pytest.skip("needs the right to mount a folder read-only")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(mount)], check=True)
        with EpisodeStore(mount, durable=False, read_only=True) as store:
            assert len(list(store.episodes())) == 5
        assert verify_trial(mount).ok
        with (
            pytest.raises(TrialDirectoryError, match=r"read-only|cannot be opened"),
            EpisodeStore(mount, durable=False) as store,
        ):
            store.append([make_episode(9)])
    finally:
        subprocess.run(["umount", str(mount)], check=True)


def test_newest_rows_of_a_killed_run_are_read_where_nothing_can_be_written(
    trial, tmp_path, make_episode, monkeypatch
):
    episodes = [make_episode(i, plan_digest=trial.plan_digest) for i in range(5)]
    killed = tmp_path / "killed"
    with EpisodeStore(trial.path, durable=False) as store:
        store.append(episodes)
        # As a kill would leave it: the rows are in the write-ahead log alone.
        shutil.copytree(trial.path, killed)
    assert (killed / "episodes.db-wal").stat().st_size
    before = contents(killed)
    monkeypatch.setattr(database, "_can_write", lambda _path: False)
    with EpisodeStore(killed, durable=False, read_only=True) as store:
        assert list(store.episodes()) == episodes
    found = verify_trial(killed)
    assert found.ok, found.problems
    assert found.rows == 5
    assert contents(killed) == before
