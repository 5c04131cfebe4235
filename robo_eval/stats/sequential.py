"""What may be said after every outcome, however often one looks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Final, overload

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
from robo_eval.stats.arrays import floats, same_labels
from robo_eval.stats.proportions import wilson_interval

_LOOK_DRAWS: Final = 20_000
_HALVINGS: Final = 80
"""Enough to find an end to the last bit, however small it is."""


@overload
def robbins_interval(k: int, n: int, *, level: float = 0.95) -> tuple[float, float]: ...
@overload
def robbins_interval(
    k: ArrayLike, n: ArrayLike, *, level: float = 0.95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def robbins_interval(
    k: ArrayLike, n: ArrayLike, *, level: float = 0.95
) -> tuple[float | NDArray[np.float64], float | NDArray[np.float64]]:
    """Interval of a proportion that covers at all n at once, so that one may look at any time.

    It holds the rates that a bet against them, spread evenly over all rates, has not refuted. The
    Clopper-Pearson interval, looked at after each of 200 trials, misses a rate of 0.5 at some point
    in 28 % of series.

    Args:
        k: Successes so far, shape () or any.
        n: Trials so far, at least 1, broadcast against `k`.
        level: Chance, at least, that no look ever misses.

    Returns:
        Lower and upper end; floats if `k` and `n` are numbers.

    Raises:
        ValueError: If a count is not whole, `k` is not in [0, n], or `n` is below 1.

    References:
        Robbins (1970), Annals of Mathematical Statistics 41:1397-1409; Ville (1939).

    Example:
        >>> low, high = robbins_interval(9, 10)
        >>> print(f"{low:.3f} {high:.3f}")
        0.455 1.000
    """
    check_level(level)
    wilson_interval(k, n)  # refuses impossible counts
    k_, n_ = np.broadcast_arrays(floats("k", k), floats("n", n))
    return (
        unwrap(_lower_end(k_, n_, level)),
        unwrap(np.asarray(1.0 - _lower_end(n_ - k_, n_, level))),
    )


def _lower_end(k: NDArray[np.float64], n: NDArray[np.float64], level: float) -> NDArray[np.float64]:
    from scipy.special import betaln, xlog1py, xlogy

    # A rate is refuted where its log likelihood is below this.
    least = betaln(k + 1.0, n - k + 1.0) + math.log1p(-level)
    inside = k / n
    outside = np.zeros(k.shape)
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2.0
        # Below k / n the likelihood rises with the rate.
        refuted = xlogy(k, middle) + xlog1py(n - k, -middle) <= least
        outside = np.where(refuted, middle, outside)
        inside = np.where(refuted, inside, middle)
    return np.where(k == 0, 0.0, inside)


def confidence_sequence(
    outcomes: ArrayLike, *, level: float = 0.95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends of the interval of a rate after each outcome, each interval inside the one before.

    All earlier looks hold at once, so what one of them ruled out stays out. Ends that cross say
    that the rate changed on the way: while it stays the same they do so with a chance of at most
    1 - `level`.

    Args:
        outcomes: 0 or 1 in the order in which they came, shape (n,), n >= 1.
        level: Chance, at least, that no look ever misses.

    Returns:
        Lower and upper ends, shape (n,) each.

    Raises:
        ValueError: If there is no outcome or one is not 0 or 1.

    References:
        As `robbins_interval`.

    Example:
        >>> low, high = confidence_sequence([1, 1, 1, 1, 0, 0])
        >>> print(low.round(2).tolist())
        [0.03, 0.13, 0.23, 0.32, 0.32, 0.32]
    """
    x = verdicts("outcomes", outcomes)
    low, high = robbins_interval(np.cumsum(x), np.arange(1, len(x) + 1), level=level)
    return np.maximum.accumulate(low), np.minimum.accumulate(high)


@overload
def rate_e_value(k: int, n: int, rate: float, *, alternative: Alternative = "two") -> float: ...
@overload
def rate_e_value(
    k: ArrayLike, n: ArrayLike, rate: float, *, alternative: Alternative = "two"
) -> NDArray[np.float64]: ...
def rate_e_value(
    k: ArrayLike, n: ArrayLike, rate: float, *, alternative: Alternative = "two"
) -> float | NDArray[np.float64]:
    """Evidence against a rate: what one unit, bet against it, has grown to.

    If the rate is true, the chance that the stake ever reaches 20 is at most 1 in 20.

    Args:
        k: Successes so far, shape () or any.
        n: Trials so far, broadcast against `k`; 1 is the stake before the first.
        rate: The rate bet against, in (0, 1).
        alternative: `"two"` bets evenly on all rates, `"greater"` on those above `rate` (and is
            then evidence against all rates up to it), `"less"` on those below.

    Returns:
        The e value, infinite where it is too large for a float; a float if `k` and `n` are
        numbers.

    Raises:
        ValueError: If a count is not whole, `k` is above `n`, or the rate is not in (0, 1).

    References:
        Robbins (1970), Annals of Mathematical Statistics 41:1397-1409.

    Example:
        >>> print(f"{rate_e_value(18, 20, 0.7, alternative='greater'):.2f}")
        5.55
    """
    with np.errstate(over="ignore"):
        return unwrap(np.exp(log_rate_e(k, n, rate, alternative)))


