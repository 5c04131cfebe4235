"""A competition from one file, by the commands people give: served, killed, tried, practised."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from robo_eval.compete.client import play
from robo_eval.compete.ledger import Ledger

FILE = """
name: tiny cup
tasks: [{env: RoboEval/CartPole3D-v0, levels: [1]}]
trials: {count: 1, episodes: 3, onset: 1}
closes: 2099-01-01T00:00:00Z
"""
PATIENCE_S = 120.0


class Server:
    """`robo-eval compete serve` as a process of its own."""

    def __init__(
        self, folder: Path, *options: str, port: str = "0", text: str = FILE,
        program: tuple[str, ...] = ("-m", "robo_eval"), name: str = "server",
    ) -> None:  # fmt: skip
        (folder / "cup.yaml").write_text(text)
        self.log = (folder / f"{name}.log").open("w+")
        command = [
            sys.executable, *program, "compete", "serve", "cup.yaml", "--out", "cup",
            "--port", port, "--workers", "1", *options,
        ]  # fmt: skip
        self.process = subprocess.Popen(
            command, cwd=folder, stdout=self.log, stderr=subprocess.STDOUT, text=True
        )
        self.url = self.said(r"is served at (\S+)")

    def said(self, pattern: str) -> str:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            self.log.seek(0)
            text = self.log.read()
            if found := re.search(pattern, text):
                return found[1]
            assert self.process.poll() is None, text
            time.sleep(0.05)
        raise AssertionError(text)

    def end(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=PATIENCE_S)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    started: list[Server] = []

    def start(*options: str, **fields: Any) -> Server:
        started.append(Server(tmp_path, *options, **fields))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.end(signal.SIGKILL)
        one.log.close()


class Agent:
    def act(self, observation: Any) -> int:
        return 0

    def declare(self) -> dict[str, float]:
        return {"probability": 0.5}


def play_into_the_second(env: Any) -> None:
    """Play one episode to its end, speak for it, and begin the next."""
    env.reset()
    while not any(env.step(0)[2:4]):
        pass
    env.unwrapped.declare(probability=0.25)
    env.reset()
    env.step(0)


def test_a_killed_server_goes_on_where_it_stopped(server: Any, tmp_path: Path) -> None:
    first = server("--team", "brave")
    token = first.said(r"token of brave: (\S+)")
    env = gymnasium.make("RoboEval/Remote-v0", url=first.url, token=token)
    play_into_the_second(env)
    first.end(signal.SIGKILL)
    second = server(port=first.url.rstrip("/").rpartition(":")[2])
    assert second.url == first.url
    # The episode that was under way is played again, and nothing else.
    assert env.step(0)[4] == {"given_back": True}
    _, info = env.reset()
    assert (info["episode_index"], env.unwrapped.left) == (1, 2)
    assert play(env, Agent()) == 2
    env.close()
    assert second.end() == 0
    with Ledger.open(tmp_path / "cup") as ledger:
        links = list(ledger.links(1))
    assert [(link.kind, link.episode) for link in links] == [
        ("episode", 0), ("declare", 0), ("episode", 1), ("declare", 1), ("episode", 2),
        ("declare", 2),
    ]  # fmt: skip
    assert not any(link.problem for link in links)


def test_a_rehearsal_keeps_nothing_and_try_says_how_it_went(server: Any, tmp_path: Path) -> None:
    dry = server("--rehearse", "--team", "x")
    token = dry.said(r"token of x: (\S+)")
    tried = compete(tmp_path, "try", dry.url, "--token", token, "--json")
    found = json.loads(tried.stdout)
    assert found["team"] == "x"
    assert 1 <= found["tasks"][0]["ticks"] <= 200
    wrong = compete(tmp_path, "try", dry.url, "--token", "0" * 32)
    assert wrong.returncode == 2
    assert "ROBO_EVAL_COMPETE_TOKEN" in wrong.stderr
    assert dry.end() == 0
    assert not (tmp_path / "cup").exists()
    nobody = compete(tmp_path, "try", dry.url, "--token", token)
    assert nobody.returncode == 2
    assert dry.url.rstrip("/") in nobody.stderr
    assert len(nobody.stderr.splitlines()) == 1


def compete(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "robo_eval", "compete", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S)


def test_practice_plays_the_same_with_other_seeds(tmp_path: Path) -> None:
    (tmp_path / "cup.yaml").write_text(FILE)
    done = compete(tmp_path, "practice", "cup.yaml", "--agent", "nothing", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["episodes"], found["trials"]) == (3, 1)
    assert 0.0 < found["mean_quality"] <= 1.0
    assert list(tmp_path.iterdir()) == [tmp_path / "cup.yaml"]


def test_the_organiser_calls_a_policy_that_a_team_serves(server: Any, tmp_path: Path) -> None:
    from robo_eval.agents import load_policy
    from robo_eval.agents.serve import PolicyServer

    policies = PolicyServer(lambda: load_policy("balancer"), port=0)
    policies.start()
    try:
        called = server("--policy", f"served={policies.url}")
        assert called.said(r"served: (\d+) episodes") == "3"
    finally:
        policies.stop()
    assert called.end() == 0
    with Ledger.open(tmp_path / "cup") as ledger:
        assert [team.name for team in ledger.teams()] == ["served"]
        rows = [link.row for link in ledger.links(1)]
    assert len(rows) == 3
    assert all(row.fault_by is None and 0.0 < row.quality <= 1.0 for row in rows)


def test_baselines_go_on_where_a_killed_server_stopped_and_take_no_rank(
    server: Any, tmp_path: Path
) -> None:
    text = FILE + "baselines: [nothing, balancer]\n"
    first = server(text=text)
    assert first.said(r"baseline nothing: (\d+) episodes") == "3"
    first.end(signal.SIGKILL)
    second = server(text=text)
    deadline = time.monotonic() + PATIENCE_S
    with Ledger.open(tmp_path / "cup") as ledger:
        while [one.ended_ns is None for one in ledger.attempts()] != [False, False]:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    assert second.end() == 0
    board = compete(tmp_path, "leaderboard", "cup", "--json")
    found = {one["team"]: one for one in json.loads(board.stdout)["entries"]}
    for name, attempt in (("nothing", 1), ("balancer", 2)):
        assert (found[name]["is_baseline"], found[name]["place"]) == (True, None)
        assert (found[name]["state"], found[name]["played"]) == ("ended", 3)
        with Ledger.open(tmp_path / "cup") as ledger:
            links = list(ledger.links(attempt))
        assert [(link.run, link.episode) for link in links] == [(1, 0), (1, 1), (1, 2)]
        assert not any(link.problem for link in links)


def test_practice_prints_the_leaderboard_of_its_baselines(tmp_path: Path) -> None:
    (tmp_path / "cup.yaml").write_text(FILE + "baselines: [nothing]\n")
    done = compete(tmp_path, "practice", "cup.yaml", "--agent", "balancer", "--baselines", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["episodes"] == 3
    assert [one["team"] for one in told["leaderboard"]["entries"]] == ["you", "nothing"]
    assert "baseline nothing: 3 episodes" in done.stderr


def test_another_competition_in_the_same_folder_is_refused(server: Any, tmp_path: Path) -> None:
    server().end()
    (tmp_path / "cup.yaml").write_text(FILE.replace("count: 1", "count: 2"))
    done = compete(tmp_path, "serve", "cup.yaml", "--out", "cup", "--port", "0")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "cup" in done.stderr
