"""What a decision of each baseline agent costs, as a share of an environment step.

Run: .venv/bin/python benchmarks/bench_agents.py
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np

from robo_eval.agents import agent_names, make_agent
from robo_eval.core.policy import Policy

REPEATS = 5
TICKS = 2000


def seen(level: int, difficulty: str) -> list[np.ndarray]:
    """Observations of balanced episodes, and so the situations agents really decide in."""
    env = gymnasium.make("RoboEval/CartPole3D-v0", level=level, difficulty=difficulty)
    agent = make_agent("balancer")
    found: list[np.ndarray] = []
    seed = 0
    while len(found) < TICKS:
        observation, _ = env.reset(seed=seed)
        agent.reset(seed=seed)
        over, seed = False, seed + 1
        while not over:
            found.append(np.array(observation))
            observation, _, terminated, truncated, _ = env.step(agent.act(observation))
            over = terminated or truncated
    env.close()
    return found[:TICKS]


def step_us() -> float:
    """Microseconds of a step at level 0 with random actions, resets included."""
    env = gymnasium.make("RoboEval/CartPole3D-v0")
    env.action_space.seed(0)
    env.reset(seed=0)

    def run() -> None:
        for _ in range(TICKS):
            _, _, terminated, truncated, _ = env.step(env.action_space.sample())
            if terminated or truncated:
                env.reset()

    found = best_us(run)
    env.close()
    return found


def decide(agent: Policy, observations: list[np.ndarray]) -> None:
    agent.reset(seed=0)
    for observation in observations:
        agent.act(observation)


def best_us(run: Callable[[], Any]) -> float:
    """Microseconds per tick of the fastest of some runs."""
    best = float("inf")
    for _ in range(REPEATS):
        started = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - started)
    return best / TICKS * 1e6


def main() -> None:
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores,", end=" ")
    print(f"Python {platform.python_version()}; best of {REPEATS} x {TICKS} ticks")
    step = step_us()
    print(f"environment step with resets: {step:.1f} us")
    crowds = {"level 0 (2-4 balls)": seen(0, "easy")}
    try:
        crowds["level 16 hard (up to 44)"] = seen(16, "hard")
    except ValueError as err:  # an installation without that level
        print(f"level 16 left out: {err}")
    for name in agent_names():
        agent = make_agent(name)
        for crowd, observations in crowds.items():
            spent = best_us(partial(decide, agent, observations))
            print(f"{name:10} {crowd:24} {spent:7.1f} us = {spent / step:5.2f} steps")


if __name__ == "__main__":
    main()
