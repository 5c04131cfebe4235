"""No episode begins on a robot that does not do what is asked, or does not stop by itself."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from robo_eval_robot.config import Perturbation
from robo_eval_twin.gantry import Gantry

PLAN = """
name: One
tasks: [{env: RoboEval/CartPole3D-v0, family: balancing, levels: [0], kwargs: {balls: 0}}]
policies: [balancer]
episodes: 1
sides: [twin]
"""


def play(cli: Callable[..., Any], folder: Path, text: str) -> tuple[Any, dict[str, Any], int]:
    """Play a plan on a twin; gives how it ended, what the preflight found, and how many rows."""
    robot, plan, trial = folder / "robot.yaml", folder / "plan.yaml", folder / "trial"
    robot.write_text(text)
    plan.write_text(PLAN)
    done = cli("run", plan, "--robot", robot, "--out", trial)
    found = json.loads((trial / "preflight.json").read_text())
    with sqlite3.connect(trial / "episodes.db") as rows:
        (count,) = rows.execute("SELECT COUNT(*) FROM episodes").fetchone()
    return done, found, count


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        pytest.param(
            "has_command_timeout: false",
            # On a busy computer the last request of a phase may be a push, which goes on for ever:
            # then it is found at the end of that phase.
            "the driver does not stop by itself|cart_[xy] does not stand again",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "perturbation: {swapped_joints: true}",
            "cart_x was asked to move and cart_y moves",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_robot_that_is_not_safe_plays_no_episode(
    fault: str, problem: str, cli: Callable[..., Any], tmp_path: Path, twin: str
) -> None:
    assert "  perturbation: {seed: 0}" in twin
    text = twin.replace("  perturbation: {seed: 0}", f"  {fault}")
    done, found, rows = play(cli, tmp_path, text)
    assert (done.code, found["passed"], rows) == (1, False, 0), done.err
    assert re.match(problem, found["problem"])
    assert f"preflight failed, motors stay disabled: {found['problem']}" in done.err


@pytest.mark.parametrize(
    ("fault", "force"),
    [
        ({}, (0.3, 0.7)),
        ({"swapped_joints": True}, (0.7, 0.3)),
        ({"reversed_sign": True}, (-0.3, 0.7)),
    ],
)
def test_a_twin_can_be_wired_wrong(fault: dict[str, bool], force: tuple[float, float]) -> None:
    gantry = Gantry(Perturbation(**fault), timeout_s=None)
    gantry.arm()
    gantry.hear((0.3, 0.7))
    reading = gantry.tick()
    gantry.close()
    assert reading is not None
    assert tuple(reading.effort[:2]) == pytest.approx(force)
