"""Numbers of trials with an onset: what they rest on, and what is said where there is none."""

import random

import pandas as pd
import pytest

from robo_eval.cli.summary import print_summary
from robo_eval.core.plan import parse_plan
from robo_eval.core.schedule import schedule
from robo_eval.formulas import sailon
from robo_eval.gates import load_profile
from robo_eval.gates.evidence import readings_of
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.frame import episodes_frame
from robo_eval.metrics.summary import summarise
from robo_eval.metrics.thresholds import threshold_curves
from robo_eval.metrics.trials import once_in_trials

PLAN = """
name: x
tasks: [{levels: [1, 9], difficulties: [hard]}]
policies: [balancer, adaptive, informed]
trials: {count: 4, episodes: 10, onset: [2, 4], controls: 2, window: 3}
"""


def plan_of(text=PLAN, **trials):
    plan = parse_plan(text, source="plan")
    roles = {"frozen": "balancer", "informed": "informed"}
    return plan.model_copy(update={"trials": plan.trials.model_copy(update={**roles, **trials})})


def table(plan, *, quality, declares, gaps=(), late=(), truth=None):
    """Rows of a plan: quality by policy and planned episode, what it declares after it.

    Those of `gaps` have no score, those of `late` ended before their novelty began; `truth` is what
    is new in words, by level.
    """
    rows = []
    for planned in schedule(plan, plan.sides[0]):
        policy = plan.policies[planned.policy].name
        value = None if planned.base_id in gaps else quality(policy, planned)
        rows.append(
            {
                "episode_id": planned.base_id,
                "side": "sim",
                "task": plan.tasks[0].env,
                "policy": policy,
                "quality": value,
                "success": None if value is None else value == 1.0,
                "end_reason": "fault"
                if value is None
                else "success"
                if value == 1.0
                else "failure",
                "fault_by": "policy" if value is None else None,
                "seed": planned.seed,
                "level": planned.condition.level,
                "difficulty": "hard",
                "profile": "paper",
                "novelty": {
                    "trial": planned.trial.as_dict(declares(policy, planned)),
                    **({"began": False} if planned.base_id in late else {}),
                    **(truth or {}).get(planned.condition.level, {}),
                },
            }
        )
    return pd.DataFrame(rows)


def good(policy, planned):
    """Level 9 costs the frozen one, level 1 nobody."""
    if planned.condition.level != 9 or policy == "informed":
        return 1.0
    late = planned.trial.episode - planned.trial.onset
    return 0.25 if policy == "balancer" else min(1.0, 0.25 + 0.25 * late)


def declares(policy, planned):
    if policy != "adaptive":
        return None
    onset = planned.trial.onset
    has_seen = onset is not None and planned.trial.episode > onset
    levels = [{"level_number": 9, "probability": 0.8}]
    return {"probability": float(has_seen), "threshold": 0.5, "levels": levels if has_seen else []}


def numbers(rows, plan, policy="adaptive"):
    found = summarise(rows, plan).bodies
    own = next(body for body in found if body.policy == policy)
    return own.numbers.where(group="Trials with an onset")


def test_detection_and_reaction_are_told_over_trials():
    plan = plan_of()
    found = numbers(table(plan, quality=good, declares=declares), plan)
    assert found.of("M1").value == 1.0
    assert (found.of("M2").value, found.of("M2").n) == (1.0, 8)
    assert (found.of("M2_1").value, found.of("M2_1").n) == (0.0, 10)
    assert found.of("false_alarms_per_100_sim").low == 0.0
    assert found.of("M3").value == 1.0
    assert found.of("M6").value == pytest.approx((0.5 + 0.8) / 2, abs=0.02)
    assert found.of("M4") is None
    by_level = {one.at.level: one.estimate.value for one in found.where(name="M6") if one.at}
    assert by_level[1] == 0.5
    assert by_level[9] > 0.7
    assert found.of("level_named").value == 0.5  # it says 9 in every trial


