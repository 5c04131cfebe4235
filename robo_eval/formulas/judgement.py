"""Whether stated probabilities, retrieved items and answers hold up: world model and cognition."""

from __future__ import annotations

import math
from typing import Final, Literal, TypedDict

import numpy as np

from robo_eval.core.errors import InputError, ShapeError
from robo_eval.formulas import checks
from robo_eval.formulas.checks import Numbers, Real

_GUARD: Final = 1e-6
"""Smallest Brier score a reference is taken to have. This project's choice."""

Statement = Literal["probability", "odds", "interval"]


class WorldModel(TypedDict):
    """Brier scores of the agent and of a reference, and the world-model axis; None if empty."""

    brier: float | None
    brier_ref: float | None
    w: float | None


class Cognitive(TypedDict):
    """Share of the room for items filled with verified ones, share of items that are not.

    Attributes:
        vrp_at_k: Verified items over queries times k; None without queries.
        hr_at_k: Unverified items over returned items; None if nothing was returned.
    """

    vrp_at_k: float | None
    hr_at_k: float | None


def stated_probability(statement: Numbers | float, form: Statement = "probability") -> float:
    """A stated probability of success, in whichever form it was stated, cut off at 0 and 1.

    Args:
        statement: A number; odds o for o to 1; or the two ends of an interval.
        form: `"probability"`, `"odds"` for o / (1 + o), or `"interval"` for the midpoint.

    Raises:
        InputError: If a number is not finite, odds are negative, or the form is unknown.
        ShapeError: If an interval has not two ends.

    References:
        Chojecki (2025), arXiv:2511.13411, section 3.1.

    Example:
        >>> stated_probability(3, "odds"), stated_probability([0.5, 0.75], "interval")
        (0.75, 0.625)
    """
    if checks.one_of("form", form, ("probability", "odds", "interval")) == "interval":
        ends = checks.numbers("statement", statement)
        if len(ends) != 2:
            raise ShapeError(f"statement has {len(ends)} values; an interval has two ends")
        return checks.clip(float(ends[0] / 2.0 + ends[1] / 2.0))
    if form == "probability":
        return checks.clip(checks.number("statement", statement))
    odds = checks.number("statement", statement, low=0.0)
    return odds / (1.0 + odds)


def world_model(p: Numbers, y: Numbers, p_ref: Numbers | float) -> WorldModel:
    """World-model axis W: how much better an agent foretells its success than a reference does.

    Args:
        p: Probability of success the agent stated for each episode, in [0, 1], shape (n,).
        y: Whether it succeeded, 0 or 1, shape (n,).
        p_ref: What the reference stated, for all episodes or for each.

    Returns:
        Mean squared errors and clip(1 - brier / max(brier_ref, 1e-6)); all None without episodes.

    Raises:
        InputError: If a probability is not in [0, 1] or an outcome neither 0 nor 1.
        ShapeError: If the lengths differ.

    References:
        Chojecki (2025), arXiv:2511.13411, section 3.1; Brier (1950), Monthly Weather Review 78:1-3.
        The guard is this project's choice.

    Example:
        >>> found = world_model([0.9, 0.2, 0.7, 0.6], [1, 0, 1, 0], p_ref=0.5)
        >>> print(f"{found['brier']:.3f} {found['brier_ref']:.2f} {found['w']:.2f}")
        0.125 0.25 0.50
    """
    stated = checks.numbers("p", p, low=0.0, high=1.0)
    outcome = checks.numbers("y", y)
    checks.same_length(p=stated, y=outcome)
    neither = np.flatnonzero((outcome != 0.0) & (outcome != 1.0))
    if neither.size:
        at = int(neither[0])
        raise InputError(f"y[{at}] is {outcome[at]:g}; an outcome is 0 or 1")
    if checks.is_single(p_ref):
        reference = np.full(len(stated), checks.share("p_ref", p_ref))
    else:
        reference = checks.numbers("p_ref", p_ref, low=0.0, high=1.0)
        checks.same_length(p=stated, p_ref=reference)
    if not len(stated):
        return {"brier": None, "brier_ref": None, "w": None}
    brier = math.fsum((stated - outcome) ** 2) / len(stated)
    brier_ref = math.fsum((reference - outcome) ** 2) / len(stated)
    return {"brier": brier, "brier_ref": brier_ref, "w": skill(brier, brier_ref)}


