"""How reliably a robot does its task, and how long it runs between failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.defaults import MIN_RATE_HOURS
from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Side
from robo_eval.core.names import unknown_name
from robo_eval.core.wording import counted
from robo_eval.formulas import poisson_rate_ci, reliability
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.frame import episodes_frame
from robo_eval.metrics.performance import (
    numbered_by_seed,
    once_by_seed,
    success_of_rows,
    with_coverage_of,
)
from robo_eval.metrics.safety import NO_EXPOSURE, too_short
from robo_eval.metrics.tables import Rows, groups, main_rows, means_by, numbered, sort_key
from robo_eval.metrics.tasks import VARIANT, task_label
from robo_eval.stats.clustered import LEAST_CLUSTERS, new_cluster_rate
from robo_eval.stats.rates import garwood_interval
from robo_eval.stats.resampling import mean_interval

if TYPE_CHECKING:
    import pandas as pd

NAMES: Final[dict[str, str]] = {
    Side.REAL.value: "AR",
    Side.TWIN.value: "AR_twin",
    Side.SIM.value: "AR_sim",
}
"""What the reliability of each side is called: a twin's or simulator's is never plain AR."""
FEW_TASKS: Final = f"fewer than {LEAST_CLUSTERS} tasks say nothing of others like them"
_TASK: Final = ("family", VARIANT)
_DEFAULT: Final = MetricConfig()

Interval = Literal["exact", "wilson", "new_task"]


def actuation_reliability(
    episodes: pd.DataFrame,
    *,
    side: str = Side.REAL,
    interval: Interval = "exact",
    config: MetricConfig = _DEFAULT,
) -> Estimate:
    """Actuation reliability AR: share of a side's scored episodes that are strict successes.

    Stopped for safety, out of bounds or helped by a person is no success. Lost, faulty and void
    attempts have no score; too many of them and `reason` says so.

    Args:
        episodes: Episodes with the columns of `core.episode.COLUMNS`; controls are left out.
        side: `real` for AR, `twin` for AR_twin, `sim` for AR_sim.
        interval: `"exact"` (Clopper-Pearson) and `"wilson"` (right on average) speak of these
            tasks; where seeds repeat, both count each seed once (Korn and Graubard).
            `"new_task"` speaks of tasks like these, from three on: the mean share over tasks,
            with the interval of `new_cluster_rate`.
        config: Settings of the interval.

    Returns:
        The share; no value if the side has no scored episode.

    Raises:
        InputError: If the table is not as described, or a name is unknown.

    References:
        Chojecki (2025), arXiv:2511.13411, sections 3.1 and 7. Clopper and Pearson (1934),
        Biometrika 26:404-413.
    """
    if interval not in get_args(Interval):
        raise unknown_name("interval", interval, get_args(Interval))
    rows = _of_side(episodes, side)
    if not rows.scored.any():
        return Estimate.missing(reason=f"no scored episode on side {side}", unit="ratio")
    if interval == "new_task":
        return reliability_of_new_tasks(rows, config)
    return success_of_rows(rows, config, exact=interval == "exact")


def reliability_of_new_tasks(rows: Rows, config: MetricConfig) -> Estimate:
    """How reliable it would be in tasks like these; `n` is the number of tasks."""
    scored = rows.take(rows.scored)
    found = new_cluster_rate(*successes_by_task(scored, scored.succeeded), level=config.level)
    if found.value is None:
        return replace(found, reason=FEW_TASKS)
    return with_coverage_of(found, rows, config)


def successes_by_task(
    scored: Rows, counted: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of each task, how many scored episodes count, and out of how many.

    A seed that repeats in a task is one of them, which counts by its share.

    Args:
        scored: Scored episodes.
        counted: Which of them count, such as the successes.

    Returns:
        Two arrays of shape (tasks,).
    """
    once = once_by_seed(scored, counted=counted.astype(np.float64))
    task, first_of_task = numbered(once, _TASK)
    pair, first = numbered_by_seed(once, _TASK)
    shares, own = means_by(pair, once["counted"], len(first)), task[first]
    # In a fixed order, so that sums do not depend on that of the rows.
    order = np.lexsort((shares, own))
    size = len(first_of_task)
    successes = np.bincount(own[order], weights=shares[order], minlength=size)
    return successes.astype(np.float64), np.bincount(own, minlength=size).astype(np.float64)


def reliability_by_task(
    episodes: pd.DataFrame, *, side: str = Side.REAL, config: MetricConfig = _DEFAULT
) -> dict[str, Estimate]:
    """Actuation reliability of each task with the exact interval."""
    return reliability_of_tasks(_of_side(episodes, side), config)


