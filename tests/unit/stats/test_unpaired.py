from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from robo_eval.stats import unpaired
from robo_eval.stats.unpaired import barnard_p, newcombe_interval


def exact_p(k1, n1, k2, n2, alternative):
    """The definition, with fractions so that no tie is broken by rounding, on a dense grid."""

    def statistic(a, b):
        difference = Fraction(a, n1) - Fraction(b, n2)
        pooled = Fraction(a + b, n1 + n2)
        square = difference**2 / (pooled * (1 - pooled)) if 0 < pooled < 1 else Fraction(0)
        sign = 1 if alternative == "two" else (-1) ** ((alternative == "less") != (difference < 0))
        return sign * square

    rates = np.linspace(0.0, 1.0, 20_001)
    first = stats.binom.pmf(np.arange(n1 + 1)[:, None], n1, rates)
    second = stats.binom.pmf(np.arange(n2 + 1)[:, None], n2, rates)
    chance, limit = np.zeros(len(rates)), statistic(k1, k2)
    for a in range(n1 + 1):
        for b in range(n2 + 1):
            if statistic(a, b) >= limit:
                chance += first[a] * second[b]
    return chance.max()


@pytest.mark.parametrize("alternative", ["two", "greater", "less"])
def test_p_is_that_of_the_definition(alternative):
    for counts in ((7, 15, 12, 15), (1, 8, 6, 9), (9, 10, 3, 10), (11, 17, 5, 12)):
        p = barnard_p(*counts, alternative=alternative)
        assert p == pytest.approx(exact_p(*counts, alternative), rel=1e-6)


def test_p_is_about_scipys_which_searches_the_worst_rate_at_random():
    for k1, n1, k2, n2 in ((7, 15, 12, 15), (1, 8, 6, 9), (20, 31, 11, 27)):
        table = [[k1, k2], [n1 - k1, n2 - k2]]
        expected = stats.barnard_exact(table, n=128).pvalue
        assert barnard_p(k1, n1, k2, n2) == pytest.approx(expected, rel=2e-3)


def test_test_keeps_its_level_at_every_rate():
    """Exact: chance of p <= 0.05 when both sides are equally good, 9 and 12 episodes."""
    rates = np.linspace(0.01, 0.99, 99)
    wrong = np.zeros(99)
    for k1 in range(10):
        for k2 in range(13):
            if barnard_p(k1, 9, k2, 12) <= 0.05:
                wrong += stats.binom.pmf(k1, 9, rates) * stats.binom.pmf(k2, 12, rates)
    assert 0.03 < wrong.max() <= 0.05


def test_test_decides_more_often_than_fishers():
    fewer = 0
    for k1 in range(11):
        for k2 in range(11):
            ours = barnard_p(k1, 10, k2, 10)
            fisher = stats.fisher_exact([[k1, k2], [10 - k1, 10 - k2]]).pvalue
            fewer += int(ours <= 0.05) - int(fisher <= 0.05)
    assert fewer > 0


def test_work_done_in_blocks_gives_the_same(monkeypatch):
    whole = barnard_p(13, 40, 22, 37)
    monkeypatch.setattr(unpaired, "_MAX_CELLS", 100)
    assert barnard_p(13, 40, 22, 37) == pytest.approx(whole, rel=1e-12)


def test_all_alike_tells_nothing():
    assert barnard_p(0, 10, 0, 7) == barnard_p(10, 10, 7, 7) == 1.0


def test_interval_mirrors_when_sides_swap():
    low, high = newcombe_interval([9, 0, 4], [10, 10, 4], [3, 5, 0], [10, 20, 4])
    other_low, other_high = newcombe_interval([3, 5, 0], [10, 20, 4], [9, 0, 4], [10, 10, 4])
    np.testing.assert_allclose(low, -other_high, atol=1e-15)
    np.testing.assert_allclose(high, -other_low, atol=1e-15)


def test_impossible_counts_are_refused():
    for function in (newcombe_interval, barnard_p):
        with pytest.raises(ValueError, match="between 0 and n, given 11 of 10"):
            function(11, 10, 0, 10)
        with pytest.raises(ValueError, match="no data, no interval"):
            function(0, 0, 0, 10)
    with pytest.raises(ValueError, match="alternative must be"):
        barnard_p(1, 2, 1, 2, alternative="two-sided")
