"""What one attempt at an episode left behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from robo_eval.core.kinds import EndReason, FaultBy

if TYPE_CHECKING:
    from robo_eval_robot.link import Trip
    from robo_eval_robot.recordings import Trace

OPERATOR: Final = "operator"
"""Who declares attempts void where nobody said their name."""


class SkippedError(Exception):
    """The person at the robot declared an attempt void before it began.

    Args:
        reason: One of the plan's reasons.
        note: More about it; may be empty.
    """

    def __init__(self, reason: str, note: str = "") -> None:
        super().__init__(f"{reason}: {note}" if note else reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What one attempt left behind.

    Attributes:
        end_reason: Why it ended.
        detail: More about that, one line.
        fault_by: Who a fault was by.
        ticks: Control ticks; None if not known.
        duration_s: Time under way, seconds; None if not known.
        episode_return: Sum of the rewards; None if it is not scored.
        quality: Score in [0, 1].
        success: Whether that is enough.
        initial_state: Where it really started.
        measures: Action periods, inference times, and what the policy measured of itself.
        trips: What the guard reported since the attempt before; each names its episode.
        faults: What was injected, and whether it was overcome.
        trace: Its bag; None if there is none.
        void_by: Who declared it void.
        start_ns: When it was set up and began, UTC; None if it never was.
    """

    end_reason: EndReason
    detail: str | None = None
    fault_by: FaultBy | None = None
    ticks: int | None = None
    duration_s: float | None = None
    episode_return: float | None = None
    quality: float | None = None
    success: bool | None = None
    initial_state: dict[str, Any] = field(default_factory=dict)
    measures: dict[str, float] = field(default_factory=dict)
    trips: tuple[Trip, ...] = ()
    faults: tuple[Mapping[str, Any], ...] = ()
    trace: Trace | None = None
    void_by: str | None = None
    start_ns: int | None = None
