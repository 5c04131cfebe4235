"""What a level rests on, told in the line that says the level, and which tasks are one task."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from datetime import datetime
from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np

from robo_eval.core.canonical import canonical_json
from robo_eval.core.errors import TrialDirectoryError
from robo_eval.core.kinds import UNPLAYED, Side, strongest_side
from robo_eval.core.names import listing
from robo_eval.core.units import DAY_NS
from robo_eval.core.wording import counted, shown
from robo_eval.log.spans import spans_ns
from robo_eval.metrics.attribution import exposures_of
from robo_eval.metrics.contradictions import is_synthetic

if TYPE_CHECKING:
    import pandas as pd

    from robo_eval.core.plan import TrialPlan
    from robo_eval.gates.recordings import Borne
    from robo_eval.log.directory import TrialDirectory
    from robo_eval.log.manifest import Manifest

_HOUR_NS: Final = 3.6e12
_EPISODE: Final = ("level", "difficulty", "profile", "policy", "seed")
_OF_NOTHING: Final = hashlib.sha256().hexdigest()
_COURSES: Final = 3
"""So many different courses of episodes are no coincidence."""


def grounds_of(trial: TrialDirectory, own: pd.DataFrame, borne: Borne) -> tuple[str, ...]:
    """What a reader of a level has to know of its evidence, each in a few words.

    Args:
        trial: The trial directory.
        own: The episodes of a policy, of `metrics.frame.episodes_frame`.
        borne: What its recordings bear out.
    """
    physical = own[own["side"] != Side.SIM.value]
    if is_synthetic(own):
        return ()
    judged = own[own["side"] == strongest_side(set(own["side"])).value]
    try:
        manifest = trial.manifest
    except TrialDirectoryError:
        manifest = None
    return (
        *_word(physical, borne),
        *_robots(physical),
        *_tasks(judged),
        *_thresholds(trial.plan),
        *_dates(trial.plan, manifest, own),
        *_digests(own),
        *_notes(trial, manifest),
    )


def _word(physical: pd.DataFrame, borne: Borne) -> Iterator[str]:
    played = int((~physical["end_reason"].isin(UNPLAYED)).sum())
    if not played:
        return
    if borne.count == played:
        yield f"with recordings of all {played} episodes"
        return
    some = f", with recordings of {borne.count} of {played} episodes" if borne.count else ""
    yield f"by the laboratory's own rows{some}"


def _robots(physical: pd.DataFrame) -> Iterator[str]:
    """Hours that no single robot can have worked in the time the clock shows."""
    starts, ends = spans_ns(physical)
    known = ~np.isnan(ends)
    if not known.any():
        return
    hours = math.fsum(one.hours for one in exposures_of(physical).values())
    clock = (ends[known].max() - starts[known].min()) / _HOUR_NS
    if hours > clock * 1.01:
        robots = counted(int(physical["robot"].nunique()), "robot name")
        yield f"{shown(hours)} h under {robots} in {shown(clock)} h of the clock"


def _tasks(judged: pd.DataFrame) -> Iterator[str]:
    families, tasks = judged["family"].nunique(), judged["task"].nunique()
    if families > tasks:
        yield f"{families} task families of {counted(tasks, 'environment')}"


def _thresholds(plan: TrialPlan) -> Iterator[str]:
    theirs = None if plan.imported is None else plan.imported.column_map.get("success_quality")
    least = min((task.success_quality for task in plan.tasks if not task.success), default=1.0)
    least = least if theirs is None else min(least, float(theirs))
    if least < 1.0:
        yield f"success from a quality of {least:g} on"
    # Whoever chooses the range chooses what quality any return makes.
    ranges = sorted({task.quality_range for task in plan.tasks} - {(0.0, 1.0)})
    if ranges:
        told = listing([f"{low:g} to {high:g}" for low, high in ranges])
        yield f"quality 0 to 1 from returns of {told}"


def _dates(plan: TrialPlan, manifest: Manifest | None, own: pd.DataFrame) -> Iterator[str]:
    """Episodes of a time at which the trial was finished, or had not begun."""
    starts = own["start_ns"].dropna().astype("int64")
    if manifest is None or not len(starts):
        return
    written = _ns(manifest.updated_utc)
    if late := int((starts > written + DAY_NS).sum()):
        yield f"{counted(late, 'episode')} dated after the manifest"
    if plan.imported is None:
        early = int((starts < _ns(manifest.created_utc) - DAY_NS).sum())
        if early:
            yield f"{counted(early, 'episode')} dated before the trial was made"


def _digests(own: pd.DataFrame) -> Iterator[str]:
    known = own["policy_digest"].dropna().unique()
    if any(len(set(digest)) == 1 or digest == _OF_NOTHING for digest in known):
        yield "policy_digest is none of anything"


def _notes(trial: TrialDirectory, manifest: Manifest | None) -> Iterator[str]:
    """Tables beside the rows that no run left as they are; an incident log says who wrote it."""
    counted_by_run = {} if manifest is None or trial.plan.imported else manifest.beside
    names = [
        name
        for name, sha256 in trial.evidence_files().items()
        if sha256 and sha256 != counted_by_run.get(name)
    ]
    if names:
        yield f"notes of people in {listing(names)}"


def _ns(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * 10**9


def alike_families(table: pd.DataFrame) -> tuple[str, str] | None:
    """Two task families that are one task by all that simulation showed of them.

    They are if they share their environment and begin and end alike in every episode of the same
    policy, condition and seed. A plan cannot name one task twice without a difference.

    Args:
        table: Episodes of `metrics.frame.episodes_frame`.
    """
    simulated = table[(table["side"] == Side.SIM.value) & table["quality"].notna()]
    for _, rows in simulated.groupby("task", sort=True):
        went = {str(name): _went(own) for name, own in rows.groupby("family", sort=True)}
        for name, other in combinations(went, 2):
            few, many = sorted((went[name], went[other]), key=len)
            if len(set(few.values())) >= _COURSES and few.items() <= many.items():
                return name, other
    return None


def _went(own: pd.DataFrame) -> dict[tuple[str, ...], bytes]:
    """How the episodes of a family began and ended, by condition, policy and seed."""
    found = {}
    for row in own.to_dict("records"):
        course = [row["initial_state"], str(row["ticks"]), str(row["episode_return"])]
        found[tuple(str(row[name]) for name in _EPISODE)] = canonical_json(course)
    return found
