"""Work on a real Ray cluster: two nodes on this machine, with a worker each."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import gymnasium
import psutil
import pytest

from robo_eval.compete.client import play
from robo_eval.compete.ledger import Ledger
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.verify import verify_trial
from tests.e2e.test_compete import Agent, Server

SUITE = """
version: 1
name: two levels
tasks:
  - env: RoboEval/CartPole3D-v0
    name: level {level}
    each: {level: [0, 9]}
    experts: [balancer]
    observed: 12
expert_episodes: 2
entropy_episodes: 2
pool: {policies: 30, examples: 500, steps: 100, episodes: 4}
learner: {examples: 500, steps: 100, episodes: 4, trainings: 3, alone: 2}
"""

PLAN = """
name: shared
tasks: [{env: RoboEval/CartPole3D-v0, levels: [0, 7, 14], difficulties: [easy, hard]}]
policies: [balancer, random, {name: mine, factory: "mine:make"}]
episodes: 6
"""
MINE = "from robo_eval.agents import make_agent\ndef make(): return make_agent('nothing')\n"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A cluster of two nodes with processes of their own, which are stopped in the end."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=1)
    yield cluster.address
    cluster.shutdown()


def run(suite: Path, out: Path, *more: str) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "robo_eval",
        "aiq",
        "run",
        str(suite),
        "--out",
        str(out),
        *more,
    ]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )


def workers(doing: str = "do") -> list[psutil.Process]:
    """Processes of the cluster that are doing a piece of work right now."""
    seen = psutil.process_iter(["name"])  # leaves out those that end while it looks
    return [one for one in seen if (one.info["name"] or "").startswith(f"ray::{doing}")]


def killed_one(doing: str = "do") -> bool:
    for worker in workers(doing):
        with suppress(psutil.NoSuchProcess):
            worker.kill()
            return True
    return False


def test_the_numbers_are_those_of_one_process_even_if_a_worker_is_killed(address, tmp_path):
    suite = tmp_path / "suite.yaml"
    suite.write_text(SUITE)
    alone = run(suite, tmp_path / "alone", "--workers", "1")
    assert alone.wait(300) == 0
    shared = run(suite, tmp_path / "shared", "--ray", address)
    kills = 0
    while shared.poll() is None and kills < 2:
        try:
            shared.wait(0.5)
        except subprocess.TimeoutExpired:
            kills += killed_one()
    _, errors = shared.communicate(timeout=300)
    assert shared.returncode == 0, errors
    assert kills, "no worker was seen at work"
    written = [(tmp_path / name / "study.json").read_text() for name in ("alone", "shared")]
    assert written[0] == written[1]


def test_a_run_whose_driver_is_killed_goes_on(address, tmp_path):
    suite, out = tmp_path / "suite.yaml", tmp_path / "study"
    suite.write_text(SUITE)
    first = run(suite, out, "--ray", address)
    while not workers():
        assert first.poll() is None, first.communicate()
        time.sleep(0.1)
    first.kill()
    first.communicate()
    second = run(suite, out, "--ray", address)
    said, errors = second.communicate(timeout=300)
    assert second.returncode == 0, errors
    assert "two levels: complexity" in said


# Trials ------------------------------------------------------------------------------------------

MADE_ANEW = {"start_ns", "sequence", "policy_seconds", "inference_p50_s", "inference_p99_s"}


def trial(folder: Path, *words: str) -> subprocess.Popen[str]:
    (folder / "plan.yaml").write_text(PLAN)
    (folder / "mine.py").write_text(MINE)
    command = [sys.executable, "-m", "robo_eval", *words, "--no-report"]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder
    )


def rows(folder: Path) -> dict[str, dict[str, object]]:
    """What is logged of each episode, but for times."""
    frame = TrialDirectory.open(folder).frame().set_index("episode_id")
    kept = [name for name in frame if name not in MADE_ANEW and "digest" not in name]
    return json.loads(frame[kept].to_json(orient="index", default_handler=str))


def test_a_trial_has_the_rows_of_one_machine_even_if_workers_are_killed(address, tmp_path):
    alone = trial(tmp_path, "run", "plan.yaml", "--out", "alone")
    assert alone.wait(300) == 0, alone.communicate()
    shared = trial(tmp_path, "run", "plan.yaml", "--out", "shared", "--ray", address)
    kills = 0
    while shared.poll() is None and kills < 2:
        try:
            shared.wait(0.2)
        except subprocess.TimeoutExpired:
            kills += killed_one("play_portion")
    _, errors = shared.communicate(timeout=300)
    assert shared.returncode == 0, errors
    assert kills, "no worker was seen at work"
    assert rows(tmp_path / "shared") == rows(tmp_path / "alone")
    assert verify_trial(tmp_path / "shared").ok
    traces = [sorted((tmp_path / name / "traces").iterdir()) for name in ("alone", "shared")]
    assert [one.name for one in traces[0]] == [one.name for one in traces[1]]
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(*traces, strict=True))


def test_a_trial_whose_driver_is_stopped_or_killed_goes_on(address, tmp_path):
    while workers("play_portion"):  # of the test before
        time.sleep(0.05)
    first = trial(tmp_path, "run", "plan.yaml", "--out", "shared", "--ray", address)
    while not workers("play_portion"):
        assert first.poll() is None, first.communicate()
        time.sleep(0.05)
    first.send_signal(signal.SIGTERM)
    _, errors = first.communicate(timeout=60)
    assert first.returncode == 3, errors
    second = trial(tmp_path, "resume", "shared", "--ray", address)
    time.sleep(3.0)
    second.kill()
    second.communicate()
    last = trial(tmp_path, "resume", "shared", "--ray", address)
    _, errors = last.communicate(timeout=300)
    assert last.returncode == 0, errors
    assert len(rows(tmp_path / "shared")) == 3 * 6 * 6
    assert verify_trial(tmp_path / "shared").ok


def test_a_competition_goes_on_when_a_worker_of_the_cluster_is_killed(address, tmp_path):
    served = Server(tmp_path, "--team", "far", "--ray", address)
    try:
        url, token = served.url, served.said(r"token of far: (\S+)")
        env = gymnasium.make("RoboEval/Remote-v0", url=url, token=token)
        env.reset()
        env.step(0)
        assert killed_one("work_far"), "no worker was seen at work"
        assert {"given_back"} <= env.step(0)[4].keys()
        assert play(env, Agent()) == 3
        env.close()
        assert served.end() == 0
        while workers("work_far"):
            time.sleep(0.05)
    finally:
        served.process.kill()
    with Ledger.open(tmp_path / "cup") as ledger:
        links = [link for link in ledger.links(1) if link.kind == "episode"]
    assert [(link.run, link.episode) for link in links] == [(2, 0), (2, 1), (2, 2)]


@pytest.mark.parametrize("speaks", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_a_port_where_something_else_listens_is_refused_soon(tmp_path, speaks):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def serve() -> None:
            with suppress(OSError):
                there, _ = server.accept()
                there.sendall(speaks)
                time.sleep(30)

        threading.Thread(target=serve, daemon=True).start()
        refused = trial(tmp_path, "run", "plan.yaml", "--out", "t", "--ray", f"127.0.0.1:{port}")
        _, errors = refused.communicate(timeout=60)
    assert refused.returncode == 2
    assert f"--ray 127.0.0.1:{port}: the cluster cannot be reached" in errors
    assert "Traceback" not in errors
    assert not (tmp_path / "t").exists()
