"""Recovery from faults."""

from __future__ import annotations

from collections.abc import Iterator

from robo_eval.core.estimate import Estimate
from robo_eval.core.number import Number
from robo_eval.core.wording import counted
from robo_eval.metrics.body import Body
from robo_eval.metrics.recovery import (
    METHOD,
    NO_FAULTS,
    recovery_autonomy,
    recovery_by_fault,
)
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
    noted = body.noted_faults
    assert noted is not None
    whole = {"": recovery_autonomy(noted, level=body.level)}
    for fault, found in (whole | recovery_by_fault(noted, level=body.level)).items():
        rests_on = counted(found.n, "recoverable fault") if found.n else ""
        yield Number(case=fault, estimate=found, rests_on=rests_on)
    left_out = int((~noted["recoverable"].astype(bool)).sum())
    if left_out:
        found = recovery_of_all(body)
        yield Number(
            name="RA_of_all_faults",
            estimate=found,
            rests_on=counted(found.n, "fault"),
            note=f"{left_out} of them marked as not recoverable",
        )


def recovery_of_all(body: Body) -> Estimate:
    """The share of all faults, which gates read: marks that came after one leave nothing out."""
    if body.noted_faults is None:
        return Estimate.missing(reason=NO_FAULTS, unit="ratio", method=METHOD)
    return recovery_autonomy(body.noted_faults.assign(recoverable=True), level=body.level)
