"""Which side of pairs succeeds more often, without taking as given how many ended differently."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.stats._checks import Alternative, check_choice, check_level, check_share
from robo_eval.stats._worst_case import binomial, worst_case
from robo_eval.stats.paired import discordant_counts

Array = NDArray[np.float64]
_MOST: Final = 1000
"""Pairs up to which the worst case is looked for among as many; more change it no longer."""
_LISTED: Final = 50
"""Pairs up to which an interval goes through all tables; 0.05 s at most."""
_NUISANCES: Final = 41
_HALVINGS: Final = 20
_TIE: Final = 1e-9
"""Rounding must not tell tables apart that are equally extreme."""


def pairs_p(b: int, c: int, n: int, *, alternative: Alternative = "two") -> float:
    """How surprising b and c discordant pairs of n are if both sides are equally good.

    The exact test without conditioning: outcomes are ordered by McNemar's statistic, and the chance
    of one at least as extreme is taken at the share of discordant pairs at which it is largest.
    McNemar's exact test takes their number as given, which no experiment does, and needs more
    pairs; its mid-p value needs as few as this test, but has no guarantee.

    Args:
        b: Pairs in which only the first side succeeded.
        c: Pairs in which only the second did.
        n: Pairs in all, at least 1.
        alternative: `"greater"` asks whether the first side is better, `"less"` the second.

    Returns:
        The p value, 1 if as many pairs ended one way as the other. More than 1000 pairs count as
        1000, and the normal approximation where that is larger.

    Raises:
        ValueError: If a count is not whole, or there are more discordant pairs than pairs.

    References:
        Suissa and Shuster (1991), Biometrics 47:361-372.

    Example:
        >>> print(f"{pairs_p(5, 0, 20):.4f} {pairs_p(5, 0, 5):.4f}")
        0.0414 0.0625
    """
    check_choice("alternative", alternative, Alternative)
    discordant_counts(b, c, n)
    away = c - b if alternative == "less" else b - c
    if alternative == "two":
        away = abs(away)
    if away <= 0:
        return 1.0
    sides = 2 if alternative == "two" else 1
    statistic = away / math.sqrt(b + c)
    found = _p(statistic, min(n, _MOST), sides)
    return found if n <= _MOST else max(found, sides * math.erfc(statistic / math.sqrt(2.0)) / 2.0)


@lru_cache(maxsize=4096)
def _p(statistic: float, n: int, sides: int) -> float:
    """Chance of a McNemar's statistic so far from 0 on one side or on both, where most."""
    from scipy.special import betainc

    d = np.arange(1, n + 1)
    wins = np.ceil((d + statistic * np.sqrt(d)) / 2.0 - _TIE)
    tail = np.where(wins <= d, betainc(wins, np.maximum(d - wins + 1.0, 1.0), 0.5), 0.0)
    return worst_case(lambda rates: sides * (tail @ binomial(d, n, rates)))


def deciding_wins(n: int, alpha: float, *, alternative: Alternative = "two") -> Array:
    """Pairs that must end one way for `pairs_p` to reach `alpha`, of 0 to n discordant ones.

    Where none of d can, it is more than d; shape (n + 1,).

    Raises:
        ValueError: If `alpha` is not between 0 and 1.
    """
    d = np.arange(n + 1.0)
    least = _deciding_statistic(n, alpha, 2 if alternative == "two" else 1)
    return np.asarray(np.maximum(np.ceil((d + least * np.sqrt(d)) / 2.0 - _TIE), 1.0))


@lru_cache(maxsize=256)
def _deciding_statistic(n: int, alpha: float, sides: int) -> float:
    """The least statistic that decides, to 0.0001."""
    check_share("alpha", alpha)
    usual = NormalDist().inv_cdf(1.0 - alpha / sides)
    if n > _MOST:
        return usual
    few, enough = max(usual - 0.5, 0.01), usual + 1.5
    while enough - few > 1e-4:
        middle = (few + enough) / 2.0
        if _p(middle, n, sides) <= alpha:
            enough = middle
        else:
            few = middle
    return enough


def least_deciding_of(n: int, alpha: float = 0.05) -> int | None:
    """The least number of n pairs that decide by `pairs_p` if all others ended alike, if any can.

    Example:
        >>> least_deciding_of(20), least_deciding_of(5)
        (5, None)
    """
    check_share("alpha", alpha)
    # Far fewer than the normal approximation asks for never do.
    first = max(1, int(max(NormalDist().inv_cdf(1.0 - alpha / 2.0) - 0.5, 0.0) ** 2))
    return next((b for b in range(first, n + 1) if pairs_p(b, 0, n) <= alpha), None)


