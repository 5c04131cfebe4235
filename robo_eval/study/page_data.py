"""The numbers that `study.js` fills pictures with, as compact as the eye allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import ConvexHull, QhullError

from robo_eval.page.words import percent
from robo_eval.study.agent_figures import conditions
from robo_eval.study.figures import pair_words, seen, size_text
from robo_eval.study.measure import SHARES
from robo_eval.study.outcome import Outcome
from robo_eval.study.ranking import Ranking
from robo_eval.study.space_figures import flat_points

SUITE: Final = "suite"
"""Key of the hull of all tests, which an agent without fault covers."""
_DIGITS: Final = 4


@dataclass(frozen=True, slots=True)
class Choice:
    """Something that can be chosen on the page.

    Attributes:
        key: What the program of the page calls it.
        label: What people read.
    """

    key: str
    label: str


@dataclass(frozen=True, slots=True)
class Choices:
    """Choices under one heading."""

    title: str
    items: list[Choice]


def page_data(outcome: Outcome, rankings: Sequence[Ranking]) -> dict[str, Any]:
    """Everything that depends on what is chosen, ready for JSON.

    Args:
        outcome: What was found.
        rankings: Agents, if some were ranked.
    """
    measured = outcome.measured
    places = range(len(measured.tests))
    pairs = [key for key in combinations_with_replacement(places, 2) if key in measured.mixtures]
    return {
        "shares": SHARES,
        "sizes": measured.sizes.tolist(),
        "pool": _rounded(measured.performances),
        "curves": [_rounded(one.curve, 1) for one in outcome.curves],
        "others": [_rounded(one.curve, 1) for one in outcome.others],
        "seen": [seen(one) for one in outcome.curves],
        "curveWords": [curve_words(outcome, place) for place in places],
        "alone": [_rounded(row) for row in measured.alone],
        "mixed": {f"{i} {j}": _rounded(measured.observed(i, j)[:, 1:-1]) for i, j in pairs},
        "reached": {f"{i} {j}": _rounded(measured.observed(i, j).mean(axis=0)) for i, j in pairs},
        "pairWords": {f"{i} {j}": pair_words(outcome, i, j) for i, j in pairs},
        "hulls": _hulls(outcome, rankings),
    }


def curve_words(outcome: Outcome, place: int) -> str:
    """The complexity of a test, and how much of it was seen, as a sentence."""
    curve = outcome.curves[place]
    return (
        f"{size_text(outcome.complexities[place])} parameters; {curve.filled} of"
        f" {len(curve.curve)} bins hold a policy, and {percent(curve.extrapolated_share)} of the"
        " area is extrapolated"
    )


def hull_choices(rankings: Sequence[Ranking]) -> list[Choices]:
    """Agents whose hull can be drawn, by the conditions they were played under."""
    return [
        Choices(
            conditions(ranking),
            [Choice(f"{group} {place}", ranking.agents[place].policy) for place in _whole(ranking)],
        )
        for group, ranking in enumerate(rankings)
    ]


def _whole(ranking: Ranking) -> list[int]:
    """Places of the agents that were played in every test."""
    return [
        place for place, one in enumerate(ranking.agents) if np.isfinite(one.performances).all()
    ]


def _hulls(outcome: Outcome, rankings: Sequence[Ranking]) -> dict[str, Any]:
    points = outcome.space.points
    found = {SUITE: _hull(points)}
    for group, ranking in enumerate(rankings):
        for place in _whole(ranking):
            own = points * ranking.agents[place].performances[:, None]
            found[f"{group} {place}"] = _hull(own)
    return found


def _hull(points: NDArray[np.float64]) -> dict[str, Any]:
    """The hull of the origin and some points in three dimensions, and its outline in two."""
    corners = np.vstack([np.zeros(points.shape[1]), points])
    flat = flat_points(corners)
    ring = _convex(flat)
    found: dict[str, Any] = {"ring": _rounded(flat[ring.vertices] if ring else flat[:0])}
    if corners.shape[1] >= 3:
        solid = _convex(corners[:, :3])
        found["points"] = _rounded(corners[:, :3])
        found["faces"] = solid.simplices.tolist() if solid else []
    return found


def _convex(points: NDArray[np.float64]) -> ConvexHull | None:
    """The hull; None where points are flat and have none."""
    try:
        return ConvexHull(points)
    except QhullError:
        return None


def _rounded(values: ArrayLike, digits: int = _DIGITS) -> Any:  # noqa: ANN401 - nested lists
    return np.round(np.asarray(values, float), digits).tolist()
