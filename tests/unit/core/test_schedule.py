"""The schedule holds every episode once, and knows what is left of it."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_eval.core.errors import PlanError
from robo_eval.core.kinds import Arm, EndReason, Side
from robo_eval.core.plan import parse_plan
from robo_eval.core.schedule import environment_keywords, policy_seed, remaining, schedule


def plan_with(**changes):
    lines = {
        "name": "x",
        "tasks": "[{levels: [1, 9], difficulties: [easy, hard]}]",
        "policies": "[a, b]",
        "episodes": "3",
        **changes,
    }
    return parse_plan("\n".join(f"{key}: {value}" for key, value in lines.items()), source="p")


@pytest.mark.parametrize("order", ["randomised", "blocked", "interleaved"])
def test_every_order_holds_the_same_episodes(order):
    episodes = schedule(plan_with(order=order), Side.SIM)
    assert len(episodes) == 2 * 2 * 2 * 3
    assert len({e.episode_id for e in episodes}) == len(episodes)
    blocked = schedule(plan_with(order="blocked"), Side.SIM)
    assert Counter(e.episode_id for e in episodes) == Counter(e.episode_id for e in blocked)


def test_interleaved_policies_take_turns_on_the_same_seed():
    episodes = schedule(plan_with(order="interleaved"), Side.SIM)
    for first, second in zip(episodes[::2], episodes[1::2], strict=True):
        assert (first.policy, second.policy) == (0, 1)
        assert (first.condition, first.seed) == (second.condition, second.seed)


def test_shuffle_depends_on_its_seed_alone():
    one = schedule(plan_with(order_seed="1"), Side.SIM)
    assert one == schedule(plan_with(order_seed="1"), Side.SIM)
    assert one != schedule(plan_with(order_seed="2"), Side.SIM)


def test_controls_share_seed_and_policy_at_level_zero():
    episodes = schedule(plan_with(control="true"), Side.SIM)
    by_id = {e.base_id: e for e in episodes}
    mains = [e for e in episodes if e.arm is Arm.MAIN]
    controls = [e for e in episodes if e.arm is Arm.CONTROL]
    assert len(controls) == 2 * 3  # one a policy and seed serves all levels and difficulties
    for episode in mains:
        control = by_id[episode.control_id]
        assert (control.seed, control.policy) == (episode.seed, episode.policy)
        assert control.condition.level == 0


def test_level_zero_of_the_plan_is_its_own_control():
    plan = plan_with(control="true", tasks="[{levels: [0, 9], difficulties: [easy, hard]}]")
    episodes = schedule(plan, Side.SIM)
    assert all(e.arm is Arm.MAIN for e in episodes)
    by_id = {e.base_id: e for e in episodes}
    for episode in episodes:
        if episode.condition.level:
            assert by_id[episode.control_id].condition.level == 0
        else:
            assert episode.control_id is None


def test_remaining_retries_what_has_no_score():
    planned = schedule(plan_with(order="blocked"), Side.SIM)[:6]
    ids = [e.base_id for e in planned]
    attempts = {
        ids[0]: [EndReason.FAILURE],
        ids[1]: [EndReason.VOID, EndReason.VOID],
        ids[2]: [EndReason.LOST],
        ids[3]: [EndReason.LOST, EndReason.FAULT],
        ids[4]: [EndReason.FAULT, EndReason.SUCCESS],
    }
    left = remaining(planned, attempts, retries=1)
    assert [(e.base_id, e.attempt) for e in left] == [(ids[1], 3), (ids[2], 2), (ids[5], 1)]
    assert left[0].episode_id == f"{ids[1]}-a3"
    assert [e.base_id for e in remaining(planned, attempts, retries=0)] == [ids[1], ids[5]]


def test_what_a_fault_took_away_on_a_robot_is_always_played_again():
    planned = schedule(plan_with(order="blocked", sides="[sim, twin]"), Side.TWIN)[:4]
    ids = [e.base_id for e in planned]
    attempts = {
        ids[0]: [EndReason.LOST] * 7,
        ids[1]: [EndReason.LOST, EndReason.SUCCESS],
        ids[2]: [EndReason.LOST, EndReason.FAULT],  # of the policy, say, which gets no second try
        ids[3]: [EndReason.LOST, EndReason.VOID],
    }
    left = remaining(planned, attempts, retries=0)
    assert [(e.base_id, e.attempt) for e in left] == [(ids[0], 8), (ids[3], 3)]
    assert [e.base_id for e in remaining(planned, attempts, retries=1)] == [ids[0], ids[2], ids[3]]


@given(st.integers(0, 2**31 - 1))
def test_policy_seed_is_valid_and_not_the_seed_of_the_environment(seed):
    assert 0 <= policy_seed(seed) < 2**31
    assert policy_seed(seed) != seed


def test_policy_seeds_of_a_trial_differ():
    assert len({policy_seed(seed) for seed in range(10_000)}) == 10_000


def test_conditions_can_have_seeds_of_their_own():
    own = schedule(plan_with(seeds="{first: 50, shared: false}", order="blocked"), Side.SIM)
    seeds = {}
    for episode in own:
        seeds.setdefault(episode.condition.key, set()).add(episode.seed)
    assert [sorted(found) for found in seeds.values()] == [
        [50, 51, 52], [53, 54, 55], [56, 57, 58], [59, 60, 61],
    ]  # fmt: skip
    assert len({episode.episode_id for episode in own}) == len(own)
    for name, value in (("control", "true"), ("stopping", "{compare: [a, b]}")):
        with pytest.raises(PlanError, match=rf"seeds.shared: must be true, because `{name}`"):
            plan_with(**{"seeds": "{shared: false}", name: value})


def test_every_magnitude_is_matched_with_the_same_seed_without_novelty():
    plan = plan_with(tasks="[{env: RoboEval/PickPlace-v0, axes: {friction: [0.2, 0.1]}}]")
    episodes = schedule(plan, Side.SIM)
    assert len(episodes) == 3 * 2 * 3
    assert all(episode.arm is Arm.MAIN for episode in episodes)
    by_id = {episode.base_id: episode for episode in episodes}
    for episode in episodes:
        keywords = environment_keywords(plan.tasks[0], episode)
        if not episode.condition.novelty:
            assert episode.control_id is None
            assert "novelty" not in keywords
            continue
        assert keywords["novelty"] == dict(episode.condition.novelty)
        control = by_id[episode.control_id]
        assert control.condition.novelty == ()
        assert (control.seed, control.policy) == (episode.seed, episode.policy)
