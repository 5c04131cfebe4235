"""A physical run that is killed at any moment loses no row, and ends as if it had not been killed.

`ROBO_EVAL_KILLS` is how often; more take longer.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from robo_eval.log.verify import verify_trial
from robo_eval_incidents import open_log
from robo_eval_incidents.verify import verify_log
from robo_eval_robot.lock import lock_file
from tests.ros.conftest import end

HERE = Path(__file__).parent
MARK = "ROBO_EVAL_TEST_RUN"
"""Environment variable by which all that a run has started is found, whoever its parent is."""
LANES = 2
"""Trials at the same time, each with a robot and a graph of its own."""
EPISODES = 6
DEADLINE_S = 120.0
PLAN = f"""
name: kills
tasks: [{{env: RoboEval/CartPole3D-v0, kwargs: {{balls: 0}}, levels: [0]}}]
policies: [random]
episodes: {EPISODES}
sides: [sim, twin]
max_missed_ticks: null
retries: 10
"""
HARD = (signal.SIGKILL,)
ANY = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def rows(trial: Path) -> list[tuple[Any, ...]]:
    """All that is committed, in order."""
    if not (trial / "episodes.db").exists():
        return []
    with closing(sqlite3.connect(f"file:{trial / 'episodes.db'}?mode=ro", uri=True)) as database:
        try:
            return database.execute("SELECT * FROM episodes ORDER BY sequence").fetchall()
        except sqlite3.OperationalError:
            return []  # killed before there was a table


def names(trial: Path) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(f"file:{trial / 'episodes.db'}?mode=ro", uri=True)) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute("SELECT * FROM episodes ORDER BY sequence")]


def marked(token: str) -> dict[int, str]:
    """Running processes that have a mark in their environment, with their command lines."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"{MARK}={token}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z":
                    command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    found[int(folder.name)] = command
    return found


def is_recording(trial: Path, known: set[str]) -> bool:
    """Whether a bag is there that was not."""
    folder = trial / "traces"
    return folder.exists() and bool({path.name for path in folder.iterdir()} - known)


