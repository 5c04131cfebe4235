"""Which episodes a second rater judges, and how planned episodes are named fast."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_eval.conduct.judging import second_sample
from robo_eval.core.kinds import Side
from robo_eval.core.plan import TrialPlan, parse_plan
from robo_eval.core.schedule import planned_ids, schedule

DIGEST = "ab" * 32


def plan_of(
    *, policies: int = 2, episodes: int = 5, sides: str = "[sim, twin]", more: str = ""
) -> TrialPlan:
    names = ", ".join(f"p-s{i}" for i in range(policies))
    entries = ", ".join(
        f"{{name: {name}, factory: 'robo_eval.agents.cartpole3d.balancer:Balancer'}}"
        for name in names.split(", ")
    )
    return parse_plan(
        f"name: x\ntasks: [{{levels: [0, 3], difficulties: [easy, hard]}}]\n"
        f"policies: [{entries}]\nepisodes: {episodes}\nsides: {sides}\n{more}",
        source="plan",
    )


shares = st.floats(0.0, 1.0)


@given(
    shares, shares, st.integers(1, 3), st.integers(1, 9), st.text("0123456789abcdef", max_size=8)
)
def test_a_larger_share_holds_the_smaller_sample(
    one: float, other: float, policies: int, episodes: int, digest: str
) -> None:
    plan = plan_of(policies=policies, episodes=episodes)
    small, large = sorted((one, other))
    assert second_sample(plan, digest, small) <= second_sample(plan, digest, large)


@given(shares, st.integers(1, 3), st.integers(1, 9))
def test_every_policy_has_its_share_rounded_up(share: float, policies: int, episodes: int) -> None:
    plan = plan_of(policies=policies, episodes=episodes)
    sample = second_sample(plan, DIGEST, share)
    for entry in plan.policies:
        own = [name for name in sample if f"-{entry.name}-s" in name]
        assert len(own) == math.ceil(share * 4 * episodes - 1e-9)
    assert all(name.endswith("-twin") for name in sample)


def test_the_sample_is_that_of_the_plan_and_depends_on_its_digest() -> None:
    plan = plan_of(more="judging: {second_share: 0.3}")
    assert second_sample(plan, DIGEST) == second_sample(plan, DIGEST, 0.3)
    assert len(second_sample(plan, DIGEST)) == 12
    assert second_sample(plan, DIGEST) != second_sample(plan, "cd" * 32)
    assert second_sample(plan, DIGEST, 0.0) == frozenset()
    assert second_sample(plan_of(sides="[sim]"), DIGEST, 1.0) == frozenset()


def test_rounding_adds_no_episode() -> None:
    plan = plan_of(policies=1, episodes=30)
    assert len(second_sample(plan, DIGEST, 0.1)) == 12  # of 4 x 30


@pytest.mark.parametrize("order", ["randomised", "blocked", "interleaved"])
@pytest.mark.parametrize("more", ["control: true", "seeds: {shared: false}", "order_seed: 7"])
@pytest.mark.parametrize("levels", ["[0, 2]", "[1, 2]", "[4]"])
def test_names_of_planned_episodes_are_those_of_the_schedule(
    order: str, more: str, levels: str
) -> None:
    plan = parse_plan(
        f"name: x\ntasks: [{{levels: {levels}, difficulties: [easy, hard]}}, {{env: A-v0}}]\n"
        f"policies: [balancer, adaptive]\nepisodes: 3\norder: {order}\n{more}",
        source="plan",
    )
    full = schedule(plan, Side.TWIN)
    found = planned_ids(plan, Side.TWIN)
    assert found.base_ids == [planned.base_id for planned in full]
    assert found.numbers == [planned.index for planned in full]
    assert found.policies == [planned.policy for planned in full]


def test_names_of_planned_episodes_with_axes_are_those_of_the_schedule() -> None:
    plan = parse_plan(
        "name: x\ntasks: [{env: RoboEval/PickPlace-v0, axes: {friction: [0.2, 0.1], delay: [0.1]},"
        " pairs: [[friction, delay]]}]\npolicies: [a, b]\nepisodes: 3",
        source="plan",
    )
    found = planned_ids(plan, Side.SIM)
    assert found.base_ids == [planned.base_id for planned in schedule(plan, Side.SIM)]


def test_an_imported_trial_has_no_planned_names() -> None:
    plan = plan_of(more=f"imported: {{file: a.csv, sha256: '{'0' * 64}', rows: 1}}")
    assert planned_ids(plan, Side.SIM).base_ids == []
