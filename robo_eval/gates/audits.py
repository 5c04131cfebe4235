"""Checks that a level needs besides its gates: is the evidence whole, and was it fairly got?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from robo_eval.core.plain import plain
from robo_eval.core.units import DAY_NS

if TYPE_CHECKING:
    import pandas as pd

    from robo_eval.gates.profile import Window
    from robo_eval.log.evidence import Evidence

Status = Literal["pass", "fail", "missing", "undecided"]
"""How a check or a gate went; `undecided` is a gate that more hours may still open."""
_IN_WINDOW: Final = "the evidence is of the window of the episodes"
_DATED: Final = ("incidents", "checkpoints", "revisions", "declarations", "pauses")


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


# Whether episodes were logged by the body itself --------------------------------------------------


def window_audit(own: pd.DataFrame, evidence: Evidence, settings: Window, policy: str) -> Audit:
    """The audit of the dates of one policy's evidence.

    The window is the time from the first of its episodes to the end of the last, on any side.

    Args:
        own: Its episodes, of `metrics.frame.episodes_frame`.
        evidence: What was noted beside them.
        settings: How far outside the window a note may be dated.
        policy: Its name; a note that names none is about every policy.
    """
    dated = [
        (kind, note)
        for kind in _DATED
        for note in getattr(evidence, kind) or ()
        if getattr(note, "policy", None) in (None, policy) and note.time_ns is not None
    ]
    known = own[own["start_ns"].notna()]
    if not dated:
        return Audit(id="window", title=_IN_WINDOW, status="pass", reason="no note has a date")
    if not len(known):
        reason = "no episode has a time, so nothing shows that the notes belong to them"
        return Audit(id="window", title=_IN_WINDOW, status="missing", reason=reason)
    starts = known["start_ns"].astype("int64")
    seconds = known["duration_s"].fillna(0.0).astype(float)
    first, last = int(starts.min()), int((starts + (seconds * 1e9).astype("int64")).max())
    outside = [
        (kind, note.place, note.time_ns, days)
        for kind, note in dated
        if (days := _days_outside(note.time_ns, first, last)) > _grace(kind, settings)
    ]
    if not outside:
        reason = f"{len(dated)} dated notes, {_day(first)} to {_day(last)}"
        return Audit(id="window", title=_IN_WINDOW, status="pass", reason=reason)
    kind, place, time_ns, days = outside[0]
    name = Path(evidence.files.get(kind, f"{kind}.csv")).name
    more = f", and {len(outside) - 1} more" if len(outside) > 1 else ""
    side = "before" if time_ns < first else "after"
    reason = (
        f"{name}: {place} is of {_day(time_ns)}, {days:.1f} days {side} the episodes,"
        f" {_day(first)} to {_day(last)}{more}; play episodes on those days, or leave it out"
    )
    return Audit(id="window", title=_IN_WINDOW, status="fail", reason=reason)


def _days_outside(time_ns: int, first: int, last: int) -> float:
    return max(first - time_ns, time_ns - last, 0) / DAY_NS


def _grace(kind: str, settings: Window) -> float:
    return settings.declared_days if kind == "declarations" else settings.grace_days


def _day(time_ns: int) -> str:
    return datetime.fromtimestamp(time_ns // 10**9, tz=UTC).date().isoformat()
