"""Physical and simulated episodes side by side: pair by pair, and condition by condition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Side
from robo_eval.core.number import Condition
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.frame import is_missing
from robo_eval.metrics.performance import CONTEXT, once_by_seed, success_of_rows
from robo_eval.metrics.tables import Rows, groups, matched_pairs, numbered, sort_key
from robo_eval.metrics.tasks import task_label


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """Outcomes of the pairs of one policy in which both episodes are scored.

    Attributes:
        sim: Simulated successes, shape (n,); shares where a seed repeats in a condition.
        real: Physical ones, shape (n,).
        clusters: Number of the seed of each pair where pairs share seeds, else None.
        contexts: Pairs by context.
        sim_only: Successes of scored simulated episodes without a partner.
        sim_only_contexts: These by context.
    """

    sim: NDArray[np.float64]
    real: NDArray[np.float64]
    clusters: NDArray[np.int64] | None
    contexts: Counter[Hashable]
    sim_only: NDArray[np.bool_]
    sim_only_contexts: Counter[Hashable]

    @property
    def apart(self) -> float:
        """Total variation distance of the two mixtures of contexts, from 0 (the same) to 1."""
        one, other = self.contexts, self.sim_only_contexts
        n, m = one.total(), other.total()
        return 0.5 * sum(abs(one[key] / n - other[key] / m) for key in one.keys() | other.keys())


def paired_outcomes(rows: Rows, side: str) -> Paired:
    """Pair the scored episodes of one policy.

    Args:
        rows: Rows of `main_rows` of one policy.
        side: `real` or `twin`.
    """
    physical, simulated = rows.scored_on(side), rows.scored_on(Side.SIM)
    mine, partners = matched_pairs(physical, simulated)
    real, sim = physical.take(mine).succeeded, simulated.take(partners).succeeded
    one = once_by_seed(
        physical.take(mine), real=real.astype(np.float64), sim=sim.astype(np.float64)
    )
    is_rest = np.ones(len(simulated), dtype=np.bool_)
    is_rest[partners] = False
    rest = simulated.take(is_rest)
    return Paired(
        sim=one["sim"],
        real=one["real"],
        clusters=one.codes("seed").code if one.share_seeds else None,
        contexts=_contexts(one),
        sim_only=rest.succeeded,
        sim_only_contexts=_contexts(rest),
    )


def _contexts(rows: Rows) -> Counter[Hashable]:
    number, first = numbered(rows, CONTEXT)
    columns = [rows[name][first].tolist() for name in CONTEXT]
    sizes = np.bincount(number, minlength=len(first)).tolist()
    return Counter(dict(zip(zip(*columns, strict=True), sizes, strict=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionRates:
    """Success of one policy in one condition that both sides met.

    Attributes:
        at: The condition.
        physical: Share of strict successes on the robot or its twin, with the exact interval.
        sim: The same of the simulator.
        is_paired: Whether both are of the same pairs; else each side has episodes of its own.
    """

    at: Condition
    physical: Estimate
    sim: Estimate
    is_paired: bool


def by_condition(rows: Rows, side: str, config: MetricConfig) -> tuple[ConditionRates, ...]:
    """Physical and simulated success in each condition that both sides met.

    Where episodes carry a `pair_id`, only pairs of which both episodes are scored count, and the
    condition is that of the physical one. Without pairs each side counts all its scored episodes.

    Args:
        rows: Rows of `main_rows` of one policy, under one calibration.
        side: `real` or `twin`.
        config: Settings.

    Returns:
        The conditions in order of task, profile, level and difficulty; none without common ones.
    """
    physical, simulated = rows.scored_on(side), rows.scored_on(Side.SIM)
    is_paired = not physical.missing("pair_id").all()
    if is_paired:
        mine, partners = matched_pairs(physical, simulated)
        here = groups(physical.take(mine).having(partner=partners), CONTEXT)
        found = [(key, one, simulated.take(one["partner"])) for key, one in here.items()]
    else:
        here, there = groups(physical, CONTEXT), groups(simulated, CONTEXT)
        found = [(key, here[key], there[key]) for key in here if key in there]
    return tuple(
        ConditionRates(
            at=Condition(
                task=task_label(str(family), str(variant)),
                profile=_known(profile),
                level=_known(level),
                difficulty=_known(difficulty),
            ),
            physical=success_of_rows(one, config, exact=True),
            sim=success_of_rows(other, config, exact=True),
            is_paired=is_paired,
        )
        for (family, variant, profile, level, difficulty), one, other in sorted(
            found, key=lambda item: sort_key(item[0])
        )
    )


def _known(value: Any) -> Any:
    return None if is_missing(value) else value
