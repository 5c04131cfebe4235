"""How well policies did: mean quality and strict success, each with interval and coverage."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import EndReason, FaultBy
from robo_eval.core.schedule import episodes_in, has_control
from robo_eval.core.wording import counted
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.coverage import Coverage, coverage_of
from robo_eval.metrics.frame import episodes_frame
from robo_eval.metrics.tables import (
    Rows,
    main_rows,
    means_by,
    numbered,
    order_of,
    policy_faults,
    sort_key,
)
from robo_eval.metrics.tables import groups as groups_of
from robo_eval.metrics.tasks import VARIANT, task_label, task_variants, with_novelty
from robo_eval.stats.bounded import bounded_mean_interval, bounded_mean_intervals
from robo_eval.stats.clustered import LEAST_CLUSTERS, new_cluster_rate
from robo_eval.stats.proportions import (
    clopper_pearson_interval,
    clustered_interval,
    wilson_interval,
)

if TYPE_CHECKING:
    import pandas as pd

    from robo_eval.core.plan import TrialPlan

DEFAULT: Final = MetricConfig()
_ROUNDING: Final = 1e-6
FIRST_ATTEMPTS: Final = "starts were repeated unequally often, so the first attempt of each counts"

CONTEXT: Final = ("family", VARIANT, "profile", "level", "difficulty")
"""Columns that together name what both sides of a comparison are put through."""
CONDITION: Final = ("side", "task", *CONTEXT)
"""Columns that together name what a policy was put through."""


_PLAYED: Final = ("policy", *CONDITION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One policy in one condition.

    Attributes:
        side: Where it was played.
        task: Gymnasium id of the environment.
        family: Task family.
        profile: Description of the levels that was followed; None without levels.
        level: Novelty level; None without levels.
        difficulty: Strength of the novelty; None without levels.
        policy: Name.
        coverage: Scored episodes out of those there should be.
        n_success: Strict successes.
        performance: Mean quality.
        success: Share of strict successes, Clopper-Pearson interval.
        success_exact: The same.
        performance_bounds: Mean quality if all missing episodes count as 0, and as 1; None if
            none is missing. Where seeds repeat, each missing episode counts as a seed of its own.
        success_bounds: The same for the share of successes.
        task_variant: What tells the task from others of its family in the plan, such as
            `{balls: 0}`; empty where the family says all.
    """

    side: str
    task: str
    family: str
    profile: str | None
    level: int | None
    difficulty: str | None
    policy: str
    coverage: Coverage
    n_success: int
    performance: Estimate
    success: Estimate
    success_exact: Estimate
    performance_bounds: tuple[float, float] | None
    success_bounds: tuple[float, float] | None
    task_variant: str = ""

    SAID: ClassVar = ("label",)

    @property
    def label(self) -> str:
        """What the task is called: its family, and what tells it from others of that family."""
        return task_label(self.family, self.task_variant)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyResult:
    """One policy over all conditions of one side.

    Attributes:
        side: Where it was played.
        policy: Name.
        policy_digests: SHA-256 of what defines it; more than one means it changed.
        n_conditions: Conditions with a scored episode.
        coverage: Scored episodes out of those there should be.
        n_success: Strict successes.
        performance: Mean over the conditions of their mean quality; its interval speaks about
            these conditions and other episodes.
        performance_elsewhere: The same with an interval that speaks about conditions like these.
        success: Share of strict successes, Clopper-Pearson interval.
        success_exact: The same.
        success_with_voids: The same with every void attempt counted as a failure.
        performance_bounds: As in `Cell`.
        success_bounds: As in `Cell`.
        n_policy_faults: Episodes, scored or missing, that an error of the policy ended.
        success_otherwise: The share, exact, if these counted the other way: as failures where
            they are missing, as missing where they are failures; None if there are none.
    """

    side: str
    policy: str
    policy_digests: tuple[str, ...]
    n_conditions: int
    coverage: Coverage
    n_success: int
    performance: Estimate
    performance_elsewhere: Estimate
    success: Estimate
    success_exact: Estimate
    success_with_voids: Estimate
    performance_bounds: tuple[float, float] | None
    success_bounds: tuple[float, float] | None
    n_policy_faults: int = 0
    success_otherwise: Estimate | None = None

    SAID: ClassVar = ("headline", "faults_text")

    @property
    def place(self) -> float:
        """Sorts policies of a side as a comparison does."""
        return place_of(self.success_exact, self.coverage)

    @property
    def headline(self) -> str | None:
        """The result in one line; None where too few episodes are scored to say it."""
        if not self.is_sayable:
            return None
        return success_text(self.success_exact, self.coverage, self.n_success)

    @property
    def faults_text(self) -> str | None:
        """What errors of the policy change, for people; None if there are none."""
        found = self.success_otherwise
        if found is None or found.value is None:
            return None
        is_missing = found.n > self.success_exact.n
        now, otherwise = ("missing", "failures") if is_missing else ("failures", "missing")
        ends = "" if found.low is None else f" [{found.low:.2f}, {found.high:.2f}]"
        return (
            f"{counted(self.n_policy_faults, 'episode')} ended by an error of the policy and"
            f" count as {now}; as {otherwise}, success is {found.value:.2f}{ends} of {found.n}"
        )

    @property
    def is_sayable(self) -> bool:
        """Whether enough episodes are scored for a headline or a verdict."""
        return self.coverage.is_sufficient


