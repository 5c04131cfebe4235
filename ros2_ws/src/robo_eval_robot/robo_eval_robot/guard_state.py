"""What a guard can be doing, and what it can want done."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from robo_eval_robot.guard_checks import Violation


class GuardState(StrEnum):
    """What the guard is doing."""

    INIT = "INIT"
    """Something is unknown or wrong: nothing is passed on, and motion cannot be enabled."""
    READY = "READY"
    """All is well; nothing is passed on until motion is enabled."""
    RUNNING = "RUNNING"
    """Requests are passed on."""
    WITHHELD = "WITHHELD"
    """Nothing is sent, to see that the driver stops by itself."""
    PROTECTIVE_STOP = "PROTECTIVE_STOP"
    """Stopped for a cause, until a reset."""
    ESTOP = "ESTOP"
    """The emergency stop was pressed; until it is released and a reset."""


MOVING: Final = frozenset({GuardState.RUNNING, GuardState.WITHHELD})
STOPPED: Final = frozenset({GuardState.PROTECTIVE_STOP, GuardState.ESTOP})


@dataclass(slots=True)
class Reaction:
    """What has to be done now, in this order."""

    command: tuple[float, ...] | None = None
    """To publish for the controller."""
    power_off: bool = False
    """Whether to ask the driver to remove power."""
    incidents: list[Violation] = field(default_factory=list)
    """To report."""
    stopped: bool = False
    """Whether a stop began."""


@dataclass(slots=True)
class Answer:
    """What a service says, and what has to be done."""

    success: bool
    message: str
    reaction: Reaction = field(default_factory=Reaction)


@dataclass(slots=True)
class Counts:
    """Requests since the guard was started."""

    requests: int = 0
    passed: int = 0
    clamped: int = 0
    refused: int = 0
