"""Whether whole columns of stored cells are a table of episodes, looked at all at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from robo_eval.core import door
from robo_eval.core.episode import COLUMNS, Episode, is_below
from robo_eval.log.schema import BOUNDS, KINDS, OPTIONAL, TOGETHER, WORDS, Kind, rules

if TYPE_CHECKING:
    import pyarrow as pa

_TYPES: Final[dict[Kind, set[type]]] = {
    Kind.TEXT: {str},
    Kind.WORD: {str},
    Kind.MAPPING: {str},
    Kind.INTEGER: {int},
    Kind.NUMBER: {float},
    Kind.TRUTH: {int, bool},
}
"""Types of the cells of each kind of column."""
_DTYPES: Final[dict[Kind, type[np.generic]]] = {
    Kind.INTEGER: np.int64,
    Kind.NUMBER: np.float64,
    Kind.TRUTH: np.bool_,
}
"""Other kinds are held as objects."""
_PANDAS: Final = {
    # Objects: pandas' own text type turns None into NaN, which is true in a condition.
    Kind.TEXT: ("object", "object"),
    Kind.WORD: ("object", "object"),
    Kind.MAPPING: ("object", "object"),
    Kind.NUMBER: ("float64", "float64"),
    Kind.INTEGER: ("int64", "Int64"),
    Kind.TRUTH: ("bool", "boolean"),
}
"""The pandas type of each kind of column, without and with missing cells."""
_ARROW: Final = {Kind.INTEGER: "int64", Kind.NUMBER: "double", Kind.TRUTH: "bool"}
_REPEATED: Final = 10_000
"""Distinct texts of a column up to which equal ones are kept once."""


class Column:
    """The cells of one column, part by part.

    Args:
        name: One of `core.episode.COLUMNS`.
    """

    def __init__(self, name: str) -> None:
        self.kind: Final = KINDS[name]
        self._is_optional = name in OPTIONAL
        self._cells: list[NDArray[Any]] = []
        self._empty: list[NDArray[np.bool_]] = []
        self._known: dict[str, str] = {}

    def add(self, cells: Sequence[Any]) -> bool:
        """Add cells as SQLite stores them; False if one is not what the column allows."""
        types = set(map(type, cells))
        if not types - {NoneType} <= _TYPES[self.kind] or (
            NoneType in types and not self._is_optional
        ):
            return False
        empty = np.zeros(len(cells), dtype=np.bool_)
        if NoneType in types:
            empty = np.array([cell is None for cell in cells], dtype=np.bool_)
        if self.kind not in _DTYPES:
            self._append(_objects(self._kept_once(cells)), empty)
            return True
        if self.kind is Kind.TRUTH and not set(cells) <= {None, 0, 1}:
            return False
        filled = [0 if cell is None else cell for cell in cells] if NoneType in types else cells
        self._append(np.array(filled, dtype=_DTYPES[self.kind]), empty)
        return self._is_finite()

    def add_arrow(self, cells: pa.Array) -> bool:
        """Add cells of a Parquet file; False if one is not what the column allows."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if cells.null_count and not self._is_optional:
            return False
        empty = pc.is_null(cells).to_numpy(zero_copy_only=False)
        if self.kind in _DTYPES:
            if str(cells.type) != _ARROW[self.kind]:
                return False
            filled = cells.fill_null(False if self.kind is Kind.TRUTH else 0)
            self._append(filled.to_numpy(zero_copy_only=False), empty)
            return self._is_finite()
        if cells.type not in (pa.string(), pa.large_string()):
            return False
        encoded = cells.dictionary_encode()
        texts = _objects([*self._kept_once(encoded.dictionary.to_pylist()), None])
        self._append(texts[encoded.indices.fill_null(len(texts) - 1).to_numpy()], empty)
        return True

    def _append(self, cells: NDArray[Any], empty: NDArray[np.bool_]) -> None:
        self._cells.append(cells)
        self._empty.append(empty)

    def _is_finite(self) -> bool:
        return self.kind is not Kind.NUMBER or bool(np.isfinite(self._cells[-1]).all())

    def _kept_once(self, texts: Iterable[Any]) -> Iterable[Any]:
        known = self._known
        if len(known) > _REPEATED:
            return texts
        return [known.setdefault(text, text) for text in texts]

    @property
    def cells(self) -> NDArray[Any]:
        """All cells, shape (n,): objects with None, or numbers and truths with 0 where empty."""
        self._cells = [np.concatenate(self._cells)]
        return self._cells[0]

    @property
    def empty(self) -> NDArray[np.bool_]:
        """Where there is none, shape (n,)."""
        self._empty = [np.concatenate(self._empty)]
        return self._empty[0]

    def series(self) -> pd.Series[Any]:
        """The column as `episodes_table` has it."""
        if self.kind is Kind.MAPPING:
            return pd.Series(_objects(_mappings(self.cells)), dtype=object)
        if self.kind is Kind.NUMBER:
            return pd.Series(np.where(self.empty, np.nan, self.cells), dtype=np.float64)
        if self.kind in _DTYPES and self._is_optional:
            array = pd.arrays.BooleanArray if self.kind is Kind.TRUTH else pd.arrays.IntegerArray
            return pd.Series(array(self.cells, self.empty))
        return pd.Series(self.cells, dtype=_DTYPES.get(self.kind, object))


