"""The leaderboard: who did how well, and who cannot be told apart."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from robo_eval.compete.replay import packed
from robo_eval.compete.scores import board
from robo_eval.stats.clustered_pairs import clustered_difference, clustered_p_values

LONG = {"count": 5, "episodes": 6, "onset": 3, "controls": 2}


def _by_team(found):
    return {entry.team: entry for entry in found.entries}


def test_the_better_team_stands_first_and_equal_ones_by_time_of_entry(make, contest, clock):
    ledger = make(trials=LONG)
    for name in ("late", "best", "first"):
        contest.team(ledger, name)
    teams = {team.name: team for team in ledger.teams()}
    for name, quality in (("first", 0.5), ("best", 0.9), ("late", 0.5)):
        contest.play(ledger, teams[name], quality)
        clock.pass_s(1)
    found = board(ledger)
    assert [(one.place, one.team) for one in found.entries] == [
        (1, "best"), (2, "first"), (3, "late"),
    ]  # fmt: skip
    own = _by_team(found)
    assert own["best"].rank_range == (1, 1)
    assert own["first"].rank_range == own["late"].rank_range == (2, 3)
    assert own["first"].letters == own["late"].letters != own["best"].letters
    assert own["best"].score.value == pytest.approx(0.9)
    assert own["best"].score.n == 12  # trials
    assert own["best"].score.low < 0.9 < own["best"].score.high


def test_teams_that_have_not_ended_are_listed_without_a_rank(ledger, contest):
    done, begun, gone = (contest.team(ledger, name) for name in ("done", "begun", "gone"))
    contest.team(ledger, "idle")
    contest.play(ledger, done)
    ledger.begin(ledger.claim(begun, "s")[0])
    contest.play(ledger, gone)
    ledger.revoke("gone")
    own = _by_team(board(ledger))
    assert {name: one.state for name, one in own.items()} == {
        "done": "ended", "begun": "unfinished", "gone": "withdrawn", "idle": "not_begun",
    }  # fmt: skip
    assert {name for name, one in own.items() if one.place} == {"done"}
    assert own["begun"].marks == ("unfinished",)
    shown = {name: (one.played, one.expected) for name, one in own.items()}
    assert shown == {"done": (20, 20), "begun": (0, 20), "gone": (20, 20), "idle": (0, 20)}
    assert own["idle"].score.value is None
    assert own["idle"].score.reason


def test_an_entry_after_the_closing_date_is_marked(ledger, contest, clock):
    team = contest.team(ledger, "alice")
    ledger.claim(team, "s")
    clock.now = ledger.competition.closes_ns + 1
    contest.play(ledger, team)
    (entry,) = board(ledger).entries
    assert entry.is_late
    assert "late" in entry.marks


def test_what_is_forfeited_counts_nothing_and_is_said(ledger, contest):
    team = contest.team(ledger, "alice")
    ledger.forfeit(ledger.claim(team, "s")[0].attempt, 0, "sent nonsense")
    contest.play(ledger, team, 1.0)
    (entry,) = board(ledger).entries
    assert entry.score.value == pytest.approx(0.8)
    assert (entry.played, entry.forfeited, entry.expected) == (16, 4, 20)
    assert "4 episodes forfeited" in entry.marks


def test_a_trial_that_was_given_back_counts_once(ledger, contest):
    team = contest.team(ledger, "alice")
    turn = ledger.begin(ledger.claim(team, "s")[0])
    ledger.record(turn, ledger.row(turn, **contest.measured(0.0)), packed([1]))
    ledger.give_back(turn.attempt, turn.trial.number, "a worker died")
    contest.play(ledger, team, 1.0)
    (entry,) = board(ledger).entries
    assert (entry.score.value, entry.played, entry.expected) == (1.0, 20, 20)


def test_the_map_tells_levels_apart(ledger, contest):
    team = contest.team(ledger, "alice")
    by_cell = {"t0-l01-easy": 0.25, "t0-l02-easy": 0.5}

    def quality(turn):
        is_novel = turn.trial.episodes[turn.episode].is_novel
        return by_cell[turn.trial.cell] if is_novel else 1.0

    contest.play(ledger, team, quality)
    (entry,) = board(ledger).entries
    found = {one.cell: one.score.value for one in entry.levels}
    assert found == pytest.approx({"t0-l00-easy": 1.0, **by_cell})


def test_measures_are_those_of_the_trials(make, contest):
    """Declared at the first novel episode in every trial but the controls."""
    ledger = make(trials={**LONG, "frozen": "frozen"})
    for name, after in (("frozen", 0.2), ("adaptive", 0.8)):
        team = contest.team(ledger, name)
        for first in ledger.claim(team, "s"):
            turn = first
            while turn is not None:
                drawn = turn.trial.episodes[turn.episode]
                row = ledger.row(turn, **contest.measured(after if drawn.is_novel else 1.0))
                following = ledger.record(turn, row, packed([1]))
                chance = 0.9 if drawn.is_novel and name == "adaptive" else 0.1
                ledger.declare(turn.attempt, turn.trial.number, turn.episode, chance)
                turn = following
    own = _by_team(board(ledger))
    found = {name: one.value for name, one in own["adaptive"].measures.items()}
    expected = {
        "M1": 0.0, "M2": 1.0, "M2_1": 0.0, "restricted_delay": 0.0, "M3": 0.8, "M5": 0.8,
        "M6": 0.8, "adaptation": 0.6,
    }  # fmt: skip
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert "M4" not in found
    # Beside itself the frozen policy is as good as itself.
    still = {name: own["frozen"].measures[name].value for name in ("M3", "M5", "M6", "adaptation")}
    assert still == pytest.approx({"M3": 0.2, "M5": 0.5, "M6": 0.5, "adaptation": 0.0})
    silent = own["frozen"].measures
    assert [silent[name].value for name in ("M1", "M2", "restricted_delay")] == [None, 0.0, 3.0]


@pytest.mark.parametrize("first", ["base", "told"])
def test_both_teams_that_others_are_measured_by_have_values_of_their_own(make, contest, first):
    """Whichever was added first."""
    ledger = make(trials={**LONG, "frozen": "base", "informed": "told"})
    for name in sorted(("base", "told"), reverse=first == "told"):
        contest.play(ledger, contest.team(ledger, name), 0.4 if name == "base" else 0.8)
    for entry in board(ledger).entries:
        found = {name: entry.measures[name].value for name in ("M3", "adaptation_possible")}
        expected = {"M3": 1.0 if entry.team == "base" else 2.0, "adaptation_possible": 0.4}
        assert found == pytest.approx(expected)


def test_what_was_computed_of_an_ended_attempt_is_kept_until_its_rows_change(
    ledger, contest, monkeypatch
):
    from robo_eval.compete import scores

    team = contest.team(ledger, "alice")
    contest.play(ledger, team)
    first = board(ledger)
    computed = []
    contents = scores._contents
    monkeypatch.setattr(scores, "_contents", lambda *all_: computed.append(1) or contents(*all_))
    assert board(ledger) == first
    assert not computed
    ledger.declare(1, 0, 3, 0.9)
    board(ledger)
    assert computed


@pytest.mark.parametrize("content", ["nonsense", "replace(content, '0.5', '0.9')"])
def test_kept_numbers_that_were_damaged_are_computed_again_and_told(ledger, contest, content):
    contest.play(ledger, contest.team(ledger, "alice"), 0.5)
    first = board(ledger)
    told = content if content.startswith("replace") else f"'{content}'"
    with closing(sqlite3.connect(ledger.folder / "competition.db")) as database:
        database.execute(f"UPDATE scores SET content = {told}")
        database.commit()
    again = board(ledger)
    assert again.entries == first.entries
    assert any("alice was damaged" in note for note in again.notes)
    assert board(ledger) == first  # the right numbers are kept now


def test_later_attempts_are_compared_with_their_like_alone(ledger, contest, clock):
    one, two = (contest.team(ledger, name) for name in ("alice", "bob"))
    contest.play(ledger, one, 0.1)
    contest.play(ledger, one, 0.9)
    contest.play(ledger, two, 0.2)
    found = board(ledger)
    assert [(entry.team, entry.attempt) for entry in found.entries] == [("alice", 2), ("bob", 1)]
    assert found.n_compared == 0
    assert any("later attempts" in note for note in found.notes)


def test_ranks_and_letters_hold_within_an_attempt(make, contest, clock):
    """The best of the first attempt is first of its like, whoever is better at later trials."""
    ledger = make(trials=LONG)
    for name, qualities in {"x": (0.1, 0.9), "y": (0.1, 0.2), "one": (1.0,), "two": (0.3,)}.items():
        team = contest.team(ledger, name)
        for quality in qualities:
            contest.play(ledger, team, quality)
    own = [(one.team, one.attempt, one.place, one.rank_range) for one in board(ledger).entries]
    assert own == [
        ("x", 2, 1, (1, 1)), ("y", 2, 2, (2, 2)), ("one", 1, 1, (1, 1)), ("two", 1, 2, (2, 2)),
    ]  # fmt: skip
    assert [one.letters for one in board(ledger).entries] == ["a", "b", "a", "b"]


def test_an_attempt_that_closing_cut_off_replaces_none_that_was_played(ledger, contest):
    team, other = (contest.team(ledger, name) for name in ("alice", "bob"))
    contest.play(ledger, team, 0.5)
    ledger.claim(team, "s")
    ledger.claim(other, "s")
    ledger.close()
    found = _by_team(board(ledger))
    assert (found["alice"].attempt, found["alice"].score.value) == (1, 0.5)
    assert (found["bob"].forfeited, found["bob"].score.value) == (20, 0.0)


def test_the_board_is_json(ledger, contest):
    contest.play(ledger, contest.team(ledger, "alice"))
    told = json.loads(json.dumps(board(ledger).as_dict(), allow_nan=False))
    assert told["entries"][0]["levels"][0]["cell"] == "t0-l00-easy"
    assert "quality" not in told["entries"][0]


def test_p_values_of_many_are_those_of_each(contest):
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 6, 15)
    sums = rng.uniform(-1, 1, (20, 15)) * sizes
    sums[3] = 0.0
    each = [clustered_difference(row, sizes).p for row in sums]
    assert clustered_p_values(sums, sizes).tolist() == each
