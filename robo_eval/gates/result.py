"""What came of one gate of one level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from robo_eval.core.estimate import Estimate
from robo_eval.core.plain import plain
from robo_eval.gates.audits import Status

HARM: Final = ("minor_per_100_h", "SS", "MTBSI")
"""What incidents and hours tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """One gate of one level.

    Attributes:
        level: The level that asks.
        id: Name of the gate.
        title: What people call it.
        reads: The quantity it read.
        test: How it was compared.
        threshold: What was asked for; of families, how many of them.
        found: The evidence it read.
        counts: Whether it decides; one that does not is reported.
        kind: `closure`, `duration` for what is shown over days or hours, else `threshold`.
        status: Whether the interval passes; `missing` passes no more than `fail`, nor does
            `undecided`, where hours are too few to tell.
        status_by_points: The same by the point estimate, which knows no doubt.
        reason: In words.
    """

    SAID: ClassVar = ("pass_",)

    level: int
    id: str
    title: str
    reads: str
    test: str
    threshold: float
    found: Estimate
    counts: bool = True
    kind: str = "threshold"
    status: Status
    status_by_points: Status
    reason: str

    @property
    def pass_(self) -> bool:
        """Whether it passes."""
        return self.status == "pass"

    @property
    def is_one_sided(self) -> bool:
        """Whether each end of what was found is a bound by itself, and not one of an interval."""
        return self.reads in HARM and self.found.value is not None

    as_dict = plain
