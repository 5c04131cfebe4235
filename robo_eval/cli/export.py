"""`robo-eval export`: the rows of a trial as one table for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from robo_eval.cli.output import JsonOption, print_json, say
from robo_eval.cli.summary import verification_problem
from robo_eval.core.errors import CheckFailedError
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.export import export_episodes


def export(
    trial: Annotated[Path, typer.Argument(metavar="DIR", help="Trial directory.")],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write: .parquet or .csv.")],
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    json: JsonOption = False,
) -> None:
    """Write the episode rows as Parquet or CSV, by the ending of the file name.

    Exit code 1 if the rows are not those that were logged; they are written all the same.

    Example: robo-eval export runs/demo/sim --out episodes.parquet
    """
    opened = TrialDirectory.open(trial)

    rows = export_episodes(trial, out, force=force)
    if json:
        print_json({"rows": rows, "file": str(out)})
    else:
        say(f"{rows} rows written to {out}")
    from robo_eval.analysis.trial import log_problem

    problem = verification_problem(trial, log_problem(opened))
    if problem:
        raise CheckFailedError(problem)
