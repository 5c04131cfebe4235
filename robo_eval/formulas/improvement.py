"""How much capability the resources an agent spent by itself have bought: slope and curvature."""

from __future__ import annotations

import math
from typing import Final, Literal, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.errors import InputError
from robo_eval.formulas import checks
from robo_eval.formulas.checks import Numbers, Real

MIN_POINTS: Final = 5
"""Checkpoints a local quadratic fit needs. This project's choice."""
_SINGULAR: Final = 1e-12
"""Smallest variance, of numbers between -1 and 1, that is not taken for rounding."""

Estimator = Literal["theil_sen", "finite_difference"]


class Kappa(TypedDict):
    """Capability gained per unit of resource; None if nothing was spent."""

    finite_difference: float | None
    theil_sen: float | None


class KappaTime(TypedDict):
    """Capability gained per day, by way of what is spent per day."""

    kappa: float | None
    spend_rate_per_day: float | None
    time_slope_per_day: float | None


class LocalQuadratic(TypedDict):
    """First and second derivative at a point; None if the points do not determine them."""

    slope: float | None
    curvature: float | None


def kappa(capability: Numbers, resources: Numbers) -> Kappa:
    """Self-improvement coefficient: slope of capability over resources.

    The headline is the Theil-Sen slope, the median over pairs of checkpoints between which
    something was spent, because one lucky checkpoint hardly moves it. The finite difference takes
    the two ends only.

    Args:
        capability: Capability at each checkpoint, e.g. the index, shape (n,).
        resources: Resources the agent has spent on its own initiative up to each checkpoint, at
            least 0 and never falling, shape (n,).

    Returns:
        Capability per unit of resource; None if nothing was spent between first and last
        checkpoint, or there are fewer than two.

    Raises:
        InputError: If a number is not finite, or resources are negative or fall.
        ShapeError: If the lengths differ.

    References:
        Chojecki (2025), arXiv:2511.13411, section 3.3; Theil (1950), Sen (1968), JASA 63:1379-1389.

    Example:
        >>> found = kappa([0.40, 0.41, 0.425, 0.43, 0.50], [0, 2, 4, 6, 8])
        >>> print(f"{found['finite_difference']:.4f} {found['theil_sen']:.6f}")
        0.0125 0.006875
    """
    c = checks.numbers("capability", capability)
    r = _never_falling("resources", resources)
    checks.same_length(capability=c, resources=r)
    if len(r) < 2 or r[-1] <= r[0]:
        return {"finite_difference": None, "theil_sen": None}
    first, second = np.triu_indices(len(r), k=1)
    spent = r[second] - r[first]
    paid = spent > 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        slopes = (c[second] - c[first])[paid] / spent[paid]
        median = float(np.median(slopes))
        ends = float((c[-1] - c[0]) / (r[-1] - r[0]))
    return {"finite_difference": checks.finite(ends), "theil_sen": checks.finite(median)}


def _never_falling(name: str, values: Numbers) -> NDArray[np.float64]:
    array = checks.numbers(name, values, low=0.0)
    falls = np.flatnonzero(np.diff(array) < 0.0)
    if falls.size:
        at = int(falls[0])
        raise InputError(
            f"{name} falls from {array[at]:g} to {array[at + 1]:g}; it must be a running total, "
            "in order of time"
        )
    return array


def kappa_time(
    capability: Numbers,
    resources: Numbers,
    days: Numbers | float,
    *,
    estimator: Estimator = "theil_sen",
) -> KappaTime:
    """Self-improvement per day: the coefficient times the mean rate of spending.

    Args:
        capability: See `kappa`.
        resources: See `kappa`.
        days: Day of each checkpoint, never falling, shape (n,); or the length of the window.
        estimator: Which slope of `kappa` is the coefficient: its headline, or the finite
            difference, with which the result is the plain gain per day.

    Returns:
        See `KappaTime`. No coefficient, no slope in time; no days, no rate.

    Raises:
        InputError: As `kappa`, or if the days are negative or fall, or `estimator` is unknown.
        ShapeError: If the lengths differ.

    References:
        Chojecki (2025), arXiv:2511.13411, section 3.3.

    Example:
        >>> found = kappa_time([0.40, 0.42, 0.44], [0, 4, 8], days=[0, 1, 2])
        >>> print(f"{found['kappa']:.3f} {found['time_slope_per_day']:.2f}")
        0.005 0.02
    """
    checks.one_of("estimator", estimator, ("theil_sen", "finite_difference"))
    r = checks.numbers("resources", resources)
    slopes = kappa(capability, r)
    if checks.is_single(days):
        elapsed = checks.number("days", days, low=0.0)
    else:
        day = _never_falling("days", days)  # type: ignore[arg-type]
        checks.same_length(resources=r, days=day)
        elapsed = float(day[-1] - day[0]) if len(day) else 0.0
    rate = None
    if elapsed > 0.0 and len(r) > 1:
        rate = checks.finite(float(r[-1] - r[0]) / elapsed)
    slope = slopes[estimator]
    in_time = None if slope is None or rate is None else checks.finite(slope * rate)
    return {"kappa": slope, "spend_rate_per_day": rate, "time_slope_per_day": in_time}


