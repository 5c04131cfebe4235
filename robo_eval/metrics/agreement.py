"""Whether a simulator tells how a robot does, from matched simulated and physical episodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval import formulas
from robo_eval.core.errors import InputError
from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.names import unknown_name
from robo_eval.core.wording import counted
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.frame import episodes_frame
from robo_eval.metrics.initial_state import state_difference
from robo_eval.metrics.performance import (
    CONDITION,
    CONTEXT,
    by_first,
    mean_by_seed,
    means_by_seed,
    numbered_by_seed,
    once_by_seed,
    share_by_seed,
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
from robo_eval.stats.bounded import with_doubt_of
from robo_eval.stats.clustered import new_cluster_difference
from robo_eval.stats.estimate import without_interval
from robo_eval.stats.paired import (
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
_NO_PAIR: Final = Estimate.missing(reason="no pair with both episodes scored", unit="ratio")
_ALONE: Final = "have no scored partner"
_UNMET: Final = "are in contexts that were not simulated"
HIDDEN: Final = "were left out or tried again"
ROUNDING: Final = 1e-9
_CONTEXTS: Final = "gaffke_within_contexts"
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
        why_alone: Why physical episodes are compared with none; empty if each is compared.
    """

    name: str
    agreement: Estimate
    new_task: Estimate
    ar_sim: Estimate
    ar_physical: Estimate
    difference: Estimate
    p_value: float | None = None
    matching: str
    n_pairs: int = 0
    n_unpaired: int
    families: dict[str, Estimate]
    worst_family: str | None
    uncovered_mass: float | None
    effective_sample_size: float | None = None
    offered: int = 0
    mcnemar_p: float | None = None
    why_alone: str = ""

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
    physical, simulated = rows.scored_on(side), rows.scored_on(Side.SIM)
    is_paired = not physical.missing("pair_id").all()
    compare = _by_pairs if is_paired else _by_contexts
    found = compare(NAMES[side], physical, simulated, config)
    if is_paired:
        return found
    found = _whatever_is_lost(found, physical, rows.take(rows["side"] == Side.SIM.value), config)
    return replace(found, offered=_offered(rows, side))


def _whatever_is_lost(
    found: Agreement, physical: Rows, simulated: Rows, config: MetricConfig
) -> Agreement:
    """With the least agreement there can be, whatever simulated episodes without a score hid."""
    scored = simulated.scored
    is_lost = ~scored & ~np.isin(
        simulated["base_id"].astype(str), simulated["base_id"][scored].astype(str)
    )
    _, first = numbered(simulated.take(is_lost), ("base_id",))
    if not len(first) or found.agreement.value is None:
        return found
    rows = simulated.take(np.concatenate([np.flatnonzero(is_lost)[first], np.flatnonzero(scored)]))
    ways = [
        _by_contexts(found.name, physical, rows.ending(np.arange(len(first)), end), config)
        for end in (EndReason.SUCCESS, EndReason.FAILURE)
    ]
    least = min(ways, key=lambda one: (one.agreement.low or 0.0, one.agreement.value or 0.0))
    told = f"{counted(len(first), 'simulated episode')} without a score can have ended either way"
    reasons = filter(None, (least.agreement.reason, told))
    return replace(
        found,
        agreement=replace(least.agreement, reason="; ".join(reasons)),
        new_task=least.new_task,
        families=least.families,
        worst_family=least.worst_family,
    )


def _offered(rows: Rows, side: str) -> int:
    known = rows.take(rows.scored & rows.missing("pair_id") & ~rows.missing("seed"))
    number, first = numbered(known, ("policy", "task", *CONTEXT, "drift_step", "seed"))
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
    return replace(folded(difference), reason=agreement.reason)


def _worst(families: Mapping[str, Estimate]) -> str | None:
    known = {name: found.value for name, found in families.items() if found.value is not None}
    return min(known, key=lambda name: (known[name], name)) if len(known) > 1 else None


# Pairs -------------------------------------------------------------------------------------------


