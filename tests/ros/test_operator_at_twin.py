"""A person at a terminal plays a blind trial on a twin: verdicts, a void, pauses, a stop."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import select
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from robo_eval_incidents import open_log
from tests.ros.conftest import end

PLAN = """
name: judged
tasks: [{env: RoboEval/CartPole3D-v0, kwargs: {balls: 0}, levels: [9]}]
policies: [random, nothing]
episodes: 2
sides: [sim, twin]
max_missed_ticks: null
order: interleaved
blind: true
judging: {verdict: operator, milestones: [stood up]}
"""
READY, VERDICT, MILESTONE, VOID, RESET, PAUSED = (
    "Ready?", "Did it succeed?", "Milestone: stood up?", "Void, why?", "Reset?", "paused, the",
)  # fmt: skip


class Person:
    """A `robo-eval` on a terminal of its own, and who types there."""

    def __init__(self, arguments: list[str], environment: dict[str, str]) -> None:
        primary, secondary = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "robo_eval", *arguments],
            stdin=secondary,
            stdout=secondary,
            stderr=secondary,
            env=environment,
            start_new_session=True,
        )
        os.close(secondary)
        self._fd = primary
        self.seen = ""
        self._from = 0

    def _read(self, seconds: float) -> bool:
        if not select.select([self._fd], [], [], seconds)[0]:
            return True
        try:
            text = os.read(self._fd, 4096).decode("utf-8", "replace")
        except OSError:
            return False
        self.seen += text.replace("\r\n", "\n")
        return bool(text)

    def sees(self, text: str, seconds: float = 240.0) -> None:
        """Wait until something new stands on the screen."""
        deadline = time.monotonic() + seconds
        while text not in self.seen[self._from :]:
            assert time.monotonic() < deadline, f"no {text!r} in {self.seen[self._from :]}"
            assert self._read(0.1) or text in self.seen[self._from :], self.seen
        self._from = self.seen.index(text, self._from) + len(text)

    def answers(self, question: str, answer: str) -> None:
        self.sees(question)
        time.sleep(0.3)  # a person reads first; what is typed before is not an answer
        os.write(self._fd, f"{answer}\n".encode())

    def stays_silent(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._read(0.1)

    def leaves(self) -> int:
        deadline = time.monotonic() + 60.0
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.seen
            self._read(0.1)
        while self._read(0.0) and select.select([self._fd], [], [], 0.1)[0]:
            pass
        os.close(self._fd)
        return self.process.returncode


@pytest.fixture
def sit_down(ros_environment: dict[str, str]) -> Iterator[Callable[..., Person]]:
    people: list[Person] = []

    def start(*arguments: object) -> Person:
        people.append(Person([*map(str, arguments)], ros_environment))
        return people[-1]

    yield start
    for person in people:
        end(person.process)


def rows(trial: Path) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(f"file:{trial / 'episodes.db'}?mode=ro", uri=True)) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute("SELECT * FROM episodes ORDER BY sequence")]


def notes(trial: Path, name: str) -> list[dict[str, str]]:
    with (trial / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_a_person_judges_voids_pauses_stops_and_goes_on(sit_down, cli, tmp_path, twin):
    robot = tmp_path / "robot.yaml"
    robot.write_text(twin)
    plan, trial = tmp_path / "plan.yaml", tmp_path / "trial"
    plan.write_text(PLAN)

    at = sit_down("run", plan, "-o", trial, "--sides", "sim,twin", "--robot", robot)
    at.answers("Who is at the robot?", "Kim")
    # Nothing is typed for a while: nothing trips, nothing is stale.
    at.sees(READY)
    at.stays_silent(3.0)
    os.write(at._fd, b"\n")
    at.answers(VERDICT, "yes")
    at.answers(MILESTONE, "no")
    at.answers(READY, "pause")
    at.answers(PAUSED, "")
    at.answers(READY, "")
    at.answers(VERDICT, "void")
    at.answers(VOID, "bad luck")
    at.answers(VOID, "1 pole was held")
    at.answers(READY, "")
    at.answers(VERDICT, "stop")
    at.answers(VERDICT, "c")
    at.answers(MILESTONE, "yes")
    assert at.leaves() == 3, at.seen
    assert "stopped by the operator after 3 episodes" in at.seen
    shown = at.seen.replace(str(trial), "")
    assert not re.search(r"\brandom\b|\bnothing\b", shown), shown
    assert "t0-l09-easy-A-s1000" in shown
    assert "t0-l09-easy-B-s1000" in shown
    assert "[yes, no, cannot say, void, pause, stop]" in shown

    first, void, unjudged = rows(trial)
    assert (first["end_reason"], first["success"], first["operator"]) == ("success", 1, "Kim")
    assert first["quality"] < 1.0  # the task's own measure stays
    assert (void["end_reason"], void["end_detail"]) == ("void", "operator_error: pole was held")
    assert void["void_by"] == "Kim"
    assert (unjudged["end_reason"], unjudged["success"]) == ("no_verdict", None)
    verdicts = notes(trial, "verdicts")
    assert [line["verdict"] for line in verdicts] == ["success", "void", "cannot_say"]
    assert json.loads(verdicts[0]["milestones"]) == {"stood up": "no"}
    assert {line["operator"] for line in verdicts} == {"Kim"}
    assert {line["blind"] for line in verdicts} == {"true"}
    (pause,) = notes(trial, "pauses")
    assert pause["asked_by"] == "prompt"
    with open_log(trial, read_only=True) as log:
        assert [record.kind for record in log.records()] == ["opened", "nil"]

    # Somebody else lets it wait; then the rest is played.
    assert cli("pause", trial).code == 0
    proved_ns = (trial / "preflight.json").stat().st_mtime_ns
    at = sit_down("resume", trial, "--operator", "Lee")
    at.sees("is paused")
    at.stays_silent(10.0)
    assert READY not in at.seen
    # Nothing moves in a pause, not even for the preflight.
    assert (trial / "preflight.json").stat().st_mtime_ns == proved_ns
    assert cli("pause", trial, "--off").code == 0
    for _ in range(2):
        at.answers(READY, "r")
        at.answers(VERDICT, "n")
        at.answers(MILESTONE, "c")
    assert at.leaves() == 1, at.seen  # one verdict is missing
    assert (trial / "preflight.json").stat().st_mtime_ns > proved_ns
    after = at.seen
    assert "t0-l09-easy-random" not in after
    assert "no verdict" in after
    assert re.search(r"\brandom\b", after)  # complete: now the names are told
    played = [row for row in rows(trial) if row["side"] == "twin"]
    assert [row["operator"] for row in played] == ["Kim"] * 3 + ["Lee"] * 2
    assert played[3]["episode_id"] == f"{void['episode_id']}-a2"
    # The second policy of a seed started where the first one did.
    starts = [json.loads(row["initial_state"]) for row in (played[0], played[3])]
    assert starts[0]["cart_position"] == pytest.approx(starts[1]["cart_position"], abs=0.05)
    sim = [row for row in rows(trial) if row["side"] == "sim"]
    assert {row["pair_id"] for row in sim} == {
        row["pair_id"] for row in played if row["quality"] is not None
    }
    assert notes(trial, "pauses")[1]["asked_by"] == "command"
    metrics = json.loads(cli("metrics", trial, "--json").out)
    assert "no_verdict" in json.dumps(metrics)


def test_a_plan_that_wants_a_verdict_wants_a_name(cli, tmp_path):
    plan, trial = tmp_path / "plan.yaml", tmp_path / "trial"
    plan.write_text(PLAN)
    done = cli("run", plan, "-o", trial, "--sides", "twin")
    assert done.code == 2
    assert "--operator NAME" in done.err
    assert not trial.exists()
