"""Who has which turn, and what stays of it."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from robo_eval.compete.ledger import MOST_NOTES, Ledger, Refusal
from robo_eval.compete.replay import packed, unpacked
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import EndReason, FaultBy


def _code(call, *args, **kwargs):
    with pytest.raises(Refusal) as refused:
        call(*args, **kwargs)
    return refused.value.code


def _first(turns):
    return turns[0]


def test_an_attempt_is_played_once_and_its_rows_are_whole(ledger, contest):
    team = contest.team(ledger, "alice")
    contest.play(ledger, team)
    (attempt,) = ledger.attempts()
    links = list(ledger.links(attempt.number))
    assert attempt.ended_ns is not None
    assert len(links) == 20
    assert {link.problem for link in links} == {None}
    row = links[0].row
    assert (row.policy, row.plan_digest, row.task) == (
        "alice",
        ledger.digest,
        "RoboEval/CartPole3D-v0",
    )
    assert len({link.row.episode_id for link in links}) == 20


def test_the_disk_keeps_what_was_played_with_the_next_sweep(ledger, contest, monkeypatch):
    kept: list[Path] = []

    def fsync(number: int) -> None:
        kept.append(Path(f"/proc/self/fd/{number}").readlink())

    turn = _first(ledger.claim(contest.team(ledger, "alice"), "s"))
    monkeypatch.setattr(os, "fsync", fsync)
    turn = ledger.begin(turn)
    turn = ledger.record(turn, ledger.row(turn, **contest.measured(0.5)), packed([1]))
    assert kept == []
    ledger.sweep()
    ledger.declare(turn.attempt, turn.trial.number, 0, 0.5)
    assert kept == [ledger.folder.absolute() / "competition.db-wal"] * 2


def test_recording_twice_keeps_one_row(ledger, contest):
    turn = ledger.begin(_first(ledger.claim(contest.team(ledger, "alice"), "s")))
    row = ledger.row(turn, **contest.measured(0.5))
    following = ledger.record(turn, row, packed([1, 2]))
    assert ledger.record(turn, row, packed([1, 2])) == following
    assert following.episode == 1
    (link,) = ledger.links(turn.attempt)
    assert unpacked(link.actions) == [1, 2]


def test_out_of_order_and_foreign_turns_are_refused(ledger, contest):
    from dataclasses import replace

    team = contest.team(ledger, "alice")
    turn = _first(ledger.claim(team, "s"))
    row = ledger.row(turn, **contest.measured(0.5))
    assert _code(ledger.record, replace(turn, episode=2), row, b"") == "lost"
    assert _code(ledger.record, replace(turn, server="other"), row, b"") == "lost"
    assert _code(ledger.record, replace(turn, run=2), row, b"") == "lost"
    assert not list(ledger.links(turn.attempt))


def test_tokens_are_long_and_kept_as_digests_only(ledger):
    token = ledger.add_team("alice")
    assert len(token) >= 20
    assert ledger.team_of(token).name == "alice"
    assert ledger.team_of(token[:-1]) is None
    assert token.encode() not in (ledger.folder / "competition.db").read_bytes()
    assert stat.S_IMODE((ledger.folder / "secret.json").stat().st_mode) == 0o600
    assert stat.S_IMODE((ledger.folder / "competition.db").stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "../up"])
def test_a_name_that_rows_cannot_hold_is_refused(ledger, name):
    with pytest.raises(InputError, match="no name of a team"):
        ledger.add_team(name)


def test_nobody_joins_after_the_end(ledger):
    ledger.close()
    with pytest.raises(InputError, match=r"is closed.*new competition"):
        ledger.add_team("alice")
    assert not ledger.teams()


def test_a_name_is_given_once(ledger):
    ledger.add_team("alice")
    with pytest.raises(InputError, match="already"):
        ledger.add_team("alice")


def test_attempts_are_counted_and_the_second_meets_other_trials(ledger, contest):
    team = contest.team(ledger, "alice")
    for _ in range(2):
        contest.play(ledger, team)
    assert _code(ledger.claim, team, "s") == "no_attempts"
    one, two = (ledger.trials(number) for number in (1, 2))
    assert {e.seed for t in one for e in t.episodes}.isdisjoint(
        e.seed for t in two for e in t.episodes
    )


def test_a_withdrawn_team_plays_no_more_and_its_rows_stay(ledger, contest):
    team = contest.team(ledger, "alice")
    ledger.begin(_first(ledger.claim(team, "s")))
    assert ledger.revoke("alice") is None
    assert _code(ledger.claim, team, "s") == "withdrawn"
    assert ledger.standing(team).state == "withdrawn"
    (attempt,) = ledger.attempts()
    assert attempt.ended_ns is not None
    assert len(list(ledger.links(attempt.number))) == 20
    assert ledger.revoke("alice") is not None  # it had been before
    with pytest.raises(InputError, match="no team 'bob'"):
        ledger.revoke("bob")


def test_a_full_disk_loses_nothing_and_says_so(ledger, contest):
    turn = _first(ledger.claim(contest.team(ledger, "alice"), "s"))
    row = ledger.row(turn, **contest.measured(0.5))
    database = ledger.database.connected()
    most = database.exec_driver_sql("PRAGMA page_count").scalar()
    database.exec_driver_sql(f"PRAGMA max_page_count = {most}")
    large = packed(list(range(200_000)))
    with pytest.raises(InputError, match="disk is full"):
        ledger.record(turn, row, large)
    assert not list(ledger.links(turn.attempt))
    database.exec_driver_sql("PRAGMA max_page_count = 1000000")
    assert ledger.record(turn, row, large).episode == 1


# Times ------------------------------------------------------------------------------------------


def test_nobody_plays_before_it_opens(make, contest, clock):
    ledger = make(opens="2100-01-01T00:00:00+00:00")
    team = contest.team(ledger, "alice")
    assert _code(ledger.claim, team, "s") == "unopened"
    found = ledger.standing(team)
    assert (found.state, found.owner) == ("unopened", "organiser")
    assert found.deadline_ns == ledger.competition.opens_ns
    clock.now = found.deadline_ns
    assert ledger.claim(team, "s")


def test_after_the_closing_date_attempts_go_on_and_none_begins(ledger, contest, clock):
    one, two = (contest.team(ledger, name) for name in ("alice", "bob"))
    ledger.claim(one, "s")
    clock.now = ledger.competition.closes_ns + 1
    assert _code(ledger.claim, two, "s") == "closed"
    assert ledger.claim(one, "s")


def test_who_does_not_come_back_in_time_forfeits_the_trial_alone(ledger, contest, clock):
    team = contest.team(ledger, "alice")
    turns = ledger.claim(team, "s")
    turn = ledger.begin(turns[0])
    ledger.away([turn])
    clock.pass_s(ledger.competition.limits.idle_s - 1)
    assert ledger.sweep() == 0
    clock.pass_s(2)
    assert ledger.standing(team).state == "late"
    assert ledger.sweep() == 1
    rows = [link.row for link in ledger.links(turn.attempt)]
    assert len(rows) == 4
    assert {(row.end_reason, row.fault_by) for row in rows} == {(EndReason.FAULT, FaultBy.POLICY)}
    assert len(ledger.claim(team, "s")) == len(turns) - 1
    assert "forfeited: nothing came until" in ledger.standing(team).sentence


def test_who_comes_back_in_time_goes_on(ledger, contest, clock):
    team = contest.team(ledger, "alice")
    turn = ledger.begin(_first(ledger.claim(team, "s")))
    ledger.away([turn])
    clock.pass_s(60)
    again = _first(ledger.claim(team, "s"))
    assert (again.trial.number, again.episode) == (turn.trial.number, 0)
    clock.pass_s(ledger.competition.limits.idle_s - 1)
    assert ledger.sweep() == 0


def test_a_server_that_was_away_costs_nobody_a_trial(ledger, contest, clock):
    team = contest.team(ledger, "alice")
    ledger.serve("s")
    ledger.away([ledger.begin(_first(ledger.claim(team, "s")))])
    clock.pass_s(10 * 86_400)
    ledger.serve("s")
    assert ledger.sweep() == 0
    assert ledger.claim(team, "s")


def test_a_fault_of_the_server_gives_the_trial_back(ledger, contest):
    team = contest.team(ledger, "alice")
    turn = ledger.begin(_first(ledger.claim(team, "s")))
    ledger.record(turn, ledger.row(turn, **contest.measured(0.1)), b"")
    ledger.give_back(turn.attempt, turn.trial.number, "a worker died")
    ledger.give_back(turn.attempt, turn.trial.number, "a worker died")  # once is enough
    said = ledger.standing(team).sentence
    assert "by our fault" in said
    assert "a worker died" not in said, "what an environment says could tell what is novel"
    again = _first(ledger.claim(team, "s"))
    assert (again.run, again.episode) == (2, 0)
    contest.play(ledger, team)
    assert ledger.attempts()[0].ended_ns is not None
    assert [len(ledger.attempts()), ledger.standing(team).state] == [1, "ready"]
    assert (
        len(list(ledger.links(turn.attempt))) == 22
    )  # what was played of it stays, and that it began again


# Servers ----------------------------------------------------------------------------------------


def test_turns_stay_with_a_living_server_and_leave_a_dead_one(ledger, contest, clock):
    team = contest.team(ledger, "alice")
    turn = _first(ledger.claim(team, "one"))
    assert _code(ledger.claim, team, "two") == "elsewhere"
    clock.pass_s(15)
    ledger.beat("one")
    clock.pass_s(15)
    assert _code(ledger.claim, team, "two") == "elsewhere"
    clock.pass_s(10)
    assert len(ledger.claim(team, "two")) == 5
    row = ledger.row(turn, **contest.measured(0.5))
    assert _code(ledger.record, turn, row, b"") == "lost"


# Declarations -----------------------------------------------------------------------------------


def test_a_declaration_comes_once_after_its_episode_and_before_the_next(ledger, contest):
    turn = ledger.begin(_first(ledger.claim(contest.team(ledger, "alice"), "s")))
    where = (turn.attempt, turn.trial.number)
    assert _code(ledger.declare, *where, 0, 0.5) == "order"
    following = ledger.record(turn, ledger.row(turn, **contest.measured(0.5)), b"")
    ledger.declare(*where, 0, 0.5, 0.4, {"entity": "cart"})
    ledger.declare(*where, 0, 0.5, 0.4, {"entity": "cart"})  # sent again
    assert _code(ledger.declare, *where, 0, 0.9) == "declared"
    after = ledger.record(following, ledger.row(following, **contest.measured(0.5)), b"")
    ledger.begin(after)
    assert _code(ledger.declare, *where, 1, 0.9) == "order"  # the next has begun
    with pytest.raises(InputError, match=r"probability"):
        ledger.declare(*where, 1, 1.5)
    with pytest.raises(InputError, match=r"colour"):
        ledger.declare(*where, 1, 0.5, 0.5, {"colour": "red"})
    with pytest.raises(InputError, match="probability"):
        ledger.declare(*where, 1, float("nan"))


def test_the_last_episode_of_an_attempt_may_be_spoken_for(ledger, contest):
    team = contest.team(ledger, "alice")
    contest.play(ledger, team)
    ledger.declare(1, 0, 3, 0.7)
    assert [link.kind for link in ledger.links(1)].count("declare") == 1


# Refused messages -------------------------------------------------------------------------------


def test_notes_are_bounded_for_each_team(ledger, contest, monkeypatch):
    monkeypatch.setattr("robo_eval.compete.ledger.MOST_NOTES", 3)
    one, two = (contest.team(ledger, name) for name in ("alice", "bob"))
    for _ in range(5):
        ledger.note(one, "forged", "x" * 10_000)
        ledger.note(None, "unknown token", "")
    ledger.note(two, "late", "")
    kinds = [note["kind"] for note in ledger.notes()]
    assert [kinds.count(kind) for kind in ("forged", "unknown token", "late")] == [3, 3, 1]
    assert max(len(note["detail"]) for note in ledger.notes()) <= 500
    assert MOST_NOTES == 1_000


# The end ----------------------------------------------------------------------------------------


def test_reveal_waits_for_the_end_and_shows_everything(ledger, contest, clock):
    team = contest.team(ledger, "alice")
    ledger.begin(_first(ledger.claim(team, "s")))
    assert _code(ledger.reveal) == "unclosed"
    ledger.close()
    assert _code(ledger.claim, team, "s") == "closed"
    assert ledger.attempts()[0].ended_ns is not None
    told = ledger.reveal()
    assert told == json.loads((ledger.folder / "reveal.json").read_text())
    assert told["chains"] == {"1": ledger.attempts()[0].sha256}
    assert told["commitment"] == ledger.meta()["commitment"]
    assert ledger.standing(team).state == "revealed"


def test_reveal_after_the_closing_date_forfeits_what_is_open(ledger, contest, clock):
    team = contest.team(ledger, "alice")
    ledger.claim(team, "s")
    clock.now = ledger.competition.closes_ns
    ledger.reveal()
    assert _code(ledger.claim, team, "s") == "closed"
    assert len(list(ledger.links(1))) == 20


def test_seeds_wait_for_the_public_value_and_take_it_once(make, contest):
    ledger = make(beacon="the lottery of 14 January")
    team = contest.team(ledger, "alice")
    assert _code(ledger.claim, team, "s") == "beacon"
    assert "the lottery of 14 January" in ledger.standing(team).sentence
    ledger.mix_in(" 1 2 3\n")
    ledger.mix_in("1 2 3")
    with pytest.raises(InputError, match="another value"):
        ledger.mix_in("1 2 4")
    assert ledger.claim(team, "s")


def test_a_public_value_nobody_asked_for_is_refused(ledger):
    with pytest.raises(InputError, match="names no value"):
        ledger.mix_in("1 2 3")


def test_every_state_has_a_sentence_an_owner_and_what_may_end_it(make, contest, clock):
    ledger = make(attempts=1)
    team = contest.team(ledger, "alice")
    seen = []

    def look():
        found = ledger.standing(team)
        seen.append(found.state)
        assert found.sentence.endswith((".", ".."))
        assert found.owner in ("team", "organiser", "server")
        if found.state not in ("revealed", "withdrawn"):
            assert found.deadline_ns is not None

    look()
    turns = ledger.claim(team, "s")
    look()
    ledger.begin(turns[0])
    look()
    contest.play(ledger, team)
    look()
    ledger.close()
    look()
    ledger.reveal()
    look()
    assert seen == ["ready", "playing", "playing", "finished", "closed", "revealed"]


# The folder -------------------------------------------------------------------------------------


def test_a_folder_is_made_once_and_whole(contest, tmp_path, monkeypatch):
    Ledger.create(tmp_path / "c", contest.parse()).close_connection()
    with pytest.raises(InputError, match="is there already"):
        Ledger.create(tmp_path / "c", contest.parse())

    def broken(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("robo_eval.compete.ledger.create", broken)
    with pytest.raises(InputError, match="No space left"):
        Ledger.create(tmp_path / "d", contest.parse())
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def test_a_copy_of_the_folder_is_a_backup(ledger, contest, tmp_path):
    import shutil

    team = contest.team(ledger, "alice")
    contest.play(ledger, team)
    ledger.close_connection()
    shutil.copytree(ledger.folder, tmp_path / "copy")
    with Ledger.open(tmp_path / "copy") as copy:
        assert copy.attempts() == ledger.attempts()


def test_what_is_no_competition_says_so(tmp_path):
    with pytest.raises(InputError, match="is no competition"):
        Ledger.open(tmp_path)


def test_a_changed_row_is_found_by_its_chain(ledger, contest):
    contest.play(ledger, contest.team(ledger, "alice"))
    with closing(sqlite3.connect(ledger.folder / "competition.db")) as database:
        database.execute(
            "UPDATE links SET content = replace(content, '\"quality\":0.5', '\"quality\":0.6')"
            " WHERE sequence = 3"
        )
        database.commit()
    problems = [link.problem for link in ledger.links(1) if link.problem]
    assert len(problems) == 1
    assert "its digest differs" in problems[0]


def test_progress_says_how_far_each_attempt_is(ledger, contest):
    alice, bob = contest.team(ledger, "alice"), contest.team(ledger, "bob")
    contest.play(ledger, alice)
    turns = ledger.claim(bob, "s")
    turn = ledger.begin(turns[0])
    ledger.record(turn, ledger.row(turn, **contest.measured(0.1)), b"")
    due = ledger.begin(turns[1]).due_ns
    ledger.forfeit(turns[2].attempt, turns[2].trial.number, "no action came")
    ledger.give_back(turns[1].attempt, turns[1].trial.number, "a worker died")
    whole, part = (ledger.progress()[one.number] for one in ledger.attempts())
    assert (whole.trials, whole.ended, whole.episodes, whole.due_ns) == (5, 5, 20, None)
    assert (part.ended, part.forfeited, part.given_back, part.episodes) == (0, 1, 1, 1)
    assert part.due_ns == due, "the other trial that has begun"
    told = ledger.breaks(10)
    assert [(one["state"], one["why"]) for one in told] == [
        ("open", "a worker died"), ("forfeited", "no action came"),
    ]  # fmt: skip
    assert ledger.breaks(10, [1]) == []
    ledger.note(bob, "forged", "first")
    ledger.note(bob, "forged", "second")
    ledger.note(None, "refused", "nobody")
    assert [one["detail"] for one in ledger.latest_notes(1, bob)] == ["second"]
    assert [one["detail"] for one in ledger.latest_notes(2)] == ["nobody", "second"]
    ledger.serve("first")
    assert ledger.servers() == {"first": ledger.now(), "s": ledger.now()}


def test_the_competition_has_a_phase_for_everybody(make, clock):
    ledger = make(opens="2027-01-16T00:00:00Z", closes="2027-01-17T00:00:00Z")
    assert ledger.phase().state == "unopened"
    assert ledger.phase().deadline_ns == ledger.competition.opens_ns
    clock.now = ledger.competition.opens_ns
    assert (ledger.phase().state, ledger.phase().owner) == ("open", "team")
    clock.now = ledger.competition.closes_ns
    assert ledger.phase().state == "late"
    ledger.close()
    assert ledger.phase().state == "closed"
    ledger.reveal()
    assert ledger.phase().state == "revealed"


def test_who_comes_back_has_no_more_time_than_before(ledger: Ledger, clock: Any) -> None:
    team = ledger.team_of(ledger.add_team("returns"))
    assert team is not None
    begun = ledger.begin(ledger.claim(team, "here")[0])
    for _ in range(3):
        clock.pass_s(10.0)
        ledger.away([begun])
        (again,) = (one for one in ledger.claim(team, "here", [begun]) if one.trial == begun.trial)
        assert again.due_ns == begun.due_ns
    clock.now = begun.due_ns - 1
    ledger.away([begun])
    clock.pass_s(1.0)
    assert ledger.sweep() == 1
