"""Whether a table of episodes can be trusted to compute metrics from."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from enum import Enum
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from robo_eval.core.episode import COLUMNS
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Arm, Difficulty, EndReason
from robo_eval.core.names import unknown_name
from robo_eval.log.schema import (
    KINDS,
    LEAST,
    MOST,
    OPTIONAL,
    TOGETHER,
    WORDS,
    Kind,
    least_text,
    most_text,
    rules,
)
from robo_eval.metrics.tasks import VARIANT, variants_of

if TYPE_CHECKING:
    from robo_eval.core.plan import TrialPlan

REQUIRED: Final = ("episode_id", "side", "task", "policy", "quality", "success", "end_reason")
"""Columns every table of episodes has; the others take the default of an episode."""

_DEFAULTS: Final[dict[str, object]] = {
    "attempt": 1,
    "arm": Arm.MAIN.value,
    "family": "",
    "exposure_s": 0.0,
    "score_version": 1,
    "interventions": 0,
    "recovered": False,
}
_TEXTS: Final = ("episode_id", "side", "task", "policy", "end_reason", "arm")
_OPTIONAL_TEXTS: Final = (
    "difficulty",
    "profile",
    "family",
    "control_id",
    "pair_id",
    "end_detail",
    "task_version",
    "behaviour",
    "engine",
    "numerics",
)
_MISSING: Final = {NoneType, type(pd.NA), float, np.float64}
"""Types of the cells for which `is_missing` holds."""


def episodes_frame(frame: pd.DataFrame, plan: TrialPlan | None = None) -> pd.DataFrame:
    """Check a table of episodes and bring it into one form.

    Args:
        frame: One row per attempt, with at least the columns of `REQUIRED`; the names and
            meanings are those of `core.episode.Episode`.
        plan: The plan they were recorded under: tells tasks of one environment apart.

    Returns:
        A copy with every column of `core.episode.COLUMNS` (and any further ones), in which words
        are plain strings, `success` is True, False or None, missing texts are None, and missing
        numbers NaN or NA; how long an episode took may be missing. Added are `base_id`, which
        names the episode whatever the attempt, and `task_variant`, see
        `metrics.tasks.task_variants`; the latter is kept if it is there already.

    Raises:
        InputError: If a column is missing, a cell holds something else than its column allows
            (counts are less than 2^53, times at most 1e12 s), score and end reason contradict
            each other, or an episode appears or is scored twice; the message names row and
            column.
    """
    missing = [column for column in REQUIRED if column not in frame.columns]
    if missing:
        raise InputError(
            f"episodes table: column {missing[0]!r} is missing; it needs {', '.join(REQUIRED)}"
        )
    doubled = frame.columns[frame.columns.duplicated()]
    if len(doubled):
        raise InputError(f"episodes table: column {doubled[0]!r} appears twice")
    table = frame.reset_index(drop=True)
    for column in COLUMNS:
        if column not in table.columns:
            table[column] = pd.Series([_DEFAULTS.get(column)] * len(table), dtype=object)
    _set_types(table)
    _check_words(table)
    _check_scores(table)
    table["base_id"] = _base_ids(table)
    _lose_earlier_trials(table)
    _check_unique(table)
    if VARIANT in frame.columns:
        given = _optional(table[VARIANT], str)
        table[VARIANT] = given.where(given.notna(), "")
    else:
        variants = variants_of(table, plan)
        table[VARIANT] = pd.Series(variants, dtype=object, index=table.index)
    return table


def _set_types(table: pd.DataFrame) -> None:
    """Give every column its type, in place."""
    for column in _TEXTS:
        table[column] = _texts(table, column)
    for column in _OPTIONAL_TEXTS:
        table[column] = _optional(table[column], str)
    for column in (*LEAST, "episode_return"):
        values = _numbers(table, column)
        if column == "level":
            table[column] = _levels(values)
        elif KINDS[column] is Kind.INTEGER:
            table[column] = values.astype("int64" if values.notna().all() else "Int64")
        else:
            table[column] = values
    table["success"] = _truths(table)


def _where(table: pd.DataFrame, index: int, column: str) -> str:
    name = table["episode_id"].iloc[index]
    return f"episodes table: row {index} ({name}), column {column!r}"


def _first(mask: ArrayLike) -> int:
    return int(np.flatnonzero(np.asarray(mask, dtype=bool))[0])


def _cell(table: pd.DataFrame, index: int, column: str) -> str:
    """The cell as a person would write it."""
    value = table[column].iloc[index]
    return repr(value.item() if isinstance(value, np.generic) else value)


def _optional(values: pd.Series[Any], kind: Callable[[Any], Any]) -> pd.Series[Any]:
    """Object column with None for what is missing."""
    cells = values.to_numpy(dtype=object, copy=True)
    if _holds_only(cells, kind):
        cells[pd.isna(cells)] = None
        return _object_series(cells, values.index)
    found = [None if is_missing(value) else kind(value) for value in cells]
    return _object_series(found, values.index)


def _holds_only(cells: NDArray[Any], kind: object) -> bool:
    """Whether cells are of one type, subtypes apart, or missing."""
    types = set(map(type, cells))
    if types <= {NoneType, kind}:
        return True
    empty = pd.isna(cells)
    return set(map(type, cells[~empty])) <= {kind} and set(map(type, cells[empty])) <= _MISSING


def _object_series(cells: NDArray[Any] | list[Any], index: pd.Index[Any]) -> pd.Series[Any]:
    return pd.Series(cells, dtype=object, index=index)


def is_missing(value: object) -> bool:
    """Whether a cell holds nothing: None, NaN or pandas' NA."""
    return value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value))


