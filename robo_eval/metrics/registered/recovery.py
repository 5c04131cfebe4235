"""Recovery from faults."""

from __future__ import annotations

from collections.abc import Iterator

from robo_eval.core.number import Number
from robo_eval.core.wording import counted
from robo_eval.metrics.body import Body
from robo_eval.metrics.registry import PHYSICAL, metric


@metric(
    "RA",
    group="Recovery from faults",
    unit="ratio",
    needs=("faults",),
    sides=PHYSICAL,
    also={"RA_of_all_faults": "ratio"},
)
def recovery(body: Body) -> Iterator[Number]:
    """Recovery autonomy: share of recoverable faults the robot recovered from by itself.

    `RA_of_all_faults` counts those that were marked as not recoverable as well; gates read it.
    """
    for fault, found in (("", body.recovery), *body.faults.items()):
        rests_on = counted(found.n, "recoverable fault") if found.n else ""
        yield Number(case=fault, estimate=found, rests_on=rests_on)
    if body.left_out_faults:
        yield Number(
            name="RA_of_all_faults",
            estimate=body.recovery_of_all,
            rests_on=counted(body.recovery_of_all.n, "fault"),
            note=f"{body.left_out_faults} of them marked as not recoverable",
        )
