"""Something in the evidence that does not fit the episodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MOST_FINDINGS: Final = 20
"""Findings of one kind that are listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something in the evidence that does not fit the episodes; the audit fails by it.

    Attributes:
        where: File and line, or table and row.
        text: What does not fit, and what would mend it.
    """

    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"