def local_quadratic(
    r: Numbers,
    y: Numbers,
    at: float,
    *,
    bandwidth: float | None = None,
    group: NDArray[np.intp] | None = None,
    counts: NDArray[np.float64] | None = None,
) -> LocalQuadratic:
    """Slope and curvature of a series at a point, from a quadratic fitted by least squares.

    On a link scale give the values of `link_value` as `y`; on the raw scale the capability.

    Args:
        r: Resources, or days, of each point, shape (n,), any order.
        y: Value at each point, shape (n,).
        at: Where to take the derivatives, in the unit of `r`.
        bandwidth: Only points not farther from `at` are used; none for all of them, this project's
            choice.
        group: Which group each point belongs to, such as its day, from 0 on, shape (n,); needed
            with `counts`.
        counts: How often each group is in each sample, shape (samples, groups): fits each sample.

    Returns:
        Slope b1 and curvature 2 b2 of y ~ b0 + b1 x + b2 x^2 with x = r - at; None with fewer than
        five points or fewer than three places. Of samples arrays, shape (samples,), NaN for None.

    Raises:
        InputError: If a number is not finite or the bandwidth not above 0.
        ShapeError: If the lengths differ.

    References:
        Chojecki (2025), arXiv:2511.13411, sections 3.7 to 3.9.

    Example:
        >>> found = local_quadratic([0, 1, 2, 3, 4], [0.50, 0.53, 0.58, 0.65, 0.74], at=2)
        >>> print(f"{found['slope']:.3f} {found['curvature']:.3f}")
        0.060 0.020
    """
    place, value = checks.numbers("r", r), checks.numbers("y", y)
    checks.same_length(r=place, y=value)
    centre = checks.number("at", at)
    if bandwidth is not None:
        near = np.abs(place - centre) <= checks.positive("bandwidth", bandwidth)
        place, value = place[near], value[near]
        group = None if group is None else group[near]
    if group is not None and counts is not None:
        return _of_samples(place, value, centre, group, counts)
    none: LocalQuadratic = {"slope": None, "curvature": None}
    if len(place) < MIN_POINTS:
        return none
    # Fitted around the middle of the points and in units of their spread: far from `at`, or with
    # resources in the millions, the three columns would otherwise be all but parallel.
    middle = float(place.mean())
    spread = float(np.abs(place - middle).max())
    if spread == 0.0 or not math.isfinite(spread):
        return none
    x = (place - middle) / spread
    columns = np.stack([np.ones_like(x), x, x * x], axis=1)
    (_, b1, b2), _, rank, _ = np.linalg.lstsq(columns, value, rcond=None)
    if rank < columns.shape[1]:
        return none
    slope = (float(b1) + 2.0 * float(b2) * ((centre - middle) / spread)) / spread
    curvature = 2.0 * float(b2) / spread / spread
    return {"slope": checks.finite(slope), "curvature": checks.finite(curvature)}


def _of_samples(
    place: NDArray[np.float64],
    value: NDArray[np.float64],
    at: float,
    group: NDArray[np.intp],
    counts: NDArray[np.float64],
) -> LocalQuadratic:
    """The fit of each sample, from sums over its groups: a fit of its own for each takes too long.

    The normal equations are solved with polynomials orthogonal on the sample: of 1, u = x - mean
    and v = u^2 - mean(u^2) - u mean(u^3) / mean(u^2) each coefficient is a quotient of two sums.
    """
    middle, scale = (place.min() + place.max()) / 2.0, np.ptp(place) / 2.0
    if len(place) < 3 or scale <= 0.0 or not math.isfinite(scale):
        nothing = cast("float", np.full(len(counts), np.nan))
        return {"slope": nothing, "curvature": nothing}
    x, y, centre = (place - middle) / scale, value - value.mean(), (at - middle) / scale
    own = slice(int(group.min()), int(group.max()) + 1)
    columns = [*(x**power for power in range(5)), *(y * x**power for power in range(3))]
    sums = np.stack([np.bincount(group - own.start, weights=one) for one in columns], axis=1)
    n, *totals = (counts[:, own] @ sums).T
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        m, s2, s3, s4, y, xy, xxy = (one / n for one in totals)
        u2 = s2 - m * m
        u3 = s3 - 3.0 * m * s2 + 2.0 * m**3
        u4 = s4 - 4.0 * m * s3 + 6.0 * m * m * s2 - 3.0 * m**4
        skew = u3 / u2
        v2 = u4 - u2 * u2 - skew * u3
        uy = xy - m * y
        b2 = (xxy - 2.0 * m * xy + m * m * y - u2 * y - skew * uy) / v2
        slope = uy / u2 - b2 * skew + 2.0 * b2 * (centre - m)
    sound = (n >= MIN_POINTS) & (u2 > _SINGULAR) & (v2 > _SINGULAR)
    return {
        "slope": cast("float", np.where(sound, slope / scale, np.nan)),
        "curvature": cast("float", np.where(sound, 2.0 * b2 / scale / scale, np.nan)),
    }


def meta_elasticity(resources: float, link_slope: Real, link_curvature: Real) -> float | None:
    """By how many per cent the slope grows when one per cent more is spent.

    Args:
        resources: Resources spent so far, at least 0.
        link_slope: Slope on the link scale, per unit of resource; or draws of it.
        link_curvature: Curvature on the link scale, per unit of resource squared; or draws of it.

    Returns:
        resources * curvature / slope; None if the slope is not above 0, of draws NaN.

    Raises:
        InputError: If a number is not finite or resources are negative.

    References:
        Chojecki (2025), arXiv:2511.13411, sections 3.7 to 3.10.

    Example:
        >>> print(f"{meta_elasticity(10.0, link_slope=0.05, link_curvature=0.002):.1f}")
        0.4
    """
    spent = checks.number("resources", resources, low=0.0)
    slope = checks.real("link_slope", link_slope)
    curvature = checks.real("link_curvature", link_curvature)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found = np.divide(spent * curvature, slope)
    return checks.finite(np.where(np.greater(slope, 0.0), found, np.nan)[()])
