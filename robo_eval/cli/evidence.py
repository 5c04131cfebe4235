"""`robo-eval evidence`: files of what people note beside the episodes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from robo_eval.cli.output import JsonOption, print_json, say
from robo_eval.log.evidence import FORMS, NAMES

app = typer.Typer(no_args_is_help=True)


@app.command("new")
def new(
    name: Annotated[str, typer.Argument(help=f"What is noted: {', '.join(NAMES)}.")],
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="File, or the trial directory it belongs to.")
    ] = Path(),
    json: JsonOption = False,
) -> None:
    """Write an empty file of evidence whose columns are explained above its header.

    Example: robo-eval evidence new repairs --out runs/lab
    """
    from robo_eval.log.evidence_new import new_evidence

    path = new_evidence(name, out)
    if json:
        print_json({"file": str(path)})
        return
    say(f"{path}: an empty file of {name}; as long as it has no lines it says {FORMS[name].EMPTY}")
