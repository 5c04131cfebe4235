"""How far capability, spread and generality could be off, by resampling items and episodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.analysis.acc.agent import as_numbers
from robo_eval.analysis.acc.curve import Scale, make_scale
from robo_eval.analysis.acc.measures import measure
from robo_eval.core.errors import InputError, ShapeError
from robo_eval.metrics.words import counted

MIN_EPISODES: Final = 20
"""Episodes at every level from which the interval covers about what it promises."""
MIN_LEVELS: Final = 6
"""Levels from which it does."""
_MAX_CELLS: Final = 4_000_000
"""Numbers drawn at once: bounds memory at some 100 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccIntervals:
    """Percentile intervals of one agent's numbers; each is (low, high).

    Attributes:
        capability: In units of difficulty.
        spread: In units of difficulty.
        normalised_generality: In [-1, 1]; None if it is undefined in most resamples.
        generality: 1 / difficulty; None if the spread is 0 in too many resamples for an upper end.
        expected_difficulty: In units of difficulty; None if undefined in most resamples.
        level: Coverage aimed at.
        resamples: Curves drawn.
        n_undefined: Of those, how many had no defined generality.
        n_levels: Difficulty levels with data.
        min_episodes: Episodes at the level that has fewest.
        unreliable: Why the intervals are too narrow to be trusted; None if they are not.
    """

    capability: tuple[float, float]
    spread: tuple[float, float]
    normalised_generality: tuple[float, float] | None
    generality: tuple[float, float] | None
    expected_difficulty: tuple[float, float] | None
    level: float
    resamples: int
    n_undefined: int
    n_levels: int
    min_episodes: int
    unreliable: str | None