@overload
def paired_e_value(b: int, c: int, *, alternative: Alternative = "two") -> float: ...
@overload
def paired_e_value(
    b: ArrayLike, c: ArrayLike, *, alternative: Alternative = "two"
) -> NDArray[np.float64]: ...
def paired_e_value(
    b: ArrayLike, c: ArrayLike, *, alternative: Alternative = "two"
) -> float | NDArray[np.float64]:
    """Evidence that two sides, measured in pairs, are not equally good, at any time.

    Only pairs that ended differently count: under equality each goes either way like a coin.

    Args:
        b: Pairs so far in which only the first side succeeded, shape () or any.
        c: Pairs so far in which only the second did, broadcast against `b`.
        alternative: `"greater"` bets that the first side is better, `"less"` the second.

    Returns:
        The e value; stop and decide once it reaches 1 / alpha. A float if both are numbers.

    Raises:
        ValueError: If a count is not whole or is negative.

    References:
        Robbins (1970); Ramdas et al. (2023), Statistical Science 38:576-601.

    Example:
        >>> print(f"{paired_e_value(8, 0):.2f}")
        28.44
    """
    b_, c_ = whole("b", b), whole("c", c)
    return rate_e_value(b_, b_ + c_, 0.5, alternative=alternative)


@same_labels()
def paired_e_process(
    first: ArrayLike, second: ArrayLike, *, alternative: Alternative = "two"
) -> NDArray[np.float64]:
    """`paired_e_value` after each pair.

    Args:
        first: Outcomes of the first side, 0 or 1, in the order in which they came, shape (n,).
        second: Outcomes of the second side in the same conditions, shape (n,).
        alternative: As `paired_e_value`.

    Returns:
        E values, shape (n,).

    Raises:
        ValueError: If an outcome is not 0 or 1, or the sides differ in length.

    Example:
        >>> paired_e_process([1, 1, 0], [0, 1, 1]).round(2).tolist()
        [1.0, 1.0, 0.67]
    """
    x, y = verdicts("first", first), verdicts("second", second)
    pair_up("first", x, "second", y)
    return paired_e_value(np.cumsum(x * (1 - y)), np.cumsum(y * (1 - x)), alternative=alternative)


def anytime_p(e_values: ArrayLike) -> NDArray[np.float64]:
    """The p value after each look that may be read at any time: 1 over the largest e so far.

    Args:
        e_values: Evidence after each look, at least 0, shape (n,).

    Returns:
        p values, shape (n,), never rising.

    Raises:
        ValueError: If an e value is negative or not a number.

    References:
        Ramdas et al. (2023), Statistical Science 38:576-601, section 2.

    Example:
        >>> anytime_p([0.5, 4.0, 2.0]).tolist()
        [1.0, 0.25, 0.25]
    """
    e = floats("e_values", e_values)
    if e.ndim != 1 or np.isnan(e).any() or (e < 0.0).any():
        raise ValueError("e_values must be numbers of at least 0, shape (n,)")
    return 1.0 / np.maximum.accumulate(np.maximum(e, 1.0))


def log_rate_e(
    k: ArrayLike, n: ArrayLike, rate: float, alternative: Alternative
) -> NDArray[np.float64]:
    """Log of `rate_e_value`, which does not overflow."""
    from scipy.special import betainc

    k_, n_ = np.broadcast_arrays(whole("k", k), whole("n", n))
    check_share("rate", rate)
    check_choice("alternative", alternative, Alternative)
    if (k_ > n_).any():
        raise ValueError(f"k must be at most n, given {k_[k_ > n_][0]:.0f} of {n_[k_ > n_][0]:.0f}")
    log_e = _log_bet(k_, n_, rate)
    if alternative == "two":
        return log_e
    with np.errstate(divide="ignore"):
        if alternative == "greater":
            share = np.log(betainc(n_ - k_ + 1.0, k_ + 1.0, 1.0 - rate)) - math.log1p(-rate)
        else:
            share = np.log(betainc(k_ + 1.0, n_ - k_ + 1.0, rate)) - math.log(rate)
    return np.asarray(log_e + share)


def _log_bet(
    k: NDArray[np.float64], n: NDArray[np.float64], rate: ArrayLike
) -> NDArray[np.float64]:
    """Log of the likelihood, averaged over all rates, over that of `rate`."""
    from scipy.special import betaln, xlog1py, xlogy

    p = floats("rate", rate)
    return np.asarray(betaln(k + 1.0, n - k + 1.0) - xlogy(k, p) - xlog1py(n - k, -p))


def error_of_looks(sizes: Sequence[int], *, alpha: float = 0.05, seed: int = 0) -> float:
    """Chance that one of several tests of a growing sample decides where nothing differs.

    Each test is made for a fixed number of observations and decides at `alpha`; their sums are
    taken to be normal, and drawn.

    Args:
        sizes: Observations at each look, rising, at least one.
        alpha: Error of each test.
        seed: Seed of the draws.

    References:
        Armitage, McPherson and Rowe (1969), JRSS A 132:235-244.

    Example:
        >>> print(f"{error_of_looks([100]):.2f} {error_of_looks([20, 40, 60, 80, 100]):.2f}")
        0.05 0.14
    """
    steps = np.diff(np.asarray(sizes, dtype=np.float64), prepend=0.0)
    if not len(steps) or (steps <= 0.0).any():
        raise ValueError(f"sizes must rise from above 0, given {list(sizes)}")
    check_share("alpha", alpha)
    drawn = np.random.default_rng(seed).standard_normal((_LOOK_DRAWS, len(steps)))
    z = np.cumsum(drawn * np.sqrt(steps), axis=1) / np.sqrt(np.cumsum(steps))
    return float((np.abs(z) > NormalDist().inv_cdf(1.0 - alpha / 2.0)).any(axis=1).mean())
