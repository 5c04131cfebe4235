"""How capability, spread and generality are distributed over a population of agents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.analysis.acc.agent import Analysis, analyse
from robo_eval.analysis.acc.curve import NanRule
from robo_eval.analysis.acc.measures import Undefined
from robo_eval.analysis.arrays import as_numbers
from robo_eval.core.errors import InputError, ShapeError
from robo_eval.core.wording import counted
from robo_eval.stats.arrays import same_labels

ABSTRUSE_BELOW: Final = -1e-9
"""Normalised generality below which an agent is abstruse; constant curves must not flicker."""
MIN_LEVELS: Final = 5
"""Levels from which a correlation with capability may be read."""
MAX_AT_ENDS: Final = 0.25
"""Largest share of agents at floor or ceiling with which it may be read."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Population:
    """A population in numbers.

    Attributes:
        agents: The analysis of every agent, arrays of shape (A,).
        n: Agents.
        n_undefined: Agents whose generality is undefined; they are left out of its mean, of the
            correlations and of the share of abstruse agents, unless undefined counts as 0.
        mean_capability: Mean over all agents.
        mean_spread: Mean over all agents.
        mean_normalised_generality: Mean over the agents where it is defined; None if nowhere.
        capability_generality: Pearson correlation of capability and normalised generality; a
            clearly negative one would mean diminishing returns of generality. None if undefined.
        capability_spread: Pearson correlation of capability and spread; None if undefined.
        n_abstruse: Agents with a normalised generality below 0.
        share_abstruse: Their share of the agents where it is defined; None if nowhere.
        row_mean: Mean response of each agent, shape (A,).
        row_variance: Population variance of each agent's responses, shape (A,).
        caution: Why the correlations must not be interpreted; None if they may.
    """

    agents: Analysis
    n: int
    n_undefined: int
    mean_capability: float
    mean_spread: float
    mean_normalised_generality: float | None
    capability_generality: float | None
    capability_spread: float | None
    n_abstruse: int
    share_abstruse: float | None
    row_mean: NDArray[np.float64]
    row_variance: NDArray[np.float64]
    caution: str | None


@same_labels(error=InputError)
def population(
    response: ArrayLike,
    difficulty: ArrayLike,
    *,
    h0: float | None = None,
    q: float | None = None,
    left_fill: float = 1.0,
    right_fill: float = 0.0,
    undefined: Undefined = "nan",
    nan: NanRule = "raise",
    bins: int | None = None,
    min_count: int = 1,
) -> Population:
    """Analyse every agent of a response matrix and summarise them.

    Args:
        response: Responses in [0, 1], shape (A, I).
        difficulty: Difficulty of each item, shape (I,).
        h0: As in `analyse`, like the arguments that follow.
        q: See `analyse`.
        left_fill: See `analyse`.
        right_fill: See `analyse`.
        undefined: See `analyse`; with `"zero"` undefined generalities enter every number as 0.
        nan: See `analyse`.
        bins: See `analyse`.
        min_count: See `analyse`.

    Raises:
        InputError: As `analyse`.
        ShapeError: If `response` is not a matrix.
    """
    responses = as_numbers("response", response)
    if responses.ndim != 2:
        raise ShapeError(f"response has shape {responses.shape}; it must be (agents, items)")
    agents = analyse(
        responses,
        difficulty,
        h0=h0,
        q=q,
        left_fill=left_fill,
        right_fill=right_fill,
        undefined=undefined,
        nan=nan,
        bins=bins,
        min_count=min_count,
    )
    gamma = np.asarray(agents.normalised_generality)
    defined = ~np.isnan(gamma)
    n_defined = int(defined.sum())
    n_abstruse = int((gamma[defined] < ABSTRUSE_BELOW).sum())
    flags = agents.flag if isinstance(agents.flag, tuple) else ()
    return Population(
        agents=agents,
        n=len(gamma),
        n_undefined=sum(flag is not None for flag in flags),
        mean_capability=float(agents.capability.mean()),
        mean_spread=float(agents.spread.mean()),
        mean_normalised_generality=float(gamma[defined].mean()) if n_defined else None,
        capability_generality=_pearson(agents.capability[defined], gamma[defined]),
        capability_spread=_pearson(agents.capability[defined], agents.spread[defined]),
        n_abstruse=n_abstruse,
        share_abstruse=n_abstruse / n_defined if n_defined else None,
        row_mean=np.nanmean(responses, axis=1),
        row_variance=np.nanvar(responses, axis=1),
        caution=_caution(agents, flags),
    )


def _pearson(a: NDArray[np.float64], b: NDArray[np.float64]) -> float | None:
    if len(a) < 2 or np.ptp(a) == 0.0 or np.ptp(b) == 0.0:
        return None
    return float(np.corrcoef(a, b)[0, 1])


def _caution(agents: Analysis, flags: tuple[str | None, ...]) -> str | None:
    n_levels = len(agents.levels)
    if n_levels < MIN_LEVELS:
        return (
            f"with {counted(n_levels, 'difficulty level')} the ends force the shape of the curve;"
            f" correlations need at least {MIN_LEVELS}"
        )
    n_ends = sum(flag in ("floor", "ceiling") for flag in flags)
    if n_ends > MAX_AT_ENDS * len(flags):
        verb = "is" if n_ends == 1 else "are"
        agents_text = counted(len(flags), "agent")
        return f"{n_ends} of {agents_text} {verb} at floor or ceiling; correlations mislead"
    return None
