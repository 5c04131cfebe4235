import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robo_eval.analysis.acc import (
    analyse,
    attainable_maximum,
    bootstrap,
    bootstrap_seeds,
    isometrics,
    population,
)
from robo_eval.core.errors import InputError, ShapeError


def test_float_noise_does_not_split_a_level():
    found = analyse([1, 0, 1, 0], [0.1 + 0.2, 0.3, 0.7, 0.1 * 7])
    assert len(found.levels) == 2
    np.testing.assert_array_equal(found.curve, [0.5, 0.5])
    assert (found.h0, found.q) == (0.3, 0.7)


def test_noise_around_zero_does_not_split_a_level():
    assert len(analyse([1, 0, 0], [0.3 - 0.1 * 3, 0.0, 1.0]).levels) == 2


def test_difficulties_that_differ_in_the_eighth_digit_stay_apart():
    assert len(analyse([1, 0], [1.0, 1.0000001]).levels) == 2


def test_levels_count_once_however_many_items_they_hold():
    few = analyse([1, 0, 1, 0], [0, 1, 1, 2])
    many = analyse([*[1] * 50, 0, 1, 0], [*[0] * 50, 1, 1, 2])
    assert few.area == many.area
    np.testing.assert_array_equal(many.counts, [50, 2, 1])


def test_no_success_is_a_floor():
    found = analyse([0, 0, 0], [1, 2, 3])
    assert (found.area, found.capability, found.spread, found.flag) == (0.0, 1.0, 0.0, "floor")
    assert math.isnan(found.normalised_generality)
    assert math.isnan(found.expected_difficulty)
    assert found.generality == math.inf


@pytest.mark.parametrize("levels", [[1, 2, 3], [0.1, 0.2, 0.7], list(np.linspace(0, 1, 17) ** 3)])
def test_nothing_but_success_is_a_ceiling(levels):
    found = analyse([1] * len(levels), levels)
    width = levels[-1] - levels[0]
    assert (found.area, found.flag) == (pytest.approx(width), "ceiling")
    assert found.spread == pytest.approx(0.0, abs=1e-6)
    assert math.isnan(found.normalised_generality)


def test_one_level_says_nothing_about_generality():
    found = analyse([1, 0], [3, 3])
    assert (found.area, found.capability, found.spread, found.flag) == (
        0.0,
        3.0,
        0.0,
        "single_level",
    )
    assert math.isnan(found.normalised_generality)
    # A wider axis would be filled by assumption alone.
    assert analyse([1, 0], [3, 3], h0=0, q=5).flag == "single_level"
    assert math.isnan(analyse([1, 0], [3, 3], h0=0, q=5).normalised_generality)


def test_undefined_can_count_as_zero_for_published_figures():
    found = analyse([0, 0, 0], [1, 2, 3], undefined="zero")
    assert (found.normalised_generality, found.flag) == (0.0, "floor")


def test_an_explicit_end_that_differs_by_rounding_changes_nothing():
    for difficulty in ([0.3, 0.1 + 0.2], [0.1 * 3, 0.3, 0.7, 0.1 * 7], [-0.3, -(0.1 + 0.2), 0.0]):
        for response in (1.0, 0.0, 0.5):
            plain = analyse([response] * len(difficulty), difficulty)
            for h0, q in (
                (min(difficulty), max(difficulty)),
                (max(difficulty[:2]), None),
                (min(difficulty) - 1e-16, max(difficulty) + 1e-16),
            ):
                given = analyse([response] * len(difficulty), difficulty, h0=h0, q=q)
                for name in ("area", "capability", "spread", "normalised_generality", "flag"):
                    np.testing.assert_equal(getattr(given, name), getattr(plain, name), name)
                assert (given.h0, given.q) == (plain.h0, plain.q)
    # An end that is further away is meant.
    assert analyse([1, 0], [0.3, 0.7], q=0.7001).q == 0.7001


