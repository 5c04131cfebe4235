"""How much work a robot does for its money."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from robo_eval.core.errors import InputError
from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Arm, Side
from robo_eval.core.names import unknown_name
from robo_eval.formulas import poisson_rate_ci
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.frame import episodes_frame

if TYPE_CHECKING:
    import pandas as pd

ITEMS: Final = ("energy", "wear", "consumables", "operator")
"""Items of a price card, each in currency units per hour of exposure."""
_SECONDS: Final = 3600.0
_METHOD: Final = "garwood"
UNIT: Final = "tasks/currency unit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """What an hour brings and costs.

    Attributes:
        per_cost: Successful episodes per currency unit.
        per_hour: Successful episodes per hour of exposure.
        hours: Hours of exposure.
        successes: Episodes at target quality.
        cost_per_hour: Currency units an hour costs.
        items: The same by item of the price card.
        currency: Name of the currency.
    """

    per_cost: Estimate
    per_hour: Estimate
    hours: float
    successes: int
    cost_per_hour: float
    items: dict[str, float]
    currency: str = ""


def physical_throughput(episodes: pd.DataFrame, price_card: Mapping[str, float]) -> Estimate:
    """Successful real episodes per currency unit; see `itemised_throughput`."""
    return itemised_throughput(episodes, price_card).per_cost


def itemised_throughput(
    episodes: pd.DataFrame, price_card: Mapping[str, float], *, level: float = 0.95
) -> Throughput:
    """Successful real episodes per hour and per currency unit, itemised.

    Args:
        episodes: Episodes with the columns of `core.episode.COLUMNS`; those on side `real` count,
            with their `exposure_s`.
        price_card: Currency units per hour of exposure, by item: `energy`, `wear`, `consumables`,
            `operator`; absent is 0.
        level: Coverage of the intervals, Garwood's of the rate of successes.

    Raises:
        InputError: If the table is not as described, an item unknown, or a price negative.

    References:
        Chojecki (2025), arXiv:2511.13411, section 7.
    """
    items = {name: _price(name, value) for name, value in price_card.items()}
    table = episodes_frame(episodes)
    return _of_rows(table[table["side"] == Side.REAL.value], items, "", level)


def throughput_of(frame: pd.DataFrame, config: MetricConfig) -> Throughput | None:
    """`itemised_throughput` of checked rows of one body; None without a price card.

    Args:
        frame: Rows of a table from `episodes_frame`, of one policy on one physical side.
        config: Settings.
    """
    if config.price_card is None:
        return None
    return _of_rows(frame, dict(config.price_card), config.currency, config.level)


def _of_rows(
    rows: pd.DataFrame, items: dict[str, float], currency: str, level: float
) -> Throughput:
    real = rows[rows["arm"] == Arm.MAIN.value]
    known = real[real["exposure_s"].notna() & (real["exposure_s"] > 0.0)]
    hours = math.fsum(known["exposure_s"]) / _SECONDS
    successes = sum(value is True for value in known["success"])
    cost = math.fsum(items.values())
    bounds = poisson_rate_ci(successes, hours, conf=level)
    low, high = bounds["lower_per_h"], bounds["upper_per_h"]
    if low is None or high is None:
        none = "no exposure of a robot was logged"
        per_hour = Estimate.missing(reason=none, unit="tasks/h", method=_METHOD)
        per_cost = Estimate.missing(reason=none, unit=UNIT, method=_METHOD)
    else:
        per_hour = _estimate(successes / hours, low, high, successes, "tasks/h", level)
        per_cost = (
            _estimate(successes / hours / cost, low / cost, high / cost, successes, UNIT, level)
            if cost > 0.0
            else Estimate.missing(
                reason="the price card is 0 per hour", unit=UNIT, n=successes, method=_METHOD
            )
        )
    return Throughput(
        per_cost=per_cost,
        per_hour=per_hour,
        hours=hours,
        successes=successes,
        cost_per_hour=cost,
        items=items,
        currency=currency,
    )


def _estimate(value: float, low: float, high: float, n: int, unit: str, level: float) -> Estimate:
    return Estimate(value=value, low=low, high=high, level=level, n=n, method=_METHOD, unit=unit)


def _price(name: str, value: float) -> float:
    if name not in ITEMS:
        raise unknown_name("item", name, ITEMS)
    if not (math.isfinite(value) and value >= 0.0):
        raise InputError(f"price card: {name} is {value!r}; it must be a number of at least 0")
    return float(value)
