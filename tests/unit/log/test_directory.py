"""A trial directory is created whole, opened only if sound, and written by one process."""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from robo_eval.core.errors import CheckFailedError, PlanError, TrialDirectoryError
from robo_eval.core.plan import TrialPlan, locked_text, parse_plan
from robo_eval.log.directory import TrialDirectory, is_trial
from robo_eval.log.lock import RunLock
from robo_eval.log.place import staging_for
from robo_eval.log.store import EpisodeStore
from robo_eval.log.verify import verify_trial


def test_create_writes_a_complete_trial(trial, plan):
    assert sorted(path.name for path in trial.path.iterdir()) == [
        "episodes.db", "manifest.json", "plan.yaml", "traces",
    ]  # fmt: skip
    opened = TrialDirectory.open(trial.path)
    assert opened.plan == plan
    assert opened.plan_digest == trial.plan_digest
    manifest = opened.manifest
    assert (manifest.status, manifest.planned, manifest.rows) == ("created", 5, 0)
    assert manifest.software.startswith("robo-eval ")
    assert manifest.versions["python"].startswith("3.")
    assert manifest.machine["cores"] >= 1
    assert list(trial.path.parent.iterdir()) == [trial.path]
    assert is_trial(trial.path)
    assert not is_trial(trial.path.parent)


@pytest.mark.parametrize("name", ["a b", "100%", "ünïcode", "x?mode=ro", "a#b", "a'b\"c"])
def test_any_folder_name_works(tmp_path, plan, make_episode, name):
    trial = TrialDirectory.create(tmp_path / name / "deeper", plan)
    with trial.lock(), EpisodeStore(trial.path, durable=False) as store:
        store.append([make_episode(0)])
    assert len(TrialDirectory.open(trial.path).frame()) == 1


def test_an_empty_folder_is_used(tmp_path, plan):
    (tmp_path / "empty").mkdir()
    trial = TrialDirectory.create(tmp_path / "empty", plan)
    assert sorted(p.name for p in trial.path.iterdir()) == [
        "episodes.db", "manifest.json", "plan.yaml", "traces",
    ]  # fmt: skip


def test_create_refuses_what_is_there(tmp_path, trial, plan):
    with pytest.raises(TrialDirectoryError, match=f"robo-eval resume {trial.path}"):
        TrialDirectory.create(trial.path, plan)
    other = tmp_path / "thesis"
    other.mkdir()
    (other / "chapter.tex").write_text("precious")
    with pytest.raises(TrialDirectoryError, match="thesis: holds something else"):
        TrialDirectory.create(other, plan)
    with pytest.raises(TrialDirectoryError, match="is a file"):
        TrialDirectory.create(other / "chapter.tex", plan)
    with pytest.raises(TrialDirectoryError, match=r"chapter\.tex is a file"):
        TrialDirectory.create(other / "chapter.tex" / "x", plan)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(TrialDirectoryError, match="leads nowhere"):
        TrialDirectory.create(tmp_path / "link", plan)
    assert (other / "chapter.tex").read_text() == "precious"
    assert [p.name for p in other.iterdir()] == ["chapter.tex"]


def test_create_needs_a_writable_place_and_room(tmp_path, plan):
    with pytest.raises(TrialDirectoryError, match=r"/proc/trial: cannot be created"):
        TrialDirectory.check_new("/proc/trial")
    with pytest.raises(TrialDirectoryError, match="free some space"):
        TrialDirectory.check_new(tmp_path / "big", needed_bytes=10**18)
    TrialDirectory.check_new(tmp_path / "not" / "yet" / "there", needed_bytes=1000)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_creation_leaves_nothing(tmp_path, plan, monkeypatch):
    def full(*_args, **_keywords):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(TrialDirectoryError, match="No space left"):
        TrialDirectory.create(tmp_path / "trial", plan)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("plan.yaml", None, "is missing; restore"),
        ("plan.yaml", b"", "is damaged"),
        ("plan.yaml", b"\xff\x00", "is damaged"),
        ("plan.yaml", b"name: x\ntasks: [", "is damaged .not valid YAML"),
        ("manifest.json", b"", "not valid JSON"),
        ("manifest.json", b"{", "not valid JSON.*delete it"),
        ("manifest.json", b"[]", "not a JSON object"),
        ("manifest.json", b"{}", "field 'format' is missing"),
        ("manifest.json", b'{"format": 99}', "newer than this program"),
    ],
)
def test_half_written_files_are_named(trial, file, content, reason):
    if content is None:
        (trial.path / file).unlink()
    else:
        (trial.path / file).write_bytes(content)
    with pytest.raises(TrialDirectoryError, match=rf"{file}: .*{reason}"):
        TrialDirectory.open(trial.path)


