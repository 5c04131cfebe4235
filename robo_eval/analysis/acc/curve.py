"""Which levels of difficulty a set of items has, and an agent's mean response at each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.analysis.arrays import as_numbers
from robo_eval.core.errors import InputError, ShapeError

SIGNIFICANT_DIGITS: Final = 9
"""Difficulties that agree to so many digits are one level."""
_ZERO: Final = 1e-15
"""Share of the largest difficulty below which a difficulty is rounding noise around 0."""

NanRule = Literal["raise", "drop"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scale:
    """The axis agents are measured on; the same for all of them.

    Attributes:
        levels: Difficulties in ascending order, shape (L,).
        level_of_item: Index of each item's level, -1 for an item that was left out, shape (I,).
        h0: Lower end of the axis.
        q: Upper end of the axis.
        left_fill: Response taken on [h0, lowest level].
        right_fill: Response taken on [highest level, q].
    """

    levels: NDArray[np.float64]
    level_of_item: NDArray[np.intp]
    h0: float
    q: float
    left_fill: float
    right_fill: float

    @property
    def width(self) -> float:
        """Length of the axis."""
        return self.q - self.h0

    @property
    def counts(self) -> NDArray[np.intp]:
        """Items at each level, shape (L,)."""
        kept = self.level_of_item[self.level_of_item >= 0]
        return np.bincount(kept, minlength=len(self.levels)).astype(np.intp)


def make_scale(
    difficulty: ArrayLike,
    *,
    h0: float | None = None,
    q: float | None = None,
    left_fill: float = 1.0,
    right_fill: float = 0.0,
    bins: int | None = None,
    min_count: int = 1,
) -> Scale:
    """Group items by difficulty and fix the ends of the axis.

    Args:
        difficulty: Difficulty of each item, shape (I,), any order, repeats allowed.
        h0: Lower end; none means the lowest difficulty.
        q: Upper end; none means the highest difficulty.
        left_fill: Response assumed between h0 and the lowest level, in [0, 1].
        right_fill: Response assumed between the highest level and q, in [0, 1].
        bins: Group continuous difficulties into so many bins of equal width, each standing at
            its midpoint, where the axis then ends too; none leaves them as they are.
        min_count: Bins with fewer items are left out; used with `bins` only.

    Raises:
        InputError: If a number is not finite or out of range, or h0 and q do not enclose the
            levels.
        ShapeError: If `difficulty` is not a list of at least one number.
    """
    values = as_numbers("difficulty", difficulty)
    if values.ndim != 1 or values.size == 0:
        raise ShapeError(f"difficulty has shape {values.shape}; it must be (items,), items >= 1")
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise InputError(f"difficulty of item {bad[0]} is {values[bad[0]]}; it must be finite")
    for name, fill in (("left_fill", left_fill), ("right_fill", right_fill)):
        if not 0.0 <= fill <= 1.0:
            raise InputError(f"{name} is {fill}; it must be in [0, 1]")
    if bins is None:
        levels, level_of_item = _exact_levels(values)
    else:
        levels, level_of_item = _binned_levels(values, bins, min_count)
    # The default ends are those of the levels, so that binning or rounding opens no gap in which
    # responses would have to be assumed.
    low, high = float(levels[0]), float(levels[-1])
    start, end = _ends(levels, low if h0 is None else h0, high if q is None else q)
    return Scale(
        levels=levels,
        level_of_item=level_of_item,
        h0=start,
        q=end,
        left_fill=float(left_fill),
        right_fill=float(right_fill),
    )


def curve_values(
    response: NDArray[np.float64], scale: Scale, *, nan: NanRule = "raise"
) -> NDArray[np.float64]:
    """Mean response at each level.

    Args:
        response: Responses in [0, 1], shape (A, I).
        scale: Levels of the items.
        nan: Whether missing responses are an error or are left out agent by agent.

    Returns:
        Shape (A, L); NaN at a level where an agent has no response.

    Raises:
        InputError: If a response is outside [0, 1] or missing, or an agent has none at all.
        ShapeError: If the number of items differs from that of the difficulties.
    """
    n_items = len(scale.level_of_item)
    if response.ndim != 2 or response.shape[1] != n_items:
        raise ShapeError(
            f"response has shape {response.shape}, difficulty names {n_items} items; the last"
            " axis of response must run over them"
        )
    is_missing = np.isnan(response)
    bad = np.argwhere(~is_missing & ~((response >= 0.0) & (response <= 1.0)))
    if bad.size:
        agent, item = bad[0]
        raise InputError(
            f"response of agent {agent} to item {item} is {response[agent, item]}; it must be in"
            " [0, 1]"
        )
    if nan not in ("raise", "drop"):
        raise InputError(f"nan is {nan!r}; valid: 'raise', 'drop'")
    if nan == "raise" and is_missing.any():
        agent, item = np.argwhere(is_missing)[0]
        raise InputError(
            f"response of agent {agent} to item {item} is NaN; give nan='drop' to leave missing"
            " responses out"
        )
    # Items sorted by level, so that a level is a run of columns.
    kept = np.flatnonzero(scale.level_of_item >= 0)
    kept = kept[np.argsort(scale.level_of_item[kept], kind="stable")]
    starts = np.searchsorted(scale.level_of_item[kept], np.arange(len(scale.levels)))
    columns, gone = response[:, kept], is_missing[:, kept]
    counts = np.add.reduceat((~gone).astype(np.float64), starts, axis=1)
    if (counts.sum(axis=1) == 0).any():
        agent = int(np.flatnonzero(counts.sum(axis=1) == 0)[0])
        raise InputError(f"agent {agent} has no response to any item")
    sums = np.add.reduceat(np.where(gone, 0.0, columns), starts, axis=1)
    least = np.minimum.reduceat(np.where(gone, np.inf, columns), starts, axis=1)
    most = np.maximum.reduceat(np.where(gone, -np.inf, columns), starts, axis=1)
    with np.errstate(invalid="ignore"):
        means: NDArray[np.float64] = sums / counts
    # 3 x 0.1 / 3 is not 0.1: a level whose responses are all equal has exactly that mean.
    return np.where(least == most, least, means)


def _rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values to nine significant digits, with noise around 0 set to 0."""
    largest = float(np.max(np.abs(values)))
    rounded = [
        0.0 if abs(value) <= _ZERO * largest else float(f"{value:.{SIGNIFICANT_DIGITS - 1}e}")
        for value in values.tolist()
    ]
    return np.array(rounded)


