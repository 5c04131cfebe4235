"""How numbers and texts of an assessment are written in a report."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from robo_eval.core.estimate import Estimate
from robo_eval.page.words import no_interval, number, percent

COUNTED: Final = ("counted", "declared")
"""Methods of numbers that have no doubt to show."""
_GAP: Final = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


class Shown(NamedTuple):
    """A number as it stands in a table.

    Attributes:
        value: The number; empty where there is none.
        note: Its interval, or why there is none.
        rests_on: How much it rests on.
    """

    value: str
    note: str = ""
    rests_on: str = ""


def amount(value: float, unit: str = "") -> str:
    """A number of a gate: measured shares with three decimals, all else with three digits.

    Example:
        >>> amount(0.5833, "ratio"), amount(0.5), amount(0.0074365, "h")
        ('0.583', '0.5', '0.00744')
    """
    return number(value, digits=3 if unit == "ratio" else None)


def ends(found: Estimate, unit: str = "") -> str:
    """The interval; empty where there is none."""
    if found.low is None or found.high is None:
        return ""
    return f"{amount(found.low, unit)} to {amount(found.high, unit)}"


def shown(found: Estimate) -> Shown:
    """An estimate as it stands in a table: number and interval, or why one is missing."""
    if found.value is None:
        return Shown("", str(found.reason))
    note = "" if found.method in COUNTED else ends(found, found.unit) or no_interval(found)
    return Shown(amount(found.value, found.unit), note)


def in_words(found: Estimate) -> str:
    r"""Number and interval as they stand in a sentence.

    Example:
        >>> in_words(Estimate(value=0.5, low=0.25, high=0.75, n=9, method="x", unit="ratio"))
        '0.500 (95\xa0% 0.250 to 0.750)'
    """
    if found.value is None:
        return f"not known: {found.reason}"
    interval = ends(found, found.unit)
    why = f"{percent(found.level)} {interval}" if interval else no_interval(found)
    return f"{amount(found.value, found.unit)} ({why})"


def written(text: str, places: Mapping[str, str]) -> str:
    """A text of the assessment as the page writes it: its signs and gaps, and without folders."""
    for place, name in places.items():
        text = text.replace(place, name)
    text = text.replace(">=", "≥").replace("<=", "≤")
    return _GAP.sub("\N{NO-BREAK SPACE}", text)