def test_a_normal_episode_that_the_policy_broke_is_not_without_a_false_alarm():
    """Where faults count as failures, its trial has scores in all episodes."""
    plan = plan_of()
    trials = [one for one in schedule(plan, plan.sides[0]) if one.trial.episode == 0]
    broken = next(one for one in trials if plan.policies[one.policy].name == "adaptive")
    rows = table(plan, quality=good, declares=declares, gaps={broken.base_id})
    config = MetricConfig(policy_faults="failure")
    own = next(
        one for one in summarise(rows, plan, config=config).bodies if one.policy == "adaptive"
    )
    found = own.numbers.where(group="Trials with an onset")
    whole = numbers(table(plan, quality=good, declares=declares), plan)
    assert (found.of("M2_1").value, found.of("M2_1").n) == (0.0, 9)
    assert found.of("M2").n == 8
    assert found.of("false_alarms_per_100_sim").high > whole.of("false_alarms_per_100_sim").high
    (curve,) = threshold_curves([own])
    assert curve.own.false.n == 9


def test_what_adaptation_can_win_is_told_and_where_it_can_win_nothing():
    plan = plan_of()
    found = numbers(table(plan, quality=good, declares=declares), plan)
    possible = {one.at and one.at.level: one for one in found.where(name="adaptation_possible")}
    assert possible[9].estimate.value == 0.75
    assert "nothing to win" not in possible[9].note
    assert "level 1 hard" in possible[None].note
    assert "level 9" not in possible[None].note
    assert possible[1].estimate.value == 0.0
    assert "nothing to win is shown here: informed" in possible[1].note
    gains = {one.at and one.at.level: one.estimate for one in found.where(name="adaptation")}
    assert 0.0 < gains[9].value < 0.75
    frozen = numbers(table(plan, quality=good, declares=declares), plan, "balancer")
    assert frozen.of("adaptation") is None


def test_what_is_missing_has_a_reason():
    plan = plan_of(frozen=None, informed=None)
    rows = table(plan, quality=good, declares=declares)
    found = numbers(rows, plan)
    assert "no policy is named" in found.of("M6").reason
    assert "`trials.frozen`" in found.of("M6").reason
    assert found.where(name="M6")[0].remedy.endswith("trials.frozen in the plan")
    assert found.of("adaptation_possible").value is None
    silent = numbers(rows, plan, "informed")
    assert silent.of("M2").reason == "the policy declares nothing"
    given = plan_of(condition="given")
    told = numbers(table(given, quality=good, declares=declares), given)
    assert told.of("M2").reason == "the onset was given"
    assert told.of("M3") is None
    assert told.of("M4").value == 1.0


TRUTH = {
    1: {"truth": {"entity": "cart", "attribute": "mass", "change": "increase"}},
    9: {"truth": {"entity": "pole", "attribute": "size", "change": "increase"}},
}


def says(*words, levels=(), at=1):
    """Declares at an episode after the onset, or the next, and says this from then on."""

    def declared(policy, planned):
        onset = planned.trial.onset
        if policy != "adaptive" or onset is None or planned.trial.episode < onset + at:
            return None
        told = dict(zip(("entity", "attribute", "change"), words, strict=True))
        return {
            "probability": 1.0,
            "threshold": 0.5,
            "levels": [{"level_number": n, "probability": p} for n, p in levels],
            **{name: word for name, word in told.items() if word is not None},
        }

    return declared


def test_what_is_said_is_judged_by_the_truth_of_each_word():
    plan = plan_of()
    declares = says("pole", "mass", "increase", levels=[(1, 0.3), (9, 0.6)])
    found = numbers(table(plan, quality=good, declares=declares, truth=TRUTH), plan)
    entity = found.of("entity_named")
    assert (entity.value, entity.n, entity.method) == (0.5, 8, "wilson")
    # 4 of 8 by Wilson's formula, computed elsewhere.
    assert (entity.low, entity.high) == pytest.approx((0.2152154, 0.7847846), abs=1e-6)
    assert found.of("attribute_named_sim").value == 0.5
    assert found.of("change_named_sim").value == 1.0
    assert found.of("all_named_sim").value == 0.0
    assert found.of("all_named_at_declaration_sim").n == 8
    by_level = {one.at and one.at.level: one for one in found.where(name="entity_named")}
    assert (by_level[1].estimate.value, by_level[9].estimate.value) == (0.0, 1.0)
    level = found.of("level_named")
    assert (level.value, level.n, level.method) == (0.5, 8, "wilson")
    assert found.of("level_in_three_sim").value == 1.0
    # (0.3 - 1)^2 + 0.6^2 at level 1, 0.3^2 + (0.6 - 1)^2 at level 9.
    assert found.of("level_brier_sim").value == pytest.approx((0.85 + 0.25) / 2)


