"""How rows of episodes are grouped, whatever is then computed from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import pandas as pd

from robo_eval.core.kinds import Arm

_NEEDED: Final = (
    "base_id",
    "attempt",
    "control_id",
    "side",
    "task",
    "family",
    "profile",
    "level",
    "difficulty",
    "seed",
    "policy",
    "policy_digest",
    "quality",
    "success",
    "end_reason",
    "score_version",
)
"""What metrics read; cutting a table of all columns into groups takes three times as long."""


def main_rows(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the main arm, each with a family, of a table from `episodes_frame`."""
    main = table.loc[table["arm"] == Arm.MAIN.value, list(_NEEDED)]
    named = main["family"].notna() & (main["family"] != "")
    return main.assign(family=main["family"].where(named, main["task"]))


def groups(table: pd.DataFrame, by: Sequence[str]) -> dict[tuple[Any, ...], pd.DataFrame]:
    """Rows by the values of some columns, missing values being values like any other."""
    rows: dict[tuple[Any, ...], list[int]] = {}
    for index, key in enumerate(zip(*(table[column] for column in by), strict=True)):
        rows.setdefault(key, []).append(index)
    return {key: table.iloc[indices] for key, indices in rows.items()}


def sort_key(key: Iterable[Any]) -> tuple[tuple[bool, str, Any], ...]:
    """Orders keys whose parts may be missing, missing parts first."""
    return tuple((part is not None, type(part).__name__, part or 0) for part in key)
