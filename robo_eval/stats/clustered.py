"""How far a mean over tasks could be off when tasks themselves are a sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.stats._checks import finite, pair_up, whole
from robo_eval.stats._resample import (
    LARGE,
    RESAMPLES,
    check_resamples,
    distinct_rows,
    few_clusters_note,
    percentile_statistic,
    resampled_means,
    sorted_clusters,
    two_stage_means,
)
from robo_eval.stats.arrays import integers
from robo_eval.stats.estimate import Estimate, without_interval
from robo_eval.stats.proportions import wilson_interval

METHOD: Final = "two_stage_bootstrap_percentile"
_ONE_CLUSTER: Final = "one cluster says nothing about clusters like it"
_MAX_CELLS: Final = 2_000_000
"""Numbers drawn at once: bounds memory at some 100 MB."""


def two_stage_rate_interval(
    k: ArrayLike,
    n: ArrayLike,
    *,
    pooled: bool = False,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """Mean of the success rates of clusters (tasks, days, robots), each counting once.

    Clusters are resampled, then episodes inside them, so the interval speaks about clusters like
    these and is wide by nature when they are few. Pooling all episodes as if they were independent
    would be too narrow.

    Args:
        k: Successes in each cluster, shape (T,).
        n: Episodes in each, at least 1, shape (T,) or one number for all.
        pooled: The share of all episodes instead, in which a cluster counts by its size.
        level: Coverage aimed at; below 8 clusters it is less, as the reason then says.
        resamples: Bootstrap resamples.
        seed: Seed of the resamples; the order of clusters changes nothing.

    Returns:
        The mean rate; without an interval if there is one cluster, or every episode ended alike,
        which resampling can only repeat. `n` is the number of episodes.

    Raises:
        ValueError: If a count is not whole, or there are more successes than episodes.

    References:
        Davison and Hinkley (1997), Bootstrap Methods and their Application, section 3.8.

    Example:
        >>> found = two_stage_rate_interval([9, 8, 10, 5], 10)
        >>> print(f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]")
        0.80 [0.57, 0.97]
        >>> found.reason
        '4 clusters; with fewer than 8 it can cover less than it says'
    """
    check_resamples(level, resamples)
    wilson_interval(k, n)  # refuses impossible counts
    k_, n_ = np.broadcast_arrays(np.atleast_1d(integers("k", k)), integers("n", n))
    order = np.lexsort((n_, k_))
    k_, n_ = k_[order], n_[order]
    clusters, total = len(k_), int(n_.sum())
    rates = k_ / n_
    value = float(k_.sum() / total if pooled else rates.mean())
    if clusters < 2:
        return without_interval(value, n=total, reason=_ONE_CLUSTER, level=level)
    if value in (0.0, 1.0):
        return without_interval(value, n=total, reason="all episodes ended alike", level=level)
    rng = np.random.default_rng(seed)
    draws = np.empty(resamples)
    step = max(1, _MAX_CELLS // clusters)
    for first in range(0, resamples, step):
        b = min(step, resamples - first)
        cluster = rng.integers(0, clusters, (b, clusters))
        successes = rng.binomial(n_[cluster], rates[cluster])
        if pooled:
            draws[first : first + b] = successes.sum(axis=1) / n_[cluster].sum(axis=1)
        else:
            draws[first : first + b] = (successes / n_[cluster]).mean(axis=1)
    return percentile_statistic(
        value, draws, level=level, n=total, method=METHOD, note=few_clusters_note(clusters)
    )


def two_stage_mean_interval(
    clusters: Sequence[ArrayLike],
    *,
    level: float = 0.95,
    unit: str = "ratio",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """`two_stage_rate_interval` for qualities of any kind.

    Args:
        clusters: Observations of each cluster, T sequences of any length above 0.
        level: As `two_stage_rate_interval`, like `resamples` and `seed`.
        unit: Unit of the observations.
        resamples: As `two_stage_rate_interval`.
        seed: As `two_stage_rate_interval`; the order of observations changes nothing either.

    Raises:
        ValueError: If there is no cluster, one is empty, or a number is not finite.

    Example:
        >>> found = two_stage_mean_interval([[0.9, 0.7, 0.8], [0.4, 0.5], [0.6, 0.7, 0.5]])
        >>> print(f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]")
        0.62 [0.46, 0.79]
    """
    check_resamples(level, resamples)
    tables = [finite("a cluster", values)[:, None] for values in clusters]
    if not tables or min(len(table) for table in tables) == 0:
        raise ValueError("each cluster needs an observation, and there must be a cluster")
    total = sum(len(table) for table in tables)
    groups = sorted_clusters(tables)
    value = float(np.mean([rows.counts @ rows.values[:, 0] / rows.counts.sum() for rows in groups]))
    if len(groups) < 2:
        return without_interval(value, n=total, reason=_ONE_CLUSTER, level=level, unit=unit)
    draws = two_stage_means(groups, resamples, np.random.default_rng(seed))[:, 0]
    return percentile_statistic(
        value,
        draws,
        level=level,
        n=total,
        method=METHOD,
        unit=unit,
        note=few_clusters_note(len(groups)),
    )


def resampled_ratios(
    sums: ArrayLike, sizes: ArrayLike, *, resamples: int = RESAMPLES, seed: int = 0
) -> NDArray[np.float64]:
    """Mean of all observations when whole clusters are drawn, in each resample.

    Args:
        sums: Sum of the observations of each cluster, shape (T,), finite.
        sizes: Their number, at least 1, shape (T,).
        resamples: Bootstrap resamples.
        seed: Seed of the resamples.

    Returns:
        Shape (B,).

    Raises:
        ValueError: If there is no cluster, or there is not one size a cluster.
    """
    totals, counts = finite("sums", sums), whole("sizes", sizes, least=1)
    pair_up("sums", totals, "sizes", counts)
    n = len(totals)
    if not n:
        raise ValueError("no clusters; there is nothing to draw")
    rng = np.random.default_rng(seed)
    if n >= LARGE:  # clusters that are alike are drawn together
        means = resampled_means(distinct_rows(np.column_stack([totals, counts])), resamples, rng)
        return np.asarray(means[:, 0] / means[:, 1])
    weights = rng.multinomial(n, np.full(n, 1.0 / n), resamples)
    return np.asarray((weights @ totals) / (weights @ counts))
