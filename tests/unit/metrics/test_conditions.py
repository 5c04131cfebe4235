"""Tests of success by condition on a robot and in simulation."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.frame import episodes_frame
from robo_eval.metrics.pairs import ConditionRates, by_condition
from robo_eval.metrics.tables import main_rows
from robo_eval.stats.proportions import clopper_pearson_interval


def episode(
    side: str, number: int, level: int | None, success: bool | None, pair: str | None
) -> Any:
    end = {True: "success", False: "failure", None: "fault"}[success]
    return {
        "episode_id": f"{side}-{level}-{number}",
        "side": side,
        "task": "push",
        "policy": "ours",
        "level": level,
        "quality": None if success is None else float(success),
        "success": success,
        "end_reason": end,
        "pair_id": pair,
    }


def found_in(rows: list[Any], side: str = "real") -> tuple[ConditionRates, ...]:
    table = main_rows(episodes_frame(pd.DataFrame(rows)))
    return by_condition(table, side, MetricConfig())


def paired(level: int, real: list[bool | None], sim: list[bool | None]) -> list[Any]:
    rows = []
    for i, (one, other) in enumerate(zip(real, sim, strict=True)):
        rows.append(episode("real", i, level, one, f"{level}-{i}"))
        rows.append(episode("sim", i, level, other, f"{level}-{i}"))
    return rows


def test_only_pairs_scored_on_both_sides_count() -> None:
    rows = paired(3, [True, True, None, False], [True, False, True, None])
    rows += paired(0, [True, False], [True, True])
    rows.append(episode("sim", 9, 3, success=True, pair="alone"))
    first, second = found_in(rows)
    assert (first.at.level, second.at.level) == (0, 3)
    assert (first.physical.value, first.sim.value, first.physical.n) == (0.5, 1.0, 2)
    assert (second.physical.value, second.sim.value, second.sim.n) == (1.0, 0.5, 2)
    assert first.is_paired
    low, high = clopper_pearson_interval(1, 2)
    assert (first.physical.low, first.physical.high) == (low, high)
    assert (first.at.task, first.at.difficulty) == ("push", None)


def test_without_pairs_each_side_counts_all_it_has() -> None:
    rows = [episode("real", i, 0, i > 0, None) for i in range(4)]
    rows += [episode("sim", i, 0, i > 1, None) for i in range(8)]
    rows += [episode("sim", i, 5, success=True, pair=None) for i in range(3)]
    (only,) = found_in(rows)
    assert not only.is_paired
    assert (only.physical.value, only.physical.n) == (0.75, 4)
    assert (only.sim.value, only.sim.n) == (0.75, 8)


@pytest.mark.parametrize("side", ["real", "twin"])
def test_the_other_physical_side_has_no_part(side: str) -> None:
    rows = paired(0, [True, False], [True, True])
    found = found_in(rows, side)
    assert len(found) == (side == "real")


def test_the_order_of_the_rows_changes_nothing() -> None:
    rows = paired(3, [True, False, True], [True, True, False]) + paired(0, [True], [False])
    assert found_in(rows) == found_in(rows[::-1])