def _by_pairs(name: str, physical: Rows, simulated: Rows, config: MetricConfig) -> Agreement:
    for rows in (physical, simulated):
        _check_single(rows)
    mine, partners = matched_pairs(physical, simulated)
    is_kept = ~physical.left_out[mine]
    mine, partners = mine[is_kept], partners[is_kept]
    # Row i of one belongs to row i of the other.
    one, other = physical.take(mine), simulated.take(partners)
    _check_alike(one, other)
    gap = np.full(len(physical), np.nan)  # where there is no partner
    gap[mine] = one.succeeded.astype(np.float64) - other.succeeded
    gaps = physical.having(gap=gap)
    real = sim = difference = _NO_PAIR
    p_value = given = None
    if len(one):
        real, sim = (success_of_rows(rows, config, exact=True) for rows in (one, other))
        difference = _difference(gaps.take(mine), config)
        if not one.share_seeds:  # pairs of one seed are not independent
            table = paired_table(one.succeeded, other.succeeded)
            p_value = pairs_p(table.only_first, table.only_second, len(one))
            given = mcnemar_p(table.only_first, table.only_second)
    uncovered = float(np.isnan(gap).mean()) if len(gap) else None
    agreement = _agreement(gaps, config)
    if uncovered is not None and uncovered > config.max_unmatched + ROUNDING:
        # Whoever chose the pairs chose the agreement.
        agreement = Estimate.missing(
            reason=f"unmatched: {uncovered:.0%} of the scored physical episodes {_why(gaps)}",
            unit="ratio",
            n=len(one),
        )
    families = {
        family: _agreement(own, config)
        for family, own in ((family, gaps.take(rows)) for family, rows in _families(gaps))
        if not np.isnan(own["gap"]).all()
    }
    return Agreement(
        name=name,
        agreement=agreement,
        new_task=_worst_of(
            gaps, _why(gaps), lambda rows: _of_new_tasks(_over_tasks(rows, config), agreement)
        ),
        ar_sim=sim,
        ar_physical=real,
        difference=difference,
        p_value=p_value,
        mcnemar_p=given,
        matching="pairs",
        n_pairs=len(one),
        n_unpaired=len(physical) - len(one),
        families=families,
        worst_family=_worst(families),
        uncovered_mass=uncovered,
        why_alone=_why(gaps),
    )


def _why(gaps: Rows, otherwise: str = _ALONE) -> str:
    """Why the gap of some physical episodes is not known; `_worst_of` says it."""
    left_out = gaps.left_out
    is_other = bool((np.isnan(gaps["gap"]) & ~left_out).any())
    return " or ".join([otherwise] * is_other + [HIDDEN] * bool(left_out.any()))


def _worst_of(gaps: Rows, what: str, agreement: Callable[[Rows], Estimate]) -> Estimate:
    """The least agreement there can be, whatever episodes hide that cannot be compared.

    Each of them counts as one that disagrees, all in the direction that costs more. So it is of no
    use to leave out the simulated half of a pair.

    Args:
        gaps: Physical episodes; `gap` is what each succeeded more than in simulation, NaN where
            that is not known.
        what: Why it is not known.
        agreement: Of rows in which every gap is known.
    """
    gap = gaps["gap"]
    alone = np.isnan(gap)
    if not alone.any():
        return agreement(gaps)
    found = [agreement(gaps.having(gap=np.where(alone, way, gap))) for way in (1.0, -1.0)]
    least = min(found, key=lambda one: (one.low or 0.0, one.value or 0.0))
    if least.value is None:
        return least
    text = f"{alone.mean():.1%} of the physical episodes {what} and count as disagreement"
    reasons = [least.reason, None if text in (least.reason or "") else text]
    return replace(least, reason="; ".join(filter(None, reasons)))


def _agreement(gaps: Rows, config: MetricConfig) -> Estimate:
    """Agreement of pairs, see `_worst_of`."""
    if np.isnan(gaps["gap"]).all():
        return _NO_PAIR
    return _worst_of(gaps, _why(gaps), lambda rows: folded(_difference(rows, config)))


def _over_tasks(gaps: Rows, config: MetricConfig) -> Estimate:
    """Mean difference in tasks like these."""
    only_real, pairs = successes_by_task(gaps, gaps["gap"] > 0.0)
    only_sim, _ = successes_by_task(gaps, gaps["gap"] < 0.0)
    return new_cluster_difference(only_real, only_sim, pairs, level=config.level)


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


