"""A trial is scored with the rules at hand; the log keeps what was recorded."""

import csv
import hashlib

import pytest

from robo_eval.analysis.trial import analyse_trial, write_scores
from robo_eval.core.plan import parse_plan
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.store import EpisodeStore
from robo_eval.metrics import scoring
from robo_eval_sim.runner import run_simulated

PLAN = """
name: x
tasks: [{levels: [0, 9], difficulties: [easy]}]
policies: [nothing, balancer]
episodes: 3
traces: none
"""


@pytest.fixture
def trial(tmp_path):
    made = TrialDirectory.create(tmp_path / "trial", parse_plan(PLAN, source="plan"))
    run_simulated(made, jobs=1)
    return made


def test_scores_of_the_recorded_version_are_not_written_again(trial):
    assert write_scores(trial) is None
    assert not (trial.path / "scores").exists()


def test_scores_of_a_later_version_stand_beside_the_log(trial, monkeypatch):
    with EpisodeStore(trial.path, durable=False) as store:
        head = store.head()
    before = hashlib.sha256((trial.path / "plan.yaml").read_bytes()).hexdigest()
    monkeypatch.setattr(scoring, "SCORE_VERSION", 2)
    # A later rule: nothing but a perfect half is worth anything.
    monkeypatch.setattr(scoring, "quality_of", lambda total, span: min(1.0, total / 2))
    path = write_scores(trial)
    assert path == trial.path / "scores/v2.csv"
    with path.open() as file:
        rows = {row["episode_id"]: row for row in csv.DictReader(file)}
    assert len(rows) == 12
    assert {row["score_version"] for row in rows.values()} == {"2"}
    with EpisodeStore(trial.path, durable=False) as store:
        assert store.head() == head
        for episode in store.episodes():
            assert episode.score_version == 1
            assert float(rows[episode.episode_id]["quality"]) == pytest.approx(episode.quality / 2)
    assert hashlib.sha256((trial.path / "plan.yaml").read_bytes()).hexdigest() == before
    summary = analyse_trial(trial)
    assert summary.score_versions == {2: 12}
    assert all(result.performance.value < 0.5 + 1e-9 for result in summary.policies)


def test_capability_rests_on_the_panel_and_says_it_is_unreliable_for_few_episodes(trial):
    summary = analyse_trial(trial)
    table = summary.as_dict()["acc"]
    assert table["n_items"] == 2
    by_policy = {row["policy"]: row for row in table["rows"]}
    assert (
        by_policy["balancer"]["capability"]["value"] > by_policy["nothing"]["capability"]["value"]
    )
    assert all("unreliable" in row and row["unreliable"] for row in table["rows"])
