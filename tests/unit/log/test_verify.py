"""Whatever is changed in a trial is found, and an unchanged one passes."""

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from robo_eval.core.episode import COLUMNS
from robo_eval.core.errors import InputError, TrialDirectoryError
from robo_eval.log.chain import GENESIS
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.manifest import read_manifest, write_manifest
from robo_eval.log.rows import CHAIN, ROW_FORM, cells_of, row_digest
from robo_eval.log.store import EpisodeStore
from robo_eval.log.verify import _Check, verify_trial


def edit(trial: TrialDirectory, *statements: str, values: tuple = ()) -> None:
    with closing(sqlite3.connect(trial.path / "episodes.db")) as raw:
        for statement in statements:
            raw.execute(statement, values)
        raw.commit()


def poke(file: Path, at: int, value: int) -> None:
    """Change one byte in place: much faster than writing the file anew."""
    with file.open("r+b", buffering=0) as raw:
        raw.seek(at)
        raw.write(bytes([value]))


def found(trial: TrialDirectory) -> str:
    report = verify_trial(trial.path)
    assert not report.ok
    return "\n".join(map(str, report.problems))


def test_an_untouched_trial_passes(finished):
    report = verify_trial(finished.path)
    assert report.ok
    assert report.problems == ()
    assert report.notes == ()
    assert (report.rows, report.traces) == (5, 2)
    assert report.head == finished.manifest.head
    assert list(report.lines()) == [f"5 rows and 2 traces checked; chain head {report.head}"]
    assert report.as_dict()["ok"] is True


