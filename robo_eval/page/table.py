"""What a table or a forest plot shows: rows of numbers, each with what it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from robo_eval.core.estimate import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One number with its interval.

    Attributes:
        name: What it is called: `AR`, `AR_sim`, `S2R`, `MTBF`, ...
        family: The task family or case it is of; empty for all of them.
        estimate: The number.
        rests_on: Episodes, pairs, hours or events behind it, in words.
        note: What to mind; may be empty.
        stress: What stands before the note in bold; may be empty.
        text: What stands in the place of value and interval; empty for these.
        unit: Written behind the value.
        digits: Decimals; None for three significant digits.
        is_signed: Whether it is a difference.
        symbol: Plotly's name of its mark in a forest.
        is_hollow: Whether that mark is hollow.
    """

    name: str
    family: str = ""
    estimate: Estimate
    rests_on: str = ""
    note: str = ""
    stress: str = ""
    text: str = ""
    unit: str = ""
    digits: int | None = 2
    is_signed: bool = False
    symbol: str = "circle"
    is_hollow: bool = False

    @property
    def label(self) -> str:
        """Name and family."""
        return f"{self.name}, {self.family}" if self.family else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Rows that belong together: a part of a table, or a panel of a forest.

    Attributes:
        title: What they are about.
        rows: In the order shown.
    """

    title: str
    rows: Sequence[Row]

    @property
    def measured(self) -> list[Row]:
        """Those that have a value."""
        return [row for row in self.rows if row.estimate.value is not None]