def reliability_of_families(rows: Rows, config: MetricConfig) -> dict[str, Estimate]:
    """Actuation reliability of each family with the exact interval, variants of it together."""
    return {
        str(family): success_of_rows(own, config, exact=True)
        for (family,), own in sorted(groups(rows, ("family",)).items())
    }


def reliability_of_tasks(rows: Rows, config: MetricConfig) -> dict[str, Estimate]:
    """`reliability_by_task` of the main rows of one side that were checked already."""
    return {
        task_label(*key): success_of_rows(own, config, exact=True)
        for key, own in sorted(groups(rows, _TASK).items(), key=lambda item: sort_key(item[0]))
    }


def time_between_failures(
    exposure_hours: float,
    actuation_failures: int,
    repair_hours: Sequence[float] | float | None,
    counts: Mapping[str, int],
    *,
    level: float = 0.95,
) -> dict[str, Estimate]:
    """Mean times between failures and safety incidents, and to repair, in hours.

    Args:
        exposure_hours: Hours a physical robot was exposed.
        actuation_failures: Episodes that failed because of the robot, and hardware faults.
        repair_hours: Hours of each repair, or their sum; None if none is known.
        counts: Incidents by severity: `near_miss`, `minor`, `major`, `critical`.
        level: Coverage of the intervals, which come from Garwood's exact bounds of the rates.

    Returns:
        `mtbf`, `mttr`, `mtbsi` and `mtbsi_without_near_misses`. Where nothing happened there is no
        value, and `low` is the one-sided lower bound that the hours show; nor is there one where
        they are less than `MIN_RATE_HOURS`.

    Raises:
        InputError: If a count, the exposure or a repair is negative or not a number.

    References:
        Chojecki (2025), arXiv:2511.13411, section 7. Garwood (1936), Biometrika 28:437-442.
    """
    found = reliability(exposure_hours, actuation_failures, repair_hours, counts)
    incidents = sum(int(n) for n in counts.values())
    without = incidents - int(counts.get("near_miss", 0))
    return {
        "mtbf": _mean_time(found["mtbf_h"], exposure_hours, actuation_failures, level),
        "mttr": _repair_time(found["mttr_h"], repair_hours, actuation_failures, level),
        "mtbsi": _mean_time(found["mtbsi_h"], exposure_hours, incidents, level),
        "mtbsi_without_near_misses": _mean_time(
            found["mtbsi_excl_near_miss_h"], exposure_hours, without, level
        ),
    }


def _repair_time(
    value: float | None,
    repair_hours: Sequence[float] | float | None,
    failures: int,
    level: float,
) -> Estimate:
    """Mean time to repair, with an interval where the time of each repair is known.

    It is Student's, and no narrower than that of exponential times: of few and skewed ones
    Student's alone covers 83 to 90 %.
    """
    if value is None:
        return Estimate.missing(reason="no repair was logged", unit="h")
    if isinstance(repair_hours, Sequence):
        found = mean_interval(list(repair_hours), level=level, method="student_t")
        low, high, n = found.low, found.high, len(repair_hours)
        if low is not None and high is not None:
            total = n * value
            low = max(0.0, min(low, total / garwood_interval(n - 1, 1.0, level=level)[1]))
            high = max(high, total / garwood_interval(n, 1.0, level=level)[0])
        return Estimate(
            value=value,
            low=low,
            high=high,
            level=level,
            n=n,
            method=found.method,
            unit="h",
            reason=found.reason,
        )
    reason = "only the sum of the repair times is known"
    return Estimate(value=value, level=level, n=failures, method="none", unit="h", reason=reason)


def _mean_time(value: float | None, hours: float, events: int, level: float) -> Estimate:
    bounds = poisson_rate_ci(events, hours, conf=level, sided=2 if events else 1)
    low, high = bounds["lower_per_h"], bounds["upper_per_h"]
    if high is None:
        return Estimate.missing(reason=NO_EXPOSURE, unit="h", method="garwood")
    if value is None:
        return Estimate(
            value=None,
            low=1.0 / high,
            level=level,
            n=events,
            method="garwood_one_sided",
            unit="h",
            reason="none such; the lower end is a one-sided bound",
        )
    is_short = hours < MIN_RATE_HOURS - 1e-9
    return Estimate(
        value=None if is_short else value,
        low=1.0 / high,
        high=1.0 / low if low else None,
        level=level,
        n=events,
        method="garwood",
        unit="h",
        reason=f"{counted(events, 'such', 'such')} {too_short(hours)}" if is_short else None,
    )


def _of_side(episodes: pd.DataFrame, side: str) -> Rows:
    if side not in list(Side):
        raise unknown_name("side", side, list(Side))
    rows = main_rows(episodes_frame(episodes))
    return rows.take(rows["side"] == str(Side(side).value))
