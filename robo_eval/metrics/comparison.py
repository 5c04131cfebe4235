"""Which policy succeeds more often on a side, and which cannot be told apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from robo_eval.core.kinds import Side
from robo_eval.metrics.calibrated import CALIBRATION, is_calibrated, name_of, snapshots_of
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.contrast import (
    Attempts,
    attempts_of,
    contrast,
    detectable,
    least_deciding,
)
from robo_eval.metrics.coverage import coverage_of
from robo_eval.metrics.performance import DEFAULT, planned_episodes, success_bounds, success_of_rows
from robo_eval.metrics.rank_agreement import rank_agreement
from robo_eval.metrics.standings import PolicyPair, SideComparison, Standing
from robo_eval.metrics.tables import Rows, groups, main_rows
from robo_eval.stats.multiple import holm, letters, rank_ranges

if TYPE_CHECKING:
    import pandas as pd

    from robo_eval.core.plan import TrialPlan

Planned = Mapping[tuple[str, str], int]
"""Episodes that should be there, by side and policy; the order is that of tables."""


def compare_policies(
    episodes: pd.DataFrame | Rows,
    plan: TrialPlan | None = None,
    config: MetricConfig = DEFAULT,
) -> tuple[SideComparison, ...]:
    """Compare every two policies of each side, and the rankings of the sides.

    Args:
        episodes: A table of `metrics.frame.episodes_frame`, or its `metrics.tables.main_rows`.
        plan: Says how many episodes there should be, and sets the order.
        config: Coverage of intervals, least share scored, resamples.

    Returns:
        One comparison a side, simulation first; sides with one policy have no pairs.
    """
    rows = episodes if isinstance(episodes, Rows) else rows_to_compare(episodes)
    return compare_rows(rows, planned_by_policy(plan), config)


def rows_to_compare(table: pd.DataFrame) -> Rows:
    """`main_rows` of a table, which also say how the simulator was calibrated."""
    return main_rows(table, CALIBRATION)


def joined(tables: Sequence[Rows]) -> Rows:
    """The rows of several trials, one after the other."""
    if len(tables) == 1:
        return tables[0]
    names = tables[0].columns
    return Rows({name: np.concatenate([rows[name] for rows in tables]) for name in names})


def planned_by_policy(plan: TrialPlan | None) -> dict[tuple[str, str], int]:
    """Episodes a plan asks for by side and policy, in its order; none without a plan."""
    planned: dict[tuple[str, str], int] = {}
    for key, count in (planned_episodes(plan) if plan is not None else {}).items():
        planned[key[0], key[-1]] = planned.get((key[0], key[-1]), 0) + count
    return planned


def compare_rows(rows: Rows, planned: Planned, config: MetricConfig) -> tuple[SideComparison, ...]:
    """`compare_policies` of rows of the main arm, which may come from several trials.

    Args:
        rows: Rows of `metrics.tables.main_rows`; the episodes of a policy come from one trial.
        planned: Episodes there should be by side and policy.
        config: Settings.
    """
    rows = _chosen_simulator(rows, config)
    found = groups(rows, ("side", "policy"))
    keys = [*planned, *sorted(key for key in found if key not in planned)]
    members: dict[str, dict[str, Rows]] = {side.value: {} for side in Side}
    for side, policy in keys:
        members[side][policy] = found.get((side, policy), rows.take([]))
    compared = {side: _side(side, own, planned, config) for side, own in members.items() if own}
    simulated = compared.get(Side.SIM.value)
    if simulated is None:
        return tuple(compared.values())
    return tuple(
        result if result is simulated else _with_agreement(result, simulated, members, config)
        for result in compared.values()
    )


def _chosen_simulator(rows: Rows, config: MetricConfig) -> Rows:
    """Without simulation under other calibrations than the chosen one, if one is chosen."""
    if config.calibration is None or not is_calibrated(rows):
        return rows
    is_chosen = [config.calibration in (name, name_of(name)) for name in snapshots_of(rows)]
    return rows.take(np.array(is_chosen, dtype=bool) | (rows["side"] != Side.SIM.value))


def _with_agreement(
    physical: SideComparison,
    simulated: SideComparison,
    members: Mapping[str, Mapping[str, Rows]],
    config: MetricConfig,
) -> SideComparison:
    enough = [
        {own.policy for own in result.policies if own.coverage.is_sufficient}
        for result in (physical, simulated)
    ]
    found = rank_agreement(
        physical.side,
        members[physical.side],
        members[simulated.side],
        enough[0] & enough[1],
        config,
    )
    return replace(physical, agreement=found)


def _standing(policy: str, rows: Rows, planned: int | None, config: MetricConfig) -> Standing:
    coverage = coverage_of(rows, planned=planned, minimum=config.min_coverage)
    n_success = int(rows.succeeded.sum())
    success = success_of_rows(rows, config, exact=True)
    if not coverage.is_sufficient:
        success = replace(success, reason=coverage.text)
    return Standing(
        policy=policy,
        coverage=coverage,
        n_success=n_success,
        success=success,
        bounds=success_bounds(rows, coverage),
    )


def _side(
    side: str, members: Mapping[str, Rows], planned: Planned, config: MetricConfig
) -> SideComparison:
    attempts = attempts_of(members)
    by_name = {
        policy: replace(
            _standing(policy, rows, planned.get((side, policy)), config),
            n_conditions=len(np.unique(attempts[policy].condition)),
        )
        for policy, rows in members.items()
    }
    alpha = round(1.0 - config.level, 12)
    sufficient = {name for name, own in by_name.items() if own.coverage.is_sufficient}
    best_first = sorted(by_name, key=lambda name: -by_name[name].share)
    contrasts = [
        _best_first(attempts[a], attempts[b], config) for a, b in combinations(best_first, 2)
    ]
    p_values = {
        (one.first, one.second): one.p_value
        for one in contrasts
        if one.p_value is not None and sufficient.issuperset((one.first, one.second))
    }
    adjusted = dict(zip(p_values, holm(list(p_values.values())).tolist(), strict=True))
    # What a single pair can show is said for the strictest step of Holm's procedure.
    strictest = alpha / max(1, len(adjusted))
    pairs = tuple(
        _decided(one, adjusted.get((one.first, one.second)), strictest, alpha, by_name)
        for one in contrasts
    )
    return SideComparison(
        side=side,
        policies=_ranked(tuple(by_name.values()), pairs),
        pairs=pairs,
        n_compared=len(adjusted),
        alpha=alpha,
    )


def _best_first(a: Attempts, b: Attempts, config: MetricConfig) -> PolicyPair:
    """Two policies and how they differ, the one that did better in what is compared first."""
    found = contrast(a, b, config)
    return contrast(b, a, config) if (found.difference.value or 0.0) < 0.0 else found


def _decided(
    found: PolicyPair,
    p_holm: float | None,
    strictest: float,
    alpha: float,
    standings: Mapping[str, Standing],
) -> PolicyPair:
    """Two policies with the verdict, or why there is none."""
    verdict = could = reason = None
    if p_holm is not None:
        value = found.difference.value or 0.0
        shown = p_holm <= alpha and value != 0.0
        verdict = ("first" if value > 0.0 else "second") if shown else "undecided"
    else:
        both = (standings[found.first], standings[found.second])
        lacking = [own for own in both if not own.coverage.is_sufficient]
        reason = "; ".join(f"{own.policy}: {own.coverage.text}" for own in lacking)
        reason = reason or found.difference.reason
    if verdict == "undecided":
        could = detectable(found, strictest)
    return replace(
        found, p_holm=p_holm, verdict=verdict, detectable=could,
        least_deciding=least_deciding(found, strictest), reason=reason,
    )  # fmt: skip


def _ranked(standings: tuple[Standing, ...], pairs: tuple[PolicyPair, ...]) -> tuple[Standing, ...]:
    """The policies with their ranks; those with too few scored episodes have none."""
    names = [
        own.policy
        for own in sorted(standings, key=lambda own: -own.share)
        if own.coverage.is_sufficient
    ]
    if len(names) < 2:
        return standings  # without a rival a rank says nothing
    at = {name: index for index, name in enumerate(names)}
    better = np.zeros((len(names), len(names)), dtype=bool)
    for pair in pairs:
        if pair.winner is not None:
            loser = pair.second if pair.verdict == "first" else pair.first
            better[at[pair.winner], at[loser]] = True
    best, worst = rank_ranges(better)
    shared = dict(zip(names, letters(better), strict=True))
    return tuple(
        own
        if own.policy not in at
        else replace(
            own,
            rank_range=(int(best[at[own.policy]]), int(worst[at[own.policy]])),
            letters=shared[own.policy],
        )
        for own in standings
    )
