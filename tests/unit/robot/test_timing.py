"""Missed ticks and periods of an episode, also when the driver's clock is set."""

from __future__ import annotations

import pytest

from robo_eval_robot.snapshot import Snapshot
from robo_eval_robot.timing import Timing

NS = 1_000_000_000


def missed(*seen: tuple[float, float]) -> float:
    """Missed ticks of states with these stamps and arrivals, both in ticks of 20 ms."""
    timing = Timing(0.02)
    for stamp, arrival in seen:
        timing.observed(
            Snapshot(stamp_ns=round(stamp * 0.02 * NS), received_s=arrival * 0.02, joints={})
        )
    return timing.as_measures()["missed_ticks"]


@pytest.mark.parametrize("hours", [-1.0, 1.0])
def test_a_clock_that_is_set_misses_no_tick(hours: float) -> None:
    jump = hours * 3600.0 / 0.02
    assert missed((100, 0), (101, 1), (102 + jump, 2), (103 + jump, 3)) == 0
    assert missed((100, 0), (102 + jump, 4)) == 3


def test_lost_states_are_told_from_late_ones() -> None:
    assert missed((100, 0.0), (101, 1.9), (102, 2.0)) == 0  # late, and then two at once
    assert missed((100, 0.0), (103, 3.0)) == 2
    assert missed((100, 0.0), (150, 50.0)) == 49
