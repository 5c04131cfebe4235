"""A run that is stopped at any moment goes on, and ends with the log of an undisturbed one."""

import importlib
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from robo_eval.core.plan import parse_plan
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.store import EpisodeStore
from robo_eval.log.verify import verify_trial
from robo_eval_sim.runner import run_simulated

PLAN = """
name: interrupted
tasks:
  - env: RoboEval/CartPole3D-v0
    levels: [0, 3, 9]
    difficulties: [easy, hard]
policies: [random, nothing, balancer]
episodes: {episodes}
traces: first
control: true
"""

# What two runs of one plan may differ in: when they ran, and by which commit of a moving checkout.
WALL_CLOCK = {"start_ns", "software"}

# Plays a trial in a process of its own and says what was committed.
PLAYER = """
import sys
from pathlib import Path
from robo_eval.core.errors import InterruptedRunError
from robo_eval.log.directory import TrialDirectory
from robo_eval_sim.runner import run_simulated

def play(folder, jobs, said):
    def say(done, planned, newest):
        said.send_bytes(newest.episode_id.encode())

    try:
        run_simulated(TrialDirectory.open(Path(folder)), jobs=jobs, on_progress=say)
    except InterruptedRunError:
        sys.exit(3)
"""


class Player:
    """A run under way that can be stopped by any signal.

    It is forked from a server that has everything imported, so that most of its short life is
    spent in the run and not before it.
    """

    def __init__(self, play, folder: Path, jobs: int) -> None:
        context = multiprocessing.get_context("forkserver")
        self._said, saying = context.Pipe(duplex=False)
        self.process = context.Process(target=play, args=(str(folder), jobs, saying))
        self.process.start()
        saying.close()

    def next_commit(self) -> set[str]:
        """The newest episode of the next commit; empty when there is none any more."""
        try:
            return {self._said.recv_bytes().decode()}
        except (EOFError, OSError):  # it ended, perhaps in the middle of a word
            return set()

    def stop(self, number: signal.Signals) -> bool:
        """Send a signal; False if it had ended before."""
        if not self.process.is_alive():
            return False
        os.kill(self.process.pid, number)
        return True

    def end(self) -> tuple[int, set[str]]:
        """Wait for the end: its exit code, and the rest of what was committed."""
        committed: set[str] = set()
        while newest := self.next_commit():
            committed |= newest
        self.process.join(600)
        assert self.process.exitcode is not None, "it does not end"
        return self.process.exitcode, committed


@pytest.fixture(scope="session")
def play(tmp_path_factory):
    """The function a player runs, where a fresh process finds it."""
    folder = tmp_path_factory.mktemp("player")
    (folder / "interruptions_player.py").write_text(PLAYER)
    sys.path.append(str(folder))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["robo_eval_sim.runner", "interruptions_player"])
    yield importlib.import_module("interruptions_player").play
    sys.path.remove(str(folder))


def content(trial: Path) -> dict[str, dict[str, object]]:
    """Rows by episode id without the wall clock."""
    with EpisodeStore(trial, durable=False) as store:
        rows = [asdict(episode) for episode in store.episodes()]
    found = {}
    for row in rows:
        assert row["episode_id"] not in found, "an episode is in the log twice"
        found[row["episode_id"]] = {k: v for k, v in row.items() if k not in WALL_CLOCK}
    return found


def differences(one: dict, other: dict) -> dict[str, object]:
    """Where two logs differ, short enough to read."""
    if one.keys() != other.keys():
        return {"ids": sorted(one.keys() ^ other.keys())}
    return {
        f"{episode_id}.{name}": (value, other[episode_id][name])
        for episode_id, row in one.items()
        for name, value in row.items()
        if value != other[episode_id][name]
    }


def undisturbed(folder: Path, episodes: int) -> dict[str, dict[str, object]]:
    trial = TrialDirectory.create(folder, parse_plan(PLAN.format(episodes=episodes), source="plan"))
    run_simulated(trial, jobs=1)
    return content(folder)


