"""How often the 95 % intervals of capability, spread and generality hold the truth.

A policy masters an item at a seed if its ability, plus an effect of the seed that all items share,
plus one of the episode alone, exceeds the difficulty; so the true curve is a normal distribution
function. Run by hand, some minutes: `python benchmarks/acc_coverage.py`, or with the number of
simulated trials: `python benchmarks/acc_coverage.py 4000`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import special

from robo_eval.analysis.acc.agent import analyse
from robo_eval.analysis.acc.resample import AccIntervals, bootstrap, bootstrap_seeds

Array = NDArray[np.float64]
TRIALS = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
NAMES = ("capability", "spread", "normalised_generality")
ABILITY = 0.45


def coverage(
    name: str,
    method: Callable[..., AccIntervals],
    *,
    items: int = 20,
    levels: int = 20,
    seeds: int = 20,
    of_seed: float = 0.15,
    of_episode: float = 0.25,
) -> None:
    """Print a row: the share of simulated trials whose interval holds the truth."""
    rng = np.random.default_rng(1)
    difficulty = np.linspace(0.0, 1.0, levels)[np.arange(items) % levels]
    width = float(np.hypot(of_seed, of_episode))
    truth = analyse(special.ndtr((ABILITY - difficulty) / width), difficulty)
    held = dict.fromkeys(NAMES, 0)
    for trial in range(TRIALS):
        effect = of_seed * rng.standard_normal((1, seeds))
        noise = of_episode * rng.standard_normal((items, seeds))
        outcomes = (ABILITY + effect + noise > difficulty[:, None]).astype(float)
        found = method(outcomes, difficulty, seed=trial)
        for number in NAMES:
            low, high = getattr(found, number)
            held[number] += low <= getattr(truth, number) <= high
    shares = " | ".join(f"{held[number] / TRIALS:.3f}" for number in NAMES)
    data = f"{items} items at {levels} difficulties, {seeds} seeds, {of_seed} / {of_episode}"
    print(f"| {name} | {data} | {shares} |", flush=True)


def main() -> None:
    """Print the table."""
    print("| bootstrap of | data; effect of seed / episode | capability | spread | generality |")
    print("|---|---|---|---|---|")
    for of_seed, of_episode in ((0.15, 0.25), (0.25, 0.15), (0.1, 0.1)):
        coverage("seeds", bootstrap_seeds, of_seed=of_seed, of_episode=of_episode)
        coverage("episodes, misused", bootstrap, of_seed=of_seed, of_episode=of_episode)
    for seeds in (5, 8, 10, 50):
        coverage("seeds", bootstrap_seeds, seeds=seeds)
    coverage("seeds", bootstrap_seeds, levels=10)
    coverage("seeds", bootstrap_seeds, items=6, levels=6)
    for levels, seeds, of_episode in ((10, 20, 0.3), (10, 20, 0.1), (10, 5, 0.1), (5, 20, 0.1)):
        coverage(
            "episodes",
            bootstrap,
            items=levels,
            levels=levels,
            seeds=seeds,
            of_seed=0.0,
            of_episode=of_episode,
        )


if __name__ == "__main__":
    main()
