"""A server of a competition that is killed at any moment loses no episode and repeats none."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time

import pytest

from robo_eval.compete.check import check
from robo_eval.compete.ledger import Ledger
from robo_eval.compete.scores import board

PLAYER = """
import sys
from pathlib import Path
from robo_eval.compete.ledger import Ledger, Refusal
from robo_eval.compete.replay import packed
from robo_eval.core.kinds import EndReason

with Ledger.open(Path(sys.argv[1])) as ledger:
    ledger.serve("s")
    (team,) = ledger.teams()
    try:
        turns = ledger.claim(team, "s")
    except Refusal as err:
        sys.exit(0 if err.code == "no_attempts" else 1)
    for turn in turns:
        while turn is not None:
            turn = ledger.begin(turn)
            quality = (turn.trial.number + turn.episode) / 100
            row = ledger.row(
                turn, start_ns=1, duration_s=1.0, ticks=3, episode_return=quality,
                quality=quality, success=False, end_reason=EndReason.FAILURE,
            )
            where = turn.trial.number, turn.episode
            following = ledger.record(turn, row, packed([1, 2, 3]))
            print(*where, flush=True)
            ledger.declare(turn.attempt, *where, 0.25)
            turn = following
"""


def _play(folder, script, kill_after_s, environment):
    """Play until it is done or killed: which episodes were acknowledged, and how it ended."""
    with subprocess.Popen(
        [sys.executable, "-c", script, str(folder)],
        stdout=subprocess.PIPE, text=True, env=environment(),
    ) as player:  # fmt: skip
        if kill_after_s is not None:
            player.stdout.readline()
            time.sleep(kill_after_s)
            player.send_signal(signal.SIGKILL)
        rest, _ = player.communicate(timeout=600)
    return [tuple(map(int, line.split())) for line in rest.splitlines() if " " in line], player


@pytest.mark.parametrize(
    "kills", [3, pytest.param(25, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_a_kill_at_any_moment_loses_and_repeats_no_episode(contest, tmp_path, environment, kills):
    rng = random.Random(kills)
    trials = {"count": 3, "episodes": 4 + kills, "onset": 2, "controls": 2}
    Ledger.create(tmp_path / "c", contest.parse(attempts=1, trials=trials)).close_connection()
    with Ledger.open(tmp_path / "c") as ledger:
        contest.team(ledger, "alice")
    acknowledged = []
    for _ in range(kills):
        acknowledged += _play(tmp_path / "c", PLAYER, rng.uniform(0.0, 0.05), environment)[0]
    done, player = _play(tmp_path / "c", PLAYER, None, environment)
    assert player.returncode == 0
    acknowledged += done
    assert len(set(acknowledged)) == len(acknowledged)
    with Ledger.open(tmp_path / "c") as ledger:
        (attempt,) = ledger.attempts()
        played = [
            (link.trial, link.episode)
            for link in ledger.links(attempt.number)
            if link.kind == "episode"
        ]
        expected = [(trial, n) for trial in range(8) for n in range(4 + kills)]
        assert sorted(played) == expected
        assert set(acknowledged) <= set(played)
        assert attempt.ended_ns is not None
        board(ledger)
    assert check(tmp_path / "c", sample=0).problems == []
