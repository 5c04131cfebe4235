"""What a level rests on is said in its line, and names make no task."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from robo_eval.core.kinds import SYNTHETIC, EndReason
from robo_eval.core.plan import parse_plan
from robo_eval.gates.grounds import alike_families, grounds_of
from robo_eval.gates.recordings import Borne
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.store import EpisodeStore
from robo_eval.metrics.frame import episodes_frame

S = 10**9
NOW = 1_790_000_000 * S
"""Later than any of these trials is made."""


def table(n: int = 4, **changed: Any) -> pd.DataFrame:
    rows = []
    for i in range(n):
        row = {
            "episode_id": f"e{i}", "side": "real", "task": "push", "family": "push", "policy": "p",
            "quality": 1.0, "success": True, "end_reason": EndReason.SUCCESS.value, "robot": "arm",
            "start_ns": 1_700_000_000 * S + i * 60 * S, "duration_s": 30.0, "exposure_s": 30.0,
            "policy_digest": "ab" * 32, "seed": i, "ticks": 10 + i, "episode_return": 0.5 * i,
        }  # fmt: skip
        rows.append(row | {k: v(i) if callable(v) else v for k, v in changed.items()})
    return episodes_frame(pd.DataFrame(rows))


@pytest.fixture
def grounds(tmp_path: Path):
    def found(own: pd.DataFrame, *, recorded: int = 0, plan: str = "") -> str:
        text = plan or "{name: x, tasks: [{env: push}], policies: [p]}"
        trial = TrialDirectory.create(tmp_path / "trial", parse_plan(text, source="plan"))
        return ", ".join(grounds_of(trial, own, Borne(count=recorded, problem="")))

    return found


def test_whose_word_it_is(grounds) -> None:
    assert "by the laboratory's own rows" in grounds(table())


def test_recordings_are_counted(grounds) -> None:
    assert "with recordings of 3 of 4 episodes" in grounds(table(), recorded=3)


def test_recordings_of_all_are_said(grounds) -> None:
    said = grounds(table(), recorded=4)
    assert "with recordings of all 4 episodes" in said
    assert "own rows" not in said


def test_simulation_rests_on_nobodys_word(grounds) -> None:
    assert "rows" not in grounds(table(side="sim", robot=None))


def test_what_is_made_up_says_so_elsewhere(grounds) -> None:
    assert grounds(table(robot=SYNTHETIC)) == ""


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"robot": lambda i: f"r{i // 2}", "start_ns": 1_700_000_000 * S}, "2 robot names"),
        ({"family": lambda i: f"f{i}"}, "4 task families of 1 environment"),
        ({"policy_digest": "0" * 64}, "policy_digest is none of anything"),
        ({"policy_digest": sha256().hexdigest()}, "policy_digest is none of anything"),
        ({"start_ns": lambda i: NOW * 2 + i * 60 * S}, "4 episodes dated after the manifest"),
        ({"start_ns": lambda i: i * 60 * S}, "4 episodes dated before the trial was made"),
    ],
)
def test_names_and_dates_make_no_evidence(grounds, changed: dict[str, Any], told: str) -> None:
    assert told in grounds(table(**changed))


def test_tables_of_people_are_told_from_those_of_a_run(grounds, tmp_path: Path) -> None:
    plan = parse_plan("{name: x, tasks: [{env: push}], policies: [p]}", source="plan")
    trial = TrialDirectory.create(tmp_path / "run", plan)
    with EpisodeStore(trial.path, durable=False) as store:
        (trial.path / "faults.csv").write_text("fault,recovered\n")
        trial.write_manifest(status="complete", store=store)
    said = [", ".join(grounds_of(trial, table(), Borne(count=4, problem="")))]
    (trial.path / "tools.csv").write_text("category,episodes,successes\n")
    said.append(", ".join(grounds_of(trial, table(), Borne(count=4, problem=""))))
    (trial.path / "faults.csv").write_text("fault,recovered\nslip,true\n")
    said.append(", ".join(grounds_of(trial, table(), Borne(count=4, problem=""))))
    assert "notes of people" not in said[0]
    assert "notes of people in tools.csv" in said[1]
    assert "faults.csv" not in said[1]
    assert "faults.csv" in said[2]


def test_an_easy_success_is_said(grounds) -> None:
    plan = "{name: x, tasks: [{env: push, success_quality: 0.01}], policies: [p]}"
    assert "success from a quality of 0.01 on" in grounds(table(), plan=plan)


def test_which_returns_make_quality_is_said(grounds) -> None:
    plan = (
        "{name: x, policies: [p], tasks: [{env: push, quality_range: [0.0, 0.01]},"
        " {env: pull}, {env: lift, quality_range: [-50, 1]}]}"
    )
    said = grounds(table(), plan=plan)
    assert "quality 0 to 1 from returns of -50 to 1, 0 to 0.01" in said


def test_returns_that_are_quality_need_no_word(grounds) -> None:
    assert "returns" not in grounds(table())


def families(**changed: Any) -> pd.DataFrame:
    """Four seeds under two family names of one environment, in simulation."""
    own = {
        "side": "sim", "robot": None, "family": lambda i: "ab"[i // 4], "seed": lambda i: i % 4,
        "ticks": lambda i: 10 + i % 4, "episode_return": lambda i: 0.5 * (i % 4),
        "initial_state": lambda i: {"x": i % 4},
    }  # fmt: skip
    return table(8, **{**own, **changed})


def test_families_that_go_alike_are_found() -> None:
    # Their levels behave alike whatever the keywords of a task, so that says nothing.
    assert alike_families(families(behaviour="c" * 64)) == ("a", "b")


@pytest.mark.parametrize(
    "changed",
    [
        {"ticks": lambda i: 10 + i},
        {"initial_state": lambda i: {"x": i}},
        {"task": lambda i: "ab"[i // 4]},
        {"side": "real", "robot": "arm"},
        # Two tasks that nobody masters end alike without being the same.
        {"ticks": 50, "episode_return": 0.0, "initial_state": {}},
        {"behaviour": "c" * 64, "episode_return": lambda i: i / 7},
    ],
)
def test_families_that_differ_are_none(changed: dict[str, Any]) -> None:
    assert alike_families(families(**changed)) is None
