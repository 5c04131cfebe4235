"""Draws follow from the secret alone, and the promise covers every bit of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robo_eval.compete.draw import Secret, commitment, content, draw
from robo_eval.core.canonical import canonical_json

SECRET = Secret(bytes(range(16)), bytes(range(32)))


def _seeds(trials):
    return [one.seed for trial in trials for one in trial.episodes]


def test_a_competition_with_a_secret_always_draws_the_same(contest):
    trials = draw(contest.parse(), SECRET)
    assert trials == draw(contest.parse(), SECRET)
    # Kept, so that what was revealed once is drawn by every later version.
    assert _seeds(trials)[:2] == KEPT


KEPT = [1_756_777_782, 796_488_200]


def test_every_cell_has_its_trials_and_every_task_its_controls(contest):
    trials = draw(contest.parse(), SECRET)
    cells = sorted(trial.cell for trial in trials)
    assert cells == ["t0-l00-easy", *["t0-l01-easy"] * 2, *["t0-l02-easy"] * 2]
    for trial in trials:
        novel = [one.is_novel for one in trial.episodes]
        if trial.onset is None:
            assert not any(novel)
        else:
            assert 1 <= trial.onset <= 3
            assert novel == [False] * trial.onset + [True] * (4 - trial.onset)
    assert [trial.number for trial in trials] == list(range(5))


def test_novel_episodes_get_the_novelty_and_others_none(contest):
    trial = next(one for one in draw(contest.parse(), SECRET) if one.cell == "t0-l02-easy")
    assert trial.keywords_of(0)["level"] == 0
    assert trial.keywords_of(3)["level"] == 2


def test_an_onset_within_the_episode_is_of_the_first_novel_one(contest):
    changed = contest.parse(
        tasks=[{"levels": [3]}],
        trials={"count": 1, "episodes": 5, "onset": 2, "onset_tick": 20},
    )
    (trial,) = draw(changed, SECRET)
    assert trial.keywords_of(2)["onset"] == 20
    assert "onset" not in trial.keywords_of(3)
    assert "onset" not in trial.keywords_of(1)


def test_a_share_of_the_episodes_after_the_onset_is_novel(contest):
    changed = contest.parse(
        tasks=[{"levels": [3]}], trials={"count": 20, "episodes": 40, "onset": 5, "share": 0.5}
    )
    after = [one.is_novel for trial in draw(changed, SECRET) for one in trial.episodes[6:]]
    assert 0.4 < sum(after) / len(after) < 0.6
    assert all(trial.episodes[5].is_novel for trial in draw(changed, SECRET))


@given(master=st.binary(min_size=16, max_size=16), attempt=st.integers(1, 50))
@settings(max_examples=25, deadline=None)
def test_attempts_differ_in_every_seed(contest, master, attempt):
    secret = Secret(master, bytes(32))
    one = draw(contest.parse(), secret, attempt=attempt)
    other = draw(contest.parse(), secret, attempt=attempt + 1)
    assert not set(_seeds(one)) & set(_seeds(other))
    assert all(0 <= seed < 2**31 for seed in _seeds(one))


@given(
    master=st.binary(min_size=16, max_size=16),
    salt=st.binary(min_size=32, max_size=32),
    bit=st.integers(0, 16 * 8 + 32 * 8 - 1),
)
@settings(max_examples=25, deadline=None)
def test_one_bit_of_the_secret_changes_the_commitment(contest, master, salt, bit):
    whole = bytearray(master + salt)
    whole[bit // 8] ^= 1 << bit % 8
    one = commitment(contest.parse(), Secret(master, salt), "v")
    other = commitment(contest.parse(), Secret(bytes(whole[:16]), bytes(whole[16:])), "v")
    assert one != other


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "other"},
        {"closes": "2200-01-01T00:00:01+00:00"},
        {"attempts": 3},
        {"tasks": [{"levels": [1, 2], "difficulties": ["hard"]}]},
        {"trials": {"count": 2, "episodes": 4, "onset": [1, 2], "controls": 1}},
        {"limits": {"idle_s": 60}},
        {"beacon": "a lottery"},
    ],
)
def test_any_parameter_changes_the_commitment(contest, changed):
    usual = commitment(contest.parse(), SECRET, "v")
    assert commitment(contest.parse(**changed), SECRET, "v") != usual
    assert commitment(contest.parse(), SECRET, "w") != usual


def test_a_public_value_changes_all_seeds_and_not_the_commitment(contest):
    waiting = contest.parse(beacon="a lottery")
    one, other = (draw(waiting, SECRET, value) for value in ("1 2 3", "1 2 4"))
    assert not set(_seeds(one)) & set(_seeds(other))
    assert "draws" not in content(waiting, SECRET, "v")
    assert "draws" in content(waiting, SECRET, "v", "1 2 3")


def test_the_promise_holds_seeds_onsets_parameters_and_code(contest):
    told = content(contest.parse(), SECRET, "v")
    assert told["code_version"] == "v"
    assert told["competition"] == contest.parse().parameters
    assert len(told["draws"]) == 2  # one an attempt
    trial = told["draws"][0][0]
    assert {"episodes", "onset", "keywords", "cell"} <= trial.keys()
    assert canonical_json(told)


def test_the_secret_is_new_each_time():
    assert Secret.new() != Secret.new()
    assert replace(SECRET) == SECRET
