"""Recovery from faults."""

from __future__ import annotations

from collections.abc import Iterator

from robo_eval.core.number import Number
from robo_eval.core.wording import counted
from robo_eval.metrics.body import Body
from robo_eval.metrics.registry import PHYSICAL, metric


@metric("RA", group="Recovery from faults", unit="ratio", needs=("faults",), sides=PHYSICAL)
def recovery(body: Body) -> Iterator[Number]:
    """Recovery autonomy: share of recoverable faults the robot recovered from by itself."""
    for fault, found in (("", body.recovery), *body.faults.items()):
        rests_on = counted(found.n, "recoverable fault") if found.n else ""
        yield Number(case=fault, estimate=found, rests_on=rests_on)