def episodes_table(episodes: Iterable[Episode]) -> pd.DataFrame:
    """A table of episodes, one row each, with the columns of `core.episode.COLUMNS`."""
    rows = list(episodes)
    columns: dict[str, Any] = {}
    for name in COLUMNS:
        values = [getattr(episode, name) for episode in rows]
        if KINDS[name] is Kind.WORD:
            values = [None if value is None else value.value for value in values]
        elif KINDS[name] is Kind.MAPPING:
            values = [dict(value) for value in values]
        columns[name] = pd.Series(values, dtype=_PANDAS[KINDS[name]][name in OPTIONAL])
    return pd.DataFrame(columns)


def table_of_columns(columns: Mapping[str, Column]) -> pd.DataFrame | None:
    """The table that `episodes_table` makes of the same rows, in a tenth of the time.

    Args:
        columns: All columns, each of the same length.

    Returns:
        The table; None if a row is not what an episode can be, or there is no row. Read row by
        row then, which says what is wrong.
    """
    if not len(columns["episode_id"].cells) or not _are_episodes(columns):
        return None
    try:
        return pd.DataFrame({name: columns[name].series() for name in COLUMNS}, copy=False)
    except ValueError:  # a mapping that is none
        return None


def _are_episodes(columns: Mapping[str, Column]) -> bool:
    """Whether every row keeps the rules of `log.schema` and the lists of words."""
    for name, words in WORDS.items():
        if not set(columns[name].cells) - {None} <= {word.value for word in words}:
            return False
    if not all(map(is_below, set(columns["trace_uri"].cells) - {None})):
        return False
    for name, least, most in BOUNDS:
        # Where there is none the cell is 0.
        cells = columns[name].cells
        if ((cells < least) | (cells > most)).any():
            return False
    cells_of = {name: columns[name].cells for name in TOGETHER}
    empty = {name: columns[name].empty for name in ("quality", "success")}
    return not any(np.any(wrong) for _, wrong, _ in rules(cells_of, empty))


def _mappings(texts: NDArray[Any]) -> list[dict[str, Any]]:
    """The mapping of each text, each an object of its own.

    Raises:
        ValueError: If a text is not a JSON object.
    """
    cells = texts.tolist()
    distinct = set(cells)
    if len(distinct) > _REPEATED:
        return [_mapping(text) for text in cells]
    known = {text: _mapping(text) for text in distinct}
    if any(isinstance(part, (dict, list)) for value in known.values() for part in value.values()):
        return [_mapping(text) for text in cells]
    return [known[text].copy() for text in cells]


def _mapping(text: str) -> dict[str, Any]:
    value = door.json_of(text)
    if not isinstance(value, dict):
        raise ValueError(f"{text!r:.60} is not a JSON object")
    return value


def _objects(cells: Iterable[Any]) -> NDArray[np.object_]:
    values = list(cells)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