def test_a_copy_passes_and_verifying_changes_nothing(finished, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(finished.path, copy)
    before = {p: p.read_bytes() for p in copy.rglob("*") if p.is_file()}
    assert verify_trial(copy).ok
    assert {p: p.read_bytes() for p in copy.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize("name", ["plan.yaml", "traces/e1.mcap"])
def test_every_changed_byte_of_plan_and_trace_is_found(finished, name):
    file = finished.path / name
    data = file.read_bytes()
    check = _Check(finished.path)
    check.run()
    assert check.problems == []
    for at in range(len(data)):
        poke(file, at, data[at] ^ 1 << at % 8)
        # The part that looks at this file for each byte, all of it for some: it reads all rows.
        if at % 100:
            check.problems.clear()
            check._check_plan() if name == "plan.yaml" else check._check_traces()
            problems = check.problems
        else:
            problems = list(verify_trial(finished.path).problems)
        assert [problem.file for problem in problems] == [name], at
        poke(file, at, data[at])
    assert verify_trial(finished.path).ok


def test_every_changed_byte_of_the_manifest_is_found(finished):
    file = finished.path / "manifest.json"
    data = file.read_bytes()
    for at in range(0, len(data), 5):
        changed = bytearray(data)
        changed[at] ^= 1 << at % 7
        file.write_bytes(changed)
        report = verify_trial(finished.path)
        # White space is not content, and \x00 in it is not JSON.
        assert not report.ok or read_manifest(file) == finished.manifest


def cells(trial: TrialDirectory) -> list[tuple[str, int]]:
    with closing(sqlite3.connect(trial.path / "episodes.db")) as raw:
        names = [row[1] for row in raw.execute("pragma table_info(episodes)")]
    return [(name, row) for name in names for row in (1, 3, 5)]


def test_every_changed_cell_is_found(finished):
    original = (finished.path / "episodes.db").read_bytes()
    checked = cells(finished)
    assert len(checked) == 3 * (len(COLUMNS) + len(CHAIN))
    for name, row in checked:
        with closing(sqlite3.connect(finished.path / "episodes.db")) as raw:
            (value,) = raw.execute(
                f"select {name} from episodes where sequence = ?", (row,)
            ).fetchone()
            if name == "sequence":
                other: object = 77
            elif isinstance(value, str):
                other = value[:-1] + chr(ord(value[-1]) ^ 16) if value else "x"
            elif value is None:
                other = 1
            else:
                other = value + 1
            raw.execute(f"update episodes set {name} = ? where sequence = ?", (other, row))
            raw.commit()
        report = verify_trial(finished.path)
        places = {problem.row for problem in report.problems if problem.file == "episodes.db"}
        # A changed row number shows at its neighbour.
        assert places & {row, row + 1, 77, None}, name
        for leftover in finished.path.glob("episodes.db-*"):
            leftover.unlink()
        (finished.path / "episodes.db").write_bytes(original)
    assert verify_trial(finished.path).ok


def test_a_changed_row_is_named_alone(finished):
    edit(finished, "update episodes set quality = 0.5 where sequence = 3")
    assert "row 3: was changed ('e2')" in found(finished)
    assert "row 4" not in found(finished)
    assert verify_trial(finished.path).as_dict()["problems"][0]["row"] == 3


def test_white_space_in_a_mapping_is_found(finished):
    edit(finished, "update episodes set costs = replace(costs, ':', ': ') where sequence = 2")
    assert "row 2: was changed" in found(finished)


@pytest.mark.parametrize("rows", ["1", "2", "3, 4"])
def test_removed_rows_are_found(finished, rows):
    edit(finished, f"delete from episodes where sequence in ({rows})")
    assert "missing" in found(finished)


def test_rows_cut_off_the_end_are_found(finished):
    edit(finished, "delete from episodes where sequence > 3")
    assert "rows 4 to 5, which manifest.json counts, missing" in found(finished)
    edit(finished, "delete from episodes")
    assert "rows 1 to 5, which manifest.json counts, missing" in found(finished)


def test_removing_a_row_and_closing_the_gap_is_found(finished):
    edit(
        finished,
        "delete from episodes where sequence = 3",
        "update episodes set sequence = sequence - 1 where sequence > 3",
    )
    text = found(finished)
    assert "row 3: does not follow row 2" in text
    assert "row 3: was changed" in text


def test_swapped_rows_are_found(finished):
    edit(
        finished,
        "update episodes set sequence = -1 where sequence = 2",
        "update episodes set sequence = 2 where sequence = 3",
        "update episodes set sequence = 3 where sequence = -1",
    )
    text = found(finished)
    assert "row 2: does not follow row 1" in text
    assert "row 3: does not follow row 2" in text


def test_an_inserted_row_is_found(finished):
    with closing(sqlite3.connect(finished.path / "episodes.db")) as raw:
        raw.execute("update episodes set sequence = sequence + 100 where sequence > 2")
        raw.execute("update episodes set sequence = sequence - 99 where sequence > 100")
        raw.execute("create temp table copied as select * from episodes where sequence = 2")
        raw.execute("update copied set sequence = 3, episode_id = 'forged'")
        raw.execute("insert into episodes select * from copied")
        raw.commit()
    assert "row 3: does not follow row 2" in found(finished)


def test_a_doubled_row_is_found(finished):
    # Without the index that forbids it.
    with closing(sqlite3.connect(finished.path / "episodes.db")) as raw:
        raw.execute("create table loose as select * from episodes")
        raw.execute("insert into loose select * from episodes where sequence = 5")
        raw.execute("update loose set sequence = rowid")
        raw.execute("drop table episodes")
        raw.execute("alter table loose rename to episodes")
        raw.commit()
    assert "row 6: doubles episode 'e4' of row 5" in found(finished)


def test_an_appended_row_is_found_in_a_complete_trial(finished, make_episode):
    with EpisodeStore(finished.path, durable=False) as store:
        store.append([make_episode(7, plan_digest=finished.plan_digest)])
    assert "row 6 came after the trial was complete" in found(finished)


def test_a_row_of_another_plan_is_found(trial, make_episode):
    with EpisodeStore(trial.path, durable=False) as store:
        store.append([make_episode(0, plan_digest="f" * 64)])
    assert "row 1: belongs to another plan" in found(trial)


def test_a_row_whose_fields_contradict_each_other_is_found(trial, make_episode):
    # Hashed correctly, by whoever wrote it, but no episode.
    content = cells_of(make_episode(0, plan_digest=trial.plan_digest), where="row")
    content["success"] = 0
    digest = row_digest(content, sequence=1, previous_sha256=GENESIS)
    content |= dict(zip(CHAIN, (1, ROW_FORM, GENESIS, digest), strict=True))
    names = ", ".join(content)
    marks = ", ".join("?" for _ in content)
    edit(trial, f"insert into episodes ({names}) values ({marks})", values=tuple(content.values()))
    assert "row 1: column 'success' is 0; it contradicts end_reason" in found(trial)


def test_a_replaced_chain_does_not_match_the_manifest(finished, tmp_path, make_episode):
    other = TrialDirectory.create(tmp_path / "other", finished.plan)
    with EpisodeStore(other.path, durable=False) as store:
        store.append([make_episode(i, plan_digest=finished.plan_digest) for i in range(5)])
    shutil.copy(other.path / "episodes.db", finished.path / "episodes.db")
    assert "row 5: is not the row whose digest manifest.json holds" in found(finished)


def test_missing_foreign_and_renamed_traces_are_found(finished):
    (finished.traces_dir / "e0.mcap").rename(finished.traces_dir / "e9.mcap")
    text = found(finished)
    assert "traces/e0.mcap: is missing; row 1 of episodes.db names it" in text
    assert "traces/e9.mcap: is not named by any row" in text


def test_swapped_traces_are_found(finished):
    one, two = (finished.traces_dir / f"e{i}.mcap" for i in range(2))
    spare = one.with_suffix(".x")
    one.rename(spare)
    two.rename(one)
    spare.rename(two)
    text = found(finished)
    assert "traces/e0.mcap: was changed" in text
    assert "traces/e1.mcap: was changed" in text


@pytest.mark.parametrize(
    "uri", ["../outside.mcap", "{tmp}/outside.mcap", "traces/../../outside.mcap", "traces/a\0b"]
)
def test_a_trace_outside_the_trial_is_not_opened(finished, tmp_path, uri):
    (tmp_path / "outside.mcap").write_bytes(b"x")
    named = uri.format(tmp=tmp_path)
    with closing(sqlite3.connect(finished.path / "episodes.db")) as raw:
        raw.execute("update episodes set trace_uri = ? where sequence = 2", (named,))
        raw.commit()
    assert "episodes.db: row 2: column 'trace_uri'" in found(finished)
    assert "leads out of the trial" in found(finished)
    assert not [problem for problem in verify_trial(finished.path).problems if "\0" in problem.file]
    # Nobody else follows it either, whether rows are read at once or one by one.
    for read in (EpisodeStore.frame, lambda store: list(store.episodes())):
        with (
            EpisodeStore(finished.path, durable=False, read_only=True) as store,
            pytest.raises(InputError, match=r"row 2, column 'trace_uri'.* leads out of the trial"),
        ):
            read(store)


DEEP = '{"a": ' + "[" * 60_000 + "]" * 60_000 + "}"  # Python 3.13 reads a tenth of it


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("costs", DEEP, "is nested too deep"),
        ("initial_state", DEEP, "is nested too deep"),
        ("costs", b"\xff{}", "is not text in UTF-8"),
        ("task", b"caf\xe9", "is not text in UTF-8"),
        ("operator", b"\xc3", "is not text in UTF-8"),
        ("trace_uri", b"traces/\xe9.mcap", "is not text in UTF-8"),
        ("end_reason", b"succ\xff", "unknown end_reason"),
        ("episode_id", b"\xff", "is not text in UTF-8"),
        ("plan_digest", b"\xff", "is not text in UTF-8"),
    ],
)
def test_a_cell_nobody_could_have_written_is_named_by_row_and_column(
    finished, column, value, reason
):
    with closing(sqlite3.connect(finished.path / "episodes.db")) as raw:
        # As text, whatever its bytes are.
        raw.execute(f"update episodes set {column} = cast(? as text) where sequence = 2", (value,))
        raw.commit()
    assert f"episodes.db: row 2: column {column!r}" in found(finished)
    assert reason in found(finished)
    assert "row 2: was changed" in found(finished)


