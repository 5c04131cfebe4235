"""Agreement: whether simulation told how a robot does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from robo_eval.core.estimate import Estimate
from robo_eval.core.number import Number
from robo_eval.core.wording import counted
from robo_eval.metrics.agreement import HIDDEN, NO_SIMULATION, SEVERAL, Agreement
from robo_eval.metrics.body import Body
from robo_eval.metrics.calibrated import Calibrated
from robo_eval.metrics.registered.needs import (
    BOTH_SIDES,
    CHOOSE,
    IMPORT_SIMULATED,
    NEW_TASKS,
    SCORED_AT_ONCE,
    SIMULATE,
)
from robo_eval.metrics.registry import PHYSICAL, metric
from robo_eval.stats.prediction_powered import prediction_powered_rate

_NAMED = {"twin": "S2S"}


def _noun(found: Agreement) -> str:
    return "pair" if found.matching == "pairs" else "episode"


def _remedy(body: Body, found: Agreement | None = None) -> str:
    if found is not None and found.why_alone == HIDDEN:
        return SCORED_AT_ONCE
    return IMPORT_SIMULATED if body.is_imported else SIMULATE


def _counted(value: float, unit: str, n: int) -> Estimate:
    return Estimate(value=value, n=n, method="counted", unit=unit)


@metric(
    "S2R",
    group="Agreement with simulation",
    unit="ratio",
    named=_NAMED,
    sides=PHYSICAL,
    remedy=BOTH_SIDES,
    also={
        "S2R_new_task": "ratio",
        "AR_sim": "ratio",
        "AR_compared": "ratio",
        "AR_gap": "difference",
        "pairs_p": "p",
        "McNemar_p": "p",
        "uncompared": "ratio",
        "effective_sample_size": "count",
    },
)
def agreement(body: Body) -> Iterator[Number]:
    """Agreement with simulation: 1 less the distance of the two success rates.

    S2R speaks of these tasks. `S2R_new_task`, that of the mean distance over tasks, speaks of tasks
    like these. `AR_sim` is the success of the simulated episodes it is compared with,
    `AR_compared` that of the same episodes on the body, `AR_gap` the second less the first. By
    task family as well: errors of opposite sign cancel in the whole. `pairs_p` is the p value of
    the exact test of pairs, `McNemar_p` that of McNemar's, which takes as given how many ended
    differently.
    """
    found = body.agreement
    if found is None:
        why, remedy = (SEVERAL, CHOOSE) if body.calibrations else (NO_SIMULATION, _remedy(body))
        yield Number(estimate=Estimate.missing(reason=why, unit="ratio"), remedy=remedy)
    else:
        yield from _compared(body, found)
    for one in body.calibrations:
        yield from _calibrated(body, one)
    for rates in body.conditions:
        of = "pair" if rates.is_paired else "episode"
        for name, rate in (("AR_compared", rates.physical), ("AR_sim", rates.sim)):
            yield Number(
                name=name, at=rates.at, estimate=rate, rests_on=counted(rate.n, of), detail=True
            )


def _compared(body: Body, found: Agreement) -> Iterator[Number]:
    noun = _noun(found)
    is_all = found.ar_physical.value in (None, body.reliability.value)
    by_pairs = found.matching == "pairs"
    # Where not all episodes could be compared the agreement rests on this share, not on AR.
    yield Number(
        name="AR_compared",
        estimate=found.ar_physical,
        rests_on=counted(found.ar_physical.n, noun),
        note="of the pairs" if by_pairs else "in simulated contexts",
        detail=is_all,
    )
    yield Number(name="AR_sim", estimate=found.ar_sim, rests_on=counted(found.ar_sim.n, "episode"))
    yield Number(
        name="AR_gap",
        estimate=replace(found.difference, unit="difference"),
        rests_on=counted(found.difference.n, noun),
    )
    for name, p_value, method, note in (
        ("pairs_p", found.p_value, "pairs_exact", "exact, two-sided"),
        ("McNemar_p", found.mcnemar_p, "mcnemar", "given how many ended differently"),
    ):
        if p_value is not None:
            yield Number(
                name=name,
                estimate=Estimate(value=p_value, n=found.n_pairs, method=method, unit="p"),
                rests_on=counted(found.n_pairs, "pair"),
                note=note,
                detail=name != "pairs_p",
            )
    if found.uncovered_mass is not None:
        otherwise = (
            "without a scored partner" if by_pairs else "in contexts that were not simulated"
        )
        n = found.n_pairs + found.n_unpaired if by_pairs else body.reliability.n
        yield Number(
            name="uncompared",
            estimate=_counted(found.uncovered_mass, "ratio", n),
            rests_on=counted(n, "scored episode"),
            note=found.why_alone if HIDDEN in found.why_alone else otherwise,
            detail=not found.uncovered_mass,
        )
    if found.effective_sample_size is not None:
        n = found.ar_sim.n
        yield Number(
            name="effective_sample_size",
            estimate=_counted(found.effective_sample_size, "count", n),
            rests_on=counted(n, "simulated episode"),
        )
    yield Number(
        estimate=found.agreement,
        rests_on=counted(found.agreement.n, noun),
        note="" if by_pairs else "by context",
        remedy=_remedy(body, found) if found.agreement.low is None else "",
    )
    yield Number(
        name="S2R_new_task",
        estimate=found.new_task,
        rests_on=counted(found.new_task.n, "task"),
        remedy=(NEW_TASKS if found.agreement.low is not None else _remedy(body, found))
        if found.new_task.low is None
        else "",
    )
    several = found.families if len(found.families) > 1 else {}
    for family, one in found.families.items():
        yield Number(
            family=family,
            estimate=one,
            rests_on=counted(one.n, noun),
            note="agrees least" if family == found.worst_family else "",
            detail=not several,
        )


def _calibrated(body: Body, found: Calibrated) -> Iterator[Number]:
    name, several = found.calibration, len(found.recordings) > 1
    first = next(iter(found.by_recording.values()))
    rests_on = counted(found.agreement.n, _noun(first))
    if several:
        rests_on += f", {counted(len(found.recordings), 'recording')}"
    gap = replace(found.difference, unit="difference")
    yield Number(name="AR_gap", case=name, estimate=gap, rests_on=rests_on)
    yield Number(case=name, estimate=found.agreement, rests_on=rests_on)
    for recording, one in found.by_recording.items():
        for number in _compared(body, one):
            # Of the only recording these two have been told.
            if several or number.family or number.name not in ("", "AR_gap"):
                yield replace(number, case=recording, detail=True)


@metric(
    "AR_sharpened",
    group="With the help of simulated episodes without a partner",
    unit="ratio",
    sides=PHYSICAL,
    also={"AR_plain": "ratio", "correlation_of_sides": "correlation"},
    is_evidence=False,
)
def sharpened(body: Body) -> Iterator[Number]:
    """Reliability sharpened by simulated episodes without a partner.

    It needs pairs and further episodes of one mixture of conditions. `AR_plain` is that of the
    pairs alone, over which `correlation_of_sides` is taken.
    """
    paired = body.paired
    if paired is None or not len(paired.sim) or len(paired.sim_only) < 2:
        return
    found = prediction_powered_rate(paired.real, paired.sim, paired.sim_only, level=body.level)
    pairs = counted(found.n, "pair")
    sharp, apart = found.estimate, paired.apart
    if apart > body.config.max_unmatched:
        why = (
            f"pairs and further simulated episodes differ in {apart:.0%} of their conditions; both"
            " must come from one mixture"
        )
        sharp = Estimate.missing(reason=why, unit="ratio", n=found.n)
    elif paired.clusters is not None:
        why = "pairs share their seeds; the estimate needs independent ones"
        sharp = Estimate.missing(reason=why, unit="ratio", n=found.n)
    yield Number(estimate=sharp, rests_on=f"{pairs} and {found.n_sim} further simulated")
    yield Number(name="AR_plain", estimate=found.plain, rests_on=pairs)
    if found.correlation is not None:
        yield Number(
            name="correlation_of_sides",
            estimate=_counted(found.correlation, "correlation", found.n),
            rests_on=pairs,
        )
