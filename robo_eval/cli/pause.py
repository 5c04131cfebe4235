"""`robo-eval pause`: let a run on a robot wait before its next episode."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from robo_eval.cli.output import JsonOption, next_steps, print_json, quoted, say
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval.log.directory import TrialDirectory


def pause(
    trial: Annotated[Path, typer.Argument(metavar="DIR", help="Trial directory.")],
    *,
    off: Annotated[bool, typer.Option("--off", help="Go on.")] = False,
    json: JsonOption = False,
) -> None:
    """Let a run on a robot or twin wait before its next episode, or go on.

    The episode that is being played ends first. The robot then stays closed by the guard; how
    long is a line in `pauses.csv`. A run that is started meanwhile waits as well.

    Example: robo-eval pause runs/matched
    """
    from robo_eval.log import pausing

    opened = TrialDirectory.open(trial)
    if opened.plan.imported is not None or set(opened.plan.sides) == {Side.SIM}:
        raise InputError(f"{trial}: nothing of it is played on a robot, so nothing can wait")
    changed = pausing.go_on(opened.path) if off else pausing.pause(opened.path)
    if json:
        print_json({"trial": str(trial), "paused": not off, "changed": changed})
        return
    if off:
        say(f"{trial}: goes on" if changed else f"{trial}: was not paused")
        return
    say(f"{trial}: {'waits' if changed else 'waits already'} before its next episode")
    next_steps(f"robo-eval pause {quoted(trial)} --off")
