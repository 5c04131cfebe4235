"""`robo-eval migrate`: brings a trial directory of an older version up to date."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from robo_eval.cli.output import JsonOption, print_json, say


def migrate(
    trial: Annotated[Path, typer.Argument(metavar="DIR", help="Trial directory.")],
    *,
    json: JsonOption = False,
) -> None:
    """Upgrade the episode database of a trial directory; the old one is kept beside it.

    Example: robo-eval migrate runs/of-last-year
    """
    from robo_eval.log.directory import TrialDirectory

    TrialDirectory.open(trial)
    from robo_eval.log.store import migrate as migrate_database

    backup = migrate_database(trial)
    if json:
        print_json({"trial": str(trial), "backup": str(backup) if backup else None})
    elif backup is None:
        say(f"{trial}: is up to date")
    else:
        say(f"{trial}: upgraded; the old database is {backup}")
