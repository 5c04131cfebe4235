"""`robo-eval aiq rank` of a matched trial: agents in simulation and on the twin, side by side."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.slow

SUITE = """
version: 1
name: without balls
tasks:
  - env: RoboEval/CartPole3D-v0
    name: level {level}
    kwargs: {balls: 0}
    each: {level: [0, 9]}
    experts: [balancer]
    observed: 8
expert_episodes: 2
entropy_episodes: 1
pool: {policies: 8, examples: 300, steps: 40, episodes: 1}
learner: {examples: 300, steps: 40, episodes: 1, trainings: 2, alone: 2}
dimensions: 2
"""
PLAN = """
name: matched
tasks:
  - {env: RoboEval/CartPole3D-v0, family: balancing, levels: [0, 9], kwargs: {balls: 0}}
policies: [nothing, random]
episodes: 3
sides: [sim, twin]
max_missed_ticks: null
order: interleaved
metrics: {resamples: 200}
"""


def test_agents_are_ranked_on_each_side_and_beside_each_other(cli, tmp_path):
    for name, text in (("suite", SUITE), ("plan", PLAN)):
        (tmp_path / f"{name}.yaml").write_text(text)
    assert cli("aiq", "run", "suite.yaml", "--out", "study").code == 0
    played = cli("run", "plan.yaml", "--out", "trial", "--no-report")
    assert played.code == 0, played.err
    told = cli("aiq", "rank", "study", "trial")
    assert told.code == 0, told.err
    assert "agents in 2 dimensions (sim, easy)" in told.out
    assert "agents in 2 dimensions (twin, easy)" in told.out
    beside = told.out.partition("sides beside each other (easy)")[2]
    assert "AIQ, sim" in beside
    assert "AIQ, twin" in beside
    rankings = json.loads((tmp_path / "study" / "ranking.json").read_text())["rankings"]
    assert [one["side"] for one in rankings] == ["sim", "twin"]
    for one in rankings:
        assert sorted(agent["policy"] for agent in one["agents"]) == ["nothing", "random"]
        for agent in one["agents"]:
            assert agent["episodes"] == [3, 3]
            assert agent["aiq"]["low"] <= agent["aiq"]["value"] <= agent["aiq"]["high"]
            assert f"{agent['aiq']['value']:.2f} [" in beside
    page = (tmp_path / "study" / "ranking.html").read_text()
    assert "simulation, easy" in page
    assert "twin, easy" in page