def test_where_a_novelty_declares_no_truth_there_is_no_value_and_a_reason():
    plan = plan_of()
    declares = says("pole", None, "increase")
    found = numbers(table(plan, quality=good, declares=declares), plan)
    assert found.of("entity_named").value is None
    assert found.of("entity_named").reason == "no novelty of these trials declares its entity"
    assert "entity, attribute, change" in found.of("all_named_sim").reason
    assert "@novelty" in found.where(title="entity named")[0].remedy
    assert found.of("level_named") is None  # it names none
    part = {9: {"truth": {"entity": "pole", "attribute": "size"}}}
    found = numbers(table(plan, quality=good, declares=declares, truth=part), plan)
    entity = found.where(title="entity named")[0]
    assert (entity.estimate.value, entity.estimate.n) == (1.0, 4)
    assert "4 of 8 trials left out" in entity.note
    assert "level 1 hard" in entity.note
    assert found.of("attribute_named_sim").value == 0.0  # silent about it, so wrong
    assert found.of("change_named_sim").reason.endswith("declares its change")
    late = says("pole", "size", "increase", at=100)
    silent = numbers(table(plan, quality=good, declares=late, truth=TRUTH), plan)
    assert not silent.where(title="entity named")


def test_the_truth_is_that_of_the_first_episode_whose_novelty_began():
    plan = plan_of(onset=(4, 4))
    late = first_novel(plan, "adaptive", count=4)
    rows = table(plan, quality=good, declares=says("pole", "size", "increase"), truth=TRUTH)
    cut = [name in late for name in rows["episode_id"]]
    rows.loc[cut, "novelty"] = [
        {**novelty, "truth": {"entity": "else"}, "began": False}
        for novelty in rows.loc[cut, "novelty"]
    ]
    assert numbers(rows, plan).of("all_named_sim").value == 0.5


SINGLE = PLAN.replace("levels: [1, 9]", "levels: [9]")
DECLARED = (8, 6, None, 3, 11)
"""Of five trials of 20 episodes, counted from 1, whose sixth is the first novel one."""


def worked_example(*, threshold=0.5):
    """Probability 0.6 from the episode of `DECLARED` on, 0.2 before it."""
    plan = plan_of(SINGLE, count=5, episodes=20, onset=(5, 5), controls=0)

    def says_so(policy, planned):
        if policy != "adaptive":
            return None
        d = DECLARED[planned.trial.number]
        is_sure = d is not None and planned.trial.episode + 1 >= d
        return {"probability": 0.6 if is_sure else 0.2, "threshold": threshold}

    return plan, table(plan, quality=good, declares=says_so)


def test_the_curve_over_thresholds_has_the_numbers_of_the_worked_example():
    plan, rows = worked_example()
    summary = summarise(rows, plan)
    (curve,) = summary.thresholds
    assert (curve.policy, curve.stated) == ("adaptive", (0.5, 0.5))
    assert [at.threshold for at in curve.points] == list(sailon.THRESHOLDS)
    at = {one.threshold: one for one in curve.points}
    for point in (curve.own, at[0.225], at[0.3], at[0.6]):
        assert point.detected.value == 0.6
        assert (point.detected.low, point.detected.high) == pytest.approx(
            (0.2307242813, 0.8823792258)
        )
        assert point.delay.value == pytest.approx(7 / 3)
        assert point.false.value == 0.2
    assert (at[0.175].detected.value, at[0.175].false.value) == (0.0, 1.0)
    assert (at[0.9].detected.value, at[0.9].false.value) == (0.0, 0.0)
    assert (at[0.9].delay.value, at[0.9].delay.reason) == (None, "no trial is detected")
    own = numbers(rows, plan)
    assert own.of("M1") == curve.own.delay
    assert own.of("M2") == curve.own.detected
    assert own.of("M2_1") == curve.own.false
    assert "detects 0.60 of the trials with novelty with a delay of 2.33 episodes" in curve.text
    assert "at its own threshold of 0.5" in curve.text.lower()
    assert curve.text.endswith("most at 0.225, 0.3, 0.4, 0.5, 0.6: by 0.40.")
    told = summary.as_dict()["thresholds"]
    assert [one["policy"] for one in told] == ["adaptive"]
    assert told[0]["points"][2]["detected"]["value"] == 0.6


