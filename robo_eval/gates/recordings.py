"""Whether the episodes of a body were logged by it, or are only told."""

from __future__ import annotations

import os
from itertools import chain
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
_MEASURED: Final = "uninterrupted_actions"
_TOLD: Final = {
    "constants": "the same number for every episode, given in the column map",
    "columns": "a column of the imported table, and no count of a run",
}
"""Parts of a column map that tell it, and what that is."""


def own_log(trial: TrialDirectory, own: pd.DataFrame) -> Audit:
    """Whether rows were written by the run, or have recordings that are long enough.

    Args:
        trial: The trial directory.
        own: The episodes of a policy, of `metrics.frame.episodes_frame`.
    """
    played = own[(own["side"] != Side.SIM.value) & ~own["end_reason"].isin(UNPLAYED)]
    if not len(played):
        reason = "no episode on a robot or its twin"
        return Audit(id="own_log", title=_TITLE, status="missing", reason=reason)
    if is_synthetic(played):
        return audit("own_log", _TITLE, passes=True, good="made up, and says so", bad="")
    problem = _untimed(played) or _bare(trial, played) or _denied(trial, played)
    rows = f"{len(played)} episodes"
    good = f"{rows}, each with its recording" if trial.plan.imported else f"{rows} of this run"
    return audit("own_log", _TITLE, passes=not problem, good=good, bad=problem)


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


def _denied(trial: TrialDirectory, played: pd.DataFrame) -> str:
    """Recordings that deny what the rows of their episodes say, or cannot be read."""
    denied = []
    for row, uri in zip(played.to_dict("records"), _uris(played), strict=True):
        if uri is None:
            continue
        try:
            recorded = read_recorded(trial.path / str(uri))
        except (InputError, TrialDirectoryError) as err:
            what: str | None = str(err).removeprefix(f"{trial.path}{os.sep}")
        else:
            told = chain(recorded.denies(row, is_physical=True), recorded.lacks(row))
            what = next(told, None)
        if what is not None:
            denied.append(f"{row['episode_id']}: {what}")
    if not denied:
        return ""
    return f"{len(denied)} recordings do not bear out their rows; the first, of {denied[0]}"


def _uris(played: pd.DataFrame) -> list[object]:
    return played["trace_uri"].astype(object).where(played["trace_uri"].notna(), None).tolist()
