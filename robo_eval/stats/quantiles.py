"""The quantiles that intervals end at, by scipy's names and to its digits.

`import scipy.special` takes a third of what pandas takes, mostly for array libraries nobody uses
here. A trial asks for a few dozen quantiles of small samples; those are found without it. Many at
once, or of large samples, are scipy's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

Numbers = float | NDArray[np.float64]
"""What was checked at a door: one number or many."""
_FEW: Final = 64
_LARGEST: Final = 170.0
"""Up to here `math.gamma` is finite, and right to the last digits."""
_STEPS: Final = 200


def betaincinv(a: Numbers, b: Numbers, p: Numbers) -> NDArray[np.float64]:
    """Where the beta distribution of `a` and `b` has the probability `p` below it."""
    return _by(_beta_quantile, "betaincinv", a, b, p)


def stdtrit(df: Numbers, p: Numbers) -> NDArray[np.float64]:
    """Where Student's t of `df` degrees of freedom has the probability `p` below it."""
    return _by(_t_quantile, "stdtrit", df, p)


def stdtr(df: Numbers, t: Numbers) -> NDArray[np.float64]:
    """The probability below `t` of Student's t of `df` degrees of freedom."""
    return _by(_t_below, "stdtr", df, t)


def ndtri(p: Numbers) -> NDArray[np.float64]:
    """Where the normal distribution has the probability `p` below it."""
    return _by(_normal_quantile, "ndtri", p)


def ndtr(x: Numbers) -> NDArray[np.float64]:
    """The probability below `x` of the normal distribution."""
    return _by(lambda at: 0.5 * math.erfc(-at / math.sqrt(2.0)), "ndtr", x)


def _by(function: Callable[..., float | None], name: str, *given: Numbers) -> NDArray[np.float64]:
    """One number after the other, or all of them by scipy: many, or one that is None here."""
    arrays = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in given))
    if arrays[0].size <= _FEW:
        found = [
            function(*map(float, numbers))
            for numbers in zip(*(x.flat for x in arrays), strict=True)
        ]
        if None not in found:
            return np.array(found, dtype=np.float64).reshape(arrays[0].shape)[()]
    from scipy import special

    result: NDArray[np.float64] = getattr(special, name)(*arrays)
    return result


def _normal_quantile(p: float) -> float | None:
    return NormalDist().inv_cdf(p) if 0.0 < p < 1.0 else None


def _t_quantile(df: float, p: float) -> float | None:
    if p > 0.5:
        upper = _t_quantile(df, 1.0 - p)
        return None if upper is None else -upper
    if p > 0.25:  # close to the middle, what t² is a part of is known better than the rest
        part = _beta_quantile(0.5, df / 2.0, 1.0 - 2.0 * p) if p < 0.5 else 0.0
        return None if part is None else -math.sqrt(df * part / (1.0 - part))
    rest = _beta_quantile(df / 2.0, 0.5, 2.0 * p)
    return None if rest is None else -math.sqrt(df * (1.0 - rest) / rest)


def _t_below(df: float, t: float) -> float | None:
    if t == 0.0:
        return 0.5
    if not (1.0 <= df <= 2.0 * (_LARGEST - 0.5) and -1e6 < t < -1e-6):
        return None
    rest, part = df / (df + t * t), t * t / (df + t * t)
    return _below(df / 2.0, 0.5, rest, part) / 2.0


def _beta_quantile(a: float, b: float, p: float) -> float | None:
    """By Newton's steps for the logarithms, of the tail that is the smaller one."""
    if not (min(a, b) >= 0.1 and a + b <= _LARGEST and 1e-12 <= p < 1.0):
        return None
    if p > 0.5:
        mirrored = _beta_quantile(b, a, 1.0 - p)
        if mirrored is None:
            return None
        x = 1.0 - mirrored
        if x > 0.5:
            return x
        # The subtraction has left it the digits of a number near 1; one more step has them all.
        above = _below(b, a, 1.0 - x, x)
        return x * math.exp(-_log_step(1.0 - p, above, 1.0 - x, _density(a, b, x, 1.0 - x)))
    low, high = 0.0, 1.0
    x = a / (a + b)
    for _ in range(_STEPS):
        density = _density(a, b, x, 1.0 - x)
        below = _below(a, b, x, 1.0 - x)
        low, high = (x, high) if below < p else (low, x)
        step = math.exp(min(1.0, max(-1.0, _log_step(p, below, 1.0 - x, density))))
        nearer = x * step
        if not low < nearer < high:
            nearer = (low + high) / 2.0
        if abs(nearer - x) <= 2e-16 * x or nearer in (low, high):
            return nearer
        x = nearer
    return None


def _log_step(wanted: float, tail: float, rest: float, density: float) -> float:
    """By how much log x grows in a step of Newton's to where the tail below x is what is wanted."""
    return math.log(wanted / tail) * tail * rest / density


def _density(a: float, b: float, x: float, rest: float) -> float:
    """x^a (1 - x)^b / B(a, b), where `rest` is 1 - x."""
    scale = math.gamma(a) / math.gamma(a + b) * math.gamma(b)
    return math.exp(a * math.log(x) + b * math.log(rest)) / scale


def _below(a: float, b: float, x: float, rest: float) -> float:
    """The regularised incomplete beta function, where `rest` is 1 - x.

    References:
        Press et al. (2007), Numerical Recipes, 3rd edition, section 6.4; Lentz's method.
    """
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - _below(b, a, rest, x)
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    total = d
    for m in range(1, _STEPS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0)),
        ):
            d = 1.0 / (1.0 + term * d)
            c = 1.0 + term / c
            total *= c * d
        if abs(c * d - 1.0) < 1e-16:
            break
    return _density(a, b, x, rest) * total / a
