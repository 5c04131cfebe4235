"""Whether a simulator tells how a robot does, from matched simulated and physical episodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval import formulas
from robo_eval.core.errors import InputError
from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Side
from robo_eval.core.names import unknown_name
from robo_eval.core.wording import counted
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.frame import episodes_frame
from robo_eval.metrics.initial_state import state_difference
from robo_eval.metrics.performance import (
    CONDITION,
    numbered_by_seed,
    once_by_seed,
    success_estimate,
    success_of_rows,
)
from robo_eval.metrics.reliability import FEW_TASKS, successes_by_task
from robo_eval.metrics.tables import (
    Rows,
    groups,
    main_rows,
    matched_pairs,
    means_by,
    numbered,
    sort_key,
    split_by,
)
from robo_eval.metrics.tasks import VARIANT, task_label
from robo_eval.stats.clustered import new_cluster_difference, resampled_ratios
from robo_eval.stats.paired import (
    PairedTable,
    folded_interval,
    mcnemar_p,
    paired_table,
)
from robo_eval.stats.unconditional import pairs_interval, pairs_p

if TYPE_CHECKING:
    import pandas as pd

NAMES: Final[dict[str, str]] = {Side.REAL.value: "S2R", Side.TWIN.value: "S2S"}
"""What the agreement with each physical side is called: with a twin it is never S2R."""
NO_SIMULATION: Final = "no simulated episode"
SEVERAL: Final = "several calibrations, of which the settings choose none"
_SAME: Final = (
    "task", "level", "difficulty", "profile", "drift_step", "seed", "policy_digest",
)  # fmt: skip
"""What both episodes of a pair share."""
_CONTEXT: Final = ("family", VARIANT, "profile", "level", "difficulty")
_SEEDS: Final = "bootstrap_over_seeds"
_ROUNDING: Final = 1e-9
_LEAST_SEEDS: Final = 3
_FEW_SEEDS: Final = 8
"""Resampling fewer clusters gives intervals that cover less than they say."""
_CONTEXTS: Final = "bootstrap_within_contexts"
_DEFAULT: Final = MetricConfig()


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How simulated success compares with that of a physical side.

    Attributes:
        name: `S2R` for a robot, `S2S` for a twin.
        agreement: 1 less the distance of the two success rates.
        ar_sim: Simulated success: of the pairs, or in the mixture of contexts met physically.
        ar_physical: Success of the same episodes, or contexts, on the physical side.
        new_task: The same in tasks like these; `n` is the number of tasks.
        difference: Physical less simulated success.
        p_value: Two-sided p of the exact test of pairs; None without pairs.
        matching: `pairs` or `contexts`.
        n_pairs: Pairs in which both episodes are scored; 0 without pairs.
        n_unpaired: Scored physical episodes without a scored partner.
        families: Agreement of each task family; marginal rates can hide errors that cancel.
        worst_family: The family that agrees least; None with fewer than two.
        uncovered_mass: Share of the physical episodes in contexts that were not simulated.
        effective_sample_size: Simulated episodes the weights leave; None with pairs.
        offered: Physical episodes that could be pairs: each has one simulated episode of the same
            policy, task, level and seed, and neither has a `pair_id`.
        mcnemar_p: McNemar's exact p, which takes the number of discordant pairs as given.
    """

    name: str
    agreement: Estimate
    new_task: Estimate
    ar_sim: Estimate
    ar_physical: Estimate
    difference: Estimate
    p_value: float | None
    matching: str
    n_pairs: int
    n_unpaired: int
    families: dict[str, Estimate]
    worst_family: str | None
    uncovered_mass: float | None
    effective_sample_size: float | None
    offered: int = 0
    mcnemar_p: float | None = None

    @property
    def unpaired(self) -> float:
        """Share of the physical episodes without a partner; 0 where contexts are compared."""
        return (self.uncovered_mass or 0.0) if self.matching == "pairs" else 0.0


def sim_to_real(
    episodes: pd.DataFrame, *, side: str = Side.REAL, config: MetricConfig = _DEFAULT
) -> Estimate:
    """Sim-to-real agreement: 1 less the distance of real and simulated success rates.

    Args:
        episodes: Episodes of both sides; see `compare_sides`.
        side: `real` for S2R, `twin` for S2S.
        config: Settings of the interval.
    """
    return compare_sides(episodes, side=side, config=config).agreement


