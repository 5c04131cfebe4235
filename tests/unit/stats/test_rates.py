import numpy as np
import pytest
from scipy import stats

from robo_eval.stats.rates import (
    burst_interval,
    garwood_interval,
    rate_comparison_p,
    rate_ratio_interval,
)


def test_vectorised_interval_equals_the_chi_square_form():
    c = np.arange(60)
    hours = np.linspace(0.5, 300.0, 60)
    low, high = garwood_interval(c, hours, level=0.9)
    expected_low = np.where(c > 0, stats.chi2.ppf(0.05, 2 * c) / (2 * hours), 0.0)
    np.testing.assert_allclose(low, expected_low, rtol=1e-10)
    np.testing.assert_allclose(high, stats.chi2.ppf(0.95, 2 * c + 2) / (2 * hours), rtol=1e-10)


def test_one_sided_bounds_spend_the_whole_error_on_one_side():
    zero, upper = garwood_interval(3, 10.0, sided="upper")
    lower, infinite = garwood_interval(3, 10.0, sided="lower")
    assert (zero, infinite) == (0.0, np.inf)
    assert upper == pytest.approx(garwood_interval(3, 10.0, level=0.9)[1], rel=1e-12)
    assert lower == pytest.approx(garwood_interval(3, 10.0, level=0.9)[0], rel=1e-12)


def test_numbers_in_give_plain_floats_out():
    for end in (*garwood_interval(3, 7.0), *rate_ratio_interval(3, 7.0, 2, 7.0)):
        assert type(end) is float


@pytest.mark.parametrize("sided", ["two", "lower", "upper"])
def test_exact_interval_covers_at_least_what_it_promises(sided):
    rates = np.linspace(0.05, 30.0, 300)
    c = np.arange(120)
    low, high = garwood_interval(c, 1.0, sided=sided)
    inside = (low[:, None] <= rates) & (rates <= high[:, None])
    coverage = (stats.poisson.pmf(c[:, None], rates) * inside).sum(axis=0)
    assert coverage.min() >= 0.95


@pytest.mark.parametrize("alternative", ["two", "greater", "less"])
@pytest.mark.parametrize("ratio", [1.0, 2.5])
def test_comparison_is_the_binomial_test_given_the_total(alternative, ratio):
    scipy_name = {"two": "two-sided"}.get(alternative, alternative)
    for a, b in ((5, 1), (0, 4), (3, 3), (30, 12), (7, 0)):
        share = ratio * 100.0 / (ratio * 100.0 + 80.0)
        expected = stats.binomtest(a, a + b, share, alternative=scipy_name).pvalue
        p = rate_comparison_p(a, 100.0, b, 80.0, ratio=ratio, alternative=alternative)
        assert p == pytest.approx(expected, rel=1e-9)
        mid = rate_comparison_p(a, 100.0, b, 80.0, ratio=ratio, alternative=alternative, mid_p=True)
        assert mid == pytest.approx(expected - stats.binom.pmf(a, a + b, share) / 2.0, rel=1e-9)


def test_no_event_at_all_tells_nothing():
    assert rate_comparison_p(0, 10.0, 0, 99.0) == 1.0
    assert rate_comparison_p(0, 10.0, 0, 99.0, mid_p=True) == 1.0
    for method in ("score", "exact"):
        assert rate_ratio_interval(0, 10.0, 0, 99.0, method=method) == (0.0, np.inf)


def test_ratio_is_open_where_a_side_has_no_event():
    for method in ("score", "exact"):
        low, high = rate_ratio_interval(0, 10.0, 4, 10.0, method=method)
        assert low == 0.0
        assert 0.0 < high < 2.0
        mirrored = rate_ratio_interval(4, 10.0, 0, 10.0, method=method)
        assert mirrored == (pytest.approx(1.0 / high), np.inf)


def test_ends_of_the_score_interval_are_where_the_score_test_decides():
    a, h_a, b, h_b = 12, 300.0, 30, 250.0
    for end in rate_ratio_interval(a, h_a, b, h_b):
        expected = end * h_a / h_b
        score = (a - b * expected) / np.sqrt((a + b) * expected)
        assert abs(score) == pytest.approx(stats.norm.ppf(0.975), rel=1e-9)


def test_ends_of_the_exact_ratio_are_where_the_one_sided_tests_decide():
    counts = (12, 300.0, 30, 250.0)
    low, high = rate_ratio_interval(*counts, method="exact")
    assert rate_comparison_p(*counts, ratio=low, alternative="greater") == pytest.approx(0.025)
    assert rate_comparison_p(*counts, ratio=high, alternative="less") == pytest.approx(0.025)


def test_vectorised_ratios_equal_those_one_by_one():
    a, b = np.arange(6), np.array([3, 0, 2, 9, 1, 0])
    for method in ("score", "exact"):
        low, high = rate_ratio_interval(a, 50.0, b, 20.0, method=method)
        for i in range(6):
            one = rate_ratio_interval(int(a[i]), 50.0, int(b[i]), 20.0, method=method)
            assert (low[i], high[i]) == pytest.approx(one, rel=1e-12)


@pytest.mark.parametrize(
    ("events", "exposure", "match"),
    [
        (-1, 1.0, "events must be at least 0, given -1"),
        (0.5, 1.0, "events must hold whole numbers, given 0.5"),
        (1, 0.0, "exposure must be above 0 and finite, given 0.0; no exposure, no rate"),
        (1, float("nan"), "exposure must be above 0"),
    ],
)
def test_impossible_counts_and_exposures_are_refused(events, exposure, match):
    with pytest.raises(ValueError, match=match):
        garwood_interval(events, exposure)


def test_unknown_words_are_refused():
    with pytest.raises(ValueError, match="sided must be 'two', 'lower' or 'upper', given 'both'"):
        garwood_interval(1, 1.0, sided="both")
    with pytest.raises(ValueError, match="method must be 'score' or 'exact', given 'wald'"):
        rate_ratio_interval(1, 1.0, 1, 1.0, method="wald")
    with pytest.raises(ValueError, match="alternative must be"):
        rate_comparison_p(1, 1.0, 1, 1.0, alternative="larger")
    with pytest.raises(ValueError, match="ratio must be above 0 and finite, given 0"):
        rate_comparison_p(1, 1.0, 1, 1.0, ratio=0.0)


def test_bursts_of_one_are_exact_and_larger_ones_are_wider():
    for events in (0, 1, 7, 40):
        exact = garwood_interval(events, 12.0)
        assert burst_interval([1] * events, 12.0) == pytest.approx(exact)
    (low, high), (least, most) = burst_interval([2, 5], 10.0), garwood_interval(7, 10.0)
    assert low < least
    assert high > most
    # Twice as many events in each burst: twice the rate.
    assert burst_interval([2] * 9, 1.0) == pytest.approx([2 * x for x in garwood_interval(9, 1.0)])


def test_bursts_are_covered_where_there_are_some():
    rng = np.random.default_rng(0)
    found = [burst_interval(rng.geometric(0.3, rng.poisson(10)), 1.0) for _ in range(1500)]
    assert np.mean([low <= 10 / 0.3 <= high for low, high in found]) > 0.925


@pytest.mark.parametrize("sizes", [[0], [1.5], [-1]])
def test_impossible_bursts_are_refused(sizes):
    with pytest.raises(ValueError, match="sizes must"):
        burst_interval(sizes, 1.0)
