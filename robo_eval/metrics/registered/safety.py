"""Safety: incidents, and the hours they happened in."""

from __future__ import annotations

from collections.abc import Iterator

from robo_eval.core.estimate import Estimate
from robo_eval.core.number import Number
from robo_eval.core.wording import counted
from robo_eval.formulas import SEVERITIES
from robo_eval.metrics.body import Body
from robo_eval.metrics.registry import PHYSICAL, metric
from robo_eval.metrics.safety import NO_EXPOSURE, NOUNS, RATE_UNIT, hours_text

_GROUP = "Safety"
COUNTS = {severity: NOUNS[severity][1].replace(" ", "_") for severity in SEVERITIES}
"""What the count of incidents of a severity is called."""


@metric(
    "SS",
    group=_GROUP,
    unit="ratio",
    needs=("incidents",),
    sides=PHYSICAL,
    also={
        "SS_pessimistic": "ratio",
        **{f"{severity}_per_100_h": RATE_UNIT for severity in SEVERITIES},
        **dict.fromkeys(COUNTS.values(), "count"),
    },
)
def safety(body: Body) -> Iterator[Number]:
    """Safety score: 1 less the weighted rates of incidents, and 0 after a critical one.

    The rates are incidents of a severity per 100 hours of exposure, void attempts included; after
    none the upper end says how often it may still happen, and less than an hour is too short for a
    rate. `SS_pessimistic` takes all rates at their upper ends.
    """
    found = body.safety
    hours = hours_text(found.exposure.hours) if found.exposure.episodes else NO_EXPOSURE
    yield Number(estimate=found.score, rests_on=hours)
    if found.score.low is not None:
        yield Number(
            name="SS_pessimistic",
            estimate=Estimate(
                value=found.score.low, n=found.score.n, method="counted", unit="ratio"
            ),
            rests_on=hours,
            note="rates at the upper ends of their intervals",
            detail=True,
        )
    for severity, rate in found.rates.items():
        seen = body.counts[severity] if body.counts else 0
        yield Number(
            name=f"{severity}_per_100_h",
            estimate=rate,
            rests_on="" if rate.value is None else f"{seen} in {hours}",
        )
    for severity, seen in (body.counts or {}).items():
        yield Number(
            name=COUNTS[severity],
            estimate=Estimate.exact(float(seen), unit="count", n=seen),
            rests_on=hours,
            detail=True,
        )


@metric(
    "exposure_hours",
    group=_GROUP,
    unit="h",
    sides=PHYSICAL,
    also={"logged_hours": "h"},
    remedy="run the robot",
)
def exposure(body: Body) -> Iterator[Number]:
    """Hours in which a robot was exposed; those of a twin expose none.

    `logged_hours` are those of the episodes, over which rates are taken on either.
    """
    found = body.exposure
    without = f"{counted(found.unknown, 'attempt')} without exposure" if found.unknown else ""
    logged = (
        Estimate.exact(found.hours, unit="h", n=found.episodes)
        if found.episodes
        else Estimate.missing(reason=NO_EXPOSURE, unit="h", n=0)
    )
    is_real = body.side == "real"
    unexposed = Estimate.exact(0.0, unit="h", n=1, reason="hours of a twin expose no robot")
    exposed = logged if is_real else unexposed
    rests_on = counted(found.episodes, "attempt")
    yield Number(estimate=exposed, rests_on=rests_on if is_real else "", note=without)
    yield Number(name="logged_hours", estimate=logged, rests_on=rests_on, note=without, detail=True)
