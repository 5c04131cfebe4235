"""Whether a robot passes its preflight, outside of a run: the doctor's only check that moves it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from robo_eval.core.errors import CheckFailedError, InputError
from robo_eval_robot.children import children
from robo_eval_robot.config import RobotConfig
from robo_eval_robot.doctor_check import Check
from robo_eval_robot.link import RobotLink
from robo_eval_robot.lock import robot_lock
from robo_eval_robot.preflight import preflight
from robo_eval_robot.preflight_report import JointFinding, Report
from robo_eval_robot.stagehand import OperatorStagehand, Stagehand, TwinStagehand
from robo_eval_robot.topics import of_session

_NAME: Final = "preflight"


def move(config: RobotConfig, robot_file: Path, ask: Callable[[str], bool]) -> Check:
    """Start a guard, play the preflight, and end the guard.

    Args:
        config: The robot, which is up, and has no guard yet.
        robot_file: File it was read from, for the guard.
        ask: Asks the person at the robot to confirm something; not called for a twin.
    """
    with TemporaryDirectory(prefix="robo-eval-doctor-") as name, robot_lock(config.name):
        folder, session = Path(name), of_session()
        with children(folder, session) as own:
            link = RobotLink(config, "doctor", session)
            is_twin = config.body == "twin"
            stagehand: Stagehand = TwinStagehand(link) if is_twin else OperatorStagehand(link, ask)
            try:
                own.start("guard", "robo_eval_robot.guard_node", [str(robot_file)])
                link.connect()
                report = preflight(
                    link,
                    config,
                    stagehand,
                    folder / "preflight.json",
                    ask=None if is_twin else ask,
                    check=own.check,
                )
            except (InputError, CheckFailedError) as err:
                remedy = "docs/doctor.md says what each part of the preflight needs"
                return Check(_NAME, passed=False, found=str(err), remedy=remedy)
            finally:
                link.close()
    stops = tuple(stops_of(joint, config) for joint in report.joints)
    return Check(_NAME, passed=True, found=_said(report), parts=stops)


def _said(report: Report) -> str:
    stops = [joint.stopped_s for joint in report.joints if joint.stopped_s is not None]
    return (
        f"stands at most {max(stops):.3f} s after the last command, {report.allowed_s:g} s allowed;"
        f" a state answers a request in {1e3 * (report.round_trip_p50_s or 0.0):.1f} ms (p50),"
        f" {1e3 * (report.round_trip_p99_s or 0.0):.1f} ms (p99)"
    )


def stops_of(finding: JointFinding, config: RobotConfig) -> Check:
    """Time and distance to a standstill from each speed, with what the guard's ramp takes."""
    unit = config.limited[finding.joint].unit
    rows = [
        (
            finding.joint,
            f"{stop.speed:.3g} {unit}/s",
            f"{stop.stop_s:.3f} s",
            f"{stop.distance:.3g} {unit}",
            "" if stop.expected_s is None else f"{stop.expected_s:.3f} s",
            "" if stop.expected_s is None else f"{stop.expected_distance:.3g} {unit}",
        )
        for stop in finding.stops
    ]
    told = [f"from {', '.join(filter(None, row[1:]))}" for row in rows]
    found = "; ".join(told) or "none asked for: a stop of this category removes power"
    return Check(f"stops of {finding.joint}", passed=True, found=found, rows=tuple(rows))
