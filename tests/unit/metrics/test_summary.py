import json

import numpy as np
import pandas as pd
import pytest

from robo_eval.analysis.acc import acc_for_trial
from robo_eval.core.kinds import Arm, Difficulty
from robo_eval.core.plan import PolicyPlan, TaskPlan, TrialPlan
from robo_eval.metrics.summary import summarise

LEVELS = (0, 1, 2)


@pytest.fixture
def trial(frame, episode):
    rng = np.random.default_rng(0)
    rows = []
    for policy, skill in (("balancer", 0.9), ("random", 0.1)):
        for level in LEVELS:
            for number, difficulty in enumerate(Difficulty):
                for seed in range(4):
                    name = f"t0-l{level:02d}-{difficulty}-{policy}-s{seed}-sim"
                    control = f"t0-l00-easy-{policy}-s{seed}-sim"
                    quality = float(
                        np.clip(skill - 0.1 * level * number + rng.normal(0, 0.05), 0, 1)
                    )
                    rows.append(
                        episode(
                            name,
                            round(quality, 3),
                            level=level,
                            difficulty=difficulty.value,
                            seed=seed,
                            policy=policy,
                            control_id=control if level else None,
                        )
                    )
    plan = TrialPlan(
        name="three levels",
        tasks=[TaskPlan(levels=LEVELS, difficulties=tuple(Difficulty), family="balancing")],
        policies=[PolicyPlan(name="random"), PolicyPlan(name="balancer")],
        episodes=4,
        control=True,
    )
    return frame(*rows), plan


def _panel():
    return pd.DataFrame(
        [
            {"level": level, "difficulty": d.value, "item_difficulty": 0.2 + 0.1 * level * number}
            for level in LEVELS
            for number, d in enumerate(Difficulty)
        ]
    )


def test_summary_holds_what_every_table_needs(trial):
    log, plan = trial
    summary = summarise(log, plan, acc=acc_for_trial(log, _panel()))
    assert [result.policy for result in summary.policies] == ["random", "balancer"]
    assert len(summary.cells) == 2 * 3 * 3
    effects = summary.numbers.where(name="novelty_effect_sim")
    assert len([it for it in effects if it.at and it.at.difficulty]) == 2 * 2 * 3
    assert [it.policy for it in effects if it.at is None] == ["random", "balancer"]
    assert (summary.coverage.scored, summary.coverage.planned) == (72, 72)
    assert summary.is_complete
    assert summary.uncovered == ()
    assert summary.score_versions == {1: 72}


def test_summary_is_json_without_nan_or_infinity(trial):
    log, plan = trial
    # A fault, an empty cell, and an agent that never fails.
    log = log[log["level"] < 2].reset_index(drop=True).astype({"success": object})
    log.loc[log["policy"] == "balancer", ["quality", "success", "end_reason"]] = [
        1.0,
        True,
        "success",
    ]
    log.loc[0, ["quality", "success", "end_reason"]] = [None, None, "fault"]
    text = json.dumps(
        summarise(log, plan, acc=acc_for_trial(log, _panel())).as_dict(), allow_nan=False
    )
    data = json.loads(text)
    assert data["coverage"]["text"] == "47 of 72 scored (1 fault, 24 not played)"
    assert data["policies"][0]["headline"] is None
    assert data["configuration"]["resamples"] == 9999
    assert len(data["configuration_digest"]) == 64


def test_order_of_the_log_changes_no_number(trial):
    log, plan = trial
    first = summarise(log, plan, acc=acc_for_trial(log, _panel())).as_dict()
    shuffled = log.sample(frac=1.0, random_state=3)
    assert summarise(shuffled, plan, acc=acc_for_trial(shuffled, _panel())).as_dict() == first


def test_an_interrupted_trial_is_not_complete(trial):
    log, plan = trial
    summary = summarise(log.iloc[:40], plan)
    assert not summary.is_complete
    assert summary.coverage.text == "40 of 72 scored (32 not played)"
    assert [result.policy for result in summary.uncovered] == ["random"]


def test_episodes_without_a_plan_can_be_summarised(trial):
    log, _ = trial
    summary = summarise(log)
    assert summary.coverage.planned is None
    assert summary.is_complete
    assert len(summary.cells) == 18


def test_a_trial_of_controls_alone_has_nothing_to_show(frame, episode):
    summary = summarise(frame(episode("c", arm=Arm.CONTROL)))
    assert summary.policies == ()
    assert summary.coverage.share is None
    assert not summary.coverage.is_sufficient
    json.dumps(summary.as_dict(), allow_nan=False)
