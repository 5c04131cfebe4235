"""Stable-Baselines3 learns the tasks of the arm without glue, and two cores play them at once."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from robo_eval.agents import load_policy
from robo_eval.agents.foreign import stable_baselines3
from robo_eval.core.errors import InputError, UnknownNameError
from robo_eval.log.store import EpisodeStore

pytest.importorskip("stable_baselines3", reason='needs pip install "robo-eval-stack[train]"')
EXAMPLE = Path(__file__).parents[2] / "examples/train_ppo.py"
TASKS = ("RoboEval/PickPlace-v0", "RoboEval/Drawer-v0")


@pytest.mark.parametrize("task", TASKS)
def test_the_example_learns_for_a_while(task: str) -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLE, "--task", task, "--steps", "3000"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = re.search(r"(\d+) of 10 episodes succeed \[.*\], mean return (\S+) \[", done.stdout)
    assert said, done.stdout
    assert 0.0 <= float(said[2]) <= 1.0


def test_from_training_to_a_comparison_in_three_commands(tmp_path: Path) -> None:
    task = TASKS[1]

    def does(*command: str) -> str:
        done = subprocess.run(
            [sys.executable, *command], capture_output=True, text=True, check=False, cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    trained = does(
        str(EXAMPLE), "--task", task, "--steps", "64", "--episodes", "1", "--save", "our ppo.zip"
    )
    _, said = trained.rsplit("next: ", 1)
    program, *run = shlex.split(said)
    assert program == "robo-eval"
    assert "episodes played" in does("-m", "robo_eval", *run, "--no-report", "--jobs", "1")
    found = json.loads(does("-m", "robo_eval", "compare", "our ppo", "--json"))
    text = json.dumps(found)
    assert "arm-random" in text
    assert "ppo" in text
    # Played again from the file alone it is the same policy, and does the same.
    saved = load_policy(
        "ppo", "robo_eval.agents.foreign:stable_baselines3", {"path": f"{tmp_path}/our ppo.zip"}
    )
    with EpisodeStore(tmp_path / "our ppo", durable=False) as store:
        rows = [row for row in store.episodes() if row.policy == "ppo"]
    assert {row.policy_digest for row in rows} == {saved.digest}
    assert all(row.end_reason.is_scored for row in rows)
    env = gymnasium.make(task)
    for row in rows:
        observation, earned, is_over = env.reset(seed=row.seed)[0], 0.0, False
        saved.reset(seed=row.seed)
        while not is_over:
            observation, reward, *ended, _ = env.step(saved.act(observation))
            earned, is_over = earned + float(reward), any(ended)
        assert earned == row.episode_return


def test_a_file_that_is_not_there_and_an_algorithm_that_is_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.zip.*there is no such file in"):
        stable_baselines3(str(tmp_path / "nowhere.zip"))
    with pytest.raises(UnknownNameError, match="unknown algorithm 'PPPO'; did you mean 'PPO'"):
        stable_baselines3("nowhere.zip", "PPPO")


@pytest.mark.parametrize("task", TASKS)
def test_two_processes_play_what_one_plays(task: str) -> None:
    both = gymnasium.make_vec(task, num_envs=2, vectorization_mode="async")
    alone = gymnasium.make(task)
    seen, _ = both.reset(seed=[3, 4])
    both.action_space.seed(0)
    actions = [both.action_space.sample() for _ in range(5)]
    after = [both.step(action)[0] for action in actions]
    for index, seed in enumerate((3, 4)):
        first, _ = alone.reset(seed=seed)
        assert (first == seen[index]).all()
        for action, observation in zip(actions, after, strict=True):
            assert (alone.step(action[index])[0] == observation[index]).all()
    assert np.isfinite(after).all()
    both.close()
    alone.close()
