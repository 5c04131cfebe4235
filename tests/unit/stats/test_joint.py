import tracemalloc

import numpy as np
import pytest

from robo_eval.stats import _resample
from robo_eval.stats._resample import distinct_rows, resampled_means
from robo_eval.stats.joint import joint_intervals, sim_real_intervals
from robo_eval.stats.paired import bonett_price_interval
from robo_eval.stats.proportions import wilson_interval


def pairs_of(n, rng):
    table = rng.multinomial(1, [0.7, 0.12, 0.03, 0.15], size=n).argmax(axis=1)
    return np.isin(table, (0, 1)).astype(float), np.isin(table, (0, 2)).astype(float)


def test_equal_rows_are_counted():
    rng = np.random.default_rng(0)
    table = rng.integers(0, 3, (500, 3)).astype(float)
    rows = distinct_rows(table)
    values, counts = np.unique(table, axis=0, return_counts=True)
    np.testing.assert_array_equal(rows.values, values)
    np.testing.assert_array_equal(rows.counts, counts)


def test_resampled_means_have_the_right_spread():
    rng = np.random.default_rng(1)
    few = rng.integers(0, 2, (400, 2)).astype(float)  # drawn by counts
    many = rng.normal(size=(400, 2))  # drawn one by one
    for table in (few, many):
        means = resampled_means(distinct_rows(table), 20_000, rng)
        np.testing.assert_allclose(means.mean(axis=0), table.mean(axis=0), atol=0.002)
        np.testing.assert_allclose(np.cov(means.T), np.cov(table.T, ddof=0) / 400, atol=1.5e-4)


def test_all_statistics_see_the_same_resamples():
    s, r = pairs_of(60, np.random.default_rng(2))
    seen = []

    def note(means):
        seen.append(means)
        return means[:, 0]

    joint_intervals(np.column_stack([s, r]), [note, note])
    np.testing.assert_array_equal(seen[1], seen[3])


def test_difference_knows_that_sides_are_paired():
    s, r = pairs_of(300, np.random.default_rng(3))
    (paired,) = joint_intervals(np.column_stack([s, r]), [lambda m: m[:, 0] - m[:, 1]])
    half = 1.96 * (s - r).std() / 300**0.5
    assert paired.low == pytest.approx((s - r).mean() - half, abs=0.01)
    assert paired.high == pytest.approx((s - r).mean() + half, abs=0.01)


def test_outcomes_have_the_intervals_that_are_better_than_a_bootstrap():
    s, r = pairs_of(50, np.random.default_rng(4))
    found = sim_real_intervals(s, r, safety=0.9)
    assert (found.sim.low, found.sim.high) == wilson_interval(int(s.sum()), 50)
    assert (found.real.low, found.real.high) == wilson_interval(int(r.sum()), 50)
    b, c = int((s > r).sum()), int((s < r).sum())
    assert (found.difference.low, found.difference.high) == bonett_price_interval(b, c, 50)
    assert found.agreement.method == "bonett_price_folded"
    assert found.index.method == "joint_bootstrap_percentile"
    assert found.ratio.low < found.ratio.value < found.ratio.high


def test_agreement_has_the_folded_interval_of_the_difference():
    straddles = sim_real_intervals([1, 0] * 30, [1, 0] * 29 + [0, 1])
    assert straddles.agreement.value == 1.0
    assert straddles.agreement.high == 1.0
    assert straddles.agreement.low == pytest.approx(
        1 - max(-straddles.difference.low, straddles.difference.high)
    )
    apart = sim_real_intervals([1] * 60, [0] * 30 + [1] * 30)
    assert apart.agreement.high == pytest.approx(1 - apart.difference.low)
    assert apart.agreement.low == pytest.approx(1 - apart.difference.high)
    below = sim_real_intervals([0] * 30 + [1] * 30, [1] * 60)
    assert below.agreement.low == pytest.approx(apart.agreement.low)


def test_index_may_reach_what_full_agreement_would_give():
    """The difference is not told from 0, so the upper end is that of an agreement of 1."""
    s, r = [1] * 45 + [0] * 5, [1] * 43 + [0] * 4 + [1] + [0] * 2
    found = sim_real_intervals(s, r, safety=1.0)
    assert found.difference.low < 0.0 < found.difference.high
    (upper,) = joint_intervals(np.column_stack([s, r]), [lambda m: np.cbrt(m[:, 1])])
    assert found.index.high == pytest.approx(upper.high)
    assert found.index.value < np.cbrt(np.mean(r))


