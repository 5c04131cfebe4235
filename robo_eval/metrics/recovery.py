"""How often a robot recovers by itself from faults it should recover from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from robo_eval import formulas
from robo_eval.core.errors import InputError
from robo_eval.core.estimate import Estimate
from robo_eval.metrics.frame import is_missing

if TYPE_CHECKING:
    import pandas as pd

FAULTS: Final = (
    "grasp_slip",
    "occlusion",
    "planner_dead_end",
    "localisation_loss",
    "object_displaced",
    "minor_collision_stop",
)
"""Faults a robot should recover from; the list is this project's choice beyond the first three."""
NO_FAULTS: Final = "no record of faults"
METHOD: Final = "clopper_pearson"
_NEEDED: Final = ("fault", "recovered")


def recovery_autonomy(faults: pd.DataFrame, *, level: float = 0.95) -> Estimate:
    """Recovery autonomy RA: share of recoverable faults the robot recovered from by itself.

    Args:
        faults: One row per fault. Columns: `fault` (its name); `recovered` (true or false);
            optional `recovered_by` (`robot` or somebody else: only recoveries by the robot count)
            and `recoverable` (false leaves the fault out).
        level: Coverage of the interval.

    Returns:
        The share with a Clopper-Pearson interval; no value if no recoverable fault was seen: then
        inject some.

    Raises:
        InputError: If a column is missing, or a cell is not what its column allows; the message
            names row and column.

    References:
        Chojecki (2025), arXiv:2511.13411, section 7. Clopper and Pearson (1934), Biometrika
        26:404-413.
    """
    outcomes = [outcome for outcomes in _outcomes(faults).values() for outcome in outcomes]
    return _share(outcomes, level)


def recovery_by_fault(faults: pd.DataFrame, *, level: float = 0.95) -> dict[str, Estimate]:
    """Recovery autonomy for each kind of fault; see `recovery_autonomy`."""
    return {name: _share(outcomes, level) for name, outcomes in sorted(_outcomes(faults).items())}


def _share(outcomes: list[bool], level: float) -> Estimate:
    found = formulas.recovery_autonomy(sum(outcomes), len(outcomes), conf=level)
    if found["ra"] is None:
        return Estimate.missing(
            reason="no recoverable fault was seen; inject some", unit="ratio", method=METHOD
        )
    return Estimate(
        value=found["ra"],
        low=found["lower"],
        high=found["upper"],
        level=level,
        n=len(outcomes),
        method=METHOD,
        unit="ratio",
    )


def _outcomes(faults: pd.DataFrame) -> dict[str, list[bool]]:
    """By kind of fault, whether the robot itself recovered from each recoverable one."""
    missing = [column for column in _NEEDED if column not in faults.columns]
    if missing:
        raise InputError(
            f"faults table: column {missing[0]!r} is missing; it needs {' and '.join(_NEEDED)}"
        )
    found: dict[str, list[bool]] = {}
    for row, cells in enumerate(faults.to_dict(orient="records")):
        name = cells["fault"]
        if is_missing(name) or not str(name):
            raise InputError(f"faults table: row {row}, column 'fault' is empty; it needs a name")
        if not _truth(cells.get("recoverable", True), row, "recoverable"):
            continue
        recovered = _truth(cells["recovered"], row, "recovered")
        by = cells.get("recovered_by")
        by_itself = is_missing(by) or str(by) == "robot"
        found.setdefault(str(name), []).append(recovered and by_itself)
    return found


def _truth(value: object, row: int, column: str) -> bool:
    if is_missing(value) or value not in (True, False):
        raise InputError(
            f"faults table: row {row}, column {column!r} is {value!r:.40}; it must be true or false"
        )
    return bool(value)
