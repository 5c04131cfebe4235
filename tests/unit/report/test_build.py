"""Tests of the bundle as files: complete, digested, small, and the same every time."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from robo_eval.core.episode import Episode
from robo_eval.core.errors import TrialDirectoryError
from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.plan import TrialPlan
from robo_eval.core.schedule import schedule, task_and_policy
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.store import EpisodeStore
from robo_eval.metrics.config import MetricConfig
from robo_eval.report import build
from robo_eval.report.build import build_report, page_bytes
from robo_eval.report.embed import unpacked
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


def make_trial(path: Path, *, rows: bool = True, name: str = "made up") -> TrialDirectory:
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
            store.append(list(episodes(trial)))
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
    assert {"robo-eval", "plotly"} <= manifest["versions"].keys()


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

    def full(_descriptor: int) -> None:
        if next(calls) == 2:
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


def test_the_index_of_nothing_is_a_page_and_of_no_folder_an_error(tmp_path: Path) -> None:
    assert "No trial directory" in build_index(tmp_path).read_text()
    with pytest.raises(TrialDirectoryError, match="no such folder"):
        build_index(tmp_path / "nowhere")
