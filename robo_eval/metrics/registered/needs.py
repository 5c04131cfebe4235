"""What metrics of a body need, why it may not be there, and what would supply it."""

from __future__ import annotations

from typing import Final

from robo_eval.metrics.body import Body
from robo_eval.metrics.recovery import NO_FAULTS
from robo_eval.metrics.registry import need
from robo_eval.metrics.safety import NO_EXPOSURE, NO_RECORD

SIMULATE: Final = "play the simulated half of the pairs: robo-eval partner"
SCORED_AT_ONCE: Final = (
    "play more episodes: one that was left out, or tried again, is compared with none"
)
BOTH_SIDES: Final = "play the same policy, task and seeds on a robot and in simulation"
IMPORT_SIMULATED: Final = (
    "import the simulated episodes with those of the robot: one table, whose column side says which"
)
CHOOSE: Final = "choose one of the calibrations: metrics.calibration"
NEW_TASKS: Final = "play three tasks or more, such as further families"


@need("exposure", remedy="run the robot")
def exposure(body: Body) -> str:
    """Hours in which it was exposed."""
    return "" if body.exposure.hours else NO_EXPOSURE


@need("incidents", remedy="keep a record of incidents while the robot runs: incidents.db")
def incidents(body: Body) -> str:
    """A record of incidents, which may say that there were none."""
    return NO_RECORD if body.counts is None else ""


@need("faults", remedy="inject recoverable faults, and keep faults.csv")
def faults(body: Body) -> str:
    """A file of faults."""
    return NO_FAULTS if body.noted_faults is None else ""


@need(
    "tolerances",
    remedy="give tolerances: metrics.tolerances of the plan, or for an import in --config",
)
def tolerances(body: Body) -> str:
    """Tolerances of measures of control in its tasks."""
    return "" if body.measured else "no tolerances are set for its tasks"


@need("price_card", remedy="give a price card in the plan: metrics.price_card")
def price_card(body: Body) -> str:
    """What an hour costs."""
    return "" if body.config.price_card is not None else "no price card is set"
