import numpy as np
import pytest
from scipy import stats

from robo_eval.stats.resampling import (
    cells_mean_interval,
    mean_interval,
    mean_intervals,
    paired_difference_interval,
    stratified_mean_interval,
)


def _scipy(x, method, seed, resamples=2000):
    found = stats.bootstrap(
        (np.sort(x),),
        np.mean,
        method=method,
        n_resamples=resamples,
        rng=np.random.default_rng(seed),
    )
    return found.confidence_interval.low, found.confidence_interval.high


@pytest.mark.parametrize("n", [17, 30, 80])
@pytest.mark.parametrize(("ours", "theirs"), [("bca", "BCa"), ("percentile", "percentile")])
def test_bootstrap_equals_scipy_resample_for_resample(n, ours, theirs):
    x = np.random.default_rng(n).beta(5, 1, n)
    found = mean_interval(x, method=ours, resamples=2000, seed=4)
    assert (found.low, found.high) == pytest.approx(_scipy(x, theirs, 4), abs=1e-12)


def test_student_t_equals_scipy():
    x = np.array([0.2, 0.4, 0.9, 0.35])
    expected = stats.t.interval(0.9, 3, loc=x.mean(), scale=stats.sem(x))
    found = mean_interval(x, level=0.9)
    assert found.method == "student_t"
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("n", "method"), [(2, "none"), (3, "student_t"), (9, "student_t"), (10, "bca")]
)
def test_method_follows_the_sample_size(n, method):
    assert mean_interval(np.linspace(0.1, 0.9, n)).method == method


def test_few_or_equal_values_have_a_reason_instead_of_an_interval():
    two = mean_interval([0.1, 0.2])
    assert (two.low, two.high, two.reason) == (None, None, "2 values; an interval needs 3")
    equal = mean_interval([0.1] * 30)
    assert (equal.value, equal.low, equal.reason) == (0.1, None, "all 30 values are equal")
    assert mean_interval([0.3]).reason == "one value"


def test_many_samples_at_once_give_what_each_gives_alone():
    rng = np.random.default_rng(1)
    samples = [rng.random(n) for n in (12, 5, 12, 1, 30, 12)]
    samples.append(np.full(12, 0.5))
    together = mean_intervals(samples, resamples=500, seed=9)
    alone = [mean_interval(x, resamples=500, seed=9) for x in samples]
    for a, b in zip(together, alone, strict=True):
        assert (a.n, a.method, a.reason) == (b.n, b.method, b.reason)
        if a.low is not None:
            assert (a.low, a.high) == pytest.approx((b.low, b.high), abs=1e-12)


def test_pairs_are_resampled_as_pairs():
    """14 of 20 agree at success, 2 succeed on one side only: pairing halves the error."""
    a = np.array([1.0] * 16 + [0.0] * 4)
    b = np.array([1.0] * 14 + [0.0] * 6)
    paired = paired_difference_interval(a, b, method="percentile")
    assert paired.value == pytest.approx(0.1)
    assert (paired.low, paired.high) == pytest.approx((0.0, 0.25), abs=0.051)
    shuffled = paired_difference_interval(
        a, np.random.default_rng(0).permutation(b), method="percentile"
    )
    assert shuffled.high - shuffled.low > 1.5 * (paired.high - paired.low)


TASKS = [[1.0] * k + [0.0] * (10 - k) for k in (9, 8, 10, 5)]


def test_strata_these_and_like_these_answer_different_questions():
    these = stratified_mean_interval(TASKS, over="these")
    like = stratified_mean_interval(TASKS, over="like_these")
    assert these.value == like.value == pytest.approx(0.8)
    assert (these.low, these.high) == pytest.approx((0.70, 0.90), abs=0.02)
    assert (like.low, like.high) == pytest.approx((0.575, 0.975), abs=0.01)


def test_strata_of_unequal_size_count_once_each():
    found = stratified_mean_interval([[0.0, 0.2], [1.0] * 50 + [0.9]], over="these")
    assert found.value == pytest.approx((0.1 + 50.9 / 51) / 2)
    two_stage = stratified_mean_interval([[0.0, 0.2], [1.0] * 50 + [0.9]], over="like_these")
    assert two_stage.low < 0.2
    assert two_stage.high > 0.99


