"""How far capability, spread and generality could be off, by resampling items and episodes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.analysis.acc.curve import Scale, make_scale
from robo_eval.analysis.acc.measures import measure
from robo_eval.analysis.arrays import as_numbers
from robo_eval.core.errors import InputError, ShapeError
from robo_eval.core.wording import counted
from robo_eval.stats.arrays import same_labels
from robo_eval.stats.quantiles import ndtr, ndtri, stdtrit

MIN_EPISODES: Final = 20
"""Episodes at every level from which the interval covers about what it promises."""
MIN_LEVELS: Final = 6
"""Levels from which it does."""
MIN_SEEDS: Final = 8
"""Seeds shared by the items from which it does."""
FEWEST_SEEDS: Final = 3
"""Shared seeds below which there is no interval."""
INDEPENDENT: Final = "stratified_bootstrap_percentile"
"""Method where each episode is drawn by itself."""
BY_SEED: Final = "seed_bootstrap_percentile"
"""Method where a seed is drawn with its episodes in all items."""
_MAX_CELLS: Final = 4_000_000
"""Numbers drawn at once: bounds memory at some 100 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccIntervals:
    """Percentile intervals of one agent's numbers; each is (low, high).

    Attributes:
        capability: In units of difficulty; None if there is no interval at all.
        spread: In units of difficulty; None likewise.
        normalised_generality: In [-1, 1]; None if it is undefined in most resamples.
        generality: 1 / difficulty; None if the spread is 0 in too many resamples for an upper end.
        expected_difficulty: In units of difficulty; None if undefined in most resamples.
        level: Coverage aimed at.
        resamples: Curves drawn.
        n_undefined: Of those, how many had no defined generality.
        n_levels: Difficulty levels with data.
        min_episodes: Episodes at the level that has fewest.
        unreliable: Why the intervals are too narrow to be trusted; None if they are not.
        method: `"stratified_bootstrap_percentile"` or `"seed_bootstrap_percentile"`.
        n_seeds: Seeds that were resampled; None where episodes were.
        reason: Why there is no interval at all; None if there is one.
    """

    capability: tuple[float, float] | None
    spread: tuple[float, float] | None
    normalised_generality: tuple[float, float] | None
    generality: tuple[float, float] | None
    expected_difficulty: tuple[float, float] | None
    level: float
    resamples: int
    n_undefined: int
    n_levels: int
    min_episodes: int
    unreliable: str | None
    method: str = INDEPENDENT
    n_seeds: int | None = None
    reason: str | None = None


@same_labels(error=InputError)
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

    Episodes must be independent draws; where items share their seeds, see `bootstrap_seeds`.

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
    results, difficulties = _inputs(outcomes, difficulty, resamples, level)
    scale = make_scale(difficulties, h0=h0, q=q, left_fill=left_fill, right_fill=right_fill)
    strata, used = _strata(results, scale)
    curves = _resampled_curves(strata, resamples, np.random.default_rng(seed))
    n_episodes = [int(counts.sum()) for _, counts in strata]
    return _intervals(curves, used, n_episodes, level=level)


