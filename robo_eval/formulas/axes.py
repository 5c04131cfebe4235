"""Raw measurements as axes in [0, 1]: autonomy, generality, planning, memory, tools, throughput."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, Literal, TypedDict

import numpy as np

from robo_eval.core.errors import InputError
from robo_eval.formulas import checks
from robo_eval.formulas.checks import Numbers, Real

HORIZON: Final = 50.0
"""Uninterrupted actions of a fully autonomous task. This project's choice, by domain."""
FULL_DEPTH: Final = 8.0
"""Plan depth of full credit. This project's choice."""
H_MIN_DAYS: Final = 7.0
"""Half-life at which retention counts one half. This project's choice."""
SIZE_PRIOR: Final = 3.0
"""Tool categories at which their number counts one half. This project's choice."""

_LEAST: Final = 1e-300

Scale = Literal["linear", "log"]


class Memory(TypedDict):
    """Retention over time, and the memory axis made of it and of recall."""

    retention: float | None
    m: float | None


def calibrate(x: Real, a0: float, a1: float, *, scale: Scale = "linear") -> float:
    """A raw value on the line through two anchors, cut off at 0 and 1.

    Args:
        x: Raw value, or draws of it.
        a0: Value that counts 0: a strong feasible baseline.
        a1: Value that counts 1: an expert team, or the ceiling. Below `a0` where lower is better.
        scale: `"log"` compares logarithms; then the anchors are above 0 and `x` is at least 0.

    Returns:
        A number in [0, 1], or as many as there are draws.

    Raises:
        InputError: If the anchors are equal, a number is not finite or has no logarithm, or the
            scale is unknown.

    References:
        Chojecki (2025), arXiv:2511.13411, section 3.1.

    Example:
        >>> calibrate(7, a0=2, a1=10)
        0.625
    """
    is_log = checks.one_of("scale", scale, ("linear", "log")) == "log"
    value = checks.real("x", x, low=0.0 if is_log else None)
    anchor = checks.positive if is_log else checks.number
    low, high = anchor("a0", a0), anchor("a1", a1)
    if low == high:
        raise InputError(f"a0 and a1 are both {a0}; two different anchors are needed")
    if is_log:
        with np.errstate(divide="ignore"):
            value, low, high = np.log(value), math.log(low), math.log(high)
    return checks.clip((value - low) / (high - low))


def autonomy(
    uninterrupted_actions: Numbers, horizon: float = HORIZON, *, success: Numbers | None = None
) -> float | None:
    """Autonomy axis A: how much of a horizon is covered without intervention.

    Args:
        uninterrupted_actions: Actions before the first intervention, one number a task, shape (n,).
        horizon: Actions that count 1; 50 is this project's choice, by domain.
        success: Whether each task was solved, shape (n,); tasks that were not count 0. None, this
            project's choice, does not ask.

    Returns:
        Mean of min(u, horizon) / horizon; None without tasks.

    Raises:
        InputError: If a number is negative or not finite, or the horizon not above 0.
        ShapeError: If the lengths differ.

    References:
        Chojecki (2025), arXiv:2511.13411, section 3.1.

    Example:
        >>> autonomy([10, 50, 80, 25])
        0.675
    """
    actions = checks.numbers("uninterrupted_actions", uninterrupted_actions, low=0.0)
    length = checks.positive("horizon", horizon)
    credit = np.minimum(actions, length) / length
    if success is not None:
        solved = checks.numbers("success", success, low=0.0, high=1.0)
        checks.same_length(uninterrupted_actions=actions, success=solved)
        credit = credit * solved
    return math.fsum(credit) / len(credit) if len(credit) else None


def generality(
    family_quality: Numbers, threshold: Numbers | float, *, weights: Numbers | None = None
) -> float | None:
    """Generality axis G: share of task families whose mean quality reaches a threshold.

    Args:
        family_quality: Mean quality of each family, in [0, 1], shape (n,).
        threshold: Quality to reach, for all families or for each.
        weights: Weight of each family, at least 0, shape (n,); none for equal ones.

    Returns:
        A number in [0, 1]; None without families.

    Raises:
        InputError: If a quality or threshold is not in [0, 1], a weight negative, or all are 0.
        ShapeError: If the lengths differ.

    References:
        Chojecki (2025), arXiv:2511.13411, section 3.1.

    Example:
        >>> generality([0.9, 0.8, 0.7, 0.4], threshold=0.7)
        0.75
    """
    quality = checks.numbers("family_quality", family_quality, low=0.0, high=1.0)
    if checks.is_single(threshold):
        limit = np.full(len(quality), checks.share("threshold", threshold))
    else:
        limit = checks.numbers("threshold", threshold, low=0.0, high=1.0)
        checks.same_length(family_quality=quality, threshold=limit)
    if not len(quality):
        return None
    weight = checks.weights_of("weights", weights, len(quality))
    return checks.clip(math.fsum(weight[quality >= limit]))


