"""How often equally good policies are told apart, and how often the interval holds the truth.

A policy succeeds if an effect of the seed that both policies share, plus one of the seed that is
its own, plus one of the episode alone, stays below a threshold: so both succeed as often, and the
outcomes of a seed are alike in all conditions. Run by hand, about a minute:
`python benchmarks/comparison_level.py`, or with the number of simulated trials:
`python benchmarks/comparison_level.py 10000`.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy import special

from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.contrast import Attempts, Contrast
from robo_eval.metrics.paired_contrast import contrast_of_pairs
from robo_eval.stats.paired import mcnemar_p
from robo_eval.stats.resampling import mean_interval

TRIALS = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
CONFIG = MetricConfig(resamples=999)


def played(seeds: int, conditions: int, success: float, shared: float, own: float) -> Contrast:
    """One simulated trial of two policies."""
    wide = np.sqrt(1.0 + shared**2 + own**2)
    seed = np.tile(np.arange(seeds), conditions)
    condition = np.repeat(np.arange(conditions), seeds)
    common = shared * RNG.standard_normal(seeds)
    sides = []
    for _ in range(2):
        effect = common + own * RNG.standard_normal(seeds)
        noise = RNG.standard_normal((conditions, seeds))
        outcome = (effect + noise < special.ndtri(success) * wide).ravel().astype(float)
        once = np.ones(len(seed), dtype=np.int64)
        sides.append(Attempts(success=outcome, condition=condition, seed=seed, repeats=once))
    found = contrast_of_pairs(sides[0], sides[1], 0, CONFIG)
    difference = sides[0].success - sides[1].success
    naive = mcnemar_p(int((difference > 0).sum()), int((difference < 0).sum()))
    NAIVE.append(naive <= 0.05)
    drawn = mean_interval(difference.reshape(conditions, seeds).mean(axis=0), resamples=999)
    BOOTSTRAP.append(drawn.low is None or drawn.high is None or drawn.low <= 0.0 <= drawn.high)
    return found


RNG = np.random.default_rng(1)
NAIVE: list[bool] = []
BOOTSTRAP: list[bool] = []


def main() -> None:
    """Print the table."""
    print("| seeds | conditions | success | told apart | by McNemar | holds 0 | BCa |")
    print("|---|---|---|---|---|---|---|")
    for seeds, conditions in ((4, 3), (5, 51), (8, 2), (9, 6), (12, 3), (20, 6), (40, 3)):
        for success in (0.5, 0.9):
            NAIVE.clear()
            BOOTSTRAP.clear()
            runs = [played(seeds, conditions, success, 0.7, 0.7) for _ in range(TRIALS)]
            apart = np.mean([run.p_value is not None and run.p_value <= 0.05 for run in runs])
            ends = [(run.difference.low, run.difference.high) for run in runs]
            held = np.mean(
                [low is None or high is None or low <= 0.0 <= high for low, high in ends]
            )
            cells = (seeds, conditions, success, f"{apart:.3f}", f"{np.mean(NAIVE):.3f}")
            intervals = (f"{held:.3f}", f"{np.mean(BOOTSTRAP):.3f}")
            print("|", *(f"{cell} |" for cell in (*cells, *intervals)), flush=True)


if __name__ == "__main__":
    main()
