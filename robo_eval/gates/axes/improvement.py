"""Whether a policy improves itself, and whether it keeps what it can do: from its checkpoints."""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval import formulas
from robo_eval.core.estimate import Estimate
from robo_eval.core.units import DAY_NS
from robo_eval.formulas import checks
from robo_eval.gates.axes.draws import percentile_ends
from robo_eval.stats.sign_flip import sign_flip_p

if TYPE_CHECKING:
    from robo_eval.log.evidence import Checkpoint

_LEAST: Final = 5
"""Checkpoints an interval needs."""
_MOST: Final = 2000
"""Checkpoints a slope is computed from; of more, so many spread evenly over them."""
_MOST_PAIRS: Final = 400
"""Pairs each resample is computed from; of more, so many at random, which widens the interval."""
_CHUNK: Final = 2_000_000
"""Slopes held in memory at once."""
_LEAST_GAINS_P: Final = 0.025
"""What one end of a 95 % interval leaves."""
_PARTS: Final = 10_000
"""Parts of all gains together that signs are flipped of, a whole number of them each."""
_UNIT: Final = "capability/resource"
_LEVEL: Final = 0.95
BLOCKS: Final = "moving_block_bootstrap"


@dataclass(frozen=True, slots=True, kw_only=True)
class Streak:
    """Self-improvement of one task family.

    Attributes:
        kappa: Theil-Sen slope of capability over resources of the whole window.
        days: Most days in a row on which capability had grown fast enough; 0 where the
            gains from day to day could as well be a random walk.
        of_days: Days from the first checkpoint to the last.
        p_value: Of these gains, one-sided; None with less than two days.
    """

    kappa: Estimate
    days: int
    of_days: int
    p_value: float | None = None

    @property
    def text(self) -> str:
        """For people: the days, or why there are none."""
        if self.days or self.p_value is None or self.p_value <= _LEAST_GAINS_P:
            return f"{self.days}"
        return f"gains of a random walk, p = {self.p_value:.2f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """How long a capability was kept under drift.

    Attributes:
        days: Most days in a row; 0 unless each drift happened within them.
        kept: The same whatever drift happened.
        missing_drifts: Drifts that did not happen in the longest stretch.
        patched: Days on which people changed something, which starts the count anew.
        reason: What ended or spoilt it.
        first_day: First of the days in a row, a number from 1970 on; None if there are none.
        last_day: The last of them.
    """

    days: int
    kept: int
    missing_drifts: tuple[str, ...]
    patched: int
    reason: str
    first_day: int | None = None
    last_day: int | None = None


def kappa_estimate(
    capability: Sequence[float] | NDArray[np.float64],
    resources: Sequence[float] | NDArray[np.float64],
    *,
    level: float = _LEVEL,
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
        The Theil-Sen slope; no value if nothing was spent, no interval below 5 checkpoints. Of more
        than 2000 checkpoints, 2000 spread evenly are read, and `n` says so.

    Raises:
        InputError: If a number is not finite, resources are negative or fall, `level` is not
            between 0 and 1, or there is no resample.
        ShapeError: If the lengths differ.

    References:
        Chojecki (2025), arXiv:2511.13411, section 3.3. Kuensch (1989), Annals of Statistics
        17:1217-1241.
    """
    checks.confidence("level", level)
    checks.number("resamples", checks.count("resamples", resamples), low=1.0)
    c, r = _spread(checks.numbers("capability", capability), checks.numbers("resources", resources))
    value = formulas.kappa(c, r)["theil_sen"]
    return _estimate(c, r, value, level=level, resamples=resamples, seed=seed)


