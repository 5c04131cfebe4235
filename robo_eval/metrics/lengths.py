"""How long the episodes of each policy last, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from robo_eval.core.estimate import Estimate
from robo_eval.core.wording import NOT_RECORDED
from robo_eval.stats.proportions import clopper_pearson_interval, clustered_interval

_MAX_STEPS: Final = 400
"""A line of more steps than the page has pixels says nothing more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """How long a policy's scored episodes lasted.

    Attributes:
        policy: Name shown.
        time_s: Times at which the share changes, seconds; empty where no length is recorded.
        unfailed: Share of the episodes that have not failed after each of them.
        ranges: Interval of each share; None where there is none.
        median_s: Median length.
        never_failed: Share of the scored episodes that did not fail.
        n: Scored episodes whose length is recorded.
        n_unknown: Scored episodes whose length is not.
        n_unknown_failed: Those of them that failed.
        scored: Which share of the policy's episodes these are, as text, where too few of them
            are scored; empty where enough are.
    """

    policy: str
    time_s: Sequence[float]
    unfailed: Sequence[float]
    ranges: Sequence[tuple[float, float] | None]
    median_s: Estimate
    never_failed: Estimate
    n: int
    n_unknown: int = 0
    n_unknown_failed: int = 0
    scored: str = ""


def lengths_of(
    rows: pd.DataFrame,
    label: str,
    *,
    never_failed: Estimate,
    end_s: float = 0.0,
    level: float = 0.95,
) -> Lengths | None:
    """Share of episodes that have not failed after each time, and the median length.

    Args:
        rows: Main episodes of one policy with a score.
        label: Name shown.
        never_failed: Share of these episodes that did not fail, as metrics found it.
        end_s: Up to where the line is drawn at least, seconds.
        level: Coverage the intervals aim at.

    Returns:
        A step function from 1 at time 0, empty where no length is recorded; None without
        episodes.
    """
    if rows.empty:
        return None
    length = rows["duration_s"].to_numpy(dtype=np.float64, na_value=np.nan)
    is_known = ~np.isnan(length)
    known = rows[is_known]
    length = length[is_known]
    sample = _Sample(seeds=_repeated_seeds(known), level=level)
    failed = ~known["success"].to_numpy(dtype=bool)
    steps = _steps(length, failed, sample, end_s) if len(length) else []
    return Lengths(
        policy=label,
        time_s=[round(time, 6) for time, _, _ in steps],
        unfailed=[round(share, 6) for _, share, _ in steps],
        ranges=[edges for _, _, edges in steps],
        median_s=median_length(length, failed, sample),
        never_failed=never_failed,
        n=len(length),
        n_unknown=len(rows) - len(length),
        n_unknown_failed=int((~rows[~is_known]["success"].to_numpy(dtype=bool)).sum()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    """How the shares of some episodes vary.

    Attributes:
        seeds: Number of each episode's seed where seeds repeat, so that
            episodes of one seed start alike; None where all episodes are independent.
        level: Coverage intervals aim at.
    """

    seeds: NDArray[np.intp] | None
    level: float

    @property
    def has_intervals(self) -> bool:
        """Whether anything can be said of other episodes: one shared seed says nothing."""
        return self.seeds is None or len(np.unique(self.seeds)) > 1

    def interval(self, is_so: NDArray[np.bool_]) -> tuple[float, float]:
        """Interval of the share of episodes of which something is so."""
        if self.seeds is None:
            return clopper_pearson_interval(int(is_so.sum()), len(is_so), level=self.level)
        rates = np.bincount(self.seeds, weights=is_so) / np.bincount(self.seeds)
        return clustered_interval(rates, len(is_so), level=self.level)


def _repeated_seeds(rows: pd.DataFrame) -> NDArray[np.intp] | None:
    """Number of each row's seed if seeds repeat."""
    if rows.empty or rows["seed"].isna().any() or not rows["seed"].duplicated().any():
        return None
    return np.unique(rows["seed"].to_numpy(dtype=np.int64), return_inverse=True)[1]


def _steps(
    length: NDArray[np.float64], failed: NDArray[np.bool_], sample: _Sample, end_s: float
) -> list[tuple[float, float, tuple[float, float] | None]]:
    """Times at which episodes fail, the share left then, and its interval."""
    times = np.unique(length[failed])
    if len(times) > _MAX_STEPS:
        times = times[np.linspace(0, len(times) - 1, _MAX_STEPS).astype(int)]
    steps: list[tuple[float, float, tuple[float, float] | None]] = [(0.0, 1.0, None)]
    for time in times.tolist():
        lost = failed & (length <= time)
        edges = None
        if sample.has_intervals:
            low, high = sample.interval(lost)
            edges = (1.0 - high, 1.0 - low)
        steps.append((time, 1.0 - float(lost.mean()), edges))
    end = max(end_s, float(length.max()))
    if steps[-1][0] < end:
        steps.append((end, *steps[-1][1:]))
    return steps


def median_length(
    length: NDArray[np.float64], failed: NDArray[np.bool_], sample: _Sample
) -> Estimate:
    """Median with the interval that sign tests leave, whether or not episodes are independent.

    Outwards from the median, a length stays possible as long as the share of episodes no longer
    (and the share of those shorter) may be a half, by the interval of that share. Of independent
    episodes that is the interval between two order statistics.
    """
    n = len(length)
    if not n:
        return Estimate.missing(reason=NOT_RECORDED, unit="s")
    value = float(np.median(length))
    low, high, reason = None, None, "one seed, shared by all episodes, says nothing about others"
    if sample.has_intervals:
        values = np.unique(length)
        shorter, longer = values[values <= value][::-1], values[values >= value]
        below = ((float(v), sample.interval(length <= v)[1] >= 0.5) for v in shorter)
        above = ((float(v), sample.interval(length < v)[0] <= 0.5) for v in longer)
        nothing, everything = np.zeros(n, dtype=bool), np.ones(n, dtype=bool)
        low = _furthest(below, value, is_open=sample.interval(nothing)[1] >= 0.5)
        high = _furthest(above, value, is_open=sample.interval(everything)[0] <= 0.5)
        reason = f"too few {'episodes' if sample.seeds is None else 'seeds'} to bound a median"
        if (low is None) != (high is None):
            # No length is below 0, and none above that of an episode that was not cut short.
            low = 0.0 if low is None else low
            high = _full_length(length, failed) if high is None else high
    if low is None or high is None:
        return Estimate(value=value, n=n, method="none", unit="s", reason=reason)
    clusters = "" if sample.seeds is None else f"_{len(np.unique(sample.seeds))}_seeds"
    return Estimate(
        value=value,
        low=low,
        high=high,
        level=sample.level,
        n=n,
        method=f"sign_test{clusters}",
        unit="s",
    )


def _furthest(
    candidates: Iterable[tuple[float, bool]], start: float, *, is_open: bool
) -> float | None:
    """The last possible length before the first that is not; None if nothing ends the row."""
    last = start
    for value, is_possible in candidates:
        if not is_possible:
            return last
        last = value
    return None if is_open else last


def _full_length(length: NDArray[np.float64], failed: NDArray[np.bool_]) -> float | None:
    """How long an episode lasts that nothing ends early; None if the episodes do not show it."""
    whole = length[~failed]
    if not len(whole) or whole.min() < length.max():
        return None
    return float(whole.max())
