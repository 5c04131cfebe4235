"""Mean times between what goes wrong."""

from __future__ import annotations

from collections.abc import Iterator

from robo_eval.core.estimate import Estimate
from robo_eval.core.number import Number
from robo_eval.core.wording import counted
from robo_eval.metrics.body import Body
from robo_eval.metrics.registry import PHYSICAL, metric
from robo_eval.metrics.reliability import time_between_failures

_GROUP = "Times"


def times_of(body: Body, level: float) -> dict[str, Estimate]:
    """`time_between_failures` of a body; without a record no time between incidents is one."""
    counts = body.counts or {}
    return time_between_failures(
        body.exposure.hours, body.failures, body.repair_hours or None, counts, level=level
    )


def _number(found: Estimate, noun: str, case: str = "") -> Number:
    is_known = found.low is not None or found.n
    return Number(case=case, estimate=found, rests_on=counted(found.n, noun) if is_known else "")


@metric("MTBF", group=_GROUP, unit="h", sides=PHYSICAL)
def between_failures(body: Body) -> Iterator[Number]:
    """Mean time between failures: hours of exposure for each episode that ended by a fault.

    Where there was none, the hours it is at least, with one-sided confidence.
    """
    yield _number(times_of(body, body.level)["mtbf"], "failure")


@metric("MTTR", group=_GROUP, unit="h", sides=PHYSICAL)
def to_repair(body: Body) -> Iterator[Number]:
    """Mean time to repair."""
    yield _number(times_of(body, body.level)["mttr"], "repair")


@metric("MTBSI", group=_GROUP, unit="h", needs=("incidents",), sides=PHYSICAL)
def between_incidents(body: Body) -> Iterator[Number]:
    """Mean time between safety incidents: hours of exposure for each, near misses or not."""
    found = times_of(body, body.level)
    yield _number(found["mtbsi"], "incident")
    yield _number(found["mtbsi_without_near_misses"], "incident", "without near misses")
