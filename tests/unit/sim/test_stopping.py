"""A trial with a stopping rule ends when the rule says so, however it was interrupted."""

from collections.abc import Iterator

import pytest

from robo_eval.core.plan import parse_plan
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.store import EpisodeStore
from robo_eval_sim.runner import run_simulated

PLAN = """
name: is the balancer better than doing nothing
tasks: [{levels: [0]}]
policies: [balancer, nothing]
episodes: 200
traces: none
stopping: {compare: [balancer, nothing]}
"""


@pytest.fixture
def trial(tmp_path) -> TrialDirectory:
    return TrialDirectory.create(tmp_path / "trial", parse_plan(PLAN, source="plan.yaml"))


def seeds(trial: TrialDirectory) -> Iterator[int]:
    with EpisodeStore(trial.path, durable=False, read_only=True) as store:
        return iter([episode.seed for episode in store.episodes()])


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_trial_ends_when_its_rule_is_satisfied(trial, jobs):
    from robo_eval.analysis.trial import analyse_trial

    result = run_simulated(trial, jobs=jobs)
    assert result.done == result.planned < 100
    assert trial.status() == "complete"
    played = sorted(set(seeds(trial)))
    assert played == list(range(1000, 1000 + len(played)))
    summary = analyse_trial(trial)
    series = summary.series
    assert (series.stop, series.verdict) == (True, "greater")
    assert series.e >= 20.0
    assert summary.is_complete
    # What the rule left out is not missing.
    assert all(row.coverage.scored == row.coverage.expected for row in summary.policies)
    again = run_simulated(trial, jobs=jobs)
    assert again.played == 0


def test_a_series_that_ended_early_lacks_nothing_in_a_comparison(trial):
    from robo_eval.analysis.comparison import compare_trials

    run_simulated(trial, jobs=1)
    found = compare_trials([trial])
    assert found.uncovered == []
    (side,) = found.sides
    assert side.pairs[0].winner == "balancer"
    assert any("stopping rule" in warning for warning in found.warnings)
