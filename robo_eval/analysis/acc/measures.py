"""Area, moments and generality of piecewise-linear curves, many at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from robo_eval.analysis.acc.curve import Scale

Undefined = Literal["nan", "zero"]
"""What stands for a generality that is not defined."""

_NO_ROOM: Final = 1e-12
"""Share of the squared axis below which A (Q - A) counts as 0: no success, or nothing else."""
_NEGATIVE: Final = 1e-9
"""Share of the squared axis by which rounding may push a squared spread below 0."""


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
    x = (scale.levels - scale.h0) / scale.width
    knots_left = np.concatenate([[0.0], x])
    knots_right = np.concatenate([x, [1.0]])
    left, right = _segment_ends(values, scale)
    width = knots_right - knots_left
    area = (width * (left + right) / 2.0).sum(axis=-1)
    moment = _moment(knots_left, knots_right, left, right)
    squared = 2.0 * moment - area * area
    if (squared < -_NEGATIVE).any():
        raise ArithmeticError(f"squared spread is {squared.min()} of the squared axis")
    squared = np.maximum(squared, 0.0)
    room = area * (1.0 - area)
    has_room = room >= _NO_ROOM
    is_single = np.full(area.shape, len(scale.levels) == 1)
    is_defined = has_room & ~is_single
    gamma = np.full(area.shape, np.nan)
    # 1 - S^2 / (A (Q - A)) = -2 (first moment about the middle) / (A (Q - A)). The mid-range of
    # a curve has no such moment, so taking it off first makes a constant curve exactly 0.
    drawn = width > 0.0
    levelled = (left[..., drawn], right[..., drawn])
    middle = (np.maximum(*levelled).max(axis=-1) + np.minimum(*levelled).min(axis=-1)) / 2.0
    tilt = _moment(
        knots_left - 0.5, knots_right - 0.5, left - middle[..., None], right - middle[..., None]
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


def _segment_ends(
    values: NDArray[np.float64], scale: Scale
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Curve at the left and right end of each segment, fills included, shape (..., L + 1)."""
    fill_shape = (*values.shape[:-1], 1)
    left_fill = np.full(fill_shape, scale.left_fill)
    right_fill = np.full(fill_shape, scale.right_fill)
    left = np.concatenate([left_fill, values[..., :-1], right_fill], axis=-1)
    right = np.concatenate([left_fill, values[..., 1:], right_fill], axis=-1)
    return left, right


def _moment(
    x_left: NDArray[np.float64],
    x_right: NDArray[np.float64],
    y_left: NDArray[np.float64],
    y_right: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Integral of x y over straight segments, exact; summed over the last axis."""
    pieces = x_left * (2.0 * y_left + y_right) + x_right * (y_left + 2.0 * y_right)
    moment: NDArray[np.float64] = ((x_right - x_left) / 6.0 * pieces).sum(axis=-1)
    return moment


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
