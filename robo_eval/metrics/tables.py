"""How rows of episodes are grouped, whatever is then computed from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.core.kinds import Arm
from robo_eval.metrics.tasks import VARIANT

if TYPE_CHECKING:
    import pandas as pd

_NEEDED: Final = (
    "base_id",
    "attempt",
    "control_id",
    "pair_id",
    "side",
    "task",
    "family",
    VARIANT,
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
"""What metrics read."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Some rows of a table of episodes, column by column.

    A trial falls into hundreds of groups of a few rows; cutting a data frame into them costs
    fifty times as much as cutting its arrays.

    Attributes:
        columns: Arrays of shape (n,) by name; `quality` is float with NaN for what is missing,
            the others hold objects.
    """

    columns: Mapping[str, NDArray[Any]]

    @classmethod
    def of(cls, table: pd.DataFrame, names: Sequence[str] = _NEEDED) -> Self:
        """The columns of a table from `episodes_frame` that metrics read."""
        columns = {}
        for name in names:
            kind = np.float64 if name == "quality" else object
            columns[name] = table[name].to_numpy(dtype=kind)
        return cls(columns)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.columns[name]

    def take(self, chosen: ArrayLike) -> Rows:
        """The rows of a mask or of a list of indices."""
        index = np.asarray(chosen)
        if index.dtype != np.bool_:
            index = index.astype(np.intp)
        return Rows({name: column[index] for name, column in self.columns.items()})

    def having(self, **columns: NDArray[Any]) -> Rows:
        """The same rows with further columns."""
        return Rows({**self.columns, **columns})

    @property
    def scored(self) -> NDArray[np.bool_]:
        """Which rows have a quality, shape (n,)."""
        known: NDArray[np.bool_] = ~np.isnan(self.columns["quality"])
        return known


def main_rows(table: pd.DataFrame) -> Rows:
    """The rows of the main arm, each with a family, of a table from `episodes_frame`."""
    rows = Rows.of(table).take((table["arm"] == Arm.MAIN.value).to_numpy(dtype=bool))
    families = [family or task for family, task in zip(rows["family"], rows["task"], strict=True)]
    return rows.having(family=_objects(families))


def _objects(values: Sequence[object]) -> NDArray[Any]:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def groups(rows: Rows, by: Sequence[str]) -> dict[tuple[Any, ...], Rows]:
    """Rows by the values of some columns, missing values being values like any other."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for index, key in enumerate(zip(*(rows[column] for column in by), strict=True)):
        found.setdefault(key, []).append(index)
    return {key: rows.take(indices) for key, indices in found.items()}


def first_of_each(values: Iterable[object]) -> list[int]:
    """Index of the first appearance of each value."""
    first: dict[object, int] = {}
    for index, value in enumerate(values):
        first.setdefault(value, index)
    return list(first.values())


def sort_key(key: Iterable[Any]) -> tuple[tuple[bool, str, Any], ...]:
    """Orders keys whose parts may be missing, missing parts first."""
    return tuple(
        (part is not None, type(part).__name__, 0 if part is None else part) for part in key
    )
