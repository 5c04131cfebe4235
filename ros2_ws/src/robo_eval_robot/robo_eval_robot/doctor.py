"""What a table of pass and fail about a robot holds, and in which order it is filled."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from robo_eval.core.errors import CheckFailedError, InputError
from robo_eval_robot.children import children
from robo_eval_robot.config import RobotConfig
from robo_eval_robot.doctor_check import Check, bad, good
from robo_eval_robot.doctor_machine import machine_checks
from robo_eval_robot.doctor_peers import peer_checks
from robo_eval_robot.doctor_state import state_checks
from robo_eval_robot.hearing import Hearing
from robo_eval_robot.link import RobotLink
from robo_eval_robot.lock import robot_lock
from robo_eval_robot.preflight import preflight
from robo_eval_robot.preflight_report import JointFinding, Report
from robo_eval_robot.stagehand import OperatorStagehand, Stagehand, TwinStagehand
from robo_eval_robot.topics import of_session

LISTEN_S = 2.0
"""How long states are listened to, once the first has come."""
DISCOVERY_S = 4.0
"""How long the first state is waited for."""
ESTOP_S = 30.0
"""How long a person has to press and release the emergency stop."""
_PREFLIGHT: Final = "preflight"


def examine(
    config: RobotConfig,
    out: Path,
    *,
    tell: Callable[[str], None],
    estop: bool = False,
    move: Callable[[], Check] | None = None,
) -> list[Check]:
    """Look at a robot and at this machine; nothing is published, and nothing moves before `move`.

    Args:
        config: The robot.
        out: Folder trials will be written to.
        tell: Shows a line to the person at the robot.
        estop: Whether that person presses and releases the emergency stop.
        move: Moves the robot; called last, if no check failed.

    Returns:
        Every check, in the order of the table.
    """
    checks = machine_checks(config, out)
    with closing(Hearing(config)) as hearing:
        heard = hearing.listen(DISCOVERY_S, LISTEN_S)
        checks += state_checks(config, heard)
        checks += peer_checks(config, heard)
        if estop:
            tell(
                f"press the emergency stop of {config.name} and release it again, within"
                f" {ESTOP_S:g} s"
            )
            checks.append(_pressed(hearing, config))
    if move is not None and all(check.passed is not False for check in checks):
        remedy = "end that guard: the preflight starts its own, as a run does"
        found = bad(_PREFLIGHT, "a guard runs already", remedy) if heard.guard else move()
        checks += [found, *found.parts]
    return checks


def _pressed(hearing: Hearing, config: RobotConfig) -> Check:
    """Whether the emergency stop is seen pressed and then released."""
    name, values = "e-stop pressed", hearing.follow_estop(ESTOP_S)
    seen_pressed = True in values
    if seen_pressed and False in values[values.index(True) :]:
        return good(name, "seen pressed and released")
    found = "seen pressed, not released" if seen_pressed else "not seen pressed"
    topic = config.topic(config.guard.estop.topic)
    remedy = f"have the driver mirror the circuit on {topic} (std_msgs/Bool, true = pressed)"
    return bad(name, f"{found} within {ESTOP_S:g} s", remedy)


def move(config: RobotConfig, robot_file: Path, ask: Callable[[str], bool]) -> Check:
    """Start a guard, play the preflight, and end the guard: the only check that moves the robot.

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
                return bad(_PREFLIGHT, str(err), remedy)
            finally:
                link.close()
    stops = tuple(stops_of(joint, config) for joint in report.joints)
    return Check(_PREFLIGHT, passed=True, found=_said(report), parts=stops)


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
