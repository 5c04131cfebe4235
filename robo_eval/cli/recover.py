"""`robo-eval recover`: save what was recorded when a run on a robot was cut off."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robo_eval.cli.output import JsonOption, next_steps, print_json, quoted, say
from robo_eval.core.wording import counted

if TYPE_CHECKING:
    from robo_eval.log.directory import TrialDirectory
    from robo_eval.log.recovery import Recovered


def recover(
    trial: Annotated[Path, typer.Argument(metavar="DIR", help="Trial directory.")],
    *,
    json: JsonOption = False,
) -> None:
    """Make torn bags readable, log the episodes they belong to as lost, and draft incidents.

    Every complete chunk of a bag is kept. Incidents are drafted if the run had opened its incident
    log. Sound files are left alone, so you can call it as often as you like; `resume` does the same
    first. Exit code 1 if something could not be read.

    Example: robo-eval recover runs/matched
    """
    from robo_eval.core.errors import CheckFailedError
    from robo_eval.log.directory import TrialDirectory

    opened = TrialDirectory.open(trial)
    found = recovered(opened)
    if json:
        print_json(
            {
                "trial": str(trial),
                "bags": list(found.bags),
                "rows": list(found.rows),
                "failed": list(found.failed),
            }
        )
    else:
        print_recovered(found)
        if opened.status() != "complete":
            next_steps(f"robo-eval resume {quoted(trial)}")
    if found.failed:
        sys.stdout.flush()
        raise CheckFailedError("; ".join(found.failed))


def recovered(trial: TrialDirectory) -> Recovered:
    """Save what a run that was cut off left in a trial; nothing is done twice."""
    from robo_eval.log.incident_log import DATABASE
    from robo_eval.log.recovery import recover_trial
    from robo_eval.log.store import EpisodeStore
    from robo_eval_incidents.capture import capture

    was_complete = trial.status() == "complete"
    with trial.lock(), EpisodeStore(trial.path, durable=True) as store:
        found = recover_trial(trial, store)
        is_changed = bool(found.bags or found.rows or found.failed)
        status = "complete" if was_complete and not is_changed else "interrupted"
        trial.write_manifest(status=status, store=store)
        if (trial.path / DATABASE).exists():
            capture(trial.path)
    return found


def print_recovered(found: Recovered) -> None:
    """What was saved, for people."""
    bags, rows = counted(len(found.bags), "bag"), counted(len(found.rows), "episode")
    say(f"{bags} made readable, {rows} logged as lost")
    for name in found.rows:
        say(f"  {name}")