def test_what_a_lost_attempt_left_is_a_note(finished):
    (finished.traces_dir / "e4.mcap").write_bytes(b"left by the process that died")
    (finished.traces_dir / ".e3.mcap.77.part").write_bytes(b"half")
    report = verify_trial(finished.path)
    assert report.ok
    assert len(report.notes) == 2


def test_an_interrupted_trial_is_verified_as_far_as_possible(trial, make_episode):
    with trial.lock(), EpisodeStore(trial.path, durable=False) as store:
        store.append([make_episode(i, plan_digest=trial.plan_digest) for i in range(2)])
        trial.write_manifest(status="interrupted", store=store)
        store.append([make_episode(2, plan_digest=trial.plan_digest)])
        running = verify_trial(trial.path)
        assert any("a run is under way" in note for note in running.notes)
    (trial.traces_dir / "e3.mcap").write_bytes(b"its row was never committed")
    report = verify_trial(trial.path)
    assert report.ok, report.problems
    assert any("rows 1 to 2 and row 3 after that" in note for note in report.notes)
    assert any("traces/e3.mcap: no row names it" in note for note in report.notes)
    # What the manifest does count stays protected.
    edit(trial, "delete from episodes where sequence > 1")
    assert "row 2, which manifest.json counts, missing" in found(trial)


def test_a_run_that_was_killed_is_interrupted_and_not_running(trial, make_episode):
    # As after kill -9: the manifest says `running`, and nobody holds the lock.
    with trial.lock(), EpisodeStore(trial.path, durable=False) as store:
        store.append([make_episode(0, plan_digest=trial.plan_digest)])
        (running,) = [note for note in verify_trial(trial.path).notes if "not complete" in note]
    assert "is not complete (running)" in running
    assert trial.manifest.status == "running"
    (note,) = verify_trial(trial.path).notes
    assert "is not complete (interrupted)" in note
    assert trial.status().startswith("interrupted")


