"""Checks of arrays that the analyses share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.core.errors import InputError


def as_numbers(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Values as an array of floats.

    Raises:
        InputError: If they are not numbers, or rows differ in length.
    """
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as err:
        raise InputError(f"{name} must hold numbers in rows of equal length: {err}") from err


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


def resampled_means(
    rows: Sequence[NDArray[np.float64]], resamples: int, seed: int
) -> NDArray[np.float64]:
    """Means of rows whose episodes are drawn with replacement, each row by itself.

    Args:
        rows: The episodes, one row for each domain or test.
        resamples: Draws.
        seed: Of the draws; the same seed gives the same means.

    Returns:
        A profile for each draw, shape (resamples, rows).
    """
    rng = np.random.default_rng(seed)
    drawn = (row[rng.integers(len(row), size=(resamples, len(row)))] for row in rows)
    return np.stack([row.mean(axis=1) for row in drawn], axis=1)
