"""How far a mean over tasks could be off when tasks themselves are a sample."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.stats._checks import check_level, finite, pair_up, whole
from robo_eval.stats._resample import LARGE, RESAMPLES, distinct_rows, resampled_means
from robo_eval.stats.arrays import floats, same_labels
from robo_eval.stats.estimate import Estimate, without_interval
from robo_eval.stats.quantiles import stdtrit

METHOD: Final = "beta_binomial_profile"
LEAST_CLUSTERS: Final = 3
"""From so many on clusters say something of others like them."""
_CONCENTRATIONS: Final = np.geomspace(1.0, 1e6, 64)
"""Those looked at; at the largest, clusters do not differ."""
_WITH_EXTREMES: Final = np.append(np.geomspace(0.01, 1.0, 20, endpoint=False), _CONCENTRATIONS)
"""The same, and those at which nearly all clusters succeed always or never."""
_END: Final = 35.0
"""The largest logit; beyond, a rate is 0 or 1 to the last digit."""
_STEPS: Final = 50
"""Steps of a search, after which nothing is left to find in a float."""


@same_labels()
def new_cluster_rate(
    k: ArrayLike, n: ArrayLike, *, level: float = 0.95, extremes: bool = False
) -> Estimate:
    """Mean success rate of clusters (tasks, days, robots) like these, each counting once.

    Rates of clusters are taken as drawn from a beta distribution whose mean is asked for, and
    episodes within a cluster as independent. The interval holds the means that the profile
    likelihood does not speak against. Its critical value is the one that is exact for the mean of
    as many normal numbers of unknown spread, so that few clusters cost what they should. Beta
    distributions with a concentration below 1, in which most clusters succeed always or never, are
    left out unless asked for: where they are the truth, the interval covers too little, and with
    them clusters that all succeed say hardly more than as many single episodes.

    Args:
        k: Successes in each cluster, shape (T,); the sum of rates where trials repeat.
        n: Episodes in each, above 0, shape (T,) or one number for all.
        level: Coverage aimed at.
        extremes: Whether concentrations down to 0.01 are possible, too.

    Returns:
        The mean of the rates; none below 3 clusters. `n` is the number of clusters.

    Raises:
        ValueError: If `k` is not between 0 and `n`.

    References:
        Williams (1975), Biometrics 31:949-952 (beta-binomial). Barndorff-Nielsen and Cox (1994),
        Inference and Asymptotics, section 3.4 (profile likelihood of a normal mean).

    Example:
        >>> found = new_cluster_rate([9, 8, 10, 5], 10)
        >>> print(f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]")
        0.80 [0.41, 0.96]
    """
    check_level(level)
    k_, n_ = np.broadcast_arrays(np.atleast_1d(floats("k", k)), floats("n", n))
    if not ((n_ > 0.0) & (k_ >= 0.0) & (k_ <= n_)).all():
        raise ValueError(f"k must be between 0 and n, and n above 0, given {k_} of {n_}")
    clusters = len(k_)
    if clusters < LEAST_CLUSTERS:
        reason = f"fewer than {LEAST_CLUSTERS} clusters say nothing of others like them"
        return without_interval(None, n=clusters, reason=reason, level=level)
    order = np.lexsort((n_, k_))  # so that sums do not depend on the order of the clusters
    k_, n_ = k_[order], n_[order]
    value = float((k_ / n_).mean())
    concentrations = _WITH_EXTREMES if extremes else _CONCENTRATIONS
    low, high = _interval(k_, n_, concentrations, _allowed(clusters, level))
    return Estimate(
        value=value,
        low=min(low, value),
        high=max(high, value),
        level=level,
        n=clusters,
        method=METHOD,
        unit="ratio",
    )


def new_cluster_difference(
    first: ArrayLike,
    second: ArrayLike,
    n: ArrayLike,
    n_second: ArrayLike | None = None,
    *,
    level: float = 0.95,
) -> Estimate:
    """Mean difference of two rates of clusters like these, from the interval of each rate.

    Args:
        first: Successes of the first kind in each cluster, shape (T,); of pairs, those in which
            the first alone succeeds.
        second: The same of the second.
        n: Trials, or pairs, in each.
        n_second: Trials of the second, where they are others.
        level: Coverage aimed at.

    Returns:
        First less second; none below 3 clusters. `n` is the number of clusters.

    Raises:
        ValueError: As `new_cluster_rate`.

    References:
        Zou and Donner (2008), Statistics in Medicine 27:1693-1702 (from limits of each).

    Example:
        >>> found = new_cluster_difference([2, 0, 1], [6, 4, 9], 30)
        >>> print(f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]")
        -0.18 [-0.44, 0.18]
    """
    one = new_cluster_rate(first, n, level=level)
    other = new_cluster_rate(second, n if n_second is None else n_second, level=level)
    if one.value is None or other.value is None:
        return one
    assert one.low is not None, "what has a value has an interval"
    assert one.high is not None
    assert other.low is not None
    assert other.high is not None
    value = one.value - other.value
    down = math.hypot(one.value - one.low, other.high - other.value)
    up = math.hypot(one.high - one.value, other.value - other.low)
    return replace(
        one,
        value=value,
        low=max(value - down, -1.0),
        high=min(value + up, 1.0),
        method=f"{METHOD}_difference",
    )


def _allowed(clusters: int, level: float) -> float:
    """How far below its maximum the log likelihood may be: exact for means of normal numbers."""
    t = float(stdtrit(clusters - 1.0, 0.5 + level / 2.0))
    return clusters * math.log1p(t * t / (clusters - 1.0)) / 2.0


def _interval(
    k: NDArray[np.float64],
    n: NDArray[np.float64],
    concentrations: NDArray[np.float64],
    allowed: float,
) -> tuple[float, float]:
    """Ends of the means whose log likelihood is so little below the highest."""
    # scipy costs 0.3 s at start-up, which verbs that compute no interval must not pay.
    from scipy.special import betaln, expit

    def likelihood(x: float) -> float:
        """Log likelihood of a mean, given as its logit, at the concentration that suits it best."""
        a, b = expit(x) * concentrations, expit(-x) * concentrations
        logs = betaln(k[:, None] + a, (n - k)[:, None] + b) - betaln(a, b)
        return float(logs.sum(axis=0).max())

    low, high = -_END, _END
    for _ in range(_STEPS):  # its logarithm rises to one maximum, and falls
        third = (high - low) / 3.0
        if likelihood(low + third) < likelihood(high - third):
            low += third
        else:
            high -= third
    best = (low + high) / 2.0
    least = likelihood(best) - allowed

    def end(outer: float) -> float:
        inner = best
        if likelihood(outer) >= least:
            return float(outer > 0.0)
        for _ in range(_STEPS):
            middle = (inner + outer) / 2.0
            if likelihood(middle) < least:
                outer = middle
            else:
                inner = middle
        return float(expit(inner))

    return end(-_END), end(_END)


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
