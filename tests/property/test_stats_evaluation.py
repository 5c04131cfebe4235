"""What must hold for every number that compares sides, rates and policies."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_eval.stats.agreement import cohens_kappa, mmrv, pearson, ranking_agreement, rating_table
from robo_eval.stats.clustered import new_cluster_rate
from robo_eval.stats.joint import sim_real_intervals
from robo_eval.stats.multiple import holm, letters, rank_ranges
from robo_eval.stats.paired import bonett_price_interval, mcnemar_p, paired_table
from robo_eval.stats.planning import exposure_for_rate, failure_free_episodes, mcnemar_power
from robo_eval.stats.prediction_powered import prediction_powered_rate
from robo_eval.stats.proportions import clopper_pearson_interval
from robo_eval.stats.rates import garwood_interval, rate_comparison_p, rate_ratio_interval
from robo_eval.stats.sequential import (
    anytime_p,
    confidence_sequence,
    paired_e_process,
    paired_e_value,
    rate_e_value,
    robbins_interval,
)
from robo_eval.stats.stopping import StoppingRule, stop_decision
from robo_eval.stats.unpaired import barnard_p, newcombe_interval

COUNTS = st.integers(1, 3000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
SMALL = st.integers(1, 25).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
EVENTS = st.integers(0, 500)
HOURS = st.floats(0.01, 1e5)
LEVELS = st.sampled_from([0.8, 0.9, 0.95, 0.99])
SIDES = st.sampled_from(["two", "greater", "less"])
PAIRS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=60)
SHARES = st.integers(0, 20).map(lambda tick: tick / 20)
MIRROR = {"two": "two", "greater": "less", "less": "greater"}


@given(EVENTS, HOURS, st.floats(1.0, 100.0), LEVELS)
def test_more_exposure_never_raises_a_bound(events, hours, times, level):
    low, high = garwood_interval(events, hours, level=level)
    assert 0.0 <= low <= events / hours <= high
    longer = garwood_interval(events, hours * times, level=level)
    assert longer[0] <= low * (1 + 1e-12)
    assert longer[1] <= high * (1 + 1e-12)
    more = garwood_interval(events + 1, hours, level=level)
    assert more[0] > low
    assert more[1] > high


@given(EVENTS, HOURS)
def test_rate_interval_holds_the_one_sided_bounds(events, hours):
    low, high = garwood_interval(events, hours)
    assert garwood_interval(events, hours, sided="upper")[1] < high
    assert garwood_interval(events, hours, sided="lower")[0] >= low


@given(EVENTS, HOURS, EVENTS, HOURS, st.sampled_from(["score", "exact"]))
def test_ratio_turns_over_when_sides_swap(a, h_a, b, h_b, method):
    low, high = rate_ratio_interval(a, h_a, b, h_b, method=method)
    other_low, other_high = rate_ratio_interval(b, h_b, a, h_a, method=method)
    assert low <= high
    if b > 0:
        assert math.isclose(high * other_low, 1.0, rel_tol=1e-8)
        assert low <= a / h_a / (b / h_b) * (1 + 1e-9)
    else:
        assert (high, other_low) == (math.inf, 0.0)
    if a > 0:
        assert math.isclose(low * other_high, 1.0, rel_tol=1e-8)


@given(EVENTS, HOURS, EVENTS, HOURS, SIDES, st.booleans())
def test_rate_comparison_mirrors_when_sides_swap(a, h_a, b, h_b, side, mid_p):
    p = rate_comparison_p(a, h_a, b, h_b, alternative=side, mid_p=mid_p)
    mirrored = rate_comparison_p(b, h_b, a, h_a, alternative=MIRROR[side], mid_p=mid_p)
    assert 0.0 <= p <= 1.0
    assert math.isclose(p, mirrored, rel_tol=1e-6, abs_tol=1e-12)


@given(PAIRS, st.randoms(use_true_random=False))
def test_reordering_pairs_changes_nothing(pairs, random):
    shuffled = list(pairs)
    random.shuffle(shuffled)
    assert paired_table(*zip(*pairs, strict=True)) == paired_table(*zip(*shuffled, strict=True))
    found = sim_real_intervals(*zip(*pairs, strict=True), safety=0.9, resamples=100)
    again = sim_real_intervals(*zip(*shuffled, strict=True), safety=0.9, resamples=100)
    assert found == again


@given(PAIRS, LEVELS)
def test_sim_real_numbers_are_inside_their_intervals_and_ranges(pairs, level):
    found = sim_real_intervals(*zip(*pairs, strict=True), safety=0.8, level=level, resamples=100)
    for name in ("sim", "real", "agreement", "index"):
        statistic = getattr(found, name)
        assert 0.0 <= statistic.value <= 1.0
        assert (statistic.low is None) == (statistic.reason is not None)
        if statistic.low is not None:
            assert 0.0 <= statistic.low <= statistic.high <= 1.0
    assert found.agreement.low <= found.agreement.value <= found.agreement.high
    assert found.difference.low <= found.difference.value <= found.difference.high


@given(st.integers(0, 400), st.integers(0, 400), st.integers(0, 400), LEVELS)
def test_paired_difference_mirrors_and_moves_with_successes(b, c, same, level):
    n = b + c + same + 1
    low, high = bonett_price_interval(b, c, n, level=level)
    other_low, other_high = bonett_price_interval(c, b, n, level=level)
    assert math.isclose(low, -other_high, abs_tol=1e-12)
    assert math.isclose(high, -other_low, abs_tol=1e-12)
    assert -1.0 <= low <= high <= 1.0
    # One more pair that only the first side wins, in the place of one that told nothing.
    more_low, more_high = bonett_price_interval(b + 1, c, n, level=level)
    assert more_high >= high
    assert more_low + more_high >= low + high


@given(st.integers(0, 400), st.integers(0, 400), SIDES, st.booleans())
def test_mcnemar_mirrors_and_falls_with_wins(b, c, side, mid_p):
    p = mcnemar_p(b, c, alternative=side, mid_p=mid_p)
    assert 0.0 < p <= 1.0
    assert math.isclose(p, mcnemar_p(c, b, alternative=MIRROR[side], mid_p=mid_p), rel_tol=1e-9)
    assert mcnemar_p(b + 1, c, alternative="greater") <= mcnemar_p(b, c, alternative="greater")
    assert mcnemar_p(b, c, alternative=side, mid_p=True) <= mcnemar_p(b, c, alternative=side)


@given(COUNTS, COUNTS, LEVELS)
def test_a_success_more_never_lowers_a_bound(first, second, level):
    (k1, n1), (k2, n2) = first, second
    low, high = newcombe_interval(k1, n1, k2, n2, level=level)
    assert -1.0 - 1e-12 <= low <= k1 / n1 - k2 / n2 + 1e-12
    assert high <= 1.0 + 1e-12
    if k1 < n1:
        more = newcombe_interval(k1 + 1, n1, k2, n2, level=level)
        assert more[0] >= low - 1e-12
        assert more[1] >= high - 1e-12
        more = robbins_interval(k1 + 1, n1, level=level)
        ends = robbins_interval(k1, n1, level=level)
        assert more[0] >= ends[0]
        assert more[1] >= ends[1]


@given(SMALL, SMALL, SIDES)
def test_unpaired_p_mirrors_when_sides_swap(first, second, side):
    p = barnard_p(*first, *second, alternative=side)
    assert 0.0 < p <= 1.0
    assert math.isclose(p, barnard_p(*second, *first, alternative=MIRROR[side]), rel_tol=1e-5)


@given(COUNTS, LEVELS)
def test_looking_at_any_time_costs_width(counts, level):
    """The sequence holds the exact interval: what holds at all n holds at this one."""
    k, n = counts
    low, high = robbins_interval(k, n, level=level)
    fixed_low, fixed_high = clopper_pearson_interval(k, n, level=level)
    assert low <= fixed_low + 1e-12
    assert high >= fixed_high - 1e-12
    wider = robbins_interval(k, n, level=0.999)
    assert wider[0] <= low
    assert wider[1] >= high
    mirrored = robbins_interval(n - k, n, level=level)
    assert math.isclose(low, 1.0 - mirrored[1], abs_tol=1e-12)


@given(st.lists(st.integers(0, 1), min_size=1, max_size=80), LEVELS)
def test_sequences_are_nested(outcomes, level):
    low, high = confidence_sequence(outcomes, level=level)
    assert (np.diff(low) >= 0.0).all()
    assert (np.diff(high) <= 0.0).all()
    wide_low, wide_high = confidence_sequence(outcomes, level=0.995)
    assert (wide_low <= low).all()
    assert (wide_high >= high).all()


@given(SIDES, st.sampled_from([0.05, 0.3, 0.5, 0.9]), st.integers(0, 7))
def test_evidence_is_a_fair_bet_if_the_rate_is_true(side, rate, n):
    """By enumeration: from every history, the expected evidence is the present one."""
    for history in itertools.product((0, 1), repeat=n):
        k = sum(history)
        now = rate_e_value(k, n, rate, alternative=side)
        won, lost = (rate_e_value(k + more, n + 1, rate, alternative=side) for more in (1, 0))
        assert rate * won + (1.0 - rate) * lost == pytest.approx(now, rel=1e-9)


@given(st.sampled_from([0.1, 0.4, 0.69]), st.integers(0, 12))
def test_one_sided_evidence_shrinks_on_average_below_the_rate(true_rate, n):
    """A fair bet at 0.7 is a losing one at every rate that it is not evidence for."""
    for k in range(n + 1):
        now = rate_e_value(k, n, 0.7, alternative="greater")
        won, lost = (rate_e_value(k + more, n + 1, 0.7, alternative="greater") for more in (1, 0))
        assert true_rate * won + (1.0 - true_rate) * lost <= now * (1 + 1e-9)


@given(PAIRS, SIDES)
def test_evidence_of_pairs_mirrors_and_skips_ties(pairs, side):
    first, second = zip(*pairs, strict=True)
    e = paired_e_process(first, second, alternative=side)
    mirrored = paired_e_process(second, first, alternative=MIRROR[side])
    assert e.tolist() == pytest.approx(mirrored.tolist())
    b, c = sum(x > y for x, y in pairs), sum(x < y for x, y in pairs)
    assert e[-1] == pytest.approx(paired_e_value(b, c, alternative=side))
    p = anytime_p(e)
    assert (np.diff(p) <= 0.0).all()
    assert p[-1] == pytest.approx(min(1.0, 1.0 / e.max()))


@given(PAIRS, SIDES, st.integers(1, 40), st.booleans())
def test_asking_late_gives_the_answer_of_asking_every_time(pairs, side, max_n, hopeless):
    rule = StoppingRule(what="pairs", max_n=max_n, side=side, alpha=0.2, hopeless=hopeless)
    at_once = stop_decision(rule, pairs)
    for n in range(len(pairs) + 1):
        found = stop_decision(rule, pairs[:n])
        if found.stop:
            assert found == at_once
            break
    else:
        assert not at_once.stop
    if at_once.verdict == "undecided" and hopeless:
        patient = StoppingRule(what="pairs", max_n=max_n, side=side, alpha=0.2, hopeless=False)
        assert stop_decision(patient, pairs).verdict in (None, "undecided")


@given(st.lists(st.tuples(SHARES, SHARES), min_size=2, max_size=8), st.booleans())
def test_rank_violation_ignores_the_order_of_policies(rates, half):
    ties = "half" if half else "published"
    sim, real = zip(*rates, strict=True)
    found = mmrv(sim, real, ties=ties)
    back = mmrv(sim[::-1], real[::-1], ties=ties)
    assert math.isclose(found, back, abs_tol=1e-12)
    assert 0.0 <= found <= max(real) - min(real) + 1e-12
    assert mmrv(real, real, ties=ties) == 0.0
    # Any rise in simulation that keeps its order keeps the violation.
    assert mmrv([x**3 for x in sim], real, ties=ties) == found


@given(st.lists(st.tuples(SHARES, SHARES), min_size=0, max_size=8))
def test_correlation_is_a_number_or_a_reason(rates):
    sim, real = zip(*rates, strict=True) if rates else ((), ())
    found = pearson(sim, real)
    assert (found.value is None) <= (found.reason is not None)
    if found.low is not None:
        assert -1.0 <= found.low <= found.value <= found.high <= 1.0
    other = pearson(real, sim)
    assert (found.value is None) == (other.value is None)


@given(
    st.lists(st.lists(st.tuples(SHARES, SHARES), min_size=1, max_size=6), min_size=2, max_size=5),
    st.randoms(use_true_random=False),
)
def test_ranking_ignores_the_order_of_policies_and_pairs(policies, random):
    shuffled = [random.sample(pairs, len(pairs)) for pairs in policies]
    random.shuffle(shuffled)

    def agreement(table):
        sides = [[[pair[side] for pair in pairs] for pairs in table] for side in (0, 1)]
        return ranking_agreement(*sides, paired=True, resamples=100)

    assert agreement(policies) == agreement(shuffled)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=60))
def test_kappa_ignores_who_is_first_and_what_categories_are_called(ratings):
    first, second = zip(*ratings, strict=True)
    found = cohens_kappa(rating_table(first, second))
    swapped = cohens_kappa(rating_table(second, first))
    renamed = cohens_kappa(rating_table([-x for x in first], [-x for x in second]))
    for other in (swapped, renamed):
        assert (found.value, found.low, found.high) == pytest.approx(
            (other.value, other.low, other.high), abs=1e-9
        )
    if found.value is not None:
        assert -1.0 - 1e-12 <= found.value <= 1.0 + 1e-12


@given(PAIRS.filter(lambda pairs: len(pairs) >= 3), st.lists(st.integers(0, 1), min_size=2))
def test_prediction_powered_rate_ignores_order_and_stays_a_rate(pairs, more):
    pairs = pairs * 20
    real, sim = zip(*pairs, strict=True)
    found = prediction_powered_rate(real, sim, more)
    back = prediction_powered_rate(real[::-1], sim[::-1], more[::-1])
    assert found.estimate.value == pytest.approx(back.estimate.value)
    assert 0.0 <= found.weight <= 1.0
    if found.estimate.low is not None:
        assert 0.0 <= found.estimate.low <= found.estimate.value <= found.estimate.high <= 1.0


@given(st.floats(0.01, 0.999), st.floats(1e-4, 10.0), st.integers(0, 20))
def test_stricter_plans_need_more(rate, event_rate, events):
    assert failure_free_episodes(rate, level=0.99) >= failure_free_episodes(rate)
    assert failure_free_episodes((1 + rate) / 2) >= failure_free_episodes(rate)
    hours = exposure_for_rate(event_rate, events=events)
    assert exposure_for_rate(event_rate, events=events + 1) > hours
    assert exposure_for_rate(event_rate / 2, events=events) == pytest.approx(2 * hours)


@given(st.integers(1, 200), st.floats(0.0, 0.5), st.floats(0.0, 0.5), SIDES)
def test_power_is_a_chance_and_mirrors(n, win, loss, side):
    power = mcnemar_power(n, win, loss, alternative=side)
    assert -1e-12 <= power <= 1.0 + 1e-9
    mirrored = mcnemar_power(n, loss, win, alternative=MIRROR[side])
    assert math.isclose(power, mirrored, abs_tol=1e-9)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20))
def test_adjusting_raises_p_values_and_keeps_their_order(p):
    adjusted = holm(p)
    assert (adjusted >= np.array(p)).all()
    assert adjusted.max() <= 1.0
    order = np.argsort(p, kind="stable")
    assert (np.diff(adjusted[order]) >= 0.0).all()


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.lists(st.integers(-1, 1), min_size=n * n, max_size=n * n)
    )
)
def test_ranks_follow_the_decisions(cells):
    n = math.isqrt(len(cells))
    table = np.triu(np.reshape(cells, (n, n)), 1)
    better = (table > 0) | (table < 0).T
    names = [set(name) for name in letters(better)]
    best, worst = rank_ranges(better)
    assert (best <= worst).all()
    for i, j in itertools.permutations(range(n), 2):
        assert bool(names[i] & names[j]) == (not better[i, j] and not better[j, i])


@given(st.lists(SMALL, min_size=1, max_size=10), st.randoms(use_true_random=False))
def test_clusters_in_another_order_give_the_same(clusters, random):
    shuffled = list(clusters)
    random.shuffle(shuffled)
    found = new_cluster_rate(*zip(*clusters, strict=True))
    assert found == new_cluster_rate(*zip(*shuffled, strict=True))
    assert (found.value is None) == (len(clusters) < 3)
    if found.value is not None:
        assert 0.0 <= found.low <= found.value <= found.high <= 1.0
        assert found.high - found.low > 0.0
