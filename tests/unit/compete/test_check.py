"""`check` finds what differs, and nothing where nothing does."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from robo_eval.compete.check import check
from robo_eval.compete.ledger import Ledger
from robo_eval.compete.replay import packed
from robo_eval.core.errors import InputError


@pytest.fixture(scope="module")
def played(contest, tmp_path_factory):
    """A revealed competition of a few real episodes."""
    folder = tmp_path_factory.mktemp("played") / "c"
    small = contest.parse(
        tasks=[{"levels": [1]}], trials={"count": 1, "episodes": 2, "onset": 1}, attempts=1
    )
    with Ledger.create(folder, small) as ledger:
        team = contest.team(ledger, "alice")
        contest.really_play(ledger, team, lambda seen: int(seen[0] > 0) + 1)
        from robo_eval.compete.scores import board

        board(ledger)
        ledger.close()
        ledger.reveal()
    return folder


@pytest.fixture
def copy(played, tmp_path):
    """A copy without the file of the secret, as anybody may have it."""
    import shutil

    shutil.copytree(played, tmp_path / "c", ignore=shutil.ignore_patterns("secret.json"))
    return tmp_path / "c"


def _change(folder, statement):
    with closing(sqlite3.connect(folder / "competition.db")) as database:
        database.executescript(statement)
        database.commit()


def _edit(folder, **changed):
    path = folder / "reveal.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))


def test_everything_is_as_it_was_promised_and_played(copy):
    found = check(copy, sample=None)
    assert found.problems == []
    assert (found.revealed, found.episodes, found.replayed) == (True, 2, 2)


OTHER_ACTIONS = (
    "UPDATE links SET actions = (SELECT actions FROM links WHERE sequence = 3) WHERE sequence = 1"
)


@pytest.mark.parametrize(
    ("statement", "part"),
    [
        ("UPDATE links SET content = replace(content, '\"ticks\":', '\"ticks\":1')", "digest"),
        ("DELETE FROM links WHERE sequence = 4", "its last links are missing"),
        ("DELETE FROM links WHERE sequence = 2", "missing"),
        (OTHER_ACTIONS, "actions"),
        ("UPDATE meta SET value = 'x' || value WHERE name = 'commitment'",
         "commitment"),
        ("UPDATE scores SET content = replace(content, '\"forfeited\": 0', '\"forfeited\": 2')",
         "leaderboard"),
        ("UPDATE trials SET episode = 1", "kept is run 1, 1 episode, done"),
        ("UPDATE trials SET run = 99, episode = 0", "kept is run 99, 0 episodes, done"),
        ("UPDATE trials SET run = 99, episode = 0, state = 'open'; DELETE FROM scores",
         "played was run 1, 2"),
        ("UPDATE trials SET state = 'forfeited', why = 'late'",
         "kept is run 1, 2 episodes, forfeited"),
        ("DELETE FROM links WHERE sequence > 2", "1 of 2 episodes are there in run 1"),
        ("UPDATE links SET actions = zeroblob(length(actions)) WHERE sequence = 1",
         "link 1 cannot be read"),
        ("UPDATE links SET actions = NULL WHERE sequence = 1", "its actions are not those"),
        ("UPDATE links SET content = '{' WHERE sequence = 1", "episode 0: link 1 cannot be read"),
        ("UPDATE links SET content = '[1]' WHERE sequence = 1", "link 1 cannot be read"),
        ("DELETE FROM trials", "the trial is missing"),
        ("UPDATE scores SET content = replace(content, '0.0,', '0.9,')", "leaderboard"),
        ("UPDATE scores SET content = 'nonsense'", "leaderboard"),
        ("DELETE FROM attempts; DELETE FROM links; DELETE FROM trials; DELETE FROM scores",
         "alice, attempt 1: is in reveal.json alone"),
        ("INSERT INTO attempts (team, attempt, started_ns, sha256) VALUES (1, 2, 3, '')",
         "alice, attempt 2: is in the ledger alone"),
        ("UPDATE teams SET name = 'bob'", "policy is 'alice' in place of 'bob'"),
        ("UPDATE teams SET name = 'bob'", "team bob: is in the ledger alone"),
        ("UPDATE teams SET revoked_ns = 7", "team alice: revoked_ns is 7"),
        ("UPDATE attempts SET is_cut = 1", "alice, attempt 1: is_cut is True"),
        ("UPDATE attempts SET ended_ns = 7", "alice, attempt 1: ended_ns is 7"),
        ("UPDATE meta SET value = '7' WHERE name = 'closed_ns'", "closed_ns is '7'"),
    ],
)  # fmt: skip
def test_what_was_changed_in_the_ledger_is_found(copy, statement, part):
    _change(copy, statement)
    assert any(part in problem for problem in check(copy, sample=0).problems)


@pytest.mark.parametrize(
    ("changed", "part"),
    [
        ({"code_version": "other"}, "commitment"),
        ({"beacon": "1 2 3"}, "public value"),
        ({"draws": []}, "seeds and onsets"),
        ({"chains": {}}, "chain"),
        ({"standing": {"team x": {}}}, "team x: is in reveal.json alone"),
        ({"standing": {}}, "team alice: is in the ledger alone"),
        ({"commitment": "0" * 64}, "published"),
    ],
)
def test_what_was_changed_in_what_is_shown_is_found(copy, changed, part):
    _edit(copy, **changed)
    assert any(part in problem for problem in check(copy, sample=0).problems)


def test_another_secret_is_no_longer_the_promised_one(copy):
    _edit(copy, master="00" * 16)
    problems = check(copy, sample=0).problems
    assert any("commitment" in problem for problem in problems)
    (seeds,) = (problem for problem in problems if "seed is" in problem)
    assert "in place of" in seeds
    assert "1 more of this kind" in seeds


def test_a_parameter_that_was_changed_later_is_found(copy):
    path = copy / "competition.yaml"
    path.write_text(path.read_text().replace("idle_s: 3600.0", "idle_s: 60.0"))
    assert any("commitment" in problem for problem in check(copy, sample=0).problems)


def test_actions_that_lead_elsewhere_are_found_by_playing_again(contest, tmp_path):
    """A row that says more than was played, written by whoever holds the ledger."""
    small = contest.parse(tasks=[{"levels": [1]}], trials={"count": 1, "episodes": 2, "onset": 1})
    with Ledger.create(tmp_path / "c", small) as ledger:
        team = contest.team(ledger, "alice")
        contest.play(ledger, team, 1.0)
    problems = check(tmp_path / "c").problems
    assert any("played again" in problem for problem in problems)
    assert check(tmp_path / "c", sample=0).problems == []


@pytest.mark.parametrize("end", ["forfeited", "given back"])
def test_how_a_trial_ended_is_held_to_its_links(ledger, contest, end):
    team = contest.team(ledger, "alice")
    turn = ledger.begin(ledger.claim(team, "s")[0])
    ledger.record(turn, ledger.row(turn, **contest.measured(0.5)), packed([1]))
    if end == "forfeited":
        ledger.forfeit(turn.attempt, turn.trial.number, "late")
    else:
        ledger.give_back(turn.attempt, turn.trial.number, "a worker died")
    contest.play(ledger, team)
    found = check(ledger.folder, sample=0)
    assert found.problems == []
    given_back = [one for one in found.notes if "a worker died" in one]
    assert len(given_back) == (end == "given back")
    _change(ledger.folder, "UPDATE trials SET run = 1, state = 'done', episode = 4")
    assert any(end.split()[0] in one or "run 2" in one for one in check(ledger.folder, 0).problems)


def test_what_is_drawn_of_a_row_is_compared_with_the_draw(ledger, contest):
    """Written by whoever holds the ledger before its end, with a chain that holds."""
    team = contest.team(ledger, "alice")
    turn = ledger.begin(ledger.claim(team, "s")[0])
    row = ledger.row(turn, **contest.measured(0.5), novelty={"onset": 2})
    other = replace(row, difficulty="hard", novelty={**row.novelty, "began": False})
    ledger.record(turn, other, packed([1]))
    problems = check(ledger.folder, sample=0).problems
    assert any("difficulty is 'hard' in place of 'easy'" in one for one in problems)
    assert any("novelty is" in one and "began" in one for one in problems)


def test_what_the_environment_says_of_its_novelty_is_compared(copy):
    from robo_eval.compete.replay import differences, own_novelty

    with Ledger.open(copy, read_only=True) as ledger:
        (trial,) = ledger.trials()
        link = next(one for one in ledger.links(1) if one.episode == 1)
        assert own_novelty(link.row)
        novelty = json.dumps({**link.row.novelty, "level": 9})
        other = replace(link, content={**link.content, "novelty": novelty})
        (told,) = differences(trial, other, ledger.competition.tasks[0])
    assert told.startswith("novelty is")


def test_the_commitment_is_held_against_the_published_one(make, contest):
    ledger = make(beacon="the lottery")
    ledger.mix_in("1 2 3")
    found = check(ledger.folder, published=f" {ledger.commitment().upper()} ")
    assert (found.problems, found.beacon) == ([], "1 2 3")
    assert found.commitment == ledger.commitment()
    (told,) = check(ledger.folder, published="ab" * 32).problems
    assert "abab" in told
    assert ledger.commitment() in told


def test_a_receipt_is_looked_for_in_all_chains(copy):
    with Ledger.open(copy, read_only=True) as ledger:
        receipts = [ledger.receipt(one.link.sha256) for one in ledger.links(1)]
        assert ledger.newest_receipt(ledger.teams()[0]) == receipts[-1]
        assert not {one.link.sha256 for one in ledger.links(1)} & {*receipts}
    assert check(copy, sample=0, receipts=receipts).problems == []
    (told,) = check(copy, sample=0, receipts=[*receipts, "ab" * 32]).problems
    assert told.startswith("receipt abab")


def test_no_module_is_imported_that_the_competition_names(contest, tmp_path, monkeypatch):
    (tmp_path / "brought.py").write_text("raise SystemExit('was imported')")
    monkeypatch.syspath_prepend(tmp_path)
    task = {"env": "brought:CartPole-v1", "quality_range": [0, 500]}
    small = contest.parse(tasks=[task], trials={"count": 1, "episodes": 2, "onset": 1})
    with Ledger.create(tmp_path / "c", small) as ledger:
        contest.play(ledger, contest.team(ledger, "alice"))
    with pytest.raises(InputError, match=r"tasks\.0\.env: .*--env brought:CartPole-v1"):
        check(tmp_path / "c")
    assert check(tmp_path / "c", sample=0).replayed == 0
    with pytest.raises(InputError, match="was imported"):
        check(tmp_path / "c", envs=["brought:CartPole-v1"])


def test_an_environment_that_cannot_be_made_here_is_one_line(contest, tmp_path):
    task = {"env": "CartPole-v1", "quality_range": [0, 500], "kwargs": {"no_such": 1}}
    small = contest.parse(tasks=[task], trials={"count": 1, "episodes": 2, "onset": 1})
    with Ledger.create(tmp_path / "c", small) as ledger:
        contest.play(ledger, contest.team(ledger, "alice"))
    with pytest.raises(InputError, match="CartPole-v1: making it again fails"):
        check(tmp_path / "c")


def test_actions_that_an_environment_refuses_are_a_difference(contest, tmp_path):
    task = {"env": "CartPole-v1", "quality_range": [0, 500]}
    small = contest.parse(tasks=[task], trials={"count": 1, "episodes": 2, "onset": 1})
    with Ledger.create(tmp_path / "c", small) as ledger:
        turn = ledger.begin(ledger.claim(contest.team(ledger, "alice"), "s")[0])
        ledger.record(turn, ledger.row(turn, **contest.measured(0.5)), packed([7]))
    assert any("it breaks: AssertionError" in one for one in check(tmp_path / "c").problems)


def test_nothing_is_changed_by_looking(copy):
    before = (copy / "competition.db").read_bytes()
    check(copy)
    assert (copy / "competition.db").read_bytes() == before


def test_before_the_end_the_promise_is_compared_with_the_secret(ledger):
    found = check(ledger.folder)
    assert (found.problems, found.revealed) == ([], False)


def test_a_broken_reveal_is_one_line(copy):
    whole = json.loads((copy / "reveal.json").read_text())
    less = {name: told for name, told in whole.items() if name != "standing"}
    for broken in (
        [],
        {**whole, "form": float("nan")},
        {**whole, "chains": 3},
        {**whole, "standing": [1]},
        {**whole, "standing": {"team alice": [["number", 1]]}},
        less,
    ):
        (copy / "reveal.json").write_text(json.dumps(broken))
        with pytest.raises(InputError, match=r"reveal\.json"):
            check(copy)
    (copy / "reveal.json").write_text("[" * 200_000)
    with pytest.raises(InputError, match=r"reveal\.json"):
        check(copy)


def test_a_ledger_without_a_commitment_is_one_line(copy):
    _change(copy, "DELETE FROM meta WHERE name = 'commitment'")
    with pytest.raises(InputError, match="names no commitment"):
        check(copy)


def test_a_link_that_is_nested_too_deeply_is_a_difference(copy):
    _change(copy, f"UPDATE links SET content = '{'[' * 200_000}' WHERE sequence = 1")
    assert any("link 1 cannot be read" in one for one in check(copy, sample=0).problems)


def test_rows_of_an_attempt_that_is_gone_are_found_before_the_end(ledger, contest):
    ledger.claim(contest.team(ledger, "alice"), "s")
    _change(ledger.folder, "DELETE FROM attempts")
    assert any("missing" in problem for problem in check(ledger.folder, sample=0).problems)


def test_results_of_another_team_are_found_before_the_end(ledger, contest):
    for name in ("alice", "bob"):
        contest.play(ledger, contest.team(ledger, name))
    names = "'x' WHERE name = 'alice'", "'alice' WHERE name = 'bob'", "'bob' WHERE name = 'x'"
    _change(ledger.folder, "; ".join(f"UPDATE teams SET name = {one}" for one in names))
    problems = check(ledger.folder, sample=0).problems
    assert len(problems) == 2
    assert all("policy" in problem and "19 more" in problem for problem in problems)


def test_scores_of_older_rules_stand_beside_the_new_ones(ledger, contest, monkeypatch):
    from robo_eval.compete import check as module

    contest.play(ledger, contest.team(ledger, "alice"), 0.5)
    monkeypatch.setattr(module, "SCORE_VERSION", 2)
    monkeypatch.setattr(module, "quality_of_row", lambda *_: 0.75)
    found = check(ledger.folder, sample=0)
    assert found.problems == []
    assert found.differing_scores[0][2:] == (0.5, 0.75)


def test_with_a_public_value_anybody_draws_the_same(make, contest):
    ledger = make(beacon="the lottery")
    ledger.mix_in("1 2 3")
    contest.play(ledger, contest.team(ledger, "alice"))
    ledger.close()
    ledger.reveal()
    (ledger.folder / "secret.json").unlink()
    assert check(ledger.folder, sample=0).problems == []
    _edit(ledger.folder, beacon="1 2 4")
    assert any("public value" in one for one in check(ledger.folder, sample=0).problems)


def test_actions_that_are_none_are_a_difference(ledger, contest):
    """Recorded so, with a chain that holds."""
    turn = ledger.begin(ledger.claim(contest.team(ledger, "alice"), "s")[0])
    ledger.record(turn, ledger.row(turn, **contest.measured(0.5)), b"nonsense")
    assert any("episode 0: " in problem for problem in check(ledger.folder).problems)
