"""`robo-eval metrics`: the numbers of a trial, each with interval and sample size."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from robo_eval.cli.output import JsonOption, print_json


def metrics(
    trial: Annotated[Path, typer.Argument(metavar="DIR", help="Trial directory.")],
    *,
    json: JsonOption = False,
) -> None:
    """Score the episodes of a trial with the code at hand, and print its metrics.

    The log is not touched: scores that differ from the recorded ones are kept beside it, in
    scores/, by version. Exit code 1 if the rows are not those that were logged, or fewer than
    95 % of the episodes have a score.

    Example: robo-eval metrics runs/demo/sim
    """
    from robo_eval.cli.summary import (
        coverage_problem,
        print_faults,
        print_summary,
        summary_of,
        verification_problem,
    )
    from robo_eval.core.errors import CheckFailedError
    from robo_eval.log.directory import TrialDirectory

    opened = TrialDirectory.open(trial)
    summary = summary_of(opened)
    if json:
        print_json(summary.as_dict())
    else:
        print_summary(summary)
        print_faults(opened)
    problem = verification_problem(trial, summary.log_problem) or coverage_problem(summary)
    if problem:
        raise CheckFailedError(problem)
