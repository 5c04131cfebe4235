"""What the limit on a decision costs: steps a second with it and without, measured in turns.

Run: .venv/bin/python benchmarks/bench_limit.py
"""

from __future__ import annotations

import multiprocessing
import os
import platform
import statistics
import tempfile
import time
import timeit
from collections.abc import Callable
from ctypes import c_uint64
from pathlib import Path
from typing import Any

from robo_eval.core.kinds import Side
from robo_eval.core.plan import TrialPlan, parse_plan
from robo_eval.core.schedule import schedule
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.store import EpisodeStore
from robo_eval_sim.beat import CELLS, Beat
from robo_eval_sim.play import Stage
from robo_eval_sim.runner import run_simulated

PLAN = """
name: bench
tasks: [{{levels: [0]}}]
policies: [{policy}]
episodes: {episodes}
traces: none
"""
REPEATS = 15


class Uncounted(Beat):
    """What a policy is asked with where nobody watches."""

    def acting(self, act: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return act


def stepped(plan: TrialPlan, beats: dict[str, Beat], first: int) -> dict[str, float]:
    """Steps per second of processor time with policies counted one way and the other.

    Each episode is played both ways before the next, so that what else the machine does falls on
    both alike.
    """
    stages = {name: Stage(plan, "0" * 64, Path(), beat=beat) for name, beat in beats.items()}
    planned = schedule(plan, Side.SIM)
    seconds = dict.fromkeys(stages, 0.0)
    ticks = 0
    for stage in stages.values():
        stage.play(planned[0])
    for place, each in enumerate(planned):
        for name in list(stages)[:: 1 - 2 * ((place + first) % 2)]:
            started = time.process_time()
            row = stages[name].play(each)
            seconds[name] += time.process_time() - started
        ticks += row.ticks or 0
    for stage in stages.values():
        stage.close()
    return {name: ticks / spent for name, spent in seconds.items()}


def cost_of_a_call_ns(cells: Any) -> float:
    """What counting adds to a call that does nothing."""

    def act(_observation: Any) -> int:
        return 0

    counted = Beat(cells).acting(act)
    number = 200_000
    costs = [
        timeit.timeit(lambda: counted(None), number=number)
        - timeit.timeit(lambda: act(None), number=number)
        for _ in range(5)
    ]
    return 1e9 * min(costs) / number


def here(plan: TrialPlan) -> float:
    """Seconds of playing and logging a plan in this process, with nothing that could end it."""
    with tempfile.TemporaryDirectory() as folder:
        trial = TrialDirectory.create(Path(folder) / "trial", plan)
        started = time.perf_counter()
        with EpisodeStore(trial.path, durable=False) as store:
            stage = Stage(plan, trial.plan_digest, trial.path, beat=Uncounted())
            rows = []
            for each in schedule(plan, Side.SIM):
                rows.append(stage.play(each))
                if len(rows) == 8:
                    store.append(rows)
                    rows = []
            if rows:
                store.append(rows)
            stage.close()
        return time.perf_counter() - started


def in_a_worker(plan: TrialPlan) -> float:
    """Seconds of the same by the runner: a process of its own, watched."""
    with tempfile.TemporaryDirectory() as folder:
        trial = TrialDirectory.create(Path(folder) / "trial", plan)
        return run_simulated(trial, jobs=1).seconds


def main() -> None:
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores,", end=" ")
    print(f"Python {platform.python_version()}; median of {REPEATS} pairs, taken in turns")
    for policy, episodes in (("random", 150), ("balancer", 20)):
        plan = parse_plan(PLAN.format(policy=policy, episodes=episodes), source="bench")
        longer = parse_plan(PLAN.format(policy=policy, episodes=6 * episodes), source="bench")
        cells = multiprocessing.get_context("fork").RawArray(c_uint64, CELLS)
        shares, runs, best = [], [], {"with": 0.0, "without": 0.0}
        for repeat in range(REPEATS):
            found = stepped(plan, {"with": Beat(cells), "without": Uncounted()}, repeat)
            shares.append(found["with"] / found["without"])
            best = {name: max(best[name], found[name]) for name in best}
            if repeat < REPEATS // 3:
                runs.append(here(longer) / in_a_worker(longer))
        low, *_, high = sorted(shares)
        print(
            f"{policy}: steps/s with the limit / without: {statistics.median(shares):.3f}", end=""
        )
        print(f" ({low:.3f} to {high:.3f}), of the best {best['with'] / best['without']:.3f}")
        call_ns = cost_of_a_call_ns(cells)
        share = call_ns * best["without"] / 1e9
        print(f"  a call costs {call_ns:.0f} ns more, {100 * share:.2f} % of a step")
        print(f"  whole runs, one worker / no process: {statistics.median(runs):.2f}")


if __name__ == "__main__":
    main()
