"""Reliability: how often a robot did what it was to do."""

from __future__ import annotations

from collections.abc import Iterator

from robo_eval.core.number import Number
from robo_eval.core.wording import counted
from robo_eval.metrics.body import Body
from robo_eval.metrics.registered.needs import NEW_TASKS
from robo_eval.metrics.registry import PHYSICAL, metric
from robo_eval.metrics.reliability import (
    reliability_of_families,
    reliability_of_new_tasks,
    reliability_of_tasks,
)


@metric(
    "AR",
    group="Reliability",
    unit="ratio",
    sides=PHYSICAL,
    also={"AR_new_task": "ratio", "AR_with_left_out": "ratio"},
    remedy="play episodes on the robot",
)
def reliability(body: Body) -> Iterator[Number]:
    """Actuation reliability: share of the scored episodes that are strict successes.

    AR speaks of these tasks. `AR_new_task`, the mean of their shares, speaks of tasks like these.
    `AR_with_left_out`, which gates read, counts as one failure each episode of which an attempt has
    no score, also where it was tried again.
    """
    whole, tasks = body.reliability, reliability_of_tasks(body.rows, body.config)
    episodes, of = counted(whole.n, "episode"), counted(len(tasks), "task")
    yield Number(estimate=whole, rests_on=f"{episodes} of {of}" if tasks else episodes)
    for task, found in tasks.items() if len(tasks) > 1 else ():
        yield Number(case=task, estimate=found, rests_on=counted(found.n, "episode"))
    if tasks:
        new = reliability_of_new_tasks(body.rows, body.config)
        remedy = NEW_TASKS if new.value is None else ""
        yield Number(name="AR_new_task", estimate=new, rests_on=of, remedy=remedy)
    if body.strict is not body:
        strict = body.strict.reliability
        yield Number(
            name="AR_with_left_out",
            estimate=strict,
            rests_on=counted(strict.n, "episode"),
            note=body.left_out.text,
        )
    for family, found in reliability_of_families(body.rows, body.config).items():
        yield Number(
            family=family, estimate=found, rests_on=counted(found.n, "episode"), detail=True
        )
