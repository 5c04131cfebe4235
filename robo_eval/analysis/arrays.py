"""Checks of arrays that the analyses share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.core.errors import InputError
from robo_eval.core.wording import counted
from robo_eval.stats.arrays import floats, integers

FEWEST_SEEDS: Final = 3
"""Shared seeds below which there is no interval."""
RELIABLE_SEEDS: Final = 8
"""Shared seeds from which on an interval covers about what it promises."""


def as_numbers(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Values as an array of floats, in which NaN is what is missing; see `stats.arrays`.

    Raises:
        InputError: If they are not numbers, or rows differ in length.
    """
    try:
        return floats(name, values)
    except ValueError as err:
        raise InputError(str(err)) from err


def check_shares(name: str, values: NDArray[np.float64]) -> None:
    """Refuse what is not in [0, 1].

    Raises:
        InputError: If a number is missing or outside; the message names it.
    """
    bad = np.argwhere(~((values >= 0.0) & (values <= 1.0)))
    if len(bad):
        place = ", ".join(map(str, bad[0]))
        raise InputError(f"{name}[{place}] is {values[tuple(bad[0])]}; it must be in [0, 1]")


def episode_rows(episodes: Sequence[ArrayLike]) -> list[NDArray[np.float64]]:
    """Performances of episodes in [0, 1], one row for each domain or test.

    Raises:
        InputError: If a row has no episode, or a number is missing or outside; the message names
            it.
    """
    rows = [as_numbers(f"episodes[{index}]", row) for index, row in enumerate(episodes)]
    for index, row in enumerate(rows):
        if row.ndim != 1 or not len(row):
            raise InputError(f"episodes[{index}] has no episode")
        check_shares(f"episodes[{index}]", row)
    return rows


def episode_seeds(
    seeds: Sequence[ArrayLike] | None, rows: Sequence[NDArray[np.float64]]
) -> list[NDArray[np.int64]] | None:
    """Seeds of the episodes in `rows`, checked.

    Raises:
        InputError: If there is not a seed for each episode.
    """
    if seeds is None:
        return None
    try:
        found = [integers("seeds", row) for row in seeds]
    except ValueError as err:
        raise InputError(str(err)) from err
    if [row.shape for row in found] != [row.shape for row in rows]:
        raise InputError("seeds must have a seed for each episode")
    return found


def resampled_means(
    rows: Sequence[NDArray[np.float64]],
    resamples: int,
    seed: int,
    seeds: Sequence[NDArray[np.int64]] | None = None,
) -> NDArray[np.float64]:
    """Means of rows whose episodes are drawn with replacement.

    Args:
        rows: The episodes, one row for each domain or test.
        resamples: Draws.
        seed: Of the draws; the same seed gives the same means.
        seeds: Seeds of the episodes where rows share them. Episodes of one seed start alike, so a
            seed is drawn with its episodes in all rows, and one less than there are, without which
            few seeds would look too certain. None draws each row by itself.

    Returns:
        A profile for each draw, shape (resamples, rows).

    References:
        Rao and Wu (1988), JASA 83:231-241 (drawing n - 1).
    """
    rng = np.random.default_rng(seed)
    if seeds is None:
        drawn = (row[rng.integers(len(row), size=(resamples, len(row)))] for row in rows)
        return np.stack([row.mean(axis=1) for row in drawn], axis=1)
    labels, places = np.unique(np.concatenate(seeds), return_inverse=True)
    n = len(labels)
    often = rng.multinomial(max(n - 1, 1), np.full(n, 1.0 / n), resamples).astype(np.float64)
    found = np.empty((resamples, len(rows)))
    ends = np.cumsum([len(row) for row in rows])
    for index, (row, end) in enumerate(zip(rows, ends, strict=True)):
        own = places[end - len(row) : end]
        weight = np.bincount(own, minlength=n)
        mass = often @ weight
        np.divide(often @ np.bincount(own, row, minlength=n), mass, found[:, index], where=mass > 0)
        # None of its few seeds was drawn: it draws one of its episodes.
        lacking = np.flatnonzero(mass == 0.0)
        found[lacking, index] = rng.choice(row, len(lacking))
    return np.clip(found, 0.0, 1.0, out=found)


def bootstrap_name(within: str, seeds: Sequence[NDArray[np.int64]] | None) -> str:
    """Name of the method of an interval by `resampled_means`."""
    drawn = f"episodes within {within}" if seeds is None else f"seeds that {within} share"
    return f"bootstrap of {drawn}, percentiles"


def percentiles(
    drawn: NDArray[np.float64], level: float, seeds: Sequence[NDArray[np.int64]] | None = None
) -> tuple[float | None, float | None, str | None]:
    """Ends of an interval of draws, and why they are missing or unreliable.

    There are none where too few seeds were shared, or all draws are the same: episodes that are all
    alike do not say how unlike others would be.

    Args:
        drawn: The draws; NaN are left out.
        level: Coverage aimed at.
        seeds: As for `resampled_means`.
    """
    reason = why_few_seeds(seeds)
    if seeds is not None and _n_seeds(seeds) < FEWEST_SEEDS:
        return None, None, reason
    low, high = np.nanquantile(drawn, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    if np.nanmax(drawn) == np.nanmin(drawn):
        return None, None, "all draws are alike; resampling shows no spread"
    return float(low), float(high), reason


def why_few_seeds(seeds: Sequence[NDArray[np.int64]] | None) -> str | None:
    """Why an interval of shared seeds is unreliable or missing; None if it is neither."""
    if seeds is None or (n := _n_seeds(seeds)) >= RELIABLE_SEEDS:
        return None
    shared = f"{counted(n, 'seed')}, shared by the tests"
    if n < FEWEST_SEEDS:
        return f"{shared}, cannot be resampled; {FEWEST_SEEDS} needed"
    return f"{shared}; from {RELIABLE_SEEDS} on the interval is reliable"


def _n_seeds(seeds: Sequence[NDArray[np.int64]]) -> int:
    return len(np.unique(np.concatenate(seeds)))