def _difference(gaps: Rows, config: MetricConfig) -> Estimate:
    """Mean of the gaps of pairs; those that share a seed are one observation."""
    n = len(gaps)
    if gaps.share_seeds:
        once = once_by_seed(gaps, gap=gaps["gap"])
        value = float(np.sort(once["gap"]).mean())
        seeds = means_by_seed(once, "gap")
        if len(seeds[0]) < 2:
            reason = "1 seed, shared by all pairs, says too little"
            return without_interval(value, n=n, reason=reason, level=config.level)
        return mean_by_seed(seeds, value, n, config, within=(-1.0, 1.0))
    only_real, only_sim = (int((gaps["gap"] == way).sum()) for way in (1.0, -1.0))
    low, high = pairs_interval(only_real, only_sim, n, level=config.level)
    value = (only_real - only_sim) / n
    return Estimate(
        value=value, low=low, high=high, level=config.level, n=n, method="pairs_exact",
        unit="ratio",
    )  # fmt: skip


def folded(difference: Estimate) -> Estimate:
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


# Contexts ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """What is said of episodes in the mixture of contexts met physically.

    Attributes:
        real: Physical success.
        sim: Simulated success.
        difference: The first less the second.
        agreement: 1 less their distance.
        sizes: Physical and simulated observations.
        alone: Physical episodes that cannot be compared.
        uncovered: Their share; None without physical episodes.
        why: Why they cannot.
        effective: Simulated episodes the weights leave.
    """

    real: Estimate
    sim: Estimate
    difference: Estimate
    agreement: Estimate
    sizes: tuple[int, int] = (0, 0)
    alone: int
    uncovered: float | None
    why: str = ""
    effective: float | None = None


def _by_contexts(name: str, physical: Rows, simulated: Rows, config: MetricConfig) -> Agreement:
    others = dict(_families(simulated))
    compared = {
        family: _of_contexts(physical.take(mine), simulated.take(others.get(family, [])), config)
        for family, mine in _families(physical)
    }
    families = {family: one.agreement for family, one in compared.items()}
    found = _of_contexts(physical, simulated, config)
    return Agreement(
        name=name,
        agreement=found.agreement,
        new_task=_of_new_tasks(_over_families(tuple(compared.values()), config), found.agreement),
        ar_sim=found.sim,
        ar_physical=found.real,
        difference=found.difference,
        matching="contexts",
        n_unpaired=len(physical),
        families=families,
        worst_family=_worst(families),
        uncovered_mass=found.uncovered,
        effective_sample_size=found.effective,
        why_alone=found.why,
    )


def _of_contexts(physical: Rows, simulated: Rows, config: MetricConfig) -> _Compared:
    """Rates and agreement in the mixture of contexts met physically."""
    sim = _counts(simulated)
    rates = {context: k / size for context, (k, size, _) in sim.items()}
    rate = _by_context(physical, rates)
    # Those that cannot be compared.
    alone = np.isnan(rate) | physical.left_out
    met = physical.take(~alone)
    n_real, real = len(physical), _counts(met)
    if not len(met):
        reason = (
            "no scored physical episode" if not n_real else "unmatched: no context was simulated"
        )
        none = Estimate.missing(reason=reason, unit="ratio", n=n_real)
        return _Compared(
            real=none, sim=none, difference=none, agreement=none, alone=n_real,
            uncovered=1.0 if n_real else None,
        )  # fmt: skip
    n_sim = sum(sim[context][2] for context in real)
    k_real, m, _ = np.array(list(real.values())).T
    found = formulas.s2r_reweighted(
        rates,
        {context: size for context, (_, size, _) in real.items()},
        {context: k / size for context, (k, size, _) in real.items()},
        n_sim_by_context={context: size for context, (_, size, _) in sim.items()},
    )
    total = int(m.sum())
    sim_value = found["ar_sim_reweighted"]
    assert sim_value is not None
    effective = found.get("effective_sample_size")
    note = _effective_note(effective, config.min_effective_size)
    # What simulated episodes leave open in the mixture that was met ...
    weight = _by_context(simulated, {name: real[name][1] / sim[name][1] for name in real})
    played = share_by_seed(simulated.having(weight=weight).take(~np.isnan(weight)))
    simulation = mean_by_seed(
        means_by_seed(played, "share", played["weight"]), sim_value, n_sim, config
    )
    # ... and the physical ones in what they came to, and in which contexts they met.
    once = share_by_seed(physical.having(rate=np.where(alone, np.nan, rate)))
    once = once.having(gap=once["share"] - once["rate"])
    known = once.take(~np.isnan(once["gap"]))
    ends = float(known["rate"].min()), float(known["rate"].max())
    mixture = mean_by_seed(means_by_seed(known, "rate"), sim_value, n_sim, config, ends)

    def difference(gaps: Rows) -> Estimate:
        within = (-ends[1], 1.0 - ends[0]) if len(gaps) == len(known) else (-1.0, 1.0)
        value, n = float(np.sort(gaps["gap"]).mean()), len(met) + n_sim
        return apart(mean_by_seed(means_by_seed(gaps, "gap"), value, n, config, within), -1.0)

    def apart(one: Estimate, sign: float) -> Estimate:
        found = with_doubt_of(one, simulation, sign)
        low, high = max(found.low or 0.0, min(sign, 0.0)), min(found.high or 0.0, 1.0)
        return replace(found, low=low, high=high, method=_CONTEXTS, reason=note)

    uncovered = float(alone.mean())
    why = _why(physical.having(gap=np.where(alone, np.nan, rate)), _UNMET)
    agreement = Estimate.missing(
        reason=f"unmatched: {uncovered:.0%} of the physical episodes {why}",
        unit="ratio",
        n=n_real,
    )
    if uncovered <= config.max_unmatched + ROUNDING:
        agreement = _worst_of(once, why, lambda rows: folded(difference(rows)))
    return _Compared(
        real=success_estimate(round(k_real.sum()), total, exact=True, level=config.level)
        if total == len(met)
        else success_of_rows(met, config, exact=True),
        sim=apart(mixture, 1.0),
        difference=difference(known),
        agreement=agreement,
        sizes=(total, sum(sim[context][1] for context in real)),
        alone=int(alone.sum()),
        uncovered=uncovered,
        why=why,
        effective=effective,
    )


def _over_families(found: Sequence[_Compared], config: MetricConfig) -> Estimate:
    """Mean difference in tasks like these; what cannot be compared disagrees, see `_worst_of`."""
    rates = np.array([(one.real.value or 0.0, one.sim.value or 0.0) for one in found])
    sizes = np.array([(*one.sizes, one.alone) for one in found]).reshape(-1, 3)
    met, n_sim, alone = sizes[:, 0], np.maximum(sizes[:, 1], 1), sizes[:, 2]
    n = met + alone

    def of(way: float) -> Estimate:
        real, sim = (rates.reshape(-1, 2) * met[:, None] + alone[:, None] * (way, 1.0 - way)).T
        return new_cluster_difference(real, sim / n * n_sim, n, n_sim, level=config.level)

    ways = [of(way) for way in ((1.0, 0.0) if alone.any() else (1.0,))]
    return max(ways, key=lambda one: max(abs(one.low or 0.0), abs(one.high or 0.0)))


def _by_context(rows: Rows, numbers: Mapping[tuple[Any, ...], float]) -> NDArray[np.float64]:
    """The number of the context of each row, shape (n,); NaN where it has none."""
    found = np.array([numbers.get(context, np.nan) for context in groups(rows, CONTEXT)])
    return np.asarray(found[numbered(rows, CONTEXT)[0]])


def _counts(rows: Rows) -> dict[tuple[Any, ...], tuple[float, int, int]]:
    """Successes, observations and scored episodes by context, in a fixed order.

    A seed that repeats is one observation, which counts by its share.
    """
    found = {}
    for key, own in sorted(groups(rows, CONTEXT).items(), key=lambda item: sort_key(item[0])):
        number, first = numbered_by_seed(own, CONDITION)
        shares = means_by(number, by_first(own, own.succeeded.astype(np.float64)), len(first))
        found[key] = float(np.sort(shares).sum()), len(first), len(own)
    return found


def _effective_note(size: float | None, least: float) -> str | None:
    if size is None or size >= least:
        return None
    return f"effective sample size {size:.0f} of simulated episodes is below {least:g}"
