"""Intervals of proportions against printed numbers."""

import pytest

from robo_eval.stats.proportions import clopper_pearson_interval, wilson_interval

# Newcombe (1998), Statistics in Medicine 17:857-872, table I, printed to four decimals.
NEWCOMBE = [
    # k, n, method 3 (score), method 5 (exact)
    (81, 263, (0.2553, 0.3662), (0.2527, 0.3676)),
    (15, 148, (0.0624, 0.1605), (0.0578, 0.1617)),
    (0, 20, (0.0, 0.1611), (0.0, 0.1684)),
    (1, 29, (0.0061, 0.1718), (0.0009, 0.1776)),
]

# scipy 1.17.1, binomtest(...).proportion_ci, ten digits.
SCIPY = [
    (9, 10, (0.5958499732, 0.9821237869), (0.5549838830, 0.9974714215)),
    (10, 10, (0.7224672001, 1.0), (0.6915028922, 1.0)),
    (47, 50, (0.8378290831, 0.9793850297), (0.8345180534, 0.9874514122)),
    (72, 80, (0.8148931119, 0.9484523844), (0.8124348925, 0.9558290598)),
    (0, 20, (0.0, 0.1611251581), (0.0, 0.1684334710)),
    (17, 20, None, (0.6210731735, 0.9679290628)),
]


@pytest.mark.parametrize(("k", "n", "score", "exact"), NEWCOMBE)
def test_intervals_are_those_newcombe_printed(k, n, score, exact):
    assert wilson_interval(k, n) == pytest.approx(score, abs=5.1e-5)
    assert clopper_pearson_interval(k, n) == pytest.approx(exact, abs=5.1e-5)


@pytest.mark.parametrize(("k", "n", "score", "exact"), SCIPY)
def test_intervals_hold_ten_digits(k, n, score, exact):
    if score is not None:
        assert wilson_interval(k, n) == pytest.approx(score, abs=5.1e-11)
    assert clopper_pearson_interval(k, n) == pytest.approx(exact, abs=5.1e-11)


@pytest.mark.parametrize(("k", "n", "low"), [(47, 50, 0.8521628236), (10, 10, 0.7411344491)])
def test_one_sided_bound_spends_the_whole_error_on_one_side(k, n, low):
    assert clopper_pearson_interval(k, n, sided="lower") == (pytest.approx(low, abs=5.1e-11), 1.0)


@pytest.mark.parametrize(("p0", "n"), [(0.90, 29), (0.95, 59), (0.99, 299)])
def test_failure_free_episodes_that_show_a_rate(p0, n):
    assert clopper_pearson_interval(n, n, sided="lower")[0] >= p0
    assert clopper_pearson_interval(n - 1, n - 1, sided="lower")[0] < p0
