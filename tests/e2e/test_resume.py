"""`resume` brings a trial to its end on one machine after the other, whatever it was left in."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from robo_eval.agents.confined import digest_of
from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.plan import parse_plan
from robo_eval.core.schedule import schedule
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.planned_row import row_for
from robo_eval.log.store import EpisodeStore
from robo_eval.log.verify import verify_trial

PLAN = """
name: resumed
tasks: [{{env: RoboEval/CartPole3D-v0, levels: [0], kwargs: {{balls: 0}}}}]
policies: [balancer]
episodes: {episodes}
sides: [{sides}]
traces: none
metrics: {{resamples: 200}}
"""


@pytest.fixture
def resume(quick_cli: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """`robo-eval resume`, on a machine that lacks some packages; what it says, as JSON."""

    def call(trial: Path, *lacking: str) -> dict[str, Any]:
        done = quick_cli("resume", trial, "--json", "--no-report", lacking=lacking)
        assert done.code == 0, done.err
        found: dict[str, Any] = json.loads(done.out)
        return found

    return call


def rows(trial: Path) -> list[tuple[str, str]]:
    with EpisodeStore(trial, durable=False) as store:
        return [(row.side.value, row.end_reason.value) for row in store.episodes()]


def status(trial: Path) -> str:
    return TrialDirectory.open(trial).status()


def test_a_run_that_was_killed_is_played_to_its_end_once(killed_run, resume, tmp_path):
    plan, trial = tmp_path / "plan.yaml", tmp_path / "trial"
    plan.write_text(PLAN.format(episodes=60, sides="sim"))
    killed_run(plan, trial)
    left = 60 - len(rows(trial))
    assert status(trial) != "complete"
    assert resume(trial)["played"] == left > 0
    assert resume(trial)["played"] == 0
    assert len(rows(trial)) == 60
    assert status(trial) == "complete"
    assert verify_trial(trial).ok


def test_what_needs_a_simulator_is_left_to_a_machine_that_has_one(resume, quick_cli, tmp_path):
    trial = TrialDirectory.create(
        tmp_path / "a trial", parse_plan(PLAN.format(episodes=2, sides="sim"), source="plan")
    ).path
    (left,) = resume(trial, "pybullet")["elsewhere"]
    assert left["side"] == "sim"
    assert "pip install" in left["reason"]
    assert rows(trial) == []
    told = quick_cli("resume", trial, lacking=["pybullet"])
    assert told.code == 0
    assert left["command"] in told.out
    assert shlex.split(left["command"]) == ["robo-eval", "resume", str(trial)]
    found = resume(trial)
    assert (found["played"], found["elsewhere"]) == (2, [])
    assert status(trial) == "complete"


@pytest.fixture
def matched(tmp_path: Path) -> TrialDirectory:
    """A trial on a twin and its simulator, of which one episode on the twin was played."""
    plan = parse_plan(PLAN.format(episodes=2, sides="sim, twin"), source="plan")
    trial = TrialDirectory.create(tmp_path / "trial", plan)
    play_on_twin(trial, 0)
    return trial


def play_on_twin(trial: TrialDirectory, number: int) -> None:
    planned = schedule(trial.plan, Side.TWIN)[number]
    planned = replace(planned, pair_id=planned.base_id.removesuffix("-twin"))
    env = gymnasium.make("RoboEval/CartPole3D-v0", balls=0)
    env.reset(seed=planned.seed)
    state = env.unwrapped.get_state()
    env.close()
    row = row_for(
        planned, trial.plan, trial.plan_digest,
        policy_digest=digest_of(trial.plan.policies[0], trial.plan.decision_timeout_s),
        start_ns=1_772_000_000 * 10**9 + number * 10**10, duration_s=4.0, exposure_s=4.0, ticks=200,
        episode_return=1.0, quality=1.0, success=True, end_reason=EndReason.SUCCESS,
        software="robo-eval 1", initial_state=state, initial_state_source="measured",
    )  # fmt: skip
    with EpisodeStore(trial.path, durable=True) as store:
        store.append([row])
        trial.write_manifest(status="interrupted", store=store)


def test_pairs_are_filled_in_where_there_is_no_robot(matched, resume):
    trial = matched.path
    for played in (1, 0):
        found = resume(trial, "rclpy")
        assert found["played"] == played
        (left,) = found["elsewhere"]
        assert left["side"] == "twin"
        assert "ROS" in left["reason"]
        assert left["command"] == f"robo-eval resume {trial} --robot ROBOT.yaml"
        assert rows(trial) == [("twin", "success"), ("sim", "success")]
        assert status(trial) != "complete"
    play_on_twin(matched, 1)
    found = resume(trial, "rclpy")
    assert (found["played"], found["elsewhere"]) == (1, [])
    assert status(trial) == "complete"
    assert verify_trial(trial).ok


def test_pairs_wait_where_there_is_neither_robot_nor_simulator(matched, resume):
    found = resume(matched.path, "rclpy", "pybullet")
    assert [left["side"] for left in found["elsewhere"]] == ["twin", "sim"]
    assert len(rows(matched.path)) == 1


def test_a_trial_that_only_a_robot_can_begin_says_so(resume, quick_cli, tmp_path):
    plan = parse_plan(PLAN.format(episodes=2, sides="sim, twin"), source="plan")
    trial = TrialDirectory.create(tmp_path / "trial", plan).path
    assert [left["side"] for left in resume(trial, "rclpy")["elsewhere"]] == ["twin"]
    assert status(trial) != "complete"
    told = quick_cli("resume", trial, lacking=["rclpy"])
    assert told.code == 0
    assert f"robo-eval resume {trial}" in told.out
