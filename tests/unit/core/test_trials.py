"""Trials of a plan: what is refused, and that plans without them are what they were."""

from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_eval.core.errors import InputError, PlanError
from robo_eval.core.plan import locked_text, parse_plan
from robo_eval.core.trials import TrialsPlan, checked_declaration


def guess(number, probability=0.9):
    return {"level_number": number, "probability": probability}


HEAD = "name: x\ntasks: [{levels: [1]}]\npolicies: [nothing, random]\n"


@pytest.mark.parametrize(
    ("trials", "said"),
    [
        ("onset: 5", r"trials\.onset: 5 .* trial of 5; give 4"),
        ("onset: -1", r"trials\.onset: must be .* given -1"),
        ("onset: [3, 1]", r"trials\.onset: must be \[least, most\]"),
        ("onset: later", r"trials\.onset: must be a whole number, or \[least, most\]"),
        ("onset: [1, 2, 3]", r"trials\.onset: must be a whole number"),
        ("onset: 3, window: 3", r"trials\.window: 3 episodes are more than the 2"),
        ("onset: 1, onset_tick: 200", r"trials\.onset_tick: must be below 200, the time limit"),
        ("onset: 1, share: 1.5", r"trials\.share"),
        ("onset: 1, frozen: nobody", r"trials\.frozen: unknown policy 'nobody'"),
        ("onset: 1, informed: random, frozen: random", r"trials\.frozen: must be another"),
        ("onset: 1, condition: told", r"trials\.condition: unknown"),
        ("onset: 1, episode: 3", r"trials\.episode: unknown key 'episode'"),
    ],
)
def test_what_trials_cannot_be_is_named(trials, said):
    with pytest.raises(PlanError, match=said):
        parse_plan(f"{HEAD}trials: {{count: 2, episodes: 5, {trials}}}", source="plan.yaml")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("levels: [1]", "levels: [0, 1]"), r"tasks\.0\.levels: 0 is no novelty"),
        (("{levels: [1]}", "{}"), r"tasks\.0\.levels: `trials` need levels"),
        (("name: x", "name: x\nretries: 1"), "retries: goes with single episodes"),
        (("name: x", "name: x\ncontrol: true"), "control: goes with single episodes"),
        (("name: x", "name: x\nepisodes: 3"), "episodes: follow from `trials`"),
        (("name: x", "name: x\nsides: [sim, twin]"), r"sides: must be \[sim\]"),
    ],
)
def test_what_does_not_go_with_trials_is_named(change, said):
    text = HEAD.replace(*change) + "trials: {count: 2, episodes: 5, onset: 2}"
    with pytest.raises(PlanError, match=said):
        parse_plan(text, source="plan.yaml")


def test_a_locked_plan_is_read_as_it_was_written():
    plan = parse_plan(HEAD + "trials: {count: 2, episodes: 5, onset: 2, controls: 1}", source="p")
    assert plan.episodes == 15
    assert parse_plan(locked_text(plan), source="p") == plan
    assert "trials" not in locked_text(parse_plan(HEAD, source="p"))


@given(st.integers(1, 30), st.data(), st.floats(0.0, 1.0), st.integers(0, 3), st.integers(0, 2**31))
def test_a_trial_begins_without_novelty(episodes, data, share, number, seed):
    most = data.draw(st.integers(0, episodes - 1))
    least = data.draw(st.integers(0, most))
    rules = TrialsPlan(count=3, episodes=episodes, onset=(least, most), share=share)
    drawn = rules.drawn("cell", number, seed=seed)
    novel = [place.is_novel for place in drawn]
    assert len(drawn) == episodes
    if number == 3:  # a control
        assert not any(novel)
        return
    onset = novel.index(True)
    assert least <= onset == drawn[0].onset <= most
    assert sum(novel) == 1 + round(share * (episodes - onset - 1))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"probability": 1.1}, "probability"),
        ({"probability": float("nan")}, "probability"),
        ({"probability": "high"}, "probability"),
        ({"threshold": 0.5}, "probability: is missing"),
        ({"probability": 0.5, "threshold": -1}, "threshold"),
        ({"probability": 0.5, "level": 3}, "unknown key 'level'"),
        ({"probability": 0.5, "levels": [{"level_number": 1, "probability": 2}]}, "levels.0"),
        ({"probability": 0.5, "levels": [{"level_number": 1, "probability": 0.6}] * 2}, "levels"),
        (object(), "object"),
        ([0.5], "probability"),
        (float("nan"), r"^declare\(\): probability: must be a finite number, given nan$"),
        (np.float32("nan"), r"^declare\(\): probability: must be a finite number, given nan$"),
        ({"probability": 0.5, "threshold": np.array(np.inf)}, "threshold: .* given inf"),
        (MappingProxyType({"probability": -np.inf}), "probability: .* given -inf"),
        (10**400, "probability: must be a number"),
        pytest.param(10**5000, "^declare", id="huge"),
        ({0.5: {0.5}}, "declare"),
        (
            {"probability": 0.5, "levels": [guess(1), guess(2)]},
            r"^declare\(\): levels: must have probabilities that add up to 1",
        ),
        (True, r"^declare\(\): probability: must be a number, given True$"),
        (np.True_, r"^declare\(\): probability: must be a number, given True$"),
        ("0.5", r"^declare\(\): probability: must be a number, given '0.5'$"),
        ({"probability": 0.5, "threshold": False}, r"threshold: must be a number, given False"),
        ({"probability": 0.5, "levels": [guess(3, True)]}, r"levels\.0\.probability: must be a n"),
        (
            {"probability": 0.5, "levels": [guess(k, 0) for k in range(1001)]},
            r"^declare\(\): levels: must be 1,000 at most, given 1,001$",
        ),
        ({"probability": 0.5, "levels": [guess(2**31)]}, r"levels\.0\.level_number: .* 2147483648"),
    ],
)
def test_a_declaration_that_cannot_be_is_refused(answer, said):
    with pytest.raises(InputError, match=said) as caught:
        checked_declaration(answer)
    assert not isinstance(caught.value, PlanError)  # no plan is at fault


def test_a_declaration_may_be_of_many_levels_and_any_mapping():
    levels = [guess(2**31 - 1 - k, 0) for k in range(1000)]
    said = checked_declaration(MappingProxyType({"probability": 1, "levels": levels}))
    assert said == {"probability": 1.0, "threshold": 0.5, "levels": levels}


def test_a_declaration_may_be_of_numpy():
    levels = [{"level_number": np.int64(6), "probability": np.float32(0.5)}]
    said = checked_declaration({"probability": np.float32(0.25), "levels": levels})
    assert said == {
        "probability": 0.25,
        "threshold": 0.5,
        "levels": [{"level_number": 6, "probability": 0.5}],
    }
