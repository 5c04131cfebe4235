"""Quadratics fitted to many resamples of the same points at once."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from robo_eval.formulas.improvement import MIN_POINTS

_SINGULAR: Final = 1e-12
"""Smallest variance, of numbers between -1 and 1, that is not taken for rounding."""


def fit_sums(
    x: NDArray[np.float64], y: NDArray[np.float64], day: NDArray[np.intp], days: int
) -> NDArray[np.float64]:
    """What a quadratic fit needs to know of the points of each day.

    Args:
        x: Places, best within [-1, 1], shape (n,).
        y: Values, shape (n,).
        day: Which day each belongs to, from 0 on, shape (n,).
        days: How many days there are.

    Returns:
        Sums over each day of 1, x, x^2, x^3, x^4, y, xy and x^2 y, shape (days, 8).
    """
    columns = [*(x**power for power in range(5)), *(y * x**power for power in range(3))]
    return np.stack([np.bincount(day, weights=one, minlength=days) for one in columns], axis=1)


def fitted_quadratics(
    sums: NDArray[np.float64], at: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Slope and curvature of a quadratic fit to each of many samples at once.

    The normal equations are solved with polynomials orthogonal on the sample: of 1, u = x - mean
    and v = u^2 - mean(u^2) - u mean(u^3) / mean(u^2) each coefficient is a quotient of two sums.

    Args:
        sums: Of the points of each sample, as `fit_sums` makes them, shape (samples, 8).
        at: Where to take the derivatives.

    Returns:
        The same as `formulas.local_quadratic` of the points, shape (samples,) each; NaN where it
        is None.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        _, m, s2, s3, s4, y, xy, xxy = (sums / sums[:, :1]).T
        u2 = s2 - m * m
        u3 = s3 - 3.0 * m * s2 + 2.0 * m**3
        u4 = s4 - 4.0 * m * s3 + 6.0 * m * m * s2 - 3.0 * m**4
        skew = u3 / u2
        v2 = u4 - u2 * u2 - skew * u3
        uy = xy - m * y
        b2 = (xxy - 2.0 * m * xy + m * m * y - u2 * y - skew * uy) / v2
        slope = uy / u2 - b2 * skew + 2.0 * b2 * (at - m)
    sound = (sums[:, 0] >= MIN_POINTS) & (u2 > _SINGULAR) & (v2 > _SINGULAR)
    return np.where(sound, slope, np.nan), np.where(sound, 2.0 * b2, np.nan)


def quadratics(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    day: NDArray[np.intp],
    counts: NDArray[np.float64],
    at: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Slope and curvature at a place, of each sample that counts each day so often.

    Args:
        x: Places in ascending order, shape (n,).
        y: Values, shape (n,).
        day: Day of each point, ascending, shape (n,).
        counts: Shape (samples, days).
        at: Where to take the derivatives.
    """
    middle = (x[0] + x[-1]) / 2.0
    scale = (x[-1] - x[0]) / 2.0
    if len(x) < 3 or scale <= 0.0 or not math.isfinite(scale):
        return np.full(len(counts), np.nan), np.full(len(counts), np.nan)
    first, last = int(day[0]), int(day[-1])
    sums = fit_sums((x - middle) / scale, y - y.mean(), day - first, last - first + 1)
    slope, curvature = fitted_quadratics(counts[:, first : last + 1] @ sums, (at - middle) / scale)
    return slope / scale, curvature / scale / scale
