"""What a team is told of an episode it asks about: the truth, so often, and by rules."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from robo_eval.compete.check import check
from robo_eval.compete.ledger import Ledger, Refusal
from robo_eval.compete.replay import packed
from robo_eval.core.canonical import canonical_json
from robo_eval.core.errors import PlanError

TRIALS = {"count": 1, "episodes": 5, "onset": 2}
TASKS = [{"levels": [1]}]


def asking(make, condition, feedback=2, **trials):
    return make(tasks=TASKS, trials={**TRIALS, "condition": condition, **trials}, feedback=feedback)


def play(ledger, contest, turn, **measured):
    """An episode, and the next turn of the trial."""
    row = ledger.row(ledger.begin(turn), **{**contest.measured(0.5), **measured})
    return ledger.record(turn, row, packed([1]))


def code_of(call, *given):
    with pytest.raises(Refusal) as refused:
        call(*given)
    return refused.value.code


def test_it_is_the_truth_and_as_often_as_the_rules_say(make, contest):
    ledger = asking(make, "given")
    (turn,) = ledger.claim(contest.team(ledger, "alice"), "s")
    place = turn.attempt, turn.trial.number
    assert code_of(ledger.feedback, *place, 0) == "order"  # it has not ended
    found = []
    for episode in range(5):
        turn = play(ledger, contest, turn)
        if episode in (1, 2):
            found.append(ledger.feedback(*place, episode))
            assert ledger.feedback(*place, episode) == found[-1]  # the same again costs nothing
            with Ledger.open(ledger.folder) as other:  # as after a kill
                assert other.feedback(*place, episode) == found[-1]
            assert code_of(ledger.declare, *place, episode, 0.9) == "order"
    assert found == [(False, 1), (True, 0)]
    with pytest.raises(Refusal, match="whether an episode was novel is told of 2"):
        ledger.feedback(*place, 4)
    assert code_of(ledger.feedback, *place, 4) == "no_feedback"
    assert code_of(ledger.feedback, *place, 3) == "order"
    ledger.close()
    assert code_of(ledger.feedback, *place, 4) == "closed"


def test_who_has_to_find_the_onset_is_told_once_it_was_declared(make, contest):
    ledger = asking(make, "system")
    (turn,) = ledger.claim(contest.team(ledger, "alice"), "s")
    place = turn.attempt, turn.trial.number
    turn = play(ledger, contest, turn)
    ledger.declare(*place, 0, 0.4)
    with pytest.raises(Refusal, match="whether an episode was novel is told only once"):
        ledger.feedback(*place, 0)
    assert code_of(ledger.feedback, *place, 0) == "undeclared"
    turn = play(ledger, contest, turn)
    ledger.declare(*place, 1, 0.5)
    assert ledger.feedback(*place, 1) == (False, 1)
    play(ledger, contest, turn)
    assert ledger.feedback(*place, 2) == (True, 0)


def test_a_trial_that_was_given_back_has_its_whole_budget_again(make, contest):
    ledger = asking(make, "given", feedback=1)
    team = contest.team(ledger, "alice")
    (turn,) = ledger.claim(team, "s")
    place = turn.attempt, turn.trial.number
    turn = play(ledger, contest, turn)
    assert ledger.feedback(*place, 0) == (False, 0)
    ledger.give_back(*place, "it broke")
    (turn,) = ledger.claim(team, "s")
    play(ledger, contest, turn)
    assert ledger.feedback(*place, 0) == (False, 0)


def test_an_episode_that_ended_before_its_novelty_began_was_not_novel(make, contest):
    ledger = asking(make, "given", onset=0, onset_tick=50)
    (turn,) = ledger.claim(contest.team(ledger, "alice"), "s")
    place = turn.attempt, turn.trial.number
    turn = play(ledger, contest, turn, novelty={"onset": 50})
    assert ledger.feedback(*place, 0) == (False, 1)
    play(ledger, contest, turn)
    assert ledger.feedback(*place, 1) == (True, 0)


def test_nothing_is_told_where_the_rules_say_nothing(ledger, contest):
    first = ledger.claim(contest.team(ledger, "alice"), "s")[0]
    play(ledger, contest, first)
    assert code_of(ledger.feedback, first.attempt, first.trial.number, 0) == "no_feedback"


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"hints": 0}, "hints: would tell"), ({"hints": 4}, "hints"), ({"hints": True}, "hints"),
        ({"feedback": -1}, "feedback"), ({"feedback": 0.5}, "feedback"),
    ],
    ids=str,
)  # fmt: skip
def test_wrong_keys_are_one_line(contest, given, part):
    with pytest.raises(PlanError, match=rf"small\.yaml: {part}"):
        contest.parse(**given)


def _lie(ledger, **changed):
    """Forge what was told last, with a chain that fits."""
    from robo_eval.log.rows import row_digest

    path = ledger.folder / "competition.db"
    with closing(sqlite3.connect(path)) as database:
        database.row_factory = sqlite3.Row
        *_, before, last = database.execute("SELECT * FROM links ORDER BY sequence").fetchall()
        told = {**json.loads(last["content"]), **changed}
        key = {name: last[name] for name in ("kind", "trial", "run", "episode")}
        digest = row_digest(
            {**told, **key}, sequence=last["sequence"], previous_sha256=before["sha256"]
        )
        database.execute(
            "UPDATE links SET content = ?, sha256 = ? WHERE sequence = ?",
            (canonical_json(told).decode(), digest, last["sequence"]),
        )
        database.execute("UPDATE attempts SET sha256 = ?", (digest,))
        database.commit()


def test_check_sees_what_was_told_too_early(make, contest):
    ledger = asking(make, "system", episodes=3)
    (turn,) = ledger.claim(contest.team(ledger, "alice"), "s")
    place = turn.attempt, turn.trial.number
    turn = play(ledger, contest, turn)
    ledger.declare(*place, 0, 0.9)
    ledger.feedback(*place, 0)
    ledger.close_connection()
    assert not any("declared" in one for one in check(ledger.folder, sample=0).problems)
    with closing(sqlite3.connect(ledger.folder / "competition.db")) as database:
        database.execute("UPDATE links SET kind = 'x' WHERE kind = 'declare'")
        database.commit()
    assert any("before novelty" in one for one in check(ledger.folder, sample=0).problems)


def test_check_sees_what_was_told(make, contest):
    ledger = asking(make, "given", episodes=3)
    (turn,) = ledger.claim(contest.team(ledger, "alice"), "s")
    place = turn.attempt, turn.trial.number
    for episode in range(3):
        turn = play(ledger, contest, turn)
        if episode:
            ledger.feedback(*place, episode)
    ledger.close_connection()
    assert check(ledger.folder, sample=0).problems == []
    _lie(ledger, novel=False)
    (problem,) = check(ledger.folder, sample=0).problems
    assert "episode 2: feedback said novel is False, not True" in problem
    _lie(ledger, novel=True)
    text = (ledger.folder / "competition.yaml").read_text().replace("feedback: 2", "feedback: 1")
    (ledger.folder / "competition.yaml").write_text(text)
    assert any("more often than 1 times" in one for one in check(ledger.folder, sample=0).problems)
