"""`robo-eval recover`: save what was recorded when a run on a robot was cut off."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from robo_eval.cli.output import JsonOption, next_steps, print_json, quoted, say


def recover(
    trial: Annotated[Path, typer.Argument(metavar="DIR", help="Trial directory.")],
    *,
    json: JsonOption = False,
) -> None:
    """Make torn bags readable, log the episodes they belong to as lost, and draft incidents.

    Every complete chunk of a bag is kept. Incidents are drafted if the run had opened its incident
    log. What is sound already is left alone, so that it may be called as often as you like;
    `resume` does the same first. Exit code 1 if something could not be read.

    Example: robo-eval recover runs/matched
    """
    from robo_eval.core.errors import CheckFailedError
    from robo_eval.log.directory import TrialDirectory
    from robo_eval.log.incident_log import DATABASE
    from robo_eval.log.recovery import recover_trial
    from robo_eval.log.store import EpisodeStore
    from robo_eval_incidents.capture import capture

    opened = TrialDirectory.open(trial)
    was_complete = opened.status() == "complete"
    with opened.lock(), EpisodeStore(opened.path, durable=True) as store:
        found = recover_trial(opened, store)
        is_changed = bool(found.bags or found.rows or found.failed)
        status = "complete" if was_complete and not is_changed else "interrupted"
        opened.write_manifest(status=status, store=store)
        if (opened.path / DATABASE).exists():
            capture(opened.path)
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
        say(f"{len(found.bags)} bags made readable, {len(found.rows)} episodes logged as lost")
        for name in found.rows:
            say(f"  {name}")
        if status != "complete":
            next_steps(f"robo-eval resume {quoted(trial)}")
    if found.failed:
        sys.stdout.flush()
        raise CheckFailedError("; ".join(found.failed))
