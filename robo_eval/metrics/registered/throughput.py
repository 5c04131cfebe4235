"""What an hour brings and costs."""

from __future__ import annotations

from collections.abc import Iterator

from robo_eval.core.estimate import Estimate
from robo_eval.core.number import Number
from robo_eval.core.wording import counted
from robo_eval.metrics.body import Body
from robo_eval.metrics.registry import PHYSICAL, metric
from robo_eval.metrics.safety import hours_text
from robo_eval.metrics.throughput import UNIT, throughput_of

_PRICE = "currency units/h"


@metric(
    "tasks_per_hour",
    group="Throughput",
    unit="tasks/h",
    needs=("price_card",),
    sides=PHYSICAL,
    also={"tasks_per_cost": UNIT, "cost_per_hour": _PRICE},
)
def throughput(body: Body) -> Iterator[Number]:
    """Successful episodes per hour of exposure.

    `tasks_per_cost` are those per currency unit of the price card, `cost_per_hour` what an hour
    costs, and each item of it.
    """
    found = throughput_of(body.frame, body.config)
    assert found is not None
    unit = found.currency or "currency units"
    yield Number(
        estimate=found.per_hour,
        rests_on=f"{counted(found.successes, 'success', 'successes')} in {hours_text(found.hours)}",
    )
    yield Number(
        name="tasks_per_cost",
        estimate=found.per_cost,
        rests_on=f"{found.cost_per_hour:.2f} {unit} an hour",
        note=f"per {found.currency}" if found.currency else "",
    )
    for item, price in (("", found.cost_per_hour), *found.items.items()):
        estimate = Estimate(value=price, n=found.successes, method="counted", unit=_PRICE)
        yield Number(name="cost_per_hour", case=item, estimate=estimate, note=unit, detail=True)
