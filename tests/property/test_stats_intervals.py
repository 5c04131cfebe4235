"""What must hold for every interval."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from robo_eval.stats.proportions import clopper_pearson_interval, wilson_interval
from robo_eval.stats.resampling import mean_interval, paired_difference_interval

COUNTS = st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
LEVELS = st.sampled_from([0.8, 0.9, 0.95, 0.99])
SAMPLES = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30)


@given(COUNTS, LEVELS)
def test_interval_mirrors_when_outcomes_swap(counts, level):
    k, n = counts
    for interval in (wilson_interval, clopper_pearson_interval):
        low, high = interval(k, n, level=level)
        other_low, other_high = interval(n - k, n, level=level)
        assert 0.0 <= low <= k / n <= high <= 1.0
        assert math.isclose(low, 1 - other_high, abs_tol=1e-12)
        assert math.isclose(high, 1 - other_low, abs_tol=1e-12)


@given(COUNTS)
def test_interval_moves_up_with_successes_and_shrinks_with_trials(counts):
    k, n = counts
    for interval in (wilson_interval, clopper_pearson_interval):
        low, high = interval(k, n)
        more_low, more_high = interval(k + 1, n + 1)
        assert more_low >= low
        assert more_high >= high
        wide, narrow = interval(k, n), interval(4 * k, 4 * n)
        assert narrow[1] - narrow[0] <= wide[1] - wide[0]


@given(COUNTS)
def test_exact_interval_holds_the_one_sided_bound(counts):
    k, n = counts
    low, high = clopper_pearson_interval(k, n)
    assert clopper_pearson_interval(k, n, sided="lower")[0] >= low
    assert clopper_pearson_interval(k, n, sided="upper")[1] <= high


@given(SAMPLES, st.randoms(use_true_random=False))
def test_mean_interval_ignores_order_and_stays_among_the_values(sample, random):
    found = mean_interval(sample, method="percentile", resamples=200)
    shuffled = list(sample)
    random.shuffle(shuffled)
    assert mean_interval(shuffled, method="percentile", resamples=200) == found
    assert min(sample) - 1e-12 <= found.value <= max(sample) + 1e-12
    if found.low is not None:
        assert min(sample) - 1e-12 <= found.low <= found.high <= max(sample) + 1e-12
    else:
        assert found.reason


@given(st.lists(st.integers(0, 200), min_size=1, max_size=25), st.integers(-100, 100))
def test_interval_always_finite_or_absent_with_a_reason(ticks, offset):
    sample = np.array(ticks) / 200 + offset
    found = mean_interval(sample, resamples=200)
    ends = (found.low, found.high)
    assert (found.reason is None) == all(end is not None and math.isfinite(end) for end in ends)


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 200)), min_size=3, max_size=25))
def test_paired_difference_flips_when_sides_swap(pairs):
    a, b = (np.array(side) / 200 for side in zip(*pairs, strict=True))
    forth = paired_difference_interval(a, b, method="student_t")
    back = paired_difference_interval(b, a, method="student_t")
    assert math.isclose(forth.value, -back.value, abs_tol=1e-12)
    if forth.low is not None:
        assert math.isclose(forth.low, -back.high, abs_tol=1e-12)