def test_qualities_and_clusters_are_bootstrapped():
    rng = np.random.default_rng(5)
    sim = rng.random(80)
    real = np.clip(sim - 0.05 + rng.normal(0, 0.05, 80), 0, 1)
    plain = sim_real_intervals(sim, real, safety=0.9)
    assert plain.difference.method == "joint_bootstrap_percentile"
    assert plain.difference.low < 0.05 < plain.difference.high
    tasks = np.repeat(np.arange(5), 16)
    clustered = sim_real_intervals(sim, real, safety=0.9, clusters=tasks)
    assert clustered.real.method == "two_stage_joint_bootstrap_percentile"
    assert clustered.real.reason == "5 clusters; with fewer than 8 it can cover less than it says"
    assert clustered.index.reason == clustered.agreement.reason == clustered.real.reason
    means = np.mean([real[tasks == t].mean() for t in range(5)])
    assert clustered.real.value == pytest.approx(means)
    one = sim_real_intervals(sim, real, clusters=np.zeros(80))
    assert one.real.reason == "one cluster says nothing about clusters like it"
    assert one.agreement.reason == one.real.reason


def test_clusters_count_alike_whatever_their_size():
    sim = [1.0] * 90 + [0.0] * 10
    found = sim_real_intervals(sim, sim, clusters=["big"] * 90 + ["small"] * 10)
    assert found.sim.value == pytest.approx(0.5)


def test_what_does_not_exist_has_no_value_and_a_reason():
    failed = sim_real_intervals([0] * 20, [0] * 20, safety=0.9)
    assert (failed.ratio.value, failed.ratio.reason) == (
        None,
        "undefined for these observations",
    )
    assert failed.index.value == 0.0
    assert failed.agreement.value == 1.0
    no_safety = sim_real_intervals([1] * 20, [1] * 20)
    assert (no_safety.index.value, no_safety.index.reason) == (None, "safety was not measured")
    few = sim_real_intervals([1, 1, 0, 1], [1, 0, 0, 1], safety=1.0)
    assert few.index.reason == "4 rows; a bootstrap needs 5"
    assert few.index.value is not None
    assert few.agreement.low is not None  # from the exact counts, not from resamples
    full = sim_real_intervals([1] * 20, [1] * 20, safety=1.0)
    assert full.index.reason == "every resample gives the same value"
    assert full.agreement.low < 1.0
    rare = sim_real_intervals([1] + [0] * 19, [1] + [0] * 19)
    assert rare.ratio.value == pytest.approx(1.0)
    assert "of the resamples" in rare.ratio.reason


def test_a_million_pairs_cost_no_more_memory_than_they_take():
    s, r = pairs_of(1_000_000, np.random.default_rng(6))
    tracemalloc.start()
    found = sim_real_intervals(s, r, safety=0.9, resamples=2000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 300e6
    assert found.index.high - found.index.low < 0.01


def test_work_done_in_blocks_is_as_wide(monkeypatch):
    rng = np.random.default_rng(7)
    table = np.column_stack([rng.random(60), rng.random(60)])
    statistic = [lambda means: means[:, 0] - means[:, 1]]
    (whole,) = joint_intervals(table, statistic, resamples=10_000)
    monkeypatch.setattr(_resample, "_MAX_CELLS", 500)
    (parts,) = joint_intervals(table, statistic, resamples=10_000)
    assert (parts.low, parts.high) == pytest.approx((whole.low, whole.high), abs=0.006)


def test_impossible_pairs_are_refused():
    with pytest.raises(ValueError, match="sim and real must be of equal length, given 2 and 1"):
        sim_real_intervals([1, 0], [1])
    with pytest.raises(ValueError, match="no rows; there is nothing to resample"):
        sim_real_intervals([], [])
    with pytest.raises(ValueError, match=r"outcomes must be between 0 and 1, given 1\.5"):
        sim_real_intervals([1.5], [1])
    with pytest.raises(ValueError, match="safety must be between 0 and 1, given 2"):
        sim_real_intervals([1], [1], safety=2)
    with pytest.raises(ValueError, match=r"shape \(2,\), given \(3,\)"):
        sim_real_intervals([1, 0], [1, 0], clusters=[1, 2, 3])
    with pytest.raises(ValueError, match=r"columns must have shape \(n, d\), given \(2,\)"):
        joint_intervals([1, 0], [])
