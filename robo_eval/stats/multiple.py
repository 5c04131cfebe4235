"""What is left of many comparisons made at once."""

from __future__ import annotations

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


def tied_ranks(better: ArrayLike) -> NDArray[np.int64]:
    """Ranks in which policies that were not told apart share one.

    Sharing passes on: if A and B were not told apart, nor B and C, all three share a rank even
    where A was shown to be better than C. `rank_ranges` keeps that difference.

    Args:
        better: Whether policy i was shown to be better than policy j, shape (P, P).

    Returns:
        Rank of each policy, 1 the best, shape (P,): one more than the number of policies in
        better groups.

    Raises:
        ValueError: If the table is not square, or two policies are each better than the other.

    Example:
        >>> tied_ranks([[0, 0, 1], [0, 0, 1], [0, 0, 0]]).tolist()
        [1, 1, 3]
    """
    shown = _decisions(better)
    # Who is not shown to be worse is at least as good, as far as anyone knows; chains of that
    # order all policies into groups, because of any two at least one is not shown to be worse.
    reaches = ~shown.T
    for via in range(len(shown)):
        reaches |= reaches[:, [via]] & reaches[[via], :]
    above = reaches & ~reaches.T
    return np.asarray(1 + above.sum(axis=0), dtype=np.int64)


def rank_ranges(better: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The best and the worst rank of each policy that the decisions allow.

    Args:
        better: As `tied_ranks`.

    Returns:
        Best and worst rank, both of shape (P,): one more than the number of policies shown to be
        better, and P less the number of policies shown to be worse.

    Raises:
        ValueError: As `tied_ranks`.

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
