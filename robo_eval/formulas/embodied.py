"""Whether success in simulation carries over to the robot, and the embodiment axis made of it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, NotRequired, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.defaults import MAX_UNMATCHED
from robo_eval.core.errors import InputError, ShapeError
from robo_eval.formulas import checks
from robo_eval.formulas.checks import Real

MAX_UNCOVERED_MASS: Final = MAX_UNMATCHED
"""Share of real episodes without a simulated counterpart above which nothing is compared. This
project's choice."""
_ROUNDING: Final = 1e-9
"""A mass that exceeds the limit by less does so because decimal shares have no exact sum."""

# A mapping's key type is invariant, so a union of all hashable keys can only be written as Any.
ByContext: TypeAlias = Mapping[Any, float | None] | Sequence[float | None] | NDArray[np.floating]
"""A number for each context, by its name or in one order."""


class Reweighted(TypedDict):
    """Simulated success in the mixture of contexts met in reality.

    Attributes:
        ar_sim_reweighted: Success rate in simulation, weighted as in reality; None if no context
            of the real episodes was simulated.
        uncovered_mass: Share of the real episodes whose context was not simulated.
        s2r: Agreement of both sides; None if it cannot be told.
        effective_sample_size: Simulated episodes the weights leave; only if their number is given.
    """

    ar_sim_reweighted: float | None
    uncovered_mass: float | None
    s2r: float | None
    effective_sample_size: NotRequired[float | None]


def s2r(ar_sim: float | None, ar_real: float | None) -> float | None:
    """Agreement of simulation and reality: 1 less the distance of the two success rates.

    Two robots that both always fail agree perfectly, so print the real rate beside it.

    Args:
        ar_sim: Success rate of the simulated episodes; None if there are none.
        ar_real: Success rate of the real episodes; None if there are none.

    Returns:
        A number in [0, 1]; None if either side is missing.

    Raises:
        InputError: If a rate is not in [0, 1].

    References:
        Chojecki (2025), arXiv:2511.13411, section 7. The absolute difference is this project's
        choice.

    Example:
        >>> print(f"{s2r(ar_sim=0.92, ar_real=0.85):.2f}")
        0.93
    """
    sim = checks.share_or_none("ar_sim", ar_sim)
    real = checks.share_or_none("ar_real", ar_real)
    if sim is None or real is None:
        return None
    return checks.clip(1.0 - abs(sim - real))


def s2r_reweighted(
    ar_sim_by_context: ByContext,
    real_context_mass: ByContext,
    ar_real: float | ByContext | None,
    *,
    n_sim_by_context: ByContext | None = None,
    max_uncovered_mass: float = MAX_UNCOVERED_MASS,
) -> Reweighted:
    """Agreement where simulation met another mixture of contexts than reality.

    Simulated success is averaged with the weights the contexts have in reality, over those that
    were simulated. Contexts that were simulated only do not count. A context is a task in a bin of
    conditions; give numbers by its name, or all of them as sequences in one order.

    Args:
        ar_sim_by_context: Success rate of the simulated episodes of each context; a context that
            was not simulated is absent or None.
        real_context_mass: Share, or number, of the real episodes in each context. Divided by their
            sum.
        ar_real: Success rate of the real episodes; or that of each context, and then only contexts
            that were simulated are compared. None if there are none.
        n_sim_by_context: Simulated episodes of each context, for the effective sample size.
        max_uncovered_mass: Real share that may lack a simulated counterpart; 0.10 is this
            project's choice.

    Returns:
        See `Reweighted`. All None if there is no context at all; `s2r` is None if more than
        `max_uncovered_mass` of reality was not simulated.

    Raises:
        InputError: If a rate is not in [0, 1], a mass negative, all masses are 0, or a simulated
            context lacks its real rate or its number of episodes.
        ShapeError: If sequences differ in length or are mixed with mappings.

    References:
        Chojecki (2025), arXiv:2511.13411, section 7, asks for matched conditions; the estimator is
        post-stratification. Effective sample size: Kish (1965), Survey Sampling.

    Example:
        >>> found = s2r_reweighted({"dry": 0.95, "wet": 0.8}, {"dry": 0.5, "wet": 0.5}, 0.85)
        >>> print(f"{found['ar_sim_reweighted']:.3f} {found['s2r']:.3f}")
        0.875 0.975
    """
    masses = _by_context("real_context_mass", real_context_mass)
    sim = _rates("ar_sim_by_context", ar_sim_by_context, like=real_context_mass)
    mass = _normalised(masses)
    limit = checks.share("max_uncovered_mass", max_uncovered_mass)
    covered = [context for context, m in mass.items() if m > 0.0 and sim.get(context) is not None]
    uncovered = [m for context, m in mass.items() if context not in covered]
    real: float | None
    if ar_real is None or checks.is_single(ar_real):
        real = checks.share_or_none("ar_real", ar_real)
    else:
        by_context = _rates("ar_real", ar_real, like=real_context_mass)
        real = _mean_over("ar_real", by_context, mass, covered)
    found: Reweighted = {
        "ar_sim_reweighted": _mean_over("ar_sim_by_context", sim, mass, covered),
        "uncovered_mass": math.fsum(uncovered) if mass else None,
        "s2r": None,
    }
    if found["uncovered_mass"] is not None and found["uncovered_mass"] <= limit + _ROUNDING:
        found["s2r"] = s2r(found["ar_sim_reweighted"], real)
    if n_sim_by_context is not None:
        n = _by_context("n_sim_by_context", n_sim_by_context, like=real_context_mass)
        found["effective_sample_size"] = _effective_sample_size(mass, covered, n)
    return found


