"""What a preflight found."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(slots=True, kw_only=True)
class StopFinding:
    """How one joint came to a standstill when a stop was asked for.

    Attributes:
        asked: Speed that was asked for, m/s or rad/s.
        speed: How fast it moved, m/s or rad/s.
        stop_s: From the state before the stop to that by which it stands, seconds; up to three
            states more than it took.
        distance: How far it went meanwhile, m or rad.
        expected_s: What the guard's ramp takes from that speed; None if efforts are told.
        expected_distance: How far it goes, m or rad; None if efforts are told.
    """

    asked: float
    speed: float
    stop_s: float
    distance: float
    expected_s: float | None
    expected_distance: float | None


@dataclass(slots=True, kw_only=True)
class JointFinding:
    """What one joint did.

    Attributes:
        joint: Its name.
        moved_s: How long it took to move, seconds; None if it did not.
        speed: How fast it then was along what was asked, m/s or rad/s.
        effort_ratio: Measured change of effort by the one asked for; None if not measured.
        stopped_s: How long after the last command it stood, by the driver alone, seconds.
        stops: How it came to a standstill from each of three speeds.
    """

    joint: str
    moved_s: float | None = None
    speed: float | None = None
    effort_ratio: float | None = None
    stopped_s: float | None = None
    stops: list[StopFinding] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Report:
    """What the preflight found.

    Attributes:
        robot: Name of the robot.
        problem: Why it failed; empty if it passed.
        time: When it began, UTC.
        timeout_s: Command timeout of the driver that the robot file declares.
        timeout_provided_by: How the driver does that, by the robot file.
        at_zero_effort: What an axis does that nothing holds, for a robot that is told efforts.
        allowed_s: Within what time after the last command the robot had to stand.
        joints: One finding a commanded joint.
        repeated: Motions that were tried again because a message was late.
        requests: How many requests were timed.
        round_trip_p50_s: From a request to the next joint state, median; None without requests.
        round_trip_p99_s: The same, 99 % quantile.
    """

    robot: str
    problem: str = ""
    at_zero_effort: str = ""
    time: str
    timeout_s: float
    timeout_provided_by: str
    allowed_s: float
    joints: list[JointFinding] = field(default_factory=list)
    repeated: int = 0
    requests: int = 0
    round_trip_p50_s: float | None = None
    round_trip_p99_s: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {"schema_version": 1, "passed": not self.problem, **asdict(self)}
