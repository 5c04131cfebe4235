"""The embodiment score."""

from __future__ import annotations

from collections.abc import Iterator

from robo_eval.core.number import Number
from robo_eval.core.wording import counted
from robo_eval.metrics.body import Body
from robo_eval.metrics.registry import PHYSICAL, metric


@metric(
    "E",
    group="Embodiment score",
    unit="ratio",
    sides=PHYSICAL,
    remedy="it needs AR, SS and S2R",
)
def embodiment(body: Body) -> Iterator[Number]:
    """Embodiment score: geometric mean of AR, SS and S2R; without one of them there is none."""
    found = body.embodiment
    noun = "pair" if found.method == "joint_bootstrap" else "episode"
    yield Number(estimate=found, rests_on="" if found.value is None else counted(found.n, noun))
