"""Two axes of a body: embodiment, and what its work costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Side
from robo_eval.formulas.composite import AXES
from robo_eval.gates.axes.draws import Resampled
from robo_eval.metrics.registered.safety import safety_at
from robo_eval.metrics.throughput import UNIT, throughput_of

if TYPE_CHECKING:
    from robo_eval.metrics.body import Body

Array = NDArray[np.float64]

_RATIO: Final = "ratio"
_NO_ROBOT: Final = "no episode on a robot"


def embodiment_measured(body: Body | None, resamples: int, seed: int) -> Resampled:
    """Embodiment, with the three numbers it is made of.

    Args:
        body: How a policy did on a body; None without one.
        resamples: Draws: two halves of a normal distribution around the score.
        seed: Seed of the draws.
    """
    if body is None:
        reason = (
            f"{_NO_ROBOT}; E needs scored episodes on side real with exposure_s, the same in"
            " simulation, and incidents.db"
        )
        return Resampled(raw=Estimate.missing(reason=reason, unit=_RATIO))
    raw = body.of("E")
    if raw.value is not None and body.side != Side.REAL.value:
        said = "; ".join(filter(None, (raw.reason, f"of a {body.side}, not of a robot")))
        raw = replace(raw, reason=said)
    parts = {body.name: body.reliability, "SS": safety_at(body, body.level).score}
    if body.agreement is not None:
        parts["S2R"] = body.agreement.agreement
    rng = np.random.default_rng([seed, AXES.index("E")])
    return Resampled(raw=raw, draws=_split_normal(raw, resamples, rng), parts=parts)


def _split_normal(raw: Estimate, resamples: int, rng: np.random.Generator) -> Array | None:
    """Draws around a share whose quantiles are the ends of its interval, cut off at 0 and 1."""
    if raw.value is None or raw.low is None or raw.high is None:
        return None
    reach = NormalDist().inv_cdf(0.5 + raw.level / 2.0)
    z = rng.standard_normal(resamples) / reach
    wide = np.where(z < 0.0, raw.value - raw.low, raw.high - raw.value)
    found: Array = np.clip(raw.value + z * wide, 0.0, 1.0)
    return found


def throughput_measured(body: Body | None, resamples: int, seed: int) -> Resampled:
    """Tasks at target quality per unit of currency, with what was paid for.

    Args:
        body: How a policy did on a body; None without one.
        resamples: Draws from the Jeffreys posterior of the rate of successes.
        seed: Seed of the draws.
    """
    found = None if body is None else throughput_of(body.frame, body.config)
    if found is None:
        what = _NO_ROBOT if body is None else "no price card"
        reason = (
            f"{what}; $ needs metrics.price_card in the plan, or for an import in --config, and"
            " episodes with exposure_s"
        )
        return Resampled(raw=Estimate.missing(reason=reason, unit=UNIT))
    parts = {"per_hour": found.per_hour, **_costs(found.items)}
    paid = found.hours * found.cost_per_hour
    if found.per_cost.value is None or paid <= 0.0:
        return Resampled(raw=found.per_cost, parts=parts)
    rng = np.random.default_rng([seed, AXES.index("$")])
    # The posterior of a rate of events under Jeffreys' prior.
    draws = rng.gamma(found.successes + 0.5, size=resamples) / paid
    return Resampled(raw=found.per_cost, draws=draws, parts=parts)


def _costs(items: Mapping[str, float]) -> dict[str, Estimate]:
    return {
        f"cost of {name}": Estimate(
            value=price, low=price, high=price, n=1, method="declared", unit="currency units/h"
        )
        for name, price in items.items()
    }
