"""How far a policy has come in each task family, how fast it goes, and whether it speeds up."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from robo_eval import formulas
from robo_eval.core.errors import InputError
from robo_eval.core.estimate import Estimate
from robo_eval.core.units import DAY_NS
from robo_eval.formulas import checks
from robo_eval.formulas.improvement import MIN_POINTS
from robo_eval.gates.axes.draws import estimate_of_draws
from robo_eval.gates.axes.improvement import (
    BLOCKS,
    block_counts,
    kappa_estimate,
    patched_by_family,
)

if TYPE_CHECKING:
    from robo_eval.gates.axes.settings import ProgressSettings
    from robo_eval.log.evidence import Checkpoint

_LEAST_DAYS: Final = 3
"""Days an interval needs. This project's choice."""
_MOST_PLACES: Final = 1000
"""Checkpoints at which a local curvature is taken; of more, so many spread evenly over them."""
_ROUNDING: Final = 1e-9
"""A bend that changes the link by less over the whole window is a straight line."""
_FIT: Final = "local_quadratic"
_LAST: Final = "last_checkpoint"
_NO_RISE: Final = "the slope is not above 0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Escape:
    """What it takes at most to reach a capability, if the slope stays above its lower end.

    Attributes:
        target: Capability to reach.
        slope: Lower end of the slope on the link scale, per unit of resource; None if unknown.
        spend_rate: Least resources per day between two days with checkpoints; None if unknown.
        resources: At most so many resources more; None where nothing bounds them.
        days: At most so many days more; None where nothing bounds them.
        to_all: At most so many resources more until the capability is 1, if it goes on to grow by
            eta (1 - c)^p, with p of the settings and eta from the lower end of the slope; None
            where nothing bounds them.
    """

    target: float
    slope: float | None
    spend_rate: float | None
    resources: float | None
    days: float | None
    to_all: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Progress of one task family. It changes no level.

    Attributes:
        family: Task family.
        link: Scale of slopes and curvatures.
        checkpoints: Checkpoints all of this is computed from.
        days: Days on which there are any.
        left_out: Checkpoints from before people last changed something: what they brought, the
            policy did not.
        capability: At the last checkpoint.
        resources: Spent until the last checkpoint.
        kappa: Theil-Sen slope of capability over resources.
        spend_rate: Resources spent per day, from the first checkpoint to the last.
        kappa_time: Capability gained per day: kappa times the spend rate.
        slope: Of the link over resources, at the last checkpoint.
        curvature: Of the link over resources, at the last checkpoint.
        mean_curvature: Mean over the checkpoints of the curvature at each.
        accelerates: Whether the lower end of the mean curvature is above 0; None without one.
        holds: Whether the lower end of the curvature is at least minus the tolerance; None without
            one.
        elasticity: Per cent by which the slope grows when one per cent more is spent.
        steps: Steps on the link scale from the first checkpoint to the last.
        score: Position and velocity as one number.
        escape: What it takes at most to reach the target.
    """

    family: str
    link: str
    checkpoints: int
    days: int
    left_out: int
    capability: Estimate
    resources: float
    kappa: Estimate
    spend_rate: Estimate
    kappa_time: Estimate
    slope: Estimate
    curvature: Estimate
    mean_curvature: Estimate
    accelerates: bool | None
    holds: bool | None
    elasticity: Estimate
    steps: float
    score: Estimate
    escape: Escape


@dataclass(frozen=True, slots=True, kw_only=True)
class DayIndex:
    """A day on which every family has a checkpoint.

    Attributes:
        day: Number of the calendar day, from 1970 on.
        capability: Mean over families, each by its last checkpoint of the day.
        families: How many.
        drifts: Types of drift that set in since the day before that counts, in order of name.
        human_patches: Changes that people made since then.
    """

    day: int
    capability: float
    families: int
    drifts: tuple[str, ...]
    human_patches: int


class _Series(NamedTuple):
    """Checkpoints of one family in order of time, shape (n,) each.

    Attributes:
        c: Capability.
        r: Resources.
        y: Capability on the link scale.
        t: Days since the first checkpoint.
        day: Calendar day of each, as its place among the days that have any.
        dates: Those days, shape (days,).
    """

    c: NDArray[np.float64]
    r: NDArray[np.float64]
    y: NDArray[np.float64]
    t: NDArray[np.float64]
    day: NDArray[np.intp]
    dates: NDArray[np.int64]


class _Slopes(NamedTuple):
    """What the checkpoints themselves say, in the first place, and each resample, in the others.

    NaN where they do not determine it; shape (1 + resamples,) each.
    """

    slope: NDArray[np.float64]
    curvature: NDArray[np.float64]
    mean_curvature: NDArray[np.float64]


def progress_by_family(
    points: Iterable[Checkpoint],
    settings: ProgressSettings,
    *,
    target: float | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> dict[str, Progress]:
    """Progress of each task family of one policy; see `progress_of`.

    A person who changes the policy changes it for all its families, whichever line says so.

    Returns:
        By family, in order of name.
    """
    return {
        family: progress_of(found, settings, target=target, level=level, seed=seed)
        for family, found in patched_by_family(points).items()
    }


def progress_of(
    points: Iterable[Checkpoint],
    settings: ProgressSettings,
    *,
    target: float | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Progress:
    """How far a policy has come in one task family, and how fast.

    Slope and curvature are those of a quadratic fitted to the link of the capability over
    resources.

    Args:
        points: Checkpoints of one family of one policy, at least one.
        settings: Link, length of a step, tolerance, bandwidth, number of resamples.
        target: Capability that `escape` is about; none for the next step.
        level: Coverage of the intervals: moving-block bootstrap over days, in blocks of
            ceil(n^(1/3)) of the n days with checkpoints, with all checkpoints of a drawn day.
            Each is widened to hold the value itself. Fewer than 5 checkpoints have no slope,
            fewer than 3 days no interval.
        seed: Seed of the draws.

    Raises:
        InputError: If there is no checkpoint, families are mixed, or resources fall.

    References:
        Chojecki (2025), arXiv:2511.13411, sections 3.3, 3.7 to 3.13. Kuensch (1989), Annals of
        Statistics 17:1217-1241. That intervals hold the value is this project's choice.
    """
    checks.confidence("level", level)
    ordered = sorted(points, key=lambda point: point.time_ns)
    families = sorted({point.family for point in ordered})
    if len(families) != 1:
        given = ", ".join(families) or "no checkpoint"
        raise InputError(f"progress is that of one family, given {given}")
    first = max((i for i, point in enumerate(ordered) if point.human_patches), default=0)
    series = _series(ordered[first:], settings)
    slopes = _slopes(series, settings, seed)
    kappa = kappa_estimate(series.c, series.r, level=level, resamples=settings.resamples, seed=seed)
    rate = _spend_rate(series)
    found = _Estimates(series, slopes, settings, level)
    now, link = float(series.c[-1]), settings.link
    slope = found.of(slopes.slope, f"{link}/resource")
    curvature = found.of(slopes.curvature, f"{link}/resource^2")
    mean_curvature = found.of(slopes.mean_curvature, f"{link}/resource^2")
    aim = formulas.link_step(now, settings.delta, link) if target is None else target
    return Progress(
        family=families[0],
        link=link,
        checkpoints=len(series.c),
        days=len(series.dates),
        left_out=first,
        capability=Estimate(
            value=now, n=1, method=_LAST, unit="ratio", reason="checkpoints state no uncertainty"
        ),
        resources=float(series.r[-1]),
        kappa=kappa,
        spend_rate=rate,
        kappa_time=_per_day(kappa, rate),
        slope=slope,
        curvature=curvature,
        mean_curvature=mean_curvature,
        accelerates=_is_above(mean_curvature, _ROUNDING / _span(series.r) / _span(series.r)),
        holds=_is_above(curvature, -settings.tolerance - 1e-12),
        elasticity=found.elasticity(),
        steps=formulas.link_steps_between(float(series.c[0]), now, settings.delta, link),
        score=found.score(),
        escape=_escape(series, slope, aim, settings),
    )


def _series(ordered: Sequence[Checkpoint], settings: ProgressSettings) -> _Series:
    c = np.array([point.capability for point in ordered], dtype=np.float64)
    r = np.array([point.resources for point in ordered], dtype=np.float64)
    if (np.diff(r) < 0.0).any():
        at = int(np.flatnonzero(np.diff(r) < 0.0)[0])
        raise InputError(
            f"checkpoints: line {ordered[at + 1].line}, column 'resources': {r[at + 1]:g} is less"
            f" than the {r[at]:g} of line {ordered[at].line}; it is a running total"
        )
    y = np.asarray(formulas.link_value(c, settings.link))
    t = np.array([point.time_ns - ordered[0].time_ns for point in ordered]) / DAY_NS
    dates, day = np.unique([point.day for point in ordered], return_inverse=True)
    return _Series(c=c, r=r, y=y, t=t, day=day, dates=dates)


def _span(x: NDArray[np.float64]) -> float:
    return float(x[-1] - x[0]) or 1.0


def _is_above(found: Estimate, least: float) -> bool | None:
    return None if found.low is None else found.low >= least


# Slopes and curvatures ---------------------------------------------------------------------------


def _slopes(series: _Series, settings: ProgressSettings, seed: int) -> _Slopes:
    days = len(series.dates)
    whole = np.ones((1, days))
    if days < _LEAST_DAYS or len(series.c) < MIN_POINTS:
        counts = whole
    else:
        counts = np.concatenate([whole, block_counts(days, settings.resamples, seed)])
    x, day = series.r, series.day
    near = _window(x, len(x) - 1, settings.bandwidth)
    slope, curvature = _fits(x[near], series.y[near], day[near], counts, float(x[-1]))
    mean = _mean_curvature(series, counts, settings.bandwidth)
    if settings.bandwidth is None:  # one fit for all places
        mean[0] = curvature[0]
    return _Slopes(slope, curvature, mean)


def _fits(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    day: NDArray[np.intp],
    counts: NDArray[np.float64],
    at: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Slope and curvature at a place of the points themselves and of each sample of days."""
    drawn = formulas.local_quadratic(x, y, at, group=day, counts=counts[1:])
    # The points themselves one by one: that solution is the more exact one.
    exact = formulas.local_quadratic(x, y, at)
    slope, curvature = (
        np.concatenate([np.array([own], dtype=np.float64), np.asarray(others)])
        for own, others in (
            (exact["slope"], drawn["slope"]),
            (exact["curvature"], drawn["curvature"]),
        )
    )
    return slope, curvature


