"""`check` finds what differs, and nothing where nothing does."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from robo_eval.compete.check import check
from robo_eval.compete.ledger import Ledger
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
        ("UPDATE trials SET episode = 1", "1 ended"),
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
        {**whole, "chains": 3},
        {**whole, "standing": [1]},
        {**whole, "standing": {"team alice": [["number", 1]]}},
        less,
    ):
        (copy / "reveal.json").write_text(json.dumps(broken))
        with pytest.raises(InputError, match=r"reveal\.json"):
            check(copy)


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
