"""`robo-eval aiq rank`: a small study and a small trial, played and ranked."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from robo_eval.analysis.panel import plan_text
from robo_eval.core.plan import TrialPlan, parse_plan
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.manifest import read_manifest, write_manifest
from robo_eval.study.run import Study
from robo_eval.study.suite import parse_suite
from robo_eval_sim.runner import run_simulated

pytestmark = pytest.mark.slow

SUITE = """
version: 1
name: three levels
tasks:
  - env: RoboEval/CartPole3D-v0
    name: level {level}
    kwargs: {profile: compat, difficulty: medium}
    each: {level: [0, 1, 9]}
    experts: [balancer]
    observed: 11
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
    "episodes": 4,
    "traces": "none",
}


def played(folder: Path, *, jobs: int | None = None, **changes: Any) -> Path:
    plan = TrialPlan.model_validate({**PLAN, **changes})
    run_simulated(TrialDirectory.create(folder, plan), jobs=jobs)
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
    assert told.out.count("coherence: means over tests by exponent p") == 3
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
            weakest = int(np.argmin(agent["performances"]))
            assert agent["evenness"]["weakest"] == f"level {(0, 1, 9)[weakest]}"
    assert json.loads((study / "ranking.json").read_text()) == result
    assert groups["medium"]["agents"][0]["episodes"] == [4, 4, 4]
    # Level 0 has no difficulty: its seeds are the same episodes, and count once.
    assert groups["all"]["agents"][0]["episodes"] == [4, 8, 8]


def test_capability_and_generality_are_those_of_acc(quick_cli, study, trial, tmp_path):
    told = quick_cli("aiq", "rank", study, trial, "--out", tmp_path / "page.html", "--json")
    ranked = next(
        one for one in json.loads(told.out)["rankings"] if one["difficulty"] == "all"
    )  # fmt: skip
    rows = {one["policy"]: one for one in json.loads(quick_cli("acc", trial, "--json").out)["rows"]}
    for agent in ranked["agents"]:
        for name in ("capability", "normalised_generality"):
            assert agent[name]["value"] == pytest.approx(rows[agent["policy"]][name]["value"])


def test_a_policy_of_the_panel_is_not_measured_by_itself(quick_cli, study, tmp_path):
    member = parse_plan(plan_text(), source="panel").policies[0]
    policy = {"name": "mine", "factory": member.factory, "kwargs": member.kwargs}
    trial = played(tmp_path / "trial", policies=["random", policy], episodes=1)
    told = quick_cli("aiq", "rank", study, trial, "--out", tmp_path / "page.html", "--json")
    assert told.code == 0, told.err
    agents = {one["policy"]: one for one in json.loads(told.out)["rankings"][0]["agents"]}
    assert agents["mine"]["aiq"]["value"] is not None
    assert agents["mine"]["capability"]["value"] is None
    assert agents["mine"]["capability"]["reason"].startswith("it is of the panel")
    assert agents["random"]["capability"]["value"] is not None


def test_trials_of_other_difficulties_are_compared_where_both_were_played(
    quick_cli, study, trial, tmp_path
):
    task = {**PLAN["tasks"][0], "difficulties": ["medium"]}
    other = played(tmp_path / "other", tasks=[task], policies=["adaptive"], episodes=1)
    told = quick_cli(
        "aiq", "rank", study, trial, other, "--out", tmp_path / "page.html", "--json"
    )  # fmt: skip
    assert told.code == 0, told.err
    found = {
        one["difficulty"]: next(own for own in one["agents"] if own["policy"] == "adaptive")
        for one in json.loads(told.out)["rankings"]
    }
    assert found["medium"]["aiq"]["value"] is not None
    assert found["easy"]["aiq"]["reason"] == "no episode of level 1 and level 9"
    assert found["all"]["aiq"]["reason"] == "no episode of level 1 at easy and level 9 at easy"


def test_levels_that_changed_are_mixed_only_when_asked(
    quick_cli, study, trial, tmp_path, lighter_cart
):
    with lighter_cart():
        other = played(tmp_path / "other", policies=["adaptive"], jobs=1)
    page = tmp_path / "page.html"
    refused = quick_cli("aiq", "rank", study, trial, other, "--out", page)
    assert (refused.code, refused.out) == (2, "")
    assert not page.exists()
    said = r"level 1 easy \(compat\) changed between episodes: .*, as did .* level 1 medium"
    assert re.search(said, refused.err)
    told = quick_cli("aiq", "rank", study, trial, other, "--out", page, "--across-versions")
    assert told.code == 0, told.err
    text = " ".join(told.out.split())
    assert "they are mixed all the same, as --across-versions asks for" in text
    assert "level 1 easy (compat), level 1 medium (compat): played as levels that behave" in text


def test_a_changed_log_is_ranked_and_refused(quick_cli, study, trial, tmp_path):
    copy = tmp_path / "trial"
    shutil.copytree(trial, copy)
    with closing(sqlite3.connect(copy / "episodes.db")) as connection:
        connection.execute("UPDATE episodes SET quality = 0.5 WHERE sequence = 3")
        connection.commit()
    told = quick_cli("aiq", "rank", study, copy, "--out", tmp_path / "page.html")
    assert told.code == 1
    assert "agents in 2 dimensions" in told.out
    assert "the log does not verify: row 3" in told.err
    assert "the log does not verify: row 3" in (tmp_path / "page.html").read_text()


def test_another_software_and_a_trial_under_way_are_told(quick_cli, study, trial, tmp_path):
    copy = tmp_path / "trial"
    shutil.copytree(trial, copy)
    file = copy / "manifest.json"
    manifest = read_manifest(file)
    assert manifest is not None
    write_manifest(file, replace(manifest, software="robo-eval 0.0.1", status="interrupted"))
    told = quick_cli("aiq", "rank", study, copy, "--out", tmp_path / "page.html")
    assert told.code == 0, told.err
    text = " ".join(told.out.split())
    assert f"warning: {copy}: played by robo-eval 0.0.1, and this is robo-eval" in text
    assert f"warning: {copy}: the trial is not finished; 72 of 72" in text


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
    assert "it is of RoboEval/CartPole3D-v0 compat, level 0, 1 and 9;" in told.err
    assert "played was RoboEval/CartPole3D-v0 paper, level 0" in told.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("study", "trial", "trial"), "name trials that were played apart"),
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
