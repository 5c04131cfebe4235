"""In what a trial departed from its plan, in the words of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from robo_eval.metrics.deviation import Deviation
from robo_eval.page.words import shortened, spaced, thousands

_MOST_REASONS: Final = 3
_MOST_EPISODES: Final = 3
_LONGEST: Final = 90
"""Characters of a reason that are shown."""
_TOLD_ABOVE: Final = ("void", "fault")
"""Kinds whose reasons stand elsewhere on the page, policy by policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviationLine:
    """One deviation, as it is shown.

    Attributes:
        what: What is counted.
        side: Where, if the trial has several sides.
        count: How many.
        why: Reasons and what else there is to say.
        which: The first few episodes.
        more: How many more there are; empty if none.
        when: When the first started, and up to when the last did; empty if not known.
    """

    what: str
    side: str
    count: str
    why: str
    which: Sequence[str]
    more: str
    when: Sequence[str]


def deviation_lines(found: Sequence[Deviation], *, has_sides: bool) -> list[DeviationLine]:
    """Deviations as they are shown.

    Args:
        found: What `conduct.deviations` found.
        has_sides: Whether the trial has several sides.
    """
    return [
        DeviationLine(
            what=it.what,
            side=it.side if has_sides else "",
            count=thousands(it.count),
            why=_why(it),
            which=it.episodes[:_MOST_EPISODES],
            more=f"and {thousands(rest)} more" if (rest := _rest(it)) > 0 else "",
            when=_when(it),
        )
        for it in found
    ]


def _rest(it: Deviation) -> int:
    """Episodes that are not named; a change of robot or software is not an episode each."""
    is_change = it.kind in ("software", "robot", "operator", "calibration", "policy", "pauses")
    if is_change or not it.episodes:
        return 0
    return it.count - min(len(it.episodes), _MOST_EPISODES)


def _why(it: Deviation) -> str:
    reasons = {} if it.kind in _TOLD_ABOVE else _first_reasons(it.reasons)
    # One reason for all needs no count.
    whole = len(reasons) == 1 and len(it.reasons) == 1
    parts = [text if whole else f"{thousands(n)} {text}" for text, n in reasons.items()]
    is_cut = len(it.reasons) > len(reasons)
    if parts and is_cut:
        parts.append("other reasons")
    return "; ".join([*parts, *([it.text] if it.text else [])])


def _first_reasons(reasons: Mapping[str, int]) -> dict[str, int]:
    first = list(reasons.items())[:_MOST_REASONS]
    return {shortened(spaced(text), _LONGEST): n for text, n in first}


def _when(it: Deviation) -> list[str]:
    if it.first_ns is None or it.last_ns is None:
        return []
    first, last = _instant(it.first_ns), _instant(it.last_ns)
    begin, end = f"{first:%Y-%m-%d %H:%M}", f"{last:%Y-%m-%d %H:%M}"
    if begin == end:
        return [begin]
    return [begin, f"to {last:%H:%M}" if first.date() == last.date() else f"to {end}"]


def _instant(stamp_ns: int) -> datetime:
    return datetime.fromtimestamp(stamp_ns / 1e9, tz=UTC)
