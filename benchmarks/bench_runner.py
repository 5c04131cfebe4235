"""What the runner costs beside a bare episode loop, and what a second process brings.

Run: .venv/bin/python benchmarks/bench_runner.py
"""

from __future__ import annotations

import os
import platform
import tempfile
import time
from pathlib import Path

import gymnasium

from robo_eval.agents import make_agent
from robo_eval.core.kinds import Side
from robo_eval.core.plan import TrialPlan, parse_plan
from robo_eval.core.schedule import environment_keywords, policy_seed, schedule
from robo_eval.log.directory import TrialDirectory
from robo_eval_sim.runner import run_simulated

PLAN = """
name: bench
tasks: [{{levels: [0], kwargs: {{}}}}]
policies: [{policies}]
episodes: {episodes}
traces: {traces}
"""
REPEATS = 3


def bare_loop(plan: TrialPlan) -> float:
    """Seconds of playing a plan's episodes with nothing logged."""
    planned = schedule(plan, Side.SIM)
    env = gymnasium.make(plan.tasks[0].env, **environment_keywords(plan.tasks[0], planned[0]))
    agents = [make_agent(policy.name) for policy in plan.policies]
    env.reset(seed=0)
    started = time.perf_counter()
    for episode in planned:
        agent = agents[episode.policy]
        observation, _ = env.reset(seed=episode.seed)
        agent.reset(seed=policy_seed(episode.seed))
        over = False
        while not over:
            observation, _, terminated, truncated, _ = env.step(agent.act(observation))
            over = terminated or truncated
    seconds = time.perf_counter() - started
    env.close()
    return seconds


def logged(plan: TrialPlan, jobs: int) -> float:
    """Seconds of the runner on the same episodes, rows and traces included."""
    with tempfile.TemporaryDirectory() as folder:
        trial = TrialDirectory.create(Path(folder) / "trial", plan)
        return run_simulated(trial, jobs=jobs).seconds


def plan_of(policies: str, episodes: int, traces: str = "none") -> TrialPlan:
    text = PLAN.format(policies=policies, episodes=episodes, traces=traces)
    return parse_plan(text, source="bench")


def main() -> None:
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores,", end=" ")
    print(f"Python {platform.python_version()}; best of {REPEATS}, taken in turns")
    for policies, episodes in (("random", 1500), ("balancer", 400)):
        plan = plan_of(policies, episodes)
        traced = plan_of(policies, episodes // 4, "all")
        best: dict[str, float] = {}
        for _ in range(REPEATS):
            for name, seconds in (
                ("bare", bare_loop(plan)),
                ("rows", logged(plan, 1)),
                ("bare_traced", bare_loop(traced)),
                ("traces", logged(traced, 1)),
            ):
                best[name] = min(seconds, best.get(name, seconds))
        print(f"{policies}: {episodes / best['bare']:.0f} episodes/s bare")
        rows, traces = best["bare"] / best["rows"], best["bare_traced"] / best["traces"]
        print(f"  speed with durable rows / bare loop:    {rows:.2f}")
        print(f"  the same with a trace of every episode: {traces:.2f}")
    one = two = float("inf")
    few, many = plan_of("balancer", 100), plan_of("balancer", 1100)
    for _ in range(REPEATS):
        # Differences, so that starting the workers (about a second, once) does not count.
        one = min(one, logged(many, 1) - logged(few, 1))
        two = min(two, logged(many, 2) - logged(few, 2))
    print(f"two processes / one: {one / two:.2f} x throughput")


if __name__ == "__main__":
    main()
