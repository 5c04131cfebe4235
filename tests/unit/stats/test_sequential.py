import itertools

import numpy as np
import pytest
from scipy import integrate
from scipy.integrate import quad

from robo_eval.stats.sequential import (
    anytime_p,
    confidence_sequence,
    log_rate_e,
    paired_e_process,
    paired_e_value,
    rate_e_value,
    robbins_interval,
)
from robo_eval.stats.stopping import StoppingRule, sequential_power, stop_decision


@pytest.mark.parametrize(
    ("alternative", "bounds"), [("two", (0, 1)), ("greater", (0.3, 1)), ("less", (0, 0.3))]
)
def test_evidence_is_the_likelihood_ratio_averaged_over_the_other_rates(alternative, bounds):
    for k, n in ((0, 0), (2, 9), (7, 9), (9, 9), (0, 12)):

        def ratio(q, k=k, n=n):
            return (q / 0.3) ** k * ((1 - q) / 0.7) ** (n - k)

        expected = integrate.quad(ratio, *bounds)[0] / (bounds[1] - bounds[0])
        assert rate_e_value(k, n, 0.3, alternative=alternative) == pytest.approx(expected, rel=1e-8)


def test_interval_ends_are_where_the_evidence_reaches_its_bound():
    k, n = np.array([3, 40, 999, 1]), np.array([10, 50, 1000, 100_000])
    low, high = robbins_interval(k, n, level=0.9)
    for i in range(4):
        for end in (low[i], high[i]):
            assert log_rate_e(k[i], n[i], end, "two") == pytest.approx(np.log(10.0), rel=1e-6)


def test_interval_opens_at_the_edges():
    low, high = robbins_interval([0, 20], [20, 20])
    assert low[0] == 0.0
    assert high[1] == 1.0
    assert low[1] == pytest.approx(1.0 - high[0], rel=1e-12)
    assert type(robbins_interval(1, 2)[0]) is float


def test_sequence_only_narrows():
    outcomes = np.random.default_rng(3).random(300) < 0.7
    low, high = confidence_sequence(outcomes)
    assert (np.diff(low) >= 0.0).all()
    assert (np.diff(high) <= 0.0).all()
    last = robbins_interval(int(outcomes.sum()), 300)
    assert low[-1] >= last[0]
    assert high[-1] <= last[1]
    assert low[-1] < 0.7 < high[-1]


def test_crossed_ends_tell_of_a_rate_that_changed():
    low, high = confidence_sequence([1] * 60 + [0] * 200)
    assert low[-1] > high[-1]


def test_process_counts_discordant_pairs_only():
    first, second = [1, 1, 0, 1, 0], [1, 0, 0, 0, 1]
    assert paired_e_process(first, second).tolist() == pytest.approx(
        [
            1.0,
            paired_e_value(1, 0),
            paired_e_value(1, 0),
            paired_e_value(2, 0),
            paired_e_value(2, 1),
        ]
    )


def test_anytime_p_is_one_over_the_largest_evidence():
    assert anytime_p([0.2, 5.0, 2.0, 50.0, np.inf]).tolist() == [1.0, 0.2, 0.2, 0.02, 0.0]
    assert anytime_p([]).tolist() == []


def test_evidence_too_large_for_a_float_is_infinite():
    assert rate_e_value(5000, 5000, 0.5) == np.inf
    assert log_rate_e(5000, 5000, 0.5, "two") == pytest.approx(5000 * np.log(2.0) - np.log(5001))
    assert rate_e_value(0, 5000, 0.5, alternative="greater") == 0.0


SIDES = ["two", *(pytest.param(side, marks=pytest.mark.slow) for side in ("greater", "less"))]


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("hopeless", [False, True])
def test_power_equals_playing_every_series(side, hopeless):
    rule = StoppingRule(what="pairs", max_n=7, side=side, alpha=0.3, hopeless=hopeless)
    chances = {(1, 0): 0.5, (0, 1): 0.2, (1, 1): 0.3}
    greater = less = mean_n = 0.0
    for series in itertools.product(chances, repeat=7):
        chance = np.prod([chances[pair] for pair in series])
        found = stop_decision(rule, series)
        greater += chance * (found.verdict == "greater")
        less += chance * (found.verdict == "less")
        mean_n += chance * found.n
    power = sequential_power(rule, 0.5, 0.2)
    assert (power.greater, power.less, power.mean_n) == pytest.approx((greater, less, mean_n))


@pytest.mark.parametrize("side", SIDES)
def test_evidence_of_a_mean_is_the_wealth_of_all_bets_alike(side):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 6, (30, 2)) / 5
    first, last = {"two": (-1.0, 1.0), "greater": (0.0, 1.0), "less": (-1.0, 0.0)}[side]

    def wealth(bet):
        return float(np.prod(1.0 + bet * (x[:, 0] - x[:, 1])))

    expected = quad(wealth, first, last, epsabs=1e-13)[0] / (last - first)
    rule = StoppingRule(what="pairs", max_n=30, side=side, alpha=1e-9, hopeless=False)
    assert stop_decision(rule, x).e == pytest.approx(expected)
    # Of outcomes of 0 and 1 it is that of discordant pairs.
    pairs = rng.integers(0, 2, (30, 2))
    b, c = (pairs[:, 0] > pairs[:, 1]).sum(), (pairs[:, 1] > pairs[:, 0]).sum()
    found = stop_decision(rule, pairs)
    assert found.e == pytest.approx(paired_e_value(int(b), int(c), alternative=side))


