"""Checks that a level needs besides its gates: is the evidence whole, and was it fairly got?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from robo_eval.core.plain import plain

Status = Literal["pass", "fail", "missing", "undecided"]
"""How a check or a gate went; `undecided` is a gate that more hours may still open."""


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

    as_dict = plain


def audit(
    name: str, title: str, *, passes: bool, good: str, bad: str, kind: Status = "fail"
) -> Audit:
    """A check with what is said if it passes and if it does not.

    Args:
        name: Name in profiles.
        title: What is checked.
        passes: How it went.
        good: Reason if it passes.
        bad: Reason if it does not.
        kind: Status if it does not.
    """
    status: Status = "pass" if passes else kind
    return Audit(id=name, title=title, status=status, reason=good if passes else bad)
