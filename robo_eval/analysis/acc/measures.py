"""Area, moments and generality of piecewise-linear curves, many at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.analysis.acc.curve import Scale

Undefined = Literal["nan", "zero"]
"""What stands for a generality that is not defined."""

_NO_ROOM: Final = 1e-12
"""Share of the squared axis below which A (Q - A) counts as 0: no success, or nothing else."""
_NEGATIVE: Final = 1e-9
"""Share of the squared axis by which rounding may push a squared spread below 0."""
_STEP: Final = 1e-14
"""Share of the squared axis below which a squared spread is rounding, and the curve a step."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measures:
    """Numbers read off curves; every array has shape (...), one number a curve.

    Attributes:
        area: Area under the curve, in units of difficulty.
        expected_difficulty: Centre of the area on the axis; NaN where the area is 0.
        spread: Standard deviation around the step of the same area, in units of difficulty.
        normalised_generality: In [-1, 1]: 1 falling step, 0 constant, -1 rising step; NaN where
            undefined.
        is_floor: No success at all.
        is_ceiling: Full success everywhere.
        is_single: One level only, so that nothing but the assumed ends could give a slope.
    """

    area: NDArray[np.float64]
    expected_difficulty: NDArray[np.float64]
    spread: NDArray[np.float64]
    normalised_generality: NDArray[np.float64]
    is_floor: NDArray[np.bool_]
    is_ceiling: NDArray[np.bool_]
    is_single: NDArray[np.bool_]


def measure(values: NDArray[np.float64], scale: Scale) -> Measures:
    """Measure curves that are known at every level.

    Args:
        values: Curves, shape (..., L), in [0, 1].
        scale: Levels and ends of the axis.

    Raises:
        ArithmeticError: If a squared spread is negative beyond rounding.
    """
    if scale.width == 0.0:
        return _measure_point(values)
    # On an axis from 0 to 1, so that no tolerance depends on the unit of difficulty.
    knots = np.concatenate([[0.0], (scale.levels - scale.h0) / scale.width, [1.0]])
    fills = (scale.left_fill, scale.right_fill)
    area = _area_weights(knots).integral(values, *fills)
    moment = _moment_weights(knots).integral(values, *fills)
    squared = 2.0 * moment - area * area
    if (squared < -_NEGATIVE).any():
        raise ArithmeticError(f"squared spread is {squared.min()} of the squared axis")
    squared = np.where(squared < _STEP, 0.0, squared)
    room = area * (1.0 - area)
    has_room = room >= _NO_ROOM
    is_single = np.full(area.shape, len(scale.levels) == 1)
    is_defined = has_room & ~is_single
    gamma = np.full(area.shape, np.nan)
    # 1 - S^2 / (A (Q - A)) = -2 (first moment about the middle) / (A (Q - A)). The mid-range of
    # a curve has no such moment, so taking it off first makes a constant curve exactly 0.
    middle = _mid_range(values, knots, fills)
    tilt = _moment_weights(knots - 0.5).integral(
        values - middle[..., None], *(fill - middle for fill in fills)
    )
    np.divide(-2.0 * tilt, room, out=gamma, where=is_defined)
    expected = np.full(area.shape, np.nan)
    np.divide(moment, area, out=expected, where=area > 0.0)
    return Measures(
        area=area * scale.width,
        expected_difficulty=scale.h0 + expected * scale.width,
        spread=np.sqrt(squared) * scale.width,
        normalised_generality=np.clip(gamma, -1.0, 1.0) + 0.0,
        is_floor=~has_room & (area < 0.5),
        is_ceiling=~has_room & (area >= 0.5),
        is_single=is_single,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Weights:
    """An integral over curves of straight segments, which is linear in the values at the knots.

    Attributes:
        levels: Weight of the value at each level, shape (L,).
        left: Weight of the fill below the lowest level.
        right: Weight of the fill above the highest level.
    """

    levels: NDArray[np.float64]
    left: float
    right: float

    @classmethod
    def of(cls, starts: NDArray[np.float64], ends: NDArray[np.float64]) -> _Weights:
        """Weights from those of the two ends of each segment, shape (L + 1,) each."""
        levels = np.zeros(len(starts) - 1)
        # The first and the last segment are fills, constant up to the level beside them.
        levels[:-1] += starts[1:-1]
        levels[1:] += ends[1:-1]
        return cls(
            levels=levels,
            left=float(starts[0] + ends[0]),
            right=float(starts[-1] + ends[-1]),
        )

    def integral(
        self, values: NDArray[np.float64], left: ArrayLike, right: ArrayLike
    ) -> NDArray[np.float64]:
        """The integral of curves, shape (..., L) to (...), for fills at the left and the right."""
        # Not a product of matrices: the sum must not hang on how many threads there are.
        inner: NDArray[np.float64] = np.einsum("...l,l->...", values, self.levels)
        return inner + self.left * np.asarray(left) + self.right * np.asarray(right)


def _area_weights(knots: NDArray[np.float64]) -> _Weights:
    """Of the integral of y."""
    half = np.diff(knots) / 2.0
    return _Weights.of(half, half)


def _moment_weights(knots: NDArray[np.float64]) -> _Weights:
    """Of the integral of x y."""
    left, right = knots[:-1], knots[1:]
    sixth = (right - left) / 6.0
    return _Weights.of(sixth * (2.0 * left + right), sixth * (left + 2.0 * right))


def _mid_range(
    values: NDArray[np.float64], knots: NDArray[np.float64], fills: tuple[float, float]
) -> NDArray[np.float64]:
    """Middle between the highest and the lowest value that curves have anywhere, shape (...)."""
    # A single level is a point between the fills; a fill of no width is nowhere.
    drawn = np.diff(knots) > 0.0
    ends = [fill for fill, is_drawn in zip(fills, drawn[[0, -1]], strict=True) if is_drawn]
    counted = values if values.shape[-1] > 1 else values[..., :0]
    highest = counted.max(axis=-1, initial=max(ends, default=-np.inf))
    lowest = counted.min(axis=-1, initial=min(ends, default=np.inf))
    return np.asarray((highest + lowest) / 2.0)


def _measure_point(values: NDArray[np.float64]) -> Measures:
    """An axis of length 0 has no area: everything but the capability is 0 or undefined."""
    zero = np.zeros(values.shape[:-1])
    no = np.zeros(zero.shape, dtype=np.bool_)
    return Measures(
        area=zero,
        expected_difficulty=np.full(zero.shape, np.nan),
        spread=zero.copy(),
        normalised_generality=np.full(zero.shape, np.nan),
        is_floor=no,
        is_ceiling=no.copy(),
        is_single=~no,
    )