def test_the_curve_is_that_of_the_published_program():
    plan, rows = worked_example()
    (body,) = (one for one in summarise(rows, plan).bodies if one.policy == "adaptive")
    expected = sailon.threshold_curve(one.trial for one in body.trials.played.values())
    (curve,) = threshold_curves([body])
    for at, want in zip(curve.points, expected, strict=True):
        found = {"m1": at.delay.value, "m2": at.detected.value, "m2_1": at.false.value}
        assert {"threshold": at.threshold, **found} == pytest.approx(want)


def test_there_is_no_curve_where_the_onset_is_given_or_nobody_declares():
    plan, rows = worked_example()
    silent = rows[rows["policy"] != "adaptive"]
    assert summarise(silent, plan).thresholds == ()
    given = plan_of(SINGLE, condition="given")
    assert summarise(table(given, quality=good, declares=declares), given).thresholds == ()
    plan = plan_of()

    def alike(policy, planned):
        return {"probability": 0.0, "threshold": 0.3 + 0.1 * (planned.trial.number % 2)}

    curves = summarise(table(plan, quality=good, declares=alike), plan).thresholds
    assert "own threshold of 0.3 to 0.4" in curves[0].text
    assert curves[0].text.endswith(
        "No threshold from 0.175 to 0.9 tells novelty better than another."
    )


def gaps_of(plan, policy, *, controls):
    """Episodes of a policy, in trials with novelty or, if asked for, in all."""
    own = [p for p in schedule(plan, plan.sides[0]) if plan.policies[p.policy].name == policy]
    return {p.base_id for p in own if controls or p.trial.onset is not None}


@pytest.mark.parametrize("condition", ["system", "given"])
@pytest.mark.parametrize("controls", [True, False])
def test_the_reason_names_whose_trials_were_left_out(condition, controls):
    plan = plan_of(condition=condition)
    gaps = gaps_of(plan, "adaptive", controls=controls)
    found = numbers(table(plan, quality=good, declares=declares, gaps=gaps), plan)
    own = "M3" if condition == "system" else "M4"
    assert {"M3", "M4"} - {one.name for one in found} == {"M3", "M4"} - {own}
    whose = "no trial whose" if controls else "no trial with novelty whose"
    for name in (own, "M5", "M6", "adaptation", "adaptation_possible"):
        assert found.of(name).reason == f"{whose} episodes all have a score"
    assert "every episode gets a score" in found.where(name="M6")[0].remedy
    detection = "the onset was given" if condition == "given" else f"{whose} episodes all"
    assert found.of("M1").reason.startswith(detection)
    assert found.of("M2").reason.startswith(detection)
    theirs = gaps_of(plan, "balancer", controls=False)
    beside = numbers(table(plan, quality=good, declares=declares, gaps=theirs), plan)
    for name in (own, "M6", "adaptation"):
        assert "the frozen policy has played, too, with a score" in beside.of(name).reason


def test_numbers_are_called_what_the_page_calls_them_and_a_reason_is_told_once(capsys):
    plan = plan_of()
    summary = summarise(table(plan, quality=good, declares=declares), plan)
    print_summary(summary)
    lines = capsys.readouterr().out.splitlines()
    assert not any(" sim " in line for line in lines if "adaptive " in line and "trials" in line)
    for name in ("restricted delay", "M2.1", "false alarms per 100", "apti ratio", "level named"):
        assert any(line.split("  ")[0].strip() == "adaptive" and name in line for line in lines)
    told = [line for line in lines if "the policy declares nothing" in line]
    assert sorted(line.split()[:2] for line in told) == [["balancer", "M1"], ["informed", "M1"]]
    body = next(body for body in summary.bodies if body.policy == "informed")
    assert body.numbers.of("restricted_delay_sim").reason == "the policy declares nothing"


def test_a_trial_with_an_episode_without_a_score_is_left_out_and_counted():
    plan = plan_of()
    gap = next(p.base_id for p in schedule(plan, plan.sides[0]) if p.policy == 1 and p.trial.onset)
    found = numbers(table(plan, quality=good, declares=declares, gaps={gap}), plan)
    assert found.of("M2").n == 7
    assert "1 trial with an episode without a score left out" in found.where(name="M2")[0].note


