"""What may be said about the policies of a trial in a sentence or two, and what forbids it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pandas as pd

from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Arm
from robo_eval.core.plan import TrialPlan
from robo_eval.core.schedule import schedule
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.coverage import Coverage
from robo_eval.metrics.effects import Effect, policy_differences
from robo_eval.metrics.performance import CONDITION
from robo_eval.metrics.summary import TrialSummary
from robo_eval.page.words import (
    bounds,
    bounds_or_reason,
    count,
    missing_words,
    no_interval,
    number,
    percent,
    thousands,
)
from robo_eval.report.model import Result

if TYPE_CHECKING:
    from robo_eval.report.content import TrialData


_WEIGHTS: Final = (
    "the two averages weight conditions differently (mean performance counts each condition once,"
    " the difference each seed)"
)


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
    ranked = sorted(results, key=lambda result: -_performance(result))
    # Means of the same qualities may differ in the last digits of a float.
    tied = [r for r in ranked if _performance(ranked[0]) - _performance(r) < 1e-9]
    if len(tied) > 1:
        return _tie_text(tied, frame, config, verb)
    lead = f"{_lead(ranked[0], verb)}."
    if len(ranked) == 1:
        return lead
    return f"{lead} {_comparison(ranked[0], ranked[1], frame, config)}"


def _performance(result: Result) -> float:
    return result.numbers.performance.value or 0.0


def _lead(result: Result, verb: str) -> str:
    """How one policy did, each number with its interval or the reason why it has none."""
    own = result.numbers
    mean = own.performance
    return (
        f"{result.policy} {verb} {own.n_success} of {own.coverage.scored} scored episodes"
        f" ({number(own.success_exact.value)}, {bounds_or_reason(own.success_exact)}), mean"
        f" performance {number(mean.value)} ({no_interval(mean) or bounds(mean)})"
    )


def _tie_text(tied: Sequence[Result], frame: pd.DataFrame, config: MetricConfig, verb: str) -> str:
    """Policies of equal mean performance: none of them is named as the best."""
    leads = "; ".join(_lead(result, verb) for result in tied)
    if len(tied) > 2:
        return f"{leads}. In mean performance these {len(tied)} are equal: none of them is best."
    first, second = tied
    equal = f"{leads}. {first.policy} and {second.policy} are equal in mean performance"
    effect = _paired(first, second, frame, config)
    if effect is not None and _did_the_same(effect, first, second, frame, config):
        return f"{equal}: they did the same with every seed ({_counts(effect)})."
    if effect is None or effect.verdict is None or effect.difference.low is None:
        return f"{equal}; whether one is better cannot be said: {_why_unsaid(effect)}."
    value = number(effect.difference.value, digits=3, signed=True)
    if effect.verdict == "undecided":
        return (
            f"{equal}, and this trial does not separate them: the difference is"
            f" {value} {_interval_of(effect.difference, effect, signed=True)}."
        )
    better = first if effect.verdict == "higher" else second
    size = _turned(effect.difference) if effect.verdict == "lower" else effect.difference
    return (
        f"{equal}, but on the same seeds {better.policy} did better by"
        f" {number(size.value, digits=3)} {_interval_of(size, effect)}; {_WEIGHTS}."
    )


def _paired(
    first: Result, second: Result, frame: pd.DataFrame, config: MetricConfig
) -> Effect | None:
    """The difference over the episodes that share condition and seed; None without any."""
    rows = frame[frame["side"] == first.numbers.side]
    found = policy_differences(
        rows, first.numbers.policy, second.numbers.policy, by=("side",), config=config
    )
    return found[0] if found and found[0].n_pairs else None


def _did_the_same(
    effect: Effect, first: Result, second: Result, frame: pd.DataFrame, config: MetricConfig
) -> bool:
    """Whether no pair differs; a mean of 0 may as well be differences that cancel."""
    is_covered = effect.n_pairs >= round(config.min_coverage * effect.n_expected, 9)
    if effect.difference.value != 0.0 or not is_covered:
        return False
    rows = frame[frame["side"] == first.numbers.side]
    by_pair = policy_differences(
        rows, first.numbers.policy, second.numbers.policy, by=(*CONDITION, "seed"), config=config
    )
    return all(pair.difference.value in (0.0, None) for pair in by_pair)


def _why_unsaid(effect: Effect | None) -> str:
    if effect is not None:
        return effect.difference.reason or "the difference has no interval"
    return "no two of their episodes share condition and seed"


def _comparison(best: Result, second: Result, frame: pd.DataFrame, config: MetricConfig) -> str:
    effect = _paired(best, second, frame, config)
    if effect is not None and _did_the_same(effect, best, second, frame, config):
        return f"{second.policy} did the same with every seed ({_counts(effect)})."
    if effect is None or effect.verdict is None or effect.difference.low is None:
        why = _why_unsaid(effect)
        return f"Whether it is better than {second.policy} cannot be said: {why}."
    return _difference_text(second, effect)


def _counts(effect: Effect) -> str:
    return f"{count(effect.n_pairs, 'pair')}, {count(effect.difference.n, 'seed')}"


def _interval_of(estimate: Estimate, effect: Effect, *, signed: bool = False) -> str:
    edges = bounds(estimate, digits=3, signed=signed)
    return f"({percent(estimate.level)} {edges}, {_counts(effect)})"


def _turned(estimate: Estimate) -> Estimate:
    """The difference the other way round."""
    value, low, high = (
        None if x is None else -x for x in (estimate.value, estimate.high, estimate.low)
    )
    return replace(estimate, value=value, low=low, high=high)


def _difference_text(second: Result, effect: Effect) -> str:
    estimate = effect.difference
    if effect.verdict == "higher":
        return (
            f"That is {number(estimate.value, digits=3)} above {second.policy}"
            f" {_interval_of(estimate, effect, signed=True)}."
        )
    if effect.verdict == "lower":
        # Ranked by the mean over conditions, compared by that over seeds: they can disagree.
        turned = _turned(estimate)
        return (
            f"But on the same seeds it did worse than {second.policy} by"
            f" {number(turned.value, digits=3)} {_interval_of(turned, effect)}; {_WEIGHTS}."
        )
    amount = number(estimate.value, digits=3, signed=True)
    return (
        f"This trial does not separate it from {second.policy}: the difference in performance is"
        f" {amount} {_interval_of(estimate, effect, signed=True)}."
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