def _exact_levels(
    values: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    keys, level_of_item = np.unique(_rounded(values), return_inverse=True)
    # The digits cut off for comparing are kept for computing: a level is its smallest member.
    levels = np.full(keys.shape, np.inf)
    np.minimum.at(levels, level_of_item, values)
    return levels, level_of_item.astype(np.intp)


def _binned_levels(
    values: NDArray[np.float64], bins: int, min_count: int
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    if bins < 1:
        raise InputError(f"bins is {bins}; at least one bin is needed")
    low, high = float(values.min()), float(values.max())
    if low == high:
        return np.array([low]), np.zeros(len(values), dtype=np.intp)
    width = (high - low) / bins
    bin_of_item = np.minimum((values - low) / width, bins - 1).astype(np.intp)
    counts = np.bincount(bin_of_item, minlength=bins)
    kept = np.flatnonzero(counts >= max(1, min_count))
    if kept.size == 0:
        raise InputError(f"no bin holds {min_count} items; the fullest of {bins} has {max(counts)}")
    new_index = np.full(bins, -1, dtype=np.intp)
    new_index[kept] = np.arange(kept.size)
    midpoints = np.asarray(low + (kept + 0.5) * width, dtype=np.float64)
    return midpoints, new_index[bin_of_item]


def _ends(levels: NDArray[np.float64], h0: float, q: float) -> tuple[float, float]:
    for name, value in (("h0", h0), ("q", q)):
        if not np.isfinite(value):
            raise InputError(f"{name} is {value}; it must be finite")
    low, high = float(levels[0]), float(levels[-1])
    # An end that agrees with its level but for rounding is that level, on whichever side it lies:
    # a gap of rounding noise would be filled by assumption, and make an axis of one level wide.
    noise = 10.0 ** (1 - SIGNIFICANT_DIGITS) * max(abs(low), abs(high))
    start = low if abs(h0 - low) <= noise else float(h0)
    end = high if abs(q - high) <= noise else float(q)
    if start > low:
        raise InputError(f"h0 is {h0}; it cannot be above the lowest difficulty {low}")
    if end < high:
        raise InputError(f"q is {q}; it cannot be below the highest difficulty {high}")
    if not np.isfinite(end - start):
        raise InputError(f"difficulties from {start} to {end} are too far apart to compute with")
    return start, end