def test_few_trials_of_several_levels_have_a_wide_interval_or_none():
    found = {}
    for count in (2, 3, 10):
        plan = plan_of(count=count)
        found[count] = numbers(table(plan, quality=good, declares=declares), plan).of("M5")
    assert found[2].low is None
    assert "a condition has 2 of the 3 values" in found[2].reason
    assert found[3].method == "welch_t"
    assert found[10].method == "stratified_bootstrap_percentile"
    assert found[3].high - found[3].low > found[10].high - found[10].low


def test_trials_that_drop_out_of_a_mean_and_levels_without_a_value_are_told():
    plan = plan_of(onset=(0, 1))

    def at_nine(policy, planned):
        return declares(policy, planned) if planned.condition.level == 9 else None

    found = numbers(table(plan, quality=good, declares=at_nine), plan)
    (delay, *_) = found.where(name="M1")
    assert (delay.estimate.value, delay.estimate.n) == (1.0, 4)
    assert delay.note.startswith("4 of 8 trials left out")
    assert "no value at" in delay.note
    assert "level 1 hard" in delay.note
    assert "level 9" not in delay.note
    onsets = [p.trial.onset for p in schedule(plan, plan.sides[0]) if p.trial.episode == 0]
    n_first = sum(onset == 0 for onset in onsets) // 3
    assert 0 < n_first < 8
    recovery = {one.at and one.at.level: one for one in found.where(name="M3")}
    assert recovery[None].note.startswith(f"{n_first} of 8 trials left out")
    assert "left out" in recovery[1].note + recovery[9].note
    assert found.where(name="M2")[0].note == ""


def test_levels_count_a_normal_episode_that_trials_share_once():
    plan = plan_of()
    rows = table(plan, quality=good, declares=declares)
    rows["uninterrupted_actions"] = 200.0
    rows["interventions"] = 0
    frame = episodes_frame(rows, plan)
    own = frame[frame["policy"] == "adaptive"]
    n = len(own.drop_duplicates(["level", "seed"]))
    assert n < len(own)
    assert len(once_in_trials(own)) == n
    found = readings_of(summarise(rows, plan), frame, load_profile("robotics"))
    autonomy = next(one for one in found if one.policy == "adaptive").of("autonomy")
    assert autonomy.n == n
    alone = frame.assign(novelty=[{}] * len(frame))
    assert len(once_in_trials(alone)) == len(frame)
    # The first that was played counts, whatever order the rows are in.
    timed = own.assign(start_ns=range(len(own), 0, -1))
    kept = once_in_trials(timed)
    least = timed.groupby(["level", "seed"])["start_ns"].min()
    assert sorted(kept["start_ns"]) == sorted(least)


def first_novel(plan, policy, count=1):
    """Base ids of the first novel episodes of some trials of a policy at level 9."""
    return {
        p.base_id
        for p in schedule(plan, plan.sides[0])
        if plan.policies[p.policy].name == policy
        and p.condition.level == 9
        and p.trial.onset == p.trial.episode
        and p.trial.number < count
    }


def test_an_episode_whose_novelty_never_began_is_not_novel():
    plan = plan_of(onset=(4, 4))
    late = first_novel(plan, "adaptive")
    found = numbers(table(plan, quality=good, declares=declares, late=late), plan)
    delays = {one.at and one.at.level: one for one in found.where(name="M1")}
    assert delays[9].estimate.value == 0.75  # the onset of one of four is an episode later
    assert (
        delays[None].note == "not counted as novel: 1 episode that ended before the novelty began"
    )
    after = [0.25, *(min(1.0, 0.25 + 0.25 * late) for late in range(1, 6))]

    def share(a, b=0.25):
        return a / (a + b)

    whole, short = share(sum(after) / 6), share(sum(after[1:]) / 5)
    kept = {one.at and one.at.level: one.estimate.value for one in found.where(name="M5")}
    assert kept[9] == pytest.approx((3 * whole + short) / 4)
    gains = {one.at and one.at.level: one.estimate.value for one in found.where(name="adaptation")}
    mean = sum(after) / 6, sum(after[1:]) / 5
    assert gains[9] == pytest.approx((3 * mean[0] + mean[1]) / 4 - 0.25)
    # Where it never began for the frozen policy, there is nothing to compare.
    theirs = first_novel(plan, "balancer")
    beside = numbers(table(plan, quality=good, declares=declares, late=theirs), plan)
    kept = {one.at and one.at.level: one.estimate.value for one in beside.where(name="M5")}
    assert kept[9] == pytest.approx((3 * whole + short) / 4)
    assert beside.of("M1").value == 1.0