def test_fills_are_the_responses_assumed_beyond_the_levels():
    found = analyse([0.5, 0.5], [2, 4], h0=0, q=10)
    # 1 on [0, 2], 0.5 on [2, 4], 0 on [4, 10].
    assert found.area == pytest.approx(3.0)
    flat = analyse([0.5, 0.5], [2, 4], h0=0, q=10, left_fill=0.5, right_fill=0.5)
    assert (flat.area, flat.normalised_generality) == (5.0, 0.0)
    assert (flat.left_fill, flat.right_fill, flat.h0, flat.q) == (0.5, 0.5, 0.0, 10.0)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_integrals_are_those_of_the_curve_drawn_finely(data):
    """Area, centre and tilt against sums over thin slices of the curve itself."""
    numbers = st.floats(0.0, 1.0)
    levels = data.draw(st.lists(numbers, min_size=2, max_size=6, unique_by=lambda x: round(x, 2)))
    values = data.draw(st.lists(numbers, min_size=len(levels), max_size=len(levels)))
    fills = data.draw(st.tuples(numbers, numbers))
    order = np.argsort(levels)
    levels, values = np.array(levels)[order], np.array(values)[order]
    h0, q = -0.5, 1.5
    edges = np.linspace(h0, q, 40_001)
    x = (edges[1:] + edges[:-1]) / 2.0
    y = np.interp(x, levels, values, left=fills[0], right=fills[1])
    area, moment = y.mean() * (q - h0), (x * y).mean() * (q - h0)

    found = analyse(values, levels, h0=h0, q=q, left_fill=fills[0], right_fill=fills[1])

    assert found.area == pytest.approx(area, abs=1e-3)
    if area > 0.01:
        assert found.expected_difficulty == pytest.approx(moment / area, abs=1e-2)
    room = area * (q - h0 - area)
    if room > 0.1:
        tilt = ((x - (h0 + q) / 2.0) * y).mean() * (q - h0)
        assert found.normalised_generality == pytest.approx(-2.0 * tilt / room, abs=2e-2)


@given(st.floats(0.01, 0.99))
def test_a_step_has_no_spread_wherever_it_falls(level):
    assert analyse([0.5], [level], h0=0.0, q=1.0).spread == 0.0


def test_missing_responses_can_be_dropped_agent_by_agent():
    nan = math.nan
    response = [[1, 1, nan, 0, 0], [1, 0.5, 0.25, 0, nan], [1, 1, 0, 0, 0]]
    found = analyse(response, range(5), nan="drop")
    # A vanished inner level is bridged by a straight line.
    assert found.area[0] == analyse([1, 1, 0, 0], [0, 1, 3, 4]).area
    # A vanished outer level leaves a stretch to the fill; the axis stays that of all items.
    assert found.area[1] == analyse([1, 0.5, 0.25, 0], [0, 1, 2, 3], q=4).area
    assert (
        found.normalised_generality[2] == analyse([1, 1, 0, 0, 0], range(5)).normalised_generality
    )
    assert math.isnan(found.curve[0, 2])
    with pytest.raises(InputError, match="response of agent 0 to item 2 is NaN"):
        analyse(response, range(5))
    with pytest.raises(InputError, match="agent 1 has no response"):
        analyse([[1, 0], [nan, nan]], [0, 1], nan="drop")


def test_several_agents_at_once_give_what_each_gives_alone():
    rng = np.random.default_rng(0)
    response, difficulty = rng.random((6, 9)), rng.normal(size=9)
    together = analyse(response, difficulty)
    for index, row in enumerate(response):
        alone = analyse(row, difficulty)
        assert alone.area == pytest.approx(together.area[index], abs=1e-14)
        assert alone.normalised_generality == pytest.approx(together.normalised_generality[index])
        assert type(alone.area) is float


