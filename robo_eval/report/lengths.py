"""How long the episodes of each policy last."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from robo_eval.report.model import Lengths

_MAX_STEPS: Final = 400
"""A line of more steps than the page has pixels says nothing more."""


def lengths_of(rows: pd.DataFrame, label: str, *, end_s: float = 0.0) -> Lengths | None:
    """Share of episodes that have not failed after each time, and the median length.

    Args:
        rows: Main episodes of one policy with a score.
        label: Name shown.
        end_s: Up to where the line is drawn at least, seconds.

    Returns:
        A step function from 1 at time 0; None without episodes.
    """
    if rows.empty:
        return None
    duration = rows["duration_s"].to_numpy(dtype=np.float64)
    failed = np.sort(duration[~rows["success"].to_numpy(dtype=bool)])
    times = np.unique(failed)
    if len(times) > _MAX_STEPS:
        times = times[np.linspace(0, len(times) - 1, _MAX_STEPS).astype(int)]
    lost = np.searchsorted(failed, times, side="right")
    end = max(end_s, float(duration.max()))
    time_s = [0.0, *times.tolist()]
    unfailed = [1.0, *(1.0 - lost / len(duration)).tolist()]
    if time_s[-1] < end:
        time_s.append(end)
        unfailed.append(unfailed[-1])
    return Lengths(
        policy=label,
        time_s=[round(value, 6) for value in time_s],
        unfailed=[round(value, 6) for value in unfailed],
        median_s=float(np.median(duration)),
        n=len(duration),
    )
