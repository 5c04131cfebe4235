"""`robo-eval metrics`: the numbers of a trial, each with interval and sample size."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from robo_eval.cli.output import JsonOption, print_json
from robo_eval.cli.settings import (
    ConfigOption,
    FaultsOption,
    IncidentsOption,
    RatingsOption,
    RepairsOption,
    evidence_files,
    settings_of,
)


def metrics(
    trial: Annotated[Path, typer.Argument(metavar="DIR", help="Trial directory.")],
    *,
    config: ConfigOption = None,
    incidents: IncidentsOption = None,
    faults: FaultsOption = None,
    repairs: RepairsOption = None,
    ratings: RatingsOption = None,
    json: JsonOption = False,
) -> None:
    """Score the episodes of a trial with the code at hand, and print its metrics.

    The log is not touched: scores that differ from the recorded ones are kept beside it, in
    scores/, by version. Exit code 1 if the rows are not those that were logged, fewer than 95 %
    of the episodes have a score, or the evidence (incidents and the like) does not fit them.

    Examples: robo-eval metrics runs/demo/sim; robo-eval metrics runs/lab --incidents log.csv
    """
    from robo_eval.cli.robots import audit_problem
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
    summary = summary_of(
        opened,
        config=settings_of(config),
        evidence=evidence_files(incidents, faults, repairs, ratings),
    )
    if json:
        print_json(summary.as_dict())
    else:
        print_summary(summary)
        print_faults(opened)
    problem = (
        verification_problem(trial, summary.log_problem)
        or audit_problem(summary)
        or coverage_problem(summary)
    )
    if problem:
        raise CheckFailedError(problem)
