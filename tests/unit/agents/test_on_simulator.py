"""The claims made of the agents, on the simulator, on seeds nothing was tuned on."""

from __future__ import annotations

import gymnasium
import pytest

from robo_eval.agents import make_agent
from robo_eval.stats.proportions import wilson_interval
from robo_eval.stats.resampling import paired_difference_interval, stratified_mean_interval

pytest.importorskip("pybullet", reason="needs the extra: pip install 'robo-eval-stack[sim]'")

FIRST_SEED = 200_000
DIFFICULTIES = ("easy", "medium", "hard")


def performances(name, level, difficulty, n):
    """Performance of an agent in n episodes, by seed."""
    env = gymnasium.make("RoboEval/CartPole3D-v0", level=level, difficulty=difficulty)
    agent, found = make_agent(name), []
    for seed in range(FIRST_SEED, FIRST_SEED + n):
        observation, _ = env.reset(seed=seed)
        agent.reset(seed=seed)
        total, over = 0.0, False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(agent.act(observation))
            total, over = total + reward, terminated or truncated
        found.append(total)
    env.close()
    return found


@pytest.fixture(scope="module")
def balancer_at_level_0():
    return performances("balancer", 0, "easy", 300)


@pytest.mark.slow
def test_the_balancer_survives_four_episodes_of_five(balancer_at_level_0):
    full = sum(p > 0.999 for p in balancer_at_level_0)
    low, _ = wilson_interval(full, len(balancer_at_level_0))
    assert full / len(balancer_at_level_0) >= 0.80, full
    assert low >= 0.75


def test_who_does_not_look_falls():
    looks = performances("balancer", 0, "easy", 50)
    for name in ("random", "nothing"):
        blind = performances(name, 0, "easy", 50)
        assert max(blind) < 0.6, name
        assert paired_difference_interval(looks, blind).low > 0.4, name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("better", "level"), [("adaptive", 1), ("adaptive", 9), ("adaptive", 14), ("lookahead", 11)]
)
def test_it_beats_the_balancer_by_an_interval_above_0(better, level):
    pairs = []
    for difficulty in DIFFICULTIES:
        ours = performances(better, level, difficulty, 60)
        theirs = performances("balancer", level, difficulty, 60)
        pairs.append([a - b for a, b in zip(ours, theirs, strict=True)])
    interval = stratified_mean_interval(pairs, over="these")
    assert interval.low > 0.0, interval


@pytest.mark.slow
def test_adapting_costs_nothing_at_level_0(balancer_at_level_0):
    adaptive = performances("adaptive", 0, "easy", 150)
    assert paired_difference_interval(adaptive, balancer_at_level_0[:150]).low > -0.03


def test_the_agents_repeat_an_episode_exactly():
    for name in ("random", "lookahead", "adaptive"):
        assert performances(name, 9, "medium", 3) == performances(name, 9, "medium", 3)