def _window(x: NDArray[np.float64], i: int, bandwidth: float | None) -> slice:
    """The points not farther from the i-th than the bandwidth, of ascending places."""
    if bandwidth is None:
        return slice(0, len(x))
    # By distance, as the formula does it: x - bandwidth would round otherwise.
    distance = np.abs(x - x[i])
    near = np.flatnonzero(distance <= bandwidth)
    return slice(int(near[0]), int(near[-1]) + 1)


def _mean_curvature(
    series: _Series, counts: NDArray[np.float64], bandwidth: float | None
) -> NDArray[np.float64]:
    """Mean over the checkpoints of each sample of the curvature at each, shape (samples,).

    Checkpoints with too few others near them have no curvature, and do not count.
    """
    x, n = series.r, len(series.r)
    places = np.linspace(0, n - 1, min(n, _MOST_PLACES)).round().astype(np.intp)
    total, weight = np.zeros(len(counts)), np.zeros(len(counts))
    for near, group in _grouped(places, x, bandwidth):
        # The curvature of a quadratic is the same wherever it is asked for.
        fits = formulas.local_quadratic(
            x[near], series.y[near], 0.0, group=series.day[near], counts=counts
        )
        found = np.asarray(fits["curvature"])
        often = counts[:, series.day[group]].sum(axis=1)
        has = np.isfinite(found)
        total += np.where(has, found * often, 0.0)
        weight += np.where(has, often, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(weight > 0.0, total / weight, np.nan)


def _grouped(
    places: NDArray[np.intp], x: NDArray[np.float64], bandwidth: float | None
) -> Iterator[tuple[slice, list[int]]]:
    """Windows, each with the places whose window it is."""

    def window(i: int) -> tuple[int, int]:
        near = _window(x, i, bandwidth)
        return near.start, near.stop

    for (start, stop), group in itertools.groupby(places.tolist(), key=window):
        yield slice(start, stop), list(group)


# Estimates ---------------------------------------------------------------------------------------


class _Estimates:
    """Estimates from what the checkpoints and their resamples say."""

    def __init__(
        self, series: _Series, slopes: _Slopes, settings: ProgressSettings, level: float
    ) -> None:
        self._series, self._slopes, self._settings = series, slopes, settings
        self._level = level
        self._n = len(series.c)

    def elasticity(self) -> Estimate:
        """No interval if too many resamples have no rising slope: then nothing bounds it."""
        spent = float(self._series.r[-1])
        draws = self._drawn(lambda slope, k: formulas.meta_elasticity(spent, slope, k))
        flat = self._slopes.slope[1:] <= 0.0
        if self._slopes.slope[0] <= 0.0:
            return self._missing(_NO_RISE, "ratio")
        if flat.size and flat.mean() > (1.0 - self._level) / 2.0:
            draws[1:] = math.nan
            return self.of(draws, "ratio", f"in {flat.mean():.0%} of the resamples {_NO_RISE}")
        return self.of(draws, "ratio")

    def score(self) -> Estimate:
        """The capability is taken as known, the slope as drawn."""
        now, link = float(self._series.c[-1]), self._settings.link
        draws = self._drawn(lambda slope, _: formulas.continuous_score(now, slope, link)["score"])
        return self.of(draws, "score")

    def _drawn(
        self, formula: Callable[[NDArray[np.float64], NDArray[np.float64]], float | None]
    ) -> NDArray[np.float64]:
        """A formula of the slopes and curvatures that are known; NaN where they are not."""
        slope, curvature = self._slopes.slope, self._slopes.curvature
        known = np.isfinite(slope) & np.isfinite(curvature)
        draws = np.full(len(slope), np.nan)
        draws[known] = formula(slope[known], curvature[known])
        return draws

    def of(self, draws: NDArray[np.float64], unit: str, why: str | None = None) -> Estimate:
        """The first of the draws with the interval of the others."""
        value = float(draws[0])
        if not math.isfinite(value):
            return self._missing(self._undetermined(), unit)
        found = draws[1:][np.isfinite(draws[1:])]
        days = len(self._series.dates)
        if days < _LEAST_DAYS:
            why = f"{days} days; an interval needs {_LEAST_DAYS}"
        elif len(found) < len(draws[1:]) / 2:
            why = why or "too few resamples determine it"
        else:
            return estimate_of_draws(
                value, found, n=self._n, level=self._level, method=BLOCKS, unit=unit
            )
        return Estimate(value=value, n=self._n, method=_FIT, unit=unit, reason=why)

    def _missing(self, reason: str, unit: str) -> Estimate:
        return Estimate.missing(reason=reason, unit=unit, n=self._n, method=_FIT)

    def _undetermined(self) -> str:
        if self._n < MIN_POINTS:
            return f"{self._n} checkpoints; a fit needs {MIN_POINTS}"
        if len(np.unique(self._series.r)) < 3:
            return "fewer than three different amounts of resources"
        if self._settings.bandwidth is not None:
            return "too few checkpoints within the bandwidth"
        return "the checkpoints do not determine it"


def _spend_rate(series: _Series) -> Estimate:
    """From the two ends, which is all the mean rate depends on."""
    unit = "resource/day"
    if len(series.t) < 2 or series.t[-1] <= 0.0:
        reason = "fewer than two checkpoints"
        return Estimate.missing(reason=reason, unit=unit, n=len(series.t), method="ends")
    ends = [0, -1]
    found = formulas.kappa_time(series.c[ends], series.r[ends], series.t[ends])
    return Estimate(
        value=found["spend_rate_per_day"], n=len(series.t), method="ends", unit=unit,
        reason="counted, not estimated",
    )  # fmt: skip


def _per_day(kappa: Estimate, rate: Estimate) -> Estimate:
    """The coefficient and its interval, times the mean spend rate."""
    unit = "capability/day"
    if kappa.value is None or rate.value is None:
        reason = kappa.reason if kappa.value is None else rate.reason
        return Estimate.missing(reason=str(reason), unit=unit, n=kappa.n, method=kappa.method)
    low, high = (None if end is None else end * rate.value for end in (kappa.low, kappa.high))
    return Estimate(
        value=kappa.value * rate.value, low=low, high=high, level=kappa.level, n=kappa.n,
        method=kappa.method, unit=unit, reason=kappa.reason,
    )  # fmt: skip


def _escape(series: _Series, slope: Estimate, target: float, settings: ProgressSettings) -> Escape:
    last = np.append(np.flatnonzero(np.diff(series.day)), len(series.day) - 1)
    spent = np.diff(series.r[last]) / np.diff(series.dates)
    least = float(spent.min()) if spent.size else None
    now, low = float(series.c[-1]), slope.low or 0.0
    bounds = formulas.escape_velocity(now, target, low, least, settings.link)
    # Capability per resource is the slope over the derivative of the link.
    growth = low * (1.0 - now) * (now if settings.link == "logit" else 1.0)
    p = settings.rate_exponent
    eta = growth / (1.0 - now) ** p if now < 1.0 else 0.0
    return Escape(
        target=target,
        slope=slope.low,
        spend_rate=least,
        resources=bounds["resource_bound"],
        days=bounds["time_bound"],
        to_all=formulas.rate_escape(now, eta, p),
    )


# Over time ---------------------------------------------------------------------------------------


def index_over_time(points: Iterable[Checkpoint]) -> tuple[DayIndex, ...]:
    """Mean capability on each day on which every family has a checkpoint.

    Means over different families would not be like with like, so other days do not count; drifts
    and patches of theirs are those of the next day that does.

    Args:
        points: Checkpoints of one policy.
    """
    by_day: dict[int, list[Checkpoint]] = defaultdict(list)
    for point in sorted(points, key=lambda one: one.time_ns):
        by_day[point.day].append(point)
    families = {point.family for found in by_day.values() for point in found}
    index, drifts, patches = [], set[str](), 0
    for day, found in sorted(by_day.items()):
        drifts |= {point.drift for point in found if point.drift}
        patches += sum(point.human_patches for point in found)
        last = {point.family: point.capability for point in found}
        if set(last) != families:
            continue
        index.append(
            DayIndex(
                day=day,
                capability=math.fsum(last.values()) / len(last),
                families=len(last),
                drifts=tuple(sorted(drifts)),
                human_patches=patches,
            )
        )
        drifts, patches = set(), 0
    return tuple(index)