def success_text(success: Estimate, coverage: Coverage, n_success: int | None = None) -> str:
    """A success rate as reports print it.

    Args:
        success: Share of successes with its Clopper-Pearson interval.
        coverage: Counts the share rests on.
        n_success: Successes, of which it may be no plain share; the share of them if not given.

    Example:
        >>> counts = Coverage(scored=10, attempted=10, planned=10, attempts=10, voids=0)
        >>> success_text(success_estimate(10, 10, exact=True), counts)
        '10/10, 95 % 0.69-1.00'
    """
    if success.value is None or success.low is None or success.high is None:
        return coverage.text
    if n_success is None:
        n_success = round(success.value * coverage.scored)
    text = f"{n_success}/{coverage.scored}, "
    if is_by_seed(success, n_success):
        text += f"by seeds {success.value:.2f}, "
    text += f"{success.level * 100:g} % {success.low:.2f}-{success.high:.2f}"
    lost = coverage.expected - coverage.scored
    return f"{text}; {lost} missing" if lost else text


def place_of(success: Estimate, coverage: Coverage) -> float:
    """Sorts policies by their success, the best first and those with too few scored last."""
    return -(success.value or 0.0) if coverage.is_sufficient else math.inf


def is_by_seed(success: Estimate, n_success: int) -> bool:
    """Whether a share differs from that of its episodes, because seeds repeat unequally often."""
    return success.value is not None and abs(success.value * success.n - n_success) > _ROUNDING


def success_estimate(n_success: int, n: int, *, exact: bool, level: float = 0.95) -> Estimate:
    """Share of successes with its Wilson or, if `exact`, Clopper-Pearson interval."""
    method = "clopper_pearson" if exact else "wilson"
    if n == 0:
        return Estimate.missing(reason="no scored episodes", unit="ratio", method=method)
    interval = clopper_pearson_interval if exact else wilson_interval
    low, high = interval(n_success, n, level=level)
    return Estimate(
        value=n_success / n, low=low, high=high, level=level, n=n, method=method, unit="ratio"
    )


def cells(
    episodes: pd.DataFrame, plan: TrialPlan | None = None, config: MetricConfig = DEFAULT
) -> list[Cell]:
    """Every policy in every condition; controls are left out.

    Args:
        episodes: Episodes with the columns of `core.episode.COLUMNS`.
        plan: Adds the conditions and episodes that were not played, and sets the order.
        config: Settings of the intervals.
    """
    return cells_of(main_rows(episodes_frame(episodes, plan)), plan, config)


def cells_of(table: Rows, plan: TrialPlan | None, config: MetricConfig) -> list[Cell]:
    """`cells` of a table that was checked and cut to the main arm already."""
    planned = planned_episodes(plan) if plan is not None else {}
    groups = groups_of(table, (*CONDITION, "policy"))
    keys = [*planned, *sorted((key for key in groups if key not in planned), key=sort_key)]
    tables = [groups.get(key, table.take([])) for key in keys]
    qualities = quality_estimates([_qualities(own) for own in tables], config)
    return [
        _cell(key, own, quality, planned.get(key), config)
        for key, own, quality in zip(keys, tables, qualities, strict=True)
    ]


def policies(
    episodes: pd.DataFrame, plan: TrialPlan | None = None, config: MetricConfig = DEFAULT
) -> list[PolicyResult]:
    """Every policy over all its conditions, by side; controls are left out."""
    return policies_of(main_rows(episodes_frame(episodes, plan)), plan, config)


