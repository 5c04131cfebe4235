"""How able and how general an agent is on items of known difficulty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.analysis.acc.curve import NanRule, Scale, curve_values, make_scale
from robo_eval.analysis.acc.measures import Measures, Undefined, measure
from robo_eval.analysis.arrays import as_numbers
from robo_eval.core.errors import InputError, ShapeError
from robo_eval.stats.arrays import same_labels

Flag = Literal["floor", "ceiling", "single_level"]

Numbers: TypeAlias = Any
"""A float for one agent, an array of shape (A,) for several."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Analysis:
    """What an agent characteristic curve says; for several agents, arrays of shape (A,).

    Attributes:
        area: Area under the curve, in units of difficulty.
        capability: h0 + area: the difficulty up to which an agent of one clean step would get.
        expected_difficulty: Where the area lies; NaN without any success.
        spread: Standard deviation around that step, in units of difficulty.
        generality: 1 / spread; infinite for a spread of 0.
        normalised_generality: In [-1, 1]: 1 for a falling step, 0 for a constant curve, -1 for a
            rising step. NaN (or 0, if asked for) where it is undefined.
        flag: Why it is undefined: `"floor"` no success at all, `"ceiling"` nothing but success,
            `"single_level"` one difficulty only; None otherwise. A tuple for several agents.
        levels: Difficulties of the curve, ascending, shape (L,).
        curve: Mean response at each level, shape (L,) or (A, L); NaN where all were dropped.
        counts: Items at each level, shape (L,).
        h0: Lower end of the axis.
        q: Upper end of the axis.
        left_fill: Response assumed on [h0, lowest level].
        right_fill: Response assumed on [highest level, q].
    """

    area: Numbers
    capability: Numbers
    expected_difficulty: Numbers
    spread: Numbers
    generality: Numbers
    normalised_generality: Numbers
    flag: Flag | tuple[Flag | None, ...] | None
    levels: NDArray[np.float64]
    curve: NDArray[np.float64]
    counts: NDArray[np.intp]
    h0: float
    q: float
    left_fill: float
    right_fill: float


@same_labels(error=InputError)
def analyse(
    response: ArrayLike,
    difficulty: ArrayLike,
    *,
    h0: float | None = None,
    q: float | None = None,
    left_fill: float = 1.0,
    right_fill: float = 0.0,
    undefined: Undefined = "nan",
    nan: NanRule = "raise",
    bins: int | None = None,
    min_count: int = 1,
) -> Analysis:
    """Draw the agent characteristic curve and read capability, spread and generality off it.

    Items of equal difficulty (to nine significant digits) form a level, the curve is their plain
    mean, and straight lines join the levels. Nothing is smoothed, and each level counts once
    however many items it holds.

    Args:
        response: Responses in [0, 1], shape (I,) for one agent or (A, I) for several.
        difficulty: Difficulty of each item, shape (I,), in any unit and order. Not to be
            estimated from the agents under test.
        h0: Lower end of the axis; none means the lowest difficulty.
        q: Upper end of the axis; none means the highest difficulty.
        left_fill: Response assumed between h0 and the lowest level.
        right_fill: Response assumed between the highest level and q.
        undefined: `"nan"`, or `"zero"` to compare with figures that count such agents as 0.
        nan: `"raise"`, or `"drop"` to leave missing responses out, agent by agent; h0 and q stay
            those of the whole set of items.
        bins: Group difficulties into so many bins of equal width first; off by default, because
            it changes results.
        min_count: Bins with fewer items are left out.

    Raises:
        InputError: If a number is missing or out of range; the message names agent and item.
        ShapeError: If the shapes do not fit.

    References:
        Hernandez-Orallo et al. (2021), Scientific Reports 11:22822. Their equation of the
        normalised spread is printed with a square root that contradicts properties 3 to 5;
        this is the form without.

    Example:
        >>> agent = analyse([1, 1, 1, 0, 0], [0, 1, 2, 3, 4])
        >>> print(f"{agent.capability:.1f} {agent.spread:.4f} {agent.normalised_generality:.4f}")
        2.5 0.2887 0.9778
    """
    responses = as_numbers("response", response)
    if responses.ndim not in (1, 2):
        raise ShapeError(f"response has shape {responses.shape}; it must be (I,) or (A, I)")
    if undefined not in ("nan", "zero"):
        raise InputError(f"undefined is {undefined!r}; valid: 'nan', 'zero'")
    scale = make_scale(
        as_numbers("difficulty", difficulty),
        h0=h0,
        q=q,
        left_fill=left_fill,
        right_fill=right_fill,
        bins=bins,
        min_count=min_count,
    )
    curves = curve_values(np.atleast_2d(responses), scale, nan=nan)
    return _analysis(curves, scale, undefined=undefined, is_single=responses.ndim == 1)


def _analysis(
    curves: NDArray[np.float64], scale: Scale, *, undefined: Undefined, is_single: bool
) -> Analysis:
    found = _measure_with_gaps(curves, scale)
    gamma = found.normalised_generality
    if undefined == "zero":
        gamma = np.where(np.isnan(gamma), 0.0, gamma)
    with np.errstate(divide="ignore"):
        generality = 1.0 / found.spread

    def shown(numbers: NDArray[np.float64]) -> Numbers:
        return float(numbers[0]) if is_single else numbers

    flags = _flags(found)
    return Analysis(
        area=shown(found.area),
        capability=shown(scale.h0 + found.area),
        expected_difficulty=shown(found.expected_difficulty),
        spread=shown(found.spread),
        generality=shown(generality),
        normalised_generality=shown(gamma),
        flag=flags[0] if is_single else flags,
        levels=scale.levels,
        curve=curves[0] if is_single else curves,
        counts=scale.counts,
        h0=scale.h0,
        q=scale.q,
        left_fill=scale.left_fill,
        right_fill=scale.right_fill,
    )


def _flags(found: Measures) -> tuple[Flag | None, ...]:
    flags: list[Flag | None] = [None] * len(found.area)
    for index in range(len(flags)):
        if found.is_single[index]:
            flags[index] = "single_level"
        elif found.is_floor[index]:
            flags[index] = "floor"
        elif found.is_ceiling[index]:
            flags[index] = "ceiling"
    return tuple(flags)


def _measure_with_gaps(curves: NDArray[np.float64], scale: Scale) -> Measures:
    """Measure curves in which an agent may have no data at some levels."""
    has_data = ~np.isnan(curves)
    if has_data.all():
        return measure(curves, scale)
    patterns, pattern_of_agent = np.unique(has_data, axis=0, return_inverse=True)
    parts = {name: np.empty(len(curves)) for name in Measures.__slots__}
    for index, pattern in enumerate(patterns):
        rows = np.flatnonzero(pattern_of_agent.ravel() == index)
        part = Scale(
            levels=scale.levels[pattern],
            level_of_item=np.arange(int(pattern.sum())),
            h0=scale.h0,
            q=scale.q,
            left_fill=scale.left_fill,
            right_fill=scale.right_fill,
        )
        found = measure(curves[np.ix_(rows, np.flatnonzero(pattern))], part)
        for name, numbers in parts.items():
            numbers[rows] = getattr(found, name)
    return Measures(
        area=parts["area"],
        expected_difficulty=parts["expected_difficulty"],
        spread=parts["spread"],
        normalised_generality=parts["normalised_generality"],
        is_floor=parts["is_floor"].astype(np.bool_),
        is_ceiling=parts["is_ceiling"].astype(np.bool_),
        is_single=parts["is_single"].astype(np.bool_),
    )
