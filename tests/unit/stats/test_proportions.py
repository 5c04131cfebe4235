import numpy as np
import pytest
from scipy import stats

from robo_eval.stats.agreement import pearson
from robo_eval.stats.proportions import (
    clopper_pearson_interval,
    clustered_interval,
    wilson_interval,
)


def _all_counts(n_max):
    return np.array([(k, n) for n in range(1, n_max + 1) for k in range(n + 1)]).T


@pytest.mark.slow
def test_vectorised_intervals_equal_scipy_count_by_count():
    k, n = _all_counts(25)
    wilson = np.array(wilson_interval(k, n)).T
    exact = np.array(clopper_pearson_interval(k, n, level=0.9)).T
    for i, (ki, ni) in enumerate(zip(k, n, strict=True)):
        test = stats.binomtest(int(ki), int(ni))
        assert wilson[i] == pytest.approx(tuple(test.proportion_ci(0.95, "wilson")), abs=1e-12)
        assert exact[i] == pytest.approx(tuple(test.proportion_ci(0.9, "exact")), abs=1e-12)


def test_upper_bound_mirrors_lower_bound():
    k, n = _all_counts(12)
    low, one = clopper_pearson_interval(k, n, sided="lower")
    zero, high = clopper_pearson_interval(n - k, n, sided="upper")
    np.testing.assert_allclose(high, 1.0 - low, atol=1e-12)
    assert (one == 1.0).all()
    assert (zero == 0.0).all()


def test_ends_are_exact_at_no_and_full_success():
    n = np.arange(1, 200)
    for interval in (wilson_interval, clopper_pearson_interval):
        assert (interval(np.zeros_like(n), n)[0] == 0.0).all()
        assert (interval(n, n)[1] == 1.0).all()


def test_numbers_in_give_plain_floats_out():
    for end in (*wilson_interval(3, 7), *clopper_pearson_interval(3, 7)):
        assert type(end) is float


@pytest.mark.parametrize("sided", ["two", "lower", "upper"])
def test_exact_interval_covers_at_least_what_it_promises(sided):
    """By enumeration of every outcome: p from .05 to .95, n from 4 to 40."""
    rates = np.arange(1, 20) * 0.05
    worst = 1.0
    for n in range(4, 41):
        k = np.arange(n + 1)
        low, high = clopper_pearson_interval(k, np.full(n + 1, n), sided=sided)
        chance = stats.binom.pmf(k[:, None], n, rates)
        covered = (low[:, None] <= rates) & (rates <= high[:, None])
        worst = min(worst, float((chance * covered).sum(axis=0).min()))
    assert worst >= 0.95


def test_wilson_covers_on_average_but_not_always():
    """What distinguishes the interval to show from the one for gates; n = 10, p .02 to .98."""
    rates = np.linspace(0.02, 0.98, 97)
    k = np.arange(11)
    low, high = wilson_interval(k, np.full(11, 10))
    chance = stats.binom.pmf(k[:, None], 10, rates)
    coverage = (chance * ((low[:, None] <= rates) & (rates <= high[:, None]))).sum(axis=0)
    assert coverage.mean() == pytest.approx(0.956, abs=0.002)
    assert coverage.min() < 0.95


@pytest.mark.parametrize(
    ("k", "n", "match"),
    [
        (3, 2, "between 0 and n, given 3 of 2"),
        (-1, 2, "given -1 of 2"),
        (0, 0, "no data, no interval"),
        (1.5, 3, "k must hold whole numbers, given 1.5"),
        (1, float("nan"), "n must hold whole numbers"),
    ],
)
def test_impossible_counts_are_refused(k, n, match):
    for interval in (wilson_interval, clopper_pearson_interval):
        with pytest.raises(ValueError, match=match):
            interval(k, n)


def test_what_no_float_can_count_or_square_is_refused():
    with pytest.raises(ValueError, match=r"n holds 1e\+300; beyond 2\^53 a float is not a count"):
        wilson_interval(1, 1e300)
    with pytest.raises(ValueError, match=r"sim holds 1e\+300; the square of it overflows"):
        pearson([0.1, 0.2, 0.3, 1e300], [1, 2, 3, 4])


@pytest.mark.parametrize("share", [np.nan, np.inf, None])
def test_a_cluster_whose_share_is_missing_is_refused(share):
    with pytest.raises(ValueError, match=r"cluster_rates holds (nan|inf), which is not finite"):
        clustered_interval([0.5, 0.6, share], 30)


def test_impossible_levels_and_sides_are_refused():
    with pytest.raises(ValueError, match="level must be between 0 and 1, given 95"):
        wilson_interval(1, 2, level=95)
    with pytest.raises(ValueError, match="sided must be"):
        clopper_pearson_interval(1, 2, sided="both")
