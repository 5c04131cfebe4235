"""How rows of episodes are grouped, whatever is then computed from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.core.episode import never_began
from robo_eval.core.kinds import Arm, EndReason, FaultBy
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
    "drift_step",
    "seed",
    "policy",
    "policy_digest",
    "initial_state",
    "novelty",
    "start_ns",
    "ticks",
    "quality",
    "success",
    "end_reason",
    "fault_by",
    "score_version",
)
"""What metrics read."""

_MANY: Final = 2**62
"""Combinations of values from which on they are numbered anew, so that numbers stay 64 bits."""


def not_begun(rows: Rows) -> NDArray[np.bool_]:
    """Which rows ended before the onset of their novelty, shape (n,)."""
    cells = zip(rows["novelty"].tolist(), rows["ticks"].tolist(), strict=True)
    return np.array([never_began(*cell) for cell in cells], dtype=np.bool_)


class Codes(NamedTuple):
    """A column as numbers: equal values have equal numbers, and what is missing has 0.

    Attributes:
        code: Number of the value of each row, shape (n,).
        size: Numbers are less.
    """

    code: NDArray[np.int64]
    size: int


class _Column:
    """One column of some rows, cut from that of more rows when somebody reads it.

    Groups of rows are cut out of groups of rows, and most columns of most of them are never read.
    """

    __slots__ = ("_cells", "_chosen", "_codes", "_parent")

    def __init__(
        self,
        cells: NDArray[Any] | None,
        parent: _Column | None = None,
        chosen: NDArray[np.intp] | None = None,
    ) -> None:
        self._cells = cells
        self._codes: Codes | None = None
        self._parent = parent
        self._chosen = chosen

    def __len__(self) -> int:
        known = self._cells if self._chosen is None else self._chosen
        assert known is not None
        return len(known)

    def take(self, chosen: NDArray[np.intp]) -> _Column:
        """Some of its rows."""
        return _Column(None, self, chosen)

    @property
    def cells(self) -> NDArray[Any]:
        """The cells, shape (n,)."""
        if self._cells is None:
            assert self._parent is not None
            self._cells = self._parent.cells[self._chosen]
        return self._cells

    @property
    def codes(self) -> Codes:
        """The cells as numbers, which are those of the column it was cut from."""
        if self._codes is None:
            if self._parent is None:
                self._codes = _codes_of(self.cells)
            else:
                code, size = self._parent.codes
                self._codes = Codes(code[self._chosen], size)
        return self._codes


def _codes_of(values: NDArray[Any]) -> Codes:
    import pandas as pd

    code, kinds = pd.factorize(values)
    return Codes(code.astype(np.int64) + 1, len(kinds) + 1)


class Rows:
    """Some rows of a table of episodes, column by column.

    A trial falls into hundreds of groups of a few rows; cutting a data frame into them costs
    fifty times as much as cutting its arrays, and a column that nobody reads is not cut at all.

    Args:
        columns: Arrays of shape (n,) by name; `quality` is float with NaN for what is missing,
            the others hold objects.
    """

    __slots__ = ("_columns",)

    def __init__(self, columns: Mapping[str, NDArray[Any] | _Column]) -> None:
        self._columns = {
            name: column if isinstance(column, _Column) else _Column(column)
            for name, column in columns.items()
        }

    @classmethod
    def of(cls, table: pd.DataFrame, names: Sequence[str] = _NEEDED) -> Self:
        """The columns of a table from `episodes_frame` that metrics read."""
        columns = {}
        for name in names:
            kind = np.float64 if name == "quality" else object
            columns[name] = table[name].to_numpy(dtype=kind)
        return cls(columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._columns[name].cells

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """Every column by name."""
        return {name: column.cells for name, column in self._columns.items()}

    def codes(self, name: str) -> Codes:
        """A column as numbers; rows cut from the same rows have the same numbers."""
        return self._columns[name].codes

    def missing(self, name: str) -> NDArray[np.bool_]:
        """Where a column holds None, NaN or pandas' NA, shape (n,)."""
        empty: NDArray[np.bool_] = self.codes(name).code == 0
        return empty

    def take(self, chosen: ArrayLike) -> Rows:
        """The rows of a mask or of a list of indices."""
        index = np.asarray(chosen)
        index = np.flatnonzero(index) if index.dtype == np.bool_ else index.astype(np.intp)
        return Rows({name: column.take(index) for name, column in self._columns.items()})

    def having(self, **columns: NDArray[Any]) -> Rows:
        """The same rows with further columns."""
        return Rows({**self._columns, **columns})

    def failing(self, chosen: NDArray[np.intp]) -> Rows:
        """The same rows, of which some are failures, whatever they are."""
        return self.ending(chosen, EndReason.FAILURE)

    def ending(self, chosen: NDArray[np.intp], end: EndReason) -> Rows:
        """The same rows, of which some are successes, or failures, whatever they are."""
        quality, success, reason = (
            self[name].copy() for name in ("quality", "success", "end_reason")
        )
        is_success = end is EndReason.SUCCESS
        quality[chosen], success[chosen], reason[chosen] = float(is_success), is_success, end.value
        return self.having(quality=quality, success=success, end_reason=reason)

    @property
    def apart(self) -> NDArray[np.bool_]:
        """Which rows are no repetition of their seed, whatever it is, shape (n,)."""
        return self._marked("apart")

    @property
    def left_out(self) -> NDArray[np.bool_]:
        """Which rows were left out, and have no partner, whatever their `pair_id` says."""
        return self._marked("left_out")

    def _marked(self, name: str) -> NDArray[np.bool_]:
        if name not in self._columns:
            return np.zeros(len(self), dtype=np.bool_)
        found: NDArray[np.bool_] = self[name]
        return found

    @property
    def scored(self) -> NDArray[np.bool_]:
        """Which rows have a quality, shape (n,)."""
        known: NDArray[np.bool_] = ~np.isnan(self["quality"])
        return known

    def scored_on(self, side: str) -> Rows:
        """Those of a side that have a quality."""
        return self.take((self["side"] == str(side)) & self.scored)

    @property
    def share_seeds(self) -> bool:
        """Whether some have one seed in common; not where one has none."""
        seeds = self.codes("seed").code
        return bool((seeds > 0).all()) and len(np.unique(seeds)) < len(seeds)

    @property
    def succeeded(self) -> NDArray[np.bool_]:
        """Which rows are strict successes, shape (n,)."""
        return is_true(self["success"])