def _spread(
    c: NDArray[np.float64], r: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """At most `_MOST` checkpoints, from the first to the last."""
    if not len(c) == len(r) > _MOST:
        return c, r
    some = np.linspace(0, len(c) - 1, _MOST).round().astype(np.intp)
    return c[some], r[some]


def _estimate(
    c: NDArray[np.float64],
    r: NDArray[np.float64],
    value: float | None,
    *,
    level: float,
    resamples: int,
    seed: int,
) -> Estimate:
    """A slope that is known, with its interval."""
    n = len(c)
    if value is None:
        reason = "nothing was spent between checkpoints" if n else "no checkpoint"
        return Estimate.missing(reason=reason, unit=_UNIT, n=n, method="theil_sen")
    if n < _LEAST:
        reason = f"{n} checkpoints; an interval needs {_LEAST}"
        return Estimate(value=value, n=n, method="theil_sen", unit=_UNIT, reason=reason)
    slopes = _slopes(c, r, resamples, seed)
    found = slopes[np.isfinite(slopes)]
    if len(found) < resamples / 2:
        reason = "too few checkpoints between which something was spent"
        return Estimate(value=value, n=n, method="theil_sen", unit=_UNIT, reason=reason)
    low, high = percentile_ends(found, level)
    return Estimate(
        value=value,
        low=low,
        high=high,
        level=level,
        n=n,
        method=BLOCKS,
        unit=_UNIT,
    )


def moving_blocks(n: int, resamples: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Which of n things in a row each resample consists of, in blocks of ceil(n^(1/3)) neighbours.

    Args:
        n: How many things, at least 1.
        resamples: How often blocks are drawn.
        rng: What is drawn with.

    Returns:
        Their numbers, shape (resamples, n); what the last block has too many of is cut off.

    References:
        Kuensch (1989), Annals of Statistics 17:1217-1241.
    """
    block = math.ceil(round(n ** (1.0 / 3.0), 9))
    starts = rng.integers(0, n - block + 1, size=(resamples, math.ceil(n / block)), dtype=np.int32)
    blocks = starts[:, :, None] + np.arange(block, dtype=np.int32)
    return blocks.reshape(resamples, -1)[:, :n]


def block_counts(n: int, resamples: int, seed: int) -> NDArray[np.float64]:
    """How often each of n things in a row is in each resample; see `moving_blocks`.

    Returns:
        Whole numbers, shape (resamples, n).
    """
    drawn = moving_blocks(n, resamples, np.random.default_rng(seed))
    place = drawn + n * np.arange(resamples)[:, None]
    found = np.bincount(place.ravel(), minlength=n * resamples).reshape(resamples, n)
    return found.astype(np.float64)


def _slopes(
    c: NDArray[np.float64], r: NDArray[np.float64], resamples: int, seed: int
) -> NDArray[np.float64]:
    """Theil-Sen slope of each resample; NaN where nothing is spent in it."""
    first, second = _draws(len(c), resamples, seed)
    rows = max(1, _CHUNK // first.shape[1])
    parts = [
        _medians(c, r, first[start : start + rows], second[start : start + rows])
        for start in range(0, resamples, rows)
    ]
    return np.concatenate(parts)


@functools.lru_cache(maxsize=4)
def _draws(n: int, resamples: int, seed: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """First and second checkpoint of each pair of each resample, shape (resamples, pairs).

    Kept, because the windows of most days hold as many checkpoints.
    """
    rng = np.random.default_rng(seed)
    at = moving_blocks(n, resamples, rng)
    first, second = np.triu_indices(n, k=1)
    if len(first) > _MOST_PAIRS:
        some = rng.choice(len(first), size=_MOST_PAIRS, replace=False)
        first, second = first[some], second[some]
    return at[:, first], at[:, second]


def _medians(
    c: NDArray[np.float64],
    r: NDArray[np.float64],
    first: NDArray[np.int32],
    second: NDArray[np.int32],
) -> NDArray[np.float64]:
    """Median slope of each row of pairs, of those between which something was spent."""
    spent, gained = r[second] - r[first], c[second] - c[first]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        slopes = gained / spent
    slopes[~np.isfinite(slopes)] = np.inf  # sorted behind those that count
    slopes.sort(axis=1)
    count = np.isfinite(slopes).sum(axis=1)
    row = np.arange(len(slopes))
    # Twice the same place of an odd number; of none at all both are infinite.
    low, high = slopes[row, np.maximum(count - 1, 0) // 2], slopes[row, count // 2]
    return np.where(count > 0, low / 2.0 + high / 2.0, np.nan)


def streak_of(
    points: Iterable[Checkpoint], *, least: float, window_days: float, resamples: int, seed: int = 0
) -> Streak:
    """For how many days in a row one family improved itself.

    A day passes if over the days before it, itself included, capability grew by at least `least` a
    day, and its slope over resources has a lower end above 0. Neither depends on the unit that
    resources are counted in, which each laboratory chooses. A day without a checkpoint of its own
    does not pass. Nothing from before the last change that people made is looked back at: what they
    brought, the policy did not. As a random walk rises for days as well, the gains from day to day
    of all days together have to be shown to be gains, by flipping their signs.

    Args:
        points: Checkpoints of one family.
        least: Capability a day to reach, by the Theil-Sen slope.
        window_days: How far each day looks back.
        resamples: Of the interval.
        seed: Of the interval.

    Raises:
        InputError: As `kappa_estimate`.
    """
    ordered = sorted(points, key=lambda point: point.time_ns)
    c = np.array([point.capability for point in ordered], dtype=np.float64)
    r = np.array([point.resources for point in ordered], dtype=np.float64)
    start_ns = ordered[0].time_ns if ordered else 0
    time = np.array([(point.time_ns - start_ns) / DAY_NS for point in ordered], dtype=np.float64)
    whole = kappa_estimate(c, r, resamples=resamples, seed=seed)
    patches = [i for i, point in enumerate(ordered) if point.human_patches]
    if patches and whole.value is not None:
        text = f"people changed something before {len(patches)} of the checkpoints"
        whole = replace(whole, reason="; ".join(filter(None, (whole.reason, text))))
    days = [point.day for point in ordered]
    passed = []
    for day in sorted(set(days)):
        end = bisect.bisect_right(days, day)
        start = bisect.bisect_right(days, day - window_days)
        start = max([start, *patches[: bisect.bisect_left(patches, end)][-1:]])
        own = slice(start, end)
        if _improves(c[own], r[own], time[own], least, resamples, seed):
            passed.append(day)
    p_value = _gains_p(ordered)
    is_shown = p_value is not None and p_value <= _LEAST_GAINS_P
    return Streak(
        kappa=whole,
        days=len(_longest(passed)) if is_shown else 0,
        of_days=int(days[-1] - days[0] + 1) if days else 0,
        p_value=p_value,
    )


def _gains_p(ordered: Sequence[Checkpoint]) -> float | None:
    """How surprising the gains from day to day are if each could as well have been a loss.

    What was gained while people changed something is left out.
    """
    last = {point.day: point for point in ordered}
    patched = {point.day for point in ordered if point.human_patches}
    gains = np.array(
        [
            now.capability - before.capability
            for before, now in itertools.pairwise(last.values())
            if now.day not in patched
        ]
    )
    if not len(gains):
        return None
    size = float(np.abs(gains).sum())
    if size == 0.0:
        return 1.0
    two_sided = sign_flip_p(np.round(gains / size * _PARTS))
    return two_sided / 2.0 if gains.sum() > 0.0 else 1.0 - two_sided / 2.0


def _improves(
    c: NDArray[np.float64],
    r: NDArray[np.float64],
    time: NDArray[np.float64],
    least: float,
    resamples: int,
    seed: int,
) -> bool:
    """Whether capability grew fast enough, and the interval of its slope lies above 0."""
    per_day = formulas.kappa(*_spread(c, time))["theil_sen"]
    if per_day is None or per_day < least:  # the costly interval would not change it
        return False
    c, r = _spread(c, r)
    slope = formulas.kappa(c, r)["theil_sen"]
    found = _estimate(c, r, slope, level=_LEVEL, resamples=resamples, seed=seed)
    return found.low is not None and found.low > 0.0


def patched_everywhere(points: Iterable[Checkpoint]) -> list[Checkpoint]:
    """The checkpoints in order of time, each with the patches since the one before of its family.

    A person who changes the policy changes it for all its families, whichever line says so.

    Args:
        points: Checkpoints of one policy.
    """
    ordered = sorted(points, key=lambda point: point.time_ns)
    times = [point.time_ns for point in ordered]
    total = [0, *itertools.accumulate(point.human_patches for point in ordered)]
    counted: dict[str, int] = {}
    found = []
    for point in ordered:
        until = total[bisect.bisect_right(times, point.time_ns)]
        found.append(replace(point, human_patches=until - counted.get(point.family, 0)))
        counted[point.family] = until
    return found


def patched_by_family(points: Iterable[Checkpoint]) -> dict[str, list[Checkpoint]]:
    """The same, by task family, in order of name."""
    by_family: dict[str, list[Checkpoint]] = defaultdict(list)
    for point in patched_everywhere(points):
        by_family[point.family].append(point)
    return dict(sorted(by_family.items()))


def upkeep_of(points: Iterable[Checkpoint], *, share: float, drifts: Sequence[str]) -> Upkeep:
    """For how many days in a row a policy kept what it could do on the first.

    The capability of a day is the mean over families, each by its last checkpoint of the day. Only
    a day on which every family has a checkpoint counts: means over different families would not be
    like with like. The first such day is what others are compared with, so a drift has to set in
    after it. A day that does not count, or on which people patched something, ends the stretch.

    Args:
        points: Checkpoints of one policy.
        share: Of the capability on the first day, to be kept.
        drifts: Types of drift, each of which has to happen within the stretch.
    """
    by_day: dict[int, list[Checkpoint]] = defaultdict(list)
    for point in sorted(points, key=lambda one: one.time_ns):
        by_day[point.day].append(point)
    families = {point.family for found in by_day.values() for point in found}
    whole_days = {
        day: found for day, found in by_day.items() if {p.family for p in found} == families
    }
    patched = {day for day, found in by_day.items() if any(p.human_patches for p in found)}
    if not whole_days:
        reason = "no day on which every family has a checkpoint" if by_day else "no day"
        return Upkeep(
            days=0, kept=0, missing_drifts=tuple(drifts), patched=len(patched), reason=reason
        )
    capability = {day: _capability(found) for day, found in whole_days.items()}
    first = min(whole_days)
    least = share * capability[first] - 1e-12
    kept = [day for day in whole_days if capability[day] >= least and day not in patched]
    drifted = {
        day: {point.drift for point in found} if day > first else set()
        for day, found in whole_days.items()
    }
    longest = _longest(kept)
    absent = tuple(d for d in drifts if d not in set().union(*(drifted[day] for day in longest)))
    reasons = [f"no drift of {', '.join(absent)} in {_days(len(longest))}"] if absent else []
    if patched:
        reasons.append(f"people changed something on {_days(len(patched))}")
    fallen = sum(one < least for one in capability.values())
    if fallen:
        reasons.append(f"below {share:g} of the first day on {_days(fallen)}")
    stretch = max(_drifting(kept, drifted, drifts), key=len, default=[])
    return Upkeep(
        days=len(stretch),
        kept=len(longest),
        missing_drifts=absent,
        patched=len(patched),
        reason="; ".join(reasons + _gaps(by_day, len(whole_days), families)),
        first_day=stretch[0] if stretch else None,
        last_day=stretch[-1] if stretch else None,
    )


def _drifting(
    kept: Sequence[int], drifted: Mapping[int, set[str]], drifts: Sequence[str]
) -> list[list[int]]:
    """Days in a row within which each drift happened."""
    return [
        run for run in _runs(kept) if set(drifts) <= set().union(*(drifted[day] for day in run))
    ]


def _gaps(by_day: Mapping[int, Sequence[Checkpoint]], whole: int, families: set[str]) -> list[str]:
    """What is said of days that do not count."""
    empty = max(by_day) - min(by_day) + 1 - len(by_day)
    reasons = [f"{_days(empty)} without a checkpoint"] if empty else []
    if len(by_day) > whole:
        lacking = {
            name for found in by_day.values() for name in families - {p.family for p in found}
        }
        names = ", ".join(sorted(lacking))
        reasons.append(f"{_days(len(by_day) - whole)} on which a family has none ({names})")
    return reasons


def _days(n: int) -> str:
    return f"{n} day{'s' * (n != 1)}"


def _capability(points: Sequence[Checkpoint]) -> float:
    last = {point.family: point.capability for point in points}
    return math.fsum(last.values()) / len(last)


def _runs(days: Sequence[int]) -> list[list[int]]:
    """Days in a row, of ascending days."""
    keyed = itertools.groupby(enumerate(days), key=lambda pair: pair[1] - pair[0])
    return [[day for _, day in run] for _, run in keyed]


def _longest(days: Sequence[int]) -> list[int]:
    return max(_runs(days), key=len, default=[])
