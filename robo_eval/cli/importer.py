"""`robo-eval import`: episodes another lab logged, in its own columns."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from robo_eval.cli.output import JsonOption, next_steps, print_json, quoted, say

app = typer.Typer(no_args_is_help=True, help="Bring in episodes logged elsewhere.")


@app.callback()
def root() -> None:
    """Bring in episodes logged elsewhere."""


@app.command("csv")
def csv(
    table: Annotated[Path, typer.Argument(metavar="FILE", help="CSV file with a header line.")],
    *,
    columns: Annotated[
        Path, typer.Option("--map", "-m", help="Column map (YAML): our column from theirs.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Trial directory to create.")],
    json: JsonOption = False,
) -> None:
    """Read episodes from a CSV file by a column map into a new trial directory.

    Example: robo-eval import csv lab.csv --map lab-map.yaml --out runs/lab
    """
    from robo_eval.log.importer import import_csv

    trial = import_csv(table, columns, out)
    rows = len(trial.frame())
    if json:
        print_json({"trial": str(trial.path), "rows": rows})
        return
    say(f"{rows} episodes imported into {trial.path}")
    next_steps(f"robo-eval metrics {quoted(out)}", f"robo-eval report {quoted(out)}")
