"""Which of two policies succeeds more often in pairs of episodes that started alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.estimate import Estimate
from robo_eval.metrics.contrast import Attempts, Contrast, difference_of, no_difference
from robo_eval.stats.paired import bonett_price_interval, mcnemar_p, paired_table
from robo_eval.stats.resampling import mean_interval
from robo_eval.stats.sign_flip import sign_flip_p

if TYPE_CHECKING:
    from robo_eval.metrics.config import MetricConfig


def contrast_of_pairs(
    first: Attempts, second: Attempts, left_out: int, config: MetricConfig
) -> Contrast:
    """Compare row i of one policy with row i of another.

    With a seed of its own for each pair: exact McNemar test, Bonett-Price interval. Where pairs
    share their seeds, or a seed repeats, the seeds are what is independent: the exact test flips
    the signs of whole seeds. So five seeds decide nothing, however far apart they are. The
    interval is Student's t: resampling some dozen seeds with few distinct values covers too
    little, see `benchmarks/comparison_level.py`.

    Args:
        first: Episodes of one policy.
        second: Those of the other in the same conditions with the same seeds, in the same order.
        left_out: Episodes of either that have no counterpart.
        config: Settings of the interval.
    """
    both = ~np.isnan(first.success + second.success)
    one, other = first.take(both), second.take(both)
    n = len(one.success)
    seeds, cluster = np.unique(one.seed, return_inverse=True)
    if n and (len(seeds) < n or max(one.repeats.max(), other.repeats.max()) > 1):
        return _by_seed(one, other, cluster, left_out, config)
    table = paired_table(one.success, other.success)
    b, c = table.only_first, table.only_second
    if n:
        low, high = bonett_price_interval(b, c, n, level=config.level)
        difference = difference_of((b - c) / n, low, high, n, "bonett_price", config)
    else:
        difference = no_difference("no pair with both episodes scored")
    return Contrast(
        unit="pairs",
        n_units=n,
        n_discordant=b + c,
        n_pairs=n,
        n_first=n,
        n_second=n,
        left_out=left_out,
        difference=difference,
        p_value=mcnemar_p(b, c) if n else None,
        test="mcnemar_exact" if n else "none",
    )


def _by_seed(
    one: Attempts,
    other: Attempts,
    cluster: NDArray[np.intp],
    left_out: int,
    config: MetricConfig,
) -> Contrast:
    """Pairs that share their seeds: what a seed does in all conditions is one observation."""
    difference = one.success - other.success
    n = len(difference)
    sums = np.bincount(cluster, weights=difference)
    sizes = np.bincount(cluster).astype(np.float64)
    n_seeds, leaning = len(sums), sums != 0.0
    value = float(sums.sum()) / n
    # What each seed adds to a ratio of sums: with equal sizes, its own mean.
    parts = np.sort(np.round(value + (sums - value * sizes) / sizes.mean(), 12))
    # Means of some episodes are whole numbers of a part that all of them have.
    whole = int(np.lcm.reduce(np.unique([*one.repeats, *other.repeats])))
    return Contrast(
        unit="seeds",
        n_units=n_seeds,
        n_discordant=int(leaning.sum()),
        n_pairs=n,
        n_first=int(one.repeats.sum()),
        n_second=int(other.repeats.sum()),
        left_out=left_out,
        difference=_mean_of_seeds(value, parts, difference, config),
        p_value=sign_flip_p(np.round(sums * whole)),
        test="sign_flip_by_seed",
        spread=float(np.abs(sums / sizes)[leaning].mean()) if leaning.any() else 1.0,
    )


def _mean_of_seeds(
    value: float,
    parts: NDArray[np.float64],
    difference: NDArray[np.float64],
    config: MetricConfig,
) -> Estimate:
    n, n_seeds = len(difference), len(parts)
    if difference.min() == difference.max():
        # Resampling could only repeat it: nothing shows how alike the pairs of a seed are, so
        # each seed counts as one.
        b, c = (n_seeds if value == sign else 0 for sign in (1.0, -1.0))
        low, high = bonett_price_interval(b, c, n_seeds, level=config.level)
        return difference_of(value, low, high, n, f"bonett_price_{n_seeds}_seeds", config)
    found = mean_interval(parts, level=config.level, method="student_t")
    if found.low is None or found.high is None:
        reason = (found.reason or "no interval").replace("value", "seed")
        return Estimate(
            value=value, level=config.level, n=n, method="none", unit="ratio", reason=reason
        )
    low, high = max(found.low, -1.0), min(found.high, 1.0)
    return difference_of(value, low, high, n, f"student_t_{n_seeds}_seeds", config)
