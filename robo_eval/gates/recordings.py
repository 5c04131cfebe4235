"""Whether the episodes of a body were logged by it, or are only told."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from robo_eval.core.errors import InputError, TrialDirectoryError
from robo_eval.core.kinds import UNPLAYED, Side
from robo_eval.gates.audits import Audit, audit
from robo_eval.log.recorded import read_recorded
from robo_eval.metrics.contradictions import is_synthetic

if TYPE_CHECKING:
    import pandas as pd

    from robo_eval.log.directory import TrialDirectory

_TITLE: Final = "the log of the robot itself, or of its twin"
_MEASURED_ID: Final = "autonomy_measured"
_MEASURED: Final = "uninterrupted_actions"
_TOLD: Final = {
    "constants": "the same number for every episode, given in the column map",
    "columns": "a column of the imported table, and no count of a run",
}
"""Parts of a column map that tell it, and what that is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Borne:
    """What the recordings of physical episodes bear out.

    Attributes:
        count: Episodes whose row says no more than their recording.
        problem: What others deny, or lack; empty if none does.
    """

    count: int
    problem: str


def borne_out(trial: TrialDirectory, own: pd.DataFrame) -> Borne:
    """Hold the physical episodes of a policy against their recordings.

    Args:
        trial: The trial directory.
        own: Its episodes, of `metrics.frame.episodes_frame`.
    """
    played = _played(own)
    if is_synthetic(played):
        return Borne(count=0, problem="")
    denied = []
    rows = [row for row in played.to_dict("records") if isinstance(row["trace_uri"], str)]
    for row in rows:
        try:
            recorded = read_recorded(trial.path / row["trace_uri"])
        except (InputError, TrialDirectoryError) as err:
            denied.append(f"{row['episode_id']}: {str(err).removeprefix(f'{trial.path}{os.sep}')}")
            continue
        if (what := recorded.doubt(row)) is not None:
            denied.append(f"{row['episode_id']}: {what}")
    problem = ""
    if denied:
        problem = f"{len(denied)} recordings do not bear out their rows; the first, of {denied[0]}"
    return Borne(count=len(rows) - len(denied), problem=problem)


def own_log(trial: TrialDirectory, own: pd.DataFrame, borne: Borne) -> Audit:
    """Whether rows were written by the run, or have recordings that bear them out.

    Args:
        trial: The trial directory.
        own: The episodes of a policy, of `metrics.frame.episodes_frame`.
        borne: What their recordings bear out.
    """
    played = _played(own)
    if not len(played):
        reason = "no episode on a robot or its twin"
        return Audit(id="own_log", title=_TITLE, status="missing", reason=reason)
    if is_synthetic(played):
        return audit("own_log", _TITLE, passes=True, good="made up, and says so", bad="")
    problem = _untimed(played) or _bare(trial, played) or borne.problem
    rows = f"{len(played)} episodes"
    good = f"{rows}, each with its recording" if trial.plan.imported else f"{rows} of this run"
    return audit("own_log", _TITLE, passes=not problem, good=good, bad=problem)


def autonomy_measured(trial: TrialDirectory, own: pd.DataFrame) -> Audit:
    """Whether uninterrupted actions were counted while the robot ran."""
    title, imported = "autonomy measured while running", trial.plan.imported
    if own[_MEASURED].isna().all():
        reason = f"no run counted the {_MEASURED} of an episode"
        return Audit(id=_MEASURED_ID, title=title, status="missing", reason=reason)
    mapped = {} if imported is None else imported.column_map
    told = next((text for part, text in _TOLD.items() if _MEASURED in (mapped.get(part) or ())), "")
    return audit(
        _MEASURED_ID, title, passes=not told, bad=told,
        good="in the rows of the run" if imported is None else "read from the recordings",
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
    uris = played["trace_uri"]
    missing = sum(not (isinstance(uri, str) and (trial.path / uri).exists()) for uri in uris)
    return f"{missing} of {len(played)} imported episodes have no recording" if missing else ""


def _played(own: pd.DataFrame) -> pd.DataFrame:
    return own[(own["side"] != Side.SIM.value) & ~own["end_reason"].isin(UNPLAYED)]
