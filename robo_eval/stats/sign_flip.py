"""Whether differences measured in clusters could as well have had the other sign."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.stats._checks import finite, whole

_MOST: Final = 20_000
"""Sum of sizes up to which every assignment of signs is counted; 0.1 s at most."""


def sign_flip_p(sums: ArrayLike) -> float:
    """How surprising the sum of some numbers is if each could as well have had the other sign.

    The randomisation test of differences that come in clusters: of pairs that share a seed, say,
    whose outcomes are alike, only the sum over the seed counts. It asks whether the labels of a
    whole cluster could be swapped, which changes the sign of its sum. Two policies that succeed
    equally often need not allow that: if one fails a little everywhere and the other rarely but
    entirely, it rejects far too often, and `clustered_pairs.clustered_difference` asks for the
    mean. Of sums that are 1, 0 or -1 it is the exact McNemar test.

    Args:
        sums: Sum of the differences in each cluster, whole numbers, shape (S,).

    Returns:
        The two-sided p value, 1 if all sums are 0. Every assignment of signs is counted, not
        drawn, unless the sizes of the sums add up to more than 20,000: then the normal
        approximation is as good.

    Raises:
        ValueError: If a sum is not whole.

    References:
        Fisher (1935), The Design of Experiments, section 21; Pitman (1937), Supplement to the
        JRSS 4:119-130.

    Example:
        >>> sign_flip_p([3, 2, 3, 1, 0, 2])
        0.0625
        >>> sign_flip_p([1, 1])
        0.5
    """
    whole_sums = whole("the sizes of sums", np.abs(finite("sums", sums)))
    sizes = whole_sums[whole_sums > 0].astype(np.int64)
    seen = abs(float(np.sum(sums)))
    if len(sizes) == 0:
        return 1.0
    unit = int(np.gcd.reduce(sizes))
    total = int(sizes.sum())
    if total // unit > _MOST:
        return math.erfc(seen / math.sqrt(2.0 * float((sizes.astype(float) ** 2).sum())))
    chance = _chances(sizes // unit)
    reached = np.abs(2 * np.arange(len(chance)) - total // unit) * unit >= seen
    return min(1.0, float(chance[reached].sum()))


def _chances(sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Chance that the sizes that come out positive add up to 0, 1, ..., their sum."""
    chance = np.ones(1)
    for size, count in zip(*np.unique(sizes, return_counts=True), strict=True):
        step = np.zeros(int(size * count) + 1)
        step[:: int(size)] = _coin_tosses(int(count))
        chance = np.convolve(chance, step)
    return chance


def _coin_tosses(n: int) -> NDArray[np.float64]:
    """Chances of 0 to n heads of n >= 1 coins."""
    ways, all_ways, chances = 1, 2**n, []
    for heads in range(n // 2 + 1):
        chances.append(ways / all_ways)  # of whole numbers, so right to the last digit
        ways = ways * (n - heads) // (heads + 1)
    return np.array(chances + chances[(n - 1) // 2 :: -1])