def compare_sides(
    episodes: pd.DataFrame, *, side: str = Side.REAL, config: MetricConfig = _DEFAULT
) -> Agreement:
    """Compare simulated with physical episodes, by pairs or else by context.

    Where episodes carry a `pair_id`, pairs are compared: the same task, level, seed, policy and
    initial state on both sides. The bootstrap then draws pairs, so that what both sides share
    cancels. Without pairs, simulated success is averaged in the mixture of contexts (family,
    level, difficulty) met physically, and each side is drawn within its contexts.

    Args:
        episodes: Episodes with the columns of `core.episode.COLUMNS`; controls are left out.
        side: `real` or `twin`: which physical side simulation is compared with.
        config: Settings of the intervals.

    Raises:
        InputError: If the table is not as described, or the episodes of a pair differ in what
            they must share; the message names pair and column.

    References:
        Chojecki (2025), arXiv:2511.13411, section 7, asks for matched conditions.
    """
    if side not in NAMES:
        raise unknown_name("side", side, NAMES)
    return compare_rows(main_rows(episodes_frame(episodes)), str(Side(side).value), config)


def compare_rows(rows: Rows, side: str, config: MetricConfig) -> Agreement:
    """`compare_sides` of rows that were checked and cut to the main arm already."""
    physical, simulated = (
        rows.take((rows["side"] == name) & rows.scored) for name in (side, Side.SIM.value)
    )
    is_paired = not physical.missing("pair_id").all()
    compare = _by_pairs if is_paired else _by_contexts
    found = compare(NAMES[side], physical, simulated, config)
    return found if is_paired else replace(found, offered=_offered(rows, side))


def _offered(rows: Rows, side: str) -> int:
    known = rows.take(rows.scored & rows.missing("pair_id") & ~rows.missing("seed"))
    number, first = numbered(known, ("policy", "task", *_CONTEXT, "drift_step", "seed"))
    one, other = (
        np.bincount(number[known["side"] == name], minlength=len(first))
        for name in (side, Side.SIM.value)
    )
    return int(((one == 1) & (other == 1)).sum())


def offer_text(offered: int) -> str:
    """How episodes on both sides become pairs, for people; empty if there are none to offer."""
    if not offered:
        return ""
    have = "episode has" if offered == 1 else "episodes have"
    return (
        f"{offered} {have} a simulated one of the same policy, task, level and seed, and no"
        " pair_id: if both began in the same state, give the two one pair_id, in a column that"
        " columns: {pair_id: ...} of the map names, and import again to compare them as pairs"
    )


def _families(rows: Rows) -> list[tuple[str, NDArray[np.intp]]]:
    """Rows of each task, by what it is called, in order of the names."""
    number, first = numbered(rows, ("family", VARIANT))
    found: dict[str, list[NDArray[np.intp]]] = {}
    for row, own in zip(first, split_by(number, len(first)), strict=True):
        label = task_label(str(rows["family"][row]), str(rows[VARIANT][row]))
        found.setdefault(label, []).append(own)
    return [(label, np.concatenate(found[label])) for label in sorted(found)]


def _of_new_tasks(difference: Estimate, agreement: Estimate) -> Estimate:
    """Agreement in tasks like these, from the difference; none where these tasks have none."""
    if agreement.value is None:
        return replace(agreement, n=difference.n)
    if difference.value is None:
        return replace(difference, reason=FEW_TASKS)
    return replace(_folded(difference), reason=agreement.reason)


def _worst(families: Mapping[str, Estimate]) -> str | None:
    known = {name: found.value for name, found in families.items() if found.value is not None}
    return min(known, key=lambda name: (known[name], name)) if len(known) > 1 else None


# Pairs -------------------------------------------------------------------------------------------


