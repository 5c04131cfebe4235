"""A policy on another machine plays on a robot, and how long it takes is in the rows."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

PLAN = """
name: remote
tasks: [{env: RoboEval/CartPole3D-v0, kwargs: {balls: 0}, levels: [0]}]
policies:
  - name: far
    factory: "robo_eval.agents.remote:RemotePolicy"
    kwargs: {url: "URL", timeout_s: 3.0}
episodes: EPISODES
sides: [sim, twin]
max_missed_ticks: null
"""
DIES = """
import os
from robo_eval.agents.cartpole3d.balancer import Balancer

class Dies(Balancer):
    calls = 0

    def act(self, observation):
        Dies.calls += 1
        if Dies.calls == 8:  # before a pole that gets its actions late has time to fall
            os._exit(1)
        return super().act(observation)
"""


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Start `robo-eval serve-policy` as a process of its own; gives its url."""
    started: list[subprocess.Popen[str]] = []

    def start(*options: str) -> str:
        process = subprocess.Popen(
            [sys.executable, "-m", "robo_eval", "serve-policy", *options, "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=tmp_path,
        )
        started.append(process)
        assert process.stdout is not None
        url = re.search(r"ws://\S+:\d+", process.stdout.readline())
        assert url
        return url[0]

    yield start
    for process in started:
        process.terminate()
        process.wait(timeout=60)
        process.stdout.close()  # type: ignore[union-attr]


@pytest.fixture
def robot(tmp_path: Path, twin: str) -> Path:
    path = tmp_path / "robot.yaml"
    path.write_text(twin)
    return path


def rows(trial: Path) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(f"file:{trial / 'episodes.db'}?mode=ro", uri=True)) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute("SELECT * FROM episodes ORDER BY sequence")]


@pytest.mark.slow
def test_pairs_match_and_latency_is_in_the_row_of_the_robot(cli, serve, robot, tmp_path):
    (tmp_path / "plan.yaml").write_text(
        PLAN.replace("URL", serve("balancer")).replace("EPISODES", "1")
    )
    trial = tmp_path / "trial"
    done = cli(
        "run", "plan.yaml", "--out", trial, "--sides", "sim,twin", "--robot", robot, "--no-report"
    )
    assert done.code == 0, done.err
    twin, sim = sorted(rows(trial), key=lambda row: row["side"] == "sim")
    assert twin["end_reason"] in ("success", "failure"), twin["end_detail"]
    assert twin["pair_id"] == sim["pair_id"]
    assert twin["policy_digest"] == sim["policy_digest"]
    measured = json.loads(twin["control_quality"])
    # One action each time, and the warm-up is not counted.
    assert measured["remote_requests"] == twin["ticks"]
    assert 0.0 < measured["remote_inference_p50_s"] < measured["remote_round_trip_p50_s"]
    assert measured["remote_round_trip_p50_s"] <= measured["inference_p50_s"]
    assert json.loads(sim["control_quality"]) == {}


@pytest.mark.slow
def test_a_server_that_dies_ends_the_episode_as_a_fault(cli, serve, robot, tmp_path):
    (tmp_path / "dies.py").write_text(DIES)
    url = serve("mine", "--factory", "dies:Dies")
    (tmp_path / "plan.yaml").write_text(PLAN.replace("URL", url).replace("EPISODES", "1"))
    trial = tmp_path / "trial"
    done = cli(
        "run", "plan.yaml", "--out", trial, "--sides", "twin", "--robot", robot, "--no-report"
    )
    assert "Traceback" not in done.err
    (row,) = rows(trial)
    assert row["end_reason"] == "fault"
    assert f"{url}: the connection is lost" in row["end_detail"]
    assert row["ticks"] == 6  # the warm-up took one call
    assert json.loads(row["control_quality"])["remote_requests"] == 6.0
