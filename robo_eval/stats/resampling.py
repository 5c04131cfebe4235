"""How far a mean could be off, by resampling what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.stats._resample import (
    LARGE,
    bins_of,
    check_resamples,
    drawn_clusters,
    means_in_bins,
)
from robo_eval.stats.arrays import floats, same_labels
from robo_eval.stats.estimate import Estimate, without_interval
from robo_eval.stats.quantiles import ndtr, ndtri, stdtrit

Method = Literal["auto", "bca", "percentile", "student_t"]

RESAMPLES: Final = 9999
"""Resamples of an interval: with 9,999 the ends move by well under a tenth of its width."""
BCA_FROM: Final = 10
"""Sample size from which BCa is used; below, resampling knows too few values."""
T_FROM: Final = 3
"""Sample size from which Student's t is used; below, there is no interval."""
_MAX_CELLS: Final = 4_000_000
"""Numbers drawn at once: bounds memory at some 100 MB."""


def mean_interval(
    values: ArrayLike,
    *,
    level: float = 0.95,
    unit: str = "ratio",
    method: Method = "auto",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """Mean of independent observations with an interval fit for their number.

    Values that are all equal have no interval: resampling them can only return them, and BCa
    divides by zero. The order of the values changes nothing.

    Args:
        values: Observations, shape (n,), finite.
        level: Coverage aimed at.
        unit: Unit of the observations.
        method: `"auto"` takes BCa from 10 observations on, Student's t from 3 on, nothing below.
        resamples: Bootstrap resamples.
        seed: Seed of the resamples.

    Raises:
        ValueError: If there is no value, one is not finite, or an argument is out of range.

    References:
        Efron (1987), JASA 82:171-185 (BCa).

    Example:
        >>> interval = mean_interval([0.2, 0.4, 0.9])
        >>> print(f"{interval.value:.2f} {interval.low:.2f} {interval.high:.2f} {interval.method}")
        0.50 -0.40 1.40 student_t
    """
    return mean_intervals(
        [values], level=level, unit=unit, method=method, resamples=resamples, seed=seed
    )[0]


def mean_intervals(
    samples: Sequence[ArrayLike],
    *,
    level: float = 0.95,
    unit: str = "ratio",
    method: Method = "auto",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> list[Estimate]:
    """`mean_interval` of many samples at once; samples of one size share their resamples.

    Sharing changes no single interval, and turns the work into one matrix product a size. From
    250 observations on the draws are counted in bins of neighbours instead of one by one, which
    gives the same intervals up to the chance of resampling in a time that hardly grows.

    Args:
        samples: Observations of each sample, sequences of any length.
        level: See `mean_interval`, like the arguments that follow.
        unit: See `mean_interval`.
        method: See `mean_interval`.
        resamples: See `mean_interval`.
        seed: See `mean_interval`.

    Raises:
        ValueError: As `mean_interval`.
    """
    check_resamples(level, resamples)
    if method not in ("auto", "bca", "percentile", "student_t"):
        raise ValueError(f"method must be auto, bca, percentile or student_t, given {method!r}")

    def bare(x: NDArray[np.float64], reason: str) -> Estimate:
        return without_interval(_mean(x), n=len(x), reason=reason, level=level, unit=unit)

    def within(x: NDArray[np.float64], low: float, high: float, used: str) -> Estimate:
        return Estimate(
            value=_mean(x), low=low, high=high, level=level, n=len(x), method=used, unit=unit
        )

    sorted_samples = [np.sort(_sample(values)) for values in samples]
    found: dict[int, Estimate] = {}
    to_resample: dict[tuple[int, str], list[int]] = {}
    for index, x in enumerate(sorted_samples):
        n = len(x)
        used: str = method if method != "auto" else "bca" if n >= BCA_FROM else "student_t"
        if x[0] == x[-1]:
            why = f"all {n} values are equal" if n > 1 else "one value"
            found[index] = bare(x, why)
        elif n < T_FROM:
            found[index] = bare(x, f"{n} values; an interval needs {T_FROM}")
        elif used == "student_t":
            low, high = _student_t(x, level)
            found[index] = within(x, low, high, used)
        else:
            to_resample.setdefault((n, used), []).append(index)
    for (_, used), indices in to_resample.items():
        table = np.stack([sorted_samples[index] for index in indices])
        means = _resampled_means(table, resamples, seed)
        ends = _bootstrap_ends(table, means, level, bca=used == "bca")
        for index, x, (low, high) in zip(indices, table, ends.T.tolist(), strict=True):
            found[index] = within(x, low, high, used)
    return [found[index] for index in range(len(sorted_samples))]


@same_labels()
def paired_difference_interval(
    first: ArrayLike,
    second: ArrayLike,
    *,
    level: float = 0.95,
    unit: str = "ratio",
    method: Method = "auto",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """Mean of first - second over pairs; pairs are resampled, never the two sides apart.

    Raises:
        ValueError: If the sides differ in length, or as `mean_interval`.

    Example:
        >>> interval = paired_difference_interval([0.9, 0.8, 1.0], [1.0, 1.0, 1.0])
        >>> print(f"{interval.value:.2f} {interval.low:.2f} {interval.high:.2f}")
        -0.10 -0.35 0.15
    """
    a, b = _sample(first), _sample(second)
    if a.shape != b.shape:
        raise ValueError(f"pairs need two sides of equal length, given {len(a)} and {len(b)}")
    return mean_interval(
        a - b, level=level, unit=unit, method=method, resamples=resamples, seed=seed
    )


def stratified_mean_interval(
    strata: Sequence[ArrayLike],
    *,
    over: Literal["these", "like_these"],
    level: float = 0.95,
    unit: str = "ratio",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """Mean of the strata's means, each stratum counting once, with a percentile interval.

    Args:
        strata: Observations of each stratum (task, cell, ...), T sequences of any length.
        over: `"these"` keeps the strata and resamples inside them, drawing one observation less
            than there is, without which small strata would look too certain: the interval
            speaks about these strata. `"like_these"` resamples strata, then observations inside
            them: it speaks about strata like these, and is wide by nature when they are few.
        level: Coverage aimed at.
        unit: Unit of the observations.
        resamples: Bootstrap resamples.
        seed: Seed of the resamples; the order of observations and strata changes nothing.

    Raises:
        ValueError: If there is no stratum or one is empty, or a number is not finite.

    References:
        Rao and Wu (1988), JASA 83:231-241 (drawing n - 1 inside strata).
    """
    check_resamples(level, resamples)
    if over not in ("these", "like_these"):
        raise ValueError(f"over must be 'these' or 'like_these', given {over!r}")
    samples = sorted((np.sort(_sample(values)) for values in strata), key=lambda x: x.tolist())
    if not samples:
        raise ValueError("no strata; there is nothing to average")
    n = sum(len(x) for x in samples)
    value = float(np.mean([_mean(x) for x in samples]))

    def none(reason: str) -> Estimate:
        return without_interval(value, n=n, reason=reason, level=level, unit=unit)

    if over == "these" and min(len(x) for x in samples) < 2:
        return none("a stratum holds one value, which cannot be resampled")
    if over == "like_these" and len(samples) < 2:
        return none("one stratum says nothing about strata like it")
    if all(x[0] == x[-1] for x in samples) and (
        over == "these" or len({float(x[0]) for x in samples}) == 1
    ):
        return none("all values of each stratum are equal")
    rng = np.random.default_rng(seed)
    if over == "these":
        means = _within_strata(samples, resamples, rng)
        name = "stratified_bootstrap_percentile"
    else:
        means = _two_stage(samples, resamples, rng)
        name = "two_stage_bootstrap_percentile"
    low, high = np.quantile(means, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return Estimate(
        value=value, low=float(low), high=float(high), level=level, n=n, method=name, unit=unit
    )


def cells_mean_interval(
    cells: Sequence[ArrayLike],
    *,
    level: float = 0.95,
    unit: str = "ratio",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """Mean of the means of these cells, each counting once, with an interval fit for their sizes.

    The smallest cell decides as the number of values does in `mean_interval`: from 10 on values
    are resampled inside cells, from 3 on it is Student's t with the degrees of freedom of Welch and
    Satterthwaite, and below there is no interval. One cell is `mean_interval`.

    Args:
        cells: Observations of each cell, sequences of any length.
        level: Coverage aimed at.
        unit: Unit of the observations.
        resamples: Bootstrap resamples.
        seed: Seed of the resamples.

    Raises:
        ValueError: If there is no cell or one is empty, or a number is not finite.

    References:
        Satterthwaite (1946), Biometrics Bulletin 2:110-114.

    Example:
        >>> interval = cells_mean_interval([[0.2, 0.4, 0.9], [0.1, 0.3, 0.2]])
        >>> print(f"{interval.value:.2f} {interval.low:.2f} {interval.high:.2f} {interval.method}")
        0.35 -0.06 0.76 welch_t
    """
    if len(cells) == 1:
        return mean_interval(cells[0], level=level, unit=unit, resamples=resamples, seed=seed)
    check_resamples(level, resamples)
    samples = sorted((np.sort(_sample(values)) for values in cells), key=lambda x: x.tolist())
    least = min(map(len, samples), default=BCA_FROM)
    varied = [x for x in samples if x[0] != x[-1]]
    if least >= BCA_FROM or (least >= T_FROM and not varied):
        return stratified_mean_interval(
            samples, over="these", level=level, unit=unit, resamples=resamples, seed=seed
        )
    value, n = float(np.mean([_mean(x) for x in samples])), sum(map(len, samples))
    reason = f"a condition has {least} of the {T_FROM} values that an interval needs in each"
    bare = without_interval(value, n=n, reason=reason, level=level, unit=unit)
    if least < T_FROM:
        return bare
    spread = np.array([x.var(ddof=1) / len(x) for x in varied])
    less = np.array([len(x) - 1 for x in varied])
    degrees = float(spread.sum() ** 2 / (spread**2 / less).sum())
    half = float(stdtrit(degrees, 0.5 + level / 2.0)) * float(spread.sum()) ** 0.5 / len(samples)
    return replace(bare, low=value - half, high=value + half, method="welch_t", reason=None)


def _mean(x: NDArray[np.float64]) -> float:
    return float(x[0]) if x[0] == x[-1] else float(x.mean())


def _sample(values: ArrayLike) -> NDArray[np.float64]:
    x = floats("values", values)
    if x.ndim != 1 or x.size == 0:
        raise ValueError(f"values have shape {x.shape}; a mean needs (n,), n >= 1")
    if not np.isfinite(x).all():
        raise ValueError(f"value {x[~np.isfinite(x)][0]} is not finite")
    return x


def _student_t(x: NDArray[np.float64], level: float) -> tuple[float, float]:
    n = len(x)
    half = float(stdtrit(n - 1, 0.5 + level / 2.0)) * float(x.std(ddof=1)) / n**0.5
    return float(x.mean()) - half, float(x.mean()) + half


def _resampled_means(table: NDArray[np.float64], resamples: int, seed: int) -> NDArray[np.float64]:
    """Means of resampled rows of `table` (R, n), each in ascending order, shape (R, B)."""
    n = table.shape[1]
    if n >= LARGE:
        return np.stack(
            [means_in_bins(bins_of(x), n, resamples, np.random.default_rng(seed)) for x in table]
        )
    rng = np.random.default_rng(seed)
    means = np.empty((len(table), resamples))
    step = max(1, _MAX_CELLS // n)
    for first in range(0, resamples, step):
        b = min(step, resamples - first)
        index = rng.integers(0, n, (b, n))
        # How often each observation was drawn says all about a mean.
        flat = (index + n * np.arange(b)[:, None]).ravel()
        counts = np.bincount(flat, minlength=b * n).reshape(b, n).astype(np.float64)
        means[:, first : first + b] = table @ counts.T / n
    return means


def _bootstrap_ends(
    table: NDArray[np.float64], means: NDArray[np.float64], level: float, *, bca: bool
) -> NDArray[np.float64]:
    """Ends of the interval of each row of `table` (R, n), of its resampled means (R, B).

    Returns:
        Lower and upper ends, shape (2, R).
    """
    tails = np.array([[(1.0 - level) / 2.0], [(1.0 + level) / 2.0]])
    if bca:
        tails = _bca_tails(table, means, tails)
    ascending = np.sort(means, axis=1)
    return np.stack(
        [_quantiles(ascending, tail) for tail in np.broadcast_to(tails, (2, len(means)))]
    )


def _quantiles(ascending: NDArray[np.float64], share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Quantile of each row by a share of its own, to the last digit as `np.quantile` has it.

    That sorts, or partitions, every row anew for every call.
    """
    last = ascending.shape[1] - 1
    place = share * last
    before = np.clip(np.floor(place), 0, last).astype(np.intp)
    rows = np.arange(len(ascending))
    low, high = ascending[rows, before], ascending[rows, np.minimum(before + 1, last)]
    part = place - before
    step = high - low
    return np.asarray(np.where(part >= 0.5, high - step * (1.0 - part), low + step * part))


def _bca_tails(
    table: NDArray[np.float64], means: NDArray[np.float64], tails: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Tail probabilities corrected for bias and for a spread that depends on the mean, (2, R)."""
    # Ties count half, and rounding must not break them: scores on a grid tie often.
    mean = table.mean(axis=1, keepdims=True)
    noise = 1e-12 * np.maximum(np.abs(table[:, :1]), np.abs(table[:, -1:]))
    below = (means < mean - noise).mean(axis=1) + (means <= mean + noise).mean(axis=1)
    bias = ndtri(below / 2.0)
    # Leaving x_i out moves the mean by a constant times (mean - x_i).
    influence = table - mean
    spread = (influence**2).sum(axis=1) ** 1.5
    acceleration = (influence**3).sum(axis=1) / (6.0 * spread)
    shifted = bias + ndtri(tails)
    corrected: NDArray[np.float64] = ndtr(bias + shifted / (1.0 - acceleration * shifted))
    return corrected


def _within_strata(
    samples: Sequence[NDArray[np.float64]], resamples: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Mean of stratum means when observations are drawn inside each stratum, shape (B,)."""
    total = np.zeros(resamples)
    by_size: dict[int, list[NDArray[np.float64]]] = {}
    for x in samples:
        by_size.setdefault(len(x), []).append(x)
    for n, group in sorted(by_size.items()):
        if n >= LARGE:
            for x in group:
                total += means_in_bins(bins_of(x), n - 1, resamples, rng)
            continue
        table = np.stack(group)
        step = max(1, _MAX_CELLS // (resamples * n))
        for first in range(0, len(group), step):
            block = table[first : first + step]
            index = rng.integers(0, n, (resamples, len(block), n - 1))
            rows = np.arange(len(block))[None, :, None]
            total += block[rows, index].mean(axis=2).sum(axis=1)
    return total / len(samples)


def _two_stage(
    samples: Sequence[NDArray[np.float64]], resamples: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Mean of stratum means when strata, then observations inside them, are drawn, shape (B,)."""
    n_strata = len(samples)
    sizes = np.array([len(x) for x in samples])
    if sizes.max() >= LARGE:
        drawn = drawn_clusters(
            n_strata, resamples, rng, lambda own, times: _means_of(samples[own], times, rng),
            most=max(1, _MAX_CELLS // n_strata),
        )  # fmt: skip
        return np.concatenate([means.mean(axis=1) for means in drawn])
    padded = np.zeros((n_strata, sizes.max()))
    for row, x in zip(padded, samples, strict=True):
        row[: len(x)] = x
    means = np.empty(resamples)
    step = max(1, _MAX_CELLS // (n_strata * int(sizes.max())))
    for first in range(0, resamples, step):
        b = min(step, resamples - first)
        stratum = rng.integers(0, n_strata, (b, n_strata))
        size = sizes[stratum]
        index = (rng.random((b, n_strata, int(sizes.max()))) * size[..., None]).astype(np.intp)
        counted = np.arange(int(sizes.max())) < size[..., None]
        sums = (padded[stratum[..., None], index] * counted).sum(axis=2)
        means[first : first + b] = (sums / size).mean(axis=1)
    return means


def _means_of(
    x: NDArray[np.float64], resamples: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Means of resamples of observations in ascending order, shape (B,)."""
    n = len(x)
    if n >= LARGE:
        return means_in_bins(bins_of(x), n, resamples, rng)
    step = max(1, _MAX_CELLS // n)
    blocks = [min(step, resamples - first) for first in range(0, resamples, step)]
    return np.concatenate(
        [np.empty(0), *(x[rng.integers(0, n, (b, n))].mean(axis=1) for b in blocks)]
    )
