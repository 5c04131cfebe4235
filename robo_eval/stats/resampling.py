"""How far a mean could be off, by resampling what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.stats._checks import check_level

Method = Literal["auto", "bca", "percentile", "student_t"]

RESAMPLES: Final = 9999
"""Resamples of an interval: with 9,999 the ends move by well under a tenth of its width."""
BCA_FROM: Final = 10
"""Sample size from which BCa is used; below, resampling knows too few values."""
T_FROM: Final = 3
"""Sample size from which Student's t is used; below, there is no interval."""
_MAX_CELLS: Final = 4_000_000
"""Numbers drawn at once: bounds memory at some 100 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A mean and its interval.

    Attributes:
        value: The mean.
        low: Lower end; None if there is no interval.
        high: Upper end; None if there is no interval.
        n: Observations.
        method: How the interval was made; `"none"` if there is none.
        reason: Why there is none.
    """

    value: float
    low: float | None
    high: float | None
    n: int
    method: str
    reason: str | None = None


def mean_interval(
    values: ArrayLike,
    *,
    level: float = 0.95,
    method: Method = "auto",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Mean of independent observations with an interval fit for their number.

    Values that are all equal have no interval: resampling them can only return them, and BCa
    divides by zero. The order of the values changes nothing.

    Args:
        values: Observations, shape (n,), finite.
        level: Coverage aimed at.
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
    return mean_intervals([values], level=level, method=method, resamples=resamples, seed=seed)[0]


def mean_intervals(
    samples: Sequence[ArrayLike],
    *,
    level: float = 0.95,
    method: Method = "auto",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> list[Interval]:
    """`mean_interval` of many samples at once; samples of one size share their resamples.

    Sharing changes no single interval, and turns the work into one matrix product a size.

    Args:
        samples: Observations of each sample, sequences of any length.
        level: See `mean_interval`, like the arguments that follow.
        method: See `mean_interval`.
        resamples: See `mean_interval`.
        seed: See `mean_interval`.

    Raises:
        ValueError: As `mean_interval`.
    """
    _check(level, resamples)
    if method not in ("auto", "bca", "percentile", "student_t"):
        raise ValueError(f"method must be auto, bca, percentile or student_t, given {method!r}")
    sorted_samples = [np.sort(_sample(values)) for values in samples]
    found: dict[int, Interval] = {}
    to_resample: dict[tuple[int, str], list[int]] = {}
    for index, x in enumerate(sorted_samples):
        n = len(x)
        used: str = method if method != "auto" else "bca" if n >= BCA_FROM else "student_t"
        if x[0] == x[-1]:
            why = f"all {n} values are equal" if n > 1 else "one value"
            found[index] = _no_interval(x, why)
        elif n < T_FROM:
            found[index] = _no_interval(x, f"{n} values; an interval needs {T_FROM}")
        elif used == "student_t":
            low, high = _student_t(x, level)
            found[index] = Interval(value=_mean(x), low=low, high=high, n=n, method=used)
        else:
            to_resample.setdefault((n, used), []).append(index)
    for (n, used), indices in to_resample.items():
        table = np.stack([sorted_samples[index] for index in indices])
        means = _resampled_means(table, resamples, np.random.default_rng(seed))
        for index, x, row in zip(indices, table, means, strict=True):
            low, high = _bootstrap_ends(x, row, level, bca=used == "bca")
            found[index] = Interval(value=_mean(x), low=low, high=high, n=n, method=used)
    return [found[index] for index in range(len(sorted_samples))]


def _no_interval(x: NDArray[np.float64], reason: str) -> Interval:
    return Interval(value=_mean(x), low=None, high=None, n=len(x), method="none", reason=reason)


def paired_difference_interval(
    first: ArrayLike,
    second: ArrayLike,
    *,
    level: float = 0.95,
    method: Method = "auto",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
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
    return mean_interval(a - b, level=level, method=method, resamples=resamples, seed=seed)


def stratified_mean_interval(
    strata: Sequence[ArrayLike],
    *,
    over: Literal["these", "like_these"],
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Mean of the strata's means, each stratum counting once, with a percentile interval.

    Args:
        strata: Observations of each stratum (task, cell, ...), T sequences of any length.
        over: `"these"` keeps the strata and resamples inside them, drawing one observation less
            than there is, without which small strata would look too certain: the interval
            speaks about these strata. `"like_these"` resamples strata, then observations inside
            them: it speaks about strata like these, and is wide by nature when they are few.
        level: Coverage aimed at.
        resamples: Bootstrap resamples.
        seed: Seed of the resamples; the order of observations and strata changes nothing.

    Raises:
        ValueError: If there is no stratum or one is empty, or a number is not finite.

    References:
        Rao and Wu (1988), JASA 83:231-241 (drawing n - 1 inside strata).
    """
    _check(level, resamples)
    if over not in ("these", "like_these"):
        raise ValueError(f"over must be 'these' or 'like_these', given {over!r}")
    samples = sorted((np.sort(_sample(values)) for values in strata), key=lambda x: x.tolist())
    if not samples:
        raise ValueError("no strata; there is nothing to average")
    n = sum(len(x) for x in samples)
    value = float(np.mean([_mean(x) for x in samples]))

    def none(reason: str) -> Interval:
        return Interval(value=value, low=None, high=None, n=n, method="none", reason=reason)

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
    return Interval(value=value, low=float(low), high=float(high), n=n, method=name)


def _mean(x: NDArray[np.float64]) -> float:
    return float(x[0]) if x[0] == x[-1] else float(x.mean())


def _sample(values: ArrayLike) -> NDArray[np.float64]:
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or x.size == 0:
        raise ValueError(f"values have shape {x.shape}; a mean needs (n,), n >= 1")
    if not np.isfinite(x).all():
        raise ValueError(f"value {x[~np.isfinite(x)][0]} is not finite")
    return x


def _check(level: float, resamples: int) -> None:
    check_level(level)
    if resamples < 100:
        raise ValueError(f"resamples must be at least 100, given {resamples}")


def _student_t(x: NDArray[np.float64], level: float) -> tuple[float, float]:
    # Imported late: scipy costs 0.1 s at start-up.
    from scipy.special import stdtrit

    n = len(x)
    half = float(stdtrit(n - 1, 0.5 + level / 2.0)) * float(x.std(ddof=1)) / n**0.5
    return float(x.mean()) - half, float(x.mean()) + half


def _resampled_means(
    table: NDArray[np.float64], resamples: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Means of resampled rows of `table` (R, n), shape (R, B)."""
    n = table.shape[1]
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
    x: NDArray[np.float64], means: NDArray[np.float64], level: float, *, bca: bool
) -> tuple[float, float]:
    tails = ((1.0 - level) / 2.0, (1.0 + level) / 2.0)
    low, high = np.quantile(means, _bca_tails(x, means, tails) if bca else tails)
    return float(low), float(high)


def _bca_tails(
    x: NDArray[np.float64], means: NDArray[np.float64], tails: tuple[float, float]
) -> tuple[float, float]:
    """Tail probabilities corrected for bias and for a spread that depends on the mean."""
    from scipy.special import ndtr, ndtri

    # Ties count half, and rounding must not break them: scores on a grid tie often.
    mean, noise = x.mean(), 1e-12 * max(abs(x[0]), abs(x[-1]))
    share = ((means < mean - noise).mean() + (means <= mean + noise).mean()) / 2.0
    bias = ndtri(share)
    # Leaving x_i out moves the mean by a constant times (mean - x_i).
    influence = x - mean
    acceleration = (influence**3).sum() / (6.0 * (influence**2).sum() ** 1.5)
    corrected = []
    for tail in tails:
        shifted = bias + ndtri(tail)
        corrected.append(float(ndtr(bias + shifted / (1.0 - acceleration * shifted))))
    return corrected[0], corrected[1]


def _within_strata(
    samples: Sequence[NDArray[np.float64]], resamples: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Mean of stratum means when observations are drawn inside each stratum, shape (B,)."""
    total = np.zeros(resamples)
    by_size: dict[int, list[NDArray[np.float64]]] = {}
    for x in samples:
        by_size.setdefault(len(x), []).append(x)
    for n, group in sorted(by_size.items()):
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
