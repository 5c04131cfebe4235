"""How well a policy retrieves and thinks beside people, by the abilities of the CHC model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval import formulas
from robo_eval.core.estimate import Estimate
from robo_eval.formulas import checks
from robo_eval.gates.axes.draws import EXACT, estimate_of_draws, exact_share

if TYPE_CHECKING:
    from robo_eval.log.evidence import Probe, Retrieval

CORE: Final = ("G", "P", "M", "W")
"""Axes of the core score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieved:
    """What was returned on request, and whether it holds up.

    Attributes:
        k: Items asked for in each query.
        queries: How many queries.
        precision: Share of the room for items that is filled with verified ones (VRP@K).
        hallucination: Share of the returned items that are not verified (HR@K).
    """

    k: int
    queries: int
    precision: Estimate
    hallucination: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """One probe beside the median of people.

    Attributes:
        probe: Its name.
        ability: Broad ability it belongs to; empty if that was not said.
        assisted: Whether tools were allowed.
        ratio: Mean score over the median of people, which is taken as known.
        human_median: Median score of people.
        human_n: How many people.
        reached: Whether the mean is at least the median; None if it was not measured.
        reached_surely: Whether the lower end of the ratio is at least 1; None without one.
    """

    probe: str
    ability: str
    assisted: bool
    ratio: Estimate
    human_median: float
    human_n: int
    reached: bool | None
    reached_surely: bool | None


def retrieved_of(lines: Iterable[Retrieval], *, k: int, level: float = 0.95) -> Retrieved:
    """How much of what was returned holds up, over all families together.

    Args:
        lines: What one policy returned. Lines about another number of items are left out, and the
            reason says so: shares of the first 5 and of the first 10 are not alike.
        k: Items asked for in each query.
        level: Coverage of the intervals, which are exact if items are independent of each other.

    Returns:
        Both shares; without queries no precision, if nothing was returned no hallucination rate.

    Raises:
        InputError: If `k` is not a whole number of at least 1, or counts do not fit together.

    References:
        Chojecki (2025), arXiv:2511.13411, section 4.5; Clopper and Pearson (1934), Biometrika
        26:404-413.
    """
    checks.confidence("level", level)
    every = list(lines)
    own = [line for line in every if line.k == k]
    # All of a line as one query with room for all its items: the counts are known together only.
    room = sum(line.queries for line in own) * k
    returned, verified = sum(line.returned for line in own), sum(line.verified for line in own)
    found = formulas.cognitive(returned, verified, room or k)
    others = sorted({line.k for line in every} - {k})
    note = f"lines with k {', '.join(map(str, others))} are left out" if others else None
    return Retrieved(
        k=k,
        queries=room // k,
        precision=_share(
            found["vrp_at_k"] if room else None, verified, room, level, note, "no query"
        ),
        hallucination=_share(
            found["hr_at_k"], returned - verified, returned, level, note, "nothing was returned"
        ),
    )


def _share(
    value: float | None, hits: int, of: int, level: float, note: str | None, missing: str
) -> Estimate:
    if value is None:
        reason = f"{missing}; {note}" if note else missing
        return Estimate.missing(reason=reason, unit="ratio", method=EXACT)
    return replace(exact_share(hits, of, level), value=value, reason=note)


def probe_results(probes: Iterable[Probe], *, level: float = 0.95) -> tuple[ProbeResult, ...]:
    """Each probe beside the median of people, with and without tools apart.

    Args:
        probes: Probes of one policy.
        level: Coverage of the interval of the mean, by Student's t.

    Returns:
        By ability, then name, without tools first.

    References:
        Chojecki (2025), arXiv:2511.13411, section 4.5.
    """
    checks.confidence("level", level)
    ordered = sorted(probes, key=lambda one: (one.ability, one.probe, one.assisted))
    return tuple(_probe_result(one, level) for one in ordered)


def _probe_result(probe: Probe, level: float) -> ProbeResult:
    ratio = _ratio(probe, level)
    return ProbeResult(
        probe=probe.probe,
        ability=probe.ability,
        assisted=probe.assisted,
        ratio=ratio,
        human_median=probe.human_median,
        human_n=probe.human_n,
        reached=None if ratio.value is None else ratio.value >= 1.0,
        reached_surely=None if ratio.low is None else ratio.low >= 1.0,
    )


def _ratio(probe: Probe, level: float) -> Estimate:
    # scipy costs 0.1 s at start-up, which verbs that compute no interval must not pay.
    from scipy.special import stdtrit

    n, unit, method = probe.n, "ratio", "student_t"
    reason = None
    if not n:
        reason = "the probe was never given"
    elif probe.human_median <= 0.0:
        reason = "the median of people is 0; nothing can be compared with it"
    if reason:
        return Estimate.missing(reason=reason, unit=unit, n=n, method=method)
    value = probe.mean / probe.human_median
    if n < 2 or probe.sd == 0.0:
        reason = "given once; an interval needs 2" if n < 2 else "all scores are alike"
        return Estimate(value=value, n=n, method="none", unit=unit, reason=reason)
    half = float(stdtrit(n - 1, 0.5 + level / 2.0)) * probe.sd / math.sqrt(n) / probe.human_median
    return Estimate(
        value=value, low=value - half, high=value + half, level=level, n=n, method=method, unit=unit
    )


def core_score(
    values: Mapping[str, float | None],
    *,
    draws: Mapping[str, NDArray[np.float64]] | None = None,
    n: int = 0,
    level: float = 0.95,
) -> Estimate:
    """Core score: equal-weight geometric mean of generality, planning, memory and world model.

    Args:
        values: Each of `CORE` divided by what people reach, at least 0; None or absent where it is
            missing. More than 1 counts as 1, so that none makes up for another: this project's
            choice.
        draws: The same of each resample, shape (resamples,) each, the i-th of all made of the same
            resample or all independent; None without an interval.
        n: How many observations all of it rests on.
        level: Coverage of the interval, quantiles of the draws.

    Returns:
        A number in [0, 1]; no value if one of the four is missing, 0 if one is 0.

    Raises:
        InputError: If a value is negative or not finite, or the draws differ in number.

    References:
        Chojecki (2025), arXiv:2511.13411, section 4.5.

    Example:
        >>> print(f"{core_score({'G': 0.9, 'P': 0.4, 'M': 0.9, 'W': 0.4}).value:.2f}")
        0.60
    """
    checks.confidence("level", level)
    missing = [name for name in CORE if values.get(name) is None]
    if missing:
        reason = f"{', '.join(missing)} missing"
        return Estimate.missing(reason=reason, unit="ratio", n=n, method="geometric_mean")
    value = _core({name: values[name] for name in CORE})
    if draws is None or any(not len(draws.get(name, ())) for name in CORE):
        reason = "no draws of every axis"
        return Estimate(value=value, n=n, method="geometric_mean", unit="ratio", reason=reason)
    drawn = {name: np.asarray(draws[name], dtype=np.float64) for name in CORE}
    checks.same_length(**drawn)
    found = np.asarray(_core(drawn))
    return estimate_of_draws(value, found, n=n, level=level, method="percentile")


def _core(values: Mapping[str, float | NDArray[np.float64] | None]) -> float:
    """The score of numbers, or of draws of each."""
    capped: dict[str, Any] = {
        name: np.minimum(checks.real(name, value, low=0.0), 1.0) for name, value in values.items()
    }
    found = formulas.aai_index(capped, dict.fromkeys(CORE, 1.0))
    assert found is not None  # all four are there
    return found
