"""`robo-eval report`: the HTML report of a trial, or the index page over many."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robo_eval.cli.output import JsonOption, print_json, say

if TYPE_CHECKING:
    from robo_eval.log.directory import TrialDirectory


def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Trial directory, or a folder of trials.")
    ],
    *,
    json: JsonOption = False,
) -> None:
    """Write report/index.html of a trial; for a folder of trials, an index page over them.

    Exit code 1 if the rows of the trial are not those that were logged; the report says so.

    Examples: robo-eval report runs/demo/sim; robo-eval report runs/demo
    """
    from robo_eval.cli.checks import check_there
    from robo_eval.log.directory import TrialDirectory, is_trial

    check_there(folder)
    trial = TrialDirectory.open(folder) if is_trial(folder) else None
    page = _index(folder) if trial is None else _report(trial)
    if json:
        print_json({"page": str(page)})
    else:
        say(f"report: {page}")
    if trial is not None:
        from robo_eval.analysis.trial import log_problem
        from robo_eval.cli.summary import verification_problem
        from robo_eval.core.errors import CheckFailedError

        problem = verification_problem(folder, log_problem(trial))
        if problem:
            raise CheckFailedError(problem)


def _report(trial: TrialDirectory) -> Path:
    from robo_eval.report.build import build_report

    return build_report(trial)


def _index(folder: Path) -> Path:
    from robo_eval.core.errors import TrialDirectoryError
    from robo_eval.report.index import build_index, find_trials

    if folder.is_dir() and not find_trials(folder):
        raise TrialDirectoryError(
            f"{folder}: is no trial directory, and there is none in it or in the folders in it"
        )
    return build_index(folder)
