"""A study on a real Ray cluster: two nodes on this machine, with a worker each."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

SUITE = """
version: 1
name: two levels
tasks:
  - env: RoboEval/CartPole3D-v0
    name: level {level}
    each: {level: [0, 9]}
    experts: [balancer]
    observed: [0, 12]
expert_episodes: 2
entropy_episodes: 2
pool: {policies: 30, examples: 500, steps: 100, episodes: 4}
learner: {examples: 500, steps: 100, episodes: 4, trainings: 3, alone: 2}
"""

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


def workers() -> list[psutil.Process]:
    """Processes of the cluster that are doing a piece of work right now."""
    seen = psutil.process_iter(["name"])  # leaves out those that end while it looks
    return [one for one in seen if (one.info["name"] or "").startswith("ray::do")]


def killed_one() -> bool:
    for worker in workers():
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
