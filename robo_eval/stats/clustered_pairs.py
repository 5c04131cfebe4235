"""Which side succeeds more often, from pairs that come in clusters whose outcomes are alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.stats._checks import check_level, check_share, finite, pair_up, whole
from robo_eval.stats.arrays import floats

_Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteredDifference:
    """Difference of two success rates over clusters of pairs, first - second.

    Attributes:
        value: Mean over all pairs.
        standard_error: Of the mean, with a cluster added at either end.
        low: Lower end of the interval.
        high: Upper end.
        p: Two-sided p value of no difference; at most 1 - level exactly where the interval leaves
            out 0.
        clusters: How many there are.
    """

    value: float
    standard_error: float
    low: float
    high: float
    p: float
    clusters: int


def clustered_difference(
    sums: ArrayLike, sizes: ArrayLike, *, level: float = 0.95
) -> ClusteredDifference:
    """What pairs that share their seeds, or days, or robots, say about the difference.

    Student's t of the means of clusters, to which two are added: one in which the first side always
    won, and one in which it always lost, as Bonett and Price do with single pairs. Without them a
    policy that fails rarely but entirely, in all pairs of a cluster, looks better than one that
    fails as often but a little everywhere, as long as no such cluster was met.

    Args:
        sums: Sum of the differences in each cluster, each of a size of at most 1, shape (S,).
        sizes: Pairs in each cluster, shape (S,); S at least 2.
        level: Coverage aimed at.

    Raises:
        ValueError: If there are fewer than two clusters, or a sum is larger than its cluster.

    References:
        Bonett and Price (2012), Journal of Educational and Behavioral Statistics 37:479-488.

    Example:
        >>> found = clustered_difference([1, 2, 1, 1, 2, 1, 1, 2], [5] * 8)
        >>> print(f"{found.value:.3f} [{found.low:.2f}, {found.high:.2f}] p = {found.p:.2f}")
        0.275 [-0.13, 0.57] p = 0.18
    """
    from scipy.special import stdtrit

    check_level(level)
    totals, counts = finite("sums", sums), whole("sizes", sizes, least=1)
    pair_up("sums", totals, "sizes", counts)
    n = len(totals)
    if n < 2:
        raise ValueError(f"sums must hold at least 2 clusters, given {n}")
    if (np.abs(totals) > counts + 1e-9).any():
        raise ValueError("sums must be no larger than sizes: a difference is at most 1")
    mean, error, p = (float(found[0]) for found in _student(totals[np.newaxis], counts))
    half = float(stdtrit(n - 1, 0.5 + level / 2.0)) * error
    low, high, is_open = mean - half, mean + half, p > round(1.0 - level, 12)
    return ClusteredDifference(
        value=float(totals.sum() / counts.sum()),
        standard_error=error,
        low=max(min(low, 0.0) if is_open else low, -1.0),
        high=min(max(high, 0.0) if is_open else high, 1.0),
        p=p,
        clusters=n,
    )


def clustered_p_values(sums: ArrayLike, sizes: ArrayLike) -> NDArray[np.float64]:
    """The p value of `clustered_difference` of many differences over the same clusters.

    Args:
        sums: Sum of the differences in each cluster, shape (m, S); S at least 2.
        sizes: Pairs in each cluster, shape (S,).

    Example:
        >>> clustered_p_values([[1, 2, 1, 1, 2, 1, 1, 2]], [5] * 8).round(2).tolist()
        [0.18]
    """
    return _student(np.atleast_2d(floats("sums", sums)), whole("sizes", sizes, least=1))[2]


def _student(totals: _Array, counts: _Array) -> tuple[_Array, _Array, _Array]:
    """Mean, standard error and p value of rows of sums, shape (m, S), with two clusters added."""
    from scipy.special import stdtr

    n = totals.shape[1]
    # In the unit of a cluster of mean size; sorted, so that the order changes no digit.
    every = np.broadcast_to(counts, totals.shape)
    order = np.lexsort((totals, every), axis=-1)
    shares, weights = (
        np.take_along_axis(x, order, axis=-1) / counts.mean() for x in (totals, every)
    )
    mean = shares.sum(axis=-1) / (n + 2)
    ends = (np.stack([1.0 - mean, -1.0 - mean], axis=-1),)
    away = np.concatenate([shares - mean[:, np.newaxis] * weights, *ends], axis=-1)
    error = np.sqrt(np.square(away).sum(axis=-1)) / (n + 2)
    # Never less than that so many coins agree, which t may fall short of where all lean one way.
    coins = 2.0 ** (1 - np.count_nonzero(totals, axis=-1))
    p = np.minimum(1.0, np.maximum(coins, 2.0 * stdtr(n - 1, -np.abs(mean) / error)))
    return mean, error, p


def detectable_difference(
    found: ClusteredDifference, *, power: float = 0.8, alpha: float = 0.05
) -> float | None:
    """The least difference that as many clusters as scattered would show; None if none would.

    Args:
        found: What clusters say, whose standard error is taken as that of others.
        power: Chance wanted that it is found.
        alpha: Largest p value that decides.
    """
    from scipy.special import stdtrit

    check_share("power", power)
    check_share("alpha", alpha)
    n = found.clusters
    t = float(stdtrit(n - 1, 1.0 - alpha / 2.0) + stdtrit(n - 1, power))
    least = t * found.standard_error * (n + 2) / n
    return least if least <= 1.0 else None


def least_deciding_clusters(clusters: int, alpha: float = 0.05) -> int | None:
    """The least number of clusters that decide if the first side always won in them, if any can.

    In all others both sides did alike.

    Example:
        >>> least_deciding_clusters(20), least_deciding_clusters(5)
        (6, None)
    """
    from scipy.special import stdtrit

    check_share("alpha", alpha)
    if clusters < 2:
        return None
    won = np.arange(1.0, clusters + 1.0)
    mean = won / (clusters + 2)
    t = won / np.sqrt(won + 2.0 - mean * won)
    decides = (t >= stdtrit(clusters - 1, 1.0 - alpha / 2.0)) & (2.0 ** (1.0 - won) <= alpha)
    found = np.flatnonzero(decides)
    return int(won[found[0]]) if len(found) else None
