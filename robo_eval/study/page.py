"""The page of a study: one HTML file that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any, Final

import numpy as np
import yaml
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import ConvexHull, QhullError

from robo_eval.analysis.aiq import MIXTURES
from robo_eval.log.files import write_atomically
from robo_eval.page.embed import script_json
from robo_eval.page.figure import Figure
from robo_eval.page.figures import Forms, both_forms, styles
from robo_eval.page.render import render_page
from robo_eval.page.words import percent
from robo_eval.study import figures, space_figures
from robo_eval.study import page_words as words
from robo_eval.study.agent_figures import (
    MEASURES,
    agent_charts,
    agents_of,
    conditions,
    has_curves,
    measures,
)
from robo_eval.study.figures import pair_words, seen, size_text
from robo_eval.study.matched import ALL
from robo_eval.study.measure import SHARES
from robo_eval.study.outcome import Outcome
from robo_eval.study.ranking import Ranking
from robo_eval.study.space_figures import flat_points
from robo_eval.study.suite import Suite

PAGE_NAME: Final = "report.html"
SUITE: Final = "suite"
"""Key of the hull of all tests, which an agent without fault covers."""
_DIGITS: Final = 4


def write_page(
    outcome: Outcome,
    path: Path,
    rankings: Sequence[Ranking] = (),
    *,
    suite: Suite | None = None,
) -> Path:
    """Write the page of a study; it is there complete, or not at all.

    Args:
        outcome: What was found.
        path: The file, or a folder that gets a `report.html`.
        rankings: Agents, one ranking for each side and difficulty; none leaves that part out.
        suite: What was asked for, which the page then says.

    Returns:
        Where the page is.

    Raises:
        TrialDirectoryError: If it cannot be written; nothing was changed then.
    """
    file = path / PAGE_NAME if path.is_dir() else path
    write_atomically(file, render(outcome, rankings, suite=suite).encode())
    return file


def render(
    outcome: Outcome, rankings: Sequence[Ranking] = (), *, suite: Suite | None = None
) -> str:
    """The page as text; see `write_page`."""
    # All difficulties together say most, so they come first, and are what is chosen at first.
    rankings = sorted(rankings, key=lambda one: one.difficulty != ALL)
    charts = _charts(outcome, rankings)
    names = agents_of(rankings)
    is_solid = outcome.space.points.shape[1] >= 3
    return render_page(
        "study.html.j2",
        charts,
        outcome=outcome,
        synopsis=words.synopsis(outcome, suite),
        summary=words.summary(outcome),
        facts=words.facts(outcome, suite),
        suite_text=_yaml(suite),
        size_text=size_text,
        known=words.known,
        smallest_sizes=words.smallest_sizes,
        is_like_noise=figures.is_like_noise,
        order=words.clusters(outcome),
        heights_of_table=words.HEIGHTS,
        mixtures=MIXTURES,
        floor=outcome.dissimilarities.floor,
        mark=figures.LIKE_NOISE,
        rule=figures.RULES[outcome.rule],
        other_rule=figures.RULES[outcome.other_rule],
        space_figure="space" if is_solid else "space-flat",
        choices=hull_choices(rankings),
        chosen=_chosen(outcome, rankings),
        suite_key=SUITE,
        rankings=rankings,
        conditions=conditions,
        has_curves=any(has_curves(one) for one in rankings),
        causes=words.causes(rankings),
        accord=words.accord(rankings),
        by_k=words.by_k,
        notes=words.notes,
        measures=list(MEASURES.values()),
        agents=names,
        style=styles(names),
        data=script_json(page_data(outcome, rankings)),
    )


def _charts(outcome: Outcome, rankings: Sequence[Ranking]) -> dict[str, Forms]:
    """Every picture by name, for a wide page and for a phone."""
    drawn: dict[str, Callable[..., Figure]] = {
        "complexity": figures.complexities,
        "dissimilarity": figures.dissimilarity_map,
        "space-flat": space_figures.space_flat,
        "dimensions": figures.dimensions,
        "sizes": figures.smallest_sizes,
        "mixture": figures.mixtures,
    }
    if outcome.space.points.shape[1] >= 3:
        drawn["space"] = space_figures.space_solid
    charts = {name: both_forms(partial(draw, outcome)) for name, draw in drawn.items()}
    names = agents_of(rankings)
    if rankings:
        charts["measures"] = both_forms(partial(measures, rankings))
    for group, ranking in enumerate(rankings):
        for name, draw in agent_charts(ranking, names).items():
            # By the conditions chosen; where there is nothing to choose, the name is all.
            charts[f"{name} {group}"] = both_forms(draw)
    return charts


def _chosen(outcome: Outcome, rankings: Sequence[Ranking]) -> dict[str, str]:
    """What is shown before anything is chosen."""
    (first, second), _ = outcome.by_unlikeness[0]
    found = {
        "sizes": str(outcome.by_complexity[0]), "first": str(first), "second": str(second),
        "hull-a": "", "hull-b": "",
    }  # fmt: skip
    agents = [item.key for group in hull_choices(rankings)[:1] for item in group.items]
    if agents:
        found["hull-a"] = agents[0]
    if len(agents) > 1:
        found["hull-b"] = agents[-1]
    return found


def _yaml(suite: Suite | None) -> str:
    if suite is None:
        return ""
    return yaml.safe_dump(
        suite.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=100
    )


# What `study.js` fills pictures with, as compact as the eye allows -------------------------------


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


def _rounded(values: ArrayLike, digits: int = _DIGITS) -> Any:
    return np.round(np.asarray(values, float), digits).tolist()
