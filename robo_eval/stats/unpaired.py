"""Which of two sides succeeds more often, from episodes that are not paired."""

from __future__ import annotations

from typing import Final, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.stats._checks import Alternative, check_choice, unwrap
from robo_eval.stats._worst_case import binomial, worst_case
from robo_eval.stats.arrays import floats
from robo_eval.stats.proportions import wilson_interval

_MAX_CELLS: Final = 4_000_000
"""Tables held at once: bounds memory at some 100 MB."""


@overload
def newcombe_interval(
    first_k: int, first_n: int, second_k: int, second_n: int, *, level: float = 0.95
) -> tuple[float, float]: ...
@overload
def newcombe_interval(
    first_k: ArrayLike,
    first_n: ArrayLike,
    second_k: ArrayLike,
    second_n: ArrayLike,
    *,
    level: float = 0.95,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def newcombe_interval(
    first_k: ArrayLike,
    first_n: ArrayLike,
    second_k: ArrayLike,
    second_n: ArrayLike,
    *,
    level: float = 0.95,
) -> tuple[float | NDArray[np.float64], float | NDArray[np.float64]]:
    """Interval of the difference of two success rates, made of the two Wilson intervals.

    Args:
        first_k: Successes of the first side, shape () or any.
        first_n: Its episodes, at least 1.
        second_k: Successes of the second side.
        second_n: Its episodes, at least 1.
        level: Coverage aimed at.

    Returns:
        Lower and upper end of first - second, in [-1, 1]; floats if all are numbers.

    Raises:
        ValueError: If a count is not whole, or there are more successes than episodes.

    References:
        Newcombe (1998), Statistics in Medicine 17:873-890, method 10.

    Example:
        >>> low, high = newcombe_interval(56, 70, 48, 80)
        >>> print(f"{low:.4f} {high:.4f}")
        0.0524 0.3339
    """
    k1, n1, k2, n2 = np.broadcast_arrays(
        floats("first_k", first_k),
        floats("first_n", first_n),
        floats("second_k", second_k),
        floats("second_n", second_n),
    )
    low1, high1 = map(np.asarray, wilson_interval(k1, n1, level=level))
    low2, high2 = map(np.asarray, wilson_interval(k2, n2, level=level))
    p1, p2 = k1 / n1, k2 / n2
    low = p1 - p2 - np.hypot(p1 - low1, high2 - p2)
    high = p1 - p2 + np.hypot(high1 - p1, p2 - low2)
    return unwrap(np.asarray(low)), unwrap(np.asarray(high))


def barnard_p(
    first_k: int,
    first_n: int,
    second_k: int,
    second_n: int,
    *,
    alternative: Alternative = "two",
) -> float:
    """How surprising two success counts are if both sides are equally good, whatever their rate.

    The exact test without conditioning: tables are ordered by the pooled score statistic, and the
    chance of one at least as extreme is taken at the rate at which it is largest. Fisher's test
    holds the total fixed, which no experiment does, and needs more episodes.

    Args:
        first_k: Successes of the first side.
        first_n: Its episodes, at least 1.
        second_k: Successes of the second side.
        second_n: Its episodes, at least 1.
        alternative: `"greater"` asks whether the first side is better, `"less"` the second.

    Returns:
        The p value, 1 if all episodes ended alike. Time grows with the product of the sizes: 0.1 s
        for 500 a side.

    Raises:
        ValueError: If a count is not whole, or there are more successes than episodes.

    References:
        Barnard (1947), Biometrika 34:123-138; Suissa and Shuster (1985), JRSS A 148:317-327.

    Example:
        >>> print(f"{barnard_p(7, 15, 12, 15):.4f}")
        0.0682
    """
    check_choice("alternative", alternative, Alternative)
    wilson_interval([first_k, second_k], [first_n, second_n])  # refuses impossible counts
    if first_k + second_k in (0, first_n + second_n):
        return 1.0
    sizes, flip = (first_n, second_n), -1.0 if alternative == "less" else 1.0
    # Rounding must not break ties between tables that are equally extreme.
    seen = flip * float(_score(np.array([first_k]), np.array([second_k]), sizes)[0, 0])
    threshold = (abs(seen) if alternative == "two" else seen) - 1e-9
    k2 = np.arange(second_n + 1)
    step = max(1, _MAX_CELLS // (second_n + 1))
    blocks = []
    for start in range(0, first_n + 1, step):
        k1 = np.arange(start, min(start + step, first_n + 1))
        score = flip * _score(k1, k2, sizes)
        blocks.append((k1, (np.abs(score) if alternative == "two" else score) >= threshold))

    def chance(rates: NDArray[np.float64]) -> NDArray[np.float64]:
        second = binomial(k2, second_n, rates)
        total = np.zeros(len(rates))
        for k1, extreme in blocks:
            total += (binomial(k1, first_n, rates) * (extreme @ second)).sum(axis=0)
        return total

    return worst_case(chance)


def _score(
    k1: NDArray[np.int_], k2: NDArray[np.int_], sizes: tuple[int, int]
) -> NDArray[np.float64]:
    """Pooled score statistic of all tables, shape (len(k1), len(k2)); 0 where all ended alike."""
    n1, n2 = sizes
    pooled = (k1[:, None] + k2[None, :]) / (n1 + n2)
    spread = np.sqrt(pooled * (1.0 - pooled) * (1.0 / n1 + 1.0 / n2))
    difference = k1[:, None] / n1 - k2[None, :] / n2
    return np.divide(difference, spread, out=np.zeros_like(difference), where=spread > 0.0)
