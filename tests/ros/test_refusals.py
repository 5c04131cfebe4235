"""A robot that cannot be played on is refused in one line, and nothing moves."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).parent
DEADLINE_S = 240.0
START_UP_S = 12.0
PLAN = """
name: refused
tasks: [{env: RoboEval/CartPole3D-v0, kwargs: {balls: 0}, levels: [0]}]
policies: [balancer]
episodes: 1
sides: [sim, twin]
"""
STATES = "/twin0/joint_states"
COMMANDS = "/twin0/forward_effort_controller/commands"


@dataclass(frozen=True)
class Case:
    """What is renamed for the twin, who else is there, and what is said."""

    away: tuple[str, ...]
    says: tuple[str, ...]
    beside: dict[str, object] | None = None
    """Options of `rig_robot.py`, for a robot that is there instead."""


CASES = {
    "no states": Case(
        (STATES,), (f"nothing arrives on {STATES} within {START_UP_S:g} s", "ROS_DOMAIN_ID")
    ),
    "incompatible QoS": Case(
        (STATES,),
        (f"nothing arrives on {STATES}", "driver offers best effort", "to reliable"),
        {"best_effort": True, "controller": False, "estop": []},
    ),
    "no controller": Case((COMMANDS,), (f"nobody listens on {COMMANDS}", "controller loaded")),
    "no emergency stop": Case(
        ("/twin0/safety/estop",), ("guard is INIT", "emergency stop has not been seen")
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_robot_that_is_not_complete_is_refused(
    begin: Callable[..., subprocess.Popen[str]], tmp_path: Path, name: str, twin: str
) -> None:
    case = CASES[name]
    (tmp_path / "robot.yaml").write_text(f"{twin}start_up_s: {START_UP_S:g}\n")
    (tmp_path / "plan.yaml").write_text(PLAN)
    witness = None
    if case.beside is not None:
        assert begin(HERE / "rig_robot.py", json.dumps(case.beside)).stdout.readline()
    if COMMANDS not in case.away:
        witness = begin(HERE / "rig_faults.py", "{}")
        witness.stdout.readline()
    rules = {"twin": [f"{topic}:={topic}_elsewhere" for topic in case.away]}
    run = begin(
        HERE / "rig_run.py", "run", "plan.yaml", "-o", "trial", "--sides", "twin",
        "--robot", "robot.yaml", "--json", RIG_REMAPS=json.dumps(rules),
    )  # fmt: skip
    out, err = run.communicate(timeout=DEADLINE_S)
    assert (run.returncode, out) == (2, ""), err
    said_by_us = [line for line in err.splitlines() if not line.startswith("[WARN]")]  # ROS does
    assert len(said_by_us) == 1, err
    assert said_by_us[0].startswith("robo-eval: robot 'twin-"), err
    for said in case.says:
        assert said in err
    # Nothing was enabled, and nothing is left that looks like an episode.
    if witness is not None:
        witness.stdin.write("seen\n")
        witness.stdin.flush()
        assert json.loads(witness.stdout.readline())["seen"]["last"] in (None, [0.0, 0.0])
    trial = tmp_path / "trial"
    assert not (trial / "preflight.json").exists()
    assert not list((trial / "traces").iterdir())
    with closing(sqlite3.connect(f"file:{trial / 'episodes.db'}?mode=ro", uri=True)) as database:
        assert database.execute("SELECT COUNT(*) FROM episodes").fetchone() == (0,)
