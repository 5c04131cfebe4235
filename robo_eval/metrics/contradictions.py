"""What in the log and beside it cannot all be true: each is a finding, by which the audit fails."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from robo_eval.core.kinds import SYNTHETIC, EndReason, Side
from robo_eval.core.names import unknown_name
from robo_eval.core.units import DAY_NS
from robo_eval.log.evidence import ABOUT_POLICIES, PROBES, Checkpoint, Evidence
from robo_eval.log.spans import SLACK_NS, spans_ns
from robo_eval.metrics.finding import MOST_FINDINGS, Finding
from robo_eval.stats.proportions import clopper_pearson_interval

if TYPE_CHECKING:
    import pandas as pd

_SURE: Final = 0.999
"""Coverage of the intervals that checkpoints are held against: there are many of them."""
_ROUNDING: Final = 0.01


def contradictions(evidence: Evidence, table: pd.DataFrame) -> Iterator[Finding]:
    """Everything that one part of the evidence says and another denies.

    Args:
        evidence: What was noted beside the episodes.
        table: A table from `episodes_frame`.
    """
    physical = table[table["side"] != Side.SIM.value].sort_values("episode_id")
    yield from _names(evidence, table)
    yield from _stops(evidence, physical)
    yield from _shared_traces(physical)
    yield from _checkpoints(evidence, table)


def is_synthetic(rows: pd.DataFrame) -> bool:
    """Whether all physical rows say of themselves that they are made up."""
    physical = rows[rows["side"] != Side.SIM.value]
    return len(physical) > 0 and bool((physical["robot"] == SYNTHETIC).all())


def _names(evidence: Evidence, table: pd.DataFrame) -> Iterator[Finding]:
    """Notes on policies, families and probes that are written another way elsewhere."""
    policies, families = table["policy"].unique(), table["family"].unique()
    for kind in ABOUT_POLICIES:
        for note in getattr(evidence, kind) or ():
            where = f"{evidence.files.get(kind, kind)}: {note.place}"
            if note.policy is not None and note.policy not in policies:
                unknown = unknown_name("policy", note.policy, policies)
                yield Finding(where=f"{where}, column 'policy'", text=str(unknown))
            if kind == "experts" and note.family not in families:
                unknown = unknown_name("family", note.family, families)
                yield Finding(where=f"{where}, column 'family'", text=str(unknown))
            if kind == "probes" and note.probe not in PROBES and _is_like_one(note.probe):
                unknown = unknown_name("probe", note.probe, PROBES)
                yield Finding(where=f"{where}, column 'probe'", text=str(unknown))


def _is_like_one(probe: str) -> bool:
    """Whether a probe is one that gates read, in other letters; laboratories have own ones too."""
    given, *known = ("".join(filter(str.isalnum, one)).casefold() for one in (probe, *PROBES))
    return any(
        {*filter(str.isdigit, one)} == {*filter(str.isdigit, given)}
        and difflib.get_close_matches(given, [one], cutoff=0.95)
        for one in known
    )


def _stops(evidence: Evidence, physical: pd.DataFrame) -> Iterator[Finding]:
    """Protective stops that the record of incidents does not know."""
    if evidence.incidents is None:
        return
    stopped = physical[physical["end_reason"] == EndReason.SAFETY_STOP.value]
    stopped = stopped[~stopped["side"].isin(evidence.silent)]
    named = {note.episode_id for note in evidence.incidents}
    times = np.sort([note.time_ns for note in evidence.incidents if note.time_ns is not None])
    starts, ends = spans_ns(stopped)
    ends = np.fmax(starts, ends)  # where no length is known, the start
    # Where no start is known both places are the last, and nothing lies between them.
    first = np.searchsorted(times, starts - SLACK_NS)
    is_timed = first < np.searchsorted(times, ends + SLACK_NS, side="right")
    names = stopped["episode_id"].tolist()
    unknown = [
        name for name, timed in zip(names, is_timed, strict=True) if name not in named and not timed
    ]
    for name in unknown[:MOST_FINDINGS]:
        yield Finding(
            where=f"episodes: {name}",
            text="ended by safety_stop, and the record of incidents has nothing of it; a protective"
            f" stop is a near miss ({len(unknown)} such episodes)",
        )


def _shared_traces(physical: pd.DataFrame) -> Iterator[Finding]:
    """Recordings that several episodes claim."""
    if is_synthetic(physical):
        return
    for column in ("trace_uri", "trace_sha256"):
        rows = physical[physical[column].notna()]
        again = rows[rows.duplicated(column, keep="first")]
        if not len(again):
            continue
        first = rows.drop_duplicates(column).set_index(column)["episode_id"]
        told = again.head(MOST_FINDINGS)
        for name, value in zip(told["episode_id"], told[column], strict=True):
            yield Finding(
                where=f"episodes: {name}",
                text=f"column {column!r} is that of {first[value]}; an episode has a recording of"
                f" its own ({len(again)} such rows)",
            )
        return  # two names of one file say the same again


def _checkpoints(evidence: Evidence, table: pd.DataFrame) -> Iterator[Finding]:
    """Checkpoints that say something else of a family than its episodes of those days."""
    points = evidence.checkpoints or ()
    if not points:
        return
    scored = table[table["quality"].notna() & table["start_ns"].notna()]
    file = Path(evidence.files.get("checkpoints", "checkpoints.csv")).name
    keys = sorted({(point.family, point.side) for point in points})
    for family, side in keys:
        own = [one for one in points if (one.family, one.side) == (family, side)]
        for policy in sorted({one.policy for one in own if one.policy} or {""}):
            rows = scored[(scored["family"] == family) & (scored["side"] == side)]
            rows = rows[rows["policy"] == policy] if policy else rows
            noted = [one for one in own if one.policy in (None, policy or None)]
            yield from _against_log(noted, rows, file)


def _against_log(points: Sequence[Checkpoint], rows: pd.DataFrame, file: str) -> Iterator[Finding]:
    """All checkpoints, and the earlier and the later half of them, beside the same days."""
    points = sorted(points, key=lambda one: one.time_ns)
    half = len(points) // 2
    days = rows["start_ns"].astype("int64").to_numpy() // DAY_NS
    quality = rows["quality"].to_numpy(dtype=np.float64)
    for own in (points, points[:half], points[half:]):
        if not own:
            continue
        first, last = (one.time_ns // DAY_NS for one in (own[0], own[-1]))
        seen = quality[(days >= first) & (days <= last)]
        if not len(seen):
            continue
        said = math.fsum(one.capability for one in own) / len(own)
        total = float(seen.sum())
        low = clopper_pearson_interval(math.floor(total), len(seen), level=_SURE)[0]
        high = clopper_pearson_interval(math.ceil(total), len(seen), level=_SURE)[1]
        if low - _ROUNDING <= said <= high + _ROUNDING:
            continue
        yield Finding(
            where=f"{file}: lines {own[0].line} to {own[-1].line}",
            text=f"capability in {own[0].family} is {said:.2f} on average, and {len(seen)} episodes"
            f" of these days have a mean quality of {total / len(seen):.2f}; both cannot be so",
        )
        return
