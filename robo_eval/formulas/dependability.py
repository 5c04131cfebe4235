"""How long a robot runs between failures, what it recovers from, and how well it is controlled."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypedDict

from robo_eval.core.errors import InputError
from robo_eval.formulas import checks
from robo_eval.formulas.checks import Numbers
from robo_eval.formulas.incidents import poisson_rate_ci, severity_counts
from robo_eval.stats.proportions import clopper_pearson_interval


class Reliability(TypedDict):
    """Mean times, hours; None where nothing happened or nothing ran.

    Attributes:
        mtbf_h: Exposure per actuation failure.
        mttr_h: Mean repair.
        mtbsi_h: Exposure per incident of any severity.
        mtbsi_excl_near_miss_h: Exposure per minor, major or critical incident.
        mtbf_lower_h: One-sided exact lower bound of `mtbf_h`, also where nothing failed.
        mtbsi_lower_h: The same for `mtbsi_h`.
        mtbsi_excl_near_miss_lower_h: The same for `mtbsi_excl_near_miss_h`.
    """

    mtbf_h: float | None
    mttr_h: float | None
    mtbsi_h: float | None
    mtbsi_excl_near_miss_h: float | None
    mtbf_lower_h: float | None
    mtbsi_lower_h: float | None
    mtbsi_excl_near_miss_lower_h: float | None


class RecoveryAutonomy(TypedDict):
    """Share of faults recovered from without help, with its exact interval; None without faults."""

    ra: float | None
    lower: float | None
    upper: float | None


def reliability(
    exposure_hours: float,
    actuation_failures: float,
    repair_hours: Numbers | float | None,
    counts: Mapping[str, float],
    *,
    conf: float = 0.95,
) -> Reliability:
    """Mean times between failures (MTBF), to repair (MTTR) and between safety incidents (MTBSI).

    Where nothing happened there is no mean time, and the lower bound says how much the exposure
    shows: T / -ln(1 - conf).

    Args:
        exposure_hours: Hours of exposure, T.
        actuation_failures: Episodes that failed because of actuation, and hardware faults.
        repair_hours: Hours of each repair, shape (n,); or their sum, and then each failure counts
            as one repair. None or empty if nothing was repaired.
        counts: Incidents by severity: `near_miss`, `minor`, `major`, `critical`; absent is 0.
        conf: Confidence of the lower bounds, one-sided.

    Returns:
        See `Reliability`; all None without exposure.

    Raises:
        InputError: If a number is negative or not finite, a count not whole, or a severity unknown.

    References:
        Chojecki (2025), arXiv:2511.13411, section 7.

    Example:
        >>> found = reliability(200.0, 8, [0.75] * 8, {"near_miss": 6, "minor": 1})
        >>> found["mtbf_h"], found["mttr_h"], round(found["mtbsi_h"], 2)
        (25.0, 0.75, 28.57)
    """
    hours = checks.number("exposure_hours", exposure_hours, low=0.0)
    failures = checks.count("actuation_failures", actuation_failures)
    mttr = _mean_repair(repair_hours, failures)
    incidents = severity_counts(counts)
    checks.confidence("conf", conf)
    n_all = sum(incidents.values())
    n_contact = n_all - incidents["near_miss"]
    return {
        "mtbf_h": _mean_time(hours, failures),
        "mttr_h": mttr if hours > 0.0 else None,
        "mtbsi_h": _mean_time(hours, n_all),
        "mtbsi_excl_near_miss_h": _mean_time(hours, n_contact),
        "mtbf_lower_h": _lower_bound(hours, failures, conf),
        "mtbsi_lower_h": _lower_bound(hours, n_all, conf),
        "mtbsi_excl_near_miss_lower_h": _lower_bound(hours, n_contact, conf),
    }


def _mean_repair(repair_hours: Numbers | float | None, failures: int) -> float | None:
    if repair_hours is None:
        return None
    if checks.is_single(repair_hours):
        total = checks.number("repair_hours", repair_hours, low=0.0)
        return total / failures if failures else None
    repairs = checks.numbers("repair_hours", repair_hours, low=0.0)
    return checks.finite(math.fsum(repairs) / len(repairs)) if len(repairs) else None


def _mean_time(hours: float, events: int) -> float | None:
    return hours / events if hours > 0.0 and events else None


def _lower_bound(hours: float, events: int, conf: float) -> float | None:
    if hours == 0.0:
        return None
    upper = poisson_rate_ci(events, hours, conf, sided=1)["upper_per_h"]
    return None if upper is None else checks.finite(1.0 / upper)


def recovery_autonomy(recovered: float, recoverable: float, conf: float = 0.95) -> RecoveryAutonomy:
    """Share of recoverable faults the robot got out of by itself, with a Clopper-Pearson interval.

    Args:
        recovered: Faults recovered from without help.
        recoverable: Faults of the published taxonomy that occurred or were injected.
        conf: Coverage guaranteed, e.g. 0.95.

    Returns:
        See `RecoveryAutonomy`; all None if no fault occurred, which is no evidence of recovery.

    Raises:
        InputError: If a count is negative or not whole, more were recovered than occurred, or
            `conf` is not between 0 and 1.

    References:
        Chojecki (2025), arXiv:2511.13411, section 7; Clopper and Pearson (1934), Biometrika
        26:404-413.

    Example:
        >>> found = recovery_autonomy(18, 20)
        >>> print(f"{found['ra']:.2f} [{found['lower']:.2f}, {found['upper']:.2f}]")
        0.90 [0.68, 0.99]
    """
    k = checks.count("recovered", recovered)
    n = checks.count("recoverable", recoverable)
    level = checks.confidence("conf", conf)
    if k > n:
        raise InputError(f"recovered is {k} of {n} recoverable; it must not be more")
    if n == 0:
        return {"ra": None, "lower": None, "upper": None}
    lower, upper = clopper_pearson_interval(k, n, level=level)
    return {"ra": k / n, "lower": lower, "upper": upper}


def quality_of_control(
    values: Mapping[str, float | None],
    tolerances: Mapping[str, float],
    weights: Mapping[str, float] | None = None,
) -> float | None:
    """Quality of control: full credit inside a tolerance, none at twice the tolerance.

    Args:
        values: What was measured, by metric, e.g. tracking RMSE or peak contact force, at least 0.
        tolerances: Tolerance of each metric, in its unit, above 0.
        weights: Weight of each metric; none for equal ones, this project's choice.

    Returns:
        Weighted mean of clip(2 - value / tolerance), in [0, 1]; None if a metric with a weight was
        not measured or there is no metric.

    Raises:
        InputError: If a number is negative or not finite, a tolerance 0, all weights are 0, or
            `values` or `weights` name a metric without a tolerance.

    References:
        Chojecki (2025), arXiv:2511.13411, section 7, asks for tolerance bands; the shape is this
        project's choice.

    Example:
        >>> quality_of_control({"rmse_m": 0.015, "jerk": 2.0}, {"rmse_m": 0.01, "jerk": 4.0})
        0.75
    """
    limits = {
        name: checks.positive(f"tolerances[{name!r}]", tolerance)
        for name, tolerance in checks.mapping("tolerances", tolerances).items()
    }
    measured = checks.mapping("values", values, limits)
    given = dict.fromkeys(limits, 1.0) if weights is None else weights
    weight = {
        name: checks.number(f"weights[{name!r}]", value, low=0.0)
        for name, value in checks.mapping("weights", given, limits).items()
    }
    if not limits:
        return None
    total = checks.total_weight("weights", weight.values())
    parts = []
    for name, w in weight.items():
        value = measured.get(name)
        if value is None and w > 0.0:
            return None
        if value is not None:
            x = checks.number(f"values[{name!r}]", value, low=0.0)
            parts.append(w * checks.clip(2.0 - x / limits[name]))
    return checks.clip(math.fsum(parts) / total)
