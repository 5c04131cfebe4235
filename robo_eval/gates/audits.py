"""Checks that a level needs besides its gates: is the evidence whole, and was it fairly got?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Status = Literal["pass", "fail", "missing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """One check.

    Attributes:
        id: Name in profiles.
        title: What is checked.
        status: How it went; `missing` passes no more than `fail`.
        reason: What was found.
    """

    id: str
    title: str
    status: Status
    reason: str

    def as_dict(self) -> dict[str, Any]:
        """The check as JSON would have it."""
        return asdict(self)
