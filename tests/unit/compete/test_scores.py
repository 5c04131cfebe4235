"""The leaderboard: who did how well, and who cannot be told apart."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from statistics import fmean
from types import SimpleNamespace

import numpy as np
import pytest

from robo_eval.analysis.acc import analyse
from robo_eval.analysis.aiq import quotient, space
from robo_eval.analysis.panel import item_difficulty
from robo_eval.compete.replay import packed
from robo_eval.compete.scores import board, number_text
from robo_eval.core.errors import InputError
from robo_eval.stats.clustered_pairs import clustered_difference, clustered_p_values
from robo_eval.stats.rates import garwood_interval

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


def test_what_is_forfeited_is_not_without_a_false_alarm(make, contest):
    """Normal episodes count where they were played: of one trial all, and of another two."""
    ledger = make(trials={"count": 2, "episodes": 4, "onset": 3, "controls": 0})
    team = contest.team(ledger, "alice")
    whole, cut, *rest = ledger.claim(team, "s")
    for turn, n in ((whole, 4), (cut, 2)):
        following = turn
        for at in range(n):
            row = ledger.row(following, **contest.measured(0.5))
            following = ledger.record(following, row, packed([1]))
            ledger.declare(turn.attempt, turn.trial.number, at, 0.1)
    for turn in (cut, *rest):
        ledger.forfeit(turn.attempt, turn.trial.number, "gone")
    found = board(ledger).entries[0].measures
    assert (found["M2_1"].value, found["M2_1"].n) == (0.0, 1)
    alarms = found["false_alarms_per_100"]
    assert alarms.high == pytest.approx(garwood_interval(0, (3 + 2) / 100)[1])
    assert found["M2"].n == 4, "what is forfeited was not detected"


def test_a_trial_that_was_given_back_counts_once(ledger, contest):
    team = contest.team(ledger, "alice")
    turn = ledger.begin(ledger.claim(team, "s")[0])
    ledger.record(turn, ledger.row(turn, **contest.measured(0.0)), packed([1]))
    ledger.give_back(turn.attempt, turn.trial.number, "a worker died")
    contest.play(ledger, team, 1.0)
    (entry,) = board(ledger).entries
    assert (entry.score.value, entry.played, entry.expected) == (1.0, 20, 20)
    assert entry.marks == ("1 trial given back",)


@pytest.mark.parametrize("changed", ["run = 99, episode = 0", "state = 'open', episode = 1"])
def test_what_counts_follows_from_the_chain_alone(ledger, contest, changed):
    """`trials` says how servers go on, and is in no chain: nobody loses a rank by it."""
    import sqlite3
    from contextlib import closing

    for name, quality in (("alice", 1.0), ("bob", 0.5)):
        contest.play(ledger, contest.team(ledger, name), quality)
    before = board(ledger).as_dict()
    with closing(sqlite3.connect(ledger.folder / "competition.db")) as database:
        database.executescript(f"UPDATE trials SET {changed} WHERE attempt = 1; DELETE FROM scores")
    assert board(ledger).as_dict() == before


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
    assert any("later attempts" in note and "no win" in note for note in found.notes)


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


@pytest.mark.parametrize("frozen_ends", [3, 60])
def test_an_episode_that_ended_before_its_novelty_began_counts_as_none(make, contest, frozen_ends):
    """In the map, and beside the frozen team, for which it may not have begun either."""
    short = {"count": 2, "episodes": 4, "onset": 2, "controls": 1}
    ledger = make(trials={**short, "onset_tick": 50, "frozen": "frozen"})

    def play(name, ticks, qualities):
        for first in ledger.claim(contest.team(ledger, name), "s"):
            turn = first
            while turn is not None:
                own = turn.trial.keywords_of(turn.episode)
                novelty = {"onset": own["onset"]} if "onset" in own else {}
                quality = qualities[turn.trial.episodes[turn.episode].is_novel]
                told = {**contest.measured(quality), "ticks": ticks, "novelty": novelty}
                turn = ledger.record(turn, ledger.row(turn, **told), packed([1]))

    play("frozen", frozen_ends, {False: 0.5, True: 0.5})
    play("team", 3, {False: 0.5, True: 1.0})
    own = _by_team(board(ledger))
    team, n = own["team"], 4  # trials with novelty, each of which has one such episode
    assert (team.not_begun, own["frozen"].not_begun) == (n, n if frozen_ends == 3 else 0)
    assert "4 episodes ended before the novelty began" in team.marks
    assert team.played == team.expected
    by_cell = {one.cell: one.score for one in team.levels}
    assert by_cell["t0-l00-easy"].value == pytest.approx(0.5)
    assert by_cell["t0-l01-easy"].value == pytest.approx(1.0)
    assert team.measures["adaptation"].value == pytest.approx(0.5)
    assert team.measures["M6"].value == pytest.approx(2 / 3)


@pytest.mark.parametrize("first", ["a", "b"])
def test_before_the_reveal_an_attempt_that_goes_on_tells_how_much_was_played(make, contest, first):
    """Neither scores nor marks nor the order of teams tell more."""
    ledger = make(trials={"count": 1, "episodes": 4, "onset": 2, "onset_tick": 50})
    for name in ("a", "b", "done"):
        for turn in ledger.claim(contest.team(ledger, name), "s"):
            following = turn
            while following is not None and (name == "done" or following.episode < 3):
                own = turn.trial.keywords_of(following.episode)
                told = contest.measured(0.9 if name == first else 0.3)
                novelty = {"onset": own["onset"]} if "onset" in own else {}
                row = ledger.row(following, **{**told, "ticks": 3, "novelty": novelty})
                following = ledger.record(following, row, packed([1]))
    seen = _by_team(found := board(ledger).before_reveal())
    assert [one.team for one in found.entries] == ["done", "a", "b"]
    assert [one.not_begun for one in board(ledger).entries] == [2, 2, 2]
    assert seen["done"].score.value == pytest.approx(0.3)
    for one in seen.values():
        told = (one.not_begun, one.measures, one.ability, one.levels)
        assert not any(told)
    for name in ("a", "b"):
        assert seen[name].played == 6
        assert seen[name].marks == ("unfinished",)
        score, success = seen[name].score, seen[name].success
        assert (score.value, score.low, success.value) == (None, None, None)
        assert "ended" in score.reason
    assert not found.tables


def _by_cell(turn):
    """Skill that falls with the number of the cell, and differs from trial to trial."""
    is_novel = turn.trial.episodes[turn.episode].is_novel
    key = turn.trial.cell if is_novel else turn.trial.nominal.key
    return round(0.8 - 0.2 * int(key[4:6]) + 0.01 * turn.trial.number, 6)


def test_ability_is_the_characteristic_curve_over_the_map_by_the_reference_panel(make, contest):
    ledger = make(trials={**LONG, "controls": 3})
    contest.play(ledger, contest.team(ledger, "alice"), _by_cell)
    contest.play(ledger, contest.team(ledger, "bob"), 0.5)
    own = _by_team(board(ledger))
    items = item_difficulty("paper").set_index(["level", "difficulty"])["item_difficulty"]
    difficulty = [items[level, "easy"] for level in (0, 1, 2)]
    cells = ("t0-l00-easy", "t0-l01-easy", "t0-l02-easy")
    means = own["alice"].means
    assert [len(means[cell]) for cell in cells] == [3, 5, 5]
    found = analyse([fmean(means[cell]) for cell in cells], difficulty)
    ability = own["alice"].ability
    assert ability["capability"].value == pytest.approx(found.capability)
    assert ability["generality"].value == pytest.approx(found.normalised_generality)
    assert ability["capability"].low < ability["capability"].value < ability["capability"].high
    assert ability["capability"].n == 13  # trials
    assert "fewer than 20 trials" in ability["capability"].reason
    assert own["bob"].ability["generality"].value == pytest.approx(0.0)
    assert own["bob"].ability["AIQ"].reason == "no study of these levels is named"


def test_ability_at_the_floor_is_said_in_place_of_a_number(make, contest):
    """Its formula begins at the difficulty of the easiest cell."""
    ledger = make(trials=LONG)
    contest.play(ledger, contest.team(ledger, "nil"), 0.0)
    contest.play(ledger, contest.team(ledger, "alice"), _by_cell)
    found = board(ledger)
    ability = _by_team(found)["nil"].ability
    for name in ("capability", "generality"):
        assert ability[name].value is None
        assert "floor" in ability[name].reason
    told = found.tables[-1]
    assert "capability" not in told.by_team["nil"]
    assert any("capability of nil: it is at the floor" in one for one in told.sentences)
    assert any("easiest cell" in one for one in told.sentences)


@pytest.mark.parametrize(("controls", "count"), [(1, 5), (5, 2), (0, 2)])
def test_ability_of_few_trials_has_no_interval(make, contest, study, tmp_path, controls, count):
    ledger = make(trials={**LONG, "controls": controls, "count": count})
    contest.play(ledger, contest.team(ledger, "alice"), _by_cell)
    study(1, 2)
    found = board(ledger, study=tmp_path)
    least = min(one for one in (controls, count) if one)
    for name, one in found.entries[0].ability.items():
        assert one.value is not None, name
        if name != "AIQ" or count < 3:
            assert (one.low, one.high) == (None, None)
            assert f"{count if name == 'AIQ' else least} of the 3 trials" in one.reason
    (line,) = (one for one in found.tables[-1].sentences if "capability" in one and "[-]" in one)
    assert line.startswith("capability, generality")
    assert "of alice: [-] no interval" in line


def test_what_makes_numbers_unreliable_stands_by_them(make, contest):
    ledger = make(trials={**LONG, "controls": 3})
    for name in ("alice", "bob"):
        contest.play(ledger, contest.team(ledger, name), _by_cell)
    (line,) = (one for one in board(ledger).tables[-1].sentences if "unreliable" in one)
    assert line.startswith("capability, generality of alice, bob: unreliable: ")


def test_every_number_that_is_shown_says_of_how_many_trials_it_is(make, contest):
    ledger = make(trials={**LONG, "frozen": "frozen"})
    for name, quality in (("frozen", 0.5), ("alice", 0.8)):
        contest.play(ledger, contest.team(ledger, name), quality)
    found = board(ledger)
    assert number_text(_by_team(found)["alice"].score).endswith("] (12)")
    texts = [
        number_text(part)
        for table in found.tables
        for part in table.by_team.get("alice", {}).values()
    ]
    assert texts
    for text in texts:
        assert re.fullmatch(r"\S+ \[\S+( \S+)?\] \(\d+\)", text)
    titles = [one.title for one in found.tables if not one.is_further]
    assert titles == ["detection", "reaction", "adaptation", "ability"]


def test_an_interval_that_reaches_below_all_values_is_explained(make, contest):
    ledger = make(trials={"count": 3, "episodes": 4, "onset": 2, "frozen": "frozen"})
    contest.play(ledger, contest.team(ledger, "frozen"), 0.5)
    contest.play(ledger, contest.team(ledger, "odd"), lambda turn: float(turn.trial.number == 0))
    (table,) = (one for one in board(ledger).tables if one.title == "reaction")
    assert table.by_team["odd"]["M5"].low < 0.0
    assert any("not cut off at 0" in one for one in table.sentences)


def _unknown(**changed):
    """A competition of cells that the reference panel has not played."""
    task = {"env": "RoboEval/CartPole3D-v0", "levels": [1, 2], "max_ticks": 50}
    return {"tasks": [{**task, "difficulties": ["easy"]}], **changed}


def test_baselines_say_how_difficult_cells_are_where_the_panel_cannot(make, contest):
    ledger = make(**_unknown(baselines=["nothing", "random"]))
    for name, less in (("nothing", 0.2), ("random", 0.4)):
        team = contest.team(ledger, name)
        before = board(ledger)
        contest.play(ledger, team, lambda turn, less=less: _by_cell(turn) - less)
    contest.play(ledger, contest.team(ledger, "alice"), _by_cell)
    assert {one.team for one in before.entries} == {"nothing", "random"}
    own = _by_team(board(ledger))
    cells = sorted(own["alice"].means)
    difficulty = [
        1 - fmean(fmean(own[name].means[cell]) for name in ("nothing", "random")) for cell in cells
    ]
    found = analyse([fmean(own["alice"].means[cell]) for cell in cells], difficulty)
    assert own["alice"].ability["capability"].value == pytest.approx(found.capability)
    assert "one of the baselines" in own["random"].ability["capability"].reason
    assert own["random"].measures


@pytest.mark.parametrize(
    ("baselines", "plays", "reason"),
    [((), "all", "reference panel"), (("nothing",), "all", "2 baselines"),
     (("nothing", "random"), "one trial", "no episode has a score in 2 cells")],
)  # fmt: skip
def test_where_there_is_no_ability_a_sentence_says_why(make, contest, baselines, plays, reason):
    ledger = make(**_unknown(baselines=list(baselines)))
    for name in baselines:
        contest.play(ledger, contest.team(ledger, name))
    team = contest.team(ledger, "alice")
    if plays == "all":
        contest.play(ledger, team)
    else:
        turn = next(one for one in ledger.claim(team, "s") if one.trial.onset is None)
        ledger.record(turn, ledger.row(turn, **contest.measured(0.5)), packed([1]))
    ability = _by_team(board(ledger))["alice"].ability
    for name in ("capability", "generality"):
        assert ability[name].value is None
        assert reason in ability[name].reason


@pytest.fixture
def study(monkeypatch, tmp_path):
    """A study that was run, of levels as they are given, which lie at right angles."""
    from robo_eval.study.entries import TaskTest
    from robo_eval.study.run import Study

    def build(*levels, returns=(0.0, 1.0)):
        task = SimpleNamespace(env="RoboEval/CartPole3D-v0", returns=returns)
        tests = [
            TaskTest(name=f"level {level}", task=task, kwargs={"level": level}, content="")
            for level in levels
        ]
        lies = space(1.0 - np.eye(len(levels)), np.ones(len(levels)), k=len(levels))
        found = SimpleNamespace(tests=tests, known=lambda: SimpleNamespace(space=lies))
        monkeypatch.setattr(Study, "open", lambda _folder: found)
        return lies

    return build


def test_a_team_has_an_aiq_where_a_study_covers_the_levels(ledger, contest, study, tmp_path):
    contest.play(ledger, contest.team(ledger, "alice"), _by_cell)
    contest.team(ledger, "idle")
    lies = study(1, 2)
    own = _by_team(board(ledger, study=tmp_path))
    levels = {one.cell: one.score.value for one in own["alice"].levels}
    wanted = quotient(lies, [levels["t0-l01-easy"], levels["t0-l02-easy"]]).aiq
    aiq = own["alice"].ability["AIQ"]
    assert (aiq.value, aiq.n) == (pytest.approx(wanted), 4)
    assert "episode" not in aiq.reason
    assert "AIQ" not in own["idle"].ability
    assert board(ledger).entries[0].ability["AIQ"].value is None  # it is not kept


def test_a_study_of_other_levels_is_named_and_another_scale_refused(
    ledger, contest, study, tmp_path
):
    contest.play(ledger, contest.team(ledger, "alice"))
    study(1, 7, 9)
    (entry,) = board(ledger, study=tmp_path).entries
    assert "level 7 and level 9" in entry.ability["AIQ"].reason
    study(1, 2, returns=(0.0, 2.0))
    with pytest.raises(InputError, match="quality_range"):
        board(ledger, study=tmp_path)


def test_baselines_are_marked_and_have_no_rank(make, contest):
    ledger = make(baselines=["nothing", "random"])
    contest.play(ledger, contest.team(ledger, "nothing"), 0.9)
    contest.play(ledger, contest.team(ledger, "alice"), 0.5)
    contest.team(ledger, "random")
    found = board(ledger)
    assert [(one.team, one.place, one.marks) for one in found.entries] == [
        ("alice", 1, ()), ("nothing", None, ("baseline",)),
        ("random", None, ("baseline", "not begun")),
    ]  # fmt: skip
    assert [one["is_baseline"] for one in found.as_dict()["entries"]] == [False, True, True]


def test_a_team_stands_beside_what_the_frozen_one_did_in_the_same_attempt(make, contest):
    ledger = make(trials={"count": 1, "episodes": 3, "onset": 1, "frozen": "base"})
    base, team = (contest.team(ledger, name) for name in ("base", "team"))
    contest.play(ledger, base, 0.5)
    contest.play(ledger, team, 1.0)
    first = _by_team(board(ledger))["team"].measures["M3"]
    contest.play(ledger, base, 0.1)
    assert _by_team(board(ledger))["team"].measures["M3"] == first
    assert first.value == pytest.approx(2.0)


def test_many_processes_find_what_one_does(ledger, contest, monkeypatch):
    """And whichever attempts are computed together."""
    from robo_eval.compete import scores

    for at, name in enumerate("abcd"):
        contest.play(ledger, contest.team(ledger, name), 0.2 * (at + 1))
    kept = []
    for portion, workers in ((20, 1), (1, 2)):
        monkeypatch.setattr(scores, "_PORTION", portion)
        kept.append(list(scores.numbers(ledger, workers, is_anew=True)))
    assert kept[0] == kept[1]


def test_what_cannot_be_read_is_said_with_the_attempt(ledger, contest):
    contest.play(ledger, contest.team(ledger, "alice"))
    with closing(sqlite3.connect(ledger.folder / "competition.db")) as database:
        database.execute("UPDATE links SET content = '{' WHERE sequence = 3")
        database.commit()
    with pytest.raises(InputError, match=r"attempt 1 .*compete check"):
        board(ledger)


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
