"""What the page says of policies against each other."""

import pandas as pd

from robo_eval.core.plan import parse_plan
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.frame import episodes_frame
from robo_eval.report.standings import compared_sides, standings_of

PLAN = """
name: three
tasks: [{env: Lab/Pick-v0, quality_range: [0, 1]}]
policies: [poor, fair, good]
episodes: 40
"""


def table(lost=0):
    rows = []
    for policy, share in (("poor", 8), ("fair", 30), ("good", 32)):
        for i in range(40):
            ok = (i * 7) % 40 < share
            is_lost = policy == "poor" and i < lost
            rows.append(
                {
                    "episode_id": f"t0-{policy}-s{1000 + i}-sim",
                    "side": "sim",
                    "task": "Lab/Pick-v0",
                    "policy": policy,
                    "seed": 1000 + i,
                    "quality": None if is_lost else float(ok),
                    "success": None if is_lost else ok,
                    "end_reason": "lost" if is_lost else ("success" if ok else "failure"),
                }
            )
    return pd.DataFrame(rows)


def standings(**kwargs):
    plan = parse_plan(PLAN, source="plan.yaml")
    frame = episodes_frame(table(**kwargs), plan)
    return standings_of(compared_sides(frame, plan, MetricConfig(resamples=200)))


def test_policies_that_were_not_told_apart_share_a_letter():
    (side,) = standings()
    assert side.title == ""
    assert [(own.policy, own.rank, own.letters) for own in side.ranks] == [
        ("good", "1 to 2", "a"),
        ("fair", "1 to 2", "a"),
        ("poor", "3", "b"),
    ]
    verdicts = {duel.label: duel for duel in side.duels}
    assert verdicts["good − poor"].is_decided
    assert verdicts["good − poor"].verdict == "good did better than poor"
    undecided = verdicts["good − fair"]
    assert not undecided.is_decided
    assert "at least 6 must end differently" in undecided.verdict
    assert undecided.rests_on == "40 pairs"
    assert any("3 comparisons by Holm" in note for note in side.notes)


def test_too_few_scored_episodes_name_no_winner_and_give_the_bounds():
    (side,) = standings(lost=5)
    poor = next(own for own in side.ranks if own.policy == "poor")
    assert (poor.rank, poor.letters) == ("-", "-")
    assert poor.episodes == "35 of 40 scored (5 lost)"
    assert poor.bounds
    duel = next(duel for duel in side.duels if duel.label == "good − poor")
    assert not duel.is_decided
    assert "35 of 40 scored" in duel.verdict


def test_one_policy_has_no_standing():
    plan = parse_plan(PLAN.replace("[poor, fair, good]", "[good]"), source="plan.yaml")
    rows = table()
    frame = episodes_frame(rows[rows["policy"] == "good"], plan)
    assert standings_of(compared_sides(frame, plan, MetricConfig(resamples=200))) == []
