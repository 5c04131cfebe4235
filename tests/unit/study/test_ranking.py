"""Agents ranked in a space: made performances whose ranks are known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_eval.analysis.aiq import quotient, space
from robo_eval.analysis.coherence import auc
from robo_eval.study.causes import Disagreement, causes
from robo_eval.study.matched import Played, PolicyGroup
from robo_eval.study.ranking import RankedAgent, Ranking, _ranking

ORTHOGONAL = space(1.0 - np.eye(3), [1.0, 0.5, 0.8], k=3)
TESTS: Any = [SimpleNamespace(name=name) for name in ("one", "two", "three")]


def ranking(*agents: Played, baseline: str | None = None, spaces: Any = (ORTHOGONAL,)) -> Ranking:
    group = PolicyGroup(side="sim", difficulty="", agents=list(agents), table=pd.DataFrame())
    return _ranking(group, TESTS, ORTHOGONAL, spaces, baseline, 0)


def even(policy: str, *means: float, episodes: int = 4) -> Played:
    """An agent whose episodes of each test lie evenly about its mean."""
    about = np.linspace(-0.05, 0.05, episodes)
    return Played(policy=policy, episodes=[mean + about for mean in means])


def found(result: Ranking, policy: str) -> RankedAgent:
    return next(one for one in result.agents if one.policy == policy)


def test_an_agent_that_is_evenly_good_covers_as_much():
    result = ranking(even("a", 0.6, 0.6, 0.6), even("b", 0.3, 0.3, 0.3))
    assert [one.policy for one in result.agents] == ["a", "b"]
    assert found(result, "a").aiq.value == pytest.approx(0.6)
    assert found(result, "a").mean.value == pytest.approx(0.6)
    assert found(result, "b").by_k[3] == pytest.approx(0.3)
    assert result.disagreements == []


def test_the_worked_example_of_three_orthogonal_tests():
    """facts: c = 1, 0.5, 0.8 and V = 1, 0.5, 0.25 in 3 dimensions give 0.5."""
    agent = Played(policy="a", episodes=[np.ones(4), np.full(4, 0.5), np.full(4, 0.25)])
    assert found(ranking(agent), "a").aiq.value == pytest.approx(0.5, abs=1e-6)


def test_intervals_hold_the_value_and_narrow_with_episodes():
    wide, narrow = (
        found(ranking(even("a", 0.5, 0.6, 0.7, episodes=n)), "a") for n in (4, 400)
    )  # fmt: skip
    for name in ("mean", "apti", "aiq", "coherence"):
        few, many = getattr(wide, name), getattr(narrow, name)
        assert few.low <= few.value <= few.high
        assert name == "apti" or many.high - many.low < (few.high - few.low) / 3
        assert (few.n, many.n) == (12, 1200)


def test_what_holds_an_agent_back_is_named():
    """facts: scores 0.8, 0.8 and 0.2."""
    agent = Played(policy="a", episodes=[np.full(4, 0.8), np.full(4, 0.8), np.full(4, 0.2)])
    found_evenness = found(ranking(agent), "a").as_dict()["evenness"]
    assert found_evenness["area"] == pytest.approx(0.50250934, abs=1e-6)
    wanted = {"1": 0.6, "0.5": 0.55555556, "0": 0.50396842, "-0.5": 0.45, "-1": 0.4}
    assert found_evenness["means"] == pytest.approx(wanted, abs=1e-6)
    assert found_evenness["weakest"] == "three"
    first, *others = found_evenness["bottlenecks"]
    assert (first["domain"], first["score"]) == ("three", 0.2)
    assert all(first["gain"] > one["gain"] > 0.0 for one in others)
    lacking = Played(policy="b", episodes=[np.ones(4), np.ones(4), np.zeros(0)])
    assert found(ranking(agent, lacking), "b").as_dict()["evenness"] is None


def test_the_baseline_scores_one_half_without_any_width():
    result = ranking(even("random", 0.2, 0.3, 0.4), even("a", 0.6, 0.9, 0.4))
    assert result.baseline == "random"
    own = found(result, "random").apti
    assert (own.value, own.low, own.high) == (0.5, 0.5, 0.5)
    assert found(result, "a").apti.value == pytest.approx((0.75 + 0.75 + 0.5) / 3)


def test_a_baseline_may_be_named_and_is_the_worst_one_otherwise():
    agents = (even("a", 0.6, 0.6, 0.6), even("b", 0.3, 0.3, 0.3))
    assert ranking(*agents).baseline == "b"
    assert ranking(*agents, baseline="a").baseline == "a"


def test_where_the_baseline_was_not_played_only_apti_is_missing():
    """It may have been played on another side."""
    own = found(ranking(even("a", 0.6, 0.6, 0.6), baseline="c"), "a")
    assert own.apti.value is None
    assert own.apti.reason == "the baseline c was not played here"
    assert own.aiq.value == pytest.approx(0.6)


def test_tests_in_which_nobody_does_anything_are_left_out_of_apti():
    zero = np.zeros(4)
    agent = Played(policy="a", episodes=[zero, np.full(4, 0.9), np.full(4, 0.9)])
    base = Played(policy="random", episodes=[zero, np.full(4, 0.1), np.full(4, 0.3)])
    assert found(ranking(agent, base), "a").apti.value == pytest.approx((0.9 + 0.75) / 2)
    nothing = Played(policy="random", episodes=[zero] * 3)
    assert found(ranking(nothing), "random").apti.value is None


def test_who_lacks_a_difficulty_is_listed_with_it():
    part = Played(policy="a", episodes=[np.ones(2), np.zeros(0), np.ones(2)], gaps={1: "hard"})
    assert found(ranking(part), "a").aiq.reason == "no episode of two at hard"


def test_who_lacks_a_test_is_listed_last_with_the_reason():
    part = Played(policy="a", episodes=[np.ones(2), np.ones(2), np.zeros(0)])
    result = ranking(part, even("b", 0.2, 0.2, 0.2))
    assert [one.policy for one in result.agents] == ["b", "a"]
    own = found(result, "a")
    assert own.aiq.value is None
    assert own.aiq.reason == "no episode of three"
    assert own.episodes.tolist() == [2, 2, 0]
    assert np.isnan(own.performances[2])
    assert own.as_dict()["aiq"]["value"] is None


def test_differences_are_to_the_best_and_less_wide_than_their_parts():
    """What shifts all agents alike cancels."""
    rng = np.random.default_rng(0)
    spaces = [space(1.0 - np.eye(3), rng.uniform(0.1, 1.0, 3), k=3) for _ in range(50)]
    result = ranking(even("a", 0.9, 0.6, 0.7), even("b", 0.5, 0.5, 0.6), spaces=spaces)
    first, second = (found(result, name) for name in "ab")
    assert (first.behind.value, first.behind.low, first.behind.high) == (0.0, 0.0, 0.0)
    assert second.behind.value == pytest.approx(second.aiq.value - first.aiq.value)
    assert second.behind.n == 50


def test_the_test_that_makes_two_measures_disagree_is_named():
    """One agent fails in a single test, which a mean forgives and a volume does not."""
    result = ranking(even("specialist", 0.9, 0.9, 0.06), even("steady", 0.55, 0.55, 0.55))
    assert [one.policy for one in result.agents] == ["steady", "specialist"]
    by = {one.by: one for one in result.disagreements}
    assert by["aiq"] == Disagreement(
        first="specialist", second="steady", by="aiq", tests=("three",)
    )
    assert by["coherence"].tests == ("three",)
    assert str(by["aiq"]) == (
        "specialist has a higher mean than steady and a lower AIQ, because of three"
    )


@given(st.lists(st.tuples(st.floats(0.05, 1), st.floats(0.05, 1)), min_size=2, max_size=8))
def test_without_its_causes_a_disagreement_is_gone(pairs):
    first, second = np.array(pairs).T
    if auc(first) >= auc(second):
        first, second = second, first

    def measure(values: Any) -> float:
        return float(auc(values))

    for place in causes(first, second, measure):
        assert first[place] != second[place]
        first[place] = second[place] = (first[place] + second[place]) / 2.0
    if len(pairs) <= 4:
        assert measure(first) >= measure(second) - 1e-12


def test_a_test_in_which_the_first_agent_is_better_is_never_a_cause():
    """Levelling it may change nothing, when it lies within the hull; it is no cause for that."""
    rng = np.random.default_rng(0)
    named = 0
    for _ in range(100):
        apart = np.triu(rng.uniform(0.3, 1.0, (8, 8)), 1)
        suite = space(apart + apart.T, rng.uniform(0.2, 1.0, 8), k=2)

        def measure(values: Any, suite: Any = suite) -> float:
            return quotient(suite, values).aiq

        second, first = sorted(rng.uniform(0.1, 1.0, (2, 8)), key=np.mean)
        if measure(first) >= measure(second):
            continue
        places = causes(first, second, measure)
        named += len(places)
        assert (first[places] < second[places]).all()
        if places:
            first[places] = second[places] = (first[places] + second[places]) / 2.0
            assert measure(first) >= measure(second)
            assert first.mean() >= second.mean()
    assert named > 10


def test_a_rank_that_many_tests_make_has_no_cause():
    first, second = np.full(9, 0.4), np.full(9, 0.5)
    assert causes(first, second, lambda values: float(values.sum())) == []
    assert str(Disagreement(first="a", second="b", by="coherence", tests=())).endswith(
        "a lower coherence, without a few tests to blame"
    )


def test_measures_agree_with_those_of_one_agent():
    agent = even("a", 0.5, 0.6, 0.7)
    own = found(ranking(agent), "a")
    assert own.aiq.value == quotient(ORTHOGONAL, own.performances).aiq
    assert own.coherence.value == pytest.approx(float(auc(own.performances)))
    assert own.capability.value is None
    assert own.capability.reason == "the tests have no known difficulty"


def alike(policy: str, *means: float, seeds: int) -> Played:
    """An agent that meets the same seeds in every test, and does as well by each in all of them."""
    about = np.linspace(-0.1, 0.1, seeds)
    return Played(
        policy=policy,
        episodes=[mean + about for mean in means],
        seeds=[np.arange(seeds)] * len(means),
    )


def test_a_seed_in_all_tests_is_one_observation():
    """Three tests that move together say as much as one: the error is not a root of 3 smaller."""
    shared = alike("a", 0.5, 0.6, 0.7, seeds=30)
    apart = Played(policy="a", episodes=shared.episodes)
    base = alike("random", 0.2, 0.3, 0.4, seeds=30)
    together, single = (found(ranking(one, base), "a") for one in (shared, apart))

    def width(one: Any) -> float:
        return float(one.high - one.low)

    deviation = np.std(shared.episodes[0], ddof=1) / 30**0.5
    assert width(together.mean) == pytest.approx(2 * 1.96 * deviation, rel=0.1)
    for name in ("mean", "aiq", "coherence"):
        assert width(getattr(together, name)) > 1.4 * width(getattr(single, name))
        assert getattr(together, name).value == pytest.approx(getattr(single, name).value)
        assert getattr(together, name).method.startswith("bootstrap of seeds that ")
    assert together.apti.method == "bootstrap of seeds that tests share, percentiles"
    assert single.apti.method == "bootstrap of episodes within tests, percentiles"


def test_the_baseline_meets_the_same_seeds():
    """Whoever is twice as good as the baseline at each seed is so in every draw."""
    base = alike("random", 0.3, 0.3, 0.3, seeds=12)
    agent = Played(policy="a", episodes=[2 * row for row in base.episodes], seeds=base.seeds)
    own = found(ranking(agent, base), "a").apti
    assert own.value == pytest.approx(2 / 3)
    assert own.low is None or own.high - own.low == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("seeds", "reason"),
    [
        (2, "2 seeds, shared by the tests, cannot be resampled; 3 needed"),
        (5, "5 seeds, shared by the tests; from 8 on the interval is reliable"),
    ],
)
def test_few_seeds_are_told(seeds: int, reason: str):
    own = found(ranking(alike("a", 0.5, 0.6, 0.7, seeds=seeds)), "a")
    for one in (own.mean, own.aiq, own.coherence):
        assert one.reason == reason
        assert (one.low is None) == (seeds == 2)


def test_an_agent_that_does_alike_at_every_seed_has_a_mean_without_interval():
    flat = [np.full(9, 0.5)] * 3
    own = found(ranking(Played(policy="a", episodes=flat, seeds=[np.arange(9)] * 3)), "a")
    assert (own.mean.value, own.mean.low, own.mean.reason) == (
        0.5,
        None,
        "all draws are alike; resampling shows no spread",
    )
