"""Where levels begin on the continuous score, from exemplars whose level is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from robo_eval import formulas
from robo_eval.core.errors import ShapeError
from robo_eval.formulas import checks

_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Cutpoint:
    """Where a level begins.

    Attributes:
        level: The level.
        score: Score from which on it is given; None if the exemplars do not say.
        reason: Why there is none.
    """

    level: int
    score: float | None
    reason: str | None = None


def cutpoints(scores: Sequence[float], levels: Sequence[int]) -> tuple[Cutpoint, ...]:
    """Scores at which levels begin, from exemplars whose level is known.

    The levels are made non-decreasing in the score; a level begins half-way between the two
    exemplars between which the fit comes nearer to it than to the level below.

    Args:
        scores: Continuous score of each exemplar, shape (n,).
        levels: Level of each, whole numbers of at least 0, shape (n,).

    Returns:
        One for each level above the lowest of the exemplars, up to the highest.

    Raises:
        InputError: If a score is not finite or a level no whole number.
        ShapeError: If the lengths differ.

    References:
        Chojecki (2025), arXiv:2511.13411, sections 3.11 to 3.13. Half-way is this project's choice.

    Example:
        >>> [one.score for one in cutpoints([0.1, 0.3, 0.5, 0.9], [0, 0, 1, 2])]
        [0.4, 0.7]
    """
    x = checks.numbers("scores", scores)
    given = [checks.count(f"levels[{i}]", one) for i, one in enumerate(levels)]
    if len(given) != len(x):
        raise ShapeError(f"scores has {len(x)} values and levels {len(given)}")
    if not given:
        return ()
    places, which, n = np.unique(x, return_inverse=True, return_counts=True)
    means = np.bincount(which, weights=np.array(given, dtype=np.float64)) / n
    fit = -np.array(formulas.non_increasing_fit(-means, n))
    return tuple(_cutpoint(one, places, fit) for one in range(min(given) + 1, max(given) + 1))


def _cutpoint(level: int, places: NDArray[np.float64], fit: NDArray[np.float64]) -> Cutpoint:
    reached = np.flatnonzero(fit >= level - 0.5 - _ROUNDING)
    if not reached.size:
        return Cutpoint(level=level, score=None, reason="exemplars of it score too low")
    at = int(reached[0])
    if at == 0:
        reason = "exemplars of lower levels score as high"
        return Cutpoint(level=level, score=None, reason=reason)
    return Cutpoint(level=level, score=float((places[at - 1] + places[at]) / 2.0))
