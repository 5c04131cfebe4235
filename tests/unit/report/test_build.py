"""Tests of the bundle as files: complete, digested, small, and the same every time."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from robo_eval.analysis.trial import analyse_trial
from robo_eval.core.episode import COLUMNS, Episode
from robo_eval.core.errors import InputError, TrialDirectoryError
from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.plan import TrialPlan
from robo_eval.core.schedule import schedule, task_and_policy
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.store import EpisodeStore
from robo_eval.metrics.config import MetricConfig
from robo_eval.page.embed import unpacked
from robo_eval.report import build
from robo_eval.report.build import build_report, page_bytes
from robo_eval.report.index import build_index, find_trials

FAST = MetricConfig(resamples=100)
NAMES = ["episodes.csv", "index.html", "manifest.json", "metrics.json"]


def episodes(trial: TrialDirectory) -> Iterator[Episode]:
    """Rows of invented outcomes for every episode the trial plans."""
    for number, planned in enumerate(schedule(trial.plan, Side.SIM)):
        task, policy = task_and_policy(trial.plan, planned)
        ticks = 200 if (number * 7) % 5 else 20 + number % 90
        yield Episode(
            episode_id=planned.episode_id,
            arm=planned.arm,
            control_id=planned.control_id,
            plan_digest=trial.plan_digest,
            side=Side.SIM,
            task=task.env,
            family=task.family,
            level=planned.condition.level,
            difficulty=planned.condition.difficulty,
            profile=task.profile,
            seed=planned.seed,
            policy=policy.name,
            policy_digest="1" * 64,
            start_ns=1_700_000_000_000_000_000 + number,
            duration_s=ticks * 0.02,
            ticks=ticks,
            episode_return=ticks / 200,
            quality=ticks / 200,
            success=ticks == 200,
            end_reason=EndReason.SUCCESS if ticks == 200 else EndReason.FAILURE,
            initial_state={"cart_position": [0.0, 0.0], "note": 'a,b\n"c"'},
            software="test",
        )


def make_trial(
    path: Path, *, rows: bool = True, name: str = "made up", only: int | None = None
) -> TrialDirectory:
    plan = TrialPlan.model_validate(
        {
            "name": name,
            "tasks": [{"levels": [0, 1, 2], "difficulties": ["easy", "hard"]}],
            "policies": ["random", "balancer"],
            "episodes": 3,
            "control": True,
        }
    )
    trial = TrialDirectory.create(path, plan)
    if rows:
        with EpisodeStore(trial.path, durable=False) as store:
            store.append(list(episodes(trial))[:only])
            if only is None:
                trial.write_manifest(status="complete", store=store)
    return TrialDirectory.open(path)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    trial = make_trial(tmp_path_factory.mktemp("build") / "a trial")
    return build_report(trial, config=FAST).parent


def test_the_bundle_is_four_files_and_the_manifest_has_their_digests(bundle: Path) -> None:
    assert sorted(path.name for path in bundle.iterdir()) == NAMES
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert sorted(manifest["files"]) == [name for name in NAMES if name != "manifest.json"]
    for name, entry in manifest["files"].items():
        data = (bundle / name).read_bytes()
        assert entry == {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    plan = (bundle.parent / "plan.yaml").read_bytes()
    assert manifest["trial"]["plan_sha256"] == hashlib.sha256(plan).hexdigest()
    assert manifest["trial"]["seeds"] == {"first": 1000, "per_condition": 3}
    assert manifest["configuration"]["resamples"] == 100
    assert {"robo-eval-stack", "plotly"} <= manifest["versions"].keys()


def test_the_page_is_small_and_names_no_place_of_this_machine(bundle: Path) -> None:
    page = (bundle / "index.html").read_bytes()
    assert 1_500_000 < len(page) <= 6_000_000
    for name in NAMES:
        assert str(bundle.parent.parent).encode() not in (bundle / name).read_bytes()


def test_json_holds_no_nan(bundle: Path) -> None:
    for name in ("metrics.json", "manifest.json"):
        text = (bundle / name).read_text()
        json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} in JSON"))


def test_csv_holds_every_row_with_mappings_as_json(bundle: Path) -> None:
    rows = list(csv.DictReader(io.StringIO((bundle / "episodes.csv").read_text())))
    assert len(rows) == 2 * 3 * 2 * 3
    assert json.loads(rows[0]["initial_state"])["note"] == 'a,b\n"c"'
    assert rows[0]["pair_id"] == ""
    assert list(rows[0]) == list(COLUMNS)


def test_the_same_log_gives_the_same_bytes(bundle: Path) -> None:
    before = {name: (bundle / name).read_bytes() for name in NAMES}
    build_report(TrialDirectory.open(bundle.parent), config=FAST)
    assert {name: (bundle / name).read_bytes() for name in NAMES} == before


def test_building_changes_nothing_of_the_trial(tmp_path: Path) -> None:
    trial = make_trial(tmp_path / "t")
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    build_report(trial, config=FAST)
    assert {path: path.read_bytes() for path in before} == before


def test_a_trial_without_episodes_says_so(tmp_path: Path) -> None:
    page = build_report(make_trial(tmp_path / "t", rows=False), config=FAST).read_text()
    assert "interrupted at 0/36" in page
    assert "0 of 18 scored" in page
    assert '<span class="rate">' not in page
    json.loads((tmp_path / "t" / "report" / "metrics.json").read_text())


def test_a_killed_run_reads_interrupted_with_its_count(tmp_path: Path) -> None:
    page = build_report(make_trial(tmp_path / "killed", only=3), config=FAST).read_text()
    assert '<span class="status open">interrupted at 3/36</span>' in page
    assert "Interrupted at 3 of 36 planned episodes; nothing is being played now." in page
    assert "robo-eval resume killed" in page
    assert '<span class="rate">' not in page
    assert "log verified (3 rows)" in page


def test_a_ready_summary_is_not_computed_again(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {name: (bundle / name).read_bytes() for name in NAMES}
    trial = TrialDirectory.open(bundle.parent)
    summary = analyse_trial(trial, config=FAST)
    monkeypatch.setattr(build, "analyse_trial", lambda *_a, **_k: pytest.fail("computed again"))
    build_report(trial, summary=summary)
    assert {name: (bundle / name).read_bytes() for name in NAMES} == before
    build_report(trial, summary=summary, config=FAST)
    with pytest.raises(InputError, match="config differs"):
        build_report(trial, summary=summary, config=MetricConfig(resamples=101))
    other = make_trial(tmp_path / "other", only=5)
    with pytest.raises(InputError, match="analyse it again"):
        build_report(other, summary=summary)


def test_a_changed_row_gets_a_red_banner_and_no_verdict(bundle: Path, tmp_path: Path) -> None:
    sound = (bundle / "index.html").read_text()
    assert "log verified (36 rows)" in sound
    assert "verdict-line" in sound.split('<section id="verdict"')[1]
    assert json.loads((bundle / "manifest.json").read_text())["trial"]["verified"] is True
    trial = make_trial(tmp_path / "t")
    with closing(sqlite3.connect(trial.path / "episodes.db")) as connection, connection:
        connection.execute("UPDATE episodes SET duration_s = 3.5 WHERE sequence = 7")
    page = build_report(trial, config=FAST).read_text()
    assert '<div class="warning bad" role="alert">' in page
    assert "this log does not verify: row 7" in page
    assert "log verified" not in page
    assert "verdict-line" not in page.split('<section id="verdict"')[1].split("</section>")[0]
    manifest = json.loads((trial.report_dir / "manifest.json").read_text())
    assert manifest["trial"]["verified"] is False
    assert "row 7" in manifest["trial"]["problems"][0]
    assert str(tmp_path) not in page


def test_times_that_an_import_lacks_are_not_recorded_and_never_0(tmp_path: Path) -> None:
    trial = make_trial(tmp_path / "t", rows=False)
    with EpisodeStore(trial.path, durable=False) as store:
        unknown = {"start_ns": None, "duration_s": None, "ticks": None, "exposure_s": None}
        store.append([replace(episode, **unknown) for episode in episodes(trial)])
        trial.write_manifest(status="complete", store=store)
    page = build_report(TrialDirectory.open(trial.path), config=FAST).read_text()
    assert "The length of the episodes is not recorded in this log." in page
    assert "1970" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert "0.00 s" not in page
    rows = list(csv.DictReader(io.StringIO((trial.report_dir / "episodes.csv").read_text())))
    assert {rows[0][name] for name in ("start_ns", "duration_s", "ticks", "exposure_s")} == {""}
    index = build_index(tmp_path).read_text()
    assert "start not recorded" in index


def test_an_unwritable_place_is_refused_in_one_line(tmp_path: Path) -> None:
    trial = make_trial(tmp_path / "t")
    (tmp_path / "t" / "report").write_text("a file in the way")
    with pytest.raises(TrialDirectoryError, match="report cannot be written") as caught:
        build_report(trial, config=FAST)
    assert "\n" not in str(caught.value)
    assert (tmp_path / "t" / "report").read_text() == "a file in the way"


def test_a_full_disk_leaves_the_older_bundle_whole(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {name: (bundle / name).read_bytes() for name in NAMES}
    calls = iter(range(100))
    own = threading.current_thread()

    def full(_descriptor: int) -> None:
        # A recorder of another test may still sync in a thread of its own.
        if threading.current_thread() is own and next(calls) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(TrialDirectoryError, match="No space left"):
        build_report(TrialDirectory.open(bundle.parent), config=FAST)
    assert sorted(path.name for path in bundle.iterdir()) == NAMES
    assert {name: (bundle / name).read_bytes() for name in NAMES} == before


def test_data_that_would_make_the_page_too_large_lie_next_to_it(
    make_report, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = make_report()
    files = {"metrics.json": b"{}", "episodes.csv": bytes(range(256)) * 800}
    small = page_bytes(report, files).decode()
    assert 'id="file-episodes-csv"' in small
    packed = small.split('id="file-episodes-csv">')[1].split("<")[0]
    assert unpacked(packed) == files["episodes.csv"]
    monkeypatch.setattr(build, "MAX_BYTES", len(small) - 500)
    smaller = page_bytes(report, files).decode()
    assert len(smaller) <= len(small) - 500
    assert 'id="file-episodes-csv"' not in smaller
    assert 'id="file-metrics-json"' in smaller
    assert 'href="episodes.csv"' in smaller


def test_the_index_lists_newest_first_and_survives_what_is_broken(tmp_path: Path) -> None:
    (tmp_path / "group").mkdir()
    done = make_trial(tmp_path / "group" / "done", name="<i>done</i>")
    build_report(done, config=FAST)
    make_trial(tmp_path / "empty", rows=False)
    make_trial(tmp_path / "cut")
    (tmp_path / "cut" / "episodes.db").write_bytes(b"not a database")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("no trial")
    assert [path.name for path in find_trials(tmp_path)] == ["cut", "empty", "done"]
    page = build_index(tmp_path).read_text()
    assert page.index(">group/done<") < page.index(">empty<") < page.index(">cut<")
    assert "<i>done</i>" not in page
    assert 'href="group/done/report/index.html"' in page
    assert "0 of 18 scored" in page
    assert "episodes.db" in page
    assert str(tmp_path) not in page


def test_the_index_says_at_a_glance_what_needs_a_look(tmp_path: Path) -> None:
    make_trial(tmp_path / "done")
    make_trial(tmp_path / "killed", only=3)
    changed = make_trial(tmp_path / "changed")
    with closing(sqlite3.connect(changed.path / "episodes.db")) as connection, connection:
        connection.execute("DELETE FROM episodes WHERE sequence = 36")
    page = build_index(tmp_path).read_text()
    assert "3 trials; 1 not verified; 1 incomplete or with episodes without a score" in page
    assert page.count('<span class="status done">complete</span>') == 1
    assert '<span class="status bad">complete, not verified</span>' in page
    assert '<span class="status open">interrupted at 3/36</span>' in page
    assert 'aria-label="random: 0 succeeded, 0 failed, 18 missing"' not in page
    assert page.count('class="outcome" role="img"') == 6


def test_the_index_of_nothing_is_a_page_and_of_no_folder_an_error(tmp_path: Path) -> None:
    assert "No trial directory" in build_index(tmp_path).read_text()
    with pytest.raises(TrialDirectoryError, match="nowhere: is no folder"):
        build_index(tmp_path / "nowhere")


def test_a_file_in_place_of_a_folder_of_trials_is_told_as_that(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("")
    with pytest.raises(TrialDirectoryError, match=r"table\.csv: is no folder; name a folder of"):
        build_index(tmp_path / "table.csv")
