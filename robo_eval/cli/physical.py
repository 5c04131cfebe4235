"""How `robo-eval run` plays the physical half of a trial: robot file, person, processes."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from robo_eval.cli.blind import coded_errors
from robo_eval.cli.output import quoted
from robo_eval.cli.progress import ShownProgress, episode_progress
from robo_eval.cli.view import print_view_problem
from robo_eval.core import door
from robo_eval.core.errors import (
    InputError,
    MissingExtraError,
    NotHereError,
    PlanError,
    pip_install,
)
from robo_eval.core.kinds import Side
from robo_eval.log.directory import ROBOT_FILE, TrialDirectory
from robo_eval.log.files import write_atomically
from robo_eval.log.pausing import is_paused
from robo_eval_robot.terminal import OpenTerminal, Terminal

if TYPE_CHECKING:
    from robo_eval.cli.run import PlayOptions
    from robo_eval.core.plan import TrialPlan
    from robo_eval_robot.conductor import PhysicalResult
    from robo_eval_robot.config import RobotConfig

_LONGEST_NAME: Final = 100


def has_ros() -> bool:
    """Whether ROS 2 can be used from this Python."""
    return find_spec("rclpy") is not None


def check_physical(plan: TrialPlan, robot: Path | None, *, auto: bool = False) -> Path:
    """Refuse what a robot could not play, before anything is created; returns the robot file.

    Raises:
        MissingExtraError: If ROS 2 is missing.
        PlanError: If the robot file or the plan cannot be used.
        InputError: If nobody is there to set up a robot that cannot do that itself.
    """
    _need_ros()

    if robot is None:
        if Side.REAL in plan.sides:
            raise PlanError("sides: real needs a robot file; name it by --robot ROBOT.yaml")
        robot = built_in_twin()
    from robo_eval_robot.adapter import check_robot
    from robo_eval_robot.config import read_robot

    config = read_robot(robot)
    check_robot(plan, config, str(robot))
    _need_person(config, auto=auto)
    return robot


def named_operator(plan: TrialPlan, operator: str | None, *, auto: bool) -> str | None:
    """Who is at the robot; asked once in a terminal where the plan wants that person's verdict.

    Raises:
        InputError: If the name is missing, or is no name.
    """
    if operator is None and plan.judging.verdict == "operator":
        if auto or not sys.stdin.isatty():
            raise InputError(
                "judging.verdict: the plan wants the operator's verdict; say who that is by"
                " --operator NAME"
            )
        operator = str(typer.prompt("Who is at the robot? (name, kept in the log)", err=True))
    if operator is None:
        return None
    operator = operator.strip()
    if not (0 < len(operator) <= _LONGEST_NAME and operator.isprintable()):
        raise InputError(
            f"--operator: a name of at most {_LONGEST_NAME} letters is needed, given"
            f" {operator!r:.40}"
        )
    return operator


def built_in_twin() -> Path:
    """Robot file of the gantry twin that comes with robo-eval."""
    return Path(str(files("robo_eval_twin").joinpath("gantry_twin.yaml")))


def keep_robot_file(trial: Path, robot: Path) -> None:
    """Copy the robot file into a trial, so that it says what it was played on."""
    write_atomically(trial / ROBOT_FILE, door.written(robot))


def play_physical(trial: TrialDirectory, how: PlayOptions) -> tuple[PhysicalResult, str]:
    """Play what is missing of the physical side; returns how it went, and on what.

    Raises:
        MissingExtraError: If ROS 2 is missing, or PyBullet for a twin.
        NotHereError: If nothing is heard of the robot, or nobody is there to set episodes up.
        InputError: If the robot is not there, is used by somebody else, or is another than before.
        InterruptedRunError: On a signal, after the robot was stopped.
    """
    _need_ros()
    from robo_eval.core.installed import need_pybullet
    from robo_eval.core.schedule import schedule

    kept = trial.path / ROBOT_FILE
    if not kept.exists():
        if how.robot is None:
            raise InputError(f"{kept}: is missing; name the robot file by --robot")
        keep_robot_file(trial.path, how.robot)
    elif how.robot is not None and door.written(how.robot) != kept.read_bytes():
        raise InputError(
            f"{how.robot}: differs from {kept}, which the trial began with; start a new trial"
        )
    # Logs of our own node go beside those of the processes it starts.
    os.environ.setdefault("ROS_LOG_DIR", str(trial.path / "logs" / "ros"))
    from robo_eval_robot.conductor import run_physical
    from robo_eval_robot.config import read_robot

    config = read_robot(kept)
    _need_person(config, auto=how.auto)
    if config.body == "twin":
        need_pybullet("the twin")
    _say_if_paused(trial)
    title = f"{trial.path.name} on {config.name}"
    progress = episode_progress(
        title,
        quiet=how.json,
        planned=len(schedule(trial.plan, config.side)),
        status="getting ready, guard silent",
    )
    log = trial.path / "logs" / "view.log"
    old = log.stat().st_size if log.exists() else 0
    with coded_errors(trial), progress as shown:
        result = run_physical(
            trial,
            config,
            kept,
            terminal=_terminal(trial.plan, config, shown, auto=how.auto),
            operator=how.operator,
            on_progress=shown,
            on_status=shown.status if shown else None,
            view=how.view_to,
        )
    if how.view_to is not None:
        print_view_problem(log, old)
    return result, f"{config.name}, a {'twin' if config.body == 'twin' else 'robot'}"


def _need_person(config: RobotConfig, *, auto: bool) -> None:
    """Refuse to play on a robot where nobody can set its episodes up."""
    if config.body == "twin":
        return
    if auto:
        raise InputError(f"--auto: a person must set up the episodes of robot {config.name!r}")
    if not sys.stdin.isatty():
        raise NotHereError("a person must confirm each episode; run this in a terminal")


def _terminal(
    plan: TrialPlan, config: RobotConfig, shown: ShownProgress | None, *, auto: bool
) -> Terminal | None:
    """Where the person at the robot sits; a twin has one only where the plan wants a verdict."""
    if auto or not sys.stdin.isatty():
        return None
    if config.body == "twin" and not plan.judging.asks(config.side):
        return None
    # Not through a progress bar, which would take answers in brackets for its own marks.
    out = sys.__stderr__ or sys.stderr
    return OpenTerminal(sys.stdin.fileno(), out, shown.aside if shown else nullcontext)


def _say_if_paused(trial: TrialDirectory) -> None:

    if is_paused(trial.path):
        where = quoted(trial.path)
        typer.echo(f"{trial.path}: is paused; go on by: robo-eval pause {where} --off", err=True)


def _need_ros() -> None:
    if not has_ros():
        raise MissingExtraError(
            "a physical side is played through ROS 2, and rclpy is not installed: source your ROS"
            f" installation, or on a machine without one: {pip_install('ros')}"
        )
