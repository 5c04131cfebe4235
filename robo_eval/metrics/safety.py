"""How safe a robot ran: incident rates and the safety score, with exact bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from robo_eval import formulas
from robo_eval.core.defaults import MIN_RATE_HOURS, SAFETY_FORM, SafetyForm
from robo_eval.core.estimate import Estimate
from robo_eval.core.wording import counted
from robo_eval.formulas import SEVERITIES, SEVERITY_WEIGHTS
from robo_eval.metrics.attribution import Exposure
from robo_eval.metrics.config import MetricConfig
from robo_eval.stats.rates import burst_interval

Bursts = Mapping[str, Sequence[int]]
"""How many incidents came together each time, by severity."""
PER_100_H: Final = 100.0
RATE_UNIT: Final = "incidents/100 h"
NOUNS: Final = {
    "near_miss": ("near miss", "near misses"),
    "minor": ("minor incident", "minor incidents"),
    "major": ("major incident", "major incidents"),
    "critical": ("critical incident", "critical incidents"),
}
"""What one incident of a severity is called, and several."""
NO_RECORD: Final = "no record of incidents: a trial without one is not a trial without incidents"
_GARWOOD: Final = "garwood"
_BURSTS: Final = "fay_feuer"
_BY_SEVERITY: Final = "garwood_by_severity"
NO_EXPOSURE: Final = "no exposure was logged"
_CRITICAL: Final = "critical"


def incident_rates(
    counts: Mapping[str, int],
    exposure_hours: float,
    *,
    level: float = 0.95,
    bursts: Bursts | None = None,
) -> dict[str, Estimate]:
    """Incidents per 100 h of exposure by severity, each with Garwood's exact interval.

    Where incidents came in bursts the interval is that of `burst_interval`, which is wider. No
    incidents never mean no risk: the upper end after none is above 0.

    Args:
        counts: Incidents by severity: `near_miss`, `minor`, `major`, `critical`; absent is 0. One
            physical event counts once, at its highest severity.
        exposure_hours: Hours a physical robot was exposed. Hours of a twin are none.
        level: Coverage of the intervals.
        bursts: How many incidents came together, by severity; each alone if not given.

    Returns:
        An estimate for each severity; without exposure none has a value. In less than
        `MIN_RATE_HOURS` there is none either: the reason has the count, and `high` how often
        such incidents may happen for all that is known, which gates read.

    Raises:
        InputError: If a count or the exposure is negative or not a number, or a severity unknown.

    References:
        Garwood (1936), Biometrika 28:437-442.
    """
    rates = formulas.incident_rates(counts, exposure_hours)
    values = {
        "near_miss": rates["near_miss_per_100_h"],
        "minor": rates["minor_per_100_h"],
        "major": rates["major_per_100_h"],
        "critical": rates["critical_per_100_h"],
    }
    return {
        name: _rate(name, value, _sizes(name, counts, bursts), exposure_hours, level)
        for name, value in values.items()
    }


def _sizes(name: str, counts: Mapping[str, int], bursts: Bursts | None) -> Sequence[int]:
    """The bursts of a severity."""
    return (bursts or {}).get(name, [1] * int(counts.get(name, 0)))


def _rate(
    name: str, value: float | None, sizes: Sequence[int], hours: float, level: float
) -> Estimate:
    low, high = _bounds(sizes, hours, level)
    count, reason = sum(sizes), None
    if low is None or high is None:
        return Estimate.missing(reason=NO_EXPOSURE, unit=RATE_UNIT, n=count, method=_GARWOOD)
    if hours < MIN_RATE_HOURS - 1e-9:
        reason = f"{counted(count, *NOUNS[name])} {too_short(hours)}"
        value = low = None
    elif len(sizes) < count:
        places = counted(len(sizes), "episode or day", "episodes or days")
        reason = f"{counted(count, *NOUNS[name])} in {places}"
    return Estimate(
        value=value,
        low=None if low is None else PER_100_H * low,
        high=PER_100_H * high,
        level=level,
        n=count,
        method=_GARWOOD if len(sizes) == count else _BURSTS,
        unit=RATE_UNIT,
        reason=reason,
    )


def _bounds(sizes: Sequence[int], hours: float, level: float) -> tuple[float | None, float | None]:
    """Ends of the rate per hour, exact where each incident stands alone; none without exposure."""
    if hours and len(sizes) < sum(sizes):
        return burst_interval(sizes, hours, level=level)
    found = formulas.poisson_rate_ci(len(sizes), hours, conf=level)
    return found["lower_per_h"], found["upper_per_h"]


def too_short(hours: float) -> str:
    """Why incidents in less exposure than `MIN_RATE_HOURS` are no rate.

    Example:
        >>> too_short(77 / 3600)
        'in 77 s; too short for a rate'
    """
    seconds = 3600.0 * hours
    length = f"{seconds:.3g} s" if seconds < 600.0 else f"{seconds / 60.0:.3g} min"
    return f"in {length}; too short for a rate"


def hours_text(hours: float) -> str:
    """Hours with two decimals, or with three digits where these would be none.

    Example:
        >>> hours_text(8.0), hours_text(77 / 3600)
        ('8.00 h', '0.0214 h')
    """
    return f"{hours:.2f} h" if hours >= 1.0 or not hours else f"{hours:.3g} h"


def safety_score(
    counts: Mapping[str, int],
    exposure_hours: float,
    weights: Mapping[str, float] | None = None,
    *,
    form: SafetyForm = SAFETY_FORM,
    level: float = 0.95,
    bursts: Bursts | None = None,
) -> Estimate:
    """Safety score SS: 1 less the weighted incident rates, 0 after a critical incident.

    The interval takes the rates of near misses, minor and major incidents at the ends of their
    exact intervals, all at once, so it covers at least as often as it says. Its lower end is the
    pessimistic score: how bad the robot may be for all that the hours show.

    Args:
        counts: Incidents by severity, as in `incident_rates`.
        exposure_hours: Hours a physical robot was exposed.
        weights: What one incident per 100 h costs, by severity; the defaults (0.01, 0.1, 1, 10)
            are this project's choice.
        form: How the weighted sum x of the rates becomes a score: `linear` max(0, 1 - x), this
            project's choice, `exponential` exp(-x), or `reciprocal` 1 / (1 + x).
        level: Coverage of the intervals of the rates.
        bursts: As in `incident_rates`.

    Returns:
        The score in [0, 1]; no value without exposure, or with less than `MIN_RATE_HOURS` of it,
        unless there was a critical incident. `n` is the number of incidents. After a critical
        incident `reason` says that the window is invalid.

    Raises:
        InputError: If a count, weight or the exposure is negative or not a number, all weights are
            0, or a severity is unknown.

    References:
        Chojecki (2025), arXiv:2511.13411, sections 3.1 and 7.
    """
    used = {**SEVERITY_WEIGHTS, **(weights or {})}
    value = formulas.ss(counts, exposure_hours, weights=used, form=form)
    n = sum(int(counts.get(name, 0)) for name in SEVERITIES)
    if value is None:
        return Estimate.missing(reason=NO_EXPOSURE, unit="ratio", n=n, method=_BY_SEVERITY)
    if counts.get(_CRITICAL, 0):
        return Estimate(
            value=0.0,
            low=0.0,
            high=0.0,
            level=level,
            n=n,
            method=_BY_SEVERITY,
            unit="ratio",
            reason="a critical incident: the score is 0 and the window is invalid",
        )
    ends = {
        name: _bounds(_sizes(name, counts, bursts), exposure_hours, level)
        for name in SEVERITIES[:-1]
    }
    least, most = (
        {name: PER_100_H * (own[end] or 0.0) for name, own in ends.items()} for end in (0, 1)
    )
    is_short = exposure_hours < MIN_RATE_HOURS - 1e-9
    return Estimate(
        value=None if is_short else value,
        low=formulas.ss_of_rates(most, weights=used, form=form),
        high=formulas.ss_of_rates(least, weights=used, form=form),
        level=level,
        n=n,
        method=_BY_SEVERITY,
        unit="ratio",
        reason=f"{counted(n, 'incident')} {too_short(exposure_hours)}" if is_short else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Safety:
    """How safe one policy ran on one physical side, or several robots in a period.

    Attributes:
        score: The safety score; its lower end is the pessimistic score.
        rates: Incidents per 100 h by severity.
        is_valid: Whether the window counts: a critical incident ends it.
    """

    score: Estimate
    rates: dict[str, Estimate]
    is_valid: bool


def safety_of(
    counts: dict[str, int] | None,
    exposure: Exposure,
    config: MetricConfig,
    bursts: Bursts | None = None,
) -> Safety:
    """Score and rates; without a record of incidents nothing is known of either.

    Args:
        counts: Incidents by severity; None if no record was kept.
        exposure: The hours.
        config: Settings.
        bursts: How many of them came together.
    """
    if counts is None:
        reason = NO_RECORD
        return Safety(
            score=Estimate.missing(reason=reason, unit="ratio", method=_BY_SEVERITY),
            rates={
                name: Estimate.missing(reason=reason, unit=RATE_UNIT, method=_GARWOOD)
                for name in SEVERITIES
            },
            is_valid=True,
        )
    return Safety(
        score=safety_score(
            counts,
            exposure.hours,
            config.severity_weights,
            form=config.safety_form,
            level=config.level,
            bursts=bursts,
        ),
        rates=incident_rates(counts, exposure.hours, level=config.level, bursts=bursts),
        is_valid=not counts.get(_CRITICAL, 0),
    )