def _where_missing(values: pd.Series[Any]) -> pd.Series[bool]:
    """Where `is_missing` holds."""
    empty = values.isna()
    if values.dtype != object or set(map(type, values[empty])) <= _MISSING:
        return empty
    # pandas also calls some things missing that are there, such as a time that is none.
    return empty & values.map(is_missing).astype(bool)


def _texts(table: pd.DataFrame, column: str) -> pd.Series[Any]:
    values = _optional(table[column], str)
    empty = values.isna() | (values == "")
    if empty.any():
        raise InputError(f"{_where(table, _first(empty), column)} is empty; it needs a text")
    return values


def _numbers(table: pd.DataFrame, column: str) -> pd.Series[float]:
    values = pd.to_numeric(table[column], errors="coerce").astype(np.float64)
    wrong = values.isna() & ~_where_missing(table[column])
    if wrong.any():
        index = _first(wrong)
        raise InputError(
            f"{_where(table, index, column)} is {_cell(table, index, column)}, not a number"
        )
    infinite = np.isinf(values)
    if infinite.any():
        index = _first(infinite)
        raise InputError(
            f"{_where(table, index, column)} is {values.iloc[index]}; leave it empty if there is"
            " none"
        )
    if column not in LEAST:
        return values
    wrong = values < LEAST[column]
    # How long an episode took may be missing, also where a row of ours says 0.
    if column not in OPTIONAL:
        wrong |= values.isna()
    if KINDS[column] is Kind.INTEGER:
        wrong |= values.notna() & (values != np.floor(values))
    for outside, text in ((wrong, least_text), (values > MOST[column], most_text)):
        if outside.any():
            index = _first(outside)
            raise InputError(
                f"{_where(table, index, column)} is {_cell(table, index, column)}; {text(column)}"
            )
    return values


def _levels(values: pd.Series[float]) -> pd.Series[Any]:
    """Levels as whole numbers, each an object that equal ones share, and None."""
    numbers, place = np.unique(values[values.notna()], return_inverse=True)
    cells = np.full(len(values), None, dtype=object)
    cells[values.notna()] = np.array([int(number) for number in numbers], dtype=object)[place]
    return _object_series(cells, values.index)


def _truths(table: pd.DataFrame) -> pd.Series[Any]:
    if _holds_only(table["success"].to_numpy(dtype=object), bool):
        return _optional(table["success"], bool)
    values = _optional(table["success"], lambda value: value)
    # Membership compares by ==, so True, 1, 1.0 and numpy's booleans all count.
    wrong = values.map(lambda value: value is not None and value not in (True, False)).astype(bool)
    if wrong.any():
        index = _first(wrong)
        raise InputError(
            f"{_where(table, index, 'success')} is {_cell(table, index, 'success')};"
            " it must be true, false or empty"
        )
    return _optional(values, bool)


def _check_words(table: pd.DataFrame) -> None:
    lists: dict[str, type[Enum]] = {**WORDS, "difficulty": Difficulty}
    for column, words in lists.items():
        valid = [word.value for word in words]
        wrong = table[column].notna() & ~table[column].isin(valid)
        if wrong.any():
            index = _first(wrong)
            text = unknown_name(column, table[column].iloc[index], valid)
            raise InputError(f"{_where(table, index, column)}: {text}")


def _check_scores(table: pd.DataFrame) -> None:
    """Refuse what the columns of a row cannot say together."""
    cells = {name: table[name].to_numpy() for name in TOGETHER}
    empty = {name: table[name].isna().to_numpy() for name in ("quality", "success")}
    for column, wrong, text in rules(cells, empty):
        if wrong.any():
            row = table.iloc[_first(wrong)]
            cell = f"{_where(table, _first(wrong), column)} is {row[column]}"
            raise InputError(f"{cell}; {text.format_map(row)}")


def _base_ids(table: pd.DataFrame) -> pd.Series[Any]:
    """The id of the planned episode: that of its first attempt."""
    ids = table["episode_id"].to_numpy(dtype=object).copy()
    attempts = table["attempt"].to_numpy()
    for row in np.flatnonzero(attempts > 1):
        ids[row] = ids[row].removesuffix(f"-a{attempts[row]}")
    return _object_series(ids, table.index)


def _lose_earlier_trials(table: pd.DataFrame) -> None:
    """Of trials that were played again, let the last attempt count alone, in place.

    A trial is played again because an episode of it was lost; the others of that attempt are lost
    with it, whatever their score was.
    """
    if (table["attempt"] <= 1).all():
        return
    named = ("side", "policy", "novelty", "attempt")
    attempts: dict[tuple[Any, ...], list[tuple[int, int]]] = {}
    for at, side, policy, novelty, attempt in zip(
        table.index, *(table[name] for name in named), strict=True
    ):
        if isinstance(novelty, Mapping) and (place := novelty.get("trial")):
            trial = side, policy, place["cell"], place["number"]
            attempts.setdefault(trial, []).append((attempt, at))
    latest = [(max(own)[0], own) for own in attempts.values()]
    lost = [at for last, own in latest for attempt, at in own if attempt < last]
    table.loc[lost, "quality"] = np.nan
    table.loc[lost, ["success", "fault_by"]] = None
    table.loc[lost, "end_reason"] = EndReason.LOST.value
    table.loc[lost, "end_detail"] = "its trial was played again"


def _check_unique(table: pd.DataFrame) -> None:
    for names, fault in (
        (table["episode_id"], "appears twice"),
        (table["base_id"][table["quality"].notna()], "is scored twice"),
    ):
        twice = names.duplicated()
        if twice.any():
            label: Hashable = names.index[_first(twice)]
            raise InputError(
                f"{_where(table, int(str(label)), 'episode_id')} {fault}; an episode counts once"
            )
