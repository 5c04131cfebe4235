"""`robo-eval demo`: the main job on real input, from nothing to a report."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated, Final

import typer

from robo_eval.cli.options import taking
from robo_eval.cli.output import say
from robo_eval.cli.physical import built_in_twin, has_ros
from robo_eval.cli.run import PlayOptions, play, start
from robo_eval.core.errors import RoboEvalError
from robo_eval.log.directory import CALIBRATION, TrialDirectory
from robo_eval.log.files import write_atomically

_HIDDEN: Final = {"seed": 7, "mass_scale": 1.15, "delay_ticks": 1}
"""What the demo's twin hides: heavier bodies, and commands that act one control tick late."""


@taking(PlayOptions, "jobs", "json")
def demo(
    how: PlayOptions,
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the trials.")] = Path(
        "runs/demo"
    ),
) -> None:
    """Play three trials and write their reports.

    First 17 novelty levels in three difficulties with four agents, in the simulator. Then two
    experts of an arm under three novelties of growing magnitude. Beside them, where ROS 2 is
    installed, a matched trial: a policy on the twin of a robot, and in the simulator from the same
    states. What was recorded of the twin then calibrates the simulator. A demo that was interrupted
    goes on; one that is complete only gets its reports again.

    Example: robo-eval demo --out runs/demo
    """
    from robo_eval.log.place import nearest_existing
    from robo_eval.log.provenance import cores

    nearest_existing(out)  # refuses a file

    # By itself: a demo must never meet somebody's robot, nor another demo.
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    os.environ.setdefault("ROS_DOMAIN_ID", str(1 + os.getpid() % 100))
    twin = _twin_file(out) if has_ros() else None
    beside: AbstractContextManager[Callable[[], None]] = nullcontext(lambda: None)
    others = how
    if twin is not None and cores() > 1:
        beside = _beside(out / "matched", twin, how.jobs)
        # A guard stops a robot that waits for a core.
        others = replace(how, jobs=min(how.jobs or cores(), cores() - 1))
    with beside as wait:
        _play("demo_plan.yaml", out / "sim", others)
        _play("dose_plan.yaml", out / "arm", others)
        wait()
    if twin is None:
        say_aside(
            "note: the matched trial on a twin is left out: ROS 2 (rclpy) is not installed; see"
            " docs/ros.md"
        )
        return
    _play("matched_plan.yaml", out / "matched", replace(how, robot=twin))
    _calibrate(out / "matched", how)


@contextmanager
def _beside(path: Path, twin: Path, jobs: int | None) -> Iterator[Callable[[], None]]:
    """Play the matched trial in a process of its own, before which this one stands back.

    Yields what waits for its end and says how it comes along. What it leaves open, and why, is
    found by whoever goes on with it.
    """
    plan = str(files("robo_eval.cli").joinpath("matched_plan.yaml"))
    words = ["run", plan, "--out", str(path), "--robot", str(twin)]
    if (path / "plan.yaml").exists():
        words = ["resume", str(path)]
    words += ["--no-report"] if jobs is None else ["--no-report", "--jobs", str(jobs)]
    with TemporaryFile() as said:
        process = subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-m", "robo_eval", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,  # Ctrl-C is handed on below, once
        )
        os.nice(19)

        def wait() -> None:
            told, is_over = 0, False
            while not is_over:
                is_over = process.poll() is not None
                text = os.pread(said.fileno(), 1 << 20, told)
                told += len(text)
                typer.echo(text, err=True, nl=False)
                time.sleep(0.0 if is_over else 0.2)

        say_aside("meanwhile a twin plays what is open of the matched trial, which comes last")
        try:
            yield wait
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.wait()


def _play(plan_file: str, path: Path, how: PlayOptions) -> None:

    from robo_eval.core.plan import parse_plan

    if (path / "plan.yaml").exists():
        trial = TrialDirectory.open(path)
        if not how.json:
            status = trial.status()
            say(
                f"{trial.path}: {status}"
                + ("; going on from there" if status != "complete" else "")
            )
        # Of a physical side that is complete nothing is started again.
        play(trial, replace(how, robot=None), sides=trial.plan.sides, may_leave=True)
        return
    text = files("robo_eval.cli").joinpath(plan_file).read_text(encoding="utf-8")
    plan = parse_plan(text, source=plan_file)
    start(plan, path, how, sides=plan.sides)


def _calibrate(path: Path, how: PlayOptions) -> None:
    """Find what the twin hides in its recordings, and show it in the report of their trial.

    What cannot be found is said, and is no failure of the demo.
    """
    from robo_eval.cli.calibrate import fit, validate
    from robo_eval.report.build import build_report

    snapshot = path / CALIBRATION / "demo-twin.yaml"
    say_aside(
        "last, the simulator is calibrated by what was recorded of the twin, which hides bodies"
        f" {_HIDDEN['mass_scale']} times as heavy and {_HIDDEN['delay_ticks']} tick of delay"
    )
    try:
        snapshot.parent.mkdir(exist_ok=True)
        # Drive and masses scale together: how strong the drive is has to be known.
        fit(path, out=snapshot, given=["push_gain=1"], workers=how.jobs, json=how.json)
        validate(snapshot, path, json=how.json)
    except RoboEvalError as err:
        say_aside(f"calibration: {err}")
    build_report(TrialDirectory.open(path))


def _twin_file(out: Path) -> Path:
    """The built-in twin with physics that the simulator does not know of."""
    import yaml

    data = yaml.safe_load(built_in_twin().read_text(encoding="utf-8"))
    data["name"] = "demo-twin"
    data["twin"]["perturbation"] = _HIDDEN
    path = out / "demo_twin.yaml"
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(path, yaml.safe_dump(data, sort_keys=False).encode())
    return path


def say_aside(text: str) -> None:
    """A line for people that is no part of what a program reads."""
    typer.echo(text, err=True)
