"""`robo-eval aiq rank`: a small study and a small trial, played and ranked."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from robo_eval.core.plan import TrialPlan
from robo_eval.log.directory import TrialDirectory
from robo_eval.study.run import Study
from robo_eval.study.suite import parse_suite
from robo_eval_sim.runner import run_simulated

SUITE = """
version: 1
name: three levels
tasks:
  - env: RoboEval/CartPole3D-v0
    name: level {level}
    kwargs: {profile: compat, difficulty: medium}
    each: {level: [0, 1, 9]}
    experts: [balancer]
    observed: [0, 11]
expert_episodes: 2
entropy_episodes: 1
pool: {policies: 8, examples: 300, steps: 40, episodes: 1}
learner: {examples: 300, steps: 40, episodes: 1, trainings: 2, alone: 2}
dimensions: 2
"""
PLAN: dict[str, Any] = {
    "name": "agents",
    "tasks": [{"levels": [0, 1, 9], "difficulties": ["easy", "medium"], "profile": "compat"}],
    "policies": ["random", "nothing", "balancer"],
    "episodes": 2,
    "traces": "none",
}


def played(folder: Path, **changes: Any) -> Path:
    run_simulated(TrialDirectory.create(folder, TrialPlan.model_validate({**PLAN, **changes})))
    return folder


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rank") / "study"
    Study(parse_suite(SUITE, source="made.yaml"), folder).run()
    return folder


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return played(tmp_path_factory.mktemp("rank") / "trial")


def test_agents_are_ranked_for_each_difficulty_and_all_together(quick_cli, study, trial, tmp_path):
    page = tmp_path / "page.html"
    told = quick_cli("aiq", "rank", study, trial, "--out", page)
    assert told.code == 0, told.err
    assert told.out.count("agents in 2 dimensions (sim, ") == 3
    assert "APTI is beside random" in told.out
    assert "balancer" in page.read_text()
    result = json.loads(quick_cli("aiq", "rank", study, trial, "--out", page, "--json").out)
    groups = {one["difficulty"]: one for one in result["rankings"]}
    assert list(groups) == ["easy", "medium", "all"]
    frame = TrialDirectory.open(trial).frame()
    for name, group in groups.items():
        assert group["agents"][0]["policy"] == "balancer"
        for agent in group["agents"]:
            own = frame[frame["policy"] == agent["policy"]]
            wanted = [means(own, level, name) for level in (0, 1, 9)]
            assert agent["performances"] == pytest.approx(wanted)
            assert agent["mean"]["value"] == pytest.approx(np.mean(wanted))
            assert 0.0 <= agent["aiq"]["low"] <= agent["aiq"]["value"] <= agent["aiq"]["high"] <= 1
            assert agent["capability"]["value"] is not None
    assert groups["medium"]["agents"][0]["episodes"] == [2, 2, 2]
    # Level 0 has no difficulty: its seeds are the same episodes, and count once.
    assert groups["all"]["agents"][0]["episodes"] == [2, 4, 4]


def means(episodes: pd.DataFrame, level: int, difficulty: str) -> float:
    own = episodes[episodes["level"] == level]
    if difficulty != "all":
        own = own[own["difficulty"] == difficulty]
    return float(own["quality"].mean())


def test_a_policy_without_a_level_is_listed_without_a_quotient(quick_cli, study, tmp_path):
    task = {"levels": [0, 1], "difficulties": ["easy"], "profile": "compat"}
    trial = played(tmp_path / "trial", tasks=[task])
    told = quick_cli("aiq", "rank", study, trial, "--out", tmp_path / "page.html")
    assert told.code == 0, told.err
    assert "balancer: no AIQ, no episode of level 9" in told.out


def test_another_profile_is_another_test(quick_cli, study, tmp_path):
    task = {"levels": [0], "difficulties": ["easy"], "profile": "paper"}
    trial = played(tmp_path / "trial", tasks=[task], episodes=1)
    told = quick_cli("aiq", "rank", study, trial)
    assert told.code == 2
    assert "no scored episode is of a test of the study" in told.err
    assert "v0 compat, played was RoboEval/CartPole3D-v0 paper" in told.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("study", "trial", "trial"), "both have"),
        (("study", "trial", "--baseline", "nobody"), "nobody"),
        (("study", "none"), "none"),
        (("none", "trial"), "none: no study; `robo-eval aiq run"),
        (("study", "trial", "--out", "none/page.html"), "none/page.html: there is no folder none"),
    ],
)
def test_bad_input(quick_cli, study, trial, tmp_path, arguments, said):
    (tmp_path / "study").symlink_to(study)
    (tmp_path / "trial").symlink_to(trial)
    told = quick_cli("aiq", "rank", *arguments)
    assert told.code == 2
    assert said in told.err
    assert told.err.count("\n") == 1
    assert told.out == ""


def test_returns_that_count_otherwise_are_refused(quick_cli, study, tmp_path):
    task = {**PLAN["tasks"][0], "quality_range": [0.0, 2.0]}
    trial = played(tmp_path / "trial", tasks=[task], episodes=1)
    told = quick_cli("aiq", "rank", study, trial)
    assert told.code == 2
    assert "of the study counts returns [0.0, 1.0] as performance 0 and 1" in told.err


def test_an_unfinished_study_says_how_to_go_on(quick_cli, study, trial, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(study, other)
    suite = yaml.safe_load((other / "suite.yaml").read_text())
    suite["pool"]["policies"] = 20
    (other / "suite.yaml").write_text(yaml.safe_dump(suite))
    told = quick_cli("aiq", "rank", other, trial)
    assert told.code == 2
    assert "pieces of work of the study are missing" in told.err