def interrupt_until_complete(
    play, folder: Path, episodes: int, *, seed: int, jobs: int, signals: list, most: int
) -> int:
    """Stop the run again and again at random moments; returns how often."""
    rng = random.Random(seed)
    TrialDirectory.create(folder, parse_plan(PLAN.format(episodes=episodes), source="plan"))
    acknowledged: set[str] = set()
    stopped = 0
    while True:
        player = Player(play, folder, jobs)
        # A few are stopped while they start, most a random moment after their first commit.
        sent = None
        if stopped < most:
            if rng.random() < 0.2:
                time.sleep(rng.uniform(0.0, 0.5 * jobs))
            else:
                acknowledged |= player.next_commit()
                time.sleep(rng.uniform(0.0, 0.05))
            sent = rng.choice(signals)
            if player.stop(sent):
                stopped += 1
            else:
                sent = None
        code, committed = player.end()
        acknowledged |= committed
        with EpisodeStore(folder, durable=False) as store:
            logged = store.ids()
        assert acknowledged <= logged, "an episode that was acknowledged is gone"
        if sent is None or code == 0:
            assert code == 0
            return stopped
        # A signal that comes before the run listens to it ends the process as signals do.
        assert code == -sent or (code == 3 and sent is not signal.SIGKILL)
        assert verify_trial(folder).ok, verify_trial(folder).problems


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.slow) for seed in range(4)])
def test_killed_at_random_moments_and_resumed(tmp_path, play, seed):
    # 4 x 13 = 52 kills, half of them in the long tests. Two workers commit more between two kills,
    # so they get more to do; fast machines as well.
    jobs, episodes = (2, 240) if seed == 0 else (1, 120)
    expected = undisturbed(tmp_path / "undisturbed", episodes)
    stopped = interrupt_until_complete(
        play, tmp_path / "killed", episodes, seed=seed, jobs=jobs, signals=[signal.SIGKILL], most=13
    )
    assert stopped == 13
    assert differences(content(tmp_path / "killed"), expected) == {}
    assert verify_trial(tmp_path / "killed").ok


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(4))
def test_any_signal_at_random_moments(tmp_path, play, seed):
    # 4 x 12 = 48 signals.
    jobs, episodes = ((1, 120), (2, 240))[seed % 2]
    expected = undisturbed(tmp_path / "undisturbed", episodes)
    signals = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL]
    stopped = interrupt_until_complete(
        play, tmp_path / "stopped", episodes, seed=100 + seed, jobs=jobs, signals=signals, most=12
    )
    assert stopped == 12
    assert differences(content(tmp_path / "stopped"), expected) == {}
    assert verify_trial(tmp_path / "stopped").ok


def test_parallel_and_serial_runs_log_the_same(tmp_path):
    expected = undisturbed(tmp_path / "serial", episodes=3)
    plan = parse_plan(PLAN.format(episodes=3), source="plan")
    run_simulated(TrialDirectory.create(tmp_path / "parallel", plan), jobs=2)
    assert differences(content(tmp_path / "parallel"), expected) == {}
    for trace in (tmp_path / "serial/traces").iterdir():
        assert trace.read_bytes() == (tmp_path / "parallel/traces" / trace.name).read_bytes()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_polite_stop_says_how_to_go_on(tmp_path, environment, number):
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN.format(episodes=200))
    process = subprocess.Popen(
        [sys.executable, "-m", "robo_eval", "run", plan, "--out", tmp_path / "trial"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    deadline = time.monotonic() + 240
    database = tmp_path / "trial/episodes.db"
    while not (database.exists() and _rows(tmp_path / "trial")):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.02)
    process.send_signal(number)
    _, err = process.communicate(timeout=240)
    assert process.returncode == 3
    assert "Traceback" not in err
    assert f"stopped by {number.name}" in err
    assert "robo-eval resume" in err
    status = TrialDirectory.open(tmp_path / "trial").status()
    assert status.startswith("interrupted at ")


def _rows(trial: Path) -> int:
    with EpisodeStore(trial, durable=False) as store:
        return len(store)


@pytest.mark.slow
def test_no_worker_outlives_a_killed_run(tmp_path, play):
    folder = tmp_path / "trial"
    TrialDirectory.create(folder, parse_plan(PLAN.format(episodes=100), source="plan"))
    player = Player(play, folder, 2)
    assert player.next_commit()
    children = _children(player.process.pid)
    assert len(children) >= 2
    player.process.kill()
    player.process.join()
    deadline = time.monotonic() + 120
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < deadline, "a worker still runs"
        time.sleep(0.05)


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]


@pytest.mark.slow
def test_an_episode_that_kills_its_worker_is_lost_and_the_others_are_not(tmp_path, cli):
    (tmp_path / "deadly.py").write_text(
        "import os\n"
        "class Deadly:\n"
        "    name, digest = 'deadly', '2' * 64\n"
        "    def reset(self, *, seed=None):\n"
        "        self.start = None\n"
        "    def act(self, observation):\n"
        "        if self.start is None:\n"
        "            self.start = abs(observation[0])\n"
        "        if self.start > 2.8:\n"
        "            os._exit(9)\n"
        "        return 0\n"
        "def make(): return Deadly()\n"
    )
    (tmp_path / "plan.yaml").write_text(
        "name: deadly\n"
        "tasks: [{levels: [0]}]\n"
        "policies: [nothing, {name: deadly, factory: 'deadly:make'}]\n"
        "episodes: 60\n"
        "traces: none\n"
    )
    run = cli("run", "plan.yaml", "--out", "trial", "--no-report", "--jobs", "2")
    policies = json.loads(cli("metrics", "trial", "--json").out)["policies"]
    by_name = {row["policy"]: row for row in policies}
    assert by_name["nothing"]["coverage"]["scored"] == 60
    lost = 60 - by_name["deadly"]["coverage"]["scored"]
    assert 0 < lost < 30
    assert run.code == (1 if lost > 3 else 0)
    with EpisodeStore(tmp_path / "trial", durable=False) as store:
        rows = list(store.episodes())
    assert sum(row.end_reason == "lost" for row in rows) == lost
    assert len(rows) == 120
