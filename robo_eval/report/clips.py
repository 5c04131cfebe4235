"""Which episodes of a trial are worth drawing."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import pandas as pd

from robo_eval.core.canonical import file_digest
from robo_eval.core.errors import RoboEvalError
from robo_eval.core.task import task_of
from robo_eval.metrics.performance import Cell
from robo_eval.metrics.tasks import VARIANT, task_label
from robo_eval.page.words import count, spaced
from robo_eval.report.animation import Clip, pack

MAX_CLIPS: Final = 8
MAX_PACKED: Final = 900_000
"""Characters all clips of a page may take together."""

_Row: TypeAlias = dict[str, Any]
_Condition: TypeAlias = tuple[Any, Any, int | None, str, Any]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """One episode to draw: its row, and what to say about it."""

    episode_id: str
    trace: Path
    sha256: str | None
    task: str
    label: str
    caption: str
    outcome: str


def choose(
    frame: pd.DataFrame, cells: Sequence[Cell], trial: Path, *, limit: int = MAX_CLIPS
) -> list[Chosen]:
    """Pairs of a failed and a survived episode from the conditions that divide the policies most.

    A condition in which half of the episodes fail says more than one that all master, and a late
    fall more than an early one; each level comes once before any comes twice. Within a condition
    both episodes have the same seed where such traces exist.

    Args:
        frame: Episodes, one row per attempt.
        cells: What each policy did in each condition.
        trial: The trial directory, which trace paths are relative to.
        limit: Most episodes to choose.
    """
    # A trace of ours is one file; the folder that an imported bag is cannot be drawn.
    is_file = frame["trace_uri"].map(lambda uri: str(uri).endswith(".mcap")).astype(bool)
    shown = frame[frame["success"].notna() & is_file]
    by_condition: dict[_Condition, list[_Row]] = {}
    for record in shown.to_dict(orient="records"):
        row = {str(name): None if _is_missing(value) else value for name, value in record.items()}
        by_condition.setdefault(_condition(row), []).append(row)
    divided = _divided(cells)
    pairs = [(key, pair) for key, rows in by_condition.items() if (pair := _pair(rows))]
    pairs.sort(key=lambda item: -divided.get(item[0], 0.0) * _struggle(item[1]))
    chosen = [row for pair in _each_level_once(pairs) for row in pair]
    chosen = chosen or [rows[0] for rows in by_condition.values()]
    return [described(row, trial) for row in chosen[:limit]]


def _struggle(pair: Sequence[_Row]) -> float:
    """How long the failed episode lasted, as a share of the other."""
    failed, survived = pair
    return min(1.0, _length(failed) / max(1.0, _length(survived)))


def _length(row: _Row) -> float:
    """Ticks of an episode; 0 where they are not recorded, so that it is drawn last."""
    return float(row["ticks"] or 0)


def _each_level_once(pairs: list[tuple[_Condition, list[_Row]]]) -> list[list[_Row]]:
    """The same pairs, the first of each level before the second of any."""
    seen: Counter[tuple[int | None, str]] = Counter()
    ranked = []
    for place, (key, pair) in enumerate(pairs):
        ranked.append((seen[key[2:4]], place, pair))
        seen[key[2:4]] += 1
    return [pair for _, _, pair in sorted(ranked, key=lambda item: item[:2])]


def _is_missing(value: object) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))


def _condition(row: _Row) -> _Condition:
    level = row["level"]
    number = None if level is None else int(level)
    return row["task"], row["profile"], number, _variant(row), row["difficulty"]


def _variant(row: Mapping[str, Any]) -> str:
    return str(row.get(VARIANT) or "")


def _divided(cells: Sequence[Cell]) -> dict[_Condition, float]:
    """How evenly the episodes of each condition divide into successes and failures."""
    counts: dict[_Condition, tuple[int, int]] = {}
    for cell in cells:
        key = (cell.task, cell.profile, cell.level, cell.task_variant or "", cell.difficulty)
        good, scored = counts.get(key, (0, 0))
        counts[key] = (good + cell.n_success, scored + cell.coverage.scored)
    return {key: good * (n - good) / n**2 for key, (good, n) in counts.items() if n}


def _pair(rows: list[_Row]) -> list[_Row]:
    """A failed and a survived episode, of one seed if possible; empty without both."""
    survived = [row for row in rows if row["success"]]
    failed = [row for row in rows if not row["success"]]
    if not survived or not failed:
        return []
    seeds = {row["seed"] for row in survived}
    # Of the failures the longest: a fall after a few ticks shows little.
    worst = max(failed, key=lambda row: (row["seed"] in seeds, _length(row)))
    same = [row for row in survived if row["seed"] == worst["seed"]]
    return [worst, (same or survived)[0]]


def described(row: Mapping[str, Any], trial: Path) -> Chosen:
    """An episode to draw, by its row as plain data; its trace is within the trial."""
    end, spec = spaced(str(row["end_reason"])), task_of(str(row["task"]))
    if row["duration_s"] is None:
        ending = end
    elif row["success"] and spec is not None and row["ticks"] == spec.max_ticks:
        ending = f"the full {row['duration_s']:.2f} s"
    else:
        ending = f"{end} at {row['duration_s']:.2f} s"
    ticks = "" if row["ticks"] is None else f" ({count(int(row['ticks']), 'tick')})"
    seed = f", seed {int(row['seed'])}" if row["seed"] is not None else ""
    return Chosen(
        episode_id=str(row["episode_id"]),
        trace=trial / str(row["trace_uri"]),
        sha256=row["trace_sha256"],
        task=str(row["task"]),
        label=f"{row['policy']}, {_place(row)}: {ending}",
        caption=f"{row['policy']} at {_place(row)}{seed}: {ending}{ticks},"
        f" performance {row['quality']:.2f}.",
        outcome=str(row["end_reason"]),
    )


def _place(row: Mapping[str, Any]) -> str:
    if row["level"] is None:
        return task_label(str(row["task"]), _variant(row))
    novelty = row["novelty"]
    name = novelty.get("name") if isinstance(novelty, Mapping) else None
    named = f" ({spaced(str(name))})" if name and int(row["level"]) else ""
    difficulty = f", {row['difficulty']}" if row["difficulty"] and int(row["level"]) else ""
    return f"level {int(row['level'])}{named}{difficulty}"


def clips(chosen: Sequence[Chosen]) -> tuple[list[Clip], list[str]]:
    """The chosen episodes packed for the page, and which of their traces were changed.

    A trace that was changed or cannot be read is left out.
    """
    from robo_eval.log.trace import read_trace

    packed: list[Clip] = []
    changed: list[str] = []
    room = MAX_PACKED
    for item in chosen:
        try:
            if item.sha256 is not None and file_digest(item.trace) != item.sha256:
                changed.append(f"the trace of {item.episode_id} was changed")
                continue
            trace = read_trace(item.trace)
        except (RoboEvalError, OSError) as err:
            _log.warning("%s is left out of the report: %s", item.episode_id, err)
            continue
        if not trace.frames:  # an environment that does not say what moves
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
    return packed, changed
