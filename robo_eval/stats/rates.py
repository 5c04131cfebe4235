"""Which rates of events are compatible with so many in so much exposure."""

from __future__ import annotations

from statistics import NormalDist
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.stats._checks import (
    Alternative,
    check_choice,
    check_level,
    unwrap,
    whole,
)
from robo_eval.stats.arrays import floats
from robo_eval.stats.proportions import Sided, clopper_pearson_interval

RatioMethod = Literal["score", "exact"]
"""The interval to show, or the one that covers at least its level."""


@overload
def garwood_interval(
    events: int, exposure: float, *, level: float = 0.95, sided: Sided = "two"
) -> tuple[float, float]: ...
@overload
def garwood_interval(
    events: ArrayLike, exposure: ArrayLike, *, level: float = 0.95, sided: Sided = "two"
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def garwood_interval(
    events: ArrayLike, exposure: ArrayLike, *, level: float = 0.95, sided: Sided = "two"
) -> tuple[float | NDArray[np.float64], float | NDArray[np.float64]]:
    """Exact interval of the rate of a Poisson process: covers at least `level` for every rate.

    No event never shows that there is no risk: its upper end is about 3.7 events (two-sided), or
    3.0 (one-sided), over the exposure.

    Args:
        events: Events counted, shape () or any.
        exposure: What they were counted in, hours or any other unit, above 0, broadcast against
            `events`.
        level: Coverage guaranteed.
        sided: `"upper"` gives 0 and the one-sided upper bound, the one for a safety gate;
            `"lower"` the one-sided lower bound and infinity.

    Returns:
        Lower and upper end in events per unit of exposure; floats if both are numbers. The lower
        end of no event is exactly 0.

    Raises:
        ValueError: If a count is not whole or is negative, or there is no exposure.

    References:
        Garwood (1936), Biometrika 28:437-442.

    Example:
        >>> low, high = garwood_interval(3, 120.0)
        >>> print(f"{100 * low:.3f} {100 * high:.3f} per 100 h")
        0.516 7.306 per 100 h
        >>> print(f"{garwood_interval(0, 40.0, sided='upper')[1]:.4f} per hour")
        0.0749 per hour
    """
    # scipy costs 0.1 s at start-up, which verbs that compute no interval must not pay.
    from scipy.special import gammainccinv, gammaincinv

    c, hours = np.broadcast_arrays(whole("events", events), _exposure("exposure", exposure))
    check_level(level)
    check_choice("sided", sided, Sided)
    tail = (1.0 - level) / (2.0 if sided == "two" else 1.0)
    low = np.zeros(c.shape)
    high = np.full(c.shape, np.inf)
    if sided != "upper":
        some = c > 0
        low[some] = gammaincinv(c[some], tail) / hours[some]
    if sided != "lower":
        high = np.asarray(gammainccinv(c + 1.0, tail) / hours)
    return unwrap(low), unwrap(high)


def burst_interval(
    sizes: ArrayLike, exposure: float, *, level: float = 0.95
) -> tuple[float, float]:
    """Interval of the rate of events that come in bursts, such as several in one episode.

    Bursts are taken as a Poisson process, and their sizes as what they were; where each is one
    event it is Garwood's interval.

    Args:
        sizes: Events of each burst, each at least 1, shape (m,); empty after none.
        exposure: What they were counted in, above 0.
        level: Coverage aimed at. Few bursts say little about their sizes, and none says
            nothing: where 2 are expected the interval can cover in 76 % where it aims at 95,
            where 3 are in 85, where 8 are in 94.

    Returns:
        Lower and upper end in events per unit of exposure.

    Raises:
        ValueError: If a size is not whole or below 1, or there is no exposure.

    References:
        Fay and Feuer (1997), Statistics in Medicine 16:791-801 (weighted sums of counts).

    Example:
        >>> low, high = burst_interval([1, 1, 1], 120.0)
        >>> print(f"{100 * low:.3f} {100 * high:.3f} per 100 h")
        0.516 7.306 per 100 h
        >>> low, high = burst_interval([3], 120.0)
        >>> print(f"{100 * low:.3f} {100 * high:.3f} per 100 h")
        0.063 13.929 per 100 h
    """
    from scipy.special import gammainccinv, gammaincinv

    x = np.atleast_1d(whole("sizes", sizes, least=1))
    hours = float(_exposure("exposure", exposure))
    check_level(level)
    tail = (1.0 - level) / 2.0
    events, squares, largest = x.sum(), (x * x).sum(), x.max(initial=1.0)
    low = squares / events * gammaincinv(events**2 / squares, tail) if len(x) else 0.0
    events, squares = events + largest, squares + largest**2
    high = squares / events * gammainccinv(events**2 / squares, tail)
    return float(low / hours), float(high / hours)


@overload
def rate_ratio_interval(
    first_events: int,
    first_exposure: float,
    second_events: int,
    second_exposure: float,
    *,
    level: float = 0.95,
    method: RatioMethod = "score",
) -> tuple[float, float]: ...
@overload
def rate_ratio_interval(
    first_events: ArrayLike,
    first_exposure: ArrayLike,
    second_events: ArrayLike,
    second_exposure: ArrayLike,
    *,
    level: float = 0.95,
    method: RatioMethod = "score",
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def rate_ratio_interval(
    first_events: ArrayLike,
    first_exposure: ArrayLike,
    second_events: ArrayLike,
    second_exposure: ArrayLike,
    *,
    level: float = 0.95,
    method: RatioMethod = "score",
) -> tuple[float | NDArray[np.float64], float | NDArray[np.float64]]:
    """Interval of the first rate over the second.

    Given how many events there were in all, how many of them are the first's is binomial: an
    interval of that share is one of the ratio.

    Args:
        first_events: Events of the first, shape () or any.
        first_exposure: Exposure of the first, above 0.
        second_events: Events of the second.
        second_exposure: Exposure of the second, in the same unit.
        level: Coverage aimed at.
        method: `"score"` covers `level` on average, `"exact"` at least; the exact one excludes
            1 only where `rate_comparison_p` is below 1 - `level`.

    Returns:
        Lower and upper end; floats if all are numbers. Without an event of the second the upper
        end is infinite, without any event the interval is all there is: 0 to infinity.

    Raises:
        ValueError: If a count is not whole or is negative, or there is no exposure.

    References:
        Graham, Mengersen and Morton (2003), Statistics in Medicine 22:2071-2083 (score);
        Przyborowski and Wilenski (1940), Biometrika 31:313-323 (exact).

    Example:
        >>> low, high = rate_ratio_interval(5, 100.0, 1, 80.0)
        >>> print(f"{low:.2f} {high:.2f}")
        0.62 25.82
    """
    a, h_a, b, h_b = np.broadcast_arrays(
        whole("first_events", first_events),
        _exposure("first_exposure", first_exposure),
        whole("second_events", second_events),
        _exposure("second_exposure", second_exposure),
    )
    check_level(level)
    check_choice("method", method, RatioMethod)
    total = a + b
    if method == "exact":
        low_share, high_share = map(
            np.asarray, clopper_pearson_interval(a, np.maximum(total, 1.0), level=level)
        )
        with np.errstate(divide="ignore"):
            low, high = low_share / (1.0 - low_share), high_share / (1.0 - high_share)
        high = np.where(b == 0, np.inf, high)
    else:
        # Roots of (a - b r)^2 = z^2 (a + b) r in the ratio r of expected counts.
        z2 = NormalDist().inv_cdf(0.5 + level / 2.0) ** 2
        half = a * b + z2 * total / 2.0
        root = np.sqrt(np.maximum(half**2 - (a * b) ** 2, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            # The product of the roots is (a / b)^2: no difference of near equals, and b may be 0.
            low = np.where(a == 0, 0.0, a**2 / (half + root))
            high = np.where(b == 0, np.inf, (half + root) / b**2)
    return unwrap(np.asarray(low * h_b / h_a)), unwrap(np.asarray(high * h_b / h_a))


def rate_comparison_p(
    first_events: int,
    first_exposure: float,
    second_events: int,
    second_exposure: float,
    *,
    ratio: float = 1.0,
    alternative: Alternative = "two",
    mid_p: bool = False,
) -> float:
    """How surprising two counts are if the first rate is `ratio` times the second.

    The test given the total: two-sided it adds up the splits that are at most as likely as the one
    seen.

    Args:
        first_events: Events of the first.
        first_exposure: Exposure of the first, above 0.
        second_events: Events of the second.
        second_exposure: Exposure of the second, in the same unit.
        ratio: First rate over second rate that is tested, above 0.
        alternative: `"greater"` asks whether the first rate is higher than that, `"less"` lower.
        mid_p: Count what was seen half: right on average, where the exact p value is too large.

    Returns:
        The p value; 1 without any event, which tells nothing.

    Raises:
        ValueError: If a count is not whole or is negative, or there is no exposure.

    References:
        Przyborowski and Wilenski (1940), Biometrika 31:313-323; Lancaster (1961), JASA 56:223-234
        (mid-p).

    Example:
        >>> print(f"{rate_comparison_p(5, 100.0, 1, 80.0):.4f}")
        0.2360
    """
    from scipy.special import betainc, gammaln, xlog1py, xlogy

    a, b = (
        float(whole(name, count))
        for name, count in (("first_events", first_events), ("second_events", second_events))
    )
    expected = ratio * float(_exposure("first_exposure", first_exposure))
    share = expected / (expected + float(_exposure("second_exposure", second_exposure)))
    if not 0.0 < share < 1.0:
        raise ValueError(f"ratio must be above 0 and finite, given {ratio}")
    check_choice("alternative", alternative, Alternative)
    n = a + b
    if n == 0:
        return 1.0
    k = np.arange(n + 1.0)
    chance = np.exp(
        gammaln(n + 1.0)
        - gammaln(k + 1.0)
        - gammaln(n - k + 1.0)
        + xlogy(k, share)
        + xlog1py(n - k, -share)
    )
    seen = float(chance[int(a)])
    if alternative == "greater":
        p = float(betainc(a, b + 1.0, share)) if a > 0 else 1.0
    elif alternative == "less":
        p = float(betainc(b, a + 1.0, 1.0 - share)) if b > 0 else 1.0
    else:
        # Rounding must not leave out a split that is exactly as likely.
        p = float(chance[chance <= seen * (1.0 + 1e-7)].sum())
    return min(1.0, p - seen / 2.0 if mid_p else p)


def _exposure(name: str, values: ArrayLike) -> NDArray[np.float64]:
    exposure = floats(name, values)
    bad = ~(np.isfinite(exposure) & (exposure > 0.0))
    if bad.any():
        raise ValueError(
            f"{name} must be above 0 and finite, given {exposure[bad][0]}; no exposure, no rate"
        )
    return exposure
