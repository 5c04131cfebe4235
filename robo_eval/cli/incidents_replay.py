"""`robo-eval incidents test`: whether the guard would stop today as it did."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from robo_eval.cli.incidents_common import LogOption, NameArgument, readable
from robo_eval.cli.output import JsonOption, print_json, print_table
from robo_eval.core.canonical import file_digest
from robo_eval.core.errors import CheckFailedError, InputError
from robo_eval.log.directory import ROBOT_FILE


def replay(
    incident: NameArgument,
    *,
    robot: Annotated[
        Path | None,
        typer.Option("--robot", metavar="ROBOT.yaml", help="Robot file; default: the trial's."),
    ] = None,
    within_ms: Annotated[
        float, typer.Option("--within-ms", min=0.0, help="How much sooner or later it may stop.")
    ] = 100.0,
    log: LogOption = None,
    json: JsonOption = False,
) -> None:
    """Replay the trace around an incident to the guard, and fail if it stops in another way.

    Its causes and the time of its stop are compared; the settings are those of the robot file.
    Exit code 1 if the outcome differs, 2 if the incident cannot be replayed.

    Example: robo-eval incidents test lab/2 --log runs/matched --robot gantry.yaml
    """
    from robo_eval_incidents.capture import piece_of
    from robo_eval_incidents.kinds import Report
    from robo_eval_robot.config import read_robot
    from robo_eval_robot.guard_replay import replay as replayed

    with readable(log) as found:
        shown, folder = found.incident(incident), found.evidence_folder
    piece, name = piece_of(shown), shown.name
    if piece is None or folder is None:
        why = "no trace was cut out around it" if folder else "a server keeps no traces"
        raise InputError(f"{name}: cannot be replayed: {why}")
    file, clip = robot or folder / ROBOT_FILE, folder / piece.uri
    if not file.exists():
        raise InputError(f"{file}: no such robot file; name the robot's by --robot")
    if clip.exists() and file_digest(clip) != piece.sha256:
        raise InputError(f"{clip}: is not the file that was recorded; bring the right one back")
    drafted = shown.record.body  # as it was drafted: a person may have corrected when it was
    assert isinstance(drafted, Report)
    before, now = replayed(clip, read_robot(file), drafted.happened_ns)
    late_s = before.late_s(now)
    is_same = before.causes == now.causes and late_s is not None and abs(late_s) * 1e3 <= within_ms
    if json:
        print_json(
            {
                "schema_version": 1,
                "incident": name,
                "robot": str(file),
                "clip": str(clip),
                "same": is_same,
                "was": list(before.causes),
                "is": list(now.causes),
                "late_ms": None if late_s is None else round(late_s * 1e3, 3),
            }
        )
    else:
        when = "goes on" if late_s is None else f"stops {late_s * 1e3:+.0f} ms"
        rows = [("was", "stops", ", ".join(before.causes)), ("is", when, ", ".join(now.causes))]
        print_table(f"{name} with {file}", ("", "guard", "causes"), rows)
    if not is_same:
        raise CheckFailedError(f"{name}: the guard of {file} does not stop as it did")
