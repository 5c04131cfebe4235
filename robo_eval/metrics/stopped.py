"""What the stopping rule of a plan says of a table of episodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robo_eval.core.kinds import EndReason
from robo_eval.core.series import Series, series_of, shortened

if TYPE_CHECKING:
    import pandas as pd

    from robo_eval.core.plan import TrialPlan


def series_of_table(table: pd.DataFrame, plan: TrialPlan | None) -> Series | None:
    """`core.series.series_of` of a table from `episodes_frame`; None without a plan or rule."""
    if plan is None or plan.stopping is None:
        return None
    attempts: dict[str, list[EndReason]] = {}
    rows = table.sort_values("attempt", kind="stable")
    for name, reason in zip(rows["base_id"], rows["end_reason"], strict=True):
        attempts.setdefault(name, []).append(EndReason(reason))
    return series_of(plan, attempts)


def plan_as_played(table: pd.DataFrame, plan: TrialPlan) -> TrialPlan:
    """The plan without the episodes that its stopping rule left out."""
    return shortened(plan, series_of_table(table, plan))
