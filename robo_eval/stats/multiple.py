"""What is left of many comparisons made at once."""

from __future__ import annotations

from collections.abc import Iterable
from string import ascii_lowercase

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.stats._checks import finite
from robo_eval.stats.arrays import floats


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Adjust p values so that the chance of any false decision is at most the level read at.

    Args:
        p_values: One p value a comparison, shape (m,).

    Returns:
        Adjusted p values in the same order, shape (m,): decide where they are at most alpha.

    Raises:
        ValueError: If a p value is not between 0 and 1.

    References:
        Holm (1979), Scandinavian Journal of Statistics 6:65-70.

    Example:
        >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
        [0.03, 0.06, 0.06]
    """
    p = finite("p_values", p_values)
    outside = (p < 0.0) | (p > 1.0)
    if outside.any():
        raise ValueError(f"p_values must be between 0 and 1, given {p[outside][0]}")
    order = np.argsort(p, kind="stable")
    raised = p[order] * np.arange(len(p), 0, -1)
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(raised), 1.0)
    return adjusted


def letters(better: ArrayLike) -> list[str]:
    """Letters that policies share exactly where they were not told apart.

    Args:
        better: Whether policy i was shown to be better than policy j, shape (P, P); letters are
            given in the order of its rows.

    Returns:
        The letters of each policy: `a`, `ab`, ...

    Raises:
        ValueError: If the table is not square, or two policies are each better than the other.

    References:
        Piepho (2004), Journal of Computational and Graphical Statistics 13:456-466.

    Example:
        >>> letters([[0, 0, 1], [0, 0, 0], [0, 0, 0]])
        ['a', 'ab', 'b']
    """
    shown = _decisions(better)
    groups = [frozenset(range(len(shown)))]
    for i, j in np.argwhere(shown | shown.T):
        if i < j:
            groups = _without_the_covered(
                part
                for group in groups
                for part in ((group - {i}, group - {j}) if {i, j} <= group else (group,))
            )
    groups.sort(key=sorted)
    names = [ascii_lowercase[n % 26] * (1 + n // 26) for n in range(len(groups))]
    return [
        "".join(name for name, group in zip(names, groups, strict=True) if policy in group)
        for policy in range(len(shown))
    ]


def _without_the_covered(groups: Iterable[frozenset[int]]) -> list[frozenset[int]]:
    """Each group once, and none that lies in another."""
    distinct = set(groups)
    return [one for one in distinct if not any(one < other for other in distinct)]


def rank_ranges(better: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The best and the worst rank of each policy that the decisions allow.

    Args:
        better: As `letters`.

    Returns:
        Best and worst rank, both of shape (P,): one more than the number of policies shown to be
        better, and P less the number of policies shown to be worse.

    Raises:
        ValueError: As `letters`.

    Example:
        >>> best, worst = rank_ranges([[0, 0, 1], [0, 0, 0], [0, 0, 0]])
        >>> best.tolist(), worst.tolist()
        ([1, 1, 2], [2, 3, 3])
    """
    shown = _decisions(better)
    best = 1 + shown.sum(axis=0)
    worst = len(shown) - shown.sum(axis=1)
    return np.asarray(best, dtype=np.int64), np.asarray(worst, dtype=np.int64)


def _decisions(better: ArrayLike) -> NDArray[np.bool_]:
    given = floats("better", better)
    if not ((given == 0.0) | (given == 1.0)).all():
        raise ValueError("better must hold true and false only")
    shown = given.astype(np.bool_)
    if shown.ndim != 2 or shown.shape[0] != shown.shape[1]:
        raise ValueError(f"better must have shape (P, P), given {shown.shape}")
    both = np.argwhere(shown & shown.T)
    if len(both):
        i, j = both[0]
        raise ValueError(f"policies {i} and {j} are each better than the other")
    return shown
