import numpy as np
import pytest
from scipy import stats

from robo_eval.stats.agreement import (
    cohens_kappa,
    mmrv,
    pearson,
    ranking_agreement,
    rating_table,
)


def by_the_book(sim, real):
    """The published loop."""
    violations = []
    for i in range(len(sim)):
        worst = 0.0
        for j in range(len(sim)):
            if (sim[i] > sim[j]) != (real[i] > real[j]):
                worst = max(worst, abs(real[i] - real[j]))
        violations.append(worst)
    return np.mean(violations)


def test_violation_equals_the_published_loop():
    rng = np.random.default_rng(1)
    for policies in (2, 3, 7):
        for _ in range(20):
            sim, real = rng.integers(0, 6, (2, policies)) / 5
            assert mmrv(sim, real) == pytest.approx(by_the_book(sim, real))


def test_ties_count_half_if_wanted():
    assert mmrv([0.5, 0.5, 0.1], [0.2, 0.8, 0.0]) == pytest.approx(0.2)
    # Only the better of the two is charged as published; both are charged half.
    assert mmrv([0.5, 0.5, 0.1], [0.2, 0.8, 0.0], ties="half") == pytest.approx(0.2)
    assert mmrv([0.5, 0.5], [0.5, 0.5], ties="half") == 0.0
    assert mmrv([0.2, 0.8], [0.8, 0.2], ties="half") == pytest.approx(0.6)
    assert mmrv([0.2, 0.8], [0.5, 0.5], ties="half") == 0.0


def test_interval_equals_scipys():
    rng = np.random.default_rng(2)
    for policies in (4, 6, 20):
        x = rng.random(policies)
        y = x + rng.random(policies)
        expected = stats.pearsonr(x, y)
        ends = expected.confidence_interval(0.9)
        found = pearson(x, y, level=0.9)
        assert found.value == pytest.approx(expected.statistic)
        assert (found.low, found.high) == pytest.approx(tuple(ends))


def test_correlation_that_does_not_exist_has_no_value_and_a_reason():
    assert pearson([0.5] * 5, [0.1, 0.2, 0.3, 0.4, 0.5]).reason == "all policies are equal in sim"
    found = pearson([0.1, 0.2, 0.3, 0.4], [0.7] * 4)
    assert (found.value, found.low, found.high) == (None, None, None)
    assert found.reason == "all policies are equal in real"
    assert pearson([], []).reason == "0 policies; a correlation needs 4"
    line = pearson([0.1, 0.2, 0.3, 0.4], [0.2, 0.4, 0.6, 0.8])
    assert line.value == pytest.approx(1.0)
    assert (line.low, line.reason) == (None, "all policies lie on one line")
    assert (
        pearson([0.1, 0.2], [0.3, 0.1], least_policies=2).reason == "all policies lie on one line"
    )


def policies_of(rates, n, rng):
    return [(rng.random(n) < rate).astype(float) for rate in rates]


def test_ranking_has_intervals_from_its_episodes():
    rng = np.random.default_rng(3)
    sim = policies_of([0.9, 0.7, 0.5, 0.3, 0.1], 50, rng)
    real = policies_of([0.8, 0.6, 0.5, 0.2, 0.1], 30, rng)
    found = ranking_agreement(sim, real, paired=False, resamples=1000)
    means = [np.mean(x) for x in sim], [np.mean(x) for x in real]
    assert found.mmrv.value == pytest.approx(mmrv(*means))
    assert found.pearson.value == pytest.approx(pearson(*means).value)
    assert found.pearson.low < found.pearson.value < found.pearson.high <= 1.0
    assert 0.0 <= found.mmrv.low <= found.mmrv.high < 0.2
    assert found.mmrv.method == "bootstrap_of_episodes_percentile"
    assert found.mmrv.n == 5


def test_pairs_that_agree_stay_pairs():
    """Where both sides of each pair ended alike, every resample agrees: r is 1 in all of them."""
    sim = policies_of([0.9, 0.6, 0.4, 0.2], 20, np.random.default_rng(4))
    torn = ranking_agreement(sim, sim, paired=False, resamples=500)
    kept = ranking_agreement(sim, sim, paired=True, resamples=500)
    assert kept.pearson.reason == "every resample gives the same value"
    assert kept.mmrv.value == 0.0
    assert torn.pearson.low < 0.99


