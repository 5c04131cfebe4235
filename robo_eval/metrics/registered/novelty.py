"""What novelty changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from robo_eval.core.number import Condition, Number
from robo_eval.core.wording import counted
from robo_eval.metrics.body import Body
from robo_eval.metrics.effects import DECIDED, Effect, effects_of
from robo_eval.metrics.registry import metric


@metric(
    "novelty_effect",
    group="Effect of novelty",
    unit="difference",
    remedy="play a matched control of each episode: control: true in the plan",
)
def novelty_effect(body: Body) -> Iterator[Number]:
    """Performance of an episode with novelty minus that of its matched control.

    The control is of the same policy and seed, at level 0.
    """
    found = effects_of(body.frame, body.plan, body.config, body.rows, of=body.key)
    for effect in found.policies:
        yield _number(effect)
    for effect in found.levels:
        yield replace(_number(effect), at=_at(effect), detail=True)
    for effect in found.cells:
        if effect.difficulty is not None:  # else it is the level's, which has been told
            yield replace(_number(effect), at=_at(effect), detail=True)


def _at(effect: Effect) -> Condition:
    return Condition(
        task=effect.label or "",
        profile=effect.profile,
        level=effect.level,
        difficulty=effect.difficulty,
    )


def _number(effect: Effect) -> Number:
    pairs = counted(effect.n_pairs, "pair")
    verdict = effect.verdict or ""
    told = [f"{verdict} with novelty" if verdict in DECIDED else verdict]
    if effect.n_not_begun:
        told.append(f"the novelty never began in {effect.n_not_begun} of {pairs}")
    n = effect.difference.n
    return Number(
        estimate=replace(effect.difference, unit="difference"),
        rests_on=pairs if n == effect.n_pairs else f"{pairs}, {n} of them independent",
        note="; ".join(filter(None, told)),
    )
