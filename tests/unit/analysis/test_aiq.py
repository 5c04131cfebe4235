"""Complexity, dissimilarity, space and quotient: worked examples, and input that is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from robo_eval.analysis.aiq import (
    apti,
    around,
    determinant_volume,
    dissimilarities,
    dissimilarity,
    half_samples,
    hull_volume,
    image_entropy,
    mccp,
    observation_entropy,
    quotient,
    quotient_interval,
    relative,
    space,
    triangle_violations,
)
from robo_eval.core.errors import InputError, ShapeError

TABLE = [[0, 0.6, 0.8], [0.6, 0, 0.5], [0.8, 0.5, 0]]
APART = [[0, 1, 1], [1, 0, 1], [1, 1, 0]]


# Complexity


@pytest.mark.parametrize(
    ("sizes", "performances", "bins", "curve", "area", "counts"),
    [
        (
            [10, 8, 20, 40, 30], [0.05, 0.15, 0.25, 0.95, 0.85], 5,
            [8, 20, 23.333333, 26.666667, 30], 21.6, (3, 2, 0),
        ),
        ([5, 9], [0.1, 0.6], 4, [5, 7, 9, 11], 8, (2, 1, 1)),
        ([4, 10, 16], [0.1, 0.5, 0.7], 5, [4, 7, 10, 16, 19], 11.2, (3, 1, 1)),
        ([7], [0.5], 3, [7, 7, 7], 7, (1, 0, 2)),
    ],
)  # fmt: skip
def test_complexity_of_worked_examples(sizes, performances, bins, curve, area, counts):
    found = mccp(sizes, performances, bins=bins)
    assert found.curve == pytest.approx(curve, abs=1e-6)
    assert found.area == pytest.approx(area, abs=1e-9)
    assert (found.filled, found.interpolated, found.extrapolated) == counts


def test_perfect_policies_are_in_the_last_bin():
    found = mccp([5, 9], [1.0, 2 / 3], bins=3)
    assert found.observed[2] == 5
    assert math.isnan(found.observed[0])


def test_a_level_nobody_reached_is_not_cheaper_than_one_somebody_did():
    falling = mccp([30, 20, 10], [0.1, 0.3, 0.5], bins=5)
    assert falling.curve.tolist() == [30, 20, 10, 10, 10]


def test_the_envelope_never_falls():
    found = mccp([40, 10, 30, 20], [0.1, 0.5, 0.7, 0.3], bins=5, variant="envelope")
    assert found.curve.tolist() == pytest.approx([10, 10, 10, 30, 30])
    assert (found.filled, found.extrapolated) == (4, 1)


def test_the_share_of_what_nobody_reached_is_told():
    found = mccp([5, 9], [0.1, 0.6], bins=4)
    assert found.extrapolated_share == pytest.approx(11 / 32)


def test_complexities_of_a_suite_are_shares_of_the_largest():
    assert relative([2.0, 8.0, 4.0]).tolist() == [0.25, 1.0, 0.5]


def _pool(n, seed):
    """Policies of random sizes, of which larger ones can do better."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(20, 1_000, n).astype(float)
    return sizes, rng.random(n) * (1 - np.exp(-sizes / 300))


def test_halves_of_a_pool_make_an_interval_around_the_area():
    areas = [mccp(*_pool(200, seed)).area for seed in range(60)]
    sizes, performances = _pool(200, 1)
    low, high = half_samples(sizes, performances, resamples=200)
    assert low < mccp(sizes, performances).area < high
    # As wide as areas of other pools are spread, to a factor of two.
    assert 0.5 < (high - low) / (4 * np.std(areas)) < 2.0
    assert (low, high) == half_samples(sizes, performances, resamples=200)


# Entropy


def test_entropy_of_worked_examples():
    assert observation_entropy(np.arange(8), bins=4).total == pytest.approx(2.0)
    assert observation_entropy([0, 0, 0, 1]).total == pytest.approx(0.8112781, abs=1e-7)
    found = image_entropy([[5, 5], [5, 9]], n_classes=100)
    assert found.local.ravel() == pytest.approx([0, 0.9182958, 0.9182958, 0.9182958], abs=1e-7)
    assert found.with_labels == pytest.approx(found.mean_local + 6.643856, abs=1e-6)


def test_a_variable_that_does_not_change_has_no_entropy():
    found = observation_entropy(np.column_stack([np.arange(30.0), np.full(30, 3.0)]))
    assert found.by_variable == pytest.approx([math.log2(30), 0.0])
    assert (found.low[1], found.high[1]) == (3.0, 3.0)


