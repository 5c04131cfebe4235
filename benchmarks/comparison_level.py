"""Size and power of the tests of `compare`, and how often its intervals hold the truth.

Pairs with a seed of their own can all be listed, so those numbers are exact. Seeds that several
conditions share are simulated: policies fail in each condition by itself, in all conditions of a
seed at once, in the same share of every seed, or as a normal effect of the seed has it. Run by
hand, two minutes: `python benchmarks/comparison_level.py`, or with the number of simulated
trials: `python benchmarks/comparison_level.py 10000`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import special

from robo_eval.stats.clustered_pairs import clustered_difference
from robo_eval.stats.paired import bonett_price_interval, mcnemar_p
from robo_eval.stats.resampling import mean_interval
from robo_eval.stats.sign_flip import sign_flip_p
from robo_eval.stats.unconditional import pairs_interval, pairs_p

Array = NDArray[np.float64]
TRIALS = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
RNG = np.random.default_rng(1)
ALPHA = 0.05
PAIRS = (5, 8, 10, 15, 20, 30, 50, 100)
DIFFERENCES = ((0.25, 0.05), (0.3, 0.1), (0.2, 0.0), (0.15, 0.05))
SEEDS = ((5, 5), (10, 5), (20, 2), (20, 5), (50, 5))


# Pairs with a seed of their own -------------------------------------------------------------------


def chances(n: int, b: Array, c: Array, win: float, loss: float) -> Array:
    """Chance of each table."""
    rest = n - b - c
    ways = special.gammaln([n + 1.0, *[1.0] * 3])[0] - sum(
        special.gammaln(counts + 1.0) for counts in (b, c, rest)
    )
    rate = max(0.0, 1.0 - win - loss)
    return np.asarray(
        np.exp(ways + special.xlogy(b, win) + special.xlogy(c, loss) + special.xlogy(rest, rate))
    )


def print_pairs() -> None:
    """Tests and intervals of n pairs, all outcomes listed."""
    print("| pairs | test | size | " + " | ".join(f"{w}, {v}" for w, v in DIFFERENCES) + " |")
    print("|---|---|---|" + "---|" * len(DIFFERENCES))
    intervals = []
    for n in PAIRS:
        first, second = np.indices((n + 1, n + 1)).reshape(2, -1)
        b, c = (x[first + second <= n].astype(np.float64) for x in (first, second))
        listed = [(int(x), int(y)) for x, y in zip(b, c, strict=True)]
        tests = {
            "of pairs": np.array([pairs_p(x, y, n) for x, y in listed]),
            "McNemar, exact": mcnemar_p(b, c),
            "McNemar, mid-p": mcnemar_p(b, c, mid_p=True),
        }
        shares = np.linspace(0.005, 1.0, 200)
        at_zero = np.array([chances(n, b, c, share / 2, share / 2) for share in shares])
        powers = [chances(n, b, c, *rates) for rates in DIFFERENCES]
        for name, p in tests.items():
            decides = p <= ALPHA
            size = at_zero[:, decides].sum(axis=1).max()
            cells = [f"{chance[decides].sum():.3f}" for chance in powers]
            print(f"| {n} | {name} | {size:.3f} |", " | ".join(cells), "|", flush=True)
        ends = np.array([pairs_interval(x, y, n) for x, y in listed]).T
        contradict = ((ends[0] > 0.0) | (ends[1] < 0.0)) != (tests["of pairs"] <= ALPHA)
        old = bonett_price_interval(b, c, n)
        cells = [cell for both in (ends, old) for cell in covered(n, b, c, *both)]
        intervals.append(f"| {n} | {' | '.join(cells)} | {int(contradict.sum())} |")
    print("\n| pairs | least coverage | mean | width | Bonett-Price | mean | width | contradict |")
    print("|---|---|---|---|---|---|---|---|")
    print("\n".join(intervals), flush=True)


def covered(n: int, b: Array, c: Array, low: Array, high: Array) -> list[str]:
    """Least and mean coverage over a grid of true values, and the mean width."""
    found, widths = [], []
    for share in (0.02, 0.04, *np.linspace(0.1, 1.0, 19)):
        for difference in (0.0, 0.02, *np.linspace(0.05, 1.0, 20)):
            if difference <= share:
                chance = chances(n, b, c, (share + difference) / 2, (share - difference) / 2)
                held = (low <= difference + 1e-9) & (difference - 1e-9 <= high)
                found.append(chance[held].sum())
                widths.append((chance * (high - low)).sum())
    return [f"{min(found):.3f}", f"{np.mean(found):.3f}", f"{np.mean(widths):.3f}"]


# Seeds that conditions share ----------------------------------------------------------------------


def apart(rate: float, seeds: int, conditions: int) -> Array:
    """Share of the conditions that succeed under each seed, each condition by itself."""
    return RNG.binomial(conditions, rate, seeds) / conditions


def whole(rate: float, seeds: int, conditions: int) -> Array:  # noqa: ARG001
    """All conditions of a seed, or none."""
    return (RNG.random(seeds) < rate).astype(np.float64)


def always(rate: float, seeds: int, conditions: int) -> Array:
    """The same conditions under every seed."""
    return np.full(seeds, round(rate * conditions) / conditions)


def alike(first: float, second: float, seeds: int, conditions: int) -> tuple[Array, Array]:
    """An effect of the seed that both share, one that is its own, and one of the episode."""
    wide, common = np.sqrt(1.0 + 2 * 0.7**2), 0.7 * RNG.standard_normal(seeds)
    one, other = (
        (
            common + 0.7 * RNG.standard_normal(seeds) + RNG.standard_normal((conditions, seeds))
            < special.ndtri(rate) * wide
        ).mean(axis=0)
        for rate in (first, second)
    )
    return one, other


CASES: dict[str, tuple[float, Callable[[int, int], tuple[Array, Array]]]] = {
    "0.5 each, alike within a seed": (0.0, lambda s, k: alike(0.5, 0.5, s, k)),
    "0.9 each, alike within a seed": (0.0, lambda s, k: alike(0.9, 0.9, s, k)),
    "5 % fail apart; 5 % of the seeds": (0.0, lambda s, k: (apart(0.95, s, k), whole(0.95, s, k))),
    "10 % fail apart; 10 % of the seeds": (0.0, lambda s, k: (apart(0.9, s, k), whole(0.9, s, k))),
    "always a fifth; 20 % of the seeds": (0.0, lambda s, k: (always(0.8, s, k), whole(0.8, s, k))),
    "not equal: 0.9, 0.7, apart": (0.2, lambda s, k: (apart(0.9, s, k), apart(0.7, s, k))),
    "not equal: 0.9, 0.7, alike": (0.2, lambda s, k: alike(0.9, 0.7, s, k)),
    "not equal: 0.8, 0.5, alike": (0.3, lambda s, k: alike(0.8, 0.5, s, k)),
}


def print_seeds() -> None:
    """How often policies are told apart, and how often the difference is held, by seeds."""
    print(
        "\n| seeds | conditions | policies | told apart | signs | t | McNemar | holds | t holds |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for seeds, conditions in SEEDS:
        for name, (truth, draw) in CASES.items():
            if name.startswith("always") and conditions % 5:
                continue
            found = np.mean(
                [outcome(truth, *draw(seeds, conditions), conditions) for _ in range(TRIALS)],
                axis=0,
            )
            cells = " | ".join(f"{cell:.3f}" for cell in found)
            print(f"| {seeds} | {conditions} | {name} | {cells} |", flush=True)


def outcome(truth: float, first: Array, second: Array, conditions: int) -> list[bool]:
    """Which tests tell two policies apart in one trial, and which intervals hold the truth."""
    difference = first - second
    n, sums = len(difference), np.round((first - second) * conditions)
    found = clustered_difference(sums, [conditions] * n)
    plain = mean_interval(difference, method="student_t")
    low, high = plain.low or 0.0, plain.high or 0.0  # none where all seeds are alike
    wins, losses = (np.maximum(sign * sums, 0.0).sum() for sign in (1, -1))
    return [
        found.p <= ALPHA,
        sign_flip_p(sums) <= ALPHA,
        not low <= 0.0 <= high,
        mcnemar_p(int(wins), int(losses)) <= ALPHA,
        found.low <= truth <= found.high,
        plain.low is None or low - 1e-9 <= truth <= high + 1e-9,
    ]


if __name__ == "__main__":
    print_pairs()
    print_seeds()
