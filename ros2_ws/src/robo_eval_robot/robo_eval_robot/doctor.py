"""What a table of pass and fail about a robot holds, and in which order it is filled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from robo_eval_robot.config import RobotConfig
from robo_eval_robot.doctor_check import Check
from robo_eval_robot.doctor_machine import machine_checks
from robo_eval_robot.doctor_peers import peer_checks
from robo_eval_robot.doctor_state import state_checks
from robo_eval_robot.hearing import Hearing

LISTEN_S = 2.0
"""How long states are listened to, once the first has come."""
DISCOVERY_S = 4.0
"""How long the first state is waited for."""
ESTOP_S = 30.0
"""How long a person has to press and release the emergency stop."""


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
    with Hearing(config) as hearing:
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
        runs = Check("preflight", passed=False, found="a guard runs already", remedy=remedy)
        found = runs if heard.guard else move()
        checks += [found, *found.parts]
    return checks


def _pressed(hearing: Hearing, config: RobotConfig) -> Check:
    """Whether the emergency stop is seen pressed and then released."""
    values = hearing.follow_estop(ESTOP_S)
    seen_pressed = True in values
    seen_released = seen_pressed and False in values[values.index(True) :]
    if seen_released:
        return Check("e-stop pressed", passed=True, found="seen pressed and released")
    found = "seen pressed, not released" if seen_pressed else "not seen pressed"
    topic = config.topic(config.guard.estop.topic)
    return Check(
        "e-stop pressed",
        passed=False,
        found=f"{found} within {ESTOP_S:g} s",
        remedy=f"have the driver mirror the circuit on {topic} (std_msgs/Bool, true = pressed)",
    )
