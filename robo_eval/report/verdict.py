"""What a trial answers, in a sentence and its numbers, and what forbids to say it."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Final

import pandas as pd

from robo_eval.core.claims import Verdict, did, promised
from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Arm
from robo_eval.core.plan import TrialPlan
from robo_eval.core.schedule import schedule
from robo_eval.core.wording import p_text
from robo_eval.metrics.agreement import Agreement
from robo_eval.metrics.body import Body
from robo_eval.metrics.coverage import Coverage
from robo_eval.metrics.performance import is_by_seed
from robo_eval.metrics.standings import PolicyPair, SideComparison, Standing
from robo_eval.metrics.summary import TrialSummary
from robo_eval.page.words import (
    bounds,
    bounds_or_reason,
    count,
    joined,
    missing_words,
    no_interval,
    number,
    percent,
    thousands,
)
from robo_eval.report.model import Result, TrialAnswer, TrialData

_BODIES: Final = {"real": "robot", "twin": "twin"}
_MOST_OF: Final = 0.5
"""Share of a gap from which on one condition is most of it."""


def answers_of(
    summary: TrialSummary,
    results: Sequence[Result],
    sides: Sequence[SideComparison],
    level_names: Mapping[int | None, str],
) -> list[TrialAnswer]:
    """What the trial answers: does the simulator tell the truth, and who does best, by side.

    Nothing is said where too few episodes are scored; `coverage_warnings` says that.

    Args:
        summary: Its metrics.
        results: The verdict on each policy.
        sides: The policies against each other, by the tests of the tables.
        level_names: What levels are called.
    """
    sayable = {(row.side, row.policy) for row in summary.policies if row.is_sayable}
    found = [
        _of_simulator(body, body.agreement, level_names, several=len(summary.robots) > 1)
        for body in summary.robots
        if body.agreement is not None
        and body.agreement.agreement.value is not None
        and {(body.side, body.policy), ("sim", body.policy)} <= sayable
    ]
    for side in sides:
        if all((side.side, own.policy) in sayable for own in side.policies):
            where = f" on side {side.side}" if len(sides) > 1 else ""
            found.append(_of_policies(side, where))
    if not found and all(result.numbers.is_sayable for result in results):
        found = [_of_one(result) for result in results]
    return found


# Does the simulator tell the truth? ---------------------------------------------------------------


def _of_simulator(
    body: Body, found: Agreement, level_names: Mapping[int | None, str], *, several: bool
) -> TrialAnswer:
    real, sim, difference = found.ar_physical, found.ar_sim, found.difference
    verdict = _verdict(difference, found.p_value)
    who = f"the {_BODIES[body.side]}"
    of = f" of {body.policy}" if several else ""
    p = _p(found.p_value)
    units = count(found.n_pairs, "pair") if found.n_pairs else count(real.n, "episode")
    text = (
        f"{promised(verdict)} The simulator promised {_share(sim)}{of}; {who} achieved"
        f" {_share(real)}."
    )
    numbers = (
        f"{_points(difference.value)} points, {_interval(difference)}{p}; {units}."
        f"{_most_of_it(body, verdict, level_names)}"
    )
    if verdict == "undecided" and difference.low is not None and difference.high is not None:
        most = max(abs(difference.low), abs(difference.high))
        numbers += f" A gap of up to {100 * most:.0f} points would fit what was seen."
    question = f"Does the simulator tell how {who} does?"
    return TrialAnswer(question=question, text=text, numbers=numbers)


def _verdict(difference: Estimate, p_value: float | None) -> Verdict:
    """By the exact test where there is one, else by the interval."""
    assert difference.value is not None
    if p_value is not None:
        is_shown = p_value <= 1.0 - difference.level
    else:
        is_shown = (
            difference.low is not None
            and difference.high is not None
            and not difference.low <= 0.0 <= difference.high
        )
    if not is_shown or difference.value == 0.0:
        return "undecided"
    return "higher" if difference.value > 0.0 else "lower"


def _most_of_it(body: Body, verdict: Verdict, level_names: Mapping[int | None, str]) -> str:
    """Where most of a gap is; empty where it was not shown, or one condition has no half of it."""
    rates = [one for one in body.conditions if one.physical.value is not None]
    if verdict == "undecided" or len(rates) < 2:
        return ""
    sign = 1.0 if verdict == "higher" else -1.0
    parts = [
        max(0.0, sign * one.physical.n * ((one.physical.value or 0.0) - (one.sim.value or 0.0)))
        for one in rates
    ]
    largest = max(range(len(parts)), key=parts.__getitem__)
    if parts[largest] <= _MOST_OF * sum(parts):
        return ""
    one = rates[largest]
    level = one.at.level
    where = one.at.task if level is None else f"level {level}"
    name = level_names.get(level, "") if level is not None else ""
    much = "All" if math.isclose(parts[largest], sum(parts)) else "Most"
    return f" {much} of the gap is {where}{', ' * bool(name)}{name}."


# Who does best? -----------------------------------------------------------------------------------


def _of_policies(side: SideComparison, where: str) -> TrialAnswer:
    ranked = side.by_success
    first = [own for own in ranked if own.rank_range is not None and own.rank_range[0] == 1]
    best, second = ranked[0], ranked[1]
    pair = _pair(side, best, second)
    if len(first) == 1:
        others = "the other" if len(ranked) == 2 else "each of the others"
        text = f"{best.policy} {did('higher', others)}{where}."
    elif pair.n_pairs and all(_is_alike(_pair(side, best, own)) for own in ranked[1:]):
        text = f"{joined([own.policy for own in ranked])} ended alike in every pair{where}."
    else:
        names = joined([own.policy for own in first])
        text = f"It was not shown who does best{where}: {names} may each be it."
    numbers = "; ".join(_rate(own) for own in ranked[:2])
    return TrialAnswer(
        question="Who does best?", text=text, numbers=f"{numbers}. {_difference(best, pair)}"
    )


def _pair(side: SideComparison, one: Standing, other: Standing) -> PolicyPair:
    names = {one.policy, other.policy}
    return next(pair for pair in side.pairs if {pair.first, pair.second} == names)


def _is_alike(pair: PolicyPair) -> bool:
    return pair.n_discordant == 0 and pair.left_out == 0 and pair.unit == "pairs"


def _rate(own: Standing) -> str:
    return (
        f"{own.policy} succeeded in {own.n_success} of {own.coverage.scored}"
        f" ({_share(own.success, own.n_success)}, {bounds_or_reason(own.success)})"
    )


def _difference(best: Standing, pair: PolicyPair) -> str:
    """The two that came out first, by the test of the table."""
    other = pair.second if pair.first == best.policy else pair.first
    verdict: Verdict = "undecided"
    if pair.winner is not None:
        verdict = "higher" if pair.winner == best.policy else "lower"
    found = pair.difference
    sign = 1.0 if pair.first == best.policy else -1.0
    value = None if found.value is None else sign * found.value
    p = _p(pair.p_holm)
    units = count(pair.n_units, pair.unit.removesuffix("s"))
    if pair.verdict is None:
        return f"{best.policy} and {other}: {pair.text}."
    return f"{best.policy} {did(verdict, other)}: {_points(value)} points{p}, {units}."


# One policy ---------------------------------------------------------------------------------------


def _of_one(result: Result) -> TrialAnswer:
    own, mean = result.numbers, result.numbers.performance
    return TrialAnswer(
        question="How well does it do?",
        text=f"{result.policy} succeeded in {own.n_success} of {own.coverage.scored} episodes.",
        numbers=f"{_share(own.success_exact, own.n_success)},"
        f" {bounds_or_reason(own.success_exact)}; mean performance {number(mean.value)}"
        f" ({no_interval(mean) or bounds(mean)}).",
    )


def _share(found: Estimate, n_success: int | None = None) -> str:
    share = "–" if found.value is None else f"{100 * found.value:.0f}\N{NO-BREAK SPACE}%"
    is_other = n_success is not None and is_by_seed(found, n_success)
    return f"by seeds {share}" if is_other else share


def _points(value: float | None) -> str:
    return number(None if value is None else 100 * value, digits=0, signed=True)


def _p(value: float | None) -> str:
    """A p value in a list of numbers; nothing where there is none."""
    if value is None:
        return ""
    text = p_text(value)
    return f", p {text}" if text.startswith("<") else f", p = {text}"


def _interval(found: Estimate) -> str:
    if found.low is None or found.high is None:
        return no_interval(found)
    low, high = _points(found.low), _points(found.high)
    return f"{percent(found.level)} {low} to {high}"


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
