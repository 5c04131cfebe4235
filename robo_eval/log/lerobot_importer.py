"""Episodes of a LeRobot dataset, brought into a trial directory of ours."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

import numpy as np
from pydantic import Field, field_validator

from robo_eval.core.canonical import digest
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval.core.names import listing
from robo_eval.core.wording import counted
from robo_eval.log.bag_map import Take
from robo_eval.log.bag_value import cell_of
from robo_eval.log.cells import CellError
from robo_eval.log.column_map import SCORES, ImportMap, OurColumn, Source
from robo_eval.log.directory import TRACES, TrialDirectory
from robo_eval.log.files import explained, write_atomically
from robo_eval.log.import_row import RowMaker
from robo_eval.log.import_score import ImportedRow
from robo_eval.log.import_trial import check_new, plan_of_import, write_trial
from robo_eval.log.lerobot_set import LeRobotSet, SetEpisode
from robo_eval.log.recorded import LINK
from robo_eval.log.schema import KINDS, Kind
from robo_eval.log.trace_folder import trace_digest

if TYPE_CHECKING:
    import pyarrow as pa

    Values = np.ndarray[Any, Any]

_ENDS: Final = ("next.done", "next.truncated", "is_last", "is_terminal")
"""Columns that say that an episode ended, and not how."""


class FrameSource(Source):
    """Which column of a dataset one of ours comes from, and which of its values."""

    take: Take | None = None
    """Which of the values in an episode; None where they leave no doubt."""
    labelled: Literal["true", "false"] | None = None
    """Whether somebody labelled a column that is false everywhere; None if the map does not say."""


class DatasetMap(ImportMap):
    """The map of a LeRobot dataset."""

    WHAT: ClassVar = ("column map", "docs/lerobot.md")
    NEEDS: ClassVar = ("policy", "side")
    TELLS_OUTCOMES: ClassVar = False

    columns: dict[OurColumn, FrameSource] = Field(default_factory=dict)
    """Source of each of our columns: a column of the metadata of episodes, or of the frames."""

    @field_validator("columns")
    @classmethod
    def _check_ends(cls, columns: dict[str, FrameSource]) -> dict[str, FrameSource]:
        for ours in SCORES:
            if ours in columns and columns[ours].column in _ENDS:
                raise ValueError(
                    f"{ours}: {columns[ours].column} says that an episode ended, also at a limit of"
                    " time, and not that it succeeded; map next.success, or leave it out"
                )
        return columns


def import_lerobot(
    folder: Path | str | os.PathLike[str],
    column_map: Path | str | os.PathLike[str],
    out: Path | str | os.PathLike[str],
    *,
    episodes: str = "",
    warn: Callable[[str], None] | None = None,
) -> TrialDirectory:
    """Read episodes of a LeRobot dataset by a column map into a new trial directory.

    Everything is read and checked first; the directory then appears complete or not at all. The
    trace of an episode names the files it is in, with their digests. docs/lerobot.md describes the
    map.

    Args:
        folder: A dataset in the layout of version 2.0, 2.1 or 3.0.
        column_map: YAML file: where each of our columns comes from.
        out: Trial directory to create.
        episodes: Numbers of the episodes to read, such as `0-49,60`; empty for all.
        warn: Called with what cannot be read, and with how many episodes have no score.

    Raises:
        InputError: If map or dataset are not usable; the message names file and remedy.
        MissingExtraError: If pyarrow is not installed.
        TrialDirectoryError: If the directory exists or cannot be written.
    """
    source, target = Path(folder), Path(out)
    check_new(target)
    mapping = DatasetMap.read(Path(column_map))
    dataset = LeRobotSet(source)
    named = {column.column for column in mapping.columns.values()}
    found = dataset.episodes(named)
    chosen = _chosen(found, episodes)
    of_frames = [name for name in sorted(named) if not any(name in one.said for one in chosen)]
    table = dataset.read(chosen, of_frames)
    _check_labels(mapping, chosen, table)
    links = [_link(dataset, one) for one in chosen]
    maker = RowMaker(mapping, sha256=digest(dataset.digests()))
    rows = [_row(dataset, mapping, maker, one, table) for one in chosen]
    numbers = {one.number for one in chosen}
    for one in found:
        if one.number not in numbers:
            maker.leave_out([one.name, str(one.number)])
    unread = [one for one in chosen if one.problem]
    lost = [f"{source}: episode {one.number} cannot be read: {one.problem}" for one in unread[:9]]
    if unread:
        lost.append(f"{source}: {len(unread)} of {counted(len(chosen), 'episode')} cannot be read")
    videos = [video for link in links for video in link["videos"]]
    absent = list(dict.fromkeys(video["file"] for video in videos if not video["sha256"]))
    if absent:
        lost.append(f"{source}: {counted(len(absent), 'video')} missing: {listing(absent)}")

    def write_links(trial: Path) -> None:
        for row, one, link in zip(rows, chosen, links, strict=True):
            place = trial / TRACES / one.name
            with explained(place, "cannot be written"):
                place.mkdir(parents=True)
            text = json.dumps(link, indent=1, ensure_ascii=False)
            write_atomically(place / LINK, text.encode(), durable=False)
            sha256 = trace_digest(place)
            row.values.update(trace_uri=f"{TRACES}/{one.name}", trace_sha256=sha256)

    notes = [*dataset.notes, *lost, *maker.notes(source, rows)]
    plan = plan_of_import(source, maker, rows, traces="all")
    return write_trial(target, plan, rows, notes=notes, warn=warn, fill=write_links)


def _chosen(found: list[SetEpisode], text: str) -> list[SetEpisode]:
    """The episodes that are asked for.

    Raises:
        InputError: If the text is no list of numbers, or names an episode that is not there.
    """
    numbers = {one.number for one in found}
    asked: set[int] = set()
    for part in text.split(",") if text else ():
        ends = [end.strip() for end in part.split("-", 1)]
        is_span = all(end.isascii() and end.isdigit() and len(end) < 16 for end in ends)
        low, high = (int(ends[0]), int(ends[-1])) if is_span else (1, 0)
        if low > high or not {low, high} <= numbers:
            raise InputError(
                f"--episodes: {part.strip()!r:.40} is no episode and no span of them, such as 0-49;"
                f" the dataset has {found[0].number} to {found[-1].number}"
            )
        asked |= {number for number in numbers if low <= number <= high}
    return [one for one in found if one.number in asked] if text else found


def _link(dataset: LeRobotSet, one: SetEpisode) -> dict[str, Any]:
    """Where an episode is recorded: the files with their digests, and its place in them."""
    return {
        "dataset": str(dataset.path),
        "episode_index": one.number,
        "first_frame": one.first,
        "frames": one.length,
        "data": [dataset.named(uri) for uri in one.files],
        "videos": list(dataset.videos(one)),
    }


def _check_labels(mapping: DatasetMap, episodes: Sequence[SetEpisode], table: pa.Table) -> None:
    """Refuse an outcome that is false everywhere, unless the map says whether it was labelled.

    Raises:
        InputError: In that case.
    """
    for ours in SCORES:
        if (source := mapping.columns.get(ours)) is None:
            continue
        found = [_values(source.column, one, table) for one in episodes]
        told = [values for values in found if values.size]
        is_false = all(
            _is_false(str(value), source, mapping)
            for values in told
            for value in (values if values.dtype == object else np.unique(values)).tolist()
        )
        place = f"{mapping.path}: columns.{ours}: {source.column}"
        if told and is_false and source.labelled is None:
            raise InputError(
                f"{place} is false in every frame: was it ever labelled? add labelled: true if"
                " these are failures, or labelled: false if nobody judged them"
            )
        if not is_false and source.labelled == "false":
            raise InputError(
                f"{place} is not false everywhere: it was labelled; leave out labelled"
            )


def _is_false(text: str, source: FrameSource, mapping: DatasetMap) -> bool:
    """Whether a value says no, or nothing."""
    read = mapping.reading
    word = read.word(text, source.values) if source.values else text
    try:
        return text in read.missing or (word is not None and not read.truth(word))
    except CellError:
        return False


def _row(
    dataset: LeRobotSet, mapping: DatasetMap, maker: RowMaker, one: SetEpisode, table: pa.Table
) -> ImportedRow:
    """The row of an episode; of one that cannot be read, what the metadata say."""
    where, tasks = f"{dataset.path}: episode {one.number}", one.said.get("tasks")
    task = "; ".join(map(str, tasks)) if isinstance(tasks, list) else str(tasks or "")
    values: dict[str, Any] = {"episode_id": one.name, "task": task or None}
    is_real = mapping.constants.get("side") == Side.REAL.value
    if not one.problem:
        seconds = one.length / dataset.fps
        values |= {"ticks": one.length, "duration_s": seconds}
        values |= {"exposure_s": seconds} if is_real else {}

    def text_of(ours: str, source: FrameSource) -> str | None:
        found = _values(source.column, one, table)
        if source.labelled == "false" or not found.size:
            return None if one.problem else ""
        place = f"{where}, column {source.column!r}"
        return cell_of(place, _taken(place, ours, source.take, found), source.values)

    row = ImportedRow(where, values)
    maker.add_columns(row, mapping.columns, text_of)
    return maker.finish(row, names=[str(one.number)], lost=one.problem)


def _values(column: str, one: SetEpisode, table: pa.Table) -> Values:
    """What a column says of an episode, by frame, without what is missing."""
    import pyarrow as pa

    if column in one.said:
        cell = one.said[column]
        cell = cell[0] if isinstance(cell, list) and len(cell) == 1 else cell
        is_number = isinstance(cell, bool | int | float) and abs(cell) < 2**53
        whole = np.array([cell], dtype=None if is_number else object)
        return whole[:0] if cell is None or cell != cell else whole
    if one.rows is None or column not in table.column_names:
        return np.empty(0)
    cells = table[column].slice(one.rows.start, one.length).combine_chunks()
    if pa.types.is_list(cells.type) or pa.types.is_fixed_size_list(cells.type):
        # Of a list of one, as numbers alone are written too; of longer ones no value is the value.
        cells = cells.flatten() if len(cells.flatten()) == len(cells) else pa.nulls(len(cells))
    values: Values = cells.drop_null().to_numpy(zero_copy_only=False)
    return np.compress(values == values, values)


def _taken(place: str, ours: str, take: Take | None, values: Values) -> Any:
    """The value of an episode among those of its frames.

    Raises:
        InputError: If they differ and the map does not say which one counts, or it takes a number
            from texts.
    """
    base, is_text = ours.partition(".")[0], values.dtype == object
    usual = {"interventions": "rises", "episode_return": "sum"}.get(base, "last")
    if usual == "rises" and not np.isin(values, (0, 1)).all():
        usual = "last"  # a count, and no truth
    # What is true in the last frame is true at the end and at some time.
    is_clear = KINDS[base] is Kind.TRUTH and not is_text and bool(values[-1])
    if take is None and usual == "last" and not is_clear and (values != values[0]).any():
        raise InputError(
            f"{place}: is {values[0]} in the first frame and {values[-1]} in the last, or differs"
            f" between: which one counts? add take to columns.{ours} of the column map, such as"
            " last, any, max or sum"
        )
    chosen = take or ("last" if is_text else usual)
    if chosen in ("last", "first"):
        return values[-1 if chosen == "last" else 0]
    if is_text:
        raise InputError(f"{place}: holds texts; take: {chosen} needs truths or numbers")
    on = values != 0
    if chosen in ("rises", "count"):
        return int((on & ~np.append(False, on[:-1])).sum() if chosen == "rises" else on.sum())
    numbers = on if chosen in ("any", "all") else values.astype(np.float64)
    return getattr(values if chosen in ("min", "max") else numbers, chosen)()