def pairs_interval(b: int, c: int, n: int, *, level: float = 0.95) -> tuple[float, float]:
    """Interval of the difference of two success rates: what the test of pairs does not reject.

    It leaves out 0 exactly where `pairs_p` is at most 1 - level.

    Args:
        b: Pairs in which only the first side succeeded.
        c: Pairs in which only the second did.
        n: Pairs in all, at least 1.
        level: Coverage aimed at; held whatever the rates up to 50 pairs.

    Returns:
        Lower and upper end of first - second. Up to 50 pairs every outcome is listed, with the
        worst share of discordant pairs for each difference; beyond it is the score interval.

    Raises:
        ValueError: If a count is not whole, or there are more discordant pairs than pairs.

    References:
        Tango (1998), Statistics in Medicine 17:891-908 (score interval); Agresti and Min (2001),
        Biometrics 57:963-971 (inverting one two-sided test).

    Example:
        >>> low, high = pairs_interval(5, 0, 20)
        >>> print(f"{low:.3f} {high:.3f}")
        0.044 0.473
    """
    check_level(level)
    discordant_counts(b, c, n)
    if b >= c:
        return _interval(int(b), int(c), int(n), level)
    low, high = _interval(int(c), int(b), int(n), level)
    return -high, -low


@lru_cache(maxsize=1024)
def _interval(b: int, c: int, n: int, level: float) -> tuple[float, float]:
    alpha, seen = round(1.0 - level, 12), (b - c) / n
    is_shown = pairs_p(b, c, n) <= alpha
    tables = _Tables(b, c, n, alpha, is_shown=is_shown)

    def end(outside: float, inside: float) -> float:
        if not tables.rejects(outside):
            return outside
        for _ in range(_HALVINGS):
            middle = (outside + inside) / 2.0
            if tables.rejects(middle):
                outside = middle
            else:
                inside = middle
        return outside if is_shown else inside

    low = end(0.0, seen) if is_shown else end(-1.0, 0.0)
    return low, end(1.0, seen)


class _Tables:
    """Whether differences are rejected by the outcome of n pairs, b and c of them discordant."""

    def __init__(self, b: int, c: int, n: int, alpha: float, *, is_shown: bool) -> None:
        self.b, self.c, self.n, self.alpha = b, c, n, alpha
        z, own = NormalDist().inv_cdf(1.0 - alpha / 2.0), float(abs(_score(b, c, n, 0.0)))
        # Of many pairs: such that 0 is rejected where the test does.
        self.most = min(z, own * (1.0 - _TIE)) if is_shown else max(z, own)
        if n <= _LISTED:
            from scipy.special import gammaln

            first, second = np.indices((n + 1, n + 1)).reshape(2, -1)
            kept = first + second <= n
            self.counts = np.stack([first, second, n - first - second])[:, kept].astype(np.float64)
            self.ways = gammaln(n + 1.0) - gammaln(self.counts + 1.0).sum(axis=0)
            self.share = (1.0 - np.cos(np.linspace(0.0, np.pi, _NUISANCES))) / 2.0

    def rejects(self, difference: float) -> bool:
        own = abs(_score(self.b, self.c, self.n, difference))
        if self.n > _LISTED:
            return bool(own > self.most)
        first, second, _ = self.counts
        extreme = np.abs(_score(first, second, self.n, difference)) >= own - _TIE
        least = max(0.0, -difference)
        lost = least + ((1.0 - difference) / 2.0 - least) * self.share
        rates = np.stack([lost + difference, lost, 1.0 - 2.0 * lost - difference])
        logs = self.counts[:, extreme].T @ np.log(np.maximum(rates, 1e-300))
        chance = np.exp(logs + self.ways[extreme, None]).sum(axis=0)
        return bool(chance.max() <= self.alpha)


def _score(b: ArrayLike, c: ArrayLike, n: int, difference: float) -> Array:
    """Standardised distance of b and c discordant pairs of n from a difference of the rates.

    The variance is that under the difference, from the share of pairs in which only the second
    succeeded that is then most likely, a root of a quadratic equation. At 0 it is McNemar's.
    """
    b_, c_ = np.asarray(b, dtype=np.float64), np.asarray(c, dtype=np.float64)
    linear = (2.0 * n - b_ + c_) * difference - b_ - c_
    constant = -c_ * difference * (1.0 - difference)
    root = np.sqrt(np.maximum(linear**2 - 8.0 * n * constant, 0.0))
    variance = n * ((root - linear) / (2.0 * n) + difference * (1.0 - difference))
    away = b_ - c_ - n * difference
    away = np.where(np.abs(away) < _TIE, 0.0, away)
    return away / np.sqrt(np.maximum(variance, 1e-18))
