"""Many episodes as one table with a type for each column."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pandas as pd

from robo_eval.core.episode import COLUMNS, Episode
from robo_eval.log.rows import KINDS, OPTIONAL, Kind

_DTYPES: Final = {
    # Objects: pandas' own text type turns None into NaN, which is true in a condition.
    Kind.TEXT: ("object", "object"),
    Kind.WORD: ("object", "object"),
    Kind.MAPPING: ("object", "object"),
    Kind.NUMBER: ("float64", "float64"),
    Kind.INTEGER: ("int64", "Int64"),
    Kind.TRUTH: ("bool", "boolean"),
}


def dtype_of(column: str) -> str:
    """The pandas type of a column."""
    return _DTYPES[KINDS[column]][column in OPTIONAL]


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
        columns[name] = pd.Series(values, dtype=dtype_of(name))
    return pd.DataFrame(columns)
