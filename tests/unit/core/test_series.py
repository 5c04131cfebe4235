"""When a series with a stopping rule ends, and what it still plays."""

import random

import pytest

from robo_eval.core.errors import PlanError
from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.plan import parse_plan
from robo_eval.core.schedule import remaining, schedule
from robo_eval.core.series import next_block, series_of, shortened

PLAN = """
name: which is better
tasks: [{env: Lab/Pick-v0, levels: [0, 1]}]
policies: [ours, theirs, third]
episodes: 40
stopping: {compare: [ours, theirs]}
"""


def plan_of(text=PLAN, **changes):
    return parse_plan(text, source="plan.yaml").model_copy(update=changes)


def played(plan, success, *, seeds):
    """Attempts of every episode of some seeds; `success(policy, index)` says how they ended."""
    names = [policy.name for policy in plan.policies]
    return {
        planned.base_id: [
            EndReason.SUCCESS
            if success(names[planned.policy], planned.index)
            else EndReason.FAILURE
        ]
        for planned in schedule(plan, Side.SIM)
        if planned.index in seeds
    }


def ours_wins(policy, _index):
    return policy == "ours"


def test_without_a_rule_there_is_no_series_and_all_is_played():
    plan = plan_of(stopping=None)
    assert series_of(plan, {}) is None
    todo = schedule(plan, Side.SIM)
    assert next_block(plan, todo, {}) is todo
    assert shortened(plan, None) is plan


def test_a_series_ends_when_the_evidence_is_enough():
    plan = plan_of()
    attempts = played(plan, ours_wins, seeds=range(7))
    going = series_of(plan, attempts)
    assert (going.stop, going.n, going.verdict) == (False, 7, None)
    attempts |= played(plan, ours_wins, seeds=[7])
    ended = series_of(plan, attempts)
    assert (ended.stop, ended.verdict, ended.n, ended.episodes) == (True, "greater", 8, 8)
    assert ended.e == pytest.approx(28.4444444)  # the published value of (8, 0)
    assert shortened(plan, ended).episodes == 8


def test_seeds_count_in_their_order_and_not_before_all_of_one_have_ended():
    plan = plan_of()
    late = played(plan, ours_wins, seeds=range(1, 20))
    assert series_of(plan, late).n == 0
    one_open = late | played(plan, ours_wins, seeds=[0])
    name = next(p.base_id for p in schedule(plan, Side.SIM) if p.index == 5 and p.policy == 1)
    del one_open[name]
    assert series_of(plan, one_open).n == 5


def test_asking_late_gives_the_answer_of_asking_every_time():
    plan = plan_of()
    rng = random.Random(3)
    wins = {index: rng.random() < 0.85 for index in range(40)}

    def success(policy, index):
        return wins[index] if policy == "ours" else not wins[index]

    late = series_of(plan, played(plan, success, seeds=range(40)))
    asked = next(
        found
        for n in range(1, 41)
        if (found := series_of(plan, played(plan, success, seeds=range(n)))).stop
    )
    assert (late.verdict, late.n, late.episodes, late.e) == (
        asked.verdict,
        asked.n,
        asked.episodes,
        asked.e,
    )


def test_a_seed_without_every_verdict_is_passed_over():
    plan = plan_of()
    attempts = played(plan, ours_wins, seeds=range(9))
    lost = next(p.base_id for p in schedule(plan, Side.SIM) if p.index == 2 and p.policy == 0)
    attempts[lost] = [EndReason.LOST]
    found = series_of(plan, attempts)
    assert (found.stop, found.n, found.n_missing, found.episodes) == (True, 8, 1, 9)


def test_void_attempts_leave_a_seed_open():
    plan = plan_of()
    attempts = played(plan, ours_wins, seeds=range(3))
    name = next(p.base_id for p in schedule(plan, Side.SIM) if p.index == 1 and p.policy == 1)
    attempts[name] = [EndReason.VOID]
    assert series_of(plan, attempts).n == 1


def test_a_policy_that_is_not_compared_does_not_matter():
    plan = plan_of()
    attempts = {
        name: ends
        for name, ends in played(plan, ours_wins, seeds=range(8)).items()
        if "-third-" not in name
    }
    assert series_of(plan, attempts).stop


