"""Intervals from draws: of shares that are known by counts, and of what is computed from them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.estimate import Estimate

if TYPE_CHECKING:
    from robo_eval.log.evidence import ToolTrial, ToolUse

_Key = TypeVar("_Key", bound=Hashable)
_Note = TypeVar("_Note", "ToolTrial", "ToolUse")

JEFFREYS = "jeffreys_draws"


def tallied(notes: Iterable[_Note], key: Callable[[_Note], _Key]) -> dict[_Key, tuple[int, int]]:
    """Successes and episodes of notes, added by a key of them; what was not tried is left out."""
    found: dict[_Key, tuple[int, int]] = {}
    for note in notes:
        if note.episodes:
            done, tried = found.get(key(note), (0, 0))
            found[key(note)] = (done + note.successes, tried + note.episodes)
    return found


def jeffreys_draws(
    successes: int, episodes: int, size: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draws of a share from its Jeffreys posterior, shape (size,)."""
    return rng.beta(successes + 0.5, episodes - successes + 0.5, size=size)


def percentile_ends(draws: NDArray[np.float64], level: float) -> tuple[float, float]:
    """The quantiles between which so much of the draws lies."""
    low, high = np.quantile(draws, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return float(low), float(high)


def estimate_of_draws(
    value: float, draws: NDArray[np.float64], *, n: int, level: float
) -> Estimate:
    """A ratio with the interval of its draws, widened to hold the value itself."""
    low, high = percentile_ends(draws, level)
    return Estimate(
        value=value, low=min(low, value), high=max(high, value), level=level, n=n,
        method=JEFFREYS, unit="ratio",
    )  # fmt: skip
