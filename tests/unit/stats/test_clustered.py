"""What clusters say of others like them."""

import math

import numpy as np
import pytest
from scipy.special import betaln
from scipy.stats import t

from robo_eval.stats.clustered import new_cluster_difference, new_cluster_rate


def test_the_interval_is_where_the_likelihood_falls_by_what_is_allowed():
    k, n = np.array([9, 8, 10, 5]), 10
    means, sizes = np.linspace(0.0005, 0.9995, 1999)[:, None, None], np.geomspace(1.0, 1e6, 500)
    a, b = means * sizes[None, :, None], (1.0 - means) * sizes[None, :, None]
    profile = (betaln(k + a, n - k + b) - betaln(a, b)).sum(axis=2).max(axis=1)
    allowed = 2.0 * math.log1p(t.ppf(0.975, 3) ** 2 / 3.0)
    inside = means[profile >= profile.max() - allowed].ravel()
    found = new_cluster_rate(k, n)
    assert (found.low, found.high) == pytest.approx((inside.min(), inside.max()), abs=0.001)
    assert (found.value, found.n) == (0.8, 4)


@pytest.mark.parametrize(
    ("mean", "spread", "tasks"),
    [
        (0.85, 6, 3),
        pytest.param(0.85, 6, 8, marks=pytest.mark.slow),
        pytest.param(0.80, 6, 5, marks=pytest.mark.slow),
    ],
)
def test_it_covers_where_tasks_differ(mean, spread, tasks):
    rng = np.random.default_rng(0)
    rates = rng.beta(mean * spread, (1 - mean) * spread, (300, tasks))
    found = [new_cluster_rate(k, 100) for k in rng.binomial(100, rates)]
    # 0.93 less two standard errors.
    assert np.mean([one.low <= mean <= one.high for one in found]) > 0.905
    # A gate at the truth is passed in no more than 5 % of trials.
    assert np.mean([one.low > mean for one in found]) <= 0.05


def test_simulation_that_promises_too_much_is_covered():
    rng = np.random.default_rng(0)
    real = rng.random((200, 4, 100)) < rng.beta(5.1, 0.9, (200, 4, 1))
    promised = rng.random((200, 4, 100)) < 0.95
    found = [
        new_cluster_difference(b, c, 100)
        for b, c in zip((real & ~promised).sum(axis=2), (promised & ~real).sum(axis=2), strict=True)
    ]
    assert np.mean([one.low <= -0.1 <= one.high for one in found]) > 0.905
    assert np.mean([one.value for one in found]) == pytest.approx(-0.1, abs=0.02)


def test_tasks_that_all_succeed_leave_doubt_that_more_of_them_lessen():
    lows = [new_cluster_rate([100] * tasks, 100).low for tasks in (3, 4, 5, 8, 20)]
    assert lows == sorted(lows)
    assert 0.75 < lows[0] < 0.80
    assert lows[-1] > 0.97
    assert new_cluster_rate([0] * 3, 100).high == pytest.approx(1.0 - lows[0])
    nothing = new_cluster_difference([0] * 3, [0] * 3, 100)
    assert (nothing.low, nothing.high) == pytest.approx((lows[0] - 1.0, 1.0 - lows[0]))


def test_what_does_not_differ_is_as_sure_as_episodes_make_it():
    k = np.random.default_rng(1).binomial(500, 0.7, 30)
    found = new_cluster_rate(k, 500)
    half = 1.96 * math.sqrt(0.21 / (30 * 500))
    assert found.high - found.low == pytest.approx(2.0 * half, rel=0.25)


def test_counts_of_other_trials_are_taken_apart():
    paired = new_cluster_difference([1, 2, 3], [4, 5, 6], 10)
    assert paired.value == pytest.approx(-0.3)
    other = new_cluster_difference([1, 2, 3], [40, 50, 60], 10, 100)
    assert other.value == paired.value
    assert other.low > paired.low


def test_two_tasks_say_nothing_of_others():
    for found in (new_cluster_rate([9, 8], 10), new_cluster_difference([1, 0], [0, 1], 10)):
        assert (found.value, found.low, found.n) == (None, None, 2)
        assert found.reason == "fewer than 3 clusters say nothing of others like them"


@pytest.mark.parametrize(("k", "n"), [([3, 1, 1], [2, 2, 2]), ([-1, 1, 1], 2), ([0, 0, 0], 0)])
def test_impossible_counts_are_refused(k, n):
    with pytest.raises(ValueError, match="k must be between 0 and n"):
        new_cluster_rate(k, n)
