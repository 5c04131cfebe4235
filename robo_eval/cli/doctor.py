"""`robo-eval doctor`: what stands in the way of a run on a robot, and the remedy."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Final

import typer

from robo_eval.cli.output import JsonOption, print_json, print_table, say
from robo_eval.cli.physical import has_ros
from robo_eval.core.errors import CheckFailedError, InputError, MissingExtraError, pip_install
from robo_eval_robot.doctor_check import Check

_STOPS: Final = ("joint", "from", "time", "distance", "time of ramp", "distance of ramp")
_WORDS: Final = {True: "pass", False: "FAIL", None: "note"}


def doctor(
    robot: Annotated[Path, typer.Argument(metavar="ROBOT.yaml", help="Robot file.")],
    *,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where trials will be written.")
    ] = Path(),
    estop: Annotated[
        bool,
        typer.Option("--estop", help="Wait up to 30 s to see the e-stop pressed and released."),
    ] = False,
    move: Annotated[
        bool, typer.Option("--move", help="If all else passes, move the robot a little: preflight.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Look at a robot and this machine before a run; without --move nothing is sent.

    Exit code 1 if a check failed; notes fail nothing.

    Example: robo-eval doctor robot.yaml --estop
    """
    if not has_ros():
        raise MissingExtraError(
            "a robot is looked at through ROS 2, and rclpy is not installed: source your ROS"
            f" installation, or on a machine without one: {pip_install('ros')}"
        )
    from robo_eval_robot.config import read_robot

    config = read_robot(robot)
    with TemporaryDirectory(prefix="robo-eval-logs-") as logs:
        # A look leaves nothing behind, neither in the home folder.
        os.environ.setdefault("ROS_LOG_DIR", logs)
        from robo_eval_robot.doctor import examine
        from robo_eval_robot.doctor import move as move_robot

        last = partial(move_robot, config, robot, _ask) if move else None
        checks = examine(config, out, tell=_tell, estop=estop, move=last)
    failed = [check for check in checks if check.passed is False]
    if json:
        print_json(
            {
                "schema_version": 1,
                "robot": config.name,
                "body": config.body,
                "passed": not failed,
                "checks": [check.as_dict() for check in checks],
            }
        )
    else:
        _print(f"{config.name}, a {config.body} in {config.namespace}", checks)
    if failed:
        raise CheckFailedError(
            f"{robot}: {len(failed)} of {len(checks)} checks failed: "
            + ", ".join(check.name for check in failed)
        )


def _tell(text: str) -> None:
    typer.echo(text, err=True)


def _ask(text: str) -> bool:
    if not sys.stdin.isatty():
        raise InputError("a person must confirm that the robot may move; run this in a terminal")
    return typer.confirm(text, default=False, err=True)


def _print(title: str, checks: Sequence[Check]) -> None:
    rows = [(check.name, _WORDS[check.passed], check.found) for check in checks if not check.rows]
    print_table(title, ("check", "result", "found"), rows, prose=(2,))
    if stops := [row for check in checks for row in check.rows]:
        # Where efforts are told there is no ramp.
        told = _STOPS if any(row[-1] for row in stops) else _STOPS[:4]
        cut = [row[: len(told)] for row in stops]
        print_table("stops", told, cut, right=range(1, len(told)), keys=1)
    remedies = [check for check in checks if check.remedy]
    for check in remedies:
        say(f"{_WORDS[check.passed]} {check.name}: {check.remedy}")