def test_a_wrong_word_names_the_valid_ones_and_no_other_command(finished):
    edit(finished, "update episodes set end_reason = 'sucess' where sequence = 2")
    text = found(finished)
    assert "column 'end_reason': unknown end_reason 'sucess'; did you mean 'success'? " in text
    assert "valid: success, failure, " in text
    assert "robo-eval verify" not in text
    assert "EndReason" not in text
    # Who only reads the rows is told where to learn more.
    with pytest.raises(InputError, match=r"unknown end_reason .*; `robo-eval verify` says more$"):
        finished.frame()


@pytest.mark.parametrize("name", ["manifest.json", "plan.yaml", "episodes.db"])
def test_a_missing_file_is_a_problem(finished, name):
    (finished.path / name).unlink()
    assert f"{name}: is missing" in found(finished)


def test_a_plan_that_was_exchanged_with_its_digest_is_found_by_the_rows(finished):
    from robo_eval.core.canonical import text_digest
    from robo_eval.core.plan import locked_text

    text = locked_text(finished.plan.model_copy(update={"episodes": 9}))
    (finished.path / "plan.yaml").write_text(text)
    file = finished.path / "manifest.json"
    write_manifest(file, replace(finished.manifest, plan_digest=text_digest(text)))
    assert [p.row for p in verify_trial(finished.path).problems] == [1, 2, 3, 4, 5]


def test_damage_below_the_rows_is_found(finished, make_episode):
    # A byte of the index of ids: the rows read well, but SQLite's own check does not.
    file = finished.path / "episodes.db"
    data = bytearray(file.read_bytes())
    at = [i for i in range(len(data) - 3) if data[i : i + 2] == b"e3"][-1]
    places = [i for i in range(len(data) - 3) if data[i : i + 2] == b"e3"]
    noticed = 0
    for at in places:
        changed = bytearray(data)
        changed[at + 1] = ord("7")
        file.write_bytes(changed)
        noticed += not verify_trial(finished.path).ok
    assert noticed == len(places)


@pytest.mark.parametrize("name", ["nowhere", "file", "folder"])
def test_what_is_no_trial_is_refused(tmp_path, name):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(TrialDirectoryError, match=name):
        verify_trial(tmp_path / name)


def test_a_forged_whole_is_not_found_but_has_another_head(finished, tmp_path, make_episode):
    """What docs/log.md says cannot be found: everything written anew."""
    forged = TrialDirectory.create(tmp_path / "forged", finished.plan)
    with forged.lock(), EpisodeStore(forged.path, durable=False) as store:
        store.append([make_episode(i, plan_digest=forged.plan_digest) for i in range(5)])
        forged.write_manifest(status="complete", store=store)
    assert verify_trial(forged.path).ok
    assert verify_trial(forged.path).head != verify_trial(finished.path).head


def test_paths_are_shown_relative_to_the_trial(finished):
    (finished.path / "episodes.db").write_bytes(b"")
    (problem,) = verify_trial(finished.path).problems
    assert str(problem).startswith("episodes.db: is empty")
    assert str(Path(finished.path)) not in str(problem)


def test_what_no_digest_covers(finished):
    """What docs/log.md says cannot be found: none of it changes a row, a trace or the plan."""
    (finished.path / "report").mkdir()
    (finished.path / "report/index.html").write_text("all is well")
    (finished.path / "notes.txt").write_text("mine")
    (finished.path / "episodes-schema-2.db").write_bytes(b"anything")
    manifest = finished.path / "manifest.json"
    content = json.loads(manifest.read_text())
    text = json.dumps(dict(reversed(content.items())), indent=7)
    manifest.write_text(text.replace("{", '{"rows": 99,', 1))
    edit(
        finished,
        "create table mine (a)",
        "alter table episodes add column mine text default 'x'",
        "create index by_quality on episodes (quality)",
        "create view good as select * from episodes where success",
        "create trigger quiet after insert on episodes begin select 1; end",
    )
    report = verify_trial(finished.path)
    assert report.ok, report.problems
    assert report.notes == ()


def test_a_row_that_a_trigger_changed_is_found(trial, make_episode):
    edit(
        trial,
        "create trigger better after insert on episodes begin"
        " update episodes set quality = 0.9 where sequence = new.sequence; end",
    )
    with trial.lock(), EpisodeStore(trial.path, durable=False) as store:
        store.append([make_episode(0, plan_digest=trial.plan_digest)])
        trial.write_manifest(status="complete", store=store)
    assert "row 1: was changed" in found(trial)
