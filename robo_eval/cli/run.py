"""`robo-eval run` and `resume`: play what a plan asks for, and go on after a stop."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robo_eval.cli.output import JsonOption, next_steps, print_json, quoted, say

if TYPE_CHECKING:
    from robo_eval.core.kinds import Side
    from robo_eval.core.plan import TrialPlan
    from robo_eval.log.directory import TrialDirectory
    from robo_eval_sim.runner import RunResult

JobsOption = Annotated[
    int | None, typer.Option("--jobs", "-j", min=1, help="Worker processes; default one per core.")
]
ReportOption = Annotated[bool, typer.Option("--report/--no-report", help="Write the HTML report.")]


def run(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="Plan file (YAML).")],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="Trial directory to create.")],
    sides: Annotated[
        str | None, typer.Option(help="Sides to play, comma separated; default as planned.")
    ] = None,
    jobs: JobsOption = None,
    with_report: ReportOption = True,
    json: JsonOption = False,
) -> None:
    """Lock a plan in a new trial directory, play it, and write the report.

    Everything is checked before the first tick. Exit code 1 if fewer than 95 % of the episodes
    have a score, 3 if interrupted; `resume` goes on after that.

    Example: robo-eval run examples/plans/first.yaml --out runs/first
    """
    from robo_eval.core.errors import PlanError

    if not plan.exists():
        raise PlanError(f"{plan}: no such plan file; the repository has some in examples/plans")
    chosen_sides = _sides_of(sides)
    from robo_eval.core.plan import read_plan

    checked = read_plan(plan)
    if checked.imported is not None:
        raise PlanError(
            f"{plan}: imported: nothing is played of an imported trial; remove the section, or"
            " import its file by `robo-eval import csv`"
        )
    chosen = _with_sides(checked, chosen_sides)
    try:
        start(chosen, out, jobs=jobs, with_report=with_report, json=json)
    except PlanError as err:
        raise PlanError(f"{plan}: {err}") from err


def resume(
    trial: Annotated[Path, typer.Argument(metavar="DIR", help="Trial directory.")],
    *,
    jobs: JobsOption = None,
    with_report: ReportOption = True,
    json: JsonOption = False,
) -> None:
    """Play what is still missing in a trial directory.

    Example: robo-eval resume runs/first
    """
    from robo_eval.analysis.trial import log_problem
    from robo_eval.cli.summary import verification_problem
    from robo_eval.core.errors import CheckFailedError
    from robo_eval.log.directory import TrialDirectory

    opened = TrialDirectory.open(trial)
    # A manifest that is gone is written anew; nothing said how many rows there should be.
    problem = verification_problem(trial, log_problem(opened)) if opened.manifest else None
    if problem:
        raise CheckFailedError(f"nothing was played: {problem}")
    play(opened, jobs=jobs, with_report=with_report, json=json)


def start(plan: TrialPlan, out: Path, *, jobs: int | None, with_report: bool, json: bool) -> None:
    """Check everything that can be checked before the first tick, then play."""
    from robo_eval.cli.checks import check_names, needed_bytes
    from robo_eval.log.directory import TrialDirectory

    # What is quick to refuse comes first; building policies and worlds comes last.
    TrialDirectory.check_new(out, needed_bytes=needed_bytes(plan))
    check_names(plan)
    from robo_eval_sim.runner import check_plan

    check_plan(plan)
    trial = TrialDirectory.create(out, plan)
    if not json:
        say(f"{plan.name}: plan {trial.plan_digest[:12]} locked in {trial.path}")
    try:
        play(trial, jobs=jobs, with_report=with_report, json=json)
    except KeyboardInterrupt:
        from robo_eval.core.errors import InterruptedRunError

        raise InterruptedRunError(
            f"stopped by Ctrl-C; go on with: robo-eval resume {quoted(trial.path)}"
        ) from None


def play(trial: TrialDirectory, *, jobs: int | None, with_report: bool, json: bool) -> None:
    """Play what is missing, print the summary, and say what can be done next."""
    from robo_eval.cli.progress import episode_progress
    from robo_eval.cli.summary import (
        coverage_problem,
        print_faults,
        print_summary,
        summary_of,
        verification_problem,
    )
    from robo_eval.core.errors import CheckFailedError
    from robo_eval_sim.runner import default_jobs, run_simulated

    jobs = jobs or default_jobs()
    with episode_progress(trial.path.name, quiet=json) as on_progress:
        result = run_simulated(trial, jobs=jobs, on_progress=on_progress)
    summary = summary_of(trial)
    page = None
    if with_report:
        from robo_eval.report.build import build_report

        page = build_report(trial, summary=summary)
    if json:
        print_json(
            {
                "trial": str(trial.path),
                "plan_digest": trial.plan_digest,
                "planned": result.planned,
                "played": result.played,
                "unscored": result.unscored,
                "seconds": round(result.seconds, 3),
                "report": str(page) if page else None,
            }
        )
    else:
        say(_played(result, jobs))
        print_summary(summary, by_level=False)
        print_faults(trial)
        if page:
            say(f"report: {page}")
        where = quoted(trial.path)
        next_steps(f"robo-eval metrics {where}", f"robo-eval verify {where}")
    problem = verification_problem(trial.path, summary.log_problem) or coverage_problem(summary)
    if problem:
        sys.stdout.flush()
        raise CheckFailedError(problem)


def _played(result: RunResult, jobs: int) -> str:
    counts = f"{result.planned} planned, {result.unscored} without a score"
    if not result.played:
        return f"nothing is missing: {counts}"
    workers = f"{jobs} worker{'s' if jobs > 1 else ''}"
    rate = result.played / result.seconds
    return (
        f"{result.played} episodes played in {result.seconds:.1f} s ({rate:.0f}/s on {workers}),"
        f" {counts}"
    )


def _sides_of(text: str | None) -> tuple[Side, ...] | None:
    """The sides an option names, checked before anything slow is loaded."""
    from robo_eval.core.kinds import Side
    from robo_eval.core.names import unknown_name

    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in list(Side):
            raise unknown_name("side", name, list(Side))
    return tuple(dict.fromkeys(Side(name) for name in names))


def _with_sides(plan: TrialPlan, sides: tuple[Side, ...] | None) -> TrialPlan:
    from robo_eval.core.errors import InputError
    from robo_eval.core.kinds import Side

    if sides is not None:
        plan = plan.model_copy(update={"sides": sides})
    for side in plan.sides:
        if side is not Side.SIM:
            raise InputError(
                f"sides: {side.value!r} needs the ROS 2 part, which this version does not have;"
                " plan sides: [sim]"
            )
    return plan