def _by_pairs(name: str, physical: Rows, simulated: Rows, config: MetricConfig) -> Agreement:
    for rows in (physical, simulated):
        _check_single(rows)
    mine, partners = matched_pairs(physical, simulated)
    # Row i of one belongs to row i of the other.
    one, other = physical.take(mine), simulated.take(partners)
    _check_alike(one, other)
    families = {
        family: _of_pairs(one.take(own), other.take(own), config).agreement
        for family, own in _families(one)
    }
    found = _of_pairs(one, other, config)
    unpaired = len(physical) - len(one)
    uncovered = unpaired / len(physical) if len(physical) else None
    agreement = found.agreement
    if uncovered is not None and uncovered > config.max_unmatched + _ROUNDING:
        # Whoever chose the pairs chose the agreement.
        agreement = Estimate.missing(
            reason=f"unmatched: {uncovered:.0%} of the scored physical episodes have no scored"
            " simulated partner",
            unit="ratio",
            n=len(one),
        )
    unpaired_rows = np.ones(len(physical), dtype=np.bool_)
    unpaired_rows[mine] = False
    for family, own in _families(physical):
        if family in families:
            share = float(unpaired_rows[own].mean())
            families[family] = _less_unpaired(families[family], share)
    only_real, pairs = successes_by_task(one, one.succeeded & ~other.succeeded)
    only_sim, _ = successes_by_task(one, other.succeeded & ~one.succeeded)
    return Agreement(
        name=name,
        agreement=_less_unpaired(agreement, uncovered),
        new_task=_less_unpaired(
            _of_new_tasks(
                new_cluster_difference(only_real, only_sim, pairs, level=config.level), agreement
            ),
            uncovered,
        ),
        ar_sim=found.sim,
        ar_physical=found.real,
        difference=found.difference,
        p_value=found.p_value,
        mcnemar_p=found.mcnemar_p,
        matching="pairs",
        n_pairs=len(one),
        n_unpaired=unpaired,
        families=families,
        worst_family=_worst(families),
        uncovered_mass=uncovered,
        effective_sample_size=None,
    )


def _less_unpaired(found: Estimate, share: float | None) -> Estimate:
    """Agreement when physical episodes without a partner count as disagreement.

    Args:
        found: Agreement of the pairs.
        share: Share of the physical episodes without a scored partner; None without any.
    """
    if not share or found.value is None:
        return found

    def less(end: float | None) -> float | None:
        return None if end is None else (1.0 - share) * end

    text = f"{share:.1%} of the physical episodes have no scored partner and count as disagreement"
    return replace(
        found,
        value=(1.0 - share) * found.value,
        low=less(found.low),
        high=less(found.high),
        reason="; ".join(filter(None, (found.reason, text))),
    )


def _check_single(rows: Rows) -> None:
    """Refuse a pair with two scored episodes on one side."""
    first = numbered(rows, ("pair_id",))[1]
    again = np.ones(len(rows), dtype=np.bool_)
    again[first] = False
    again &= ~rows.missing("pair_id")
    if again.any():
        row = int(np.flatnonzero(again)[0])
        pair, side = rows["pair_id"][row], rows["side"][row]
        raise InputError(f"pair {pair!r} has two scored episodes on side {side}; it needs one")


def _check_alike(one: Rows, other: Rows) -> None:
    """Refuse pairs whose episodes differ in what they must share, the first by name."""
    clashes = []
    for column in _SAME:
        a, b = one[column], other[column]
        # What another lab did not log cannot contradict.
        known = np.flatnonzero(~(one.missing(column) | other.missing(column)))
        clash = known[np.asarray(a[known] != b[known], dtype=np.bool_)]
        if len(clash):
            row = min(clash, key=lambda row: str(one["pair_id"][row]))
            clashes.append((str(one["pair_id"][row]), row, column))
    if clashes:
        pair, row, column = min(clashes, key=lambda clash: clash[0])
        raise InputError(
            f"pair {pair!r}: {column} is {one[column][row]!r} on side {one['side'][row]} and"
            f" {other[column][row]!r} on side {other['side'][row]}; a pair shares it"
        )
    for row, states in enumerate(zip(one["initial_state"], other["initial_state"], strict=True)):
        difference = state_difference(*states)
        if difference is not None:
            field, here, there = difference
            raise InputError(
                f"pair {one['pair_id'][row]!r}: initial_state.{field} is {here!r} on side"
                f" {one['side'][row]} and {there!r} on side {other['side'][row]}; the simulator"
                " starts a pair from the state the physical episode started in"
            )


@dataclass(frozen=True, slots=True)
class _Compared:
    real: Estimate
    sim: Estimate
    difference: Estimate
    agreement: Estimate
    p_value: float | None = None
    mcnemar_p: float | None = None
    sizes: tuple[int, int] = (0, 0)
    """Physical and simulated observations, where contexts are compared."""