def test_binning_is_off_by_default_and_drops_thin_bins():
    difficulty = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10]
    response = [1, 1, 1, 1, 1, 0, 0, 0, 0, 0]
    assert len(analyse(response, difficulty).levels) == 10
    binned = analyse(response, difficulty, bins=5)
    np.testing.assert_allclose(binned.levels, [1, 3, 5, 7, 9])
    np.testing.assert_array_equal(binned.counts, [2, 2, 2, 2, 2])
    # The axis ends where the curve does: no response is made up.
    assert (binned.h0, binned.q) == (1.0, 9.0)
    thin = analyse([1, 1, 0], [0, 1, 10], bins=2, min_count=2)
    np.testing.assert_allclose(thin.levels, [2.5])
    with pytest.raises(InputError, match="no bin holds 5 items"):
        analyse(response, difficulty, bins=5, min_count=5)


@pytest.mark.parametrize(
    ("response", "difficulty", "options", "match"),
    [
        ([1, 2], [0, 1], {}, r"response of agent 0 to item 1 is 2.0; it must be in \[0, 1\]"),
        ([1, -0.1], [0, 1], {}, "item 1 is -0.1"),
        ([1, math.nan], [0, 1], {}, "give nan='drop'"),
        ([1, 0], [0, math.inf], {}, "difficulty of item 1 is inf"),
        ([1, 0], [0, 1], {"h0": 0.5}, "h0 is 0.5; it cannot be above the lowest difficulty"),
        ([1, 0], [0, 1], {"q": 0.5}, "q is 0.5; it cannot be below the highest difficulty"),
        ([1, 0], [0, 1], {"q": math.nan}, "q is nan; it must be finite"),
        ([1, 0], [0, 1], {"left_fill": 2}, r"left_fill is 2; it must be in \[0, 1\]"),
        ([1, 0], [0, 1], {"undefined": "none"}, "undefined is 'none'"),
        ([1, 0], [0, 1], {"nan": "ignore"}, "nan is 'ignore'"),
        ([1, 0], [0, 1], {"bins": 0}, "bins is 0"),
        (["a", 0], [0, 1], {}, "response must hold numbers"),
        ([1, 0], [-1e308, 1e308], {}, "too far apart"),
    ],
)
def test_bad_input_is_refused(response, difficulty, options, match):
    with pytest.raises(InputError, match=match):
        analyse(response, difficulty, **options)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ShapeError, match="difficulty names 3 items"):
        analyse([1, 0], [0, 1, 2])
    with pytest.raises(ShapeError, match="items >= 1"):
        analyse([], [])
    with pytest.raises(ShapeError, match=r"\(I,\) or \(A, I\)"):
        analyse(np.zeros((2, 2, 2)), [0, 1])
    with pytest.raises(ShapeError, match=r"must be \(agents, items\)"):
        population([1, 0], [0, 1])


def test_population_in_numbers():
    response = [
        [1, 1, 1, 0, 0],
        [0, 0, 1, 1, 1],
        [1, 1, 0, 0, 0],
        [0.5] * 5,
        [0] * 5,
    ]
    found = population(response, range(5))
    assert (found.n, found.n_undefined, found.n_abstruse) == (5, 1, 1)
    assert found.share_abstruse == 0.25
    assert found.mean_capability == pytest.approx((2.5 + 2.5 + 1.5 + 2.0 + 0) / 5)
    gamma = found.agents.normalised_generality
    assert found.mean_normalised_generality == pytest.approx(np.nanmean(gamma))
    known = ~np.isnan(gamma)
    expected = np.corrcoef(found.agents.capability[known], gamma[known])[0, 1]
    assert found.capability_generality == pytest.approx(expected)
    assert found.caution is None
    zero = population(response, range(5), undefined="zero")
    assert zero.mean_normalised_generality == pytest.approx(np.nansum(gamma) / 5)
    assert (zero.n_undefined, zero.share_abstruse) == (1, 0.2)
    # The first example of the paper: 15 of 24 items solved.
    (row,) = population([[1] * 15 + [0] * 9], np.repeat([0, 1, 2], 8)).row_variance
    assert row == pytest.approx(0.234375)


