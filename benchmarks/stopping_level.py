"""How often a stopping rule tells equally good policies apart, looking after every seed.

Outcomes are the shares of five conditions that each policy solves under a seed; the means of both
are the same. For comparison, the rule is also given only who did better under each seed. Run by
hand, some seconds: `python benchmarks/stopping_level.py`, or with the number of series.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from robo_eval.stats.stopping import StoppingRule, stop_decision

TRIALS = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
SEEDS = 100
RNG = np.random.default_rng(1)
RULE = StoppingRule(what="pairs", max_n=SEEDS)


def shares(success: float) -> NDArray[np.float64]:
    """Each condition succeeds by itself."""
    return RNG.binomial(5, success, SEEDS) / 5


def all_or_none(success: float) -> NDArray[np.float64]:
    """Conditions of a seed succeed together."""
    return (RNG.random(SEEDS) < success).astype(float)


CASES: dict[str, Callable[[], tuple[NDArray[np.float64], NDArray[np.float64]]]] = {
    "both solve 80 %, conditions apart": lambda: (shares(0.8), shares(0.8)),
    "one fails 10 % apart, the other 10 % of the seeds": lambda: (shares(0.9), all_or_none(0.9)),
    "one always fails one of five, the other 20 % of the seeds": lambda: (
        np.full(SEEDS, 0.8),
        all_or_none(0.8),
    ),
    "not equal: 90 % against 75 %": lambda: (shares(0.9), shares(0.75)),
}


def main() -> None:
    """Print the table."""
    print("| policies | told apart | seeds used | told apart by who won each seed |")
    print("|---|---|---|---|")
    for name, draw in CASES.items():
        decided, used, by_wins = 0, 0, 0
        for _ in range(TRIALS):
            first, second = draw()
            found = stop_decision(RULE, np.column_stack([first, second]))
            wins = np.column_stack([first > second, second > first]).astype(float)
            decided += found.verdict in ("greater", "less")
            by_wins += stop_decision(RULE, wins).verdict in ("greater", "less")
            used += found.n
        print(f"| {name} | {decided / TRIALS:.3f} | {used / TRIALS:.0f} | {by_wins / TRIALS:.3f} |")


if __name__ == "__main__":
    main()
