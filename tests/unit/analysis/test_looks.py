"""Comparing a trial again and again while it grows is said to cost what it costs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from robo_eval.analysis.comparison import LOOKS, compare_trials
from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.plan import parse_plan
from robo_eval.core.schedule import schedule
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.planned_row import row_for
from robo_eval.log.store import EpisodeStore
from robo_eval.stats.sequential import error_of_looks

PLAN = """
name: growing
tasks: [{env: Other/Task-v0}]
policies: [{name: a, factory: "x:a"}, {name: b, factory: "x:b"}]
episodes: 30
"""


def grow(trial: TrialDirectory, plan_digest: str, start: int, end: int) -> None:
    rows = [
        row_for(
            planned, trial.plan, plan_digest, policy_digest="0" * 64, start_ns=1 + planned.index,
            duration_s=1.0, exposure_s=0.0, ticks=1, episode_return=1.0, quality=1.0, success=True,
            end_reason=EndReason.SUCCESS, software="test",
        )
        for planned in schedule(trial.plan, Side.SIM)
        if start <= planned.index < end
    ]  # fmt: skip
    with EpisodeStore(trial.path, durable=False) as store:
        store.append(rows)


@pytest.mark.parametrize("rule", ["", "stopping: {compare: [a, b]}"])
def test_each_look_at_more_episodes_counts(tmp_path: Path, rule: str) -> None:
    trial = TrialDirectory.create(tmp_path / "trial", parse_plan(PLAN + rule, source="plan"))

    def looks() -> list[str]:
        return [text for text in compare_trials([trial]).warnings if "compared after" in text]

    grow(trial, trial.plan_digest, 0, 10)
    assert looks() == []
    assert looks() == []  # the same episodes once more
    grow(trial, trial.plan_digest, 10, 20)
    said = looks()
    grow(trial, trial.plan_digest, 20, 30)
    if rule:
        assert not said
        assert not (trial.path / LOOKS).exists()
        return
    assert "compared after 20, 40 scored episodes" in said[0]
    assert "in about 8% of trials" in said[0]
    assert "in about 11% of trials" in looks()[0]
    assert json.loads((trial.path / LOOKS).read_text()) == [20, 40, 60]
    (trial.path / LOOKS).write_text("nonsense")
    assert looks() == []


def test_what_looks_cost_is_what_is_published() -> None:
    # Armitage, McPherson and Rowe (1969), table 2, at 0.05.
    for looks, error in ((1, 0.05), (2, 0.083), (5, 0.142), (10, 0.193), (20, 0.248)):
        sizes = [10 * (look + 1) for look in range(looks)]
        assert error_of_looks(sizes) == pytest.approx(error, abs=0.008)
    with pytest.raises(ValueError, match="must rise"):
        error_of_looks([3, 3])