def skill(brier: Real, brier_ref: Real) -> float:
    """How much smaller a mean squared error is than that of a reference, in [0, 1].

    Args:
        brier: Mean squared error, or draws of it.
        brier_ref: That of the reference, taken to be at least 1e-6.
    """
    return checks.clip(1.0 - brier / np.maximum(brier_ref, _GUARD))


def cognitive(returned: Numbers | float, verified: Numbers | float, k: float) -> Cognitive:
    """Verified retrieval precision and hallucination rate among the first k items of each query.

    Args:
        returned: Items returned for each query, at most k, shape (n,); a number is one query.
        verified: How many of them hold up, shape (n,).
        k: Items asked for, at least 1.

    Returns:
        See `Cognitive`.

    Raises:
        InputError: If a count is negative or not whole, more items were returned than asked for, or
            more verified than returned.
        ShapeError: If the lengths differ.

    References:
        Chojecki (2025), arXiv:2511.13411, section 4.5. Which number each share is divided by is
        this project's reading.

    Example:
        >>> found = cognitive(returned=[5, 5, 4], verified=[5, 4, 3], k=5)
        >>> print(f"{found['vrp_at_k']:.3f} {found['hr_at_k']:.3f}")
        0.800 0.143
    """
    size = checks.count("k", k)
    if size < 1:
        raise InputError("k is 0; at least one item must be asked for")
    n_returned, n_verified = _counts("returned", returned), _counts("verified", verified)
    if len(n_returned) != len(n_verified):
        raise ShapeError(
            f"returned has {len(n_returned)} values and verified {len(n_verified)}; "
            "they must be as many"
        )
    for i, (items, good) in enumerate(zip(n_returned, n_verified, strict=True)):
        if items > size:
            raise InputError(f"returned[{i}] is {items}; at most k = {size} items count")
        if good > items:
            raise InputError(f"verified[{i}] is {good} of {items} returned; it must not be more")
    total, hits = sum(n_returned), sum(n_verified)
    return {
        "vrp_at_k": hits / (len(n_returned) * size) if n_returned else None,
        "hr_at_k": (total - hits) / total if total else None,
    }


def _counts(name: str, values: Numbers | float) -> list[int]:
    if checks.is_single(values):
        return [checks.count(name, values)]
    return [
        checks.count(f"{name}[{i}]", value) for i, value in enumerate(checks.sequence(name, values))
    ]


def superhuman_margin(
    q_agent: float, se_agent: float, q_expert: float, se_expert: float
) -> float | None:
    """By how many standard errors an agent is better than experts.

    Args:
        q_agent: Mean quality of the agent.
        se_agent: Its standard error, at least 0.
        q_expert: Mean quality of the experts.
        se_expert: Its standard error, at least 0.

    Returns:
        (q_agent - q_expert) / sqrt(se_agent^2 + se_expert^2); None if both errors are 0.

    Raises:
        InputError: If a number is not finite or an error negative.

    References:
        Chojecki (2025), arXiv:2511.13411, section 3.10.

    Example:
        >>> print(f"{superhuman_margin(0.82, 0.02, 0.74, 0.025):.3f}")
        2.499
    """
    lead = checks.number("q_agent", q_agent) - checks.number("q_expert", q_expert)
    error = math.hypot(
        checks.number("se_agent", se_agent, low=0.0), checks.number("se_expert", se_expert, low=0.0)
    )
    return checks.finite(lead / error) if error > 0.0 else None
