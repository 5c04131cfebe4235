"""Whether a policy improves itself, and whether it keeps what it can do: from its checkpoints."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval import formulas
from robo_eval.core.estimate import Estimate

if TYPE_CHECKING:
    from robo_eval.log.evidence import Checkpoint

_DAY_NS: Final = 86_400 * 10**9
_LEAST: Final = 5
"""Checkpoints an interval needs."""
_UNIT: Final = "capability/resource"


@dataclass(frozen=True, slots=True, kw_only=True)
class Streak:
    """Self-improvement of one task family.

    Attributes:
        kappa: Theil-Sen slope of capability over resources of the whole window.
        days: Most days in a row on which the slope of the days before was high enough.
        of_days: Days from the first checkpoint to the last.
    """

    kappa: Estimate
    days: int
    of_days: int

    def as_dict(self) -> dict[str, Any]:
        """The result as JSON would have it."""
        return {"kappa": self.kappa.as_dict(), "days": self.days, "of_days": self.of_days}


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """How long a capability was kept under drift.

    Attributes:
        days: Most days in a row; 0 unless each drift happened within them.
        kept: The same whatever drift happened.
        missing_drifts: Drifts that did not happen in the longest stretch.
        patched: Days on which people changed something, which starts the count anew.
        reason: What ended or spoilt it.
    """

    days: int
    kept: int
    missing_drifts: tuple[str, ...]
    patched: int
    reason: str

    def as_dict(self) -> dict[str, Any]:
        """The result as JSON would have it."""
        return asdict(self)


def kappa_estimate(
    capability: Sequence[float],
    resources: Sequence[float],
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Estimate:
    """Self-improvement coefficient with the interval of a moving-block bootstrap.

    Blocks of ceil(n^(1/3)) checkpoints in a row are drawn, because neighbours depend on each other.

    Args:
        capability: At each checkpoint, in order of time, shape (n,).
        resources: Spent until then, never falling, shape (n,).
        level: Coverage the interval aims at.
        resamples: How often blocks are drawn.
        seed: Seed of the draws.

    Returns:
        The Theil-Sen slope; no value if nothing was spent, no interval below 5 checkpoints.

    References:
        Chojecki (2025), arXiv:2511.13411, section 3.3. Kuensch (1989), Annals of Statistics
        17:1217-1241.
    """
    n = len(capability)
    value = formulas.kappa(capability, resources)["theil_sen"]
    if value is None:
        reason = "nothing was spent between checkpoints" if n else "no checkpoint"
        return Estimate.missing(reason=reason, unit=_UNIT, n=n, method="theil_sen")
    if n < _LEAST:
        reason = f"{n} checkpoints; an interval needs {_LEAST}"
        return Estimate(value=value, n=n, method="theil_sen", unit=_UNIT, reason=reason)
    slopes = _slopes(np.asarray(capability), np.asarray(resources), resamples, seed)
    found = slopes[np.isfinite(slopes)]
    if len(found) < resamples / 2:
        reason = "too few checkpoints between which something was spent"
        return Estimate(value=value, n=n, method="theil_sen", unit=_UNIT, reason=reason)
    low, high = np.quantile(found, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return Estimate(
        value=value,
        low=float(low),
        high=float(high),
        level=level,
        n=n,
        method="moving_block_bootstrap",
        unit=_UNIT,
    )


def _slopes(
    c: NDArray[np.float64], r: NDArray[np.float64], resamples: int, seed: int
) -> NDArray[np.float64]:
    """Theil-Sen slope of each resample; NaN where nothing is spent in it."""
    n = len(c)
    block = math.ceil(round(n ** (1.0 / 3.0), 9))
    count = math.ceil(n / block)
    starts = np.random.default_rng(seed).integers(0, n - block + 1, size=(resamples, count))
    at = (starts[:, :, None] + np.arange(block)).reshape(resamples, -1)[:, :n]
    first, second = np.triu_indices(n, k=1)
    spent = r[at[:, second]] - r[at[:, first]]
    gained = c[at[:, second]] - c[at[:, first]]
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = np.where(spent != 0.0, gained / spent, np.nan)
    is_empty = np.isnan(slopes).all(axis=1)
    slopes[is_empty] = 0.0
    found = np.nanmedian(slopes, axis=1)
    found[is_empty] = np.nan
    return np.asarray(found, dtype=np.float64)


def streak_of(
    points: Iterable[Checkpoint], *, least: float, window_days: float, resamples: int, seed: int = 0
) -> Streak:
    """For how many days in a row one family improved itself.

    A day passes if the slope over the days before it, itself included, is at least `least` and the
    lower end of its interval above 0. A day without a checkpoint of its own does not pass.

    Args:
        points: Checkpoints of one family.
        least: Slope to reach.
        window_days: How far each day looks back.
        resamples: Of the interval.
        seed: Of the interval.
    """
    ordered = sorted(points, key=lambda point: point.time_ns)
    capability = [point.capability for point in ordered]
    resources = [point.resources for point in ordered]
    whole = kappa_estimate(capability, resources, resamples=resamples, seed=seed)
    days = [point.time_ns // _DAY_NS for point in ordered]
    passed = []
    for day in sorted(set(days)):
        inside = [i for i, own in enumerate(days) if day - window_days < own <= day]
        found = kappa_estimate(
            [capability[i] for i in inside],
            [resources[i] for i in inside],
            resamples=resamples,
            seed=seed,
        )
        if found.value is not None and found.low is not None:
            is_enough = found.value >= least and found.low > 0.0
            passed += [day] if is_enough else []
    return Streak(
        kappa=whole,
        days=len(_longest(passed)),
        of_days=int(days[-1] - days[0] + 1) if days else 0,
    )


def upkeep_of(points: Iterable[Checkpoint], *, share: float, drifts: Sequence[str]) -> Upkeep:
    """For how many days in a row a policy kept what it could do on the first.

    The capability of a day is the mean over the families that have a checkpoint on it, each by its
    last. A day that is missing, or on which people patched something, ends the stretch.

    Args:
        points: Checkpoints of one policy.
        share: Of the capability on the first day, to be kept.
        drifts: Types of drift, each of which has to happen within the stretch.
    """
    by_day: dict[int, list[Checkpoint]] = defaultdict(list)
    for point in sorted(points, key=lambda one: one.time_ns):
        by_day[point.time_ns // _DAY_NS].append(point)
    if not by_day:
        return Upkeep(days=0, kept=0, missing_drifts=tuple(drifts), patched=0, reason="no day")
    capability = {day: _capability(found) for day, found in by_day.items()}
    patched = {day for day, found in by_day.items() if any(p.human_patches for p in found)}
    least = share * capability[min(by_day)]
    kept = [
        day for day in sorted(by_day) if capability[day] >= least - 1e-12 and day not in patched
    ]
    longest, whole = _longest(kept), 0
    seen = {point.drift for day in longest for point in by_day[day]}
    for run in _runs(kept):
        drifted = {point.drift for day in run for point in by_day[day]}
        if set(drifts) <= drifted:
            whole = max(whole, len(run))
    absent = tuple(drift for drift in drifts if drift not in seen)
    reasons = [f"no drift of {', '.join(absent)} in {len(longest)} days"] if absent else []
    if patched:
        reasons.append(f"people changed something on {len(patched)} days")
    fallen = [day for day in by_day if capability[day] < least - 1e-12]
    if fallen:
        reasons.append(f"below {share:g} of the first day on {len(fallen)} days")
    if max(by_day) - min(by_day) + 1 > len(by_day):
        reasons.append(f"{max(by_day) - min(by_day) + 1 - len(by_day)} days without a checkpoint")
    return Upkeep(
        days=whole,
        kept=len(longest),
        missing_drifts=absent,
        patched=len(patched),
        reason="; ".join(reasons),
    )


def _capability(points: Sequence[Checkpoint]) -> float:
    last = {point.family: point.capability for point in points}
    return math.fsum(last.values()) / len(last)


def _runs(days: Sequence[int]) -> list[list[int]]:
    """Days in a row, of ascending days."""
    keyed = itertools.groupby(enumerate(days), key=lambda pair: pair[1] - pair[0])
    return [[day for _, day in run] for _, run in keyed]


def _longest(days: Sequence[int]) -> list[int]:
    return max(_runs(days), key=len, default=[])
