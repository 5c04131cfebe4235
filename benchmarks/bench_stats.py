"""How fast intervals are: our resampling beside scipy's, in one run, and the ACC bootstrap."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable

import numpy as np
import scipy
from scipy import stats

from robo_eval.analysis.acc import bootstrap, population
from robo_eval.stats.proportions import clopper_pearson_interval, wilson_interval
from robo_eval.stats.resampling import mean_intervals

RESAMPLES = 9999
CELLS = 204  # 17 levels, 3 difficulties, 4 policies


def best_of(work: Callable[[], object], repeats: int = 3) -> float:
    """Shortest wall time of a few runs, seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def bench_bootstrap(n: int) -> None:
    """BCa intervals of the cells of a trial with n episodes each."""
    samples = list(np.random.default_rng(0).beta(5, 1, (CELLS, n)))

    def theirs() -> None:
        for x in samples:
            stats.bootstrap(
                (x,), np.mean, method="BCa", n_resamples=RESAMPLES, rng=np.random.default_rng(0)
            )

    ours_s = best_of(lambda: mean_intervals(samples, method="bca", resamples=RESAMPLES))
    theirs_s = best_of(theirs, repeats=1)
    print(
        f"BCa, {CELLS} cells of {n:3} episodes, {RESAMPLES} resamples: ours {ours_s:7.3f} s,"
        f" scipy {theirs_s:7.3f} s, {theirs_s / ours_s:5.1f} times as fast"
    )


def bench_proportions() -> None:
    """Intervals of many counts at once beside scipy's one by one."""
    rng = np.random.default_rng(0)
    n = rng.integers(1, 200, 2000)
    k = rng.binomial(n, 0.8)

    def theirs(method: str) -> Callable[[], None]:
        def work() -> None:
            for ki, ni in zip(k.tolist(), n.tolist(), strict=True):
                stats.binomtest(ki, ni).proportion_ci(0.95, method=method)

        return work

    for name, interval, method in (
        ("Wilson", wilson_interval, "wilson"),
        ("Clopper-Pearson", clopper_pearson_interval, "exact"),
    ):
        ours_s = best_of(lambda interval=interval: interval(k, n))  # type: ignore[misc]
        theirs_s = best_of(theirs(method), repeats=1)
        print(
            f"{name}, {len(k)} counts: ours {ours_s * 1e3:7.2f} ms, scipy {theirs_s * 1e3:8.2f} ms,"
            f" {theirs_s / ours_s:6.0f} times as fast"
        )


def bench_acc() -> None:
    """The interval of one agent, and the analysis of a population."""
    rng = np.random.default_rng(0)
    difficulty = rng.random(51)
    for episodes in (5, 20, 100):
        outcomes = rng.random((51, episodes))
        seconds = best_of(lambda outcomes=outcomes: bootstrap(outcomes, difficulty))  # type: ignore[misc]
        print(
            f"ACC bootstrap, 51 items of {episodes:3} episodes, 1,000 resamples:"
            f" {seconds * 1e3:7.1f} ms"
        )
    response = (rng.random((1000, 51)) < 0.5).astype(float)
    seconds = best_of(lambda: population(response, difficulty))
    print(f"ACC of 1,000 agents on 51 items: {seconds * 1e3:7.1f} ms")


def main() -> None:
    """Run all."""
    print(
        f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__},"
        f" scipy {scipy.__version__}"
    )
    for n in (10, 20, 100):
        bench_bootstrap(n)
    bench_proportions()
    bench_acc()


if __name__ == "__main__":
    main()
