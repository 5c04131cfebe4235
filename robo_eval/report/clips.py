"""Which episodes of a trial are worth drawing."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import pandas as pd

from robo_eval.core.errors import RoboEvalError
from robo_eval.metrics.performance import Cell
from robo_eval.report.animation import Clip, pack
from robo_eval.report.words import count

MAX_CLIPS: Final = 8
MAX_PACKED: Final = 900_000
"""Characters all clips of a page may take together."""

_Row: TypeAlias = dict[str, Any]
_Condition: TypeAlias = tuple[Any, Any, int | None, Any]

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


def choose(
    frame: pd.DataFrame, cells: Sequence[Cell], trial: Path, *, limit: int = MAX_CLIPS
) -> list[Chosen]:
    """Pairs of a survived and a failed episode from the conditions that tell policies apart.

    A condition in which some policies survive and others fail says more than one all master;
    the larger the gap between the best and the worst policy, the earlier it comes. Within a
    condition both episodes have the same seed where such traces exist.

    Args:
        frame: Episodes, one row per attempt.
        cells: Performance of each policy in each condition.
        trial: The trial directory, which trace paths are relative to.
        limit: Most episodes to choose.
    """
    shown = frame[frame["success"].notna() & frame["trace_uri"].notna()]
    by_condition: dict[_Condition, list[_Row]] = {}
    for record in shown.to_dict(orient="records"):
        row = {str(name): None if _is_missing(value) else value for name, value in record.items()}
        by_condition.setdefault(_condition(row), []).append(row)
    gaps = _gaps(cells)
    ordered = sorted(by_condition.items(), key=lambda item: -gaps.get(item[0], 0.0))
    pairs = [pair for _, rows in ordered if (pair := _pair(rows))]
    chosen = [row for pair in pairs for row in pair] or [rows[0] for _, rows in ordered]
    return [_chosen(row, trial) for row in chosen[:limit]]


def _is_missing(value: object) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))


def _condition(row: _Row) -> _Condition:
    level = row["level"]
    return row["task"], row["profile"], None if level is None else int(level), row["difficulty"]


def _gaps(cells: Sequence[Cell]) -> dict[_Condition, float]:
    values: dict[_Condition, list[float]] = {}
    for cell in cells:
        if cell.performance.value is not None:
            key = (cell.task, cell.profile, cell.level, cell.difficulty)
            values.setdefault(key, []).append(cell.performance.value)
    return {key: max(found) - min(found) for key, found in values.items()}


def _pair(rows: list[_Row]) -> list[_Row]:
    """A survived and a failed episode, of one seed if possible; empty without both."""
    survived = [row for row in rows if row["success"]]
    failed = [row for row in rows if not row["success"]]
    if not survived or not failed:
        return []
    seeds = {row["seed"] for row in failed}
    first = next((row for row in survived if row["seed"] in seeds), survived[0])
    same = [row for row in failed if row["seed"] == first["seed"]] or failed
    # Of the failures the longest: a fall after two ticks shows little.
    return [first, max(same, key=lambda row: int(row["ticks"]))]


def _chosen(row: _Row, trial: Path) -> Chosen:
    seconds = f"{row['duration_s']:.2f} s"
    end = str(row["end_reason"]).replace("_", " ")
    ending = f"the full {seconds}" if row["success"] else f"{end} at {seconds}"
    seed = f", seed {int(row['seed'])}" if row["seed"] is not None else ""
    return Chosen(
        episode_id=str(row["episode_id"]),
        trace=trial / str(row["trace_uri"]),
        task=str(row["task"]),
        label=f"{row['policy']}, {_place(row)}: {ending}",
        caption=f"{row['policy']} at {_place(row)}{seed}: {ending}"
        f" ({count(int(row['ticks']), 'tick')}), performance {row['quality']:.2f}.",
        outcome=str(row["end_reason"]),
    )


def _place(row: _Row) -> str:
    if row["level"] is None:
        return str(row["task"])
    novelty = row["novelty"]
    name = novelty.get("name") if isinstance(novelty, Mapping) else None
    named = f" ({str(name).replace('_', ' ')})" if name and int(row["level"]) else ""
    difficulty = f", {row['difficulty']}" if row["difficulty"] and int(row["level"]) else ""
    return f"level {int(row['level'])}{named}{difficulty}"


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
