"""How complex a test is: how large policies have to be to do well in it (MCCP)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.analysis.arrays import as_numbers, check_shares
from robo_eval.core.errors import InputError, ShapeError

BINS: Final = 30
"""Equal bins of performance."""
LEAST_POLICIES: Final = 100
"""A pool with fewer is biased upwards by more than its differences are worth."""
_EDGE: Final = 1e-9
"""A performance may miss the edge of a bin by so much of a bin, which is rounding."""

Variant = Literal["default", "envelope"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Complexity:
    """The curve of the smallest size by performance, and the area under it.

    Attributes:
        curve: Smallest size for each bin of performance, shape (bins,), in units of size.
        area: Area under the curve over performance (MCCP), in units of size.
        filled: Bins in which a policy lies.
        interpolated: Bins between filled ones.
        extrapolated: Bins below the lowest or above the highest filled one.
        extrapolated_share: Share of the area that the extrapolated bins have.
        observed: Smallest size among the policies of each bin, NaN where there are none.
        policies: Policies of the pool.
        variant: `"default"` or `"envelope"`.
    """

    curve: NDArray[np.float64]
    area: float
    filled: int
    interpolated: int
    extrapolated: int
    extrapolated_share: float
    observed: NDArray[np.float64]
    policies: int
    variant: Variant


def mccp(
    sizes: ArrayLike,
    performances: ArrayLike,
    *,
    bins: int = BINS,
    variant: Variant = "default",
) -> Complexity:
    """The complexity of a test, from the sizes and performances of a pool of trained policies.

    Performance is cut into equal bins, each of which has the size of its smallest policy. A bin
    without policies is interpolated between its neighbours; below the lowest filled bin it has the
    size of that, above the highest one that of a straight line through all filled bins, and never
    less than the highest one. The complexity is the area under these bins.

    The area falls as the pool grows, because minima only fall: compare only pools of the same
    policies, of `LEAST_POLICIES` at least.

    Args:
        sizes: Sizes of the policies, such as counts of trainable parameters, shape (n,), positive.
        performances: Their performances in [0, 1], shape (n,).
        bins: Number of bins.
        variant: `"default"`, or `"envelope"`: a bin has the smallest size among the policies that
            do as well as its lower edge or better. Where the two differ much, the pool is small.

    Raises:
        InputError: If a number is missing or out of range; the message names it.
        ShapeError: If the shapes do not fit.

    References:
        Pereyda and Holder (2025), The Artificial Intelligence Quotient, AI 6(12):313. Which sizes
        the bins outside the filled ones have is decided here.

    Example:
        >>> found = mccp([10, 8, 20, 40, 30], [0.05, 0.15, 0.25, 0.95, 0.85], bins=5)
        >>> f"{found.area:.1f}", found.filled, found.extrapolated
        ('21.6', 3, 0)
    """
    size, performance = _pool(sizes, performances)
    if bins < 1:
        raise InputError(f"bins is {bins}; it must be 1 or more")
    if variant not in ("default", "envelope"):
        raise InputError(f"variant is {variant!r}; valid: 'default', 'envelope'")
    observed = np.full(bins, np.inf)
    places = np.minimum(bins - 1, np.floor(performance * bins + _EDGE).astype(np.intp))
    np.minimum.at(observed, places, size)
    if variant == "envelope":
        # As well as a lower edge are all policies of this bin and of higher ones.
        smallest = np.minimum.accumulate(observed[::-1])[::-1]
        lowest, highest = 0, int(np.flatnonzero(np.isfinite(smallest))[-1])
        filled = np.arange(highest + 1)
        values = np.where(np.isfinite(smallest), smallest, np.nan)
    else:
        filled = np.flatnonzero(np.isfinite(observed))
        lowest, highest = int(filled[0]), int(filled[-1])
        values = np.where(np.isfinite(observed), observed, np.nan)
    curve = _filled_up(values, filled, bins)
    outside = np.ones(bins, dtype=bool)
    outside[lowest : highest + 1] = False
    area = float(curve.sum() / bins)
    return Complexity(
        curve=curve,
        area=area,
        filled=len(filled),
        interpolated=highest + 1 - lowest - len(filled),
        extrapolated=int(outside.sum()),
        extrapolated_share=float(curve[outside].sum() / curve.sum()),
        observed=np.where(np.isfinite(observed), observed, np.nan),
        policies=len(size),
        variant=variant,
    )


def relative(areas: ArrayLike) -> NDArray[np.float64]:
    """Complexities of a suite as shares of the largest, in (0, 1].

    Args:
        areas: Areas of `mccp` of pools of the same policies, shape (n,), positive.

    Raises:
        InputError: If a number is missing or not positive; the message names it.
    """
    values = as_numbers("areas", areas)
    if values.ndim != 1 or not len(values):
        raise ShapeError(f"areas have shape {values.shape}; it must be (n,), n >= 1")
    _check_positive("areas", values)
    found: NDArray[np.float64] = values / values.max()
    return found


def half_samples(
    sizes: ArrayLike,
    performances: ArrayLike,
    *,
    bins: int = BINS,
    variant: Variant = "default",
    level: float = 0.95,
    resamples: int = 500,
    seed: int = 0,
) -> tuple[float, float]:
    """An interval of the area, as wide as that of halves of the pool drawn without replacement.

    A bootstrap draws some policies twice and loses others, so that minima rise: its values lie
    above the area. Halves lie above it too; their spread about their own median, which is that of
    a whole pool, is put around the area instead.

    Args:
        sizes: See `mccp`.
        performances: See `mccp`.
        bins: See `mccp`.
        variant: See `mccp`.
        level: Coverage aimed at.
        resamples: Draws.
        seed: Of the draws.

    Returns:
        Low and high end, in units of size.

    Raises:
        InputError: If a number is missing or out of range, or there are fewer than 4 policies.
        ShapeError: If the shapes do not fit.
    """
    size, performance = _pool(sizes, performances)
    if len(size) < 4:
        raise InputError(f"there are {len(size)} policies; an interval needs 4 at least")
    if not 0.0 < level < 1.0 or resamples < 1:
        raise InputError("level must be between 0 and 1, and resamples 1 or more")
    rng = np.random.default_rng(seed)
    areas = []
    for _ in range(resamples):
        half = rng.permutation(len(size))[: len(size) // 2]
        areas.append(mccp(size[half], performance[half], bins=bins, variant=variant).area)
    area = mccp(size, performance, bins=bins, variant=variant).area
    low, middle, high = np.quantile(areas, [(1 - level) / 2, 0.5, (1 + level) / 2])
    # A half without replacement varies about the whole as the whole does about the truth.
    return max(0.0, float(area - (high - middle))), float(area + (middle - low))


def _pool(
    sizes: ArrayLike, performances: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    size, performance = as_numbers("sizes", sizes), as_numbers("performances", performances)
    if size.ndim != 1 or size.shape != performance.shape or not len(size):
        raise ShapeError(
            f"sizes have shape {size.shape} and performances {performance.shape}; both must be"
            " (n,), n >= 1"
        )
    _check_positive("sizes", size)
    check_shares("performances", performance)
    return size, performance


def _check_positive(name: str, values: NDArray[np.float64]) -> None:
    bad = np.flatnonzero(~((values > 0.0) & np.isfinite(values)))
    if len(bad):
        raise InputError(f"{name}[{bad[0]}] is {values[bad[0]]}; it must be positive and finite")


def _filled_up(
    values: NDArray[np.float64], filled: NDArray[np.intp], bins: int
) -> NDArray[np.float64]:
    """Sizes of all bins, from those of the filled ones."""
    known = values[filled]
    places = np.arange(bins)
    curve = np.interp(places, filled, known)  # outside it keeps the value at the end
    above = places > filled[-1]
    if above.any() and len(filled) > 1:
        centres = (places + 0.5) / bins
        slope, offset = np.polyfit(centres[filled], known, 1)
        # A performance nobody reached is not cheaper than one that somebody did.
        curve[above] = np.maximum(offset + slope * centres[above], known[-1])
    return curve
