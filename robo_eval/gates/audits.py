"""Checks that a level needs besides its gates: is the evidence whole, and was it fairly got?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.plain import plain
from robo_eval.core.units import DAY_NS
from robo_eval.log.trace_folder import span_s
from robo_eval.metrics.contradictions import is_synthetic

if TYPE_CHECKING:
    import pandas as pd

    from robo_eval.gates.profile import Window
    from robo_eval.log.directory import TrialDirectory
    from robo_eval.log.evidence import Evidence

Status = Literal["pass", "fail", "missing", "undecided"]
"""How a check or a gate went; `undecided` is a gate that more hours may still open."""
_OWN_LOG: Final = "the log of the robot itself, or of its twin"
_SLACK_S: Final = 1.0
_SHARE: Final = 0.9
"""A recording may begin a little late and end a little early."""
UNPLAYED: Final = (EndReason.VOID.value, EndReason.LOST.value, EndReason.FAULT.value)
"""Ends of attempts of which there may be no recording."""
_MEASURED: Final = "uninterrupted_actions"
_TOLD: Final = {
    "constants": "the same number for every episode, given in the column map",
    "columns": "a column of the imported table, and no count of a run",
}
"""Parts of a column map that tell it, and what that is."""
_IN_WINDOW: Final = "the evidence is of the window of the episodes"
_DATED: Final = ("incidents", "checkpoints", "revisions", "declarations")


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


def own_log(trial: TrialDirectory, own: pd.DataFrame) -> Audit:
    """Whether rows were written by the run, or have recordings that are long enough.

    Args:
        trial: The trial directory.
        own: The episodes of a policy, of `metrics.frame.episodes_frame`.
    """
    played = own[(own["side"] != Side.SIM.value) & ~own["end_reason"].isin(UNPLAYED)]
    if not len(played):
        reason = "no episode on a robot or its twin"
        return Audit(id="own_log", title=_OWN_LOG, status="missing", reason=reason)
    if is_synthetic(played):
        return audit("own_log", _OWN_LOG, passes=True, good="made up, and says so", bad="")
    problem = _untimed(played) or _bare(trial, played) or _short(trial, played)
    rows = f"{len(played)} episodes"
    good = f"{rows}, each with its recording" if trial.plan.imported else f"{rows} of this run"
    return audit("own_log", _OWN_LOG, passes=not problem, good=good, bad=problem)


def autonomy_measured(trial: TrialDirectory) -> Audit:
    """Whether uninterrupted actions were counted while the robot ran."""
    imported = trial.plan.imported
    mapped = {} if imported is None else imported.column_map
    told = next((text for part, text in _TOLD.items() if _MEASURED in (mapped.get(part) or ())), "")
    return audit(
        "autonomy_measured", "autonomy measured while running", passes=not told,
        good="counted by the run" if imported is None else "read from the recordings", bad=told,
    )  # fmt: skip


def _untimed(played: pd.DataFrame) -> str:
    without = played.loc[played["start_ns"].isna(), "episode_id"].tolist()
    if not without:
        return ""
    return (
        f"{len(without)} of {len(played)} episodes in episodes.db have no start time, by which an"
        f" episode is told from a copy; the first is {without[0]}"
    )


def _bare(trial: TrialDirectory, played: pd.DataFrame) -> str:
    """Of what others logged there has to be a recording; our own rows are those of a run."""
    if trial.plan.imported is None:
        return ""
    there = [uri is not None and (trial.path / str(uri)).exists() for uri in _uris(played)]
    missing = there.count(False)
    return f"{missing} of {len(played)} imported episodes have no recording" if missing else ""


def _short(trial: TrialDirectory, played: pd.DataFrame) -> str:
    """Recordings that end long before their episode does."""
    short = []
    for name, uri, seconds in zip(
        played["episode_id"], _uris(played), played["duration_s"].tolist(), strict=True
    ):
        span = None if uri is None else span_s(trial.path / str(uri))
        if span is not None and seconds == seconds and span < _SHARE * seconds - _SLACK_S:
            short.append(f"{name} ({span:.1f} of {seconds:.1f} s)")
    if not short:
        return ""
    return f"{len(short)} recordings are shorter than their episodes, the first of {short[0]}"


def _uris(played: pd.DataFrame) -> list[object]:
    return played["trace_uri"].astype(object).where(played["trace_uri"].notna(), None).tolist()


# Whether notes are of the time of the episodes ----------------------------------------------------


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
        if note.policy in (None, policy) and note.time_ns is not None
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
