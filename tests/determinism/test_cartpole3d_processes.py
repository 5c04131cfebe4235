"""The same seed gives the same episode bit for bit, whatever the process has done before.

And a state saved at any tick goes on bit for bit in a new process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from robo_eval.agents import make_agent
from robo_eval_sim import spare

CARTPOLE = "RoboEval/CartPole3D-v0"
PROFILES = ("paper", "compat")
DIFFICULTIES = ("easy", "medium", "hard")
LEVELS = range(17)

PLAY = """
import json, sys
import gymnasium
import numpy as np

for line in sys.stdin:
    job = json.loads(line)
    env = gymnasium.make("RoboEval/CartPole3D-v0", **job["keywords"])
    observation, _ = env.reset(seed=job.get("seed"), options=job.get("options"))
    seen = [observation.tobytes().hex()]
    for action in job["actions"]:
        observation, *_ = env.step(action)
        seen.append(observation.tobytes().hex())
    print(json.dumps(seen), flush=True)
    env.close()
"""


def play_elsewhere(jobs: list[dict[str, Any]]) -> list[list[str]]:
    """What a fresh process observes."""
    done = subprocess.run(
        [sys.executable, "-c", PLAY],
        input="\n".join(map(json.dumps, jobs)),
        capture_output=True,
        text=True,
        timeout=800,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@contextmanager
def no_spare() -> Iterator[None]:
    """Within it, an environment gets no world that was used before."""
    kept = dict(spare._spare)
    spare._spare.clear()
    try:
        yield
    finally:
        spare._spare.update(kept)


def play(env: gymnasium.Env, seed: int) -> tuple[list[int], list[str], list[dict[str, Any]]]:
    """Actions, observations and states of an episode of a disturbed balancing policy."""
    rng = np.random.default_rng(seed)
    observation, _ = env.reset(seed=seed)
    policy = make_agent("balancer")
    policy.reset(seed=seed)
    actions, seen = [], [observation.tobytes().hex()]
    states = [env.unwrapped.get_state()]
    done = False
    while not done:
        action = int(rng.integers(5)) if rng.random() < 0.15 else int(policy.act(observation))
        observation, _, terminated, truncated, _ = env.step(action)
        actions.append(action)
        seen.append(observation.tobytes().hex())
        states.append(env.unwrapped.get_state())
        done = terminated or truncated
    return actions, seen, states


@pytest.mark.parametrize("profile", ["compat", pytest.param("paper", marks=pytest.mark.slow)])
def test_states_of_every_level_go_on_in_a_new_process(profile: str) -> None:
    rng = np.random.default_rng(5)
    jobs, expected = [], []
    for level in LEVELS:
        keywords = {"level": level, "profile": profile}
        keywords["difficulty"] = DIFFICULTIES[rng.integers(3)]
        env = gymnasium.make(CARTPOLE, **keywords)
        # An episode before, so that the engine is not a fresh one.
        play(env, seed=1000 + level)
        actions, seen, states = play(env, seed=level)
        env.close()
        last = len(actions) - 1
        for tick in sorted({0, last, *rng.integers(0, last + 1, 3).tolist()}):
            state = json.loads(json.dumps(states[tick]))
            assert state == states[tick]
            jobs.append(
                {"keywords": keywords, "options": {"state": state}, "actions": actions[tick:]}
            )
            expected.append(seen[tick:])
    for job, here, there in zip(jobs, expected, play_elsewhere(jobs), strict=True):
        assert there == here, job["keywords"]


@pytest.mark.parametrize("profile", [pytest.param("compat", marks=pytest.mark.slow), "paper"])
def test_episodes_of_every_level_repeat_in_a_new_process(profile: str) -> None:
    jobs, expected = [], []
    for level in LEVELS:
        for difficulty in DIFFICULTIES:
            keywords = {"level": level, "profile": profile, "difficulty": difficulty}
            env = gymnasium.make(CARTPOLE, **keywords)
            env.reset(seed=99)
            for _ in range(5):
                env.step(1)
            actions, seen, _ = play(env, seed=17 * level + 3)
            env.close()
            jobs.append({"keywords": keywords, "seed": 17 * level + 3, "actions": actions})
            expected.append(seen)
    # In another order: what is played before must not matter.
    there = play_elsewhere(jobs[::-1])[::-1]
    for job, here, elsewhere in zip(jobs, expected, there, strict=True):
        assert elsewhere == here, job["keywords"]


def test_each_episode_alone_in_a_fresh_process() -> None:
    """As above, but with nothing at all played before."""
    for level, profile in ((0, "paper"), (4, "compat"), (12, "compat"), (16, "paper")):
        keywords = {"level": level, "profile": profile, "difficulty": "hard"}
        env = gymnasium.make(CARTPOLE, **keywords)
        for seed in (1, 2):
            actions, seen, _ = play(env, seed)
        env.close()
        (there,) = play_elsewhere([{"keywords": keywords, "seed": 2, "actions": actions}])
        assert there == seen


@pytest.mark.parametrize(
    ("level", "profile"),
    [
        # Every third level in one profile, in turn; the others when there is time.
        pytest.param(
            level, profile, marks=[pytest.mark.slow] if level % 3 or i != level % 2 else []
        )
        for level in LEVELS
        for i, profile in enumerate(PROFILES)
    ],
)
def test_a_used_world_is_as_good_as_a_new_one(level: int, profile: str) -> None:
    """Many episodes full of contacts in one world, against each one's first playing."""
    keywords = {"level": level, "profile": profile, "difficulty": "hard", "balls": 4}
    first = {}
    for seed in range(4):
        env = gymnasium.make(CARTPOLE, **keywords)
        # No world that was used before.
        with no_spare():
            first[seed] = play(env, seed)[:2]
        env.unwrapped._world.close()
        env.unwrapped._world = None
    env = gymnasium.make(CARTPOLE, **keywords)
    for seed in (0, 3, 1, 2, 2, 0, 3, 1):
        assert play(env, seed)[:2] == first[seed]
    env.close()