def test_entropy_of_an_image_is_that_of_its_neighbourhoods():
    image = np.random.default_rng(0).integers(0, 3, (6, 7)).astype(float)

    def one(row, column):
        places = [(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)]
        near = [
            image[row + i, column + j]
            for i, j in places
            if 0 <= row + i < 6 and 0 <= column + j < 7
        ]
        share = np.unique(near, return_counts=True)[1] / len(near)
        return -(share * np.log2(share)).sum()

    wanted = [[one(row, column) for column in range(7)] for row in range(6)]
    assert image_entropy(image, 2).local == pytest.approx(np.array(wanted))


# Dissimilarity


def test_dissimilarity_of_worked_examples():
    assert dissimilarity([0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]) == pytest.approx(
        0.25
    )
    assert dissimilarity(np.linspace(0.2, 0.8, 11)) == pytest.approx(0.0, abs=1e-12)


def test_dissimilarity_does_not_depend_on_the_order_and_is_limited():
    observed = np.random.default_rng(0).random(11)
    assert dissimilarity(observed) == pytest.approx(dissimilarity(observed[::-1]))
    assert dissimilarity([1, *[0] * 9, 1]) == pytest.approx(0.9)


def test_the_mean_of_several_trainings_is_taken():
    runs = np.random.default_rng(0).random((3, 11))
    assert dissimilarity(runs) == dissimilarity(runs.mean(axis=0))


def test_ends_can_be_given():
    observed = [0.5] * 11
    assert dissimilarity(observed, v_a=1.0, v_b=1.0) == pytest.approx(0.5)


def test_noise_alone_makes_a_floor():
    rng = np.random.default_rng(0)
    spread = 0.01
    found = [
        dissimilarity(np.clip(0.5 + spread * np.r_[0, rng.normal(size=9), 0], 0, 1))
        for _ in range(2_000)
    ]
    assert np.mean(found) == pytest.approx(0.72 * spread, rel=0.03)


def test_both_directions_make_one_table_and_its_noise():
    nan = float("nan")
    found = dissimilarities([[nan, 0.2, nan], [0.4, nan, 0.1], [0.3, nan, nan]])
    assert found.table == pytest.approx(np.array([[0, 0.3, 0.3], [0.3, 0, 0.1], [0.3, 0.1, 0]]))
    assert found.noise[0, 1] == pytest.approx(0.2)
    assert math.isnan(found.noise[0, 2])
    assert dissimilarities(TABLE).noise.max() == 0.0


def test_the_floor_can_be_subtracted():
    found = dissimilarities(TABLE, [0.5, 0.6], debias=True)
    assert found.floor == pytest.approx(0.55)
    assert found.table == pytest.approx(np.array([[0, 0.05, 0.25], [0.05, 0, 0], [0.25, 0, 0]]))
    assert dissimilarities(TABLE, [0.5, 0.6]).table == pytest.approx(np.array(TABLE))


def test_triangles_that_cannot_be_are_counted():
    assert triangle_violations(TABLE) == (0, 1)
    for missing in (np.nan, np.inf):
        with pytest.raises(InputError, match=r"table\[0, 2\] is (nan|inf); it must be finite"):
            triangle_violations([[0, 0.1, missing], [0.1, 0, 0.1], [1, 0.1, 0]])
    with pytest.raises(ShapeError, match="table has shape"):
        triangle_violations(1.0)
    assert triangle_violations([[0, 0.1, 1], [0.1, 0, 0.1], [1, 0.1, 0]]) == (1, 1)
    four = np.ones((4, 4)) - np.eye(4)
    assert triangle_violations(four) == (0, 4)
    four[0, 1] = four[1, 0] = 3
    assert triangle_violations(four) == (2, 4)


# Space and volume


def test_orthogonal_tests():
    suite = space(APART, [1, 0.5, 0.8], k=3)
    found = quotient(suite, [1, 0.5, 0.25])
    assert (found.volume_full, found.volume) == pytest.approx((0.0666667, 0.0083333), abs=1e-7)
    assert (found.ratio, found.aiq) == pytest.approx((0.125, 0.5))


def test_a_suite_in_three_and_in_two_dimensions():
    three = space(TABLE, [1, 0.5, 0.8], k=3, d_max=1)
    assert three.eigenvalues == pytest.approx([2.180836, 0.646055, 0.173109], abs=1e-6)
    found = quotient(three, [0.9, 0.6, 0.5])
    assert (found.volume_full, found.volume) == pytest.approx((0.0329242, 0.0088895), abs=1e-7)
    assert (found.ratio, found.aiq) == pytest.approx((0.27, 0.6463304), abs=1e-7)
    two = three.with_k(2)
    found = quotient(two, [0.9, 0.6, 0.5])
    assert two.communality == pytest.approx([0.977895, 0.898975, 0.950021], abs=1e-6)
    assert (found.volume_full, found.volume) == pytest.approx((0.3763124, 0.1693406), abs=1e-7)
    assert (found.ratio, found.aiq) == pytest.approx((0.45, 0.6708204), abs=1e-7)