def policies_of(table: Rows, plan: TrialPlan | None, config: MetricConfig) -> list[PolicyResult]:
    """`policies` of a table that was checked and cut to the main arm already."""
    planned: dict[tuple[Any, ...], int] = {}
    for key, count in (planned_episodes(plan) if plan is not None else {}).items():
        own = (key[0], key[-1])
        planned[own] = planned.get(own, 0) + count
    groups = groups_of(table, ("side", "policy"))
    keys = [*planned, *sorted((key for key in groups if key not in planned), key=sort_key)]
    return [_policy(key, groups.get(key, table.take([])), planned.get(key), config) for key in keys]


def planned_episodes(plan: TrialPlan, *, of_novelty: bool = False) -> dict[tuple[Any, ...], int]:
    """Episodes the plan asks for by condition and policy, in its order.

    Args:
        plan: The plan.
        of_novelty: Whether only those count that are matched with one without novelty.
    """
    planned: dict[tuple[Any, ...], int] = {}
    if plan.imported is not None:  # it describes what was found, and plans nothing
        return planned
    variants = task_variants(plan)
    for side in plan.sides:
        for condition, count in episodes_in(plan, side).items():
            task = plan.tasks[condition.task]
            has_levels = condition.level is not None
            if of_novelty and not has_control(plan, condition):
                continue
            variant = with_novelty(variants[condition.task], dict(condition.novelty))
            for policy in plan.policies:
                key = (
                    side.value,
                    task.env,
                    task.family or task.env,
                    variant,
                    task.profile.value if has_levels else None,
                    condition.level,
                    condition.difficulty.value if condition.difficulty else None,
                    policy.name,
                )
                planned[key] = planned.get(key, 0) + count
    return planned


def _qualities(table: Rows) -> NDArray[np.float64]:
    # Sorted, so that sums do not depend on the order of the rows.
    return np.sort(table["quality"][table.scored])