def test_the_tables_by_level_say_how_many_episodes_ended_before_their_novelty_began(capsys):
    plan = plan_of(onset=(9, 9), window=1)
    late = first_novel(plan, "adaptive", count=3)
    print_summary(summarise(table(plan, quality=good, declares=declares, late=late), plan))
    told = "adaptive: episodes that ended before their novelty began: 3 at level 9\n"
    assert told in capsys.readouterr().out
    print_summary(summarise(table(plan, quality=good, declares=declares), plan))
    assert "before their novelty began" not in capsys.readouterr().out


def test_a_declaration_before_the_novelty_began_is_a_false_alarm():
    plan = plan_of(onset=(4, 4))
    late = first_novel(plan, "adaptive")

    def at_once(policy, planned):
        onset = planned.trial.onset
        has_seen = onset is not None and planned.trial.episode >= onset
        return {"probability": float(has_seen), "threshold": 0.5}

    found = numbers(table(plan, quality=good, declares=at_once, late=late), plan)
    assert found.of("M2").value == 7 / 8
    assert found.of("M2_1").value == 1 / 10


def test_a_trial_whose_novelty_never_began_has_none_and_the_window_fits_what_is_left():
    plan = plan_of(onset=(9, 9), window=1)
    late = first_novel(plan, "adaptive", count=4)
    found = numbers(table(plan, quality=good, declares=declares, late=late), plan)
    assert found.of("M2").n == 4
    assert found.of("M2_1").n == 10
    short = plan_of(onset=(7, 7), window=3)
    late = first_novel(short, "adaptive", count=4)
    assert numbers(table(short, quality=good, declares=declares, late=late), short).of("M6").n == 8


def test_the_order_of_the_rows_changes_nothing():
    plan = plan_of()
    rows = table(plan, quality=good, declares=declares)
    order = list(range(len(rows)))
    random.Random(3).shuffle(order)
    assert list(numbers(rows.iloc[order].reset_index(drop=True), plan)) == list(numbers(rows, plan))


def test_of_a_trial_that_was_played_again_the_last_attempt_counts_alone():
    plan = plan_of()
    again = gaps_of(plan, "adaptive", controls=False)
    again = {name for name in again if "-n1-" in name and "l09" in name}
    assert len(again) == 10
    rows = table(plan, quality=good, declares=declares)
    is_again = rows["episode_id"].isin(again)
    first = table(plan, quality=lambda *_: 0.0, declares=lambda *_: None, gaps={min(again)})
    first = first[is_again].assign(attempt=1)
    first.loc[first["quality"].isna(), ["end_reason", "fault_by"]] = ["lost", None]
    last = rows.assign(attempt=is_again + 1)
    last["episode_id"] += is_again.map({True: "-a2", False: ""})
    both = pd.concat([first, last])
    for order in (both, both.iloc[::-1]):
        found = numbers(order.reset_index(drop=True), plan)
        assert list(found) == list(numbers(rows, plan))
    frame = episodes_frame(both, plan)
    assert (frame["end_reason"] == "lost").sum() == 10
    assert frame.loc[frame["end_reason"] == "lost", "attempt"].eq(1).all()
    assert "played again" in frame.loc[frame["end_reason"] == "lost", "end_detail"].iloc[0]
    with_gap = last.astype({"success": object})
    lost = with_gap["episode_id"] == f"{min(again)}-a2"
    with_gap.loc[lost, ["quality", "success", "end_reason"]] = [None, None, "lost"]
    twice = numbers(pd.concat([first, with_gap]).reset_index(drop=True), plan)
    assert "1 trial with an episode without a score left out" in twice.where(name="M2")[0].note


def test_single_episodes_have_none_of_these_numbers():
    plan = parse_plan("name: x\ntasks: [{levels: [1]}]\npolicies: [balancer]", source="plan")
    rows = table(plan_of(), quality=good, declares=declares)
    rows["novelty"] = [{}] * len(rows)
    assert not numbers(rows[rows["policy"] == "balancer"], plan, "balancer")
