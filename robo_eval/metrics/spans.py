"""When the episodes of a table began and ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

SLACK_NS: Final = 10**9
"""Clocks of people and robots may differ by so much."""


def spans_ns(rows: pd.DataFrame) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Start and end of each row in ns UTC, NaN where they are not known.

    Floats of this size are good to a microsecond, which is far less than the slack of clocks.
    """
    import pandas as pd

    starts = pd.to_numeric(rows["start_ns"], errors="coerce").to_numpy(np.float64, na_value=np.nan)
    lengths = np.fmax(
        rows["duration_s"].to_numpy(dtype=np.float64), rows["exposure_s"].to_numpy(dtype=np.float64)
    )
    return starts, starts + lengths * 1e9
