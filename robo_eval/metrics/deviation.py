"""One way in which a trial was played otherwise than its plan says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from robo_eval.log.notes import iso_time

KINDS: Final[Mapping[str, str]] = {
    "not_attempted": "planned episodes never attempted",
    "unplanned": "attempts of episodes the plan does not name",
    "retried": "attempts beyond the first",
    "lost": "attempts lost",
    "fault": "attempts ended by a fault",
    "void": "attempts declared void",
    "late_computer": "attempts void because the computer was late",
    "void_unplanned": "void attempts for a reason that is not in the plan",
    "injections": "planned injections that never began",
    "order": "episodes started in another order than planned",
    "starts": "episodes that started unlike those of another policy with the same seed",
    "software": "changes of the software",
    "engine": "changes of the physics engine",
    "numerics": "changes of the library of numbers",
    "level": "levels that behave otherwise than in their first episodes",
    "robot": "changes of the robot",
    "operator": "changes of the operator",
    "calibration": "changes of the calibration",
    "policy": "changes of what a policy is made of",
    "recovered": "rows restored after a crash",
    "verdicts": "episodes without a verdict",
    "ratings": "second ratings that are due and missing",
    "preflight": "preflight that failed",
    "pauses": "pauses",
}
"""Every kind of deviation and what it counts, in the order they are told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """One way in which a trial was played otherwise than its plan says.

    Attributes:
        kind: One of `KINDS`.
        side: Where; empty for the whole trial.
        count: How many.
        reasons: Why, each with how many; empty where nothing says why.
        text: What else there is to say; may be empty.
        episodes: Ids of the first few.
        first_ns: When the first of them started, UTC; None if not known.
        last_ns: When the last of them started.
    """

    kind: str
    side: str = ""
    count: int
    reasons: Mapping[str, int] = field(default_factory=dict)
    text: str = ""
    episodes: tuple[str, ...] = ()
    first_ns: int | None = None
    last_ns: int | None = None

    @property
    def what(self) -> str:
        """What is counted, in words."""
        return KINDS[self.kind]

    def as_dict(self) -> dict[str, Any]:
        """The deviation as JSON would have it."""
        return {
            "kind": self.kind,
            "what": self.what,
            "side": self.side or None,
            "count": self.count,
            "reasons": dict(self.reasons),
            "text": self.text,
            "episodes": list(self.episodes),
            "first": None if self.first_ns is None else iso_time(self.first_ns),
            "last": None if self.last_ns is None else iso_time(self.last_ns),
        }
