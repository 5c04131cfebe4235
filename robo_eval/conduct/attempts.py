"""The attempts of a table as arrays, and how some of them become a deviation."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.kinds import EndReason
from robo_eval.metrics.deviation import Deviation

if TYPE_CHECKING:
    import pandas as pd

FEW: Final = 5
"""Episodes a deviation names."""
NO_REASON: Final = "no reason given"


class AttemptTable:
    """The rows of a table, column by column.

    Args:
        table: A table from `episodes_frame`.

    Attributes:
        ids: Episode ids, shape (n,).
        base_ids: Names of the planned episodes, whatever the attempt.
        numbers: Number of the attempt, from 1.
        sides: Where each was played.
        ends: Why each ended.
        starts: When each started, ns UTC; NaN where that is not known.
    """

    def __init__(self, table: pd.DataFrame) -> None:
        import pandas as pd

        self.table: Final = table
        self.ids: Final = self.column("episode_id")
        self.base_ids: Final = self.column("base_id")
        self.numbers: Final = table["attempt"].to_numpy(dtype=np.int64)
        self.sides: Final = self.column("side")
        self.ends: Final = self.column("end_reason")
        known = pd.to_numeric(table["start_ns"], errors="coerce")
        starts = known.to_numpy(dtype=np.float64, na_value=np.nan)
        # A row that was restored without a time says 0.
        self.starts: Final = np.where(starts > 0.0, starts, np.nan)

    def __len__(self) -> int:
        return len(self.ids)

    def column(self, name: str) -> NDArray[np.object_]:
        """The cells of a column."""
        cells: NDArray[np.object_] = self.table[name].to_numpy(dtype=object)
        return cells

    def on(self, side: str) -> NDArray[np.bool_]:
        """Where attempts were played on a side."""
        return np.asarray(self.sides == side, dtype=np.bool_)

    def ended(self, *reasons: EndReason) -> NDArray[np.bool_]:
        """Where attempts ended for one of some reasons."""
        found = np.zeros(len(self), dtype=np.bool_)
        for reason in reasons:
            found |= np.asarray(self.ends == reason.value, dtype=np.bool_)
        return found

    def details(self, rows: NDArray[np.intp]) -> list[str]:
        """What the log says of the ends of some attempts."""
        return [str(text) if text else NO_REASON for text in self.column("end_detail")[rows]]

    def deviation(
        self,
        kind: str,
        rows: NDArray[np.intp],
        *,
        side: str = "",
        count: int | None = None,
        reasons: Iterable[str] = (),
        text: str = "",
    ) -> Deviation:
        """A deviation that some attempts are.

        Args:
            kind: Which.
            rows: Indices of the attempts.
            side: Where; empty for the whole trial.
            count: How many, if not one an attempt.
            reasons: Why, one an attempt.
            text: What else there is to say.
        """
        starts = self.starts[rows]
        known = starts[~np.isnan(starts)]
        return Deviation(
            kind=kind,
            side=side,
            count=len(rows) if count is None else count,
            reasons=tallied(reasons),
            text=text,
            episodes=self._earliest(rows),
            first_ns=int(known.min()) if len(known) else None,
            last_ns=int(known.max()) if len(known) else None,
        )

    def _earliest(self, rows: NDArray[np.intp]) -> tuple[str, ...]:
        """Ids of the first few attempts by their start; by their name where that is not known."""
        starts = self.starts[rows]
        starts = np.where(np.isnan(starts), np.inf, starts)
        if len(rows) > FEW:
            is_early = starts <= np.partition(starts, FEW - 1)[FEW - 1]
            rows, starts = rows[is_early], starts[is_early]
        first = heapq.nsmallest(FEW, zip(starts.tolist(), self.ids[rows].tolist(), strict=True))
        return tuple(str(name) for _, name in first)


def tallied(reasons: Iterable[str]) -> Mapping[str, int]:
    """How often each reason is given, the most frequent first."""
    counts = Counter(reasons)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def is_missing(cells: NDArray[Any]) -> NDArray[np.bool_]:
    """Where cells hold None, NaN or NA."""
    import pandas as pd

    return np.asarray(pd.isna(cells), dtype=np.bool_)
