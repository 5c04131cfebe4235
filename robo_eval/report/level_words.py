"""How numbers and texts of an assessment are written in a report."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from robo_eval.core.estimate import Estimate
from robo_eval.page.words import no_interval, number, percent
from robo_eval.report.levels_model import Shown

COUNTED: Final = ("counted", "declared")
"""Methods of numbers that have no doubt to show."""
_GAP: Final = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


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


def shown(label: str, found: Estimate, *, places: Mapping[str, str] | None = None) -> Shown:
    """An estimate as it stands in a table: number and interval, or why one is missing.

    Args:
        label: What it is.
        found: The estimate.
        places: Names of files and folders, and what to call them.
    """
    if found.value is None:
        return Shown(label=label, value="", note=written(str(found.reason), places or {}))
    note = ends(found, found.unit) or no_interval(found)
    if found.method in COUNTED:
        note = ""
    return Shown(
        label=label, value=amount(found.value, found.unit), note=written(note, places or {})
    )


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


def sentence(text: str) -> str:
    """A text as a sentence of its own.

    Example:
        >>> sentence("no axis counts")
        'No axis counts.'
    """
    return f"{text[:1].upper()}{text[1:]}."
