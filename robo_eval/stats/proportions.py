"""Which rates are compatible with k successes in n trials."""

from __future__ import annotations

from statistics import NormalDist
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.stats._checks import check_level, finite, unwrap, whole
from robo_eval.stats.quantiles import betaincinv, stdtrit

Sided = Literal["two", "lower", "upper"]
"""Both ends, or one end only with the whole error probability spent on it."""


@overload
def wilson_interval(k: int, n: int, *, level: float = 0.95) -> tuple[float, float]: ...
@overload
def wilson_interval(
    k: ArrayLike, n: ArrayLike, *, level: float = 0.95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def wilson_interval(
    k: ArrayLike, n: ArrayLike, *, level: float = 0.95
) -> tuple[float | NDArray[np.float64], float | NDArray[np.float64]]:
    """Score interval of a proportion: right on average, and below 0.93 at some rates.

    Args:
        k: Successes, shape () or any.
        n: Trials, at least 1, broadcast against `k`.
        level: Coverage aimed at.

    Returns:
        Lower and upper end; floats if `k` and `n` are numbers. The lower end of 0 of n is
        exactly 0, the upper end of n of n exactly 1.

    Raises:
        ValueError: If a count is not whole, `k` is not in [0, n], or `n` is below 1.

    References:
        Wilson (1927), JASA 22:209-212; Newcombe (1998), Statistics in Medicine 17:857-872,
        method 3.

    Example:
        >>> low, high = wilson_interval(81, 263)
        >>> print(f"{low:.4f} {high:.4f}")
        0.2553 0.3662
    """
    k_, n_ = _counts(k, n)
    check_level(level)
    z = NormalDist().inv_cdf(0.5 + level / 2.0)
    centre = (k_ + z * z / 2.0) / (n_ + z * z)
    half = z * np.sqrt(k_ * (n_ - k_) / n_ + z * z / 4.0) / (n_ + z * z)
    # Rounding leaves 1e-17 where the formula gives 0 or 1.
    low = np.where(k_ == 0, 0.0, centre - half)
    high = np.where(k_ == n_, 1.0, centre + half)
    return unwrap(low), unwrap(high)


@overload
def clopper_pearson_interval(
    k: int, n: int, *, level: float = 0.95, sided: Sided = "two"
) -> tuple[float, float]: ...
@overload
def clopper_pearson_interval(
    k: ArrayLike, n: ArrayLike, *, level: float = 0.95, sided: Sided = "two"
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def clopper_pearson_interval(
    k: ArrayLike, n: ArrayLike, *, level: float = 0.95, sided: Sided = "two"
) -> tuple[float | NDArray[np.float64], float | NDArray[np.float64]]:
    """Exact interval of a proportion: covers at least `level` for every rate, so fit for gates.

    Args:
        k: Successes, shape () or any.
        n: Trials, at least 1, broadcast against `k`.
        level: Coverage guaranteed.
        sided: `"lower"` gives the one-sided lower bound and 1, `"upper"` 0 and the one-sided
            upper bound.

    Returns:
        Lower and upper end; floats if `k` and `n` are numbers.

    Raises:
        ValueError: If a count is not whole, `k` is not in [0, n], or `n` is below 1.

    References:
        Clopper and Pearson (1934), Biometrika 26:404-413.

    Example:
        >>> low, high = clopper_pearson_interval(10, 10)
        >>> print(f"{low:.2f}-{high:.2f}")
        0.69-1.00
    """
    k_, n_ = _counts(k, n)
    check_level(level)
    if sided not in ("two", "lower", "upper"):
        raise ValueError(f"sided must be 'two', 'lower' or 'upper', given {sided!r}")
    tail = (1.0 - level) / (2.0 if sided == "two" else 1.0)
    low = np.zeros(k_.shape)
    high = np.ones(k_.shape)
    if sided != "upper":
        has_low = k_ > 0
        low[has_low] = betaincinv(k_[has_low], n_[has_low] - k_[has_low] + 1.0, tail)
    if sided != "lower":
        has_high = k_ < n_
        high[has_high] = betaincinv(k_[has_high] + 1.0, n_[has_high] - k_[has_high], 1.0 - tail)
    return unwrap(low), unwrap(high)


def _counts(k: ArrayLike, n: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    k_, n_ = np.broadcast_arrays(whole("k", k, least=None), whole("n", n, least=None))
    if (n_ < 1).any():
        raise ValueError(f"n must be at least 1, given {n_[n_ < 1][0]:.0f}; no data, no interval")
    bad = (k_ < 0) | (k_ > n_)
    if bad.any():
        raise ValueError(f"k must be between 0 and n, given {k_[bad][0]:.0f} of {n_[bad][0]:.0f}")
    return k_, n_


def clustered_interval(
    cluster_rates: ArrayLike, n: float, *, level: float = 0.95
) -> tuple[float, float]:
    """Interval of a proportion whose trials come in clusters that are alike.

    Clopper-Pearson at the effective sample size: the number of independent trials that would vary
    as much as the rates of the clusters do, corrected for how few clusters say so. Where the
    trials of each cluster ended alike, a cluster is one trial, and the interval is that of these.

    Args:
        cluster_rates: Share of successes in each cluster, shape (S,), S >= 2, equal sizes.
        n: Trials in all; of unequal clusters, so many equal ones that would tell as much.
        level: Coverage aimed at.

    Raises:
        ValueError: If there are fewer than two clusters, `n` is smaller than their number, or a
            share is missing or not finite.

    References:
        Korn and Graubard (1998), Survey Methodology 24:193-201.

    Example:
        >>> low, high = clustered_interval([1.0, 0.8, 0.4, 0.9, 0.6], 50)
        >>> print(f"{low:.2f}-{high:.2f}")
        0.36-0.96
        >>> low, high = clustered_interval([1.0] * 5 + [0.0] * 5, 200)  # as 5 of 10
        >>> print(f"{low:.2f}-{high:.2f}")
        0.19-0.81
    """
    rates = finite("cluster_rates", cluster_rates)
    clusters = len(rates)
    if clusters < 2 or n < clusters:
        raise ValueError(f"2 clusters and as many trials are needed, given {clusters} and {n}")
    rate = float(rates.mean())
    tail = (1.0 - level) / 2.0
    if ((rates == 0.0) | (rates == 1.0)).all():
        return clopper_pearson_interval(int(rates.sum()), clusters, level=level)
    variance = float(rates.var(ddof=1)) / clusters
    effective = min(float(n), rate * (1.0 - rate) / variance) if variance > 0.0 else float(n)
    effective *= float((stdtrit(n - 1, tail) / stdtrit(clusters - 1, tail)) ** 2)
    k = rate * effective
    low = float(betaincinv(k, effective - k + 1.0, tail))
    high = float(betaincinv(k + 1.0, effective - k, 1.0 - tail))
    return low, high
