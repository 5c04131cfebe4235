"""One line of the doctor's table."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, what was found, and what to do about it.

    Attributes:
        name: What was looked at.
        passed: Whether it is as it has to be; None for a note, which fails nothing.
        found: What was found.
        remedy: What to do; empty if nothing has to be done.
        parts: What the same look found in detail.
        rows: What it measured, as rows of a table of its own.
    """

    name: str
    passed: bool | None
    found: str
    remedy: str = ""
    parts: tuple[Check, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {key: value for key, value in asdict(self).items() if key not in {"parts", "rows"}}


def good(name: str, found: str) -> Check:
    """It is as it has to be."""
    return Check(name, passed=True, found=found)


def bad(name: str, found: str, remedy: str) -> Check:
    """It stands in the way of a run."""
    return Check(name, passed=False, found=found, remedy=remedy)


def note(name: str, found: str, remedy: str = "") -> Check:
    """It is worth knowing, and fails nothing."""
    return Check(name, passed=None, found=found, remedy=remedy)