def _of_pairs(physical: Rows, simulated: Rows, config: MetricConfig) -> _Compared:
    """Compare row i of one with row i of the other."""
    n = len(physical)
    if not n:
        none = Estimate.missing(reason="no pair with both episodes scored", unit="ratio")
        return _Compared(none, none, none, none)
    real, sim = physical.succeeded, simulated.succeeded
    table = paired_table(real, sim)
    clusters = _clusters(physical)
    p_value = given = None  # pairs of one seed are not independent
    if clusters is None:
        difference = _difference(table, config)
        agreement = _folded(difference)
        p_value = pairs_p(table.only_first, table.only_second, n)
        given = mcnemar_p(table.only_first, table.only_second)
    else:
        once = once_by_seed(physical, difference=real.astype(np.float64) - sim)
        difference, agreement = _of_clusters(once, n, config)
    return _Compared(
        real=success_of_rows(physical, config, exact=True),
        sim=success_of_rows(simulated, config, exact=True),
        difference=difference,
        agreement=agreement,
        p_value=p_value,
        mcnemar_p=given,
    )


def _clusters(rows: Rows) -> NDArray[np.intp] | None:
    """Number of the seed of each pair; None where every pair has a seed of its own, or none."""
    if rows.missing("seed").any():
        return None
    names, numbers = np.unique(rows["seed"].astype(np.int64), return_inverse=True)
    return None if len(names) == len(rows) else numbers


def _difference(table: PairedTable, config: MetricConfig) -> Estimate:
    low, high = pairs_interval(table.only_first, table.only_second, table.n, level=config.level)
    value = (table.only_first - table.only_second) / table.n
    return _share(value, low, high, table.n, "pairs_exact", config)


def _folded(difference: Estimate) -> Estimate:
    """Agreement, 1 - |difference|, with the interval of the difference folded at 0."""
    assert difference.value is not None
    value, low, high = difference.value, difference.low, difference.high
    if low is None or high is None:
        return replace(difference, value=1.0 - abs(value))
    low, high = folded_interval(low, high)
    return replace(
        difference,
        value=1.0 - abs(value),
        low=low,
        high=high,
        method=f"folded_{difference.method}",
    )


def _of_clusters(once: Rows, n: int, config: MetricConfig) -> tuple[Estimate, Estimate]:
    """Difference and agreement of n pairs that share their seeds: seeds are drawn, not pairs."""
    differences = once["difference"]
    clusters = np.unique(once["seed"].astype(np.int64), return_inverse=True)[1]
    n_seeds, value = int(clusters.max()) + 1, float(np.sort(differences).mean())
    if n_seeds < _LEAST_SEEDS:
        reason = f"{counted(n_seeds, 'seed')}, shared by all pairs, say too little"
        alone = Estimate(
            value=value, level=config.level, n=n, method="none", unit="ratio", reason=reason
        )
        return alone, replace(alone, value=1.0 - abs(value))
    if not differences.any():
        # Resampling shows no spread where all agree; each seed then counts as one pair that does.
        low, high = pairs_interval(0, 0, n_seeds, level=config.level)
        difference = _share(value, low, high, n, "pairs_exact_over_seeds", config)
        return difference, _folded(difference)
    order = np.lexsort((differences, clusters))  # so that sums do not depend on that of the rows
    sums = np.bincount(clusters[order], weights=differences[order], minlength=n_seeds)
    sizes = np.bincount(clusters, minlength=n_seeds)
    drawn = resampled_ratios(sums, sizes, resamples=config.resamples, seed=config.seed)
    note = f"{n_seeds} seeds: the interval is too narrow" if n_seeds < _FEW_SEEDS else None
    difference = _share(value, *_ends(drawn, config), n, _SEEDS, config)
    difference = replace(difference, reason=note)
    return difference, _folded(difference)


def _ends(drawn: NDArray[np.float64], config: MetricConfig) -> tuple[float, float]:
    tail = (1.0 - config.level) / 2.0
    low, high = np.quantile(drawn, [tail, 1.0 - tail])
    return float(low), float(high)


def _share(
    value: float, low: float, high: float, n: int, method: str, config: MetricConfig
) -> Estimate:
    return Estimate(
        value=value, low=low, high=high, level=config.level, n=n, method=method, unit="ratio"
    )


# Contexts ----------------------------------------------------------------------------------------


def _by_contexts(name: str, physical: Rows, simulated: Rows, config: MetricConfig) -> Agreement:
    others = dict(_families(simulated))
    compared = {
        family: _of_contexts(physical.take(mine), simulated.take(others.get(family, [])), config)[0]
        for family, mine in _families(physical)
    }
    families = {family: one.agreement for family, one in compared.items()}
    found, uncovered, effective = _of_contexts(physical, simulated, config)
    met = [one for one in compared.values() if one.agreement.value is not None]
    rates = [np.array([one.real.value, one.sim.value], dtype=np.float64) for one in met]
    sizes = [one.sizes for one in met]
    return Agreement(
        name=name,
        agreement=found.agreement,
        new_task=_of_new_tasks(
            new_cluster_difference(
                *np.array(rates).reshape(-1, 2).T * np.array(sizes).reshape(-1, 2).T,
                *np.array(sizes).reshape(-1, 2).T,
                level=config.level,
            ),
            found.agreement,
        ),
        ar_sim=found.sim,
        ar_physical=found.real,
        difference=found.difference,
        p_value=None,
        matching="contexts",
        n_pairs=0,
        n_unpaired=len(physical),
        families=families,
        worst_family=_worst(families),
        uncovered_mass=uncovered,
        effective_sample_size=effective,
    )


