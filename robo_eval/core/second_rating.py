"""Which physical episodes a second rater judges: fixed with the plan, before the first of them."""

from __future__ import annotations

import hashlib
import math
from typing import Final

from robo_eval.core.kinds import Side
from robo_eval.core.plan import TrialPlan
from robo_eval.core.schedule import planned_ids

_ROUNDING: Final = 1e-9
"""30 episodes at a share of 0.1 are 3, not the 4 that floating point makes of it."""


def second_sample(plan: TrialPlan, plan_digest: str, share: float | None = None) -> frozenset[str]:
    """Base ids of the physical episodes that a second rater judges.

    The same share of every policy's episodes on every physical side, rounded up. Which ones
    depends on the plan alone. With the same digest, a larger share contains a smaller one.

    Args:
        plan: The locked plan.
        plan_digest: SHA-256 of the locked plan, which the draw depends on.
        share: Share in [0, 1]; that of the plan if not given.
    """
    share = plan.judging.second_share if share is None else share
    chosen: set[str] = set()
    if share <= 0.0:
        return frozenset()
    for side in plan.sides:
        if side is Side.SIM:
            continue
        planned = planned_ids(plan, side)
        by_policy: dict[int, list[str]] = {}
        for name, policy in zip(planned.base_ids, planned.policies, strict=True):
            by_policy.setdefault(policy, []).append(name)
        for own in by_policy.values():
            ranked = sorted(own, key=lambda name: drawn(plan_digest, "second", name))
            chosen.update(ranked[: math.ceil(share * len(ranked) - _ROUNDING)])
    return frozenset(chosen)


def drawn(plan_digest: str, purpose: str, name: str) -> str:
    """Hexadecimal digits that look random and depend on the plan and a name alone."""
    return hashlib.sha256(f"{plan_digest}:{purpose}:{name}".encode()).hexdigest()


def is_same_person(one: str | None, other: str | None) -> bool:
    """Whether two names are of one person: an operator is no second rater of an own episode.

    Example:
        >>> is_same_person(" Ada", "ada"), is_same_person("ada", None)
        (True, False)
    """
    if one is None or other is None:
        return False
    return one.strip().casefold() == other.strip().casefold()
