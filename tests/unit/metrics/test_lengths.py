"""Tests of how long episodes last: the line, the median, and how sure both are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from robo_eval.core.estimate import Estimate
from robo_eval.metrics.lengths import Lengths, lengths_of

SHARE = Estimate(value=0.5, low=0.1, high=0.9, n=4, method="clopper_pearson", unit="ratio")


def rows_of(
    length: list[float], *, failed: list[bool] | None = None, conditions: int = 1
) -> pd.DataFrame:
    """Episodes of one policy; with several conditions each seed is played in all of them."""
    n = len(length)
    level = np.arange(n) % conditions
    return pd.DataFrame(
        {
            "duration_s": length,
            "success": [False] * n if failed is None else [not it for it in failed],
            "seed": 1000 + np.arange(n) // conditions,
            "side": "sim",
            "task": "T-v0",
            "family": "",
            "task_variant": "",
            "profile": "paper",
            "level": level,
            "difficulty": "easy",
        }
    )


def lengths(rows: pd.DataFrame, *, end_s: float = 0.0) -> Lengths:
    found = lengths_of(rows, "p", never_failed=SHARE, end_s=end_s)
    assert found is not None
    return found


def test_the_line_falls_only_where_episodes_fail() -> None:
    rows = rows_of([1.0, 2.0, 4.0, 4.0], failed=[True, True, False, False])
    found = lengths(rows)
    assert list(found.time_s) == [0.0, 1.0, 2.0, 4.0]
    assert list(found.unfailed) == [1.0, 0.75, 0.5, 0.5]
    assert found.median_s.value == 3.0
    assert found.never_failed is SHARE
    longer = lengths(rows, end_s=6.0)
    assert (longer.time_s[-1], longer.unfailed[-1]) == (6.0, 0.5)
    assert lengths_of(rows.iloc[:0], "p", never_failed=SHARE) is None


def test_each_share_of_the_line_has_its_exact_interval() -> None:
    found = lengths(rows_of([float(i + 1) for i in range(10)]))
    # 1 of 10 failed: Clopper-Pearson 0.0025 to 0.4450 of failures.
    assert found.ranges[1] == pytest.approx((0.5550, 0.9975), abs=1e-4)
    assert found.ranges[0] is None
    assert len(found.ranges) == len(found.time_s) == len(found.unfailed)


@pytest.mark.parametrize(("n", "first", "last"), [(6, 1, 6), (10, 2, 9), (20, 6, 15), (25, 8, 18)])
def test_the_interval_of_a_median_lies_between_the_known_order_statistics(
    n: int, first: int, last: int
) -> None:
    """Ranks as tabulated for the sign test at 95 %, e.g. Conover (1999), table A3."""
    median = lengths(rows_of([float(i) for i in range(1, n + 1)])).median_s
    assert (median.low, median.high, median.n) == (first, last, n)
    assert median.value == (n + 1) / 2


def test_too_few_episodes_give_a_reason_in_place_of_an_interval() -> None:
    median = lengths(rows_of([1.0, 2.0, 3.0, 4.0, 5.0])).median_s
    assert (median.value, median.low, median.high) == (3.0, None, None)
    assert median.reason == "too few episodes to bound a median"


def test_seeds_that_are_shared_count_once_each() -> None:
    """Sixty episodes of three seeds, alike within a seed, are three observations, not sixty."""
    alike = [float(1 + seed) for seed in range(3) for _ in range(20)]
    few = lengths(rows_of(alike, conditions=20)).median_s
    assert (few.value, few.low, few.reason) == (2.0, None, "too few seeds to bound a median")
    alone = lengths(rows_of(alike)).median_s  # the same lengths, each of a seed of its own
    assert alone.low == alone.high == 2.0
    one = lengths(rows_of([1.0, 2.0, 3.0], conditions=3)).median_s
    assert one.reason is not None
    assert "one seed" in one.reason


def test_a_median_at_the_full_length_does_not_pass_it() -> None:
    length = [4.0] * 9 + [1.0]
    found = lengths(rows_of(length, failed=[False] * 9 + [True])).median_s
    assert (found.value, found.low, found.high) == (4.0, 4.0, 4.0)


def test_unknown_lengths_are_counted_and_never_0() -> None:
    found = lengths(rows_of([1.0, float("nan"), 3.0, 4.0]))
    assert (found.n, found.n_unknown) == (3, 1)
    assert found.median_s.value == 3.0
    nothing = lengths(rows_of([float("nan")] * 3))
    assert (nothing.n, nothing.n_unknown, list(nothing.time_s)) == (0, 3, [])
    assert (nothing.median_s.value, nothing.median_s.reason) == (None, "not recorded")


@pytest.mark.slow
def test_the_interval_of_a_median_covers_what_it_promises() -> None:
    """Lengths of five seeds in thirty conditions, alike within a seed; the true median is 1."""
    rng = np.random.default_rng(7)
    hits = []
    for _ in range(60):
        start = rng.normal(0.0, 0.5, (5, 1))
        length = np.exp(start + rng.normal(0.0, 0.5, (5, 30))).ravel()
        median = lengths(rows_of(length.tolist(), conditions=30)).median_s
        assert median.low is not None
        assert median.high is not None
        hits.append(median.low <= 1.0 <= median.high)
    assert np.mean(hits) >= 0.88  # 95 % less what sixty draws may miss
