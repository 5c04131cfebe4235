"""What pairs of a physical and a simulated episode say together: E, a sharper rate, conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Side
from robo_eval.metrics.agreement import NO_SIMULATION
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.embodiment import embodiment_score
from robo_eval.metrics.frame import is_missing
from robo_eval.metrics.performance import once_by_seed, success_of_rows
from robo_eval.metrics.tables import Rows, groups, matched_pairs, numbered, sort_key, split_by
from robo_eval.metrics.tasks import VARIANT, task_label
from robo_eval.stats.joint import sim_real_intervals
from robo_eval.stats.prediction_powered import prediction_powered_rate

_CONTEXT = ("family", VARIANT, "profile", "level", "difficulty")


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
    clusters: NDArray[np.intp] | None
    contexts: Counter[Hashable]
    sim_only: NDArray[np.bool_]
    sim_only_contexts: Counter[Hashable]


def paired_outcomes(rows: Rows, side: str) -> Paired:
    """Pair the scored episodes of one policy.

    Args:
        rows: Rows of `main_rows` of one policy.
        side: `real` or `twin`.
    """
    physical = rows.take((rows["side"] == side) & rows.scored)
    simulated = rows.take((rows["side"] == Side.SIM.value) & rows.scored)
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
        clusters=_seeds(one),
        contexts=_contexts(one),
        sim_only=rest.succeeded,
        sim_only_contexts=_contexts(rest),
    )


def _seeds(rows: Rows) -> NDArray[np.intp] | None:
    seeds = rows["seed"]
    if not len(seeds) or rows.missing("seed").any():
        return None
    names, numbers = np.unique(seeds.astype(np.int64), return_inverse=True)
    return None if len(names) == len(seeds) else numbers.astype(np.intp)


def _contexts(rows: Rows) -> Counter[Hashable]:
    number, first = numbered(rows, _CONTEXT)
    columns = [rows[name][first].tolist() for name in _CONTEXT]
    sizes = np.bincount(number, minlength=len(first)).tolist()
    return Counter(dict(zip(zip(*columns, strict=True), sizes, strict=True)))


def embodiment_of(
    paired: Paired | None,
    ar: Estimate,
    ss: Estimate,
    s2r: Estimate | None,
    config: MetricConfig,
    *,
    unpaired: float = 0.0,
) -> Estimate:
    """Embodiment score E by the joint bootstrap: each resample of pairs feeds AR and S2R alike.

    The safety score does not come from the pairs. Its interval is taken at both ends, so that E
    covers at least as often as it says. Without pairs E has the ends of its parts.

    Args:
        paired: The pairs; None where they are not resampled.
        ar: Reliability of all physical episodes.
        ss: Safety score.
        s2r: Agreement; None where simulation is not compared.
        config: Settings.
        unpaired: Share of the physical episodes without a partner: with any, the pairs do not hold
            what S2R counts against it.
    """
    if s2r is None:
        s2r = Estimate.missing(reason=NO_SIMULATION, unit="ratio")
    score = embodiment_score(ar, ss, s2r)
    if score.value is None or paired is None or not len(paired.sim) or unpaired:
        return score
    ends = []
    for safety in (ss.low, ss.high):
        if safety is None:
            return score
        found = sim_real_intervals(
            paired.sim,
            paired.real,
            safety=safety,
            clusters=paired.clusters,
            level=config.level,
            resamples=config.resamples,
            seed=config.seed,
        ).index
        ends.append(found)
    low, high = ends[0].low, ends[1].high
    # With a safety score of 0 at its lower end E is 0 there, and resamples have no spread.
    if ss.low == 0.0:
        low = 0.0
    if low is None or high is None:
        return score
    return Estimate(
        value=score.value,
        low=min(low, score.value),
        high=max(high, score.value),
        level=config.level,
        n=len(paired.sim),
        method="joint_bootstrap",
        unit="ratio",
        reason=ends[1].reason,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharpened:
    """A physical rate estimated with the help of simulated episodes without a partner.

    Attributes:
        estimate: With them; never for a safety gate.
        plain: Of the pairs alone.
        correlation: Of both sides over the pairs; None where a side is constant.
        n_sim_only: Simulated episodes without a partner.
    """

    estimate: Estimate
    plain: Estimate
    correlation: float | None
    n_sim_only: int


def sharpened_rate(paired: Paired, config: MetricConfig) -> Sharpened | None:
    """Prediction-powered rate of one policy on a physical side.

    It holds only if pairs and further simulated episodes come from one mixture of conditions: more
    than `max_unmatched` of the one in conditions that the other has less of, and there is none.

    Args:
        paired: The pairs.
        config: Settings.

    Returns:
        None if there are no pairs, or fewer than two simulated episodes without a partner.
    """
    n, n_more = len(paired.sim), len(paired.sim_only)
    if not n or n_more < 2:
        return None
    found = prediction_powered_rate(paired.real, paired.sim, paired.sim_only, level=config.level)
    apart = _distance(paired.contexts, paired.sim_only_contexts)
    estimate = found.estimate
    if apart > config.max_unmatched:
        estimate = Estimate.missing(
            reason=f"pairs and further simulated episodes differ in {apart:.0%} of their"
            " conditions; both must come from one mixture",
            unit="ratio",
            n=n,
        )
    elif paired.clusters is not None:
        estimate = Estimate.missing(
            reason="pairs share their seeds; the estimate needs independent ones", unit="ratio", n=n
        )
    return Sharpened(
        estimate=estimate,
        plain=found.plain,
        correlation=found.correlation,
        n_sim_only=n_more,
    )


def _distance(first: Counter[Hashable], second: Counter[Hashable]) -> float:
    """Total variation distance of two mixtures, from 0 (the same) to 1 (nothing in common)."""
    n, m = first.total(), second.total()
    return 0.5 * sum(abs(first[key] / n - second[key] / m) for key in first.keys() | second.keys())


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionRates:
    """Success of one policy in one condition that both sides met.

    Attributes:
        task: What it is called.
        profile: Its profile; None if not known.
        level: Novelty level; None for a task without levels.
        difficulty: Difficulty; None for a task without.
        physical: Share of strict successes on the robot or its twin, with the exact interval.
        sim: The same of the simulator.
        is_paired: Whether both are of the same pairs; else each side has episodes of its own.
    """

    task: str
    profile: str | None
    level: int | None
    difficulty: str | None
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
    physical = rows.take((rows["side"] == side) & rows.scored)
    simulated = rows.take((rows["side"] == Side.SIM.value) & rows.scored)
    is_paired = not physical.missing("pair_id").all()
    both = _by_their_pairs if is_paired else _by_their_contexts
    found = both(physical, simulated)
    return tuple(
        ConditionRates(
            task=task_label(str(family), str(variant)),
            profile=_known(profile),
            level=_known(level),
            difficulty=_known(difficulty),
            physical=success_of_rows(one, config, exact=True),
            sim=success_of_rows(other, config, exact=True),
            is_paired=is_paired,
        )
        for (family, variant, profile, level, difficulty), one, other in sorted(
            found, key=lambda item: sort_key(item[0])
        )
    )


_Condition = tuple[tuple[Any, ...], Rows, Rows]
"""Values of the columns of a context; physical and simulated episodes."""


def _by_their_pairs(physical: Rows, simulated: Rows) -> list[_Condition]:
    mine, partners = matched_pairs(physical, simulated)
    one, other = physical.take(mine), simulated.take(partners)
    number, first = numbered(one, _CONTEXT)
    return [
        (tuple(one[name][row] for name in _CONTEXT), one.take(own), other.take(own))
        for row, own in zip(first, split_by(number, len(first)), strict=True)
    ]


def _by_their_contexts(physical: Rows, simulated: Rows) -> list[_Condition]:
    here, there = groups(physical, _CONTEXT), groups(simulated, _CONTEXT)
    return [(key, here[key], there[key]) for key in here if key in there]


def _known(value: Any) -> Any:  # noqa: ANN401 - a cell
    return None if is_missing(value) else value
