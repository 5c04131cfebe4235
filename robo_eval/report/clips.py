"""Which episodes of a trial are worth drawing."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd

from robo_eval.core.errors import RoboEvalError
from robo_eval.report.animation import Clip, pack
from robo_eval.report.words import count

MAX_CLIPS: Final = 8
MAX_PACKED: Final = 900_000
"""Characters all clips of a page may take together."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """One episode to draw: its row, and what to say about it."""

    episode_id: str
    trace: Path
    task: str
    label: str
    caption: str
    outcome: str


def choose(frame: pd.DataFrame, trial: Path, *, limit: int = MAX_CLIPS) -> list[Chosen]:
    """Pairs of a survived and a failed episode from the conditions that tell policies apart.

    A condition in which some policies survive and others fail says more than one all master;
    the larger the gap between the best and the worst policy, the earlier it comes. Within a
    condition both episodes have the same seed where such traces exist.

    Args:
        frame: Episodes, one row each.
        trial: The trial directory, which trace paths are relative to.
        limit: Most episodes to choose.
    """
    shown = frame[frame["success"].notna() & frame["trace_uri"].notna()]
    if shown.empty:
        return []
    scored = frame[frame["success"].notna()]
    keys = ["task", "level", "difficulty"]
    means = scored.groupby([*keys, "policy"], dropna=False)["quality"].mean()
    gaps = means.groupby(level=keys, dropna=False).agg(lambda values: values.max() - values.min())
    pairs = []
    for key, rows in shown.groupby(keys, dropna=False, sort=True):
        pair = _pair(rows)
        if pair:
            pairs.append((float(gaps.loc[key]), pair))
    pairs.sort(key=lambda item: -item[0])
    rows = [row for _, pair in pairs for row in pair] or [row for _, row in shown.iterrows()]
    return [_chosen(row, trial) for row in rows[:limit]]


def _pair(rows: pd.DataFrame) -> list[pd.Series[Any]]:
    """A survived and a failed episode, of one seed if possible; empty without both."""
    truth = rows["success"].astype(bool)
    survived, failed = rows[truth], rows[~truth]
    if survived.empty or failed.empty:
        return []
    seeds = survived["seed"].isin(failed["seed"])
    first = (survived[seeds] if seeds.any() else survived).iloc[0]
    same = failed[failed["seed"] == first["seed"]]
    # Of the failures the longest: a fall after two ticks shows little.
    worst = (failed if same.empty else same).sort_values("ticks", kind="stable").iloc[-1]
    return [first, worst]


def _chosen(row: pd.Series[Any], trial: Path) -> Chosen:
    survived = bool(row["success"])
    where = ""
    if pd.notna(row["level"]):
        where = f"level {int(row['level'])}"
        name = (row["novelty"] or {}).get("name") if isinstance(row["novelty"], dict) else None
        where += f" ({str(name).replace('_', ' ')})" if name else ""
        where += f", {row['difficulty']}" if row["difficulty"] else ""
    where = where or str(row["task"])
    seconds = f"{row['duration_s']:.2f} s"
    ending = "survived" if survived else f"{row['end_reason'].replace('_', ' ')} at {seconds}"
    seed = f", seed {int(row['seed'])}" if pd.notna(row["seed"]) else ""
    ticks = count(int(row["ticks"]), "tick")
    return Chosen(
        episode_id=str(row["episode_id"]),
        trace=trial / str(row["trace_uri"]),
        task=str(row["task"]),
        label=f"{row['policy']}, {where}: {ending}",
        caption=f"{row['policy']} at {where}{seed}: "
        + (f"the full {seconds}" if survived else f"{ending}")
        + f", {ticks}, performance {row['quality']:.2f}.",
        outcome=str(row["end_reason"]),
    )


def clips(chosen: Sequence[Chosen]) -> list[Clip]:
    """The chosen episodes packed for the page; a trace that cannot be read is left out."""
    from robo_eval.log.trace import read_trace

    packed: list[Clip] = []
    room = MAX_PACKED
    for item in chosen:
        try:
            trace = read_trace(item.trace)
        except (RoboEvalError, OSError) as err:
            _log.warning("%s is left out of the report: %s", item.episode_id, err)
            continue
        clip = pack(
            trace,
            key=item.episode_id,
            label=item.label,
            caption=item.caption,
            task=item.task,
            outcome=item.outcome,
        )
        if len(clip.packed) <= room:
            room -= len(clip.packed)
            packed.append(clip)
    return packed