def policy_faults(columns: Rows | pd.DataFrame) -> NDArray[np.intp]:
    """Which rows stand for episodes without a score that an error of the policy ended.

    Of several attempts at an episode that is the last one.

    Args:
        columns: A table from `episodes_frame`, or rows of it.
    """
    names, end = np.asarray(columns["base_id"]), np.asarray(columns["end_reason"])
    by_policy = np.asarray(columns["fault_by"]) == FaultBy.POLICY.value
    faults = np.flatnonzero(by_policy & (end == EndReason.FAULT.value))
    if not len(faults):
        return faults
    is_scored = ~np.isnan(np.asarray(columns["quality"], dtype=np.float64))
    scored = set(names[is_scored].tolist())
    last = {name: row for row in faults if (name := names[row]) not in scored}
    return np.array(sorted(last.values()), dtype=np.intp)


def is_true(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Where a column of True, False and None holds True."""
    return np.asarray(values == True, dtype=np.bool_)  # noqa: E712 - by element


def main_rows(table: pd.DataFrame, *more: str) -> Rows:
    """The rows of the main arm, each with a family, of a table from `episodes_frame`.

    Args:
        table: The table.
        more: Columns beside those that metrics read.
    """
    rows = Rows.of(table, (*_NEEDED, *more)).take(
        (table["arm"] == Arm.MAIN.value).to_numpy(dtype=bool)
    )
    has_family = ~(rows.missing("family") | (rows["family"] == ""))
    return rows.having(family=np.where(has_family, rows["family"], rows["task"]))


def numbered(rows: Rows, by: Sequence[str]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Number the groups of rows that agree in some columns, in the order they appear.

    Returns:
        Number of the group of each row, shape (n,); first row of each group, shape (groups,).
    """
    import pandas as pd

    code = np.zeros(len(rows), dtype=np.int64)
    size = 1
    for name in by:
        found, kinds = rows.codes(name)
        if size * kinds >= _MANY:
            code, distinct = pd.factorize(code)
            size = len(distinct)
            if size * kinds >= _MANY:
                found, distinct = pd.factorize(found)
                kinds = len(distinct)
        code, size = code * kinds + found, size * kinds
    group, distinct = pd.factorize(code)
    first = np.full(len(distinct), len(rows), dtype=np.intp)
    # Written from the last row to the first, so that the first stays.
    first[group[::-1]] = np.arange(len(rows))[::-1]
    return group, first


def groups(rows: Rows, by: Sequence[str]) -> dict[tuple[Any, ...], Rows]:
    """Rows by the values of some columns, missing values being values like any other."""
    group, first = numbered(rows, by)
    members = split_by(group, len(first))
    named = rows.take(first)
    keys = zip(*(named[name].tolist() for name in by), strict=True)
    return {key: rows.take(own) for key, own in zip(keys, members, strict=True)}


def split_by(group: NDArray[np.integer[Any]], size: int) -> list[NDArray[np.intp]]:
    """Indices of the rows of each group 0, 1, ..., size - 1, in order."""
    small = group.astype(np.uint16) if size < 2**16 else group  # sorted in linear time
    order = np.argsort(small, kind="stable")
    return np.split(order, np.cumsum(np.bincount(group, minlength=size))[:-1]) if size else []


def means_by(
    group: NDArray[np.integer[Any]], values: NDArray[np.float64], size: int
) -> NDArray[np.float64]:
    """Mean of the values of each group, shape (size,); each group needs a value.

    Sums are taken in ascending order of the values, so the order of the rows changes nothing, not
    even in the last digit.
    """
    order = np.argsort(values, kind="stable")
    order = order[np.argsort(group[order], kind="stable")]
    counts = np.bincount(group, minlength=size)
    start = np.cumsum(counts) - counts
    ascending = values[order]
    means = np.empty(size)
    for count in np.unique(counts):
        own = np.flatnonzero(counts == count)
        means[own] = ascending[start[own][:, None] + np.arange(count)].mean(axis=1)
    return means


def places_of(rows: Rows, names: NDArray[Any]) -> NDArray[np.intp]:
    """Row of `rows` that has each name as its `base_id`, -1 where none has, shape (n,)."""
    import pandas as pd

    known = pd.Index(rows["base_id"], dtype=object)
    places: NDArray[np.intp] = known.get_indexer(pd.Index(names, dtype=object))
    return places


def matched_pairs(one: Rows, other: Rows) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows that carry the same `pair_id`, cut from the same rows, such as those of two sides.

    Returns:
        Indices into `one`, ascending, and into `other`, each of shape (pairs,). Where `other` has
        several rows of a pair, the last.
    """
    number, size = other.codes("pair_id")
    place = np.full(size, -1, dtype=np.intp)
    place[number] = np.arange(len(other))
    place[0] = -1  # no pair at all
    partners = place[one.codes("pair_id").code]
    mine = np.flatnonzero(partners >= 0)
    return mine, partners[mine]


def sort_key(key: Iterable[Any]) -> tuple[tuple[bool, str, Any], ...]:
    """Orders keys whose parts may be missing, missing parts first."""
    return tuple(
        (part is not None, type(part).__name__, 0 if part is None else part) for part in key
    )


def order_of(values: NDArray[Any]) -> NDArray[np.intp]:
    """Indices that put values in the order of `sort_key`."""
    if set(map(type, values)) == {int}:
        try:
            return np.argsort(values.astype(np.int64), kind="stable")
        except OverflowError:
            pass
    keys = [sort_key((value,)) for value in values]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.intp)