def test_equal_means_are_rarely_told_apart_however_skewed():
    """One policy fails a fifth of every seed, the other all of a fifth of the seeds."""
    rng = np.random.default_rng(0)
    rule = StoppingRule(what="pairs", max_n=100)
    series = [np.column_stack([np.full(100, 0.8), rng.random(100) > 0.2]) for _ in range(200)]
    decided = [stop_decision(rule, one).verdict != "undecided" for one in series]
    assert np.mean(decided) <= 0.05
    # Who won each seed would decide every time.
    wins = [np.column_stack([x[:, 0] > x[:, 1], x[:, 1] > x[:, 0]]) for x in series]
    assert all(stop_decision(rule, one).verdict == "less" for one in wins)


def test_power_for_a_rate_equals_playing_every_series():
    rule = StoppingRule(what="rate", max_n=9, side="two", alpha=0.2, rate=0.4)
    greater = less = mean_n = 0.0
    for series in itertools.product((0, 1), repeat=9):
        chance = 0.8 ** sum(series) * 0.2 ** (9 - sum(series))
        found = stop_decision(rule, series)
        greater += chance * (found.verdict == "greater")
        less += chance * (found.verdict == "less")
        mean_n += chance * found.n
    power = sequential_power(rule, 0.8)
    assert (power.greater, power.less, power.mean_n) == pytest.approx((greater, less, mean_n))


def test_stopping_says_why():
    rule = StoppingRule(what="pairs", max_n=30, side="greater")
    going = stop_decision(rule, [(1, 0), (1, 1)])
    assert (going.stop, going.verdict, going.n) == (False, None, 2)
    assert going.reason == "2 of at most 30 pairs: evidence 1.5 of 20 needed"
    won = stop_decision(rule, [(1, 0)] * 20)
    assert (won.stop, won.verdict, won.n) == (True, "greater", 7)
    assert won.reason == "decided after 7 pairs: evidence 31.9 of 20 needed"
    assert won.p == pytest.approx(1 / 31.875)
    even = stop_decision(StoppingRule(what="pairs", max_n=8, hopeless=False), [(1, 0), (0, 1)] * 4)
    assert (even.stop, even.verdict, even.n) == (True, "undecided", 8)
    assert even.reason.startswith("undecided after all 8 pairs")


def test_stopping_early_where_nothing_can_decide_any_more():
    rule = StoppingRule(what="pairs", max_n=10)
    lost = stop_decision(rule, [(1, 0), (0, 1)] * 3)
    assert (lost.stop, lost.verdict, lost.n) == (True, "undecided", 2)
    assert lost.reason == "undecided after 2 pairs: the other 8 cannot decide"
    never = stop_decision(StoppingRule(what="pairs", max_n=6), [])
    assert (never.stop, never.n) == (True, 0)
    assert sequential_power(StoppingRule(what="pairs", max_n=6), 0.9, 0.0).mean_n == 0.0


def test_stopping_two_sided_names_the_side():
    rule = StoppingRule(what="pairs", max_n=30)
    assert stop_decision(rule, [(0, 1)] * 8).verdict == "less"
    assert stop_decision(rule, [(1, 0)] * 8).verdict == "greater"
    rate = StoppingRule(what="rate", max_n=100, rate=0.9, side="less")
    found = stop_decision(rate, [1, 0, 0, 0])
    assert (found.verdict, found.n) == ("less", 4)
    assert found.reason.startswith("decided after 4 episodes")


def test_an_empty_series_has_not_begun():
    for what in ("pairs", "rate"):
        found = stop_decision(StoppingRule(what=what, max_n=50), [])
        assert (found.stop, found.n, found.e, found.p) == (False, 0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"what": "pair"}, "what must be 'pairs' or 'rate', given 'pair'"),
        ({"max_n": 0}, "max_n must be at least 1, given 0"),
        ({"side": "both"}, "side must be"),
        ({"alpha": 1.0}, "alpha must be between 0 and 1, given 1.0"),
        ({"rate": 0.7}, "rate must be 0.5 for pairs, given 0.7"),
        ({"what": "rate", "rate": 1.0}, "rate must be between 0 and 1"),
    ],
)
def test_impossible_rules_are_refused(values, match):
    with pytest.raises(ValueError, match=match):
        StoppingRule(**{"what": "pairs", "max_n": 10} | values)


def test_impossible_outcomes_are_refused():
    pairs = StoppingRule(what="pairs", max_n=10)
    with pytest.raises(ValueError, match=r"must have shape \(n, 2\), given \(3,\)"):
        stop_decision(pairs, [1, 0, 1])
    with pytest.raises(ValueError, match="from 0 to 1, given nan; leave missing ones out"):
        stop_decision(pairs, [(1, float("nan"))])
    with pytest.raises(ValueError, match=r"0 and 1 only, given 0\.5"):
        confidence_sequence([0.5])
    with pytest.raises(ValueError, match="k must be at most n, given 3 of 2"):
        rate_e_value(3, 2, 0.5)
    with pytest.raises(ValueError, match="rate must be between 0 and 1, given 0"):
        rate_e_value(1, 2, 0.0)
    with pytest.raises(ValueError, match="no data, no interval"):
        robbins_interval(0, 0)
    with pytest.raises(ValueError, match="level must be"):
        robbins_interval(1, 2, level=1.0)
    with pytest.raises(ValueError, match="at least 0"):
        anytime_p([1.0, -1.0])
    with pytest.raises(ValueError, match="loss is missing"):
        sequential_power(pairs, 0.5)
    with pytest.raises(ValueError, match="add up to 1 at most"):
        sequential_power(pairs, 0.7, 0.6)