def test_a_series_of_ties_is_hopeless_before_its_end():
    plan = plan_of()
    found = series_of(plan, played(plan, lambda *_: True, seeds=range(40)))
    assert (found.stop, found.verdict) == (True, "undecided")
    assert found.episodes < 40


def test_a_rate_is_watched_in_one_condition():
    text = PLAN.replace("[0, 1]", "[0]").replace("[ours, theirs]}", "[ours], rate: 0.5}")
    plan = plan_of(text)
    found = series_of(plan, played(plan, ours_wins, seeds=range(10)))
    assert (found.stop, found.verdict, found.rate) == (True, "greater", 0.5)
    low, high = found.rate_interval
    assert 0.5 < low < 1.0 == high
    assert "at any time the rate is in" in found.text
    with pytest.raises(PlanError, match=r"stopping\.rate: the plan has several conditions"):
        plan_of(PLAN.replace("[ours, theirs]}", "[ours], rate: 0.5}"))


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("{compare: [ours]}", "stopping.rate"),
        ("{compare: [ours, theirs], rate: 0.5}", "stopping.rate"),
        ("{compare: [ours, ours]}", "stopping.compare"),
        ("{compare: [ours, thiers]}", "did you mean 'theirs'"),
        ("{compare: [ours, theirs], alfa: 0.1}", "did you mean 'alpha'"),
        ("{compare: [ours, theirs], side: right}", "stopping.side"),
        ("{compare: [ours, theirs], alpha: 1.5}", "stopping.alpha"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(rule, message):
    with pytest.raises(PlanError, match=message):
        plan_of(PLAN.replace("{compare: [ours, theirs]}", rule))


def test_blocks_go_through_the_seeds_in_order_and_end_with_the_series():
    plan = plan_of()
    attempts = {}
    blocks = 0
    while True:
        todo = remaining(schedule(plan, Side.SIM), attempts, retries=0)
        block = next_block(plan, todo, attempts)
        if not block:
            break
        blocks += 1
        attempts |= played(plan, ours_wins, seeds={planned.index for planned in block})
    seen = [planned.index for planned in schedule(plan, Side.SIM) if planned.base_id in attempts]
    assert blocks > 1  # it looked before everything was played
    assert sorted(set(seen)) == list(range(max(seen) + 1))
    assert 8 <= max(seen) + 1 < 40


def test_nobody_is_named_where_too_many_verdicts_are_missing():
    plan = plan_of()
    attempts = played(plan, ours_wins, seeds=range(12))
    for index in (1, 4, 6):
        name = next(
            p.base_id for p in schedule(plan, Side.SIM) if p.index == index and p.policy == 1
        )
        attempts[name] = [EndReason.LOST]
    found = series_of(plan, attempts)
    assert (found.stop, found.verdict, found.n_missing) == (True, None, 3)
    assert "nobody is named" in found.text


def test_the_rule_waits_for_an_episode_that_was_lost_on_a_robot():
    plan = plan_of(PLAN + "sides: [twin]\n")
    attempts = {
        planned.base_id: [EndReason.SUCCESS]
        for planned in schedule(plan, Side.TWIN)
        if planned.index < 3
    }
    first = next(p for p in schedule(plan, Side.TWIN) if p.policy == p.index == 0)
    attempts[first.base_id] = [EndReason.LOST]
    assert (series_of(plan, attempts).n, series_of(plan, attempts).n_missing) == (0, 0)
    attempts[first.base_id] = [EndReason.LOST, EndReason.SUCCESS]
    assert (series_of(plan, attempts).n, series_of(plan, attempts).n_missing) == (3, 0)


def test_a_missing_verdict_ends_a_seed_without_a_look_though_retries_are_left():
    plan = plan_of(retries=5)
    attempts = played(plan, ours_wins, seeds=range(3))
    first = next(p for p in schedule(plan, Side.SIM) if p.policy == p.index == 0)
    attempts[first.base_id] = [EndReason.NO_VERDICT]
    series = series_of(plan, attempts)
    assert (series.n, series.n_missing) == (2, 1)
