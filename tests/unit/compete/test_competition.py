"""What a competition file may say, and what is said of one that cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from robo_eval.compete.competition import check_dates, read_competition
from robo_eval.core.errors import PlanError


@pytest.mark.parametrize(
    ("changed", "field", "remedy"),
    [
        ({"closes": "2020-01-01T00:00:00"}, "closes", "2026-03-01T09:30:00"),
        ({"closes": "tomorrow"}, "closes", "2026-03-01T09:30:00"),
        ({"closes": None}, "closes", "missing"),
        ({"opens": "2200-01-02T00:00:00Z"}, "closes", "after it opens"),
        ({"onset": 3}, "onset", "unknown key"),
        ({"trials": {"count": 1, "episodes": 4, "onset": 4}}, "trials.onset", "3 at most"),
        ({"trials": {"count": 1, "episodes": 4, "onset": [3, 2]}}, "trials.onset", "least, most"),
        ({"tasks": [{"levels": [1, 99]}]}, "tasks.0.levels", "99"),
        ({"tasks": [{"levels": [0, 1]}]}, "tasks.0.levels", "trials.controls"),
        ({"tasks": [{"axes": {"colour": [1.0]}}]}, "tasks.0.axes", "colour"),
        ({"tasks": [{"env": "RoboEval/CartPole3-v0", "levels": [1]}]}, "tasks.0.env", "CartPole3D"),
        ({"tasks": [{"levels": [1]}, {"levels": [1]}]}, "tasks.1", "same environment"),
        ({"attempts": 0}, "attempts", "1"),
        ({"baselines": ["random", "random"]}, "baselines", "own `name`"),
        ({"baselines": [{"name": "a", "action_mode": "x"}]}, "baselines.0.action_mode", "kwargs"),
        ({"limits": {"idle_s": 0}}, "limits.idle_s", "0"),
    ],
)
def test_what_cannot_be_is_refused_with_file_field_and_remedy(contest, changed, field, remedy):
    with pytest.raises(PlanError) as refused:
        contest.parse(**changed)
    text = str(refused.value)
    assert text.startswith("small.yaml: ")
    assert field in text
    assert remedy in text
    assert "\n" not in text


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(PlanError, match="no such competition file"):
        read_competition(tmp_path / "none.yaml")


def test_a_closing_date_in_the_past_begins_nothing(contest, tmp_path):
    from robo_eval.compete.ledger import Ledger

    past = contest.parse(closes="2020-01-01T00:00:00+01:00")
    with pytest.raises(PlanError, match=r"closes: 2020-01-01T00:00:00\+01:00 is past"):
        Ledger.create(tmp_path / "c", past)
    assert not (tmp_path / "c").exists()
    check_dates(contest.parse(), "x")


def test_dates_keep_their_zone_whether_they_are_quoted_or_not(contest):
    from robo_eval.compete.competition import parse_competition

    bare = contest.text.replace("2200-01-01T00:00:00+00:00", "2200-01-01T02:00:00+02:00")
    quoted = contest.text.replace("2200-01-01T00:00:00+00:00", "'2200-01-01T00:00:00Z'")
    assert (
        parse_competition(bare, source="x").closes_ns
        == parse_competition(quoted, source="x").closes_ns
    )


def test_an_environment_of_others_needs_no_levels(contest):
    from robo_eval.compete.draw import Secret, draw

    tasks = [{"env": "CartPole-v1", "quality_range": [0, 500]}]
    trials = draw(contest.parse(tasks=tasks), Secret.new())
    assert {trial.onset for trial in trials} == {None}
    assert trials[0].keywords_of(0) == {}


@pytest.mark.parametrize("name", ["cartpole3d_open", "pick_place_open"])
def test_the_examples_can_be_played_with_all_their_baselines(name):
    from robo_eval.agents import load_policy

    file = Path(__file__).parents[3] / "examples" / "competitions" / f"{name}.yaml"
    competition = read_competition(file)
    names = [policy.name for policy in competition.baselines]
    assert competition.trials.frozen in names
    for policy in competition.baselines:
        load_policy(policy.name, policy.factory, policy.kwargs)


def test_the_agent_of_the_examples_declares_when_an_episode_takes_another_time():
    import numpy as np

    from examples.competitions.watchful import cart_pole, pick_place

    for agent, size in ((cart_pole(), 36), (pick_place(), 37)):
        agent.begin_trial()
        said = []
        for ticks in (9, 9, 3):
            agent.reset()
            for _ in range(ticks):
                agent.act(np.zeros(size, np.float32))
            said.append(agent.declare()["probability"])
        assert said[:2] == [0.0, 0.0]
        assert said[2] > 0.5
