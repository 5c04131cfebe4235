"""`robo-eval dose`: success over the magnitude of a novelty."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from robo_eval.cli.options import taking
from robo_eval.cli.output import (
    interval,
    next_steps,
    percent,
    print_json,
    print_table,
    quoted,
    say,
    say_missing_intervals,
)
from robo_eval.cli.run import PlayOptions, opened_whole, plan_to_play, play, start
from robo_eval.cli.summary import coverage_problem, summary_of, verification_problem
from robo_eval.core.canonical import text_digest
from robo_eval.core.errors import CheckFailedError, InputError, PlanError
from robo_eval.core.estimate import Estimate
from robo_eval.core.plain import plain
from robo_eval.core.wording import in_short
from robo_eval.log.directory import PLAN, TrialDirectory

if TYPE_CHECKING:
    from robo_eval.core.plan import TrialPlan
    from robo_eval.metrics.dose import Dose, DoseCurve
    from robo_eval.metrics.summary import TrialSummary


@taking(PlayOptions, "jobs", "ray", "with_report", "json")
def dose(
    how: PlayOptions,
    source: Annotated[
        Path, typer.Argument(metavar="PLAN|DIR", help="Plan with `axes`, or a trial of one.")
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Trial directory of the plan; goes on if it is there."),
    ] = None,
) -> None:
    """Play a plan with `axes`, and print success over the magnitude of each novelty.

    Every episode with novelty is compared with its matched control: same policy and seed, no
    novelty. So a failure without novelty is never counted against the novelty. The intervals along
    a curve hold together. With a trial directory it plays nothing, and prints the curves. Exit
    code 1 if rows are not those that were logged, or fewer than 95 % of the episodes have a score.

    Example: robo-eval dose examples/plans/dose.yaml --out runs/dose
    """
    if source.is_dir():
        if out is not None:
            raise InputError(f"--out: {source} is a trial directory, of which nothing is played")
        _print_trial(source, json=how.json)
        return
    if not source.exists():
        raise InputError(f"{source}: neither a plan file nor a trial directory is there")
    if out is None:
        raise InputError("--out: a directory for the episodes of the plan is needed")

    plan = plan_to_play(source)
    _check(plan, source)

    def tell(trial: TrialDirectory, summary: TrialSummary) -> None:
        _tell(trial, summary, json=how.json)

    if _is_trial_of(out, plan):
        play(opened_whole(out), how, sides=plan.sides, tell=tell)
        return
    try:
        start(plan, out, how, sides=plan.sides, tell=tell)
    except PlanError as err:
        raise PlanError(f"{source}: {err}") from err


def _check(plan: TrialPlan, source: Path) -> None:

    if not any(task.axes for task in plan.tasks):
        raise PlanError(
            f"{source}: tasks: none has `axes`, such as `axes: {{friction: [0.2, 0.1]}}`;"
            " `robo-eval levels` lists the axes of a task"
        )
    if plan.trials is not None:
        raise PlanError(
            f"{source}: trials: their episodes have no matched controls, which curves are drawn"
            " from; leave the key out, or see `robo-eval metrics` of a trial directory"
        )


def _is_trial_of(out: Path, plan: TrialPlan) -> bool:
    """Whether a directory holds a trial of this plan, to go on with."""
    from robo_eval.core.plan import locked_text

    if not (out / PLAN).exists():
        return False
    if TrialDirectory.open(out).plan_digest != text_digest(locked_text(plan)):
        raise InputError(f"--out: {out} holds a trial of another plan; name a new directory")
    return True


def _print_trial(path: Path, *, json: bool) -> None:
    from robo_eval.analysis.trial import open_trial

    trial = open_trial(path)
    _check(trial.plan, path)
    summary = summary_of(trial)
    _tell(trial, summary, json=json)
    problem = verification_problem(path, summary.log_problem) or coverage_problem(summary)
    if problem:
        raise CheckFailedError(problem)


def _tell(trial: TrialDirectory, summary: TrialSummary, *, json: bool) -> None:
    if json:
        print_json(
            {
                "name": summary.name,
                "verified": summary.verified,
                "log_problem": summary.log_problem,
                "doses": plain(summary.doses),
            }
        )
        return
    from robo_eval.metrics.dose import by_novelty

    for (task, label), curves in by_novelty(summary.doses).items():
        _print_curves(task, label, curves)
    points = [dose for curve in summary.doses for dose in curve.doses]
    if any(dose.turned_down is not None for dose in points):
        say("turned down: draws that would make an episode impossible, or change nothing in it")
    if any(dose.n_not_begun for dose in points):
        say("not begun: pairs whose episode ended before the onset of its novelty")
    say_missing_intervals(e for dose in points for e in _estimates(dose))
    say(
        "kept: successes with novelty by those of the same seeds without; intervals of one curve,"
        " the lines of a policy in a column, hold together"
    )
    _print_half(summary)
    next_steps(f"robo-eval report {quoted(trial.path)}", f"robo-eval verify {quoted(trial.path)}")


def _estimates(dose: Dose) -> tuple[Any, ...]:
    return dose.success, dose.kept, dose.quality, dose.quality_difference


def _print_curves(task: str, label: str, curves: list[DoseCurve]) -> None:
    """One novelty, policy by policy."""
    rows: list[tuple[Any, ...]] = []
    for curve in curves:
        nominal = curve.nominal_success, None, curve.nominal_quality, None
        rows.append((curve.policy, "none", curve.nominal_success.n, *map(_cell, nominal), None))
        for dose in curve.doses:
            told = map(_cell, _estimates(dose))
            rows.append(("", in_short(dose.magnitude), dose.pairs_text, *told, dose.turned_down))
    # Where nobody turns draws down there is nothing to tell.
    last = 8 if any(dose.turned_down is not None for it in curves for dose in it.doses) else 7
    level = percent(curves[0].level)
    print_table(
        f"{task}, {label} [simultaneous {level} intervals]",
        (
            "policy",
            curves[0].scale,
            "pairs",
            "success",
            "kept",
            "quality",
            "quality difference",
            "turned down",
        )[:last],
        [row[:last] for row in rows],
        right=(1, 2, 7),
    )


def _cell(estimate: Estimate | None) -> str:
    return "" if estimate is None else interval(estimate)


def _print_half(summary: TrialSummary) -> None:
    rows = [
        (
            curve.policy,
            curve.task,
            curve.label,
            curve.half_loss.text,
            curve.half_loss.ends,
        )
        for curve in summary.doses
    ]
    print_table(
        f"magnitude at which half of the success is lost [{percent(summary.config.level)} interval"
        ", if no stronger novelty is easier]",
        ("policy", "task", "axis", "half lost at", "interval"),
        rows,
    )
