"""Which of two policies succeeds more often in pairs of episodes that started alike."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.wording import counted
from robo_eval.metrics.contrast import Attempts, Contrast, difference_of, no_difference
from robo_eval.stats.clustered_pairs import clustered_difference
from robo_eval.stats.paired import paired_table
from robo_eval.stats.unconditional import pairs_interval, pairs_p

if TYPE_CHECKING:
    from robo_eval.metrics.config import MetricConfig


def contrast_of_pairs(
    first: Attempts, second: Attempts, left_out: int, config: MetricConfig
) -> Contrast:
    """Compare row i of one policy with row i of another.

    With a seed of its own for each pair: the exact test of pairs and the differences it does not
    reject. Where pairs share their seeds, or a seed repeats, the seeds are what is independent:
    Student's t of their means with a seed added at either end, and the interval of the same t.
    Flipping the signs of seeds would ask whether a seed could be swapped between the policies,
    which equally good ones that fail differently do not allow.

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
        low, high = pairs_interval(b, c, n, level=config.level)
        difference = difference_of((b - c) / n, low, high, n, "pairs_exact", config)
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
        p_value=pairs_p(b, c, n) if n else None,
        test="pairs_exact" if n else "none",
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
    sums, sizes = np.bincount(cluster, weights=difference), np.bincount(cluster)
    n_seeds = len(sums)
    if n_seeds > 1:
        found = clustered_difference(np.round(sums, 12), sizes, level=config.level)
        method = f"student_t_{n_seeds}_seeds"
        estimate = difference_of(found.value, found.low, found.high, n, method, config)
    else:
        reason = f"{counted(n_seeds, 'seed')}, shared by all pairs, says too little"
        found, estimate = None, replace(no_difference(reason), value=float(difference.mean()), n=n)
    return Contrast(
        unit="seeds",
        n_units=n_seeds,
        n_discordant=int((sums != 0.0).sum()),
        n_pairs=n,
        n_first=int(one.repeats.sum()),
        n_second=int(other.repeats.sum()),
        left_out=left_out,
        difference=estimate,
        p_value=found.p if found else None,
        test="t_by_seed" if found else "none",
        seeds=found,
    )