def bootstrap(
    outcomes: ArrayLike,
    difficulty: ArrayLike,
    *,
    h0: float | None = None,
    q: float | None = None,
    left_fill: float = 1.0,
    right_fill: float = 0.0,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> AccIntervals:
    """Intervals by a stratified bootstrap: items within a level, episodes within an item.

    Args:
        outcomes: One agent's results in [0, 1]: shape (I,) with one result an item, or (I, E)
            with E episodes an item; NaN where an item has fewer.
        difficulty: Difficulty of each item, shape (I,).
        h0: As in `analyse`, like the three arguments that follow.
        q: See `analyse`.
        left_fill: See `analyse`.
        right_fill: See `analyse`.
        resamples: Curves drawn, at least 100.
        level: Coverage aimed at.
        seed: Seed of the draws; the order of items and episodes changes nothing.

    Raises:
        InputError: If a number is out of range, or there is no outcome at all.
        ShapeError: If the shapes do not fit.

    References:
        Davison and Hinkley (1997), Bootstrap Methods and their Application, sections 3.2, 3.8.
    """
    results = as_numbers("outcomes", outcomes)
    if results.ndim == 1:
        results = results[:, None]
    difficulties = as_numbers("difficulty", difficulty)
    _check(results, difficulties, resamples, level)
    scale = make_scale(difficulties, h0=h0, q=q, left_fill=left_fill, right_fill=right_fill)
    strata, used = _strata(results, scale)
    curves = _resampled_curves(strata, resamples, np.random.default_rng(seed))
    found = measure(curves, used)
    gamma = found.normalised_generality
    n_undefined = int(np.isnan(gamma).sum())
    n_episodes = [int(counts.sum()) for _, counts in strata]
    capability = _percentiles(found.area, level)
    spread = _percentiles(found.spread, level)
    return AccIntervals(
        capability=(scale.h0 + capability[0], scale.h0 + capability[1]),
        spread=spread,
        normalised_generality=_percentiles_of_most(gamma, level),
        generality=(1.0 / spread[1], 1.0 / spread[0]) if spread[0] > 0.0 else None,
        expected_difficulty=_percentiles_of_most(found.expected_difficulty, level),
        level=level,
        resamples=resamples,
        n_undefined=n_undefined,
        n_levels=len(strata),
        min_episodes=min(n_episodes),
        unreliable=why_unreliable(n_episodes),
    )


def why_unreliable(episodes_per_level: list[int]) -> str | None:
    """Why intervals from so many episodes at each level are too narrow; None if they are not."""
    reasons = []
    levels = counted(len(episodes_per_level), "difficulty level")
    if len(episodes_per_level) < MIN_LEVELS:
        reasons.append(f"{levels}, {MIN_LEVELS} needed")
    few = sum(n < MIN_EPISODES for n in episodes_per_level)
    if few:
        reasons.append(f"fewer than {MIN_EPISODES} episodes at {few} of {levels}")
    return "unreliable: " + "; ".join(reasons) if reasons else None


def _check(
    results: NDArray[np.float64], difficulties: NDArray[np.float64], resamples: int, level: float
) -> None:
    if results.ndim != 2 or results.shape[0] != difficulties.shape[0]:
        raise ShapeError(
            f"outcomes have shape {results.shape}, difficulty names {difficulties.shape[0]} items;"
            " outcomes must be (items,) or (items, episodes)"
        )
    bad = np.argwhere(~np.isnan(results) & ~((results >= 0.0) & (results <= 1.0)))
    if bad.size:
        item, episode = bad[0]
        raise InputError(
            f"outcome of item {item}, episode {episode} is {results[item, episode]}; it must be in"
            " [0, 1]"
        )
    if np.isnan(results).all():
        raise InputError("outcomes are all NaN; there is nothing to resample")
    if resamples < 100:
        raise InputError(f"resamples is {resamples}; a percentile needs at least 100")
    if not 0.0 < level < 1.0:
        raise InputError(f"level is {level}; it must be between 0 and 1")


Stratum = tuple[NDArray[np.float64], NDArray[np.intp]]
"""Outcomes at one level, shape (m, n), and how many of each row count, shape (m,)."""


def _strata(results: NDArray[np.float64], scale: Scale) -> tuple[list[Stratum], Scale]:
    """Outcomes level by level, sorted so that their order cannot matter."""
    # NaN sorts last, so the outcomes of an item come first in its row.
    results = np.sort(results, axis=1)
    counts = (~np.isnan(results)).sum(axis=1)
    strata: list[Stratum] = []
    levels = []
    for index, difficulty in enumerate(scale.levels):
        rows = np.flatnonzero((scale.level_of_item == index) & (counts > 0))
        if rows.size == 0:
            continue
        block = np.nan_to_num(results[rows, : counts[rows].max()], nan=2.0)
        order = np.lexsort(block.T[::-1])
        strata.append((block[order], counts[rows][order]))
        levels.append(difficulty)
    used = Scale(
        levels=np.array(levels),
        level_of_item=np.arange(len(levels)),
        h0=scale.h0,
        q=scale.q,
        left_fill=scale.left_fill,
        right_fill=scale.right_fill,
    )
    return strata, used


def _resampled_curves(
    strata: list[Stratum], resamples: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Curves of resampled outcomes, shape (B, L); levels of one shape are drawn together."""
    curves = np.empty((resamples, len(strata)))
    shapes: dict[tuple[int, ...], list[int]] = {}
    for index, (block, _) in enumerate(strata):
        shapes.setdefault(block.shape, []).append(index)
    for (m, n), indices in shapes.items():
        step = max(1, _MAX_CELLS // (resamples * m * n))
        for first in range(0, len(indices), step):
            group = indices[first : first + step]
            blocks = np.stack([strata[index][0] for index in group])
            counts = np.stack([strata[index][1] for index in group])
            curves[:, group] = _resampled_means(blocks, counts, resamples, rng)
    return curves


def _resampled_means(
    blocks: NDArray[np.float64],
    counts: NDArray[np.intp],
    resamples: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Means of resampled levels.

    Args:
        blocks: Outcomes, shape (G, m, n).
        counts: How many of each row count, shape (G, m).
        resamples: B.
        rng: Source of the draws.

    Returns:
        Shape (B, G).
    """
    n_groups, m, n = blocks.shape
    group = np.arange(n_groups)[None, :, None]
    item = (
        rng.integers(0, m, (resamples, n_groups, m))
        if m > 1
        else np.zeros((resamples, n_groups, m), dtype=np.intp)
    )
    drawn = counts[group, item]
    if n == 1:
        return np.asarray(blocks[group, item, 0].mean(axis=2))
    # Multiplying a uniform number by the row's own count draws from rows of unequal length.
    episode = (rng.random((resamples, n_groups, m, n)) * drawn[..., None]).astype(np.intp)
    values = blocks[group[..., None], item[..., None], episode]
    if (counts == n).all():
        return np.asarray(values.mean(axis=3).mean(axis=2))
    counted = np.arange(n) < drawn[..., None]
    return np.asarray(((values * counted).sum(axis=3) / drawn).mean(axis=2))


def _percentiles_of_most(values: NDArray[np.float64], level: float) -> tuple[float, float] | None:
    """Percentiles of the resamples that have a value, if most have."""
    known = values[~np.isnan(values)]
    return _percentiles(known, level) if len(known) >= len(values) / 2 else None


def _percentiles(values: NDArray[np.float64], level: float) -> tuple[float, float]:
    low, high = np.quantile(values, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return float(low), float(high)
