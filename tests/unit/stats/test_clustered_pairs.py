"""Differences over clusters of pairs: their size and coverage, and what they could show."""

import numpy as np
import pytest
from scipy import stats

from robo_eval.stats.clustered_pairs import (
    clustered_difference,
    detectable_difference,
    least_deciding_clusters,
)
from robo_eval.stats.paired import bonett_price_interval


def test_it_is_students_t_with_a_cluster_added_at_either_end():
    means = [0.2, 0.4, 0.0, -0.2, 0.6, 0.2]
    found = clustered_difference(np.multiply(means, 5), [5] * 6)
    added = np.array([*means, 1.0, -1.0])
    assert found.standard_error == pytest.approx(added.std() / np.sqrt(8))
    assert found.value == pytest.approx(0.2)
    half = stats.t.ppf(0.975, 5) * found.standard_error
    assert (found.low, found.high) == pytest.approx((added.mean() - half, added.mean() + half))
    # Of many single pairs it is the interval of Bonett and Price.
    many = clustered_difference([1] * 300 + [-1] * 200 + [0] * 500, [1] * 1000)
    assert (many.low, many.high) == pytest.approx(bonett_price_interval(300, 200, 1000), abs=1e-4)


def test_order_and_the_unit_of_sizes_change_nothing():
    sums, sizes = np.array([2.0, -1.0, 0.0, 3.0]), np.array([3, 2, 4, 3])
    found = clustered_difference(sums, sizes)
    assert clustered_difference(sums[::-1], sizes[::-1]) == found
    assert found.value == pytest.approx(4 / 12)
    twice = clustered_difference(2 * sums, 2 * sizes)
    assert (twice.low, twice.high, twice.p) == pytest.approx((found.low, found.high, found.p))
    mirrored = clustered_difference(-sums, sizes)
    assert (mirrored.low, mirrored.high) == (-found.high, -found.low)


KINDS = {
    "each condition by itself": lambda rng, rate, shape: rng.binomial(5, rate, shape) / 5,
    "all of a seed or none": lambda rng, rate, shape: (rng.random(shape) < rate).astype(float),
    "always the same share": lambda rng, rate, shape: np.full(shape, round(5 * rate) / 5),
}


@pytest.mark.parametrize("seeds", [5, 20])
@pytest.mark.parametrize(("first", "second"), [(0.8, 0.8), (0.6, 0.6), (0.8, 0.4)])
def test_it_covers_where_policies_fail_differently(seeds, first, second):
    rng, runs = np.random.default_rng(seeds), 400
    for one in KINDS.values():
        for other in KINDS.values():
            d = one(rng, first, (runs, seeds)) - other(rng, second, (runs, seeds))
            found = [clustered_difference(5 * own, [5] * seeds) for own in d]
            held = np.mean([f.low <= first - second <= f.high for f in found])
            assert held >= 0.93 - 0.02
            assert all((f.p <= 0.05) == (f.low > 0 or f.high < 0) for f in found)


def test_what_could_have_been_shown_and_how_many_could_decide():
    found = clustered_difference([1] * 5 + [0] * 15, [1] * 20)
    assert 0.3 < detectable_difference(found) < 0.4
    assert detectable_difference(found, power=0.5) < detectable_difference(found)
    assert detectable_difference(clustered_difference([1, 0, 0], [1, 1, 1])) is None
    assert [least_deciding_clusters(n) for n in (1, 5, 6, 20, 1000)] == [None, None, 6, 6, 6]
    for n in (6, 20):
        decides = [clustered_difference([1] * k + [0] * (n - k), [1] * n).p for k in (5, 6)]
        assert decides[0] > 0.05 >= decides[1]


def test_impossible_arguments_are_refused():
    for sums, sizes, message in (
        ([1], [1], "at least 2"),
        ([2, 0], [1, 1], "no larger"),
        ([1, 0], [1], "equal length"),
        ([1, 0], [1, 0], "at least 1"),
    ):
        with pytest.raises(ValueError, match=message):
            clustered_difference(sums, sizes)


def test_seeds_that_all_lean_one_way_are_as_surprising_as_coins_at_least():
    found = clustered_difference([1] * 8, [1] * 8, level=0.995)
    assert found.p == 2.0**-7
    assert found.low <= 0.0
    assert clustered_difference([1] * 8, [1] * 8).low > 0.0
    assert least_deciding_clusters(20, 0.005) == 9
