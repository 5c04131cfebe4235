"""Statistics of robot evaluations against worked numbers.

Without another source named, the numbers are from scipy 1.17.1 and statsmodels 0.15.0, or worked
by hand from the formula cited in the docstring of the function.
"""

import math

import numpy as np
import pytest
from scipy import stats

from robo_eval.stats.agreement import cohens_kappa, mmrv, pearson
from robo_eval.stats.clustered import new_cluster_rate
from robo_eval.stats.joint import joint_intervals, sim_real_intervals
from robo_eval.stats.multiple import holm
from robo_eval.stats.paired import (
    PairedTable,
    bonett_price_interval,
    least_deciding_pairs,
    mcnemar_p,
    paired_success_difference,
    smallest_mcnemar_p,
)
from robo_eval.stats.planning import (
    episodes_for_width,
    episodes_per_arm,
    exposure_for_rate,
    failure_free_episodes,
    mcnemar_power,
    pairs_for_power,
)
from robo_eval.stats.prediction_powered import prediction_powered_rate
from robo_eval.stats.proportions import clopper_pearson_interval, wilson_interval
from robo_eval.stats.rates import garwood_interval, rate_comparison_p, rate_ratio_interval
from robo_eval.stats.resampling import mean_interval
from robo_eval.stats.sequential import paired_e_value, robbins_interval
from robo_eval.stats.stopping import StoppingRule, sequential_power
from robo_eval.stats.unpaired import newcombe_interval


def near(*numbers, digits=10):
    wanted = numbers if len(numbers) > 1 else numbers[0]
    return pytest.approx(wanted, abs=0.51 * 10.0**-digits)


# Rates of events


@pytest.mark.parametrize(
    ("events", "hours", "two_sided", "upper"),
    [
        (0, 40.0, (0.0, 0.0922219864), 0.0748933068),
        (3, 120.0, (0.0051556010, 0.0730606089), 0.0646138044),
        (1, 10.0, (0.0025317808, 0.5571643391), 0.4743864518),
        (0, 100.0, (0.0, 0.0368887945), 0.0299573227),
        (1, 200.0, (0.0001265890, 0.0278582170), None),
        (6, 200.0, (0.0110094713, 0.0652973701), None),
        (0, 1000.0, (0.0, 0.0036888795), 0.0029957323),
    ],
)
def test_exact_interval_of_a_rate(events, hours, two_sided, upper):
    assert garwood_interval(events, hours) == near(*two_sided)
    if upper is not None:
        assert garwood_interval(events, hours, sided="upper") == near(0.0, upper)


def test_mean_time_between_failures_without_a_failure():
    """T / -ln 0.05, the one-sided lower bound."""
    upper = garwood_interval(0, 200.0, sided="upper")[1]
    assert 1.0 / upper == pytest.approx(200.0 / -math.log(0.05), rel=1e-12)


@pytest.mark.parametrize(
    ("counts", "exact", "mid", "ratio"),
    [
        ((5, 100.0, 1, 80.0), 0.2360393722, 0.1654765063, (0.6196912, 25.8193111)),
        ((12, 300.0, 30, 250.0), 0.0009177279, 0.0007130488, (0.1727072, 0.6433495)),
        ((3, 10.0, 3, 10.0), 1.0, 0.84375, (0.2309454, 4.3300271)),
    ],
)
def test_comparison_of_two_rates(counts, exact, mid, ratio):
    assert rate_comparison_p(*counts) == near(exact)
    assert rate_comparison_p(*counts, mid_p=True) == near(mid)
    assert rate_ratio_interval(*counts) == near(*ratio, digits=7)


# Pairs


def test_difference_of_paired_rates():
    table = PairedTable(both=14, only_first=2, only_second=0, neither=4)
    found = paired_success_difference(table)
    assert found.value == pytest.approx(0.1, abs=1e-12)
    assert found.standard_error == near(0.0688247, digits=7)
    assert found.unpaired_standard_error == near(0.1395481, digits=7)
    assert found.unpaired_standard_error / found.standard_error == pytest.approx(2.0, abs=0.05)
    assert found.p == 0.5
    assert (found.low, found.high) == near(-0.0831728, 0.2649910, digits=7)


