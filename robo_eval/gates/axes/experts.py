"""How a policy compares with human professionals, family by family, and how much it invents."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from robo_eval import formulas
from robo_eval.core.errors import InputError
from robo_eval.core.estimate import Estimate
from robo_eval.formulas import checks

if TYPE_CHECKING:
    from robo_eval.log.evidence import Expert

COLUMNS: Final = ("family", "quality")
"""Columns of a table of scored episodes."""
SUPERHUMAN: Final = 1.96
"""Standard errors from which on a policy is better than people. This project's choice."""
TOOLS_PER_MONTH: Final = 4.0
"""Tools in a month that count as full innovation. This project's choice."""
REVISIONS_PER_MONTH: Final = 8.0
"""Revisions in a month that count as full innovation. This project's choice."""
_ROUNDING: Final = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """A policy beside human professionals in one task family.

    Attributes:
        family: Task family.
        quality: Mean quality of the policy; None if it was not played.
        quality_se: Its standard error; None below two episodes.
        expert: Mean quality of the professionals; None if none is known.
        expert_se: Its standard error.
        source: Where their numbers come from.
        difference: Quality of the policy minus theirs.
        z: The difference in standard errors; None if it is not known.
        at_least_human: Whether the lower end of the difference is at least 0.
        superhuman: Whether z is at least 1.96.
    """

    family: str
    quality: float | None
    quality_se: float | None
    expert: float | None
    expert_se: float | None
    source: str
    difference: Estimate
    z: float | None
    at_least_human: bool
    superhuman: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Margins:
    """A policy beside human professionals.

    Attributes:
        families: Each task family, in order of name.
        at_least_human: Share of families in which the lower end of the difference is at least 0.
        superhuman: Share of families in which the policy is superhuman.
        missing: Families that cannot be compared. They count as not reached in both shares.
    """

    families: tuple[Margin, ...]
    at_least_human: Estimate
    superhuman: Estimate
    missing: tuple[str, ...]


def margins_of(
    episodes: pd.DataFrame,
    experts: Iterable[Expert],
    *,
    families: Iterable[str] | None = None,
    level: float = 0.95,
) -> Margins:
    """How far a policy is ahead of human professionals in each task family.

    Args:
        episodes: Scored episodes of one policy on one side, with the columns of `COLUMNS`.
        experts: The professionals, once a family.
        families: Families of the battery; none for all that were played or have an expert.
        level: Coverage of the intervals of differences, by the normal distribution.

    Returns:
        See `Margins`. Episodes count as independent. Where all of them ended alike, the standard
        error is that with one more episode at the other end of the scale, as none would make
        every lead significant: this project's choice.

    Raises:
        InputError: If a column is missing, a quality is not in [0, 1], or a family has two experts.

    References:
        Chojecki (2025), arXiv:2511.13411, section 3.10.
    """
    checks.confidence("level", level)
    qualities = _qualities(episodes)
    known: dict[str, Expert] = {}
    for expert in experts:
        if expert.family in known:
            raise InputError(
                f"experts: line {expert.line}, column 'family': {expert.family!r} is in line"
                f" {known[expert.family].line} already; give one of them"
            )
        known[expert.family] = expert
    names = sorted({*qualities, *known} if families is None else set(families))
    found = tuple(
        _margin(name, qualities.get(name, np.zeros(0)), known.get(name), level) for name in names
    )
    missing = tuple(one.family for one in found if one.difference.low is None)
    return Margins(
        families=found,
        at_least_human=_share([one.at_least_human for one in found], missing),
        superhuman=_share([one.superhuman for one in found], missing),
        missing=missing,
    )


def _qualities(episodes: pd.DataFrame) -> dict[str, NDArray[np.float64]]:
    for name in COLUMNS:
        if name not in episodes.columns:
            raise InputError(f"episodes: column {name!r} is missing; give {', '.join(COLUMNS)}")
    numbers = checks.numbers("quality", episodes["quality"].tolist(), low=0.0, high=1.0)
    family = episodes["family"].astype(str).to_numpy()
    return {str(name): numbers[family == name] for name in np.unique(family)}