@same_labels(error=InputError)
def bootstrap_seeds(
    outcomes: ArrayLike,
    difficulty: ArrayLike,
    *,
    counts: ArrayLike | None = None,
    h0: float | None = None,
    q: float | None = None,
    left_fill: float = 1.0,
    right_fill: float = 0.0,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> AccIntervals:
    """Intervals by a bootstrap of seeds that items share, and of items within a level.

    Episodes of one seed start alike in every item, so they are no independent draws: a seed that
    is drawn is drawn for all items. Percentiles lie as far out as Student's t and the divisor
    n - 1 ask for, without which few seeds give too narrow an interval, and are shifted for bias:
    every resampling loses some of the spread.

    Args:
        outcomes: One agent's mean result in [0, 1] in each item at each seed, shape (I, S); NaN
            where an item has no episode of a seed, which then uses the seeds it has.
        difficulty: Difficulty of each item, shape (I,).
        counts: Episodes behind each mean, shape (I, S); None means one.
        h0: As in `analyse`, like the three arguments that follow.
        q: See `analyse`.
        left_fill: See `analyse`.
        right_fill: See `analyse`.
        resamples: Curves drawn, at least 100.
        level: Coverage aimed at.
        seed: Seed of the draws.

    Returns:
        The intervals; with fewer than 3 seeds none, and the reason.

    Raises:
        InputError: If a number is out of range, or there is no outcome at all.
        ShapeError: If the shapes do not fit.

    References:
        Davison and Hinkley (1997), Bootstrap Methods and their Application, section 3.8.
        Efron and Tibshirani (1993), An Introduction to the Bootstrap, section 14.3 (bias).
        Hesterberg (2015), What Teachers Should Know About the Bootstrap, American Statistician
        69(4), section 5.2 (percentiles further out).
    """
    results, difficulties = _inputs(outcomes, difficulty, resamples, level)
    known = ~np.isnan(results)
    weight = np.ones(results.shape) if counts is None else as_numbers("counts", counts)
    if weight.shape != results.shape or not (weight[known] > 0.0).all():
        raise ShapeError("counts must have the shape of outcomes and be above 0 where they are")
    weight = np.where(known, weight, 0.0)
    scale = make_scale(difficulties, h0=h0, q=q, left_fill=left_fill, right_fill=right_fill)
    has_data: NDArray[np.bool_] = np.asarray(known.any(axis=1))
    rows_of_level, used = _levels_with_data(has_data, scale)
    n_episodes = [round(float(weight[rows].sum())) for rows in rows_of_level]
    # A seed without any episode is none that could be drawn.
    is_played = known.any(axis=0)
    results, weight = results[:, is_played], weight[:, is_played]
    n_seeds = int(is_played.sum())
    if n_seeds < FEWEST_SEEDS:
        return AccIntervals(
            capability=None,
            spread=None,
            normalised_generality=None,
            generality=None,
            expected_difficulty=None,
            level=level,
            resamples=0,
            n_undefined=0,
            n_levels=len(rows_of_level),
            min_episodes=min(n_episodes),
            unreliable=why_unreliable(n_episodes, n_seeds),
            method=BY_SEED,
            n_seeds=n_seeds,
            reason=(
                f"{counted(n_seeds, 'seed')}, shared by the items, cannot be resampled;"
                f" {FEWEST_SEEDS} needed"
            ),
        )
    rng = np.random.default_rng(seed)
    curves = np.empty((resamples, len(rows_of_level)))
    step = max(1, _MAX_CELLS // max(results.shape))
    for first in range(0, resamples, step):
        chunk = curves[first : first + step]
        means = _means_of_drawn_seeds(results, weight, len(chunk), rng)
        for index, rows in enumerate(rows_of_level):
            chunk[:, index] = _mean_of_drawn_items(means[:, rows], rng)
    of_item = np.nansum(results * weight, axis=1) / np.maximum(weight.sum(axis=1), 1.0)
    curve = np.array([of_item[rows].mean() for rows in rows_of_level])
    own = _BySeed(curve=curve, n_seeds=n_seeds)
    return _intervals(curves, used, n_episodes, level=level, by_seed=own)


@dataclass(frozen=True, slots=True)
class _BySeed:
    """What a bootstrap of seeds started from: the curve as it is, shape (L,), of so many seeds."""

    curve: NDArray[np.float64]
    n_seeds: int


def _intervals(
    curves: NDArray[np.float64],
    scale: Scale,
    n_episodes: list[int],
    *,
    level: float,
    by_seed: _BySeed | None = None,
) -> AccIntervals:
    """Intervals from resampled curves, shape (B, L)."""
    found = measure(curves, scale)
    own = None if by_seed is None else measure(by_seed.curve, scale)
    n_seeds = None if by_seed is None else by_seed.n_seeds

    def ends(name: str) -> tuple[float, float] | None:
        draws = getattr(found, name)
        known = draws[~np.isnan(draws)]
        if len(known) < len(draws) / 2:
            return None
        if own is None or n_seeds is None:
            return _percentiles(known, (1.0 - level) / 2.0, (1.0 + level) / 2.0)
        return _percentiles(known, *_tails(known, float(getattr(own, name)), n_seeds, level))

    area, spread = ends("area"), ends("spread")
    return AccIntervals(
        capability=None if area is None else (scale.h0 + area[0], scale.h0 + area[1]),
        spread=spread,
        normalised_generality=ends("normalised_generality"),
        generality=(1.0 / spread[1], 1.0 / spread[0]) if spread and spread[0] > 0.0 else None,
        expected_difficulty=ends("expected_difficulty"),
        level=level,
        resamples=len(curves),
        n_undefined=int(np.isnan(found.normalised_generality).sum()),
        n_levels=len(n_episodes),
        min_episodes=min(n_episodes),
        unreliable=why_unreliable(n_episodes, n_seeds),
        method=INDEPENDENT if n_seeds is None else BY_SEED,
        n_seeds=n_seeds,
    )


def _tails(draws: NDArray[np.float64], value: float, n: int, level: float) -> tuple[float, float]:
    """Which quantiles of the resamples of n seeds are the ends of the interval."""
    far = float(stdtrit(n - 1, (1.0 + level) / 2.0)) * math.sqrt(n / (n - 1))
    noise = 1e-12 * max(1.0, abs(value))
    below = float((draws < value - noise).mean() + (draws <= value + noise).mean()) / 2.0
    # Half a resample at each side keeps the shift finite.
    shift = float(ndtri(np.clip(below, 0.5 / len(draws), 1.0 - 0.5 / len(draws))))
    return float(ndtr(2.0 * shift - far)), float(ndtr(2.0 * shift + far))


def _means_of_drawn_seeds(
    results: NDArray[np.float64],
    weight: NDArray[np.float64],
    resamples: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Mean of each item over the seeds drawn, shape (B, I); NaN for an item without an episode."""
    n_seeds = results.shape[1]
    drawn = rng.multinomial(n_seeds, np.full(n_seeds, 1.0 / n_seeds), resamples).astype(np.float64)
    mass = drawn @ weight.T
    sums = drawn @ (np.nan_to_num(results) * weight).T
    means = np.full(mass.shape, np.nan)
    np.divide(sums, mass, out=means, where=mass > 0.0)
    np.clip(means, 0.0, 1.0, out=means)
    for item in np.flatnonzero((mass == 0.0).any(axis=0) & (weight > 0.0).any(axis=1)):
        # None of its few seeds was drawn; it draws one of them, so that its level stays.
        lacking = np.flatnonzero(mass[:, item] == 0.0)
        share = weight[item] / weight[item].sum()
        means[lacking, item] = results[item, rng.choice(n_seeds, len(lacking), p=share)]
    return means


def _mean_of_drawn_items(
    means: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Mean over items of one level, drawn with replacement: shape (B, m) to (B,)."""
    resamples, m = means.shape
    if m == 1:
        return means[:, 0]
    return np.asarray(np.take_along_axis(means, rng.integers(0, m, (resamples, m)), 1).mean(axis=1))


def why_unreliable(episodes_per_level: list[int], n_seeds: int | None = None) -> str | None:
    """Why intervals from so few episodes are too narrow; None if they are not.

    Args:
        episodes_per_level: Episodes at each level.
        n_seeds: Seeds, where items share them.
    """
    reasons = []
    if n_seeds is not None and n_seeds < MIN_SEEDS:
        reasons.append(f"{counted(n_seeds, 'seed')}, shared by the items, {MIN_SEEDS} needed")
    levels = counted(len(episodes_per_level), "difficulty level")
    if len(episodes_per_level) < MIN_LEVELS:
        reasons.append(f"{levels}, {MIN_LEVELS} needed")
    few = sum(n < MIN_EPISODES for n in episodes_per_level)
    if few:
        reasons.append(f"fewer than {MIN_EPISODES} episodes at {few} of {levels}")
    return "unreliable: " + "; ".join(reasons) if reasons else None


def _inputs(
    outcomes: ArrayLike, difficulty: ArrayLike, resamples: int, level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Outcomes, shape (I, E), and difficulties, shape (I,), checked."""
    results = as_numbers("outcomes", outcomes)
    if results.ndim == 1:
        results = results[:, None]
    difficulties = as_numbers("difficulty", difficulty)
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
    return results, difficulties


Stratum = tuple[NDArray[np.float64], NDArray[np.intp]]
"""Outcomes at one level, shape (m, n), and how many of each row count, shape (m,)."""


def _levels_with_data(
    has_data: NDArray[np.bool_], scale: Scale
) -> tuple[list[NDArray[np.intp]], Scale]:
    """Items with data of each level that has some, and the axis of those levels."""
    found = [
        np.flatnonzero((scale.level_of_item == index) & has_data)
        for index in range(len(scale.levels))
    ]
    kept = [index for index, rows in enumerate(found) if rows.size]
    used = Scale(
        levels=scale.levels[kept],
        level_of_item=np.arange(len(kept)),
        h0=scale.h0,
        q=scale.q,
        left_fill=scale.left_fill,
        right_fill=scale.right_fill,
    )
    return [found[index] for index in kept], used


def _strata(results: NDArray[np.float64], scale: Scale) -> tuple[list[Stratum], Scale]:
    """Outcomes level by level, sorted so that their order cannot matter."""
    # NaN sorts last, so the outcomes of an item come first in its row.
    results = np.sort(results, axis=1)
    counts = (~np.isnan(results)).sum(axis=1)
    strata: list[Stratum] = []
    rows_of_level, used = _levels_with_data(counts > 0, scale)
    for rows in rows_of_level:
        block = np.nan_to_num(results[rows, : counts[rows].max()], nan=2.0)
        order = np.lexsort(block.T[::-1])
        strata.append((block[order], counts[rows][order]))
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
    if m == n == 1:
        # The one result of a level is drawn every time.
        return np.broadcast_to(blocks[:, 0, 0], (resamples, n_groups))
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


def _percentiles(values: NDArray[np.float64], first: float, last: float) -> tuple[float, float]:
    low, high = np.quantile(values, [first, last])
    return float(low), float(high)
