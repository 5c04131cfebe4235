"""How the axes grow with what they are computed from: ten times as much, how many times as long."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable

import numpy as np
import pandas as pd

from robo_eval.gates.axes.episodes import episodes_measured
from robo_eval.gates.axes.frontier import frontier_of
from robo_eval.gates.axes.improvement import kappa_estimate, streak_of
from robo_eval.gates.axes.progress import progress_of
from robo_eval.gates.axes.settings import AxisSettings, FrontierSettings, ProgressSettings
from robo_eval.log.evidence import Checkpoint

DAY_NS = 86_400 * 10**9


def checkpoints(n: int, days: float) -> list[Checkpoint]:
    """A capability that rises with noise, over some days."""
    noise = np.random.default_rng(0).normal(0.0, 0.02, n)
    return [
        Checkpoint(
            line=2, time_ns=int((20_500 + days * i / n) * DAY_NS), family="pick",
            capability=0.2 + 0.6 * i / n + abs(float(noise[i])), resources=days * i / n,
        )
        for i in range(n)
    ]  # fmt: skip


def episodes(n: int) -> pd.DataFrame:
    """Episodes of two policies of which everything is known and nothing is constant."""
    rng = np.random.default_rng(0)
    success = rng.random(n) < 0.6
    return pd.DataFrame(
        {
            "policy": [f"policy-{i % 2}" for i in range(n)],
            "family": [f"family-{i % 5}" for i in range(n)],
            "quality": np.clip(success * 0.6 + rng.random(n) * 0.4, 0.0, 1.0),
            "success": success,
            "uninterrupted_actions": rng.integers(0, 80, n),
            "plan_depth": rng.integers(1, 13, n),
            "stated_success_probability": np.clip(0.6 * success + 0.4 * rng.random(n), 0.0, 1.0),
            "interventions": rng.poisson(1.0, n),
        }
    )


def growth(name: str, work: Callable[[int], object], n: int) -> None:
    """One line: seconds for n, and how many times as long ten times as many take."""
    seconds = []
    for size in (n, 10 * n):
        start = time.perf_counter()
        work(size)
        seconds.append(time.perf_counter() - start)
    print(f"{name:42} {10 * n:6}: {seconds[1]:6.2f} s, {seconds[1] / seconds[0]:5.1f} times {n:5}")


def main() -> None:
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores")
    kappa_estimate([0.1, 0.2, 0.3], [0.0, 1.0, 2.0])  # what is loaded once is loaded now
    for bandwidth in (None, 8.0):
        settings = ProgressSettings(bandwidth=bandwidth)
        growth(
            f"progress, bandwidth {bandwidth}, checkpoints",
            lambda n, s=settings: progress_of(checkpoints(n, 50.0), s),
            100,
        )
    growth(
        "kappa, checkpoints",
        lambda n: kappa_estimate(np.linspace(0.1, 0.9, n), np.arange(float(n))),
        1_000,
    )
    growth(
        "days in a row, checkpoints",
        lambda n: streak_of(checkpoints(n, 100.0), least=0.005, window_days=7.0, resamples=200),
        1_000,
    )
    growth("frontier, episodes", lambda n: frontier_of(episodes(n), FrontierSettings()), 1_000)
    growth("axes of episodes", lambda n: episodes_measured(episodes(n), AxisSettings()), 3_000)


if __name__ == "__main__":
    main()
