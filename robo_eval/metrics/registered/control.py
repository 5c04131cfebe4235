"""Quality of control."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from robo_eval.core.estimate import Estimate
from robo_eval.core.number import Number
from robo_eval.core.wording import counted
from robo_eval.metrics.body import Body
from robo_eval.metrics.control import Measured, quality_of_control
from robo_eval.metrics.performance import success_estimate
from robo_eval.metrics.registry import PHYSICAL, metric

_QUANTILES = {"min": 0.0, "q25": 0.25, "median": 0.5, "q75": 0.75, "max": 1.0}


@metric(
    "QC",
    group="Quality of control",
    unit="ratio",
    needs=("tolerances",),
    sides=PHYSICAL,
    also={
        "QC_worst": "ratio",
        "QC_within": "ratio",
        "control_tolerance": "",
        **{f"control_{name}": "" for name in _QUANTILES},
    },
)
def control(body: Body) -> Iterator[Number]:
    """Quality of control: mean credit of the measures that have a tolerance, by task family.

    Credit is full up to the tolerance, and none from twice the tolerance on. `QC_worst` is that of
    the family with the least. `QC_within` is the share of episodes in which a measure stays within
    its tolerance; the other names are the tolerance and the quantiles of what was measured, in the
    unit of the measure.
    """
    found = {}
    for family, own in body.measured.items():
        weights = {name: body.config.control_weights.get(name, 1.0) for name in own.tolerances}
        quality = found[family] = quality_of_control(
            own.samples, own.tolerances, weights=weights, seeds=own.seeds, earns=own.earns,
            config=body.config,
        )  # fmt: skip
        yield Number(family=family, estimate=quality, rests_on=counted(quality.n, "episode"))
        for measure in own.tolerances:
            yield from _within(body, family, own, measure)
    worst = min(found, key=lambda name: -1.0 if (it := found[name].value) is None else it)
    yield Number(
        name="QC_worst",
        estimate=found[worst],
        rests_on=counted(found[worst].n, "episode"),
        note=f"in {worst}",
        detail=True,
    )


def _within(body: Body, family: str, own: Measured, measure: str) -> Iterator[Number]:
    """How often a measure stayed within its tolerance, and what was measured."""
    tolerance, values = own.tolerances[measure], own.values(measure)
    n, missing = len(values), len(own.seeds) - len(values)
    rests_on = counted(n, "episode")
    k = sum(value <= tolerance for value in values)
    inside = success_estimate(k, n, exact=True, level=body.level)
    told = [f"tolerance {tolerance:g}"]
    if missing:
        told.append(f"not measured in {counted(missing, 'episode')}")
    yield Number(
        name="QC_within",
        family=family,
        case=measure,
        estimate=inside if n else replace(inside, reason="no sample was logged"),
        rests_on=rests_on,
        note="; ".join(told),
    )
    quantiles = {name: float(np.quantile(values, it)) for name, it in _QUANTILES.items() if n}
    for name, value in ({"tolerance": tolerance} | quantiles).items():
        yield Number(
            name=f"control_{name}",
            family=family,
            case=measure,
            estimate=Estimate(value=value, n=n, method="counted", unit=""),
            rests_on=rests_on,
            detail=True,
        )


@metric(
    "command_latency",
    group="Quality of control",
    unit="s",
    sides=PHYSICAL,
    also={"command_latency_p99": "s", "command_latency_max": "s"},
)
def command_latency(body: Body) -> Iterator[Number]:
    """Time from a command to the first state that shows it, the median of the episodes' medians.

    `command_latency_p99` is the median of their 99th percentiles, `command_latency_max` the longest
    of all. Where states do not measure what is commanded, there is none.
    """
    cells = body.episodes["control_quality"].tolist()
    samples = [cell for cell in cells if isinstance(cell, Mapping)]
    for name, measure, over_episodes in (
        ("", "command_latency_p50_s", np.median),
        ("command_latency_p99", "command_latency_p99_s", np.median),
        ("command_latency_max", "command_latency_max_s", np.max),
    ):
        values = [sample[measure] for sample in samples if measure in sample]
        if values:
            n = len(values)
            found = Estimate(value=float(over_episodes(values)), n=n, method="counted", unit="s")
            yield Number(name=name, estimate=found, rests_on=counted(n, "episode"))
