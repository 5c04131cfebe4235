"""Stable-Baselines3 learns the tasks of the arm without glue, and two cores play them at once."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

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
