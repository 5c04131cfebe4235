"""What the page of a study says in words and in tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from robo_eval.analysis.aiq import MIXTURES
from robo_eval.core.estimate import Estimate
from robo_eval.log.provenance import software, versions
from robo_eval.page.words import count, interval_text, listed, number, percent
from robo_eval.study.agent_figures import MEASURES, conditions
from robo_eval.study.figures import is_like_noise, seen, size_text
from robo_eval.study.outcome import Outcome
from robo_eval.study.ranking import RankedAgent, Ranking
from robo_eval.study.suite import LearnerSection, PoolSection, Suite

HEIGHTS: Final = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Performances whose smallest size the table lists."""
_NAMED: Final = 3


def summary(outcome: Outcome) -> list[str]:
    """What was found, as sentences."""
    names, order = outcome.measured.tests, outcome.by_complexity
    sized = [f"{names[place]} ({size_text(outcome.complexities[place])})" for place in order]
    (i, j), estimate = outcome.by_unlikeness[0]
    apart = interval_text(estimate, digits=3)
    placed, table = outcome.space, outcome.dissimilarities
    holds = "holds" if placed.k == 1 else "hold"
    found = [
        f"Most complex: {listed(sized[:_NAMED])} parameters; least: {sized[-1]}.",
        f"Most unlike: {names[i]} and {names[j]}, dissimilarity {apart}.",
        f"{count(placed.k, 'dimension')} {holds} {percent(round(outcome.held, 3))} of the space.",
    ]
    if table.floor is not None:
        near = sum(is_like_noise(outcome, *key) for key in outcome.pairs)
        found.append(
            f"{near} of {count(len(outcome.pairs), 'pair')} are at most twice as unlike as training"
            f" makes a test to itself ({number(table.floor, digits=3)}) and may be alike;"
            f" {table.violations} of {count(table.triangles, 'triple')} break the triangle"
            " inequality."
        )
    return found


def synopsis(outcome: Outcome, suite: Suite | None) -> str:
    """What was run, in a line."""
    measured = outcome.measured
    trainings = next(iter(measured.mixtures.values())).shape[1]
    parts = [
        count(len(measured.tests), "test"),
        f"{count(len(measured.sizes), 'policy', 'policies')} of each",
        f"{count(len(outcome.pairs), 'pair')} in {len(MIXTURES)} mixtures",
        f"{count(trainings, 'training')} of each mixture",
    ]
    if suite is not None:
        parts.append(f"seed {suite.seed}")
    return "; ".join(parts)


def facts(outcome: Outcome, suite: Suite | None) -> list[tuple[str, str]]:
    """What was run, term by term."""
    found = [("suite", outcome.name), ("tests", ", ".join(outcome.measured.tests))]
    if suite is not None:
        pool, learner = suite.pool, suite.learner
        most = f"{pool.layers} hidden layers of {pool.units} units at most"
        hidden = "-".join(map(str, learner.hidden))
        often = (
            f"each mixture {count(learner.trainings, 'time')},"
            f" each test alone {count(learner.alone, 'time')}"
        )
        found += [
            ("pool", f"{count(pool.policies, 'policy', 'policies')} of {most}; {_effort(pool)}"),
            ("learner of mixtures", f"{hidden} units; {often}; {_effort(learner)}"),
            ("seed", str(suite.seed)),
        ]
    known = ", ".join(f"{name} {version}" for name, version in versions().items())
    return [*found, ("software", software()), ("versions", known)]


def _effort(plan: PoolSection | LearnerSection) -> str:
    return (
        f"{plan.trainer} with {count(plan.steps, 'step')} of {plan.batch}, from"
        f" {count(plan.examples, 'example')}, judged by {count(plan.episodes, 'episode')}"
    )


def smallest_sizes(outcome: Outcome, place: int) -> list[str]:
    """Smallest size of a test at each of `HEIGHTS`."""
    curve = outcome.curves[place]
    first, last = seen(curve)
    bins = [min(len(curve.curve) - 1, int(one * len(curve.curve))) for one in HEIGHTS]
    return [
        f"{curve.curve[one]:.0f}" + ("" if first <= one <= last else " (extrapolated)")
        for one in bins
    ]


def by_k(agent: RankedAgent) -> str:
    """The quotient in a dimension fewer, as many, and one more."""
    return ", ".join(f"{k}: {value:.3f}" for k, value in agent.by_k.items())


def notes(ranking: Ranking) -> list[str]:
    """What makes numbers of a ranking doubtful, or left somebody out."""
    doubts: dict[tuple[str, str], list[str]] = {}
    for key, title in MEASURES.items():
        for one in ranking.agents:
            estimate: Estimate = getattr(one, key)
            if estimate.value is not None and estimate.reason:
                doubts.setdefault((title, estimate.reason), []).append(one.policy)
    found = [f"{title} of {listed(who)}: {reason}" for (title, reason), who in doubts.items()]
    acc = ranking.acc
    if acc is not None:
        found += [f"{name} is {member}" for name, member in acc.panel_members.items()]
        found += [*acc.warnings, *acc.left_out, *acc.uncovered]
    found += [*ranking.warnings, *(f"too few scored: {text}" for text in ranking.uncovered)]
    found += [
        f"{path}: the log does not verify: {why}" for path, why in ranking.log_problems.items()
    ]
    return list(dict.fromkeys(found))


def causes(rankings: Sequence[Ranking]) -> list[tuple[str, list[str]]]:
    """Where measures rank otherwise than the mean does, by conditions."""
    return [
        (conditions(ranking), [f"{one}." for one in ranking.disagreements])
        for ranking in rankings
        if ranking.disagreements
    ]


def accord(rankings: Sequence[Ranking]) -> str:
    """That no measure disagrees with the mean, as a sentence; empty if one does, or none could."""
    compared = [
        [one for one in ranking.agents if one.aiq.value is not None] for ranking in rankings
    ]
    most = max((len({one.mean.value for one in agents}) for agents in compared), default=0)
    if most < 2 or any(ranking.disagreements for ranking in rankings):
        return ""
    return "No measure ranks two agents otherwise than their means do."


def clusters(outcome: Outcome) -> str:
    """The tests in the order of the heat map."""
    return ", ".join(outcome.measured.tests[place] for place in outcome.tree.leaves)


def known(value: float) -> str:
    """A number, if it was measured."""
    return number(float(value)) if np.isfinite(value) else "not measured"