def test_stratified_variance_is_unbiased_for_small_strata():
    """With five draws a plain bootstrap would be 11 % too narrow."""
    rng = np.random.default_rng(2)
    strata = [rng.normal(size=5) for _ in range(40)]
    found = stratified_mean_interval(strata, over="these", resamples=9999)
    variance = sum(np.var(x, ddof=1) / 5 for x in strata) / 40**2
    half = 1.959964 * variance**0.5
    assert (found.high - found.low) / 2 == pytest.approx(half, rel=0.03)


def test_strata_that_cannot_be_resampled_say_why():
    assert (
        "cannot be resampled" in stratified_mean_interval([[0.1, 0.2], [1.0]], over="these").reason
    )
    assert "one stratum" in stratified_mean_interval([[0.1, 0.2]], over="like_these").reason
    equal = stratified_mean_interval([[0.1, 0.1], [0.4, 0.4]], over="these")
    assert (equal.value, equal.low) == (0.25, None)
    spread = stratified_mean_interval([[0.1, 0.1], [0.4, 0.4]], over="like_these")
    assert (spread.low, spread.high) == pytest.approx((0.1, 0.4))


@pytest.mark.parametrize("sizes", [(3, 3), (3, 5, 9), (5, 5, 5, 5)])
@pytest.mark.parametrize("name", ["normal", "uniform"])
def test_the_interval_over_small_cells_covers_what_it_says(sizes, name):
    rng = np.random.default_rng(len(sizes))
    draw = {"normal": lambda n: rng.normal(0.5, 0.2, n), "uniform": rng.random}[name]
    covered = 0
    for _ in range(1500):
        found = cells_mean_interval([draw(n) for n in sizes])
        assert found.method == "welch_t"
        covered += found.low <= 0.5 <= found.high
    assert covered / 1500 >= 0.925  # by resampling it would be 0.80 to 0.92


def test_the_interval_over_two_small_cells_is_that_of_welch():
    a, b = np.array([0.2, 0.4, 0.9, 0.35]), np.array([0.5, 0.1, 0.6])
    found = cells_mean_interval([a, b], level=0.9)
    theirs = stats.ttest_ind(a, -b, equal_var=False).confidence_interval(0.9)
    assert (found.low, found.high) == pytest.approx((theirs.low / 2, theirs.high / 2), abs=1e-12)
    assert cells_mean_interval([b, a], level=0.9) == found


def test_the_smallest_cell_decides_how_the_interval_is_made():
    rng = np.random.default_rng(1)
    few = cells_mean_interval([rng.random(2), rng.random(20)])
    assert (few.low, few.reason) == (
        None,
        "a condition has 2 of the 3 values that an interval needs in each",
    )
    assert cells_mean_interval([[0.5], [0.1] * 9]).reason.startswith("a condition has 1 of the 3")
    assert cells_mean_interval([rng.random(3), rng.random(20)]).method == "welch_t"
    many = [rng.random(10), rng.random(20)]
    assert cells_mean_interval(many) == stratified_mean_interval(many, over="these")
    assert cells_mean_interval(many[:1]) == mean_interval(many[0])
    equal = cells_mean_interval([[0.1] * 3, [0.3] * 3])
    assert (equal.value, equal.low) == (pytest.approx(0.2), None)
    assert cells_mean_interval([[0.1] * 3, [0.1, 0.2, 0.3]]).low is not None
    with pytest.raises(ValueError, match="no strata"):
        cells_mean_interval([])


@pytest.mark.parametrize(
    ("values", "match"),
    [([], "n >= 1"), ([[1.0]], "shape"), ([0.1, float("nan")], "not finite")],
)
def test_values_that_are_none_are_refused(values, match):
    with pytest.raises(ValueError, match=match):
        mean_interval(values)


def test_impossible_settings_are_refused():
    with pytest.raises(ValueError, match="resamples must be at least 100"):
        mean_interval([0.1, 0.2, 0.3], resamples=10)
    with pytest.raises(ValueError, match="method must be"):
        mean_interval([0.1, 0.2, 0.3], method="wald")
    with pytest.raises(ValueError, match="equal length, given 1 and 2"):
        paired_difference_interval([0.1], [0.1, 0.2])
    with pytest.raises(ValueError, match="over must be"):
        stratified_mean_interval(TASKS, over="all")
    with pytest.raises(ValueError, match="no strata"):
        stratified_mean_interval([], over="these")
