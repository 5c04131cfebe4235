import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from robo_eval.stats.bounded import bounded_mean_interval, bounded_mean_intervals
from robo_eval.stats.proportions import clopper_pearson_interval

NOISE = 1e-6


@pytest.mark.parametrize("n", [1, 2, 5, 20, 300, 100_000])
def test_outcomes_of_0_and_1_have_the_interval_of_clopper_and_pearson(n):
    counts = sorted({0, 1, n // 3, n - 1, n})
    found = bounded_mean_intervals([np.r_[np.zeros(n - k), np.ones(k)] for k in counts])
    for k, one in zip(counts, found, strict=True):
        assert (one.low, one.high) == pytest.approx(clopper_pearson_interval(k, n), abs=5e-6)
        assert one.value == pytest.approx(k / n)


@pytest.mark.parametrize("n", [5, 10])
@pytest.mark.parametrize("middle", [0.1, 0.5, 0.9])
def test_it_covers_whatever_three_values_come_how_often(n, middle):
    # Every sample of three values, each with its exact chance.
    counts = np.array([(a, b, n - a - b) for a in range(n + 1) for b in range(n + 1 - a)])
    values = np.array([0.0, middle, 1.0])
    found = bounded_mean_intervals([np.repeat(values, row) for row in counts])
    low, high = (np.array([getattr(one, end) for one in found]) for end in ("low", "high"))
    shares = np.array([(a, b, max(0.0, 1 - a - b)) for a in STEPS for b in STEPS if a + b < 1.01])
    chance = stats.multinomial.pmf(counts[:, None, :], n, shares[None, :, :])
    truth = shares @ values
    inside = (low[:, None] <= truth + NOISE) & (truth - NOISE <= high[:, None])
    assert (chance * inside).sum(axis=0).min() >= 0.95


STEPS = (0.0, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98)


@pytest.mark.parametrize("n", [3, 40])
def test_an_end_is_a_quantile_of_randomly_weighted_means(n):
    rng = np.random.default_rng(n)
    x = np.sort(rng.beta(5.0, 1.0, n))
    weights = rng.standard_exponential((200_000, n + 1))
    weights /= weights.sum(axis=1, keepdims=True)
    found = bounded_mean_interval(x)
    assert np.mean(weights @ np.r_[0.0, x] < found.low) == pytest.approx(0.025, abs=0.0015)
    assert np.mean(weights @ np.r_[x, 1.0] > found.high) == pytest.approx(0.025, abs=0.0015)


def test_many_values_are_those_of_the_normal_distribution():
    x = np.random.default_rng(0).beta(5.0, 1.0, 100_000)
    found = bounded_mean_interval(x)
    half = 1.96 * x.std() / len(x) ** 0.5
    assert (found.low, found.high) == pytest.approx((x.mean() - half, x.mean() + half), abs=5e-5)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_it_mirrors_scales_and_ignores_order(sample, random):
    found = bounded_mean_interval(sample)
    assert 0.0 <= found.low <= found.value <= found.high <= 1.0
    shuffled = random.sample(sample, len(sample))
    assert bounded_mean_interval(shuffled) == found
    mirrored = bounded_mean_interval([1.0 - x for x in sample])
    assert mirrored.low == pytest.approx(1.0 - found.high, abs=NOISE)
    scaled = bounded_mean_interval([4.0 * x - 1.0 for x in sample], within=(-1.0, 3.0))
    assert scaled.high == pytest.approx(4.0 * found.high - 1.0, abs=4 * NOISE)


@pytest.mark.parametrize("top", [5e-324, 1e-310, 1e-200, 1e-12])
def test_values_next_to_the_end_of_the_range_have_an_interval(top):
    found = bounded_mean_interval([0.0, top, top])
    assert 0.0 <= found.low <= found.value <= top
    assert found.high == pytest.approx(bounded_mean_interval([0.0] * 3).high)
    if top > 1e-300:
        whole = bounded_mean_interval([0.0, 1.0, 1.0])
        assert found.low / top == pytest.approx(whole.low)


def test_a_weight_counts_as_the_share_it_has():
    assert bounded_mean_interval([0.2, 0.8], weights=[3, 3]) == bounded_mean_interval([0.2, 0.8])
    heavy = bounded_mean_interval([0.0] * 9 + [1.0], weights=[1] * 9 + [6])
    alike = bounded_mean_interval([0.0] * 9 + [1.0] * 6)
    assert heavy.value == pytest.approx(alike.value)
    assert heavy.high - heavy.low > alike.high - alike.low


def test_what_is_outside_the_range_is_refused():
    with pytest.raises(ValueError, match=r"between 0 and 1, given 1\.5"):
        bounded_mean_interval([0.5, 1.5])
    with pytest.raises(ValueError, match="no values"):
        bounded_mean_interval([])
    with pytest.raises(ValueError, match="weights must be above 0, given 0"):
        bounded_mean_interval([0.5, 0.6], weights=[0, 1])


@pytest.mark.parametrize("n", [20, 50, 100, 400])
@pytest.mark.parametrize("share", [0.48, 0.5, 0.52])
def test_two_values_close_together_have_an_end_that_simulation_has(n, share):
    """One more or less of either value moves an end by hardly anything."""
    x = np.repeat([0.9, 1.0], [round(n * share), n - round(n * share)])
    found = bounded_mean_interval(x)
    weights = np.random.default_rng(n).standard_gamma(1.0, (20_000, n + 1))
    low = np.quantile((weights[:, :n] @ x) / weights.sum(axis=1), 0.025)
    assert found.low == pytest.approx(low, abs=0.003)


def test_no_end_jumps_when_one_value_changes():
    for n in (30, 100, 300):
        lows = [
            bounded_mean_interval(np.repeat([0.9, 1.0], [k, n - k])).low
            for k in range(n // 3, n, 2)
        ]
        assert np.ptp(np.diff(lows)) < 1e-3
        assert (np.diff(lows) < 0.0).all()