def test_dissimilarities_no_space_has():
    suite = space([[0, 0.1, 1], [0.1, 0, 0.1], [1, 0.1, 0]], [1, 1, 1])
    assert suite.eigenvalues == pytest.approx([2.400071, 1, -0.400071], abs=1e-6)
    assert suite.negative_mass == pytest.approx(0.1176656, abs=1e-7)
    assert suite.k == 2
    assert any("no space represents" in warning for warning in suite.warnings)


def test_tests_that_are_all_alike_have_one_direction():
    suite = space(np.zeros((4, 4)), [1, 0.5, 0.25, 0.8])
    assert (suite.k, suite.participation) == (1, pytest.approx(1.0))
    found = quotient(suite, [0.5, 1, 1, 0])
    assert found.aiq == pytest.approx(0.5), "0.5 of the longest, which covers the others"


def test_an_area_in_two_dimensions():
    found = hull_volume([[1, 0], [0.6, 0.6], [0, 1], [0.3, 0.2]])
    assert found.volume == pytest.approx(0.6)
    assert (found.rank, found.intrinsic_volume) == (2, found.volume)


@pytest.mark.parametrize(
    ("points", "rank", "within"),
    [
        (np.zeros((4, 3)), 0, 0.0),
        ([[1, 1, 0], [2, 2, 0], [0.5, 0.5, 0]], 1, math.sqrt(8)),
        ([[1, 0, 0], [-2, 0, 0]], 1, 3.0),
        ([[1, 0, 1e-13], [0, 1, 0], [1, 1, 0]], 2, 1.0),
        ([[1, 0, 0], [0, 1, 0]], 2, 0.5),
    ],
)
def test_flat_points_have_a_volume_within_what_they_span(points, rank, within):
    found = hull_volume(points)
    assert (found.volume, found.rank) == (0.0, rank)
    assert found.intrinsic_volume == pytest.approx(within)
    assert determinant_volume(points) == 0.0


@pytest.mark.parametrize("k", [1, 2, 3, 5, 8])
def test_determinants_of_facets_add_up_to_the_volume(k):
    rng = np.random.default_rng(k)
    for points in (rng.normal(size=(20, k)), rng.random((20, k)) * 10.0 ** -np.arange(k)):
        assert determinant_volume(points) == pytest.approx(hull_volume(points).volume, rel=1e-9)


def test_an_agent_that_covers_fewer_dimensions_has_no_quotient_but_an_intrinsic_volume():
    found = quotient(space(APART, [1, 1, 1], k=3), [1, 1, 0])
    assert (found.aiq, found.volume, found.rank) == (0.0, 0.0, 2)
    assert found.intrinsic_volume == pytest.approx(0.5)


def test_values_around_k():
    suite = space(TABLE, [1, 0.5, 0.8], k=2, d_max=1)
    found = around(suite, [0.9, 0.6, 0.5])
    assert list(found) == [1, 2, 3]
    assert found[3].aiq == pytest.approx(0.6463304)


def test_the_metric_model_finds_where_tests_lie_if_sizes_and_differences_have_one_scale():
    points = np.array([[0.6, 0.0], [0.0, 0.5], [0.4, 0.4], [0.2, 0.5]])
    table = np.linalg.norm(points[:, None] - points[None], axis=2)
    suite = space(table, np.linalg.norm(points, axis=1), model="metric", d_max=1.0, k=2)
    assert suite.negative_mass == pytest.approx(0.0, abs=1e-12)
    found = np.linalg.norm(suite.points[:, None] - suite.points[None], axis=2)
    assert found == pytest.approx(table)
    other = space(table, np.linalg.norm(points, axis=1), model="metric", d_max=3.0)
    assert other.eigenvalues == pytest.approx(other.with_k(1).eigenvalues)


# Agents


def test_an_interval_of_the_quotient():
    rng = np.random.default_rng(0)
    suite = space(TABLE, [1, 0.5, 0.8], k=2, d_max=1)
    episodes = [rng.random(40) for _ in range(3)]
    found = quotient_interval(suite, episodes)
    assert found.low < found.value < found.high
    assert found.value == quotient(suite, [row.mean() for row in episodes]).aiq
    assert (found.n, found.reason) == (120, None)
    assert quotient_interval(suite, episodes) == found
    few = quotient_interval(suite, [row[:5] for row in episodes])
    assert few.reason == "a test has 5 episodes only; from 30 on the interval is reliable"


def test_seeds_that_some_tests_lack_are_drawn_from_what_is_there():
    suite = space(TABLE, [1, 0.5, 0.8], k=2, d_max=1)
    episodes = [np.linspace(0.2, 0.8, 40), np.linspace(0.1, 0.9, 40), np.array([0.25, 0.75])]
    seeds = [np.arange(40), np.arange(40), np.array([3, 31])]
    found = quotient_interval(suite, episodes, seeds=seeds)
    assert found.low < found.value < found.high
    assert found.method == "bootstrap of seeds that tests share, percentiles"
    with pytest.raises(InputError, match="a seed for each episode"):
        quotient_interval(suite, episodes, seeds=seeds[:2])
    with pytest.raises(InputError, match="a seed for each episode"):
        quotient_interval(suite, episodes, seeds=[seeds[0], seeds[1], [3]])


