"""`robo-eval verify`: whether a trial directory still is what was logged."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from robo_eval.cli.output import JsonOption, print_json, say


def verify(
    trial: Annotated[Path, typer.Argument(metavar="DIR", help="Trial directory.")],
    *,
    signed_by: Annotated[
        str | None,
        typer.Option("--signed-by", help="Fingerprint of the key that has to have signed."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Check plan, rows, traces and signed bundles; exit code 1 if anything differs.

    A signature proves that nothing changed since; whose it is you know by the fingerprint, which
    assess printed: give it with --signed-by.

    Example: robo-eval verify runs/demo/sim
    """
    from robo_eval.cli.checks import check_there

    check_there(trial)
    from robo_eval.core.errors import CheckFailedError
    from robo_eval.log.verify import verify_trial

    result = verify_trial(trial, signed_by=signed_by)
    if json:
        print_json(result.as_dict())
    else:
        for line in result.lines():
            say(line)
    if not result.ok:
        problems = len(result.problems)
        raise CheckFailedError(
            f"{trial}: {problems} problem{'s' if problems > 1 else ''} found; do not trust this log"
        )
