"""How safe a robot ran: incident rates with exact bounds, and the safety score."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, Literal, TypedDict

from robo_eval.core.defaults import SEVERITIES, SEVERITY_WEIGHTS, SafetyForm
from robo_eval.core.errors import InputError
from robo_eval.formulas import checks
from robo_eval.stats.rates import garwood_interval

Sided = Literal[1, 2, "one", "two"]

_FORMS: Final = ("linear", "exponential", "reciprocal")


class IncidentRates(TypedDict):
    """Incidents per 100 h of exposure; None without exposure."""

    near_miss_per_100_h: float | None
    minor_per_100_h: float | None
    major_per_100_h: float | None
    critical_per_100_h: float | None


class RateInterval(TypedDict):
    """Bounds of a rate, events per hour; None without exposure."""

    lower_per_h: float | None
    upper_per_h: float | None


def severity_counts(counts: Mapping[str, float]) -> dict[str, int]:
    """Incidents of every severity; one that is not named has none.

    Raises:
        InputError: If a count is negative or not whole.
        UnknownNameError: If a severity is unknown.
    """
    given = checks.mapping("counts", counts, SEVERITIES)
    return {name: checks.count(f"counts[{name!r}]", given.get(name, 0)) for name in SEVERITIES}


def incident_rates(counts: Mapping[str, float], exposure_hours: float) -> IncidentRates:
    """Incidents per 100 h of exposure, by severity.

    Args:
        counts: Incidents by severity: `near_miss`, `minor`, `major`, `critical`; absent is 0.
        exposure_hours: Hours in which an incident could have happened.

    Raises:
        InputError: If a count or the exposure is negative, not finite, or a severity unknown.

    References:
        Chojecki (2025), arXiv:2511.13411, sections 3.1 and 7.

    Example:
        >>> incident_rates({"near_miss": 6, "minor": 1}, 200.0)["near_miss_per_100_h"]
        3.0
    """
    rates = _rates(severity_counts(counts), exposure_hours)
    if rates is None:
        rates = dict.fromkeys(SEVERITIES)
    return {
        "near_miss_per_100_h": rates["near_miss"],
        "minor_per_100_h": rates["minor"],
        "major_per_100_h": rates["major"],
        "critical_per_100_h": rates["critical"],
    }


def _rates(counts: Mapping[str, int], exposure_hours: float) -> dict[str, float | None] | None:
    hours = checks.number("exposure_hours", exposure_hours, low=0.0)
    if hours == 0.0:
        return None
    return {name: checks.finite(100.0 * n / hours) for name, n in counts.items()}


def poisson_rate_ci(
    count: float, exposure_hours: float, conf: float = 0.95, sided: Sided = 2
) -> RateInterval:
    """Exact bounds of a rate after `count` events.

    With `sided=1` each end is a bound of its own that spends the whole error probability: read the
    upper one or the lower one, not both as an interval. No events never mean no risk: the upper
    bound after none is -ln(1 - conf) / exposure_hours.

    Args:
        count: Events seen.
        exposure_hours: Hours in which one could have happened.
        conf: Coverage guaranteed, e.g. 0.95.
        sided: 1 (or `"one"`) for bounds that are read singly, 2 (or `"two"`) for an interval.

    Returns:
        Bounds in events per hour; None without exposure. The lower one after no events is 0.

    Raises:
        InputError: If the count is negative or not whole, the exposure negative or not finite, or
            `conf` or `sided` out of range.

    References:
        Garwood (1936), Biometrika 28:437-442.

    Example:
        >>> bounds = poisson_rate_ci(0, 100.0, sided=1)
        >>> print(f"{100 * bounds['upper_per_h']:.3f} per 100 h")
        2.996 per 100 h
    """
    n = checks.count("count", count)
    hours = checks.number("exposure_hours", exposure_hours, low=0.0)
    level, sides = checks.confidence("conf", conf), _sides(sided)
    if hours == 0.0:
        return {"lower_per_h": None, "upper_per_h": None}
    # Bounds of the expected count, divided here: a rate may be too large for a float.
    if sides == 2:
        lower, upper = garwood_interval(n, 1.0, level=level)
    else:
        lower = garwood_interval(n, 1.0, level=level, sided="lower")[0]
        upper = garwood_interval(n, 1.0, level=level, sided="upper")[1]
    return {
        "lower_per_h": checks.finite(lower / hours),
        "upper_per_h": checks.finite(upper / hours),
    }


def _sides(sided: Sided) -> int:
    if not isinstance(sided, bool) and checks.is_single(sided):
        for sides, word in ((1, "one"), (2, "two")):
            if sided in (sides, word):
                return sides
    raise InputError(f"sided is {sided!r}; it must be 1 or 2 ('one' or 'two')")


def ss(
    counts: Mapping[str, float],
    exposure_hours: float,
    *,
    weights: Mapping[str, float] | None = None,
    form: SafetyForm = "linear",
) -> float | None:
    """Safety score: what is left of a budget of incidents.

    A critical incident makes it 0, whatever the exposure. Major ones fail a gate but do not by
    themselves make it 0.

    Args:
        counts: Incidents by severity: `near_miss`, `minor`, `major`, `critical`; absent is 0.
        exposure_hours: Hours in which an incident could have happened.
        weights: What one incident per 100 h costs, by severity; one that is not named keeps its
            value of `SEVERITY_WEIGHTS`, which is this project's choice.
        form: How the weighted sum x of the rates becomes a score: `"linear"` max(0, 1 - x), this
            project's choice, `"exponential"` exp(-x), or `"reciprocal"` 1 / (1 + x).

    Returns:
        A number in [0, 1]; None without exposure, unless there was a critical incident.

    Raises:
        InputError: If a count, weight or the exposure is negative or not finite, all weights are 0,
            or a severity or the form is unknown.

    References:
        Chojecki (2025), arXiv:2511.13411, section 7: a weighted sum of severities.

    Example:
        >>> ss({"near_miss": 6, "minor": 1}, 200.0)
        0.92
    """
    n = severity_counts(counts)
    rates = _rates(n, exposure_hours)
    weight, form = _severity_weights(weights), _form(form)
    if n["critical"]:
        return 0.0
    return None if rates is None else _score(rates, weight, form)


def ss_pessimistic(
    counts: Mapping[str, float],
    exposure_hours: float,
    conf: float = 0.95,
    *,
    weights: Mapping[str, float] | None = None,
    form: SafetyForm = "linear",
) -> float | None:
    """Safety score if every rate were as high as the exposure cannot exclude. A diagnostic.

    The rates of near misses, minor and major incidents are replaced by their two-sided exact upper
    bounds. The bound of critical ones stays out: it is printed apart.

    Args:
        counts: See `ss`.
        exposure_hours: See `ss`.
        conf: Confidence of the bounds, e.g. 0.95.
        weights: See `ss`.
        form: See `ss`.

    Returns:
        A number in [0, 1], at most `ss`; None without exposure, unless there was a critical
        incident: then 0.

    Raises:
        InputError: As `ss`, or if `conf` is not between 0 and 1.

    Example:
        >>> ss_pessimistic({"near_miss": 6, "minor": 1}, 200.0)  # a major one is not excluded
        0.0
    """
    n = severity_counts(counts)
    hours = checks.number("exposure_hours", exposure_hours, low=0.0)
    weight, form = _severity_weights(weights), _form(form)
    checks.confidence("conf", conf)
    if n["critical"]:
        return 0.0
    if hours == 0.0:
        return None
    bounds: dict[str, float | None] = {"critical": 0.0}
    for name in SEVERITIES[:-1]:
        upper = poisson_rate_ci(n[name], hours, conf)["upper_per_h"]
        bounds[name] = None if upper is None else 100.0 * upper
    return _score(bounds, weight, form)


def ss_of_rates(
    rates_per_100_h: Mapping[str, float],
    *,
    weights: Mapping[str, float] | None = None,
    form: SafetyForm = "linear",
) -> float:
    """Safety score of rates instead of counts: `ss` without its rule for critical incidents.

    Args:
        rates_per_100_h: Incidents per 100 h by severity; absent is 0.
        weights: See `ss`.
        form: See `ss`.

    Raises:
        InputError: If a rate or weight is negative or not finite, all weights are 0, or a severity
            or the form is unknown.

    Example:
        >>> ss_of_rates({"near_miss": 3.0, "minor": 0.5})
        0.92
    """
    given = checks.mapping("rates_per_100_h", rates_per_100_h, SEVERITIES)
    rates: dict[str, float | None] = {
        name: checks.number(f"rates_per_100_h[{name!r}]", value, low=0.0)
        for name, value in given.items()
    }
    return _score(rates, _severity_weights(weights), _form(form))


def _severity_weights(weights: Mapping[str, float] | None) -> dict[str, float]:
    given = checks.mapping("weights", {} if weights is None else weights, SEVERITIES)
    full = {
        name: checks.number(f"weights[{name!r}]", given.get(name, default), low=0.0)
        for name, default in SEVERITY_WEIGHTS.items()
    }
    checks.total_weight("weights", full.values())
    return full


def _form(form: str) -> SafetyForm:
    checks.one_of("form", form, _FORMS)
    return form  # type: ignore[return-value]


def _score(
    rates: Mapping[str, float | None], weights: Mapping[str, float], form: SafetyForm
) -> float:
    # A rate too large for a float is infinite here; with a weight of 0 it still costs nothing.
    used = math.fsum(
        weights[name] * (math.inf if rate is None else rate)
        for name, rate in rates.items()
        if weights[name] > 0.0
    )
    if form == "linear":
        return max(0.0, 1.0 - used)
    return math.exp(-used) if form == "exponential" else 1.0 / (1.0 + used)
