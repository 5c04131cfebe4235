"""Reliability: how often a robot did what it was to do."""

from __future__ import annotations

from collections.abc import Iterator

from robo_eval.core.number import Number
from robo_eval.core.wording import counted
from robo_eval.metrics.body import Body
from robo_eval.metrics.registry import PHYSICAL, metric


@metric(
    "AR",
    group="Reliability",
    unit="ratio",
    sides=PHYSICAL,
    also={"AR_exact": "ratio"},
    remedy="play episodes on the robot",
)
def reliability(body: Body) -> Iterator[Number]:
    """Actuation reliability: share of the scored episodes that are strict successes.

    `AR_exact` has the exact interval, which gates read.
    """
    parts = [("", body.reliability), *(body.tasks.items() if len(body.tasks) > 1 else ())]
    for task, found in parts:
        yield Number(case=task, estimate=found, rests_on=counted(found.n, "episode"))
    for family, found in (("", body.reliability_exact), *body.families.items()):
        yield Number(
            name="AR_exact",
            family=family,
            estimate=found,
            rests_on=counted(found.n, "episode"),
            detail=True,
        )
