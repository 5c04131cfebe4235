"""What working in several roles adds to what one role achieves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypedDict

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.defaults import PENALTIES
from robo_eval.core.errors import ShapeError
from robo_eval.formulas import checks
from robo_eval.formulas.checks import Numbers

PENALTY_WEIGHT: Final = 0.05
"""What each of them costs if it happens in every episode. This project's choice."""


class Sociality(TypedDict):
    """What a team adds, before and after penalties; None where it was not measured."""

    lift: float | None
    raw: float | None


def sociality(
    solo: Numbers,
    best_multi: Numbers,
    weights: Numbers | None = None,
    penalty_means: Numbers | Mapping[str, float] | Mapping[str, NDArray[np.float64]] | None = None,
    *,
    penalty_weights: Numbers | Mapping[str, float] | float = PENALTY_WEIGHT,
) -> Sociality:
    """Sociality axis S: share of the shortfall of one role that several roles make up for.

    Args:
        solo: Capability on each task with one role, in [0, 1], shape (n,); or draws of it, shape
            (n, draws).
        best_multi: Best capability on each task with several roles, under the same budget, of
            the same shape.
        weights: Weight of each task, at least 0, shape (n,); none for equal ones.
        penalty_means: Share of episodes with each of `PENALTIES`, by name, absent is 0; or the four
            in their order; or draws of each. None where they were not measured.
        penalty_weights: What each costs, by name, in the same order, or one number for all; a name
            that is absent costs 0.05, this project's choice.

    Returns:
        Lift, the weighted mean of max(0, best - solo) / (1 - solo), 0 for a task already perfect;
        and raw, the lift less the penalties, at least 0: this project's choice of form. None
        without tasks, raw also without penalties. Of draws arrays, shape (draws,).

    Raises:
        InputError: If a number is out of range, all weights are 0, or a penalty is unknown.
        ShapeError: If the lengths differ.

    References:
        Chojecki (2025), arXiv:2511.13411, section 3.1.

    Example:
        >>> found = sociality([0.5, 0.8], [0.75, 0.7], [1, 1], [0.1, 0.2, 0.0, 0.1])
        >>> print(f"{found['lift']:.2f} {found['raw']:.2f}")
        0.25 0.23
    """
    alone = checks.table("solo", solo, low=0.0, high=1.0)
    together = checks.table("best_multi", best_multi, low=0.0, high=1.0)
    checks.same_length(solo=alone, best_multi=together)
    means = None
    if penalty_means is not None:
        means = _by_penalty("penalty_means", penalty_means, absent=0.0, high=1.0)
    costs = _by_penalty("penalty_weights", penalty_weights, absent=PENALTY_WEIGHT, high=None)
    if not len(alone):
        return {"lift": None, "raw": None}
    weight = checks.weights_of("weights", weights, len(alone))
    # A perfect solo run leaves nothing to make up for; its shortfall of 0 divides nothing.
    shortfall = np.where(alone < 1.0, 1.0 - alone, 1.0)
    made_up = np.maximum(together - alone, 0.0) / shortfall
    lift = checks.clip(checks.total(w * own for w, own in zip(weight, made_up, strict=True)))
    if means is None:
        return {"lift": lift, "raw": None}
    penalty = checks.total(mean * cost for mean, cost in zip(means, costs, strict=True))
    return {"lift": lift, "raw": checks.clip(lift - penalty)}


def _by_penalty(name: str, values: object, *, absent: float, high: float | None) -> list[float]:
    if isinstance(values, Mapping):
        given = checks.mapping(name, values, PENALTIES)
        return [
            checks.real(f"{name}[{key!r}]", given.get(key, absent), low=0.0, high=high)
            for key in PENALTIES
        ]
    if name == "penalty_weights" and checks.is_single(values):
        return [checks.number(name, values, low=0.0)] * len(PENALTIES)
    found = list(checks.table(name, values, low=0.0, high=high))
    if len(found) != len(PENALTIES):
        raise ShapeError(
            f"{name} has {len(found)} values; give one each for {', '.join(PENALTIES)}"
        )
    return found
