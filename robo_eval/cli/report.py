"""`robo-eval report`: the HTML report of a trial, or the index page over many."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from robo_eval.cli.checks import check_there
from robo_eval.cli.options import taking
from robo_eval.cli.output import print_json, say
from robo_eval.cli.robots import audit_problem
from robo_eval.cli.settings import ScoreOptions, settings_of
from robo_eval.cli.summary import verification_problem
from robo_eval.core.errors import CheckFailedError, InputError, TrialDirectoryError
from robo_eval.log.directory import TrialDirectory, is_trial


@taking(ScoreOptions, "config", "files", "incidents", "faults", "repairs", "ratings", "json")
def report(
    how: ScoreOptions,
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Trial directory, or a folder of trials.")
    ],
    *,
    profile: Annotated[
        str, typer.Option("--profile", "-p", help="Profile of the autonomy levels, or a file.")
    ] = "robotics",
) -> None:
    """Write report/index.html of a trial; for a folder of trials, an index page over them.

    Exit code 1 if the rows of the trial are not those that were logged, or the evidence does not
    fit them; the report says so.

    Examples: robo-eval report runs/demo/sim; robo-eval report runs/demo
    """
    check_there(folder)
    trial = TrialDirectory.open(folder) if is_trial(folder) else None
    evidence = how.evidence
    if trial is None and (how.config or how.files or evidence):
        raise InputError(
            f"{folder}: an index page takes no settings, no metrics and no files of evidence"
        )
    summary = None
    if trial is None:
        page = _index(folder)
    else:
        from robo_eval.analysis.trial import analyse_trial, scored_frame
        from robo_eval.report.build import build_report

        settings = settings_of(how.config, how.files)
        frame = scored_frame(trial, config=settings)
        summary = analyse_trial(trial, config=settings, frame=frame, evidence=evidence)
        page = build_report(trial, summary=summary, frame=frame, evidence=evidence, profile=profile)
    if how.json:
        print_json({"page": str(page)})
    else:
        say(f"report: {page}")
    if summary is not None:
        problem = verification_problem(folder, summary.log_problem) or audit_problem(summary)
        if problem:
            raise CheckFailedError(problem)


def _index(folder: Path) -> Path:
    from robo_eval.report.index import build_index, find_trials

    if folder.is_dir() and not find_trials(folder):
        raise TrialDirectoryError(
            f"{folder}: is not a trial directory, and there is none in it or in the folders in it"
        )
    return build_index(folder)