def _of_contexts(
    physical: Rows, simulated: Rows, config: MetricConfig
) -> tuple[_Compared, float | None, float | None]:
    """Rates and agreement in the mixture of contexts met physically."""
    real, sim = _counts(physical), _counts(simulated)
    covered = [context for context in real if context in sim]
    n_real, n_sim = len(physical), sum(sim[context][2] for context in covered)
    if not covered:
        reason = (
            "no scored physical episode" if not n_real else "unmatched: no context was simulated"
        )
        none = Estimate.missing(reason=reason, unit="ratio", n=n_real)
        return _Compared(none, none, none, none), (1.0 if n_real else None), None
    is_met = np.array([context in sim for context in groups(physical, _CONTEXT)])
    is_covered = is_met[numbered(physical, _CONTEXT)[0]]
    k_real, m, of_real = np.array([real[context] for context in covered]).T
    k_sim, n, _ = np.array([sim[context] for context in covered]).T
    found = formulas.s2r_reweighted(
        {context: k / size for context, (k, size, _) in sim.items()},
        {context: size for context, (_, size, _) in real.items()},
        {context: k / size for context, (k, size, _) in real.items()},
        n_sim_by_context={context: size for context, (_, size, _) in sim.items()},
        max_uncovered_mass=config.max_unmatched,
    )
    rng = np.random.default_rng(config.seed)
    total = int(m.sum())
    mixtures = rng.multinomial(total, m / total, config.resamples)
    sim_rates = rng.binomial(n.astype(np.int64), k_sim / n, (config.resamples, len(n))) / n
    real_drawn = rng.binomial(mixtures, k_real / m).sum(axis=1) / total
    sim_drawn = (mixtures * sim_rates).sum(axis=1) / total
    value, sim_value = float(k_real.sum() / total), found["ar_sim_reweighted"]
    assert sim_value is not None
    note = _effective_note(found.get("effective_sample_size"), config.min_effective_size)

    both = int(of_real.sum()) + n_sim

    def estimate(point: float, drawn: NDArray[np.float64], size: int = both) -> Estimate:
        low, high = _ends(drawn, config)
        if low == high:
            reason = "all outcomes are alike; resampling shows no spread"
            return Estimate(value=point, n=size, method="none", unit="ratio", reason=reason)
        return replace(_share(point, low, high, size, _CONTEXTS, config), reason=note)

    compared = _Compared(
        real=success_estimate(round(k_real.sum()), total, exact=True, level=config.level)
        if total == of_real.sum()
        else success_of_rows(physical.take(is_covered), config, exact=True),
        sim=estimate(sim_value, sim_drawn, n_sim),
        difference=estimate(value - sim_value, real_drawn - sim_drawn),
        agreement=Estimate.missing(
            reason=f"unmatched: {found['uncovered_mass']:.0%} of the physical episodes are in"
            " contexts that were not simulated",
            unit="ratio",
            n=n_real,
        )
        if found["s2r"] is None
        else _folded(estimate(value - sim_value, real_drawn - sim_drawn)),
        sizes=(total, int(n.sum())),
    )
    return compared, found["uncovered_mass"], found.get("effective_sample_size")


def _counts(rows: Rows) -> dict[tuple[Any, ...], tuple[float, int, int]]:
    """Successes, observations and scored episodes by context, in a fixed order.

    A seed that repeats is one observation, which counts by its share.
    """
    found = {}
    for key, own in sorted(groups(rows, _CONTEXT).items(), key=lambda item: sort_key(item[0])):
        number, first = numbered_by_seed(own, CONDITION)
        shares = means_by(number, own.succeeded.astype(np.float64), len(first))
        found[key] = float(np.sort(shares).sum()), len(first), len(own)
    return found


def _effective_note(size: float | None, least: float) -> str | None:
    if size is None or size >= least:
        return None
    return f"effective sample size {size:.0f} of simulated episodes is below {least:g}"
