"""What must hold for every comparison of policies."""

import json

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robo_eval.core.plain import plain
from robo_eval.metrics.comparison import compare_policies
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.frame import episodes_frame

FAST = MetricConfig(resamples=200)
NAMES = ["a", "b", "c"]
SIDES = ["sim", "real"]


@st.composite
def tables(draw):
    """Up to three policies in up to two conditions; seeds shared, own, or none at all."""
    policies = draw(st.integers(2, 3))
    conditions = draw(st.integers(1, 2))
    first_seed = draw(st.sampled_from([None, 0, 5]))
    rows = []
    for policy in NAMES[:policies]:
        length = draw(st.integers(1, 14))
        for level in range(conditions):
            outcomes = draw(
                st.lists(st.sampled_from([0, 1, 1, None]), min_size=length, max_size=length)
            )
            for index, outcome in enumerate(outcomes):
                shift = 0 if policy == "a" or first_seed is None else first_seed
                rows.append(
                    {
                        "episode_id": f"{policy}-{level}-{index}",
                        "side": draw(st.sampled_from(SIDES)) if length < 4 else "sim",
                        "task": "pick",
                        "policy": policy,
                        "level": level,
                        "difficulty": "easy",
                        "seed": None if first_seed is None else shift + index,
                        "quality": outcome,
                        "success": None if outcome is None else bool(outcome),
                        "end_reason": {None: "lost", 0: "failure", 1: "success"}[outcome],
                    }
                )
    return pd.DataFrame(rows)


def compared(table):
    return compare_policies(episodes_frame(table), None, FAST)


def as_json(table):
    return json.dumps(plain(compared(table)), allow_nan=False)


@settings(max_examples=15)
@given(tables(), st.integers(0, 1000))
def test_reordering_rows_changes_nothing(table, seed):
    assert as_json(table.sample(frac=1.0, random_state=seed)) == as_json(table)


@settings(max_examples=15)
@given(tables())
def test_swapping_names_flips_signs(table):
    swapped = table.assign(policy=table["policy"].replace({"a": "b", "b": "a"}))
    for one, other in zip(compared(table), compared(swapped), strict=True):
        found = {frozenset((pair.first, pair.second)): pair for pair in other.pairs}
        for pair in one.pairs:
            if {pair.first, pair.second} != {"a", "b"}:
                continue
            mirror = found[frozenset("ab")]
            # The better one is named first; of two that did alike, the earlier one.
            is_swapped = mirror.first == pair.first
            assert not is_swapped or not pair.difference.value
            ends = {"value": "value", "low": "high", "high": "low"} if is_swapped else {}
            for name in ("value", "low", "high"):
                mine = getattr(pair.difference, name)
                theirs = getattr(mirror.difference, ends.get(name, name))
                assert (mine is None) == (theirs is None)
                signed = -theirs if is_swapped and theirs is not None else theirs
                assert mine is None or mine == pytest.approx(signed, abs=1e-9)
            for name in ("p_value", "p_holm", "detectable"):
                assert getattr(pair, name) == pytest.approx(getattr(mirror, name), abs=1e-9)
            assert pair.verdict == mirror.verdict
            assert pair.verdict != "second"
        ranks = [{own.policy: own.rank_range for own in side.policies} for side in (one, other)]
        swap = {"a": "b", "b": "a"}
        assert ranks[0] == {swap.get(name, name): own for name, own in ranks[1].items()}


@settings(max_examples=15)
@given(tables())
def test_a_copy_of_a_policy_ties_with_it(table):
    own = table[table["policy"] == "a"]
    copy = own.assign(policy="b", episode_id="copy-" + own["episode_id"])
    for side in compared(pd.concat([own, copy], ignore_index=True)):
        (pair,) = side.pairs
        assert pair.winner is None
        assert not pair.difference.value
        assert pair.p_value in (None, 1.0)
        assert len({(own.letters, own.rank_range) for own in side.policies}) == 1


@settings(max_examples=15)
@given(tables())
def test_nobody_wins_or_has_a_rank_below_the_least_coverage(table):
    for side in compared(table):
        lacking = {own.policy for own in side.policies if own.coverage.share < 0.95}
        has_rivals = len(side.policies) - len(lacking) > 1
        for own in side.policies:
            assert (own.letters is None) == (own.policy in lacking or not has_rivals)
            assert (own.bounds is None) == (own.coverage.share == 1.0)
        for pair in side.pairs:
            if lacking & {pair.first, pair.second}:
                assert pair.verdict is None
                assert pair.reason
            assert (pair.verdict is None) == (pair.p_holm is None)
            if pair.p_holm is not None:
                assert pair.p_holm >= pair.p_value
                assert (pair.winner is not None) <= (pair.p_holm <= side.alpha)