def test_apti():
    assert apti(0.8, 0.4) == pytest.approx(0.6666667, abs=1e-7)
    assert apti(0.3, 0.3) == 0.5
    assert math.isnan(apti(0.0, 0.0))
    suite = space(TABLE, [1, 0.5, 0.8], k=2, d_max=1)
    assert quotient(suite, [apti(v, v) for v in (0.2, 0.4, 0.9)]).aiq == pytest.approx(0.5)


# What is refused


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mccp([1, 0], [0.1, 0.2]), r"sizes\[1\] is 0.0; it must be positive"),
        (lambda: mccp([1, math.nan], [0.1, 0.2]), r"sizes\[1\] is nan"),
        (lambda: mccp([1, 2], [0.1, 1.2]), r"performances\[1\] is 1.2; it must be in \[0, 1\]"),
        (lambda: mccp([1], [math.nan]), r"performances\[0\] is nan"),
        (lambda: mccp([1], [0.5], bins=0), "bins is 0"),
        (lambda: mccp([1], [0.5], variant="low"), "variant is 'low'; valid"),
        (lambda: half_samples([1, 2], [0.1, 0.2]), "needs 4 at least"),
        (lambda: relative([1, -1]), r"areas\[1\] is -1.0"),
        (lambda: observation_entropy([0.0, math.inf]), "not finite"),
        (lambda: image_entropy([[0.0]], 0), "n_classes is 0"),
        (lambda: dissimilarity([0.5, 1.5]), r"observed\[1\] is 1.5"),
        (lambda: dissimilarities([[0, -0.1], [0.2, 0]]), r"measured\[0, 1\] is -0.1"),
        (lambda: dissimilarities([[0, math.nan], [math.nan, 0]]), "are both missing"),
        (lambda: dissimilarities(TABLE, debias=True), "debias needs"),
        (lambda: space([[0, -1], [-1, 0]], [1, 1]), r"dissimilarities\[0, 1\] is -1.0"),
        (lambda: space([[0, 0.5], [0.4, 0]], [1, 1]), "take the mean of both"),
        (lambda: space([[0.1, 0.5], [0.5, 0]], [1, 1]), "a test is like itself"),
        (lambda: space([[0, math.nan], [math.nan, 0]], [1, 1]), r"dissimilarities\[0, 1\] is nan"),
        (lambda: space(TABLE, [1, 0, 1]), r"complexities\[1\] is 0.0"),
        (lambda: space(TABLE, [1, 1, 1], k=4), "k is 4; the dissimilarities have 3 dimensions"),
        (lambda: space(TABLE, [1, 1, 1], k=0), "k is 0"),
        (lambda: space(TABLE, [1, 1, 1], k=2.5), "k is 2.5"),
        (lambda: space(TABLE, [1, 1, 1], d_max=0.5), "d_max is 0.5, and the largest"),
        (lambda: space(TABLE, [1, 1, 1], d_max=0.0), "d_max is 0.0; it must be positive"),
        (lambda: space(TABLE, [1, 1, 1], model="flat"), "model is 'flat'; valid"),
        (lambda: quotient(space(TABLE, [1, 1, 1]), [1, 1, 1.1]), r"performances\[2\] is 1.1"),
        (lambda: hull_volume([[1.0, math.nan]]), r"points\[0\] has a coordinate"),
        (lambda: hull_volume(np.random.default_rng(0).random((41, 12))), "would take minutes"),
        (lambda: quotient_interval(space(TABLE, [1, 1, 1]), [[1], [1], []]), "has no episode"),
        (lambda: apti(-0.1, 0.2), "agent is -0.1"),
        (lambda: apti(0.1, math.nan), "baseline is nan"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: mccp([1, 2], [0.5]),
        lambda: mccp([], []),
        lambda: relative([]),
        lambda: dissimilarity([0.5]),
        lambda: dissimilarities([[0]]),
        lambda: space([[0]], [1]),
        lambda: space(TABLE, [1, 1]),
        lambda: quotient(space(TABLE, [1, 1, 1]), [1, 1]),
        lambda: quotient_interval(space(TABLE, [1, 1, 1]), [[1], [1]]),
        lambda: hull_volume([1.0, 2.0]),
        lambda: observation_entropy([]),
        lambda: image_entropy([1.0], 2),
    ],
)
def test_shapes_that_do_not_fit_are_refused(call):
    with pytest.raises(ShapeError):
        call()
