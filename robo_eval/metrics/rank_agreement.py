"""Whether simulation ranks policies as a physical side does."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.estimate import Estimate
from robo_eval.metrics.calibrated import is_calibrated, snapshots_of
from robo_eval.metrics.frame import is_missing
from robo_eval.metrics.performance import CONDITION, once_by_seed, share_by_seed
from robo_eval.metrics.tables import Rows
from robo_eval.stats.agreement import no_ranking, ranking_agreement

if TYPE_CHECKING:
    from robo_eval.metrics.config import MetricConfig

_CONTEXT = tuple(name for name in CONDITION if name != "side")
_FEW = "of so few policies, any order proves little"
_ENOUGH = 4
_MIXED = "simulated under several calibrations; choose one by metrics.calibration"
_SHARED = "episodes that share a seed are resampled one by one, so it is too narrow"


@dataclass(frozen=True, slots=True, kw_only=True)
class RankAgreement:
    """How the ranking of policies in simulation compares with that on a physical side.

    Attributes:
        side: The physical side, `real` or `twin`.
        policies: Policies that are compared.
        left_out: Policies that are not: scored on one side only, or too few episodes of them.
        sim: Success of each in simulation.
        physical: Success of each on the physical side.
        matching: `pairs`, or `conditions` that both sides played.
        mmrv: Mean maximum rank violation; 0 is the same order. Resampled violations lie above
            the measured one, so its upper end is the one to read.
        pearson: Correlation of the success rates; none below four policies.
    """

    side: str
    policies: tuple[str, ...]
    left_out: tuple[str, ...]
    sim: tuple[float, ...]
    physical: tuple[float, ...]
    matching: str
    mmrv: Estimate
    pearson: Estimate


def rank_agreement(
    side: str,
    physical: Mapping[str, Rows],
    simulated: Mapping[str, Rows],
    sufficient: Collection[str],
    config: MetricConfig,
) -> RankAgreement:
    """Compare two rankings of the same policies.

    Episodes that share a `pair_id` are compared as pairs if every policy has such; else all
    episodes in conditions that both sides played.

    Args:
        side: The physical side.
        physical: Rows of each policy on it.
        simulated: Rows of each policy in simulation.
        sufficient: Policies with enough scored episodes on both sides.
        config: Settings of the intervals.
    """
    names = [name for name in physical if name in sufficient and name in simulated]
    is_mixed = any(_is_mixed(simulated[name]) for name in names)
    if is_mixed:
        names = []
    pairs = {name: _pairs(simulated[name], physical[name]) for name in names}
    is_paired = all(len(sim) for sim, _ in pairs.values()) and bool(pairs)
    found = pairs if is_paired else {n: _alike(simulated[n], physical[n]) for n in names}
    kept = [name for name in names if min(len(rows) for rows in found[name])]
    shares = [_shares(*found[name], is_paired=is_paired) for name in kept]
    sim, real = [one for one, _ in shares], [other for _, other in shares]
    result = ranking_agreement(
        sim,
        real,
        paired=is_paired,
        level=config.level,
        resamples=config.resamples,
        seed=config.seed,
    )
    if is_mixed:
        result = no_ranking(0, _MIXED, config.level)
    note = _SHARED if any(_shares_seeds(found[name][1]) for name in kept) else None
    return RankAgreement(
        side=side,
        policies=tuple(kept),
        left_out=tuple(n for n in dict.fromkeys((*physical, *simulated)) if n not in kept),
        sim=tuple(float(np.mean(values)) for values in sim),
        physical=tuple(float(np.mean(values)) for values in real),
        matching="pairs" if is_paired else "conditions",
        mmrv=_noted(result.mmrv, _FEW if len(kept) < _ENOUGH else None, note),
        pearson=_noted(result.pearson, note),
    )


def _is_mixed(rows: Rows) -> bool:
    return is_calibrated(rows) and len(set(snapshots_of(rows))) > 1


def _pairs(simulated: Rows, physical: Rows) -> tuple[Rows, Rows]:
    """Scored rows that share a pair, row i of one with row i of the other."""
    mine, others = (
        {
            pair: row
            for row, (pair, is_scored) in enumerate(zip(rows["pair_id"], rows.scored, strict=True))
            if is_scored and not is_missing(pair)
        }
        for rows in (simulated, physical)
    )
    shared = sorted(mine.keys() & others.keys())
    return simulated.take([mine[pair] for pair in shared]), physical.take(
        [others[pair] for pair in shared]
    )


def _alike(simulated: Rows, physical: Rows) -> tuple[Rows, Rows]:
    """Scored rows in conditions that both sides played."""
    names = [
        list(zip(*(rows[name] for name in _CONTEXT), strict=True)) for rows in (simulated, physical)
    ]
    shared = set(names[0]) & set(names[1])
    sim, real = (
        rows.take(np.array([name in shared for name in own], dtype=bool) & rows.scored)
        for rows, own in zip((simulated, physical), names, strict=True)
    )
    return sim, real


def _shares(
    sim: Rows, real: Rows, *, is_paired: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Share of successes of each seed in each condition on both sides."""
    if not is_paired:
        return share_by_seed(sim)["share"], share_by_seed(real)["share"]
    one, other = (rows.succeeded.astype(np.float64) for rows in (sim, real))
    once = once_by_seed(real, sim=one, real=other)
    return once["sim"], once["real"]


def _shares_seeds(rows: Rows) -> bool:
    seeds = [seed for seed in rows["seed"] if not is_missing(seed)]
    return len(set(seeds)) < len(seeds)


def _noted(found: Estimate, *notes: str | None) -> Estimate:
    if found.value is None:
        return found
    return replace(found, reason="; ".join(note for note in (found.reason, *notes) if note))
