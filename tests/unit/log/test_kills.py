"""A writer killed at any moment keeps every row it acknowledged, once, in an unbroken chain."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from robo_eval.log.directory import TrialDirectory
from robo_eval.log.store import EpisodeStore
from robo_eval.log.verify import verify_trial

WRITER = (
    """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from conftest import make_episode, make_trajectory
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.store import EpisodeStore
from robo_eval.log.trace import write_trace
episode, trajectory = make_episode.__wrapped__(None), make_trajectory.__wrapped__(None)
""".replace("(None)", "()")
    + """
trial = TrialDirectory.open(sys.argv[1])
with trial.lock(), EpisodeStore(trial.path, durable=sys.argv[3] == "durable") as store:
    first = len(store)
    print("ready", flush=True)
    while True:
        rows = []
        for i in range(first, first + 8):
            uri = f"traces/e{i}.mcap"
            moves = trajectory(n=4, seed=i)
            digest = write_trace(trial.path / uri, moves)
            rows.append(
                episode(
                    i, plan_digest=trial.plan_digest, trace_uri=uri, trace_sha256=digest,
                    ticks=3, episode_return=float(moves.rewards.sum()),
                )
            )
        store.append(rows)
        first += 8
        print(first, flush=True)
"""
)


def kill_at_random(trial: TrialDirectory, rng: random.Random, durability: str) -> int:
    """Start a writer, kill it at a random moment; returns the rows it acknowledged."""
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(trial.path), str(Path(__file__).parent), durability],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout.readline() == "ready\n", writer.stderr.read()
    for _ in range(rng.randrange(4)):
        writer.stdout.readline()
    time.sleep(rng.uniform(0.0, 0.03))
    writer.send_signal(signal.SIGKILL)
    out, _ = writer.communicate(timeout=240)
    acknowledged = [int(line) for line in out.split()]
    return acknowledged[-1] if acknowledged else 0


@pytest.mark.parametrize("kills", [3, pytest.param(12, marks=pytest.mark.slow)])
@pytest.mark.parametrize("durability", ["durable", "survives a kill"])
def test_no_acknowledged_row_is_lost_and_none_is_there_twice(trial, durability, kills):
    rng = random.Random(durability)
    before = 0
    for _ in range(kills):
        acknowledged = kill_at_random(trial, rng, durability)
        with EpisodeStore(trial.path, durable=False) as store:
            names = [episode.episode_id for episode in store.episodes()]
        assert len(names) >= max(before, acknowledged)
        assert names == [f"e{i}" for i in range(len(names))]
        assert len(names) % 8 == 0
        report = verify_trial(trial.path)
        assert report.ok, report.problems
        assert report.traces == len(names)
        assert TrialDirectory.open(trial.path).status() == f"interrupted at {len(names)}/5"
        before = len(names)
    assert before > 8