def _margin(
    family: str, quality: NDArray[np.float64], expert: Expert | None, level: float
) -> Margin:
    n = len(quality)
    mean = float(quality.mean()) if n else None
    se = _standard_error(quality)
    difference, z = _difference(mean, se, expert, n, level)
    return Margin(
        family=family,
        quality=mean,
        quality_se=se,
        expert=None if expert is None else expert.quality,
        expert_se=None if expert is None else expert.se,
        source="" if expert is None else expert.source,
        difference=difference,
        z=z,
        at_least_human=difference.low is not None and difference.low >= -_ROUNDING,
        superhuman=z is not None and z >= SUPERHUMAN,
    )


def _standard_error(quality: NDArray[np.float64]) -> float | None:
    n = len(quality)
    if n < 2:
        return None
    if np.ptp(quality) < _ROUNDING:
        other_end = 0.0 if quality[0] >= 0.5 else 1.0
        quality = np.append(quality, other_end)
    return float(quality.std(ddof=1)) / math.sqrt(len(quality))


def _difference(
    mean: float | None, se: float | None, expert: Expert | None, n: int, level: float
) -> tuple[Estimate, float | None]:
    """The difference and how many standard errors it is."""
    if mean is None or expert is None or not expert.n:
        reason = "no scored episode" if mean is None else "no human professional to compare with"
        return Estimate.missing(reason=reason, unit="ratio", n=n, method="normal"), None
    lead = mean - expert.quality
    if se is None:
        reason = "1 episode; an interval needs 2"
        return Estimate(value=lead, n=n, method="normal", unit="ratio", reason=reason), None
    half = NormalDist().inv_cdf(0.5 + level / 2.0) * math.hypot(se, expert.se)
    estimate = Estimate(
        value=lead, low=lead - half, high=lead + half, level=level, n=n, method="normal",
        unit="ratio",
    )  # fmt: skip
    return estimate, formulas.superhuman_margin(mean, se, expert.quality, expert.se)


def _share(reached: list[bool], missing: tuple[str, ...]) -> Estimate:
    """A count over the families there are: no sample, and so without interval."""
    if not reached:
        return Estimate.missing(reason="no task family", unit="ratio", method="count")
    if len(missing) == len(reached):
        reason = f"not comparable: {', '.join(missing)}"
        return Estimate.missing(reason=reason, unit="ratio", method="count")
    reason = f"not comparable: {', '.join(missing)}" if missing else "counted, not estimated"
    return Estimate(
        value=sum(reached) / len(reached), n=len(reached), method="count", unit="ratio",
        reason=reason,
    )  # fmt: skip


def innovation(
    n_tools: int,
    n_revisions: int,
    months: float,
    *,
    tools_per_month: float = TOOLS_PER_MONTH,
    revisions_per_month: float = REVISIONS_PER_MONTH,
) -> Estimate:
    """How much a policy invents: tools it integrated and revisions it made, per month.

    Args:
        n_tools: Tools it found, installed and integrated by itself.
        n_revisions: Revisions of its own that hold up.
        months: Length of the window, above 0.
        tools_per_month: Tools in a month that count 1.
        revisions_per_month: Revisions in a month that count 1.

    Returns:
        The sum of both parts, at most 1.

    Raises:
        InputError: If a count is not a whole number or another number not above 0.

    References:
        Chojecki (2025), arXiv:2511.13411, section 3.10. Both scales are this project's choice.

    Example:
        >>> innovation(4, 4, months=2.0).value
        0.75
    """
    tools, revisions = checks.count("n_tools", n_tools), checks.count("n_revisions", n_revisions)
    window = checks.positive("months", months)
    full_tools = checks.positive("tools_per_month", tools_per_month)
    full_revisions = checks.positive("revisions_per_month", revisions_per_month)
    return Estimate(
        value=checks.clip(tools / window / full_tools + revisions / window / full_revisions),
        n=tools + revisions, method="count", unit="ratio", reason="counted, not estimated",
    )  # fmt: skip
