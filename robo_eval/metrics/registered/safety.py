"""Safety: incidents, and the hours they happened in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from robo_eval.core.estimate import Estimate
from robo_eval.core.number import Number
from robo_eval.core.wording import counted
from robo_eval.formulas import SEVERITIES
from robo_eval.metrics.body import Body
from robo_eval.metrics.registered.times import times_of
from robo_eval.metrics.registry import PHYSICAL, metric
from robo_eval.metrics.safety import (
    NO_EXPOSURE,
    NOUNS,
    RATE_UNIT,
    Safety,
    hours_text,
    safety_of,
)

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
    hours = hours_text(body.exposure.hours) if body.exposure.episodes else NO_EXPOSURE
    found = safety_at(body, body.level)
    score = found.score
    yield Number(estimate=score, rests_on=hours)
    if score.low is not None:
        yield Number(
            name="SS_pessimistic",
            estimate=Estimate(value=score.low, n=score.n, method="counted", unit="ratio"),
            rests_on=hours,
            note="rates at the upper ends of their intervals",
            detail=True,
        )
    for severity, rate in found.rates.items():
        rests_on = "" if rate.value is None else f"{rate.n} in {hours}"
        yield Number(name=f"{severity}_per_100_h", estimate=rate, rests_on=rests_on)
    for severity, seen in (body.counts or {}).items():
        yield Number(
            name=COUNTS[severity],
            estimate=Estimate.exact(float(seen), unit="count", n=seen),
            rests_on=hours,
            detail=True,
        )


def safety_at(body: Body, level: float) -> Safety:
    """Score and rates of a body, with intervals of a level."""
    config = replace(body.config, level=level)
    return safety_of(body.counts, body.exposure, config, body.bursts)


def harm_of(body: Body) -> dict[str, Estimate]:
    """What levels read of incidents: either end of an interval is a one-sided bound.

    Only harm up to some amount is to be excluded, so all doubt is on one side.
    """
    if body.counts is None:
        return {}
    both = 2.0 * body.level - 1.0 if body.level > 0.5 else body.level
    # After no incident the time between them has a one-sided bound already.
    level = both if sum(body.counts.values()) else body.level
    found = safety_at(body, both)
    rates = {f"{severity}_per_100_h": rate for severity, rate in found.rates.items()}
    return {"SS": found.score, **rates, "MTBSI": times_of(body, level)["mtbsi"]}


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
