"""Whether the constants of a robot changed over days, since when, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import pairwise, permutations
from pathlib import Path
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from robo_eval.core.defaults import LEVEL
from robo_eval.core.errors import InputError
from robo_eval.core.estimate import Estimate
from robo_eval.core.plain import UNSAID
from robo_eval.core.wording import counted
from robo_eval.log.directory import CALIBRATION
from robo_eval.log.snapshot import read_snapshot
from robo_eval.stats.multiple import holm

Array = NDArray[np.float64]

LEAST_DAYS: Final = 8
"""Fewer days have too few orders for a change to stand out."""
_MEASURED: Final = ("identified", "weak")
"""Verdicts on constants whose values are measured: any other is a default, or an end of a range."""
_ALL_ORDERS: Final = 8
"""Of up to so many days all orders are tried; 8 have 40,320."""
_DATES: Final = 6.0
"""Days are possible whose likelihood ratio, as -2 log, is at most this; how often they hold the
change is measured in `benchmarks/watch_power.py`."""
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """What was fitted to the recordings of one day.

    Attributes:
        day: Calendar day.
        source: File it is from, for messages.
        of: What was recorded: task, robot and side.
        constants: Each with its value and interval, `n` its recordings; one that was not found is
            left out.
        recordings: Digests of what it rests on.
    """

    day: date
    source: str
    of: tuple[str, str, str] = ("", "", "")
    constants: Mapping[str, Estimate]
    recordings: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """One constant over the days.

    Attributes:
        name: The constant.
        verdict: `changed`, `no change shown` or `too few days`.
        days: On how many of them it was found.
        today: Its value on the newest day.
        p: Chance of so large a contrast if the order of the days meant nothing, of all constants
            together (Holm); None with too few days.
        since: First day after the likeliest change; None if none was shown.
        since_low: Earliest such day that the values allow.
        since_high: Latest one.
        change: Mean after the change less the mean before it; None if none was shown.
        correlation: Of neighbouring days, around the means before and after a change. Where days
            wander, changes are found that are none.
        moved: Today's value less the one in use.
        moved_p: Chance of so large a move if there was none, of all constants together (Holm).
        reason: Why there is no verdict; None if there is one.
    """

    name: str
    verdict: str
    days: int
    today: Estimate
    p: float | None = None
    since: date | None = None
    since_low: date | None = None
    since_high: date | None = None
    change: float | None = None
    correlation: Estimate
    moved: Estimate
    moved_p: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """All constants over the days.

    Attributes:
        days: The days, in their order.
        in_use: File of the snapshot in use.
        in_use_day: Its day.
        constants: Each constant, by name.
        level: Of the intervals and decisions.
    """

    SAID: ClassVar = ("is_compared", "is_due", "reasons")

    days: tuple[date, ...]
    in_use: str
    in_use_day: date
    constants: tuple[Watched, ...]
    level: float = field(default=LEVEL, metadata=UNSAID)

    @property
    def is_compared(self) -> bool:
        """Whether either question has an answer for any constant."""
        return any(x is not None for one in self.constants for x in (one.p, one.moved_p))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why to calibrate again; empty if nothing asks for it."""
        found = []
        for one in self.constants:
            if one.since_high is not None and one.since_high > self.in_use_day:
                found.append(f"{one.name} changed, and the snapshot in use may be from before")
            if one.moved_p is not None and one.moved_p <= 1.0 - self.level:
                found.append(f"{one.name} is not today what the snapshot in use says")
        return tuple(found)

    @property
    def is_due(self) -> bool:
        """Whether to calibrate again."""
        return bool(self.reasons)


# Reading -----------------------------------------------------------------------------------------