def test_correlations_are_not_to_be_read_on_few_levels_or_at_the_ends():
    assert "4 difficulty levels" in population([[1, 1, 0, 0], [1, 0, 0, 0]], range(4)).caution
    assert "with 1 difficulty level the ends" in population([[1], [0]], [3]).caution
    at_ends = population([[1] * 6, [0] * 6, [1, 1, 1, 0, 0, 0]], range(6))
    assert "2 of 3 agents are at floor or ceiling" in at_ends.caution
    assert at_ends.capability_generality is None


def test_isometrics_are_the_spreads_of_their_curves():
    fine = np.linspace(2.0, 5.0, 3001)
    lines = isometrics(2.0, 5.0, n=7)
    for capability, falling, constant, rising in zip(
        lines.capability[1:-1],
        lines.falling_step[1:-1],
        lines.constant[1:-1],
        lines.rising_step[1:-1],
        strict=True,
    ):
        area = capability - 2.0
        flat = analyse(np.full(fine.shape, area / 3.0), fine)
        assert flat.spread == pytest.approx(constant)
        up = analyse((fine > 5.0 - area).astype(float), fine)
        assert up.spread == pytest.approx(rising, rel=1e-3)
        down = analyse((fine < capability).astype(float), fine)
        assert down.spread == pytest.approx(falling, abs=1e-3)
    with pytest.raises(InputError, match="must be below"):
        isometrics(1.0, 1.0)
    with pytest.raises(InputError, match="at least 2 points"):
        isometrics(0.0, 1.0, n=1)


def test_attainable_maximum_of_a_single_level_is_undefined():
    assert attainable_maximum([3, 3]) is None


@pytest.mark.slow
def test_bootstrap_spreads_like_repeated_experiments():
    """The interval of the capability is as wide as repeating the whole experiment makes it."""
    rng = np.random.default_rng(0)
    difficulty = np.arange(8.0)
    rate = 1 / (1 + np.exp(difficulty - 3.5))
    repeats = [analyse(rng.binomial(40, rate) / 40, difficulty) for _ in range(2000)]
    outcomes = (rng.random((8, 40)) < rate[:, None]).astype(float)
    found = bootstrap(outcomes, difficulty, resamples=2000)
    for name in ("capability", "normalised_generality"):
        low, high = getattr(found, name)
        width = np.ptp(np.quantile([getattr(r, name) for r in repeats], [0.025, 0.975]))
        assert high - low == pytest.approx(width, rel=0.25)
    assert found.unreliable is None
    assert (found.n_levels, found.min_episodes) == (8, 40)


def test_bootstrap_resamples_items_within_levels():
    """Two items a level that always agree with themselves: all variation is between items."""
    difficulty = [0, 0, 1, 1, 2, 2]
    outcomes = np.repeat([[1.0], [1.0], [1.0], [0.0], [0.0], [0.0]], 30, axis=1)
    low, high = bootstrap(outcomes, difficulty).capability
    # The middle level is 0, 1/2 or 1 by the two items drawn; so the area is 0.5, 1 or 1.5.
    assert (low, high) == pytest.approx((0.5, 1.5))


def test_bootstrap_of_unequal_numbers_of_episodes_uses_each_item_s_own():
    nan = math.nan
    outcomes = [[1, 1, 1, 1], [1, 0, nan, nan], [0, 0, 0, nan]]
    low, high = bootstrap(outcomes, [0, 1, 2]).capability
    assert (low, high) == pytest.approx((0.5, 1.5))


def test_few_episodes_or_levels_are_unreliable():
    few = bootstrap(np.tile([1.0, 0.0, 1.0], (6, 1)), range(6))
    assert few.unreliable == "unreliable: fewer than 20 episodes at 6 of 6 difficulty levels"
    coarse = bootstrap(np.tile([1.0, 0.0], (5, 10)), range(5))
    assert coarse.unreliable == "unreliable: 5 difficulty levels, 6 needed"
    single = bootstrap([[1.0, 0.0]], [3])
    assert single.unreliable == (
        "unreliable: 1 difficulty level, 6 needed;"
        " fewer than 20 episodes at 1 of 1 difficulty level"
    )