@dataclass
class Lane:
    """Trials on one robot, one after the other, killed again and again."""

    folder: Path
    number: int
    text: str
    """Its robot file."""
    environment: dict[str, str]
    rng: random.Random
    numbers: tuple[int, ...] = HARD
    victims: tuple[str, ...] = ("conductor",)
    kills: Counter[str] = field(default_factory=Counter)
    trials: int = 0
    played: int = 0
    gave_up: int = 0
    slowest_s: float = 0.0
    trial: Path = Path()
    process: subprocess.Popen[str] | None = None
    witness: subprocess.Popen[str] | None = None

    def __post_init__(self) -> None:
        self.robot = f"kills-{os.getpid()}-{self.number}"
        self.folder.mkdir()
        text = re.sub("^name: .*$", f"name: {self.robot}", self.text, count=1, flags=re.MULTILINE)
        (self.folder / "robot.yaml").write_text(text)
        (self.folder / "plan.yaml").write_text(PLAN)
        self.environment = {**self.environment, MARK: self.robot}

    def begin(self, *command: object) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [sys.executable, *map(str, command)],
            stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=self.folder, env=self.environment,
        )  # fmt: skip

    # What is looked at.

    def heard(self) -> dict[str, Any]:
        """What a process that nobody kills has heard of the guard's commands."""
        if self.witness is None:
            del self.environment[MARK]
            self.witness = self.begin(HERE / "rig_faults.py", "{}")
            self.environment[MARK] = self.robot
        assert self.witness.stdin is not None
        assert self.witness.stdout is not None
        self.witness.stdin.write("seen\n")
        self.witness.stdin.flush()
        while True:
            said = json.loads(self.witness.stdout.readline())
            if "seen" in said:
                seen: dict[str, Any] = said["seen"]
                return seen

    def wait_gone(self) -> None:
        """All that the run has started ends by itself."""
        since = time.monotonic()
        while left := marked(self.robot):
            assert time.monotonic() < since + 60.0, f"still there: {left}"
            time.sleep(0.02)
        self.slowest_s = max(self.slowest_s, time.monotonic() - since)

    def check_rows(self, before: list[tuple[Any, ...]]) -> None:
        """Each row that was committed is there as it was, and none twice."""
        after = rows(self.trial)
        assert after[: len(before)] == before
        if after:
            ids = [row["episode_id"] for row in names(self.trial)]
            assert len(ids) == len(set(ids))

    def check_free(self) -> None:
        path = lock_file(self.robot)
        if path.exists():
            with path.open("r+") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def check_whole(self) -> None:
        """The trial has what an undisturbed one has."""
        report = verify_trial(self.trial)
        assert report.ok, report.problems
        logged = names(self.trial)
        scored = Counter(
            (row["side"], row["pair_id"]) for row in logged if row["quality"] is not None
        )
        assert len(scored) == 2 * EPISODES, scored
        assert set(scored.values()) == {1}
        bags = {path.name for path in (self.trial / "traces").iterdir() if path.is_dir()}
        assert bags == {row["episode_id"] for row in logged if row["side"] == "twin"} & bags
        for row in logged:
            assert row["end_reason"] in ("success", "failure", "safety_stop", "lost", "void"), row
            if row["side"] == "twin" and row["quality"] is not None:
                assert row["trace_sha256"], row
        self.played += len(logged)
        self.check_incidents(logged)

    def check_incidents(self, logged: list[dict[str, Any]]) -> None:
        """Each stop of the guard is one draft with its trace, and none is lost or there twice."""
        assert verify_log(self.trial / "incidents.db").ok
        with open_log(self.trial, read_only=True) as log:
            incidents, kinds = log.incidents(), [record.kind for record in log.records()]
        of = Counter(incident.report.episode_id for incident in incidents)
        for row in logged:
            if row["side"] == "twin" and row["end_reason"] in ("safety_stop", "lost"):
                assert of[row["episode_id"]] == 1, (row["end_reason"], row["end_detail"])
        assert set(of) <= {None, *(row["episode_id"] for row in logged)}
        assert incidents or "nil" in kinds
        with_trace = {row["episode_id"] for row in logged if row["trace_uri"]}
        for incident in incidents:
            start = f"incidents/{incident.incident_id}-"
            pieces = [each.uri for each in incident.evidence if each.uri.startswith(start)]
            has_trace = incident.report.episode_id in with_trace
            assert len(pieces) == 1 or not has_trace, incident.report.description
            assert all((self.trial / uri).is_file() for uri in pieces)

    def check_end(self, code: int, out: str, err: str) -> None:
        """It ended by the signal, or by itself: whole, or with one line that says why it cannot."""
        # Python itself answers Ctrl-C so before it runs any of our lines.
        assert "Traceback" not in err or err.endswith("KeyboardInterrupt\n"), err
        if code == 1:
            # On a busy machine the twin is late at times, and the preflight takes it for a robot
            # that does not do as it is told. And a run whose processes die a fourth time gives up.
            self.gave_up += 1
            allowed = ("preflight failed", "without a score", "guard does not", "cannot be reset")
            is_known = any(text in err for text in allowed) or "conductor" not in self.victims
            assert is_known, (out, err)
            return
        signals = {-number for number in ANY}
        assert code in {0, 3, 130} | signals, (code, out, err)

    # What is done.

    def go_on(self) -> subprocess.Popen[str]:
        """Begin a trial, or go on with the one that is there."""
        if not (self.trial / "manifest.json").exists() or self.trial == Path():
            self.trials += 1
            self.trial = self.folder / f"trial{self.trials}"
            what: tuple[object, ...] = (
                "run", "plan.yaml", "-o", self.trial, "--sides", "twin", "--robot", "robot.yaml",
            )  # fmt: skip
        else:
            what = ("resume", self.trial)
        self.process = self.begin("-m", "robo_eval", *what, "--json", "--no-report")
        return self.process

    def wait_moment(self, process: subprocess.Popen[str]) -> None:
        """Until a random moment: at the start, or while episodes are played."""
        traces = self.trial / "traces"
        known = {path.name for path in traces.iterdir()} if traces.exists() else set()
        if self.rng.random() < 0.35:
            until = time.monotonic() + self.rng.uniform(0.0, 7.0)
        else:
            until = time.monotonic() + DEADLINE_S
            while not is_recording(self.trial, known) and process.poll() is None:
                assert time.monotonic() < until, "no episode began"
                time.sleep(0.01)
            until = time.monotonic() + self.rng.uniform(0.0, 2.0)
        while time.monotonic() < until and process.poll() is None:
            time.sleep(0.002)

    def find(self, victim: str, process: subprocess.Popen[str]) -> int | None:
        if victim == "conductor":
            return process.pid
        modules = {"guard": ".guard_node", "recorder": ".recorder", "twin": ".twin_node"}
        running = marked(self.robot).items()
        return next((pid for pid, line in running if f"{modules[victim]} " in line), None)

    def kill(self) -> None:
        """Play on until a random moment, kill, and look at what is left."""
        heard = self.heard()["commands"]
        process = self.process or self.go_on()
        self.wait_moment(process)
        victim, number = self.rng.choice(self.victims), self.rng.choice(self.numbers)
        before = rows(self.trial)
        pid = self.find(victim, process)
        if process.poll() is None and pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
                self.kills[f"{victim} {signal.Signals(number).name}"] += 1
                with (self.folder / "kills.txt").open("a") as file:
                    print(self.trial.name, len(before), *self.kills.items(), file=file)
        if victim == "conductor" or process.poll() is not None:
            out, err = process.communicate(timeout=DEADLINE_S)
            self.process = None
            self.check_end(process.returncode, out, err)
            self.wait_gone()
            self.check_free()
            said = self.heard()
            if victim == "conductor" and said["commands"] > heard:
                assert said["last"] == [0.0, 0.0]
            assert (said["broken_commands"], said["broken_states"]) == (0, 0)
        self.check_rows(before)
        if self.process is None and not self.missing():
            self.finish()

    def missing(self) -> int:
        if not rows(self.trial):
            return EPISODES
        scored = {row["pair_id"] for row in names(self.trial) if row["quality"] is not None}
        return EPISODES - len(scored)

    def finish(self) -> None:
        """Let a trial end undisturbed; the next kill is of another."""
        if self.process is not None:
            out, err = self.process.communicate(timeout=DEADLINE_S)
            self.process = None
            assert "Traceback" not in err, err
            self.wait_gone()
        if not (self.trial / "manifest.json").exists():
            return
        before = rows(self.trial)
        found = self.begin("-m", "robo_eval", "recover", self.trial, "--json")
        out, err = found.communicate(timeout=DEADLINE_S)
        assert (found.returncode, json.loads(out)["failed"]) == (0, []), (out, err)
        self.check_rows(before)
        before = rows(self.trial)
        for _ in range(3):
            last = self.begin("-m", "robo_eval", "resume", self.trial, "--json", "--no-report")
            out, err = last.communicate(timeout=DEADLINE_S)
            self.check_end(last.returncode, out, err)
            if last.returncode == 0:
                break
        assert last.returncode == 0, (out, err)
        self.check_rows(before)
        self.check_whole()
        self.wait_gone()
        self.check_free()
        self.trial = Path()

    def close(self) -> None:
        for process in (self.process, self.witness):
            if process is not None:
                end(process)
        for pid in marked(self.robot):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        lock_file(self.robot).unlink(missing_ok=True)


