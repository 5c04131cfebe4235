"""How different two tests are: what a learner of mixtures of both loses, or gains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.analysis.arrays import as_numbers, check_shares
from robo_eval.core.errors import InputError, ShapeError

MIXTURES: Final = tuple(step / 10 for step in range(11))
"""Shares p of the first test in the mixtures learners are trained on."""
_SAME: Final = 1e-9
"""Two halves of a symmetric table may differ by so much, which is rounding."""
_ROUNDING: Final = 1e-12
"""Performances that differ by less are equal."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dissimilarities:
    """Dissimilarities of a suite of tests.

    Attributes:
        table: Dissimilarity of each pair, shape (n, n), symmetric, zero on its diagonal.
        noise: Difference of the two directions of each pair, shape (n, n); None if there was one
            direction only.
        floor: Mean dissimilarity of a test to itself, which training noise makes; None if it was
            not measured.
        violations: Triangles (i, j, k) in which a side is longer than the two others together.
        triangles: Triangles that were looked at.
    """

    table: NDArray[np.float64]
    noise: NDArray[np.float64] | None
    floor: float | None
    violations: int
    triangles: int


def dissimilarity(observed: ArrayLike, v_a: float | None = None, v_b: float | None = None) -> float:
    """Dissimilarity of two tests: area between what mixtures reach and a straight line.

    The reference learner is trained anew on mixtures in which a sample comes from the first test
    with probability p = 0, 0.1, ..., 1. Had the tests nothing to do with each other, nor anything
    in common, it would do as well as p v_a + (1 - p) v_b.

    Args:
        observed: Performance in [0, 1] at each p, from p = 0 on, equally spaced: shape (m,), or
            (r, m) for several trainings, of which the mean is taken.
        v_a: Performance on the first test alone; that at p = 1 if none is given.
        v_b: Performance on the second test alone; that at p = 0 if none is given.

    Returns:
        The trapezoid over p of the absolute difference, taken at the given p.

    Raises:
        InputError: If a number is missing or not in [0, 1].
        ShapeError: If there are fewer than two mixtures.

    References:
        Pereyda and Holder (2025), AI 6(12):313. The absolute value is taken at the grid points.

    Example:
        >>> found = dissimilarity([0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
        >>> f"{found:.2f}"
        '0.25'
    """
    values = as_numbers("observed", observed)
    if values.ndim not in (1, 2) or values.shape[-1] < 2 or not values.size:
        raise ShapeError(f"observed has shape {values.shape}; it must be (m,) or (r, m), m >= 2")
    check_shares("observed", values)
    mean = values.mean(axis=0) if values.ndim == 2 else values
    ends = np.array([mean[0] if v_b is None else v_b, mean[-1] if v_a is None else v_a])
    check_shares("v_b, v_a", ends)
    p = np.linspace(0.0, 1.0, len(mean))
    line = p * ends[1] + (1.0 - p) * ends[0]
    apart = np.abs(mean - line)
    # If all tests are alike, rounding alone would be the largest dissimilarity of the suite.
    return float(np.trapezoid(np.where(apart < _ROUNDING, 0.0, apart), p))


def dissimilarities(
    measured: ArrayLike, itself: ArrayLike | None = None, *, debias: bool = False
) -> Dissimilarities:
    """The table of a suite, from dissimilarities that were measured in one or both directions.

    Args:
        measured: Dissimilarity of test i to test j, shape (n, n), NaN where that direction was not
            measured. Of two directions the mean is taken. The diagonal is not looked at.
        itself: Dissimilarities of tests to themselves, shape (m,), measured by real trainings;
            None if there are none.
        debias: Subtract the mean of `itself`; no pair goes below 0.

    Raises:
        InputError: If a number is negative, or a pair was not measured at all.
        ShapeError: If it is no table of at least two tests.
    """
    values = as_numbers("measured", measured)
    if values.ndim != 2 or values.shape[0] != values.shape[1] or len(values) < 2:
        raise ShapeError(f"measured has shape {values.shape}; it must be (n, n), n >= 2")
    both = np.stack([values, values.T])
    off = ~np.eye(len(values), dtype=bool)
    _check(values, both, off)
    floor = _floor(itself)
    if debias and floor is None:
        raise InputError("debias needs dissimilarities of tests to themselves")
    with np.errstate(all="ignore"):
        table = np.where(off, np.where(np.isnan(both).any(axis=0), np.nan, both.mean(axis=0)), 0.0)
    one_way = np.isnan(table)
    table[one_way] = np.where(np.isnan(both[0]), both[1], both[0])[one_way]
    noise = np.abs(both[0] - both[1])
    if debias and floor is not None:
        table = np.where(off, np.maximum(table - floor, 0.0), 0.0)
    violations, triangles = triangle_violations(table)
    return Dissimilarities(
        table=table,
        noise=None if np.isnan(noise[off]).all() else np.where(off, noise, 0.0),
        floor=floor,
        violations=violations,
        triangles=triangles,
    )


def triangle_violations(table: ArrayLike) -> tuple[int, int]:
    """In how many triangles a side is longer than the two others together, and of how many.

    Args:
        table: Dissimilarities, shape (n, n).

    Raises:
        InputError: If one is missing or not finite.
        ShapeError: If it is no table.
    """
    values = as_numbers("table", table)
    n = len(values) if values.ndim == 2 else 0
    if values.shape != (n, n):
        raise ShapeError(f"table has shape {values.shape}; it must be (n, n)")
    bad = np.argwhere(~np.isfinite(values) & ~np.eye(n, dtype=bool))
    if len(bad):
        i, j = bad[0]
        raise InputError(f"table[{i}, {j}] is {values[i, j]}; it must be finite")
    found = 0
    for k in range(n):
        longer = values > values[:, [k]] + values[[k], :] + _SAME
        # Each of them is seen from the third corner, once for i < j.
        found += int(np.triu(np.delete(np.delete(longer, k, 0), k, 1), 1).sum())
    return found, n * (n - 1) * (n - 2) // 6


def _check(values: NDArray[np.float64], both: NDArray[np.float64], off: NDArray[np.bool_]) -> None:
    bad = np.argwhere(off & ((values < 0.0) | np.isinf(values)))
    if len(bad):
        i, j = bad[0]
        raise InputError(f"measured[{i}, {j}] is {values[i, j]}; it must not be negative")
    missing = np.argwhere(off & np.isnan(both).all(axis=0))
    if len(missing):
        i, j = missing[0]
        raise InputError(f"measured[{i}, {j}] and measured[{j}, {i}] are both missing")


def _floor(itself: ArrayLike | None) -> float | None:
    if itself is None:
        return None
    values = as_numbers("itself", itself)
    if values.ndim != 1 or not len(values) or not (values >= 0.0).all():
        raise InputError("itself must be a row of dissimilarities that are not negative")
    return float(values.mean())
