"""An episode in which the computer came too late is void and played again, a few times in a run."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.plan import parse_plan
from robo_eval.core.schedule import schedule

PLAN = """
name: late
tasks: [{env: RoboEval/CartPole3D-v0, kwargs: {balls: 0}, levels: [0]}]
policies: [{name: stalls, factory: "stalls:Stalls"}]
episodes: 1
sides: [twin]
"""
STALLS = """
import os, pathlib, signal, threading, time
from robo_eval.agents.cartpole3d.balancer import Balancer

class Stalls(Balancer):
    "In its fifth tick the conductor gets no processor, once the policy has answered."

    def reset(self, *, seed=None):
        super().reset(seed=seed)
        self.ticks = 0

    def act(self, observation):
        self.ticks += 1
        if self.ticks == 5:
            how = pathlib.Path("stalls.txt").read_text()
            if how == "computer":
                threading.Timer(0.01, stall).start()
            elif how == "policy":
                stall()
        return super().act(observation)

def stall():
    os.kill(os.getppid(), signal.SIGSTOP)
    time.sleep(0.4)
    os.kill(os.getppid(), signal.SIGCONT)
"""


@pytest.fixture
def folder(tmp_path: Path, twin: str) -> Path:
    """A folder with a plan, a robot, and a policy that stalls the conductor."""
    (tmp_path / "stalls.py").write_text(STALLS)
    (tmp_path / "stalls.txt").write_text("computer")
    (tmp_path / "plan.yaml").write_text(PLAN)
    (tmp_path / "robot.yaml").write_text(twin)
    return tmp_path


def rows(trial: Path) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(f"file:{trial / 'episodes.db'}?mode=ro", uri=True)) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute("SELECT * FROM episodes ORDER BY sequence")]


@pytest.mark.slow
def test_a_late_computer_voids_an_episode_which_is_played_again_and_resumed(
    cli: Callable[..., Any], folder: Path
) -> None:
    where = ("-o", "trial", "--sides", "twin", "--robot", "robot.yaml", "--no-report")
    done = cli("run", "plan.yaml", *where)
    assert done.code == 1, done.err
    logged = rows(folder / "trial")
    assert [row["attempt"] for row in logged] == [1, 2, 3]
    for row in logged:
        assert (row["end_reason"], row["quality"], row["void_by"]) == ("void", None, None)
        assert row["end_detail"].startswith("late_computer: ")
        measured = json.loads(row["control_quality"])
        assert 4 < measured["late_ticks"] <= measured["missed_ticks"]
        assert row["trace_sha256"]
        assert row["exposure_s"] > 0.0
    # The same time, taken by the policy, is the policy's.
    (folder / "stalls.txt").write_text("policy")
    cli("resume", "trial", "--no-report")
    *voids, last = rows(folder / "trial")
    assert voids[:3] == logged
    assert last["end_reason"] in ("success", "failure", "void")


def test_more_missed_ticks_than_the_plan_allows_void_whatever_the_task_says() -> None:
    pytest.importorskip("rclpy")
    from robo_eval_robot.episode import Played, _score

    played = Played(rewards=[0.005] * 200, truncated=True)
    for text, ends in (
        ("", {0: "success", 4: "success", 5: "void"}),
        ("max_missed_ticks: 0\n", {0: "success", 1: "void"}),
        ("max_missed_ticks: null\n", {10_000: "success"}),
    ):
        plan = parse_plan(PLAN + text, source="plan")
        (planned,) = schedule(plan, Side.TWIN)
        for late, end in ends.items():
            found = _score(plan, planned, played, late)
            assert found.end_reason.value == end
            if found.end_reason is EndReason.VOID:
                assert (found.quality, found.success, found.void_by) == (None, None, None)
                assert found.detail == (
                    f"late_computer: {late} control ticks were late, {plan.max_missed_ticks} are"
                    " allowed"
                )


def test_an_episode_that_is_to_be_played_again_is_not_done() -> None:
    pytest.importorskip("rclpy")
    from robo_eval_robot.conductor import _AGAIN, _Run

    run = object.__new__(_Run)
    plan = parse_plan(PLAN, source="plan")
    run._trial = SimpleNamespace(plan=plan)
    run.planned = schedule(plan, Side.TWIN)
    name = run.planned[0].base_id
    for ends, taken, left in (
        ([], 0, 1),
        ([EndReason.VOID], 1, 1),
        ([EndReason.VOID, EndReason.SUCCESS], 1, 0),
        ([EndReason.VOID] * (_AGAIN + 1), _AGAIN + 1, 0),
    ):
        run._attempts, run._taken = {name: ends}, Counter({name: taken})
        assert len(run._left()) == left


def test_an_episode_that_is_lost_keeps_what_was_played_of_it() -> None:
    pytest.importorskip("rclpy")
    from robo_eval_robot.attempt import Attempt
    from robo_eval_robot.conductor import _Run
    from robo_eval_robot.episode import Played
    from robo_eval_robot.link import RobotLostError

    run: Any = object.__new__(_Run)
    run._config = SimpleNamespace(control_rate_hz=50.0)
    run._bring_up = lambda err, episode_id: SimpleNamespace(uri=f"traces/{episode_id}: {err}")
    (planned,) = schedule(parse_plan(PLAN, source="plan"), Side.TWIN)
    played = Played(rewards=[0.005] * 150, start_ns=5, initial_state={"x": 0.1})
    found = run._after_loss(planned, RobotLostError("the guard ended"), played)
    assert (found.end_reason, found.ticks, found.duration_s) == (EndReason.LOST, 150, 3.0)
    assert (found.start_ns, found.initial_state) == (5, {"x": 0.1})
    assert Attempt(end_reason=EndReason.LOST).duration_s is None
