"""What may be said about the policies of a trial in a sentence or two, and what forbids it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from robo_eval.core.kinds import Arm
from robo_eval.core.plan import TrialPlan
from robo_eval.core.schedule import schedule
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.coverage import Coverage
from robo_eval.metrics.effects import Effect, policy_differences
from robo_eval.metrics.summary import TrialSummary
from robo_eval.report.model import Result
from robo_eval.report.words import (
    bounds,
    count,
    missing_words,
    number,
    percent,
    thousands,
)

if TYPE_CHECKING:
    from robo_eval.report.content import TrialData


def verdict_text(
    summary: TrialSummary, results: Sequence[Result], frame: pd.DataFrame, *, verb: str
) -> str:
    """Which policy did best, by how much, and how sure that is; one sentence a side.

    Policies are compared by their mean performance, paired by condition and seed. Nothing is
    said where a policy of the side has too few scored episodes.
    """
    did = "survived" if verb == "survived" else f"{verb} in"
    sentences = []
    for side in dict.fromkeys(result.numbers.side for result in results):
        own = [result for result in results if result.numbers.side == side]
        if all(result.numbers.is_sayable for result in own):
            sentences.append(_side_text(own, frame, summary.config, did))
    return " ".join(sentences)


def _side_text(
    results: Sequence[Result], frame: pd.DataFrame, config: MetricConfig, verb: str
) -> str:
    ranked = sorted(results, key=lambda result: -(result.numbers.performance.value or 0.0))
    best = ranked[0].numbers
    share = (
        f"{ranked[0].policy} {verb} {best.n_success} of {best.coverage.scored} scored episodes"
        f" ({number(best.success_exact.value)}, {percent(best.success_exact.level)}"
        f" {bounds(best.success_exact)})"
    )
    edges = bounds(best.performance)
    mean = f"mean performance {number(best.performance.value)}" + (f" ({edges})" if edges else "")
    lead = f"{share}, {mean}."
    if len(ranked) == 1:
        return lead
    return f"{lead} {_comparison(ranked[0], ranked[1], frame, config)}"


def _comparison(best: Result, second: Result, frame: pd.DataFrame, config: MetricConfig) -> str:
    rows = frame[frame["side"] == best.numbers.side]
    found = policy_differences(
        rows, best.numbers.policy, second.numbers.policy, by=("side",), config=config
    )
    if found and found[0].difference.value == 0.0 and found[0].difference.low is None:
        counts = f"{count(found[0].n_pairs, 'pair')}, {count(found[0].difference.n, 'seed')}"
        return f"{second.policy} did the same with every seed ({counts})."
    if not found or found[0].verdict is None or found[0].difference.low is None:
        why = found[0].difference.reason if found else "no episodes with the same seeds"
        return f"Whether it is better than {second.policy} cannot be said: {why}."
    return _difference_text(second, found[0])


def _difference_text(second: Result, effect: Effect) -> str:
    estimate = effect.difference
    paired = (
        f"({percent(estimate.level)} {bounds(estimate, digits=3, signed=True)},"
        f" {count(effect.n_pairs, 'pair')}, {count(estimate.n, 'seed')})"
    )
    if effect.verdict == "higher":
        return f"That is {number(estimate.value, digits=3)} above {second.policy} {paired}."
    amount = number(estimate.value, digits=3, signed=True)
    return (
        f"This trial does not separate it from {second.policy}: the difference in performance is"
        f" {amount} {paired}."
    )


def tally(plan: TrialPlan, coverage: Coverage, frame: pd.DataFrame) -> str:
    """How many of the episodes there should be have a score, and why the others have none."""
    lost = coverage.expected - coverage.scored
    kind = "planned" if plan.imported is None else "imported"
    text = f"{thousands(coverage.scored)} of {count(coverage.expected, f'{kind} episode')} scored"
    if lost:
        text += f", {thousands(lost)} missing ({missing_words(coverage.missing)})"
    else:
        text += ", none missing"
    controls = frame[frame["arm"] == Arm.CONTROL.value]
    planned = _planned_controls(plan)
    if planned or len(controls):
        scored = int(controls["quality"].notna().sum())
        text += f"; {thousands(scored)} of {count(max(planned, scored), 'control')} scored"
    return f"{text}."


def _planned_controls(plan: TrialPlan) -> int:
    """Controls that are episodes of their own; one of level 0 may be a main episode as well."""
    if plan.imported is not None or not plan.control:
        return 0
    return sum(
        planned.arm is Arm.CONTROL for side in plan.sides for planned in schedule(plan, side)
    )


def status_warnings(data: TrialData) -> list[str]:
    """What a reader must know of a trial that is not complete, and how to go on with it."""
    what, _, progress = data.status.partition(" at ")
    done, _, planned = progress.partition("/")
    if not progress:
        return []
    of = f"{done} of {planned} planned episodes"
    if what == "running":
        return [f"A run is under way: this page shows the {of} that were there when it was made."]
    go_on = f"To play what is missing: robo-eval resume {shlex.quote(data.path.resolve().name)}"
    if done == "0":
        return [f"No episode has been played yet, {planned} are planned. {go_on}"]
    return [f"Interrupted at {of}; nothing is being played now. {go_on}"]


def coverage_warnings(summary: TrialSummary, results: Sequence[Result]) -> list[str]:
    """Why no policy is called better, most important first; empty where all is scored enough."""
    minimum = percent(summary.config.min_coverage)
    short = [result for result in results if not result.numbers.is_sayable]
    warnings = []
    if short:
        counts = "; ".join(f"{r.policy}: {r.numbers.coverage.text}" for r in short)
        warnings.append(
            f"No headline and no winner: fewer than {minimum} of the episodes are scored. {counts}."
        )
    changed = [result.policy for result in results if len(result.numbers.policy_digests) > 1]
    if changed:
        warnings.append(
            f"The policy changed during the trial: {', '.join(changed)} played under more than one"
            " digest."
        )
    if len(summary.score_versions) > 1:
        versions = ", ".join(f"{n} by version {v}" for v, n in summary.score_versions.items())
        warnings.append(f"Episodes were scored by different versions of the rules: {versions}.")
    return warnings