@pytest.fixture
def run_lanes(
    tmp_path: Path,
    own_graph: Callable[[Path], AbstractContextManager[dict[str, str]]],
    twin: str,
    record_property: Callable[..., None],
) -> Iterator[Callable[..., list[Lane]]]:
    """Kill a number of times, in several trials at once, and let each end."""
    lanes: list[Lane] = []
    graphs = ExitStack()

    def call(kills: int, **how: Any) -> list[Lane]:
        seed = int(os.environ.get("ROBO_EVAL_KILLS_SEED", "0"))
        lanes.extend(
            Lane(
                tmp_path / f"lane{n}",
                n,
                twin,
                graphs.enter_context(own_graph(tmp_path)),
                random.Random(f"{seed} {n} {how}"),
                **how,
            )
            for n in range(LANES)
        )

        def play(lane: Lane) -> None:
            share = kills // LANES + (lane.number < kills % LANES)
            # A run may end by itself before its moment: that was no kill.
            tries = 0
            while lane.kills.total() < share:
                tries += 1
                assert tries <= 2 * share + 5, lane.kills
                lane.kill()
            lane.finish()

        with ThreadPoolExecutor(LANES) as pool:
            list(pool.map(play, lanes))
        for lane in lanes:
            record_property("kills", dict(lane.kills))
        return lanes

    with graphs:
        yield call
        for lane in lanes:
            lane.close()


def times(default: int) -> int:
    return int(os.environ.get("ROBO_EVAL_KILLS", default))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "victims", [("conductor",), ("guard", "recorder", "twin")], ids=["conductor", "another"]
)
def test_killed_at_random_moments_and_resumed(
    run_lanes: Callable[..., list[Lane]], victims: tuple[str, ...]
) -> None:
    is_conductor = victims == ("conductor",)
    wanted = times(10 if is_conductor else 4)
    since = time.monotonic()
    lanes = run_lanes(wanted, victims=victims, numbers=ANY if is_conductor else HARD)
    kills = sum((lane.kills for lane in lanes), Counter())
    assert kills.total() == wanted
    gave_up = sum(each.gave_up for each in lanes)
    assert gave_up <= 2 + wanted // 2
    print(  # noqa: T201 - shown by `pytest -s`
        f"{dict(kills)} in {time.monotonic() - since:.0f} s; {sum(each.trials for each in lanes)}"
        f" trials, {sum(each.played for each in lanes)} rows; {gave_up} runs gave up by themselves;"
        f" all gone within {max(each.slowest_s for each in lanes):.1f} s"
    )
