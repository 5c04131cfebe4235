"""Which policy is better: worked numbers, ties, coverage, and what pairs a trial has."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from robo_eval.core.plain import plain
from robo_eval.core.plan import TrialPlan
from robo_eval.metrics.comparison import compare_policies
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.contrast import Attempts, contrast_of_pairs
from robo_eval.metrics.frame import episodes_frame
from robo_eval.metrics.standings import TESTS
from robo_eval.stats.clustered_pairs import clustered_difference
from robo_eval.stats.planning import minimum_detectable_difference
from robo_eval.stats.unconditional import pairs_interval, pairs_p

FAST = MetricConfig(resamples=999)


def episodes(policy, outcomes, *, first_seed=0, seeds=True, **columns):
    """One row an outcome (1, 0, or None for an episode that was lost)."""
    rows = []
    for index, outcome in enumerate(outcomes):
        seed = first_seed + index if seeds else None
        name = f"{policy}-{columns.get('side', 'sim')}-{columns.get('level', 0)}-{index}"
        rows.append(
            {
                "episode_id": name,
                "side": "sim",
                "task": "pick",
                "policy": policy,
                "attempt": 1,
                "level": 0,
                "difficulty": "easy",
                "seed": seed,
                "quality": outcome,
                "success": None if outcome is None else bool(outcome),
                "end_reason": {None: "fault", 0: "failure", 1: "success"}[outcome],
                **columns,
            }
        )
    return rows


def compared(*tables, plan=None, config=FAST):
    rows = [row for table in tables for row in table]
    sides = compare_policies(episodes_frame(pd.DataFrame(rows)), plan, config)
    json.dumps(plain(sides), allow_nan=False)
    return sides


def pair_of(*tables, **settings):
    (side,) = compared(*tables, **settings)
    (pair,) = side.pairs
    return pair


def outcomes(both, only_first, only_second, neither):
    first = [1] * (both + only_first) + [0] * (only_second + neither)
    second = [1] * both + [0] * only_first + [1] * only_second + [0] * neither
    return first, second


# Pairs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("table", "value"), [((14, 2, 0, 4), 0.10), ((20, 8, 2, 20), 0.12)])
def test_pairs_have_the_exact_interval_and_p(table, value):
    first, second = outcomes(*table)
    pair = pair_of(episodes("a", first), episodes("b", second))
    _, b, c, _ = table
    assert (pair.unit, pair.test, pair.difference.method) == ("pairs", "pairs_exact", "pairs_exact")
    assert pair.n_pairs == pair.n_units == sum(table)
    assert pair.difference.value == pytest.approx(value)
    low, high = pairs_interval(b, c, sum(table))
    assert (pair.difference.low, pair.difference.high) == pytest.approx((low, high))
    assert pair.p_value == pair.p_holm == pytest.approx(pairs_p(b, c, sum(table)))
    assert pair.verdict == "undecided"
    assert pair.winner is None


def test_too_few_pairs_say_how_many_could_decide():
    first, second = outcomes(14, 2, 0, 4)
    pair = pair_of(episodes("a", first), episodes("b", second))
    assert pair.detectable is None
    assert pair.least_deciding == 5
    assert pair.text == "no difference shown (20 pairs; at least 5 must end differently)"


def test_no_difference_comes_with_the_one_that_could_have_been_shown():
    first, second = outcomes(30, 8, 10, 13)
    pair = pair_of(episodes("a", first), episodes("b", second))
    expected = minimum_detectable_difference(61, 20 / 63, power=0.8, alpha=0.05, test="pairs")
    assert expected == pytest.approx(0.2, abs=0.02)
    assert expected < minimum_detectable_difference(61, 20 / 63)
    assert pair.detectable == pytest.approx(expected, abs=1e-6)
    assert f"could have shown >= {expected:.2f} with 80 % power" in pair.text


def test_five_discordant_pairs_of_fourteen_are_the_least_that_decide():
    for wins, winner in ((4, None), (5, "a")):
        pair = pair_of(episodes("a", [1] * wins + [1] * 9), episodes("b", [0] * wins + [1] * 9))
        assert pair.winner == winner
    assert pair.text == "a did better than b"
    assert pair.detectable is None


def test_a_longer_series_is_cut_to_the_seeds_that_both_played():
    pair = pair_of(episodes("a", [1] * 20), episodes("b", [0] * 8))
    assert pair.n_pairs == 8
    assert pair.left_out == 12
    assert pair.winner == "a"


def test_a_retried_episode_counts_once():
    again = [
        {**row, "episode_id": row["episode_id"] + "-a2", "attempt": 2}
        for row in episodes("a", [1, 1])
    ]
    pair = pair_of(episodes("a", [None, None, 1, 1]), again, episodes("b", [0, 0, 0, 0]))
    assert pair.n_pairs == 4
    assert pair.difference.value == 1.0


# Seeds that several pairs share ------------------------------------------------------------------


def levels(policy, table):
    return [row for level, own in enumerate(table) for row in episodes(policy, own, level=level)]


def test_a_seed_counts_once_where_conditions_share_it():
    """Twelve discordant pairs would decide; they are two seeds in six conditions."""
    a, b = [[1, 1, 0, 1]] * 6, [[0, 0, 0, 1]] * 6
    pair = pair_of(levels("a", a), levels("b", b))
    assert pair.unit == "seeds"
    assert (pair.n_pairs, pair.n_units, pair.n_discordant) == (24, 4, 2)
    assert pair.verdict == "undecided"
    assert stats.binomtest(12, 12).pvalue < 0.001


def test_five_seeds_decide_nothing_however_many_conditions_share_them():
    a = [[1, 1, 1, 1, 1], [1, 1, 1, 0, 1], [1, 1, 1, 1, 1]]
    b = [[0, 0, 1, 0, 0], [0, 0, 0, 0, 1], [1, 0, 0, 0, 0]]
    pair = pair_of(levels("a", a), levels("b", b))
    means = (np.array(a) - np.array(b)).mean(axis=0)
    with_ends = np.array([*means, 1.0, -1.0])
    t = with_ends.mean() / (with_ends.std() / np.sqrt(7))
    assert (pair.test, pair.p_value) == ("t_by_seed", pytest.approx(2 * stats.t.sf(t, 4)))
    assert pair.difference.value == pytest.approx(means.mean())
    assert pair.difference.low < 0.0
    assert pair.difference.high == 1.0
    assert pair.winner is None
    assert pair.text == "no difference shown (5 seeds are too few to show any)"


def repeated(policy, table):
    """Each seed played as often as its row is long."""
    rows = [row for own in zip(*table, strict=True) for row in episodes(policy, own)]
    return [{**row, "episode_id": f"{policy}-{i}"} for i, row in enumerate(rows)]


def test_a_seed_that_repeats_in_a_condition_pairs_by_its_mean():
    # Eight seeds, three times each: the first wins 2 of 3 on all of them, the second 1 of 3.
    a, b = [[1, 1, 0]] * 8, [[0, 1, 0]] * 8
    pair = pair_of(repeated("a", a), repeated("b", b))
    assert (pair.unit, pair.n_units, pair.n_pairs) == ("seeds", 8, 8)
    assert pair.difference.value == pytest.approx(1 / 3)
    # A policy that fails all three of one seed in four is met by no such seed in one of ten trials.
    assert pair.winner is None
    alike = pair_of(repeated("a", [[1] * 20] * 5 + [[0] * 20] * 5), repeated("b", [[1] * 20] * 10))
    assert (alike.n_units, alike.n_discordant) == (10, 5)
    assert alike.p_value == clustered_difference([1] * 5 + [0] * 5, [1] * 10).p


def test_another_number_of_repeats_changes_nothing_but_the_weights():
    one = pair_of(repeated("a", [[1, 0, 1]] * 7), repeated("b", [[0, 0]] * 7))
    assert (one.n_units, one.difference.value) == (7, pytest.approx(2 / 3))
    assert one.p_value == pytest.approx(clustered_difference([2 / 3] * 7, [1] * 7).p)


def test_many_seeds_are_tested_by_their_means():
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 2, (2, 4, 12)).tolist()
    pair = pair_of(levels("a", a), levels("b", b))
    sums = (np.array(a) - np.array(b)).sum(axis=0)
    found = clustered_difference(sums, [4] * 12)
    assert (pair.test, pair.p_value) == ("t_by_seed", pytest.approx(found.p))
    low, high = pair.difference.low, pair.difference.high
    assert low < pair.difference.value < high
    assert pair.detectable is None or 0.0 < pair.detectable <= 1.0


def test_seeds_that_all_agree_have_an_interval_all_the_same():
    alike = pair_of(levels("a", [[1] * 12, [1] * 12]), levels("b", [[1] * 12, [1] * 12]))
    assert alike.difference.value == 0.0
    assert alike.difference.low == -alike.difference.high
    assert alike.difference.high > 0.1  # 24 equal pairs of 12 seeds are no proof
    apart = pair_of(levels("a", [[1] * 12, [1] * 12]), levels("b", [[0] * 12, [0] * 12]))
    assert apart.winner == "a"
    assert apart.difference.low < 0.95


@pytest.mark.slow
@pytest.mark.parametrize("conditions", [2, 6])
@pytest.mark.parametrize("seeds", [4, 8, 11])
def test_equally_good_policies_are_rarely_told_apart(seeds, conditions):
    """Also where the outcomes of a seed are alike, as they are when it starts alike."""
    rng = np.random.default_rng(seeds * conditions)
    condition = np.repeat(np.arange(conditions), seeds)
    seed = np.tile(np.arange(seeds), conditions)
    config, wrong, runs = MetricConfig(resamples=100), 0, 400
    for _ in range(runs):
        own = rng.normal(0.0, 1.0, (2, seeds)) + rng.normal(0.0, 0.7, seeds)
        drawn = rng.normal(0.0, 1.0, (2, conditions, seeds)) < own[:, None, :]
        first, second = (
            Attempts(
                policy="any",
                success=side.ravel().astype(float),
                condition=condition,
                seed=seed,
                repeats=np.ones(len(seed), dtype=np.int64),
            )
            for side in drawn
        )
        wrong += contrast_of_pairs(first, second, 0, config).p_value <= 0.05
    assert wrong / runs <= 0.075


def failing(seeds, conditions, share, rng):
    """Two policies that fail as often: one apart in each condition, one in all of a seed."""
    apart = (rng.random((conditions, seeds)) >= share).astype(float)
    whole = np.tile((rng.random(seeds) >= share).astype(float), (conditions, 1))
    return apart, whole


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2])
def test_policies_that_fail_differently_are_told_apart_no_more_often(share):
    """Flipped signs of the seeds told them apart in 11 % of such trials."""
    rng, runs, wrong, missed = np.random.default_rng(0), 1000, 0, 0
    for _ in range(runs):
        apart, whole = failing(20, 5, share, rng)
        found = clustered_difference((apart - whole).sum(axis=0), [5] * 20)
        wrong += found.p <= 0.05
        missed += not found.low <= 0.0 <= found.high
    assert wrong == missed
    assert wrong / runs <= 0.055


def test_test_and_interval_of_seeds_say_the_same():
    rng = np.random.default_rng(5)
    for _ in range(15):
        a, b = ((rng.random((3, 9)) < share).astype(int).tolist() for share in (0.9, 0.4))
        pair = pair_of(levels("a", a), levels("b", b))
        assert (pair.p_value <= 0.05) == (not pair.difference.low <= 0.0 <= pair.difference.high)


# Without pairs -----------------------------------------------------------------------------------


def test_episodes_without_seeds_are_compared_unpaired():
    pair = pair_of(
        episodes("a", [1] * 56 + [0] * 14, seeds=False),
        episodes("b", [1] * 48 + [0] * 32, seeds=False),
    )
    assert (pair.unit, pair.test, pair.n_pairs) == ("episodes", "barnard", 0)
    assert (pair.difference.low, pair.difference.high) == pytest.approx((0.0524, 0.3339), abs=1e-4)
    found = stats.barnard_exact([[56, 48], [14, 32]], pooled=True)
    assert pair.p_value == pytest.approx(found.pvalue, abs=1e-4)
    assert pair.winner == "a"


def test_unpaired_episodes_say_what_they_could_have_shown():
    a = episodes("a", [1] * 30 + [0] * 30, seeds=False)
    pair = pair_of(a, episodes("b", [1] * 33 + [0] * 27, seeds=False))
    assert pair.verdict == "undecided"
    # 60 a side find a difference of 0.9 and 0.7; around one half it takes a larger one.
    assert 0.2 < pair.detectable < 0.3
    tiny = pair_of(episodes("a", [1], seeds=False), episodes("b", [0], seeds=False))
    assert tiny.detectable is None
    assert tiny.text == "no difference shown (2 episodes are too few to show any)"


def test_fewer_pairs_than_could_decide_are_called_too_few():
    pair = pair_of(episodes("a", [1, 1, 0, 0]), episodes("b", [1, 1, 1, 0]))
    assert pair.least_deciding is None
    assert pair.text == "no difference shown (4 pairs are too few to show any)"


def test_large_samples_use_the_score_test():
    a, b = [1] * 700 + [0] * 500, [1] * 640 + [0] * 560
    pair = pair_of(episodes("a", a, seeds=False), episodes("b", b, seeds=False))
    found = stats.chi2_contingency([[700, 500], [640, 560]], correction=False)
    assert pair.test == "score"
    assert pair.p_value == pytest.approx(found.pvalue)


def test_conditions_in_another_mixture_are_not_compared():
    """The better policy looks worse if it played more of the hard ones."""
    a = episodes("a", [1] * 9 + [0], seeds=False, level=0)
    a += episodes("a", [0] * 4, seeds=False, level=1)
    b = episodes("b", [1] * 4, seeds=False, level=0)
    b += episodes("b", [0] * 9 + [1], seeds=False, level=1)
    pair = pair_of(a, b)
    assert pair.verdict is None
    assert pair.p_value is None
    assert "mixture of conditions" in pair.reason
    assert pair.text.startswith("no verdict: ")


def test_seeds_that_repeat_but_pair_nothing_are_not_tested():
    a = levels("a", [[1] * 6, [1] * 6])
    b = [{**row, "seed": row["seed"] + 100} for row in levels("b", [[0] * 6, [0] * 6])]
    pair = pair_of(a, b)
    assert pair.unit == "episodes"
    assert pair.verdict is None
    assert "seeds repeat" in pair.reason


def test_policies_with_nothing_in_common_are_not_compared():
    pair = pair_of(episodes("a", [1, 1], level=0), episodes("b", [0, 0], level=1))
    assert pair.difference.value is None
    assert pair.reason == "no condition that both played"


# Several policies --------------------------------------------------------------------------------


def test_holm_adjusts_for_all_pairs_of_the_side():
    a, b, c = [1] * 20, [1] * 13 + [0] * 7, [1] * 12 + [0] * 8
    (side,) = compared(episodes("a", a), episodes("b", b), episodes("c", c))
    by_names = {(pair.first, pair.second): pair for pair in side.pairs}
    assert by_names["a", "b"].p_value == pairs_p(7, 0, 20)
    assert by_names["a", "b"].p_holm == pytest.approx(2 * pairs_p(7, 0, 20))
    assert by_names["a", "c"].p_holm == pytest.approx(3 * pairs_p(8, 0, 20))
    assert side.n_compared == 3
    # The least that can decide is stated for the strictest step of the adjustment.
    assert by_names["b", "c"].least_deciding == 6


def test_policies_that_are_not_told_apart_share_a_letter():
    """a beats c; b is told apart from neither, so point order would say too much."""
    a, b, c = [1] * 20, [1] * 15 + [0] * 5, [1] * 11 + [0] * 9
    (side,) = compared(episodes("a", a), episodes("b", b), episodes("c", c))
    assert [pair.winner for pair in side.pairs] == [None, "a", None]
    assert [own.letters for own in side.policies] == ["a", "ab", "b"]
    assert [own.rank_range for own in side.policies] == [(1, 2), (1, 3), (2, 3)]
    (side,) = compared(episodes("a", a), episodes("b", a), episodes("c", [0] * 20))
    assert [own.letters for own in side.policies] == ["a", "a", "b"]
    # An agent that never succeeds is not first, whatever was told apart.
    (side,) = compared(episodes("none", [0] * 4), episodes("all", [1] * 4))
    assert [(own.policy, own.ranks) for own in side.by_success] == [
        ("all", "1 to 2"), ("none", "1 to 2"),
    ]  # fmt: skip


def test_the_plan_sets_the_order_of_the_policies():
    plan = TrialPlan(
        name="x", tasks=[{"env": "pick", "levels": [0]}], policies=["random", "balancer"],
        episodes=3,
    )  # fmt: skip
    (side,) = compared(episodes("balancer", [1] * 3), episodes("random", [0] * 3), plan=plan)
    assert [own.policy for own in side.policies] == ["random", "balancer"]
    # What did better stands first in a difference.
    assert (side.pairs[0].first, side.pairs[0].difference.value) == ("balancer", 1.0)


# Coverage ----------------------------------------------------------------------------------------


def test_no_winner_is_named_where_too_few_are_scored():
    lost = [None] * 13 + [1] * 7
    (side,) = compared(episodes("a", lost), episodes("b", [0] * 20), episodes("c", [1] * 20))
    a, b, c = side.policies
    assert a.coverage.text == "7 of 20 scored (13 fault)"
    assert a.bounds == (0.35, 1.0)
    assert (a.letters, a.rank_range) == (None, None)
    assert (b.letters, c.letters) == ("b", "a")
    by_names = {(pair.first, pair.second): pair for pair in side.pairs}
    against = by_names["a", "b"]
    assert against.p_value < 0.05  # named nowhere
    assert against.p_holm is against.verdict is against.winner is None
    assert against.reason == "a: 7 of 20 scored (13 fault)"
    assert against.difference.value == 1.0
    assert side.n_compared == 1
    assert by_names["c", "b"].winner == "c"
    assert [own.policy for own in side.uncovered] == ["a"]


def test_episodes_that_were_not_played_are_missing_too():
    plan = TrialPlan(
        name="x", tasks=[{"env": "pick", "levels": [0]}], policies=["random", "balancer"],
        episodes=20,
    )  # fmt: skip
    sides = compared(episodes("random", [0] * 20), episodes("balancer", [1] * 18), plan=plan)
    assert sides[0].policies[1].coverage.text == "18 of 20 scored (2 not played)"
    assert sides[0].policies[1].bounds == (0.9, 1.0)
    assert sides[0].pairs[0].verdict is None


def test_a_plan_without_any_episode_names_nobody():
    plan = TrialPlan(name="x", tasks=[{"env": "pick"}], policies=["random", "balancer"])
    frame = episodes_frame(pd.DataFrame(episodes("random", [1]))).iloc[:0]
    (side,) = compare_policies(frame, plan, FAST)
    assert [own.letters for own in side.policies] == [None, None]
    assert side.pairs[0].difference.value is None


# Rank agreement ----------------------------------------------------------------------------------

SIM = [0.787, 0.857, 0.710, 0.567, 0.027, 0.170]
REAL = [0.907, 0.853, 0.920, 0.760, 0.133, 0.293]


def rated(side, rates, n=1000):
    return [
        row
        for index, rate in enumerate(rates)
        for row in episodes(f"p{index}", [1] * round(rate * n) + [0] * round(n - rate * n),
                            seeds=False, side=side)
    ]  # fmt: skip


def test_rank_violation_and_correlation_of_two_sides():
    sim, real = compared(rated("sim", SIM), rated("real", REAL))
    assert sim.agreement is None
    found = real.agreement
    assert found.matching == "conditions"
    assert found.sim == pytest.approx(SIM)
    assert found.physical == pytest.approx(REAL)
    assert found.mmrv.value == pytest.approx(0.0313333, abs=1e-7)
    assert found.mmrv.low <= found.mmrv.value <= found.mmrv.high
    assert found.pearson.value == pytest.approx(0.9754340, abs=1e-7)
    assert found.left_out == ()


def test_three_policies_have_no_correlation():
    rates = [[0.0, 0.125, 0.472], [0.0, 0.333, 0.417]]
    _, twin = compared(rated("sim", rates[0]), rated("twin", rates[1]))
    found = twin.agreement
    assert found.side == "twin"
    assert found.mmrv.value == 0.0
    assert "so few policies" in found.mmrv.reason
    assert found.pearson.value is None
    assert found.pearson.reason == "3 policies; a correlation needs 4"


def test_pairs_of_sides_are_used_where_there_are_any():
    rows = []
    for index, k in enumerate([10, 7, 5, 2]):
        for side, wins in (("sim", k), ("real", k - 1)):
            own = episodes(f"p{index}", [1] * wins + [0] * (10 - wins), side=side)
            rows += [{**row, "pair_id": f"{index}-{row['seed']}"} for row in own]
        rows += episodes(f"p{index}", [0] * 10, side="sim", level=2)
    _, real = compared(rows)
    assert real.agreement.matching == "pairs"
    assert real.agreement.sim == pytest.approx((1.0, 0.7, 0.5, 0.2))
    assert real.agreement.mmrv.value == 0.0


def test_a_policy_on_one_side_only_is_left_out():
    rates = [0.9, 0.5, 0.2]
    rows = rated("sim", rates, 20) + rated("real", rates[:2], 20)
    _, real = compared(rows)
    assert real.agreement.policies == ("p0", "p1")
    assert real.agreement.left_out == ("p2",)


def test_simulators_are_not_mixed():
    rows = rated("sim", [0.8, 0.4], 20) + rated("real", [0.7, 0.5], 20)
    rows += [
        {**row, "episode_id": f"x{row['episode_id']}", "calibration": "identified"}
        for row in rated("sim", [0.7, 0.5], 20)
    ]
    _, real = compared(rows)
    assert real.agreement.mmrv.value is None
    assert "several calibrations" in real.agreement.mmrv.reason
    sim, real = compared(rows, config=MetricConfig(resamples=999, calibration="identified"))
    assert [own.coverage.scored for own in sim.policies] == [20, 20]
    assert real.agreement.sim == pytest.approx((0.7, 0.5))


# Conditions that not all played -------------------------------------------------------------------


def in_tasks(policy, *tasks, good=None):
    return [
        row
        for task in tasks
        for row in episodes(policy, [good, *[1, 0] * 5] if good is None else [good] * 10, task=task)
        if row["quality"] is not None
        for row["episode_id"] in [f"{policy}-{task}-{row['seed']}"]
    ]


def chain():
    """Of four policies each shares a task with the next one."""
    return compared(
        in_tasks("a", "t1", "t2", "t3", good=1),
        in_tasks("b", "t2", "t3", "t4", good=0),
        in_tasks("c", "t3", "t5"),
        in_tasks("d", "t5"),
    )


def test_two_policies_are_compared_in_all_that_both_played():
    (side,) = chain()
    pairs = {frozenset((pair.first, pair.second)): pair for pair in side.pairs}
    assert pairs[frozenset("ab")].n_conditions == 2
    assert (pairs[frozenset("ab")].n_pairs, pairs[frozenset("ab")].unit) == (20, "seeds")
    # A third of what either played, and all of it in pairs.
    assert (pairs[frozenset("ac")].n_pairs, pairs[frozenset("ac")].test) == (9, "pairs_exact")
    assert pairs[frozenset("cd")].n_pairs == 10
    assert "no condition that both played" in pairs[frozenset("ad")].text
    assert side.n_compared == 4
    assert side.overlap == {
        "a": {"a": 3, "c": 1, "d": 0, "b": 2},
        "c": {"a": 1, "c": 2, "d": 1, "b": 1},
        "d": {"a": 0, "c": 1, "d": 1, "b": 0},
        "b": {"a": 2, "c": 1, "d": 0, "b": 3},
    }


def test_who_may_be_as_good_as_the_best_is_named():
    (side,) = chain()
    assert side.not_told_apart == ("a", "c")
    assert side.told[0] == "Not told apart from the best, a: c; not compared with it: d."
    assert "different conditions" in side.told[1]
    document = plain(side)
    assert document["not_told_apart"] == ["a", "c"]
    assert document["overlap"]["a"]["b"] == 2


def test_where_all_played_the_same_there_is_nothing_to_say_of_conditions():
    (side,) = compared(episodes("a", [1] * 9), episodes("b", [0] * 9), episodes("c", [0] * 9))
    assert side.told == ("Not told apart from the best, a: none.",)
    assert not side.is_partial


def test_the_best_is_one_that_none_was_shown_to_be_better_than():
    # By its share c is first, but of an easy task; where both played a is better.
    easy = in_tasks("c", "t2", "t3", "t4", good=1)
    (side,) = compared(
        in_tasks("c", "t1", good=0), easy, in_tasks("a", "t1", good=1), in_tasks("b", "t1", good=0)
    )
    assert [own.policy for own in side.by_success] == ["a", "c", "b"]
    assert side.not_told_apart == ("a",)


@pytest.mark.parametrize("sentence", TESTS.values())
def test_what_a_test_asks_is_a_plain_sentence(sentence):
    test, question = sentence.split(" asks whether ")
    assert "test" in test
    assert question.startswith("both ")
