"""How a trial was conducted: attempts that were declared void."""

from __future__ import annotations

from collections.abc import Iterator

from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Side
from robo_eval.core.number import Number
from robo_eval.core.wording import counted
from robo_eval.metrics.body import Body
from robo_eval.metrics.performance import success_estimate
from robo_eval.metrics.registry import metric


@metric("void_rate", group="Conduct", unit="ratio", also={"voids": "count"})
def void_rate(body: Body) -> Iterator[Number]:
    """Share of the attempts that were declared void, each of which may hide a failure.

    `voids` counts those attempts by their reason.
    """
    k, n = sum(body.voids.values()), body.attempts
    if not k and body.side == Side.SIM.value:
        return  # nobody looks on there who could declare one
    most = f"more than the {100.0 * body.config.max_voids:g} % allowed"
    yield Number(
        estimate=success_estimate(k, n, exact=True, level=body.level),
        rests_on=f"{k} of {counted(n, 'attempt')}",
        note=most if body.has_many_voids else "",
        detail=not k,
    )
    for reason, count in body.voids.items():
        estimate = Estimate.exact(float(count), unit="count", n=n)
        yield Number(name="voids", case=reason, estimate=estimate, rests_on=counted(n, "attempt"))
