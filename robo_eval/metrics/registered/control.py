"""Quality of control."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from robo_eval.core.estimate import Estimate
from robo_eval.core.number import Number
from robo_eval.core.wording import counted
from robo_eval.metrics.body import Body
from robo_eval.metrics.control import MeasureResult
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
    for task in body.control:
        found = task.quality
        yield Number(family=task.task, estimate=found, rests_on=counted(found.n, "episode"))
        for measure in task.measures:
            yield from _measured(task.task, measure)
    worst = min(
        body.control, key=lambda one: -1.0 if one.quality.value is None else one.quality.value
    )
    yield Number(
        name="QC_worst",
        estimate=worst.quality,
        rests_on=counted(worst.quality.n, "episode"),
        note=f"in {worst.task}",
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


def _measured(family: str, found: MeasureResult) -> Iterator[Number]:
    missing = f"not measured in {counted(found.n_missing, 'episode')}"
    n = len(found.values)
    rests_on = counted(n, "episode")
    yield Number(
        name="QC_within",
        family=family,
        case=found.measure,
        estimate=found.inside,
        rests_on=rests_on,
        note="; ".join(
            part
            for part in (f"tolerance {found.tolerance:g}", missing if found.n_missing else "")
            if part
        ),
    )
    values = {"tolerance": found.tolerance}
    if n:
        values |= {
            name: float(np.quantile(found.values, share)) for name, share in _QUANTILES.items()
        }
    for name, value in values.items():
        yield Number(
            name=f"control_{name}",
            family=family,
            case=found.measure,
            estimate=Estimate(value=value, n=n, method="counted", unit=""),
            rests_on=rests_on,
            detail=True,
        )
