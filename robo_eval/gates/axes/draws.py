"""Intervals from draws: of shares that are known by counts, and of what is computed from them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.estimate import Estimate
from robo_eval.stats.proportions import clopper_pearson_interval

if TYPE_CHECKING:
    from robo_eval.log.evidence import ToolTrial, ToolUse

_Key = TypeVar("_Key", bound=Hashable)
_Note = TypeVar("_Note", "ToolTrial", "ToolUse")

JEFFREYS: Final = "jeffreys_draws"
EXACT: Final = "clopper_pearson"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resampled:
    """A raw value, and what resampling its evidence makes of it.

    Attributes:
        raw: The value in its own unit; without a value, and with a reason, if it is missing.
        draws: The value of each resample, shape (resamples,), in the unit of `raw`; None without
            an interval. Draws of measurements from the same episodes belong together: the i-th of
            each is made of the same resample.
        parts: What else was measured on the way, by name, such as retention and recall.
    """

    raw: Estimate
    draws: NDArray[np.float64] | None = None
    parts: Mapping[str, Estimate] = field(default_factory=dict)


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


def share_and_draws(
    successes: int, episodes: int, size: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """A share, and then draws of it as `jeffreys_draws` makes them, shape (1 + size,)."""
    return np.append(successes / episodes, jeffreys_draws(successes, episodes, size, rng))


def percentile_ends(draws: NDArray[np.float64], level: float) -> tuple[float, float]:
    """The quantiles between which so much of the draws lies."""
    low, high = np.quantile(draws, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return float(low), float(high)


def estimate_of_draws(
    value: float,
    draws: NDArray[np.float64],
    *,
    n: int,
    level: float,
    method: str = JEFFREYS,
    unit: str = "ratio",
) -> Estimate:
    """A value with the interval of its draws, widened to hold the value itself."""
    low, high = percentile_ends(draws, level)
    return Estimate(
        value=value, low=min(low, value), high=max(high, value), level=level, n=n,
        method=method, unit=unit,
    )  # fmt: skip


def estimate_of_first(found: NDArray[np.float64], *, n: int, level: float) -> Estimate:
    """The first of these numbers with the interval of the draws that follow."""
    return estimate_of_draws(float(found[0]), found[1:], n=n, level=level)


def left_problem(left: Estimate, allowed: float, share_left: float) -> str:
    """Why taking a change back does not take its gain away; empty if it does.

    Args:
        left: What is left of the gain without the change.
        allowed: How much may be left.
        share_left: The same as a share of the gain, for the message.
    """
    assert left.value is not None
    assert left.low is not None
    assert left.high is not None
    if not left.low <= 0.0 <= left.high:
        return f"{left} is left of the gain without it, which is not 0"
    if left.value > allowed:
        return f"{left.value:.3f} is left without it, more than {share_left:.0%} of the gain"
    return ""


def exact_share(successes: int, n: int, level: float) -> Estimate:
    """A share of so many with the exact interval of Clopper and Pearson."""
    low, high = clopper_pearson_interval(successes, n, level=level)
    return Estimate(
        value=successes / n, low=low, high=high, level=level, n=n, method=EXACT, unit="ratio"
    )