def _by_context(name: str, values: object, *, like: object = None) -> dict[Hashable, object]:
    if isinstance(values, Mapping) != isinstance(like, Mapping) and like is not None:
        raise ShapeError(f"{name} and real_context_mass must both be mappings, or neither")
    if isinstance(values, Mapping):
        return dict(values)
    items = checks.sequence(name, values)
    if like is not None and len(items) != len(checks.sequence("real_context_mass", like)):
        raise ShapeError(f"{name} has {len(items)} values; real_context_mass has not as many")
    return dict(enumerate(items))


def _rates(name: str, values: object, *, like: object) -> dict[Hashable, float | None]:
    return {
        context: checks.share_or_none(f"{name}[{context!r}]", rate)
        for context, rate in _by_context(name, values, like=like).items()
    }


def _normalised(masses: Mapping[Hashable, object]) -> dict[Hashable, float]:
    mass = {
        context: checks.number(f"real_context_mass[{context!r}]", m, low=0.0)
        for context, m in masses.items()
    }
    if not mass:
        return {}
    total = checks.total_weight("real_context_mass", mass.values())
    return {context: m / total for context, m in mass.items()}


def _mean_over(
    name: str,
    rates: Mapping[Hashable, float | None],
    mass: Mapping[Hashable, float],
    contexts: list[Hashable],
) -> float | None:
    parts = []
    for context in contexts:
        rate = rates.get(context)
        if rate is None:
            raise InputError(f"{name} lacks context {context!r}, which was met and simulated")
        parts.append(mass[context] * rate)
    if not contexts:
        return None
    return checks.clip(math.fsum(parts) / math.fsum(mass[context] for context in contexts))


def _effective_sample_size(
    mass: Mapping[Hashable, float], contexts: list[Hashable], n_by_context: dict[Hashable, object]
) -> float | None:
    total = math.fsum(mass[context] for context in contexts)
    squares = []
    for context in contexts:
        n = checks.count(f"n_sim_by_context[{context!r}]", n_by_context.get(context, 0))
        if n == 0:
            raise InputError(f"n_sim_by_context has no episodes of {context!r}, which has a rate")
        # Each of the n episodes of a context has an nth of its weight.
        squares.append((mass[context] / total) ** 2 / n)
    return 1.0 / math.fsum(squares) if squares else None


def embodiment(ar: Real | None, ss: Real | None, s2r: Real | None) -> float | None:
    """Embodiment axis E: geometric mean of reliability, safety and agreement with simulation.

    Args:
        ar: Actuation reliability, the strict success rate of the real episodes; or draws of it, as
            of the others.
        ss: Safety score.
        s2r: Agreement of simulation and reality.

    Returns:
        A number in [0, 1], 0 if one of them is 0, or as many as there are draws; None if one of
        them is missing, even if another is 0.

    Raises:
        InputError: If one of them is not in [0, 1].

    References:
        Chojecki (2025), arXiv:2511.13411, sections 3.1 and 7.

    Example:
        >>> print(f"{embodiment(ar=0.85, ss=0.92, s2r=0.93):.4f}")
        0.8993
    """
    given = [
        checks.share_or_none(name, value, drawn=True)
        for name, value in (("ar", ar), ("ss", ss), ("s2r", s2r))
    ]
    parts = [value for value in given if value is not None]
    if len(parts) < len(given):
        return None
    return checks.clip(math.prod(parts) ** (1.0 / 3.0))
