"""What the page says of policies against each other."""

import re
from dataclasses import replace

import pandas as pd

from robo_eval.core.plan import parse_plan
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.frame import episodes_frame
from robo_eval.report.page import render
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


def pairs(side):
    return {(pair.first, pair.second): pair for pair in side.found.pairs}


def test_policies_that_were_not_told_apart_share_a_letter():
    (side,) = standings()
    assert side.title == ""
    assert [(own.policy, own.ranks, own.letters) for own in side.found.by_success] == [
        ("good", "1 to 2", "a"),
        ("fair", "1 to 2", "a"),
        ("poor", "3", "b"),
    ]
    assert pairs(side)["good", "poor"].text == "good did better than poor"
    undecided = pairs(side)["good", "fair"]
    assert undecided.winner is None
    assert side.rests_on(undecided) == "40 pairs"
    assert any("3 comparisons by Holm" in note for note in side.notes)


def test_too_few_scored_episodes_name_no_winner_and_give_the_bounds(make_report):
    (side,) = standings(lost=5)
    page = render(replace(make_report(), standings=[side]), [])
    ranks, duels = page.split('<section id="compare"')[1].split("</table>")[:2]
    (poor,) = re.findall(r'rowheader">poor</th>(.*?)</tr>', ranks)
    assert 'data-label="rank">-</td>' in poor
    assert 'data-label="letters">-</td>' in poor
    assert "35 of 40 scored (5 lost)" in poor
    assert re.search(r'data-label="missing failed, or succeeded">0\.\d\d to 0\.\d\d<', poor)
    (duel,) = re.findall(r'rowheader">good − poor</th>(.*?)</tr>', duels)
    assert "<b>" not in duel
    assert "35 of 40 scored" in duel


def test_one_policy_has_no_standing():
    plan = parse_plan(PLAN.replace("[poor, fair, good]", "[good]"), source="plan.yaml")
    rows = table()
    frame = episodes_frame(rows[rows["policy"] == "good"], plan)
    assert standings_of(compared_sides(frame, plan, MetricConfig(resamples=200))) == []
