"""`robo-eval report`: the HTML report of a trial, or the index page over many."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from robo_eval.cli.output import JsonOption, print_json, say


def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Trial directory, or a folder of trials.")
    ],
    *,
    json: JsonOption = False,
) -> None:
    """Write report/index.html of a trial; for a folder of trials, an index page over them.

    Examples: robo-eval report runs/demo/sim; robo-eval report runs/demo
    """
    from robo_eval.cli.checks import check_there
    from robo_eval.log.directory import TrialDirectory, is_trial

    check_there(folder)
    if is_trial(folder):
        from robo_eval.report.build import build_report

        page = build_report(TrialDirectory.open(folder))
    else:
        from robo_eval.report.index import build_index

        page = build_index(folder)
    if json:
        print_json({"page": str(page)})
    else:
        say(f"report: {page}")
