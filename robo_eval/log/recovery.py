"""What can be saved of episodes that were being played when everything stopped."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np

from robo_eval.core.episode import Episode
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.schedule import PlannedEpisode, base_id_of, schedule
from robo_eval.log.bag_metadata import METADATA_FILE, POLICY_COMMAND, described
from robo_eval.log.bag_restore import BagBusyError, Restored, restore
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.files import explained
from robo_eval.log.joint_trace import read_joint_trace
from robo_eval.log.planned_row import row_for
from robo_eval.log.provenance import software
from robo_eval.log.store import EpisodeStore
from robo_eval.log.trace_folder import trace_digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """What `recover_trial` found and did.

    Attributes:
        bags: Bags that were cut short and are sound again, by path from the trial.
        rows: Ids of the episodes that got a row now, ended by `lost`.
        failed: What could not be read, in one line each.
    """

    bags: tuple[str, ...]
    rows: tuple[str, ...]
    failed: tuple[str, ...]


def recover_trial(trial: TrialDirectory, store: EpisodeStore) -> Recovered:
    """Make torn bags sound, and give episodes that have a bag and no row their row.

    Such an episode was under way when its conductor died: it is logged as `lost`, so that it is
    counted, and marked as recovered. Nothing is done twice.

    Args:
        trial: The trial directory, locked by the caller.
        store: Its rows.

    Raises:
        TrialDirectoryError: If something cannot be written.
    """
    logged = store.ids()
    bags, rows, failed = [], [], []
    for folder in sorted(path for path in trial.traces_dir.iterdir() if path.is_dir()):
        if folder.name.startswith("."):
            continue
        uri = folder.relative_to(trial.path).as_posix()
        if folder.name in logged:
            continue  # its row has the digest of the bag as it is
        try:
            found = restore(folder)
        except BagBusyError as err:
            failed.append(str(err))
            continue
        except InputError as err:
            aside = _set_aside(trial, folder)
            failed.append(f"{err}; it was moved to {aside}, and its attempt can be played again")
            continue
        if not found.was_complete:
            bags.append(uri)
        row = _lost_row(trial, uri, folder, found)
        if row is None:
            failed.append(f"{folder}: is of no episode of the plan; no row was made for it")
            continue
        store.append([row])
        rows.append(row.episode_id)
    return Recovered(bags=tuple(bags), rows=tuple(rows), failed=tuple(failed))


def _set_aside(trial: TrialDirectory, folder: Path) -> Path:
    """Move a bag away of which nothing can be read: its place is wanted for the next try.

    So ends a recorder that lost its power before the first piece was on the disk.
    """
    home = trial.path / "logs" / "unreadable"
    names = (f"{folder.name}{end}" for end in chain([""], (f"-{i}" for i in count(2))))
    with explained(home, "cannot be written"):
        home.mkdir(parents=True, exist_ok=True)
        aside = next(home / name for name in names if not (home / name).exists())
        folder.rename(aside)
    return aside


def _lost_row(trial: TrialDirectory, uri: str, folder: Path, found: Restored) -> Episode | None:
    start: dict[str, Any] = found.start or {}
    attempt = start.get("attempt", 1)
    if start.get("episode_id") != folder.name or not isinstance(attempt, int):
        return None
    planned = _planned(trial, base_id_of(folder.name, attempt))
    if planned is None or "policy_digest" not in start:
        return None
    began = start.get("start_ns")
    return row_for(
        _attempt(planned, attempt, start),
        trial.plan,
        trial.plan_digest,
        policy_digest=str(start["policy_digest"]),
        robot=start.get("robot"),
        start_ns=began if isinstance(began, int) else 0,
        **_played(folder, found),
        episode_return=None,
        quality=None,
        success=None,
        end_reason=EndReason.LOST,
        end_detail="the run was cut off; its bag was recovered",
        recovered=True,
        software=software(),
        trace_uri=uri,
        trace_sha256=trace_digest(folder),
    )


def _played(folder: Path, found: Restored) -> dict[str, float | None]:
    """Ticks and time of what a bag holds of the policy's requests; None where it does not say."""
    said = described(folder / METADATA_FILE)
    counts = said.counts if said else {}
    ticks: int | None = None
    seconds: float | None = None
    topic = next((name for name in counts if name.endswith(f"/{POLICY_COMMAND}")), "")
    if topic and not counts[topic] and found.was_complete:
        ticks, seconds = 0, 0.0
    elif topic and (ticks := counts[topic] or None):
        with suppress(InputError):
            at_ns = read_joint_trace(folder, topic).received_ns
            # As many periods as there are requests, of which nobody ended the last.
            if ticks > 1:
                seconds = float(np.ptp(at_ns)) / 1e9 * ticks / (ticks - 1)
    return {
        "ticks": ticks,
        "uninterrupted_actions": ticks,
        "duration_s": seconds,
        "exposure_s": seconds,
    }


def _planned(trial: TrialDirectory, base_id: str) -> PlannedEpisode | None:
    for side in trial.plan.sides:
        if side is Side.SIM:
            continue
        for planned in schedule(trial.plan, side):
            if planned.base_id == base_id:
                return planned
    return None


def _attempt(planned: PlannedEpisode, attempt: int, start: dict[str, Any]) -> PlannedEpisode:
    pair_id = start.get("pair_id")
    return replace(planned, attempt=attempt, pair_id=str(pair_id) if pair_id else None)