def test_a_crowd_of_balls_does_not_remember_the_last_one() -> None:
    """Contacts that hang together are solved in an order that a snapshot does not bring back."""
    keywords = {
        "level": 4,
        "difficulty": "hard",
        "profile": "compat",
        "balls": 20,
    }
    first = {}
    for seed in (3, 13, 14, 36, 41, 52):
        env = gymnasium.make(CARTPOLE, **keywords)
        with no_spare():
            first[seed] = play(env, seed)[:2]
        env.unwrapped._world.close()
        env.unwrapped._world = None
    used = gymnasium.make(CARTPOLE, **keywords)
    for seed in (41, 3, 52, 13, 36, 14):
        assert play(used, seed)[:2] == first[seed]
    used.reset(seed=13)
    used.step(1)
    state = used.unwrapped.get_state()
    used.reset(seed=52)
    used.reset(options={"state": state})  # would be refused if history led elsewhere
    used.close()


def test_a_world_that_changes_hands_between_levels() -> None:
    """Closed environments leave their world to the next one, of whatever level."""
    order = [(0, "paper"), (9, "compat"), (10, "paper"), (4, "compat"), (2, "paper"), (16, "paper")]
    first = {}
    for turn in range(3):
        for level, profile in order if turn != 1 else order[::-1]:
            env = gymnasium.make(CARTPOLE, level=level, profile=profile, difficulty="hard")
            seen = play(env, seed=8)[1]
            env.close()
            assert first.setdefault((level, profile), seen) == seen


def test_other_seeds_give_other_episodes() -> None:
    env = gymnasium.make(CARTPOLE)
    starts = {env.reset(seed=seed)[0].tobytes() for seed in range(50)}
    assert len(starts) == 50
    env.close()


def test_episodes_after_a_seed_follow_from_it() -> None:
    env = gymnasium.make(CARTPOLE, level=3)
    runs = []
    for _ in range(2):
        first = env.reset(seed=4)[0]
        runs.append([first.tobytes(), *(env.reset()[0].tobytes() for _ in range(5))])
        env.reset(seed=11)
    assert runs[0] == runs[1]
    assert len(set(runs[0])) == 6
    env.close()


def test_a_control_starts_as_its_novel_episode_does(tmp_path: Path) -> None:
    """A level that only changes constants leaves the first observation of the control's balls."""
    novel = gymnasium.make(CARTPOLE, level=12, difficulty="hard")
    control = gymnasium.make(CARTPOLE)
    for seed in range(10):
        one, _ = novel.reset(seed=seed)
        two, _ = control.reset(seed=seed)
        np.testing.assert_array_equal(one, two)
    novel.close()
    control.close()