def test_undefined_resamples_widen_the_interval():
    """Two sides that are almost constant: many resamples have no correlation at all."""
    sim = [[1.0] * 19 + [0.0], [1.0] * 20, [1.0] * 20, [1.0] * 20]
    found = ranking_agreement(sim, sim[::-1], paired=True, resamples=500)
    assert found.pearson.value is not None
    assert found.pearson.low is None
    assert "of the resamples" in found.pearson.reason


def test_too_few_policies_are_not_ranked():
    one = ranking_agreement([[1, 0]], [[1, 0]], paired=True)
    assert (one.mmrv.value, one.mmrv.reason) == (None, "1 policies; a ranking needs 2")
    three = ranking_agreement([[1, 0], [1, 1], [0, 0]], [[1, 0], [1, 1], [0, 1]], paired=True)
    assert three.mmrv.value == 0.0
    assert three.pearson.reason == "3 policies; a correlation needs 4"


def test_impossible_rankings_are_refused():
    with pytest.raises(ValueError, match="a ranking needs 2 policies, given 1"):
        mmrv([0.1], [0.2])
    with pytest.raises(ValueError, match="of equal length, given 2 and 3"):
        mmrv([0.1, 0.2], [0.1, 0.2, 0.3])
    with pytest.raises(ValueError, match="sim holds nan, which is not finite"):
        mmrv([0.1, float("nan")], [0.1, 0.2])
    with pytest.raises(ValueError, match="ties must be 'published' or 'half', given 'none'"):
        mmrv([0.1, 0.2], [0.1, 0.2], ties="none")
    with pytest.raises(ValueError, match="same policies, given 1 and 2"):
        ranking_agreement([[1]], [[1], [0]], paired=True)
    with pytest.raises(ValueError, match="no episodes on one side"):
        ranking_agreement([[1], []], [[1], [0]], paired=False)
    with pytest.raises(ValueError, match="of equal length, given 1 and 2"):
        ranking_agreement([[1], [1]], [[1, 0], [0]], paired=True)


def test_kappa_and_its_error_by_simulation():
    """The large-sample error is the spread of kappa over many tables of 400 ratings."""
    p = np.array([[0.4, 0.1], [0.15, 0.35]])
    tables = np.random.default_rng(5).multinomial(400, p.ravel(), size=3000).reshape(-1, 2, 2)
    found = [cohens_kappa(table) for table in tables]
    spread = np.std([kappa.value for kappa in found])
    error = np.mean([(kappa.high - kappa.low) / 2 for kappa in found]) / stats.norm.ppf(0.975)
    assert error == pytest.approx(spread, rel=0.05)


def test_kappa_that_does_not_exist_has_no_value_and_a_reason():
    assert cohens_kappa([[0, 0], [0, 0]]).reason == "nothing was rated"
    assert cohens_kappa([[7, 0], [0, 0]]).value is None
    assert cohens_kappa([[7, 0], [0, 0]]).reason == "both raters used one category only"
    full = cohens_kappa([[7, 0], [0, 2]])
    assert full.value == pytest.approx(1.0)
    assert (full.low, full.reason) == (None, "the raters never differ")
    never = cohens_kappa([[0, 10], [10, 0]])
    assert never.value == pytest.approx(-1.0)
    assert never.reason == "its large-sample standard error is 0"


def test_ratings_are_counted():
    table = rating_table([0, 0, 1, 2, 2], [0, 1, 1, 2, 0])
    assert table.tolist() == [[1, 1, 0], [0, 1, 0], [1, 0, 1]]
    assert rating_table([3, 9], [9, 9]).tolist() == [[0, 1], [0, 1]]


def test_impossible_ratings_are_refused():
    with pytest.raises(ValueError, match=r"table must have shape \(K, K\), given \(2, 3\)"):
        cohens_kappa([[1, 2, 3], [4, 5, 6]])
    with pytest.raises(ValueError, match=r"whole numbers, given 0\.5"):
        cohens_kappa([[0.5, 1], [1, 1]])
    with pytest.raises(ValueError, match="of equal length"):
        rating_table([1, 2], [1])
