"""Which means are compatible with observations that cannot leave a range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.stats._checks import check_level, finite, pair_up
from robo_eval.stats._resample import bins_of
from robo_eval.stats.estimate import Estimate

METHOD: Final = "gaffke"
_BINS: Final = 128
"""Cuts at equal counts, and as many at equal widths, of samples of more distinct values."""
_PATHS: Final = ((3.0, 9), (3.0, 9), (3.0, 9), (6.0, 48), (6.0, 48))
"""Steps of the search: how far the integral goes, and over how many points; roughly first."""
_SADDLE_STEPS: Final = 8
_ROOM: Final = 10.0
"""How far the path bends aside at most, in distances from the saddle to the pole on that side."""
_LARGEST_TAIL: Final = 0.3
"""Up to here an end lies below the mean of what it is a quantile of."""
_MAX_CELLS: Final = 500_000
"""Numbers held at once: bounds memory at some 30 MB."""
_ROUNDING: Final = 1e-9

Array = NDArray[np.float64]


def bounded_mean_interval(
    values: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    within: tuple[float, float] = (0.0, 1.0),
    level: float = 0.95,
    unit: str = "ratio",
) -> Estimate:
    """Mean of independent observations that cannot leave a range, whatever their distribution.

    The lower end is a quantile of the mean of the observations and the least possible value, each
    weighted at random (a flat Dirichlet distribution); the upper end likewise with the largest. Of
    outcomes of 0 and 1 that is Clopper and Pearson's interval. One observation has an interval,
    and so have observations that are all equal. That it covers is proven for outcomes of two
    values, and no distribution of more is known in which it does not.

    Args:
        values: Observations, shape (n,).
        weights: How much each counts, above 0, shape (n,); all alike if not given.
        within: The range.
        level: Coverage.
        unit: Unit of the observations.

    Raises:
        ValueError: If a value is missing or outside the range, or a weight is not above 0.

    References:
        Gaffke (2005), Communications in Statistics 34:2281-2290. Learned-Miller and Thomas (2020),
        arXiv:1905.06208. Of weights: Fay and Feuer (1997), Statistics in Medicine 16:791-801.

    Example:
        >>> print(bounded_mean_interval([1.0, 1.0, 0.9, 0.7, 1.0]))
        0.920 [0.436, 0.991] n=5
        >>> print(bounded_mean_interval([1] * 8 + [0] * 2))
        0.800 [0.444, 0.975] n=10
    """
    x = finite("values", values)
    if weights is None or np.ptp(np.asarray(weights)) == 0.0:
        return bounded_mean_intervals([x], within=within, level=level, unit=unit)[0]
    share = finite("weights", weights)
    pair_up("values", x, "weights", share)
    if not (share > 0.0).all():
        raise ValueError(f"weights must be above 0, given {share.min()}")
    order = np.lexsort((share, x))  # so that sums do not depend on the order of the observations
    x, share = x[order], share[order] / np.sort(share).mean()
    # Rounding takes no mean beyond what it is of.
    value, most = float(np.clip((x * share).mean(), x[0], x[-1])), float(share.max())
    # What each adds to the mean cannot leave this range, which is the given one of equal weights.
    low, high = (value + most * (end - value) for end in within)
    found = bounded_mean_intervals(
        [value + share * (x - value)], within=(low, high), level=level, unit=unit
    )[0]
    low, high = (min(max(end, within[0]), within[1]) for end in _ends(found)[1:])
    return replace(found, value=value, low=min(low, value), high=max(high, value))


def bounded_mean_intervals(
    samples: Sequence[ArrayLike],
    *,
    within: tuple[float, float] = (0.0, 1.0),
    level: float = 0.95,
    unit: str = "ratio",
) -> list[Estimate]:
    """`bounded_mean_interval` of many samples at once.

    From 256 distinct values on neighbours are taken together, which moves the ends by less than a
    thousandth of their distance.
    """
    check_level(level)
    least, most = within
    scaled = [_scaled(sample, least, most) for sample in samples]
    tail = min((1.0 - level) / 2.0, _LARGEST_TAIL)
    lows = _lower_ends(scaled, tail)
    # The upper end of a sample is one less the lower end of its mirror image.
    highs = 1.0 - _lower_ends([1.0 - x[::-1] for x in scaled], tail)
    found = []
    for x, low, high in zip(scaled, lows.tolist(), highs.tolist(), strict=True):
        mean = float(x[0] if x[0] == x[-1] else x.mean())
        ends = (min(low, mean), mean, max(high, mean))
        low, mean, high = (least + (most - least) * end for end in ends)
        found.append(
            Estimate(
                value=mean, low=low, high=high, level=level, n=len(x), method=METHOD, unit=unit
            )
        )
    return found


def with_doubt_of(one: Estimate, other: Estimate, weight: float) -> Estimate:
    """A mean with the doubt that so much of another, which is independent of it, adds.

    Args:
        one: The mean, with an interval.
        other: The other, with an interval; that it was added is for the caller to see to.
        weight: How much of it was added; below 0, taken away.

    References:
        Zou and Donner (2008), Statistics in Medicine 27:1693-1702 (from limits of each).
    """
    mean, low, high = (np.array([x, y]) for x, y in zip(_ends(one), _ends(other), strict=True))
    down, up = (mean - low) * (1.0, abs(weight)), (high - mean) * (1.0, abs(weight))
    if weight < 0.0:
        down[1], up[1] = up[1], down[1]
    return replace(one, low=float(mean[0] - np.hypot(*down)), high=float(mean[0] + np.hypot(*up)))


def _ends(found: Estimate) -> tuple[float, float, float]:
    assert found.value is not None, "a bounded mean has a value, and an interval"
    assert found.low is not None
    assert found.high is not None
    return found.value, found.low, found.high


def _scaled(sample: ArrayLike, least: float, most: float) -> Array:
    """The observations in ascending order, 0 at the least that is possible and 1 at the most."""
    x = np.sort(finite("values", sample))
    if not len(x):
        raise ValueError("no values; there is nothing to average")
    for end in (x[0], x[-1]):
        if not least - _ROUNDING <= end <= most + _ROUNDING:
            raise ValueError(f"values must be between {least:g} and {most:g}, given {end:g}")
    return np.asarray(np.clip((x - least) / ((most - least) or 1.0), 0.0, 1.0))


def _lower_ends(samples: Sequence[Array], tail: float) -> Array:
    """Lower end of each sample in ascending order, shape (samples,); those of zeros have 0."""
    bins = [bins_of(x, _BINS) for x in samples]
    found = np.zeros(len(samples))
    # Of about one size together, so that little of what is held is padding.
    order = sorted(
        (index for index, x in enumerate(samples) if x[-1] > 0.0),
        key=lambda index: (len(bins[index].counts), index),
    )
    while order:
        size = len(bins[order[-1]].counts) + 1
        step = max(1, _MAX_CELLS // (size * _PATHS[-1][1]))
        chunk, order = order[-step:], order[:-step]
        # An end is so many times as high where all values are, so that the smallest do no harm.
        tops = np.array([samples[index][-1] for index in chunk])
        values, counts = np.zeros((2, len(chunk), size))
        counts[:, -1] = 1.0  # the least possible value
        for row, index in enumerate(chunk):
            kinds = len(bins[index].counts)
            values[row, :kinds] = bins[index].means / tops[row]
            counts[row, :kinds] = bins[index].counts
        found[chunk] = tops * _quantiles(values, counts, tail)
    return found


def _quantiles(values: Array, counts: Array, tail: float) -> Array:
    """Where the randomly weighted mean of each row has probability `tail` below it, shape (R,).

    The logarithm of that probability is concave, so that Newton's steps cannot miss it.
    """
    size = counts.sum(axis=1)
    mean = (counts * values).sum(axis=1) / size
    spread = np.sqrt((counts * (values - mean[:, None]) ** 2).sum(axis=1) / size / (size + 1.0))
    at = mean * np.exp(-2.0 * spread / mean)
    for reach, points in _PATHS:
        below, density = _below(at, values, counts, reach, points)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.log(below / tail) * below / (density * at)
        step = np.where(np.isfinite(step), step, 0.5)
        at = np.clip(at * np.exp(-step), at / 4.0, (at + mean) / 2.0)
    return np.asarray(at)


def _below(
    at: Array, values: Array, counts: Array, reach: float, points: int
) -> tuple[Array, Array]:
    """Probability that the randomly weighted mean of each row is below `at`, and its density.

    It is where a sum of exponential numbers, each times the distance of its value from `at`, is
    below 0. The integral that gives it back from the moment generating function is taken through
    the saddle point, and along a parabola on which it hardly oscillates, as long as that does not
    lead past the poles of many equal values, where it would not converge: four dozen points give
    four digits of the probability.
    """
    away = values - at[:, None]
    saddle, low, high = np.zeros_like(at), 1.0 / away.min(axis=1), np.zeros_like(at)
    for _ in range(_SADDLE_STEPS):
        part = away / (1.0 - saddle[:, None] * away)
        slope, bend = (counts * part).sum(axis=1), (counts * part**2).sum(axis=1)
        low, high = np.where(slope < 0.0, saddle, low), np.where(slope < 0.0, high, saddle)
        newton = saddle - slope / bend
        is_inside = (newton >= low) & (newton <= high)
        saddle = np.where(is_inside, newton, (low + high) / 2.0)
    part = away / (1.0 - saddle[:, None] * away)
    bend, third = (counts * part**2).sum(axis=1), (counts * part**3).sum(axis=1)
    turn = (-third / (3.0 * bend))[:, None]
    far = np.where(turn[:, 0] > 0.0, away.min(axis=1), away.max(axis=1))
    with np.errstate(divide="ignore"):
        room = _ROOM * abs(1.0 / np.where(far == 0.0, np.nan, far) - saddle)[:, None]
    room = np.where(np.isfinite(room), room, np.inf)
    # Equal steps of what the path is the hyperbolic sine of, so that few reach far.
    u = np.linspace(0.0, reach, points)
    y = np.sinh(u) / np.sqrt(bend)[:, None]
    slowed = 1.0 + abs(turn) * y**2 / room
    path = saddle[:, None] + 1j * y - turn * y**2 / slowed
    # The logarithm of each factor by its two parts: several times as fast as that of numpy.
    real = 1.0 - path.real[:, :, None] * away[:, None, :]
    imag = -path.imag[:, :, None] * away[:, None, :]
    size = np.einsum("rpk,rk->rp", np.log(real**2 + imag**2), counts) / 2.0
    angle = np.einsum("rpk,rk->rp", np.arctan2(imag, real), counts)
    parts = np.exp(-(size + 1j * angle)) * (1j - 2.0 * turn * y / slowed**2)
    parts *= np.cosh(u) * u[1] / np.sqrt(bend)[:, None] / np.pi
    parts[:, 0] /= 2.0
    density = (counts.sum(axis=1) - 1.0) * parts.imag.sum(axis=1)
    return -(parts / path).imag.sum(axis=1), density