def numbered_by_seed(rows: Rows, by: Sequence[str]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """`numbered` by some columns and the seed; a row without a seed is one by itself."""
    number, first = numbered(rows, (*by, "seed"))
    alone = _alone(rows) if by else rows.missing("seed")
    if alone.any():
        number = np.where(alone, len(rows) + np.arange(len(rows)), number)
        _, first, number = np.unique(number, return_index=True, return_inverse=True)
    return number, first


def _alone(rows: Rows) -> NDArray[np.bool_]:
    """Which rows repeat no other, as those without a score or a seed, shape (n,)."""
    return rows.missing("seed") | rows.apart | ~rows.scored


def unevenly_repeated(rows: Rows) -> NDArray[np.bool_]:
    """Which rows are of a condition whose seeds were not all repeated equally often, shape (n,)."""
    number, condition = numbered_by_seed(rows, _PLAYED)[0], numbered(rows, _PLAYED)[0]
    repeats, counted = np.bincount(number)[number], ~_alone(rows)
    most = np.zeros(len(rows), dtype=np.intp)
    np.maximum.at(most, condition[counted], repeats[counted])
    fewer = counted & (repeats < most[condition])
    return counted & np.isin(condition, condition[fewer])


def once_by_seed(rows: Rows, **columns: NDArray[np.float64]) -> Rows:
    """Rows in which each seed counts once in each condition, however often it was repeated there.

    It counts by the mean of its episodes if all seeds of the condition repeat equally often. Else
    the first attempt counts: whoever tries again until it succeeds would raise the mean.

    Args:
        rows: Scored episodes of one policy.
        columns: What is averaged, by name, each of shape (n,).

    Returns:
        The first row of each, with these columns; all rows where all repeat equally often, since
        each counts as much then.
    """
    number, first = numbered_by_seed(rows, CONDITION)
    repeats = np.bincount(number)
    if not len(rows) or repeats.min() == repeats.max():
        return rows.having(**columns)
    counted = {name: by_first(rows, values) for name, values in columns.items()}
    means = {name: means_by(number, values, len(first)) for name, values in counted.items()}
    return rows.take(first).having(**means)


def by_first(rows: Rows, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """What each row counts: its value, or that of the first attempt, see `once_by_seed`."""
    number, order = numbered_by_seed(rows, _PLAYED)[0], in_time(rows)
    earliest = np.zeros(len(rows), dtype=np.intp)
    earliest[number[order[::-1]]] = order[::-1]  # the first is written last, and stays
    return np.where(unevenly_repeated(rows), values[earliest[number]], values)


def in_time(rows: Rows) -> NDArray[np.intp]:
    """The order in which rows were played: by their start, or as logged if one has none."""
    if rows.missing("start_ns").any():
        return np.arange(len(rows))
    return np.argsort(rows["start_ns"].astype(np.int64), kind="stable")


def share_by_seed(rows: Rows) -> Rows:
    """`once_by_seed` of scored rows, in which `share` is the share that succeeded."""
    return once_by_seed(rows, share=rows.succeeded.astype(np.float64))


def _successes(table: Rows) -> int:
    return int(table.succeeded.sum())


def _cover(table: Rows, config: MetricConfig, planned: int | None = None) -> Coverage:
    return coverage_of(table, planned=planned, minimum=config.min_coverage)


def with_coverage_of(estimate: Estimate, table: Rows, config: MetricConfig) -> Estimate:
    """The estimate, which says itself if too few of these episodes are scored."""
    return _with_coverage(estimate, _cover(table, config))


def _with_coverage(estimate: Estimate, coverage: Coverage) -> Estimate:
    """Say in the estimate itself that too few episodes are scored."""
    if coverage.is_sufficient or not coverage.expected:
        return estimate
    reasons = [coverage.text, *([estimate.reason] if estimate.reason else [])]
    return replace(estimate, reason="; ".join(reasons))


def quality_estimates(
    samples: Sequence[NDArray[np.float64]], config: MetricConfig
) -> list[Estimate]:
    """Mean quality of each of some samples, with an interval within 0 and 1."""
    filled = [sample for sample in samples if sample.size]
    found = iter(bounded_mean_intervals(filled, level=config.level))
    return [next(found) if sample.size else _no_episodes() for sample in samples]


def _no_episodes() -> Estimate:
    return Estimate.missing(reason="no scored episodes", unit="ratio")


def _cell(
    key: tuple[Any, ...],
    table: Rows,
    quality: Estimate,
    planned: int | None,
    config: MetricConfig,
) -> Cell:
    coverage = _cover(table, config, planned)
    names = dict(zip((*CONDITION, "policy"), key, strict=True))
    seeds = _repeated_seeds(table)
    success = _with_coverage(_success(table, seeds, config), coverage)
    if seeds is not None:
        mean = float(_qualities(seeds.once).mean())
        quality = mean_by_seed(seeds.quality, mean, quality.n, config)
    return Cell(
        **names,
        coverage=coverage,
        n_success=_successes(table),
        performance=_with_coverage(quality, coverage),
        success=success,
        success_exact=success,
        performance_bounds=_performance_bounds(table, coverage, seeds),
        success_bounds=success_bounds(table, coverage, seeds),
    )


def _policy(
    key: tuple[Any, ...], table: Rows, planned: int | None, config: MetricConfig
) -> PolicyResult:
    coverage = _cover(table, config, planned)
    seeds = _repeated_seeds(table)
    once = table if seeds is None else seeds.once
    samples = [_qualities(own) for own in groups_of(once, CONDITION).values()]
    samples = [sample for sample in samples if sample.size]

    def success(*, voids: bool = False) -> Estimate:
        return _with_coverage(_success(table, seeds, config, voids=voids), coverage)

    found = success()
    n_faults, otherwise = _otherwise(table, config)
    means = _condition_means(samples, seeds, coverage.scored, config)
    return PolicyResult(
        side=str(key[0]),
        policy=str(key[1]),
        policy_digests=_digests(table),
        n_conditions=len(samples),
        coverage=coverage,
        n_success=_successes(table),
        performance=_with_coverage(means["these"], coverage),
        performance_elsewhere=_with_coverage(means["like_these"], coverage),
        success=found,
        success_exact=found,
        success_with_voids=success(voids=True),
        n_policy_faults=n_faults,
        success_otherwise=otherwise,
        performance_bounds=_performance_bounds(table, coverage, seeds),
        success_bounds=success_bounds(table, coverage, seeds),
    )


def _otherwise(table: Rows, config: MetricConfig) -> tuple[int, Estimate | None]:
    """Episodes that an error of the policy ended, and success if they counted the other way."""
    by_policy = table["fault_by"] == FaultBy.POLICY.value
    failed = by_policy & table.scored & (table["end_reason"] == EndReason.FAILURE.value)
    if failed.any():
        return int(failed.sum()), success_of_rows(table.take(~failed), config, exact=True)
    rows = policy_faults(table)
    if not len(rows):
        return 0, None
    return len(rows), success_of_rows(table.failing(rows), config, exact=True)


def success_of_rows(table: Rows, config: MetricConfig, *, exact: bool) -> Estimate:
    """Share of strict successes of some rows of `main_rows`.

    Where a seed repeats in a condition it counts there once, by the mean of its episodes; the
    interval takes all episodes of a seed for one observation.
    """
    found = _success(table, _repeated_seeds(table), config, exact=exact)
    return _with_coverage(found, _cover(table, config))


def success_bounds(
    table: Rows, coverage: Coverage, seeds: _Seeds | None = None
) -> tuple[float, float] | None:
    """That share if all missing episodes count as failures, and as successes."""
    if coverage.expected == coverage.scored:
        return None
    seeds = seeds or _repeated_seeds(table)
    each = table.succeeded[table.scored] if seeds is None else seeds.success.each
    return coverage.bounds(float(each.sum()), len(each))


def _performance_bounds(
    table: Rows, coverage: Coverage, seeds: _Seeds | None
) -> tuple[float, float] | None:
    """Mean quality if all missing episodes count as 0, and as 1."""
    each = _qualities(table if seeds is None else seeds.once)
    return coverage.bounds(float(each.sum()), len(each))


def _success(
    table: Rows,
    seeds: _Seeds | None,
    config: MetricConfig,
    *,
    exact: bool = True,
    voids: bool = False,
) -> Estimate:
    """Share of successes, with every void attempt counted as a failure if asked for."""
    n = int(table.scored.sum())
    n += int((table["end_reason"] == EndReason.VOID.value).sum()) if voids else 0
    estimate = success_estimate(_successes(table), n, exact=exact, level=config.level)
    if seeds is None:
        return estimate
    found = _share_of(_with_voids(table)) if voids else seeds.success
    reason = FIRST_ATTEMPTS if unevenly_repeated(table.take(table.scored)).any() else None
    estimate = replace(estimate, value=float(np.mean(found.each)), reason=reason)
    if len(found.by_seed) < 2:
        reason = "one seed, shared by all episodes, says nothing about others"
        return replace(estimate, low=None, high=None, method="none", reason=reason)
    low, high = clustered_interval(found.by_seed, found.n, level=config.level)
    method = f"korn_graubard_{len(found.by_seed)}_seeds"
    return replace(estimate, low=low, high=high, method=method)


@dataclass(frozen=True, slots=True)
class _Share:
    """What seeds say about a share.

    Attributes:
        each: That of each row of `once_by_seed`, ascending; their mean is the share.
        by_seed: What each seed says about it, in order of the seeds.
        n: Independent episodes that would tell as much, if seeds were not alike.
    """

    each: NDArray[np.float64]
    by_seed: NDArray[np.float64]
    n: float


@dataclass(frozen=True, slots=True)
class _Seeds:
    """What the seeds of a policy came to.

    Attributes:
        once: `once_by_seed` with the mean quality.
        quality: Mean quality of each seed, and how much it weighs in the mean over conditions.
        success: What they say about the share of successes.
    """

    once: Rows
    quality: tuple[NDArray[np.float64], NDArray[np.float64]]
    success: _Share


def _repeated_seeds(table: Rows) -> _Seeds | None:
    """What each seed came to, where seeds repeat; None where each has one episode.

    Episodes of one seed start alike, in one condition as in several, so they are not independent:
    what a seed does in all of them together is one observation.
    """
    scored = table.take(table.scored)
    if not len(scored) or len(numbered_by_seed(scored, ())[1]) == len(scored):
        return None
    once = once_by_seed(scored, quality=scored["quality"])
    return _Seeds(once=once, quality=_quality_by_seed(once), success=_share_of(scored))


def _in_order(seeds: Rows, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values in order of the seeds, so that sums do not depend on that of the rows."""
    found, n = values[order_of(seeds["seed"])], int(seeds.missing("seed").sum())
    found[:n] = np.sort(found[:n])  # those without a seed come first
    return found


def means_by_seed(
    once: Rows, column: str, weights: NDArray[np.float64] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean of what each seed came to, and how much it weighs in the mean of all rows.

    Args:
        once: Rows of `once_by_seed`.
        column: What is averaged.
        weights: Of the rows, shape (n,); all alike if not given.

    Returns:
        Two arrays of shape (seeds,).
    """
    group, firsts = numbered_by_seed(once, ())
    n_seeds, sizes = len(firsts), np.bincount(group)
    if weights is None:
        return means_by(group, once[column], n_seeds), sizes.astype(np.float64)
    weight = means_by(group, weights, n_seeds)
    return means_by(group, once[column] * weights, n_seeds) / weight, weight * sizes


def _quality_by_seed(once: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """`means_by_seed` of the quality, in the mean of which each condition counts once."""
    condition = numbered(once, CONDITION)[0]
    sizes = np.bincount(condition)
    weights = None if sizes.min() == sizes.max() else 1.0 / sizes[condition]
    return means_by_seed(once, "quality", weights)


def _share_of(counted: Rows) -> _Share:
    """What seeds say about the share of some rows that succeeded."""
    once = share_by_seed(counted)
    # Kish: a seed in one condition weighs 1, which its episodes there share.
    number, first = numbered_by_seed(counted, CONDITION)
    repeats = np.where(unevenly_repeated(counted)[first], 1, np.bincount(number))
    n = len(repeats) ** 2 / float((1.0 / repeats).sum())
    group, firsts = numbered_by_seed(once, ())
    share = once["share"]
    order = np.lexsort((share, group))
    successes = np.bincount(group[order], weights=share[order])
    sizes, each = np.bincount(group), np.sort(share)
    if sizes.min() == sizes.max():
        found = successes / sizes
    else:
        mean = float(each.mean())
        found = mean + len(sizes) / len(once) * (successes - mean * sizes)
    return _Share(each, _in_order(once.take(firsts), found), round(n, 9))


def _with_voids(table: Rows) -> Rows:
    """The scored rows, and those of void attempts."""
    return table.take(table.scored | (table["end_reason"] == EndReason.VOID.value))


def mean_by_seed(
    seeds: tuple[NDArray[np.float64], NDArray[np.float64]],
    value: float,
    n: int,
    config: MetricConfig,
    within: tuple[float, float] = (0.0, 1.0),
) -> Estimate:
    """Mean of n episodes, of which those of a seed are one observation; see `means_by_seed`."""
    means, weights = seeds
    found = bounded_mean_interval(means, weights=weights, within=within, level=config.level)
    assert found.low is not None, "a bounded mean has an interval"
    assert found.high is not None
    return replace(
        found,
        value=value,
        low=min(found.low, value),
        high=max(found.high, value),
        n=n,
        method=f"{found.method}_{len(means)}_seeds",
    )


def _digests(table: Rows) -> tuple[str, ...]:
    values = table["policy_digest"][numbered(table, ("policy_digest",))[1]]
    return tuple(sorted({str(value) for value in values if isinstance(value, str) and value}))


def _condition_means(
    samples: Sequence[NDArray[np.float64]],
    seeds: _Seeds | None,
    n: int,
    config: MetricConfig,
) -> Mapping[str, Estimate]:
    """Mean over conditions with the two intervals it can have.

    Args:
        samples: Qualities of each condition, one for each seed where seeds repeat.
        seeds: What the seeds came to, where they repeat.
        n: Episodes behind them.
        config: Settings of the intervals.
    """
    if not samples:
        return {"these": _no_episodes(), "like_these": _no_episodes()}
    if len(samples) == 1:
        reason = "one condition says nothing about conditions like it"
        single = quality_estimates(samples, config)[0]
        if seeds is not None:
            assert single.value is not None, "a sample has a mean"
            single = mean_by_seed(seeds.quality, single.value, n, config)
        elsewhere = replace(single, low=None, high=None, method="none", reason=reason)
        return {"these": single, "like_these": elsewhere}
    means, sizes = (np.array([of(x) for x in samples]) for of in (np.mean, len))
    value = float(np.sort(means).mean())
    if seeds is None:
        weights = np.repeat(1.0 / sizes, sizes)
        these = bounded_mean_interval(np.concatenate(samples), weights=weights, level=config.level)
    else:
        these = mean_by_seed(seeds.quality, value, n, config)
    if len(samples) < LEAST_CLUSTERS:
        like = bounded_mean_interval(means, level=config.level)
    else:
        # Of conditions a policy may well succeed in some always, in others never.
        like = new_cluster_rate(means * sizes, sizes, level=config.level, extremes=True)
    # That of conditions like these is no surer than that of these.
    lows = [one.low for one in (these, like) if one.low is not None]
    highs = [one.high for one in (these, like) if one.high is not None]
    like = replace(like, value=value, low=min(lows), high=max(highs), n=these.n)
    return {"these": replace(these, value=value), "like_these": like}