def test_bootstrap_of_a_floor_agent_has_no_generality():
    found = bootstrap(np.zeros((6, 20)), range(6))
    assert found.normalised_generality is None
    assert found.expected_difficulty is None
    assert found.generality is None
    assert found.n_undefined == found.resamples
    assert found.capability == (0.0, 0.0)


def test_bootstrap_is_repeatable_and_blind_to_order():
    rng = np.random.default_rng(3)
    difficulty = np.array([0, 0, 1, 2, 2, 2, 3])
    outcomes = rng.random((7, 6))
    outcomes[2, 4:] = math.nan
    first = bootstrap(outcomes, difficulty, seed=5)
    assert bootstrap(outcomes, difficulty, seed=5) == first
    assert bootstrap(outcomes, difficulty, seed=6) != first
    order = rng.permutation(7)
    shuffled = rng.permuted(outcomes[order], axis=1)
    assert bootstrap(shuffled, difficulty[order], seed=5) == first


def test_bad_outcomes_are_refused():
    with pytest.raises(InputError, match=r"outcome of item 1, episode 0 is 2\.0"):
        bootstrap([[1.0], [2.0]], [0, 1])
    with pytest.raises(InputError, match="all NaN"):
        bootstrap([math.nan, math.nan], [0, 1])
    with pytest.raises(InputError, match="at least 100"):
        bootstrap([1, 0], [0, 1], resamples=10)
    with pytest.raises(ShapeError, match="difficulty names 3 items"):
        bootstrap([1, 0], [0, 1, 2])


def test_bootstrap_of_seeds_spreads_like_repeated_experiments():
    rng = np.random.default_rng(0)
    difficulty = np.arange(8.0)

    def experiment():
        able = 3.5 + rng.normal(0, 1.5, 20) + rng.normal(0, 1, (8, 20))
        return (able > difficulty[:, None]).astype(float)

    repeats = [analyse(experiment().mean(axis=1), difficulty) for _ in range(1000)]
    found = [bootstrap_seeds(experiment(), difficulty, resamples=400) for _ in range(20)]
    for name in ("capability", "spread", "normalised_generality"):
        width = np.ptp(np.quantile([getattr(r, name) for r in repeats], [0.025, 0.975]))
        assert np.mean([np.ptp(getattr(f, name)) for f in found]) == pytest.approx(width, rel=0.25)
    outcomes = experiment()
    by_seed, alone = bootstrap_seeds(outcomes, difficulty), bootstrap(outcomes, difficulty)
    assert np.ptp(by_seed.capability) > 1.5 * np.ptp(alone.capability)
    assert (by_seed.method, by_seed.n_seeds) == ("seed_bootstrap_percentile", 20)
    assert bootstrap_seeds(outcomes, difficulty) == by_seed


def test_items_and_counts_of_shared_seeds():
    outcomes = np.array([[1.0, 1, 1, 0], [1, 0, 1, 1], [0, 0, 1, 0], [0, 0, 0, math.nan]])
    found = bootstrap_seeds(outcomes, [0, 0, 1, 2], counts=np.where(outcomes == 1, 2, 1))
    assert found.capability[0] < found.capability[1]
    assert found.min_episodes == 3
    assert found.unreliable.startswith("unreliable: 4 seeds, shared by the items, 8 needed; ")
    with pytest.raises(ShapeError, match="counts must have the shape"):
        bootstrap_seeds(outcomes, [0, 0, 1, 2], counts=[[1.0]])
    lone = bootstrap_seeds([1.0, 0.0], [0, 1])
    assert (lone.capability, lone.reason) == (
        None,
        "1 seed, shared by the items, cannot be resampled; 3 needed",
    )