def planning(depth: Numbers, success: Numbers, full_depth: float = FULL_DEPTH) -> float | None:
    """Planning axis P: how deep the plans were that solved their task.

    Args:
        depth: Smallest plan depth at which each task was solved, shape (n,).
        success: Whether each task was solved, 0 or 1, shape (n,).
        full_depth: Depth that counts 1; 8 is this project's choice.

    Returns:
        Mean of s min(d, full_depth) / full_depth; None without tasks.

    Raises:
        InputError: If a number is negative or not finite, a success not in [0, 1], or `full_depth`
            not above 0.
        ShapeError: If the lengths differ.

    References:
        Chojecki (2025), arXiv:2511.13411, section 3.1.

    Example:
        >>> planning([4, 8, 12, 6], [1, 1, 1, 0])
        0.625
    """
    d = checks.numbers("depth", depth, low=0.0)
    s = checks.numbers("success", success, low=0.0, high=1.0)
    checks.same_length(depth=d, success=s)
    full = checks.positive("full_depth", full_depth)
    return math.fsum(s * np.minimum(d, full) / full) / len(d) if len(d) else None


def memory(
    half_life_days: Real | None,
    h_min_days: float = H_MIN_DAYS,
    recall_at_k: Real | None = None,
) -> Memory:
    """Memory axis M: geometric mean of retention over days and of recall.

    Args:
        half_life_days: Days after which half is forgotten; `math.inf` where nothing is, None where
            it was not measured. Or draws of it, shape (draws,).
        h_min_days: Half-life that counts one half; 7 is this project's choice.
        recall_at_k: Share of what was asked for among the first k items returned; None where it was
            not measured. k = 5 is this project's choice.

    Returns:
        Retention 1 / (1 + h_min / half-life) and sqrt(retention * recall), both in [0, 1], or as
        many as there are draws; None where what they need was not measured.

    Raises:
        InputError: If the half-life is negative, `h_min_days` not above 0, or the recall not in
            [0, 1].

    References:
        Chojecki (2025), arXiv:2511.13411, section 3.1. Both forms are this project's choice.

    Example:
        >>> found = memory(half_life_days=14, h_min_days=7, recall_at_k=0.81)
        >>> print(f"{found['retention']:.3f} {found['m']:.3f}")
        0.667 0.735
    """
    unit = checks.positive("h_min_days", h_min_days)
    recall = checks.share_or_none("recall_at_k", recall_at_k, drawn=True)
    if half_life_days is None:
        return {"retention": None, "m": None}
    # Infinity is a measurement here: a fit that found no decay.
    is_endless = np.equal(half_life_days, math.inf)
    checks.real("half_life_days", np.where(is_endless, 0.0, half_life_days)[()], low=0.0)
    with np.errstate(divide="ignore", over="ignore"):
        retention = checks.clip(1.0 / (1.0 + np.divide(unit, half_life_days)))
    m = None if recall is None else checks.clip(np.sqrt(retention * recall))
    return {"retention": retention, "m": m}


def tool_economy(
    categories_passing: Real, success_under_drift: Real | None, size_prior: float = SIZE_PRIOR
) -> float | None:
    """Tool axis T: how many categories of tools work under drift, and how often.

    Args:
        categories_passing: Categories used successfully under drift, n; or draws of it.
        success_under_drift: Success rate under drift, in [0, 1], or draws of it; None if there were
            no episodes.
        size_prior: Number of categories that counts one half, k0; 3 is this project's choice.

    Returns:
        n / (n + k0) times the success rate, or as many as there are draws; None without episodes.

    Raises:
        InputError: If `categories_passing` is negative or not whole, `size_prior` negative, or the
            rate not in [0, 1].

    References:
        Chojecki (2025), arXiv:2511.13411, section 3.1. The form of the first factor is this
        project's choice.

    Example:
        >>> print(f"{tool_economy(6, 0.9):.2f}")
        0.60
    """
    n = checks.whole("categories_passing", categories_passing)
    prior = checks.number("size_prior", size_prior, low=0.0)
    rate = checks.share_or_none("success_under_drift", success_under_drift, drawn=True)
    if rate is None:
        return None
    # Without a prior none of none is nothing.
    return checks.clip(n / np.maximum(n + prior, _LEAST) * rate)


def throughput(tasks_per_hour: float, cost_per_hour: float | Mapping[str, float]) -> float | None:
    """Tasks at target quality per unit of currency; `calibrate` makes an axis of it.

    For a robot the cost is itemised: energy, wear, consumables, operator.

    Args:
        tasks_per_hour: Tasks completed at target quality, per hour.
        cost_per_hour: Cost per hour, or each item of it, by name.

    Returns:
        None if nothing was paid: a price of 0 is a price that was not counted.

    Raises:
        InputError: If a number is negative or not finite.

    References:
        Chojecki (2025), arXiv:2511.13411, sections 3.1 and 7.

    Example:
        >>> throughput(12, {"energy": 1.0, "operator": 2.0})
        4.0
    """
    tasks = checks.number("tasks_per_hour", tasks_per_hour, low=0.0)
    items = cost_per_hour if isinstance(cost_per_hour, Mapping) else {"": cost_per_hour}
    cost = math.fsum(
        checks.number(f"cost_per_hour[{name!r}]" if name else "cost_per_hour", item, low=0.0)
        for name, item in items.items()
    )
    return checks.finite(tasks / cost) if cost > 0.0 else None