def snapshots_in(paths: Iterable[Path]) -> list[Path]:
    """Snapshot files: those named, and those that trial directories hold, each once.

    Raises:
        InputError: If a directory holds none.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        own = sorted((path / CALIBRATION).glob("*.yaml")) if path.is_dir() else [path]
        if not own:
            raise InputError(
                f"{path / CALIBRATION}: holds no snapshot (*.yaml); name snapshot files, or write"
                " them there with `robo-eval calibrate fit`"
            )
        found |= {one.resolve(): one for one in own}
    return list(found.values())


def day_of(path: Path) -> Day:
    """What a snapshot says of its day, which is the one from which it is valid.

    Raises:
        PlanError: If it is none; the message names file and field.
    """
    snapshot = read_snapshot(path)
    return Day(
        day=snapshot.valid.from_,
        source=str(path),
        of=(snapshot.task, snapshot.robot, snapshot.side.value),
        constants={
            name: Estimate(
                value=one.value, low=one.low, high=one.high, n=one.n, method=one.method,
                unit=one.unit,
            )
            for name, one in snapshot.constants.items()
            if one.value is not None and one.verdict in _MEASURED
        },
        recordings=frozenset(filter(None, (one.content or one.sha256 for one in snapshot.used))),
    )  # fmt: skip


# Watching ----------------------------------------------------------------------------------------


def watched(
    days: Sequence[Day],
    *,
    in_use: Day | None = None,
    level: float = LEVEL,
    draws: int = 9_999,
    seed: int = 0,
) -> Watch:
    """Ask of each constant whether it changed, and whether today's value is still the one in use.

    The days before a possible change are compared with those after it, for every possible change;
    the largest contrast counts. Its p value is the share of orders of the days that have one as
    large: exact where days can be exchanged, and too small where they wander. A change of the last
    day or two cannot be seen so; that is what the comparison with the snapshot in use is for.

    Args:
        days: At least one, in any order.
        in_use: Snapshot that simulations are played with; that of the first day if not given.
        level: Each of the two questions finds something in at most 1 - level of the cases in
            which nothing changed.
        draws: Orders that are drawn where there are more than 8 days.
        seed: Of the draws.

    Raises:
        InputError: If two are of one day or rest on the same recording, or they are not of one
            task, robot and side.
    """
    days = sorted(days, key=lambda one: one.day)
    in_use = days[0] if in_use is None else in_use
    _check(days, in_use)
    names = sorted({name for one in days for name in one.constants})
    series = {name: [one for one in days if name in one.constants] for name in names}
    values = {
        name: np.array([one.constants[name].value for one in own], dtype=np.float64)
        for name, own in series.items()
    }
    # What cannot become significant, whatever its values, is not asked.
    long = sum(len(own) >= LEAST_DAYS for own in series.values())
    needed = max(LEAST_DAYS, _days_needed(long, 1.0 - level))
    few = f"of the {needed} that are needed" + (
        f" to watch {counted(long, 'constant')}" if needed > LEAST_DAYS else ""
    )
    p = _together({name: order_p(x, draws, seed) for name, x in values.items() if len(x) >= needed})
    moves = {name: _moved(name, days[-1], in_use, level) for name in names}
    moved_p = _together({name: p for name, (_, p) in moves.items() if p is not None})
    found = []
    for name, x in values.items():
        own, today = series[name], days[-1].constants.get(name)
        lacking = "was not found on the newest day"
        is_changed = p.get(name, 1.0) <= 1.0 - level
        k, possible = dates(x) if is_changed else (0, ())
        found.append(
            Watched(
                name=name,
                verdict="changed" if k else "no change shown" if name in p else "too few days",
                days=len(x),
                today=today or Estimate.missing(reason=lacking, unit=own[-1].constants[name].unit),
                p=p.get(name),
                since=own[k].day if k else None,
                since_low=own[possible[0]].day if k else None,
                since_high=own[possible[-1]].day if k else None,
                change=float(x[k:].mean() - x[:k].mean()) if k else None,
                correlation=_correlation(x, k, level),
                moved=moves[name][0],
                moved_p=moved_p.get(name),
                reason=None if name in p else f"too few days: {len(x)} {few}",
            )
        )
    return Watch(
        days=tuple(one.day for one in days),
        in_use=in_use.source,
        in_use_day=in_use.day,
        constants=tuple(found),
        level=level,
    )


def order_p(x: Array, draws: int = 9_999, seed: int = 0) -> float:
    """Share of the orders of some values whose largest contrast is at least that of their own.

    Args:
        x: Values in their order, shape (D,), D >= 2.
        draws: Orders that are drawn, beside the own one, where D is above 8.
        seed: Of the draws.

    References:
        Hawkins (1977), Testing a sequence of observations for a shift in location, Journal of the
        American Statistical Association 72:180-186; Antoch and Hušková (2001), Permutation tests
        in change point analysis, Statistics and Probability Letters 53:37-46.
    """
    if np.ptp(x) == 0.0:
        return 1.0
    own = _between(x[None]).max()
    if len(x) <= _ALL_ORDERS:
        orders = x[np.array(list(permutations(range(len(x)))))]
    else:
        orders = np.random.default_rng(seed).permuted(np.tile(x, (draws, 1)), axis=1)
        orders = np.vstack([x, orders])
    return float(np.mean(_between(orders).max(axis=1) >= own * (1.0 - _ROUNDING)))


def dates(x: Array) -> tuple[int, tuple[int, ...]]:
    """How many days are before the likeliest change, and which other numbers are possible.

    Args:
        x: Values in their order, shape (D,), not all alike.
    """
    between = _between(x[None])[0]
    total = float(((x - x.mean()) ** 2).sum())
    # Days that are alike to the last digit leave nothing over.
    rest = np.maximum(total - between, _ROUNDING * total)
    possible = np.flatnonzero(len(x) * np.log(rest / rest.min()) <= _DATES) + 1
    return int(rest.argmin()) + 1, tuple(possible.tolist())


def _between(orders: Array) -> Array:
    """Sum of squares between the first k days and the others, for k = 1 to D - 1.

    With it rises the studentised contrast of the two means, as an order changes no total.
    """
    n = orders.shape[1]
    k = np.arange(1, n)
    sums = np.cumsum(orders - orders.mean(axis=1, keepdims=True), axis=1)[:, :-1]
    return np.asarray(sums**2 * (n / (k * (n - k))))


def _days_needed(constants: int, alpha: float) -> int:
    """Days from which a change in their middle, without any noise, would be significant.

    Only the orders that leave each half whole have as large a contrast.
    """
    n = LEAST_DAYS
    while constants * 2.0 / math.comb(n, n // 2) > alpha:
        n += 1
    return n


def _together(p: Mapping[str, float]) -> dict[str, float]:
    return dict(zip(p, holm(list(p.values())).tolist(), strict=True))


def _moved(name: str, today: Day, in_use: Day, level: float) -> tuple[Estimate, float | None]:
    """How far a constant is today from the snapshot in use, and the chance of that."""
    new, old = today.constants.get(name), in_use.constants.get(name)
    unit = next(one.unit for one in (new, old, Estimate.missing(reason="-", unit="")) if one)
    if today == in_use or new is None or old is None or new.value is None or old.value is None:
        reason = (
            "today's snapshot is the one in use" if today == in_use
            else "was not found on the newest day" if new is None
            else "is not in the snapshot in use"
        )  # fmt: skip
        return Estimate.missing(reason=reason, unit=unit), None
    parts = [_error(one) for one in (new, old)]
    known = [part for part in parts if part is not None]
    variance = sum(error**2 for error, _ in known)
    if parts[0] is None or not variance:
        reason = "today's value has no interval; record more than one episode a day"
        return replace(new, value=new.value - old.value, low=None, high=None, reason=reason), None
    # Welch and Satterthwaite.
    df = variance**2 / sum(error**4 / own for error, own in known)
    move = stats.t(df, loc=new.value - old.value, scale=math.sqrt(variance))
    low, high = map(float, move.interval(level))
    value = new.value - old.value
    found = replace(new, value=value, low=low, high=high, level=level, method="t", reason=None)
    return found, float(2.0 * min(move.cdf(0.0), move.sf(0.0)))


def _error(found: Estimate) -> tuple[float, int] | None:
    """Standard error behind a t interval over recordings, and its degrees of freedom."""
    if found.low is None or found.high is None or found.n < 2:
        return None
    df = found.n - 1
    half = 0.5 * (found.high - found.low)
    return half / float(stats.t.ppf(0.5 + found.level / 2.0, df)), df


def _correlation(x: Array, k: int, level: float) -> Estimate:
    """Correlation of neighbouring days around the means of the first k and of the others."""
    parts = [part for part in (x[:k], x[k:]) if part.size]
    rest = np.concatenate([part - part.mean() for part in parts])
    total, n = float((rest**2).sum()), len(x)
    if n < LEAST_DAYS or total <= _ROUNDING**2 * float((x**2).sum()):
        reason = "too few days" if n < LEAST_DAYS else "the days are all alike"
        return Estimate.missing(reason=reason, unit="", n=n)
    # Each mean that is taken away costs 1/D (Marriott and Pope 1954, Biometrika 41:390-402).
    value = float((rest[1:] * rest[:-1]).sum()) / total + len(parts) / n
    half = float(stats.norm.ppf(0.5 + level / 2.0)) / math.sqrt(n)
    low, value, high = (min(max(end, -1.0), 1.0) for end in (value - half, value, value + half))
    return Estimate(value=value, low=low, high=high, level=level, n=n, method="lag_1", unit="")


def _check(days: Sequence[Day], in_use: Day) -> None:
    """Refuse days that cannot be compared."""
    first, rests_on = days[0], dict[str, Day]()
    for one in (*days, in_use):
        for what, own, other in zip(("task", "robot", "side"), one.of, first.of, strict=True):
            if own != other:
                raise InputError(
                    f"{one.source}: {what} is {own!r}, that of {first.source} is {other!r};"
                    " watch snapshots of one task, robot and side"
                )
    for before, one in pairwise(days):
        if one.day == before.day:
            raise InputError(
                f"{one.source}: is of {one.day}, as {before.source} is; name one snapshot a day"
            )
    for one in days:
        for digest in sorted(one.recordings & rests_on.keys()):
            raise InputError(
                f"{one.source}: recordings: one of them is in {rests_on[digest].source}, too;"
                " fit each day to recordings of its own"
            )
        rests_on |= dict.fromkeys(one.recordings, one)