def test_open_names_what_is_no_trial(tmp_path):
    with pytest.raises(TrialDirectoryError, match="no such trial directory"):
        TrialDirectory.open(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(TrialDirectoryError, match="is a file"):
        TrialDirectory.open(tmp_path / "file")
    (tmp_path / "plan.yaml").write_text("name: x\ntasks: [{}]\npolicies: [nothing]\n")
    with pytest.raises(
        TrialDirectoryError, match=r"open_names\S*: is not a trial directory: no locked"
    ):
        TrialDirectory.open(tmp_path)


PARTS = ("plan.yaml", "manifest.json", "episodes.db")


@pytest.mark.parametrize("gone", PARTS)
def test_a_trial_that_lost_a_file_is_still_one(trial, gone):
    (trial.path / gone).unlink()
    assert is_trial(trial.path)
    assert [p.file for p in verify_trial(trial.path).problems] == [gone]


@pytest.mark.parametrize("kept", PARTS)
def test_one_file_of_a_trial_makes_none(trial, kept):
    for name in PARTS:
        if name != kept:
            (trial.path / name).unlink()
    assert not is_trial(trial.path)


@pytest.mark.parametrize("beside", PARTS[1:])
def test_a_plan_of_somebody_beside_a_file_of_that_name_is_no_trial(tmp_path, plan, beside):
    (tmp_path / beside).write_text("{}")
    (tmp_path / "plan.yaml").write_text("name: x\ntasks: [{}]\npolicies: [nothing]\n")
    assert not is_trial(tmp_path)
    with pytest.raises(TrialDirectoryError, match="is not a trial directory"):
        verify_trial(tmp_path)
    (tmp_path / "plan.yaml").write_text(locked_text(plan))
    assert is_trial(tmp_path)


@pytest.mark.parametrize("verb", ["metrics", "verify", "report"])
@pytest.mark.parametrize("with_plan", [False, True])
def test_a_command_says_that_a_folder_is_no_trial(tmp_path, verb, with_plan):
    from typer.testing import CliRunner

    from robo_eval.cli.app import app

    if with_plan:
        (tmp_path / "plan.yaml").write_text("name: x\ntasks: [{}]\npolicies: [nothing]\n")
    before = list(tmp_path.iterdir())
    result = CliRunner().invoke(app, [verb, str(tmp_path)])
    assert isinstance(result.exception, TrialDirectoryError)
    assert result.exception.exit_code == 2
    assert str(result.exception).startswith(f"{tmp_path}: is not a trial directory")
    assert list(tmp_path.iterdir()) == before


def test_the_report_of_a_changed_log_is_written_and_refused(finished):
    from typer.testing import CliRunner

    from robo_eval.cli.app import app

    with closing(sqlite3.connect(finished.path / "episodes.db")) as raw:
        raw.execute("update episodes set operator = 'me' where sequence = 2")
        raw.commit()
    result = CliRunner().invoke(app, ["report", str(finished.path)])
    assert isinstance(result.exception, CheckFailedError)
    assert str(result.exception).startswith("the log does not verify: row 2 (e1) was changed")
    assert (finished.path / "report/index.html").exists()
    assert "report: " in result.stdout


def test_a_changed_plan_is_refused(trial):
    file = trial.path / "plan.yaml"
    file.write_text(file.read_text().replace("episodes: 5", "episodes: 6"))
    with pytest.raises(TrialDirectoryError, match=r"plan\.yaml: was changed"):
        TrialDirectory.open(trial.path)


def test_a_changed_manifest_is_refused(trial):
    file = trial.path / "manifest.json"
    data = json.loads(file.read_text())
    file.write_text(json.dumps({**data, "rows": 3}))
    with pytest.raises(TrialDirectoryError, match="does not match its digest"):
        TrialDirectory.open(trial.path)


def test_a_deleted_manifest_is_written_anew(finished):
    (finished.path / "manifest.json").unlink()
    trial = TrialDirectory.open(finished.path)
    assert trial.status() == "interrupted at 5/5"
    with trial.lock(), EpisodeStore(trial.path, durable=False) as store:
        trial.write_manifest(status="complete", store=store)
    assert trial.status() == "complete"
    assert trial.manifest.rows == 5


def test_status_tells_running_from_interrupted(trial, make_episode):
    assert trial.status() == "interrupted at 0/5"
    with trial.lock(), EpisodeStore(trial.path, durable=False) as store:
        store.append([make_episode(0), make_episode(1)])
        assert trial.status() == "running at 2/5"
        assert trial.status(planned=40) == "running at 2/40"
        trial.write_manifest(status="interrupted", store=store)
    assert trial.status() == "interrupted at 2/5"
    with trial.lock(), EpisodeStore(trial.path, durable=False) as store:
        trial.write_manifest(status="complete", store=store)
    assert trial.status() == "complete"


def test_an_unknown_status_is_refused(trial):
    with pytest.raises(TrialDirectoryError, match="did you mean 'complete'"):
        trial.write_manifest(status="completed")


def test_a_trial_that_is_written_again_is_not_complete(finished):
    with finished.lock():
        pass
    assert finished.status() == "interrupted at 5/5"


def test_lock_is_exclusive_and_names_its_holder(trial):
    with (
        trial.lock(),
        pytest.raises(TrialDirectoryError, match=f"process {os.getpid()} on .* is writing"),
        TrialDirectory.open(trial.path).lock(),
    ):
        pass
    with trial.lock():
        pass


HOLDER = """
import sys, time
from robo_eval.log.directory import TrialDirectory
with TrialDirectory.open(sys.argv[1]).lock():
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_is_refused_until_the_first_dies(trial):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(trial.path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(TrialDirectoryError, match=f"process {holder.pid} on"), trial.lock():
            pass
        assert trial.status() == "running at 0/5"
    finally:
        holder.kill()
        holder.wait()
    assert trial.status() == "interrupted at 0/5"
    with trial.lock():
        pass


ASKER = """
import sys
from pathlib import Path
from robo_eval.log.lock import is_locked
print(flush=True)
while True:
    is_locked(Path(sys.argv[1]))
"""


def test_asking_for_the_status_does_not_get_in_the_way_of_a_run(trial):
    asker = subprocess.Popen(
        [
            sys.executable,
            "-c",
            ASKER,
            str(trial.path),
        ],
        stdout=subprocess.PIPE,
    )
    try:
        (trial.path / "run.lock").touch()
        asker.stdout.readline()
        for _ in range(500):
            with RunLock(trial.path):
                pass
    finally:
        asker.kill()
        asker.wait()


def test_lock_refuses_a_damaged_trial_and_changes_nothing(trial):
    database = trial.path / "episodes.db"
    database.write_bytes(b"")
    before = (trial.path / "manifest.json").read_bytes()
    with pytest.raises(TrialDirectoryError, match=r"episodes\.db: is empty"), trial.lock():
        pass
    assert (trial.path / "manifest.json").read_bytes() == before
    assert database.read_bytes() == b""


def test_lock_removes_what_a_dead_writer_left(trial):
    leftover = trial.traces_dir / ".e1.mcap.99.part"
    leftover.write_bytes(b"half")
    with trial.lock():
        assert not leftover.exists()


def test_a_trial_that_appears_while_another_is_prepared_is_kept(tmp_path, monkeypatch):
    plan = parse_plan("name: x\ntasks: [{}]\npolicies: [nothing]\n", source="p")
    folder = TrialDirectory.create(tmp_path / "trial", plan).path
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    # As if it had appeared right after the look at whether something is there.
    monkeypatch.setattr(TrialDirectory, "check_new", staticmethod(lambda _: None))
    with pytest.raises(TrialDirectoryError, match="created by somebody else"):
        TrialDirectory.create(folder, plan)
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_a_trial_that_came_after_the_place_was_found_vacant_is_not_written_over(tmp_path):
    folder = tmp_path / "trial"
    plan = parse_plan("name: x\ntasks: [{}]\npolicies: [nothing]\n", source="p")
    TrialDirectory.create(folder, plan)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    with (
        pytest.raises(TrialDirectoryError, match="was created by somebody else meanwhile"),
        staging_for(folder) as staging,
    ):
        (staging / "plan.yaml").write_text("another")
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_two_processes_creating_one_trial_leave_one(tmp_path):
    script = (
        "import sys\nfrom robo_eval.core.errors import TrialDirectoryError\n"
        "from robo_eval.core.plan import parse_plan\n"
        "from robo_eval.log.directory import TrialDirectory\n"
        "plan = parse_plan('name: x\\ntasks: [{}]\\npolicies: [nothing]\\n', source='p')\n"
        "print('ready', flush=True)\nsys.stdin.readline()\n"
        "try:\n    TrialDirectory.create(sys.argv[1], plan)\n"
        "except TrialDirectoryError: sys.exit(2)\n"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path / "trial")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for process in processes:
        process.stdout.readline()
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    codes = sorted(process.wait(timeout=240) for process in processes)
    for process in processes:
        process.stdin.close()
        process.stdout.close()
    assert codes == [0, 2]
    assert TrialDirectory.open(tmp_path / "trial").status().startswith("interrupted at 0/")
    assert list(tmp_path.iterdir()) == [tmp_path / "trial"]


def test_an_imported_plan_plays_nothing(plan: TrialPlan):
    from robo_eval.core.kinds import Side
    from robo_eval.core.schedule import schedule

    imported = {"file": "a.csv", "sha256": "0" * 64, "rows": 3}
    data = {**plan.model_dump(mode="json"), "imported": imported}
    assert schedule(plan, Side.SIM)
    assert schedule(TrialPlan.model_validate(data), Side.SIM) == []
    with pytest.raises(PlanError, match="did you mean 'rows'"):
        parse_plan(json.dumps({**data, "imported": {**imported, "row": 3}}), source="p")


def test_a_folder_on_another_file_system_works(plan):
    # /dev/shm stands for any mounted folder.
    shared = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=shared) as folder:
        trial = TrialDirectory.create(folder, plan)
        assert trial.status() == "interrupted at 0/5"