@pytest.mark.parametrize(
    ("b", "c", "n", "centre", "ends"),
    [
        (2, 0, 20, 0.0909091, (-0.0831728, 0.2649910)),
        (8, 2, 50, 0.1153846, (-0.0113606, 0.2421299)),
    ],
)
def test_interval_of_the_paired_difference(b, c, n, centre, ends):
    low, high = bonett_price_interval(b, c, n)
    assert (low, high) == near(*ends, digits=7)
    assert (low + high) / 2.0 == near(centre, digits=7)


def test_fewest_pairs_that_can_decide():
    assert smallest_mcnemar_p(6) == 0.03125
    assert smallest_mcnemar_p(5) > 0.05
    assert least_deciding_pairs(0.05) == 6
    for n in range(1, 12):
        assert smallest_mcnemar_p(n) == mcnemar_p(n, 0) == 2.0 ** (1 - n)


def test_interval_of_an_unpaired_difference():
    """Newcombe (1998), Statistics in Medicine 17:873-890, table II, method 10, four decimals."""
    printed = {
        (56, 70, 48, 80): (0.0524, 0.3339),
        (9, 10, 3, 10): (0.1705, 0.8090),
        (6, 7, 2, 7): (0.0582, 0.8062),
        (5, 56, 0, 29): (-0.0381, 0.1926),
        (0, 10, 0, 20): (-0.1611, 0.2775),
        (0, 10, 0, 10): (-0.2775, 0.2775),
        (10, 10, 0, 20): (0.6791, 1.0),
        (10, 10, 0, 10): (0.6075, 1.0),
    }
    for counts, ends in printed.items():
        assert newcombe_interval(*counts) == near(*ends, digits=4)


def test_ratio_over_pairs_is_narrower_than_over_sides():
    pairs = [(1, 1)] * 14 + [(1, 0)] * 2 + [(0, 0)] * 4
    (ratio,) = joint_intervals(pairs, [lambda means: means[:, 1] / means[:, 0]], resamples=20_000)
    assert ratio.value == pytest.approx(0.875)
    assert (ratio.low, ratio.high) == pytest.approx((0.69, 1.0), abs=0.006)


def test_agreement_and_index_of_rates():
    """AR_sim .92, AR .85, safety .92: S2R .93, E .8992833802."""
    pairs = [(1, 1)] * 80 + [(1, 0)] * 12 + [(0, 1)] * 5 + [(0, 0)] * 3
    found = sim_real_intervals(*zip(*pairs, strict=True), safety=0.92)
    assert found.sim.value == pytest.approx(0.92)
    assert found.real.value == pytest.approx(0.85)
    assert found.agreement.value == pytest.approx(0.93)
    assert found.index.value == near(0.8992833802)


# Rankings: rates per policy of SIMPLER (Li et al. 2024), pick-coke-can and move-near


def test_rank_violation_weighs_by_reality():
    sim = [0.787, 0.857, 0.710, 0.567, 0.027, 0.170]
    real = [0.907, 0.853, 0.920, 0.760, 0.133, 0.293]
    assert mmrv(sim, real) == near(0.0313333, digits=7)
    assert mmrv(real, sim) == near(0.0618333, digits=7)  # sides swapped: a wrong number
    found = pearson(sim, real)
    assert found.value == near(0.9754340, digits=7)
    assert (found.low, found.high) == near(0.786, 0.997, digits=3)

    sim = [0.779, 0.442, 0.354, 0.317, 0.050, 0.042]
    real = [0.733, 0.633, 0.583, 0.450, 0.017, 0.350]
    assert mmrv(sim, real) == near(0.1110, digits=10)
    assert mmrv(real, sim) == near(0.0026667, digits=7)


def test_three_policies_prove_nothing():
    sim, real = [0.0, 0.125, 0.472], [0.0, 0.333, 0.417]
    assert mmrv(sim, real) == 0.0
    assert pearson(sim, real).value is None
    found = pearson(sim, real, least_policies=3)
    assert found.value == near(0.827, digits=3)
    assert (found.low, found.high) == (-1.0, 1.0)


def test_ties_as_published():
    assert mmrv([0.5, 0.5], [0.2, 0.8]) == pytest.approx(0.30)
    assert mmrv([0.2, 0.8], [0.5, 0.5]) == 0.0


