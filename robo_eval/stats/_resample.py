"""Resampled means of many columns at once: what the bootstraps of this package share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.stats._checks import check_level
from robo_eval.stats.arrays import is_absent, unmasked
from robo_eval.stats.estimate import Estimate, without_interval

RESAMPLES: Final = 2000
"""Resamples of a bootstrap of several statistics at once."""
ENOUGH_CLUSTERS: Final = 8
"""Clusters from which a percentile interval over clusters covers about what it says."""
LARGE: Final = 250
"""Observations from which on the mean is resampled in bins, see `means_in_bins`."""
_BINS: Final = 8
_MAX_CELLS: Final = 2_000_000
"""Numbers drawn at once: bounds memory at some 100 MB."""


class CountedRows(NamedTuple):
    """Observations, equal ones counted together.

    Attributes:
        values: The distinct rows in ascending order, shape (K, d).
        counts: How often each was seen, shape (K,).
    """

    values: NDArray[np.float64]
    counts: NDArray[np.int64]


def distinct_rows(table: NDArray[np.float64]) -> CountedRows:
    """Count equal rows of a table, shape (n, d): outcomes have few values, however many there are.

    The order of the rows no longer matters, and neither does their number for the time a resample
    takes.
    """
    code = np.zeros(len(table), dtype=np.int64)
    for column in table.T:
        values, rank = np.unique(column, return_inverse=True)
        # Ranked anew after each column, so that the codes stay below n squared.
        code = np.unique(code * len(values) + rank, return_inverse=True)[1]
    _, first, counts = np.unique(code, return_index=True, return_counts=True)
    return CountedRows(table[first], counts)


def resampled_means(
    rows: CountedRows, resamples: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Means of the columns when rows are drawn with replacement, shape (B, d)."""
    values, counts = rows
    kinds, n = len(values), int(counts.sum())
    means = np.empty((resamples, values.shape[1]))
    few = 4 * kinds <= n
    step = max(1, _MAX_CELLS // (kinds if few else n))
    row_of = np.repeat(np.arange(kinds), counts) if not few else None
    for first in range(0, resamples, step):
        b = min(step, resamples - first)
        if row_of is None:
            weights = rng.multinomial(n, counts / n, size=b).astype(np.float64)
        else:
            drawn = row_of[rng.integers(0, n, (b, n))] + kinds * np.arange(b)[:, None]
            counts_drawn = np.bincount(drawn.ravel(), minlength=b * kinds)
            weights = counts_drawn.reshape(b, kinds).astype(np.float64)
        means[first : first + b] = weights @ values / n
    return means


class Bins(NamedTuple):
    """Many observations cut into few bins of neighbours.

    Attributes:
        counts: Observations in each bin, shape (K,).
        means: Their mean, shape (K,).
        variances: Their mean squared distance from it, shape (K,); 0 where all are equal.
    """

    counts: NDArray[np.int64]
    means: NDArray[np.float64]
    variances: NDArray[np.float64]


def bins_of(x: NDArray[np.float64], bins: int = _BINS) -> Bins:
    """Cut observations in ascending order, shape (n,), into at most `2 * bins` bins.

    With so few distinct values each has a bin of its own. Otherwise the cuts are at equal counts
    and at equal widths, so that an outlier shares its bin with nothing far from it.
    """
    n = len(x)
    cuts = np.flatnonzero(np.diff(x)) + 1
    if len(cuts) >= 2 * bins:
        even = np.arange(1, bins) * n // bins
        wide = np.searchsorted(x, x[0] + (x[-1] - x[0]) * np.arange(1, bins) / bins)
        cuts = np.unique(np.concatenate([even, wide]))
    start = np.concatenate([[0], cuts[(cuts > 0) & (cuts < n)]])
    counts = np.diff(np.append(start, n))
    sums = np.add.reduceat(x, start)
    means = np.where(x[start] == x[start + counts - 1], x[start], sums / counts)
    squares = np.add.reduceat((x - np.repeat(means, counts)) ** 2, start)
    return Bins(counts, means, squares / counts)


def means_in_bins(
    bins: Bins, draws: int, resamples: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Means of so many draws with replacement, in a time that does not grow with their number.

    How many draws fall into each bin is multinomial, exactly as if observations were drawn one by
    one. What the draws within the bins add to that has its exact variance and is taken to be
    normal: it is some hundredths of the whole variance, and the sum of many draws. Where every
    bin holds one value, nothing is approximated.

    Returns:
        Shape (B,).
    """
    drawn = rng.multinomial(draws, bins.counts / bins.counts.sum(), resamples)
    means = drawn @ bins.means / draws
    if bins.variances.any():
        means += np.sqrt(drawn @ bins.variances) / draws * rng.standard_normal(resamples)
    return np.asarray(means)


def drawn_clusters(
    clusters: int,
    resamples: int,
    rng: np.random.Generator,
    means_of: Callable[[int, int], NDArray[np.float64]],
    *,
    most: int,
) -> Iterator[NDArray[np.float64]]:
    """Means of clusters that are drawn with replacement, each as often as there are clusters.

    Args:
        clusters: How many there are, C.
        resamples: How often all are drawn, B.
        rng: Source of the draws.
        means_of: So many means of resamples of a cluster, by its number, shape (times, ...).
        most: Resamples drawn at once.

    Yields:
        Of some resamples at a time, shape (b, C, ...), together B of them.
    """
    for first in range(0, resamples, most):
        b = min(most, resamples - first)
        cluster = rng.integers(0, clusters, b * clusters)
        # Draws of the same cluster side by side, so that each is one matrix product.
        times = np.bincount(cluster, minlength=clusters).tolist()
        means = np.concatenate([means_of(number, count) for number, count in enumerate(times)])
        drawn = np.empty_like(means)
        drawn[np.argsort(cluster, kind="stable")] = means
        yield drawn.reshape(b, clusters, *means.shape[1:])


def two_stage_means(
    clusters: Sequence[CountedRows], resamples: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Mean of cluster means when clusters, then rows inside them, are drawn, shape (B, d)."""
    n, d = len(clusters), clusters[0].values.shape[1]
    drawn = drawn_clusters(
        n, resamples, rng, lambda own, times: resampled_means(clusters[own], times, rng),
        most=max(1, _MAX_CELLS // (n * d)),
    )  # fmt: skip
    return np.concatenate([means.mean(axis=1) for means in drawn])


def sorted_clusters(tables: Sequence[NDArray[np.float64]]) -> list[CountedRows]:
    """The rows of each cluster, clusters in an order that does not depend on how they came."""
    clusters = [distinct_rows(table) for table in tables]
    return sorted(clusters, key=lambda rows: (rows.values.tolist(), rows.counts.tolist()))


def few_clusters_note(clusters: int) -> str | None:
    """What to know about a percentile interval over so many clusters."""
    if clusters >= ENOUGH_CLUSTERS:
        return None
    return f"{clusters} clusters; with fewer than {ENOUGH_CLUSTERS} it can cover less than it says"


def percentile_statistic(
    value: float,
    draws: NDArray[np.float64],
    *,
    level: float,
    n: int,
    method: str,
    unit: str = "ratio",
    upper_draws: NDArray[np.float64] | None = None,
    note: str | None = None,
) -> Estimate:
    """A statistic with the percentile interval of its resamples.

    Resamples in which the statistic is undefined count as anything: as the least for the lower
    end, as the largest for the upper.

    Args:
        value: The statistic itself; NaN if undefined.
        draws: The statistic of each resample, shape (B,).
        level: Coverage aimed at.
        n: Observations.
        method: What to call the interval.
        unit: Unit of the statistic.
        upper_draws: Other draws for the upper end.
        note: What to know when reading the interval.
    """

    def bare(value: float | None, reason: str) -> Estimate:
        return without_interval(value, n=n, reason=reason, level=level, unit=unit)

    if not np.isfinite(value):
        return bare(None, "undefined for these observations")
    upper = draws if upper_draws is None else upper_draws
    least = np.sort(np.where(np.isfinite(draws), draws, -np.inf))
    largest = np.sort(np.where(np.isfinite(upper), upper, np.inf))
    tail = (1.0 - level) / 2.0
    with np.errstate(invalid="ignore"):  # infinity less infinity
        low, high = float(np.quantile(least, tail)), float(np.quantile(largest, 1.0 - tail))
    if not (np.isfinite(low) and np.isfinite(high)):
        share = float((~np.isfinite(draws)).mean())
        return bare(value, f"undefined in {share:.0%} of the resamples")
    if high - low <= 1e-12 * max(1.0, abs(value)):
        return bare(value, "every resample gives the same value")
    return Estimate(
        value=value, low=low, high=high, level=level, n=n, method=method, unit=unit, reason=note
    )


def check_resamples(level: float, resamples: int) -> None:
    """Refuse a coverage outside (0, 1) and too few resamples for the ends of an interval."""
    check_level(level)
    if resamples < 100:
        raise ValueError(f"resamples must be at least 100, given {resamples}")


def groups_by(labels: ArrayLike, table: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """The rows of each label.

    Raises:
        ValueError: If there is not one label a row.
    """
    names = unmasked("clusters", labels)
    if names.dtype.kind in "Of" and any(map(is_absent, names.ravel())):
        raise ValueError("clusters must name the cluster of each row; one is missing")
    if names.shape != (len(table),):
        raise ValueError(
            f"clusters must name the cluster of each row, shape ({len(table)},),"
            f" given {names.shape}"
        )
    _, cluster = np.unique(names, return_inverse=True)
    order = np.argsort(cluster, kind="stable")
    ends = np.cumsum(np.bincount(cluster))[:-1]
    return np.split(table[order], ends)
