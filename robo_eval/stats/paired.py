"""Which of two sides succeeds more often, from pairs that met the same conditions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.stats._checks import (
    Alternative,
    check_choice,
    check_level,
    check_share,
    pair_up,
    unwrap,
    verdicts,
    whole,
)
from robo_eval.stats.arrays import same_labels


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedTable:
    """How pairs of outcomes ended.

    Attributes:
        both: Pairs in which both sides succeeded.
        only_first: Pairs in which only the first did; `b` in the functions below.
        only_second: Pairs in which only the second did; `c` below.
        neither: Pairs in which none did.
    """

    both: int
    only_first: int
    only_second: int
    neither: int

    def __post_init__(self) -> None:
        for name in ("both", "only_first", "only_second", "neither"):
            whole(name, getattr(self, name))

    @property
    def n(self) -> int:
        """Pairs in all."""
        return self.both + self.only_first + self.only_second + self.neither


@same_labels()
def paired_table(first: ArrayLike, second: ArrayLike) -> PairedTable:
    """Count how pairs ended.

    Args:
        first: Outcomes of the first side, 0 or 1, shape (n,).
        second: Outcomes of the second in the same conditions, shape (n,).

    Raises:
        ValueError: If an outcome is not 0 or 1, or the sides differ in length.

    Example:
        >>> paired_table([1, 1, 1, 0], [1, 0, 1, 0])
        PairedTable(both=2, only_first=1, only_second=0, neither=1)
    """
    a, b = verdicts("first", first), verdicts("second", second)
    pair_up("first", a, "second", b)
    both = int((a * b).sum())
    only_first, only_second = int(a.sum()) - both, int(b.sum()) - both
    return PairedTable(
        both=both,
        only_first=only_first,
        only_second=only_second,
        neither=len(a) - both - only_first - only_second,
    )


@overload
def mcnemar_p(
    b: int, c: int, *, alternative: Alternative = "two", mid_p: bool = False
) -> float: ...
@overload
def mcnemar_p(
    b: ArrayLike, c: ArrayLike, *, alternative: Alternative = "two", mid_p: bool = False
) -> NDArray[np.float64]: ...
def mcnemar_p(
    b: ArrayLike, c: ArrayLike, *, alternative: Alternative = "two", mid_p: bool = False
) -> float | NDArray[np.float64]:
    """How surprising b and c discordant pairs are if both sides are equally good.

    Args:
        b: Pairs in which only the first side succeeded, shape () or any.
        c: Pairs in which only the second did, broadcast against `b`.
        alternative: `"greater"` asks whether the first side is better, `"less"` the second.
        mid_p: Count what was seen half: right on average, where the exact p value is too large.

    Returns:
        The p value, 1 without discordant pairs; a float if both are numbers.

    Raises:
        ValueError: If a count is not whole or is negative.

    References:
        McNemar (1947), Psychometrika 12:153-157; Fagerland, Lydersen and Laake (2013), BMC
        Medical Research Methodology 13:91 (exact and mid-p).

    Example:
        >>> mcnemar_p(2, 0)
        0.5
    """
    from scipy.special import betainc, betaln

    b_, c_ = np.broadcast_arrays(whole("b", b), whole("c", c))
    check_choice("alternative", alternative, Alternative)
    n = b_ + c_
    wins = {"two": np.maximum(b_, c_), "greater": b_, "less": c_}[alternative]
    # The chance of so many heads or more; betainc takes no 0, at which it is 1.
    p = np.where(wins > 0, betainc(np.maximum(wins, 1.0), n - wins + 1.0, 0.5), 1.0)
    # The chance of exactly this split, n over b, / 2^n.
    seen = np.exp(-betaln(b_ + 1.0, c_ + 1.0) - np.log(n + 1.0) - n * math.log(2.0))
    if mid_p:
        p = p - seen / 2.0
    if alternative == "two":
        p = 2.0 * p
    return unwrap(np.where(n == 0, 1.0, np.minimum(p, 1.0)))


@overload
def bonett_price_interval(
    b: int, c: int, n: int, *, level: float = 0.95
) -> tuple[float, float]: ...
@overload
def bonett_price_interval(
    b: ArrayLike, c: ArrayLike, n: ArrayLike, *, level: float = 0.95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def bonett_price_interval(
    b: ArrayLike, c: ArrayLike, n: ArrayLike, *, level: float = 0.95
) -> tuple[float | NDArray[np.float64], float | NDArray[np.float64]]:
    """Interval of the difference of two success rates measured in pairs.

    It adds one pair to each kind of discordant pairs, without which no discordant pair would mean
    certainty. It is centred on the difference so adjusted, not on (b - c) / n.

    Args:
        b: Pairs in which only the first side succeeded, shape () or any.
        c: Pairs in which only the second did.
        n: Pairs in all, at least 1.
        level: Coverage aimed at.

    Returns:
        Lower and upper end of first - second, cut off at -1 and 1; floats if all are numbers.

    Raises:
        ValueError: If a count is not whole, or there are more discordant pairs than pairs.

    References:
        Bonett and Price (2012), Journal of Educational and Behavioral Statistics 37:479-488.

    Example:
        >>> low, high = bonett_price_interval(2, 0, 20)
        >>> print(f"{low:.4f} {high:.4f}")
        -0.0832 0.2650
    """
    b_, c_, n_ = discordant_counts(b, c, n)
    check_level(level)
    p1, p2 = (b_ + 1.0) / (n_ + 2.0), (c_ + 1.0) / (n_ + 2.0)
    difference = p1 - p2
    z = NormalDist().inv_cdf(0.5 + level / 2.0)
    half = z * np.sqrt((p1 + p2 - difference**2) / (n_ + 2.0))
    low, high = np.maximum(difference - half, -1.0), np.minimum(difference + half, 1.0)
    return unwrap(np.asarray(low)), unwrap(np.asarray(high))


def success_ratio_interval(
    table: PairedTable, *, level: float = 0.95
) -> tuple[float, float] | None:
    """Interval of the ratio of two success rates measured in pairs, first / second.

    It inverts the score test, so it says something where a side always or never succeeded.

    Args:
        table: How the pairs ended.
        level: Coverage aimed at.

    Returns:
        Lower and upper end, the upper one infinite where nothing bounds it; None if the second
        side never succeeded.

    References:
        Tang, Tang and Chan (2003), Statistics in Medicine 22:1217-1233 (score interval of the
        ratio of matched proportions).

    Example:
        >>> low, high = success_ratio_interval(
        ...     PairedTable(both=43, only_first=0, only_second=1, neither=0))
        >>> print(f"{low:.3f} {high:.3f}")
        0.882 1.065
    """
    from scipy.optimize import brentq

    check_level(level)
    if not table.both + table.only_second:
        return None
    z = NormalDist().inv_cdf(0.5 + level / 2.0)
    first, second = table.both + table.only_first, table.both + table.only_second
    seen = first / second
    low = brentq(lambda ratio: _ratio_score(table, ratio) - z, 1e-12, seen) if first else 0.0
    most = 2.0 * max(seen, 1.0)
    while _ratio_score(table, most) > -z:
        most *= 2.0
        if most > 1e9:
            return low, math.inf
    return low, brentq(lambda ratio: _ratio_score(table, ratio) + z, max(seen, 1e-12), most)


def _ratio_score(table: PairedTable, ratio: float) -> float:
    """Standardised distance of what was seen from a ratio of first / second; 0 at the ratio seen.

    The variance is that under the ratio, from the share of pairs in which only the second
    succeeded that is then most likely, a root of a quadratic equation.
    """
    n, told = table.n, table.both + table.only_first + table.only_second
    a = n * (1.0 + ratio)
    b = (table.both + table.only_second) * ratio**2 - (told + table.only_second)
    c = table.only_second * (1.0 - ratio) * told / n
    share = (math.sqrt(max(b * b - 4.0 * a * c, 0.0)) - b) / (2.0 * a)
    away = table.both + table.only_first - ratio * (table.both + table.only_second)
    variance = a * share + told * (ratio - 1.0)
    if variance <= 1e-12 * n:
        return 0.0 if abs(away) < 1e-9 * n else math.copysign(math.inf, away)
    return away / math.sqrt(variance)


def folded_interval(low: float, high: float) -> tuple[float, float]:
    """Interval of an agreement, one less the size of a difference, from that of the difference.

    Percentiles of resampled agreements would nearly never hold 1, because a resampled difference
    is almost never 0, whatever the true one is.

    Args:
        low: Lower end of the interval of the difference.
        high: Its upper end.

    Example:
        >>> low, high = folded_interval(-0.25, 0.125)
        >>> print(low, high)
        0.75 1.0
    """
    nearest = 0.0 if low <= 0.0 <= high else min(abs(low), abs(high))
    return max(0.0, 1.0 - max(abs(low), abs(high))), 1.0 - nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """Difference of two success rates, first - second.

    Attributes:
        value: Difference seen, (b - c) / n.
        standard_error: Of the difference, from pairs; None for one pair.
        unpaired_standard_error: What it would be had the sides not been paired; None for one
            pair. How much larger it is, is what pairing bought.
        low: Lower end of the Bonett-Price interval.
        high: Upper end.
        p: Exact two-sided McNemar p value.
        n: Pairs.
        discordant: Pairs that ended differently, which are all that decides.
    """

    value: float
    standard_error: float | None
    unpaired_standard_error: float | None
    low: float
    high: float
    p: float
    n: int
    discordant: int


def paired_success_difference(table: PairedTable, *, level: float = 0.95) -> PairedDifference:
    """What pairs say about the difference of two success rates.

    Args:
        table: How the pairs ended, at least one.
        level: Coverage of the interval.

    Raises:
        ValueError: If there is no pair.

    Example:
        >>> table = PairedTable(both=14, only_first=2, only_second=0, neither=4)
        >>> found = paired_success_difference(table)
        >>> print(f"{found.value:.2f} +- {found.standard_error:.4f}, p = {found.p}")
        0.10 +- 0.0688, p = 0.5
    """
    b, c, n = table.only_first, table.only_second, table.n
    low, high = bonett_price_interval(b, c, n, level=level)
    value = (b - c) / n
    paired: float | None = None
    unpaired: float | None = None
    if n > 1:
        first, second = (table.both + b) / n, (table.both + c) / n
        paired = math.sqrt(max((b + c) / n - value**2, 0.0) / (n - 1))
        unpaired = math.sqrt((first * (1.0 - first) + second * (1.0 - second)) / (n - 1))
    return PairedDifference(
        value=value,
        standard_error=paired,
        unpaired_standard_error=unpaired,
        low=low,
        high=high,
        p=mcnemar_p(b, c),
        n=n,
        discordant=b + c,
    )


def smallest_mcnemar_p(discordant: int, *, alternative: Alternative = "two") -> float:
    """The least p value that so many discordant pairs can reach, all ending one way.

    Raises:
        ValueError: If the count is not whole or is negative.

    Example:
        >>> smallest_mcnemar_p(5), smallest_mcnemar_p(6)
        (0.0625, 0.03125)
    """
    whole("discordant", discordant)
    check_choice("alternative", alternative, Alternative)
    return float(min(1.0, 2.0 ** ((1 if alternative == "two" else 0) - discordant)))


def least_deciding_pairs(alpha: float = 0.05, *, alternative: Alternative = "two") -> int:
    """The least number of discordant pairs, and so of pairs, that can reach `alpha`.

    Raises:
        ValueError: If `alpha` is not between 0 and 1.

    Example:
        >>> least_deciding_pairs(0.05)
        6
    """
    check_share("alpha", alpha)
    pairs = 1
    while smallest_mcnemar_p(pairs, alternative=alternative) > alpha:
        pairs += 1
    return pairs


def discordant_counts(
    b: ArrayLike, c: ArrayLike, n: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """b, c and n as floats of one shape; refused where there cannot be so many of n pairs."""
    b_, c_, n_ = np.broadcast_arrays(whole("b", b), whole("c", c), whole("n", n, least=1))
    bad = b_ + c_ > n_
    if bad.any():
        raise ValueError(
            f"b + c must be at most n, given {b_[bad][0]:.0f} + {c_[bad][0]:.0f}"
            f" of {n_[bad][0]:.0f}"
        )
    return b_, c_, n_