@pytest.mark.parametrize(
    ("table", "kappa", "ends"),
    [
        ([[20, 5], [10, 15]], 0.4, (0.1510922905, 0.6489077095)),
        ([[44, 5, 1], [7, 20, 3], [9, 5, 6]], 0.4915254237, (0.3501582012, 0.6328926462)),
    ],
)
def test_kappa_of_two_raters(table, kappa, ends):
    found = cohens_kappa(table)
    assert found.value == near(kappa)
    assert (found.low, found.high) == near(*ends)


# Looking early


@pytest.mark.parametrize(
    ("k", "n", "ends"),
    [
        (9, 10, (0.4548817473, 0.9995435831)),
        (10, 10, (0.5831197243, 1.0)),
        (47, 50, (0.7675567338, 0.9960817400)),
        (72, 80, (0.7551015254, 0.9755856203)),
        (0, 20, (0.0, 0.2606713509)),
    ],
)
def test_interval_that_holds_at_any_time(k, n, ends):
    assert robbins_interval(k, n) == near(*ends)


def test_evidence_of_pairs():
    two_sided = {
        (8, 2): 2.0686869,
        (10, 2): 4.7738928,
        (6, 0): 9.1428571,
        (8, 0): 28.4444444,
        (12, 2): 12.0029304,
    }
    one_sided = {(8, 2): 4.0020202, (6, 0): 18.1428571, (7, 0): 31.875}
    for (b, c), e in two_sided.items():
        assert paired_e_value(b, c) == near(e, digits=7)
        assert paired_e_value(c, b) == near(e, digits=7)
    for (b, c), e in one_sided.items():
        assert paired_e_value(b, c, alternative="greater") == near(e, digits=7)
        assert paired_e_value(c, b, alternative="less") == near(e, digits=7)


def ever_missed(intervals, p):
    """Exact chance that an interval looked at after each trial misses p at least once."""
    alive, missed = np.ones(1), 0.0
    for low, high in intervals:
        alive = p * np.append(0.0, alive) + (1.0 - p) * np.append(alive, 0.0)
        outside = (p < low) | (p > high)
        missed += alive[outside].sum()
        alive = np.where(outside, 0.0, alive)
    return missed


def test_peeking_breaks_a_fixed_interval_and_not_a_sequence():
    """200 looks; the first two beside simulations of a few thousand series (29 % and 21 %)."""
    looks = range(1, 201)
    fixed = [clopper_pearson_interval(np.arange(n + 1), n) for n in looks]
    assert ever_missed(fixed, 0.5) == pytest.approx(0.29, abs=0.015)
    assert ever_missed(fixed, 0.1) == pytest.approx(0.21, abs=0.015)
    sequence = [robbins_interval(np.arange(n + 1), n) for n in looks]
    missed = [ever_missed(sequence, p) for p in (0.1, 0.3, 0.5, 0.7, 0.9)]
    assert 0.015 <= min(missed) <= max(missed) <= 0.035


@pytest.mark.parametrize(
    ("win", "loss", "power", "pairs", "fixed"),
    [
        (0.4, 0.05, 1.00, 25, 1.00),
        (0.5, 0.1, 1.00, 25, 1.00),
        (0.3, 0.1, 0.78, 59, 0.93),
        (0.25, 0.15, 0.23, 89, 0.42),
    ],
)
def test_power_of_stopping_early(win, loss, power, pairs, fixed):
    """One-sided, at most 100 pairs, alpha 5 %, beside the exact test at 100 pairs."""
    rule = StoppingRule(what="pairs", max_n=100, side="greater", hopeless=False)
    found = sequential_power(rule, win, loss)
    assert found.greater == pytest.approx(power, abs=0.006)
    assert found.mean_n == pytest.approx(pairs, abs=0.6)
    assert found.less == 0.0
    assert mcnemar_power(100, win, loss, alternative="greater") == pytest.approx(fixed, abs=0.006)


def test_false_decisions_of_stopping_early():
    for side in ("two", "greater"):
        rule = StoppingRule(what="pairs", max_n=100, side=side)
        for chance in (0.1, 0.25):
            found = sequential_power(rule, chance, chance)
            assert 0.014 <= found.greater + found.less <= 0.026


# Prediction-powered


