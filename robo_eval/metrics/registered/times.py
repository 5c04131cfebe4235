"""Mean times between what goes wrong."""

from __future__ import annotations

from collections.abc import Iterator

from robo_eval.core.estimate import Estimate
from robo_eval.core.number import Number
from robo_eval.core.wording import counted
from robo_eval.metrics.body import Body
from robo_eval.metrics.registry import PHYSICAL, metric

_GROUP = "Times"


def _number(found: Estimate, noun: str, case: str = "") -> Number:
    is_known = found.low is not None or found.n
    return Number(case=case, estimate=found, rests_on=counted(found.n, noun) if is_known else "")


@metric("MTBF", group=_GROUP, unit="h", sides=PHYSICAL)
def between_failures(body: Body) -> Iterator[Number]:
    """Mean time between failures: hours of exposure for each episode that ended by a fault.

    Where there was none, the hours it is at least, with one-sided confidence.
    """
    yield _number(body.times["mtbf"], "failure")


@metric("MTTR", group=_GROUP, unit="h", sides=PHYSICAL)
def to_repair(body: Body) -> Iterator[Number]:
    """Mean time to repair."""
    yield _number(body.times["mttr"], "repair")


@metric("MTBSI", group=_GROUP, unit="h", needs=("incidents",), sides=PHYSICAL)
def between_incidents(body: Body) -> Iterator[Number]:
    """Mean time between safety incidents: hours of exposure for each, near misses or not."""
    yield _number(body.times["mtbsi"], "incident")
    yield _number(body.times["mtbsi_without_near_misses"], "incident", "without near misses")
