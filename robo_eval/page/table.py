"""What a table or a forest plot shows: rows of numbers, each with what it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from robo_eval.core.estimate import Estimate
from robo_eval.core.number import Number, Numbers
from robo_eval.core.units import WITHOUT_INTERVAL, format_of, text_of
from robo_eval.page.words import spaced

_AGREEMENT: Final = ("S2R", "S2S")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One number with its interval, as a table or a forest shows it.

    Attributes:
        name: What it is called: `AR`, `AR_sim`, `S2R`, `MTBF`, ...
        family: The task family or case it is of; empty for all of them.
        estimate: The number.
        rests_on: Episodes, pairs, hours or events behind it, in words.
        note: What to mind besides the reason that the estimate gives; may be empty.
        symbol: Plotly's name of its mark in a forest.
        is_hollow: Whether that mark is hollow.
    """

    name: str
    family: str = ""
    estimate: Estimate
    rests_on: str = ""
    note: str = ""
    symbol: str = "circle"
    is_hollow: bool = False

    @classmethod
    def of(cls, number: Number) -> Self:
        """A number as a row: filled is a body, hollow simulation, a diamond their agreement."""
        found = number.estimate
        return cls(
            name=number.title,
            family=", ".join(spaced(part) for part in (number.family, number.case) if part),
            estimate=found,
            rests_on=number.rests_on,
            note=number.note,
            symbol="diamond" if number.name in _AGREEMENT else "circle",
            is_hollow=number.is_of_simulation,
        )

    @property
    def label(self) -> str:
        """Name and family."""
        return f"{self.name}, {self.family}" if self.family else self.name

    @property
    def said(self) -> str:
        """What to mind, and why there is no number or interval."""
        return "; ".join(part for part in (self.note, self.estimate.reason) if part)

    @property
    def minded(self) -> str:
        """What to mind; why there is no number, or no interval, stands in its place."""
        found = self.estimate
        is_there = found.low is not None or found.method in WITHOUT_INTERVAL
        return self.said if is_there else self.note

    @property
    def text(self) -> str:
        """What stands in the place of value and interval; empty for these."""
        found = self.estimate
        is_bound = found.value is None and found.low is not None
        return text_of(found) if is_bound or found.method in WITHOUT_INTERVAL else ""

    @property
    def unit(self) -> str:
        """Written behind the value."""
        return format_of(self.estimate.unit).after

    @property
    def digits(self) -> int | None:
        """Decimals; None for three significant digits."""
        return format_of(self.estimate.unit).digits

    @property
    def is_signed(self) -> bool:
        """Whether it is a difference."""
        return format_of(self.estimate.unit).signed


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


def rows_of(numbers: Iterable[Number], *, every: bool = False) -> list[Row]:
    """Numbers as rows of a table.

    Args:
        numbers: In the order shown.
        every: Whether details are shown, too.
    """
    return [Row.of(one) for one in numbers if every or not one.detail]


def groups_of(numbers: Numbers, *, every: bool = False) -> list[Group]:
    """Numbers by what they are about."""
    parts = [
        Group(title=title, rows=rows_of(own, every=every))
        for title, own in numbers.by("group").items()
    ]
    return [part for part in parts if part.rows]
