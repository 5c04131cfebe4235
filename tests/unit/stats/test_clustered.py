import numpy as np
import pytest

from robo_eval.stats import _resample, clustered
from robo_eval.stats.clustered import two_stage_mean_interval, two_stage_rate_interval


def by_loops(samples, resamples, rng):
    """Two stages, one index at a time."""
    means = []
    for _ in range(resamples):
        chosen = [samples[i] for i in rng.integers(0, len(samples), len(samples))]
        means.append(np.mean([rng.choice(x, len(x)).mean() for x in chosen]))
    return np.quantile(means, [0.025, 0.975])


def test_intervals_equal_those_by_loops():
    rng = np.random.default_rng(0)
    samples = [(rng.random(n) < p).astype(float) for n, p in ((30, 0.9), (20, 0.5), (25, 0.7))]
    samples += [(rng.random(12) < 0.8).astype(float) for _ in range(6)]
    expected = by_loops(samples, 4000, rng)
    by_values = two_stage_mean_interval(samples, resamples=20_000)
    by_counts = two_stage_rate_interval(
        [int(x.sum()) for x in samples], [len(x) for x in samples], resamples=20_000
    )
    for found in (by_values, by_counts):
        assert (found.low, found.high) == pytest.approx(expected, abs=0.015)
        assert found.value == pytest.approx(np.mean([x.mean() for x in samples]))
        assert found.n == sum(len(x) for x in samples)
        assert found.reason is None  # 9 clusters


def test_qualities_that_never_repeat():
    rng = np.random.default_rng(1)
    samples = [rng.normal(0.5 + 0.1 * i, 0.1, 15 + i) for i in range(8)]
    found = two_stage_mean_interval(samples, resamples=20_000)
    assert (found.low, found.high) == pytest.approx(by_loops(samples, 4000, rng), abs=0.02)


def test_order_of_clusters_changes_nothing():
    assert two_stage_rate_interval([3, 9, 9], [10, 10, 12]) == two_stage_rate_interval(
        [9, 3, 9], [12, 10, 10]
    )
    assert two_stage_mean_interval([[0.1, 0.3], [0.5]]) == two_stage_mean_interval(
        [[0.5], [0.3, 0.1]]
    )


def test_work_done_in_blocks_is_as_wide(monkeypatch):
    whole = two_stage_rate_interval([9, 8, 10, 5], 10, resamples=20_000)
    monkeypatch.setattr(clustered, "_MAX_CELLS", 1000)
    monkeypatch.setattr(_resample, "_MAX_CELLS", 1000)
    parts = two_stage_rate_interval([9, 8, 10, 5], 10, resamples=20_000)
    assert (parts.low, parts.high) == pytest.approx((whole.low, whole.high), abs=0.013)
    values = [[1] * k + [0] * (10 - k) for k in (9, 8, 10, 5)]
    mean = two_stage_mean_interval(values, resamples=5000)
    assert (mean.low, mean.high) == pytest.approx((whole.low, whole.high), abs=0.026)


def test_nothing_to_resample_has_no_interval_and_a_reason():
    one = two_stage_rate_interval([7], [10])
    assert (one.value, one.low) == (0.7, None)
    assert one.reason == "one cluster says nothing about clusters like it"
    assert two_stage_mean_interval([[0.5, 0.7]]).reason == one.reason
    assert two_stage_rate_interval([10, 5], [10, 5]).reason == "all episodes ended alike"
    assert two_stage_mean_interval([[1.0, 1.0], [1.0]]).reason == (
        "every resample gives the same value"
    )


def test_impossible_clusters_are_refused():
    with pytest.raises(ValueError, match="between 0 and n, given 3 of 2"):
        two_stage_rate_interval([3], [2])
    with pytest.raises(ValueError, match="each cluster needs an observation"):
        two_stage_mean_interval([[1.0], []])
    with pytest.raises(ValueError, match="there must be a cluster"):
        two_stage_mean_interval([])
    with pytest.raises(ValueError, match="a cluster holds nan"):
        two_stage_mean_interval([[float("nan")]])
    with pytest.raises(ValueError, match="resamples must be at least 100, given 10"):
        two_stage_rate_interval([3], [4], resamples=10)