def test_simulation_sharpens_the_real_rate():
    real = [1] * 21 + [0] * 9
    sim = [1] * 19 + [0] * 2 + [1] * 3 + [0] * 6
    found = prediction_powered_rate(real, sim, [1] * 1500 + [0] * 500)
    assert found.plain.value == pytest.approx(0.70)
    assert found.plain_standard_error == near(0.0850963, digits=7)
    assert found.weight == near(0.6045678, digits=7)
    assert found.estimate.value == near(0.7100761, digits=7)
    assert found.standard_error == near(0.0688261, digits=7)
    assert found.correlation == near(0.592, digits=3)
    # As normal intervals, to compare; ours are Student's and wider.
    z = stats.norm.ppf(0.975)
    for value, error, ends in (
        (found.estimate.value, found.standard_error, (0.5752, 0.8450)),
        (found.plain.value, found.plain_standard_error, (0.5332, 0.8668)),
    ):
        assert (value - z * error, value + z * error) == near(*ends, digits=4)
    assert found.estimate.low < 0.5752
    assert found.estimate.high > 0.8450


# Planning


def test_episodes_for_a_width():
    assert [episodes_for_width(p, 0.2) for p in (0.5, 0.9)] == [104, 42]
    assert [episodes_for_width(p, 0.1) for p in (0.5, 0.9)] == [402, 155]


def test_episodes_without_a_failure():
    assert [failure_free_episodes(p) for p in (0.90, 0.95, 0.99)] == [29, 59, 299]


def test_hours_without_an_event():
    assert exposure_for_rate(1.0) == near(2.99573, digits=5)
    assert exposure_for_rate(1.0, events=1) == near(4.74386, digits=5)
    assert [exposure_for_rate(r) for r in (0.1, 0.01, 0.001)] == pytest.approx(
        [29.96, 299.6, 2995.7], abs=0.05
    )
    assert [exposure_for_rate(r, events=1) for r in (0.1, 0.01, 0.001)] == pytest.approx(
        [47.4, 474.4, 4743.9], abs=0.05
    )


def test_episodes_and_pairs_that_tell_two_policies_apart():
    assert episodes_per_arm(0.9, 0.7) == 60
    assert episodes_per_arm(0.8, 0.7) == 292
    assert pairs_for_power(0.25, 0.05) == 61
    assert pairs_for_power(0.15, 0.05) == 168


# Clusters, comparisons


def test_four_tasks_of_ten_episodes():
    k = [9, 8, 10, 5]
    assert wilson_interval(32, 40) == near(0.652, 0.895, digits=3)  # as if independent: too narrow
    over_tasks = mean_interval([0.9, 0.8, 1.0, 0.5])
    assert (over_tasks.low, over_tasks.high) == near(0.456, 1.144, digits=3)
    # Student's t leaves the unit interval; the likelihood of a beta-binomial stays in it.
    found = new_cluster_rate(k, 10)
    assert found.value == pytest.approx(0.8)
    assert over_tasks.low - 0.1 < found.low < 0.575
    assert 0.95 < found.high < 1.0


def test_p_values_of_many_comparisons():
    p = [0.01, 0.04, 0.03, 0.005, 0.2, 0.012]
    assert holm(p).tolist() == pytest.approx([0.05, 0.09, 0.09, 0.03, 0.2, 0.05])


@pytest.mark.parametrize(
    ("interval", "n", "least", "mean"),
    [
        (clopper_pearson_interval, 10, 0.962, 0.983),
        (clopper_pearson_interval, 20, 0.959, 0.976),
        (clopper_pearson_interval, 50, 0.953, 0.968),
        (wilson_interval, 10, 0.914, 0.956),
        (wilson_interval, 20, 0.925, 0.953),
        (wilson_interval, 50, 0.922, 0.951),
    ],
)
def test_coverage_of_proportions(interval, n, least, mean):
    """Exact, over rates .02 ... .98."""
    rates = np.linspace(0.02, 0.98, 97)
    k = np.arange(n + 1)
    low, high = interval(k, n)
    inside = (low[:, None] <= rates) & (rates <= high[:, None])
    coverage = (stats.binom.pmf(k[:, None], n, rates) * inside).sum(axis=0)
    assert coverage.mean() == pytest.approx(mean, abs=0.0015)
    assert coverage.min() == pytest.approx(least, abs=0.0015)
