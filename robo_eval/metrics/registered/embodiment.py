"""The embodiment score."""

from __future__ import annotations

from collections.abc import Iterator

from robo_eval.core.estimate import Estimate
from robo_eval.core.number import Number
from robo_eval.core.wording import counted
from robo_eval.metrics.body import Body
from robo_eval.metrics.embodiment import embodiment_score
from robo_eval.metrics.registry import PHYSICAL, metric
from robo_eval.stats.joint import sim_real_intervals


@metric(
    "E",
    group="Embodiment score",
    unit="ratio",
    sides=PHYSICAL,
    remedy="it needs AR, SS and S2R",
)
def embodiment(body: Body) -> Iterator[Number]:
    """Embodiment score: geometric mean of AR, SS and S2R; without one of them there is none."""
    safety = body.of("SS")
    score = embodiment_score(body.reliability, safety, body.of("S2R"))
    found = score if score.value is None else _resampled(body, score.value, safety) or score
    noun = "episode" if found is score else "pair"
    yield Number(estimate=found, rests_on="" if found.value is None else counted(found.n, noun))


def _resampled(body: Body, score: float, safety: Estimate) -> Estimate | None:
    """The score by the joint bootstrap: each resample of pairs feeds AR and S2R alike.

    The safety score does not come from the pairs. Its interval is taken at both ends, so that E
    covers at least as often as it says.

    Returns:
        None without pairs, which leaves E the ends of its parts; so does a physical episode without
        a partner: then the pairs do not hold what S2R counts against it.
    """
    pairs, config = body.paired, body.config
    unpaired = body.agreement is not None and body.agreement.unpaired
    if pairs is None or not len(pairs.sim) or unpaired:
        return None
    if safety.low is None or safety.high is None:
        return None
    least, most = (
        sim_real_intervals(
            pairs.sim, pairs.real, safety=end, clusters=pairs.clusters,
            level=config.level, resamples=config.resamples, seed=config.seed,
        ).index
        for end in (safety.low, safety.high)
    )  # fmt: skip
    # With a safety score of 0 at its lower end E is 0 there, and resamples have no spread.
    low, high = 0.0 if safety.low == 0.0 else least.low, most.high
    if low is None or high is None:
        return None
    return Estimate(
        value=score, low=min(low, score), high=max(high, score), level=config.level,
        n=len(pairs.sim), method="joint_bootstrap", unit="ratio", reason=most.reason,
    )  # fmt: skip
