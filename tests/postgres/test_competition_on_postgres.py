"""The ledger of a competition on a real PostgreSQL server, which several servers share."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from robo_eval.compete.check import check
from robo_eval.compete.ledger import Ledger, Refusal
from robo_eval.compete.replay import packed
from robo_eval.compete.scores import board
from robo_eval.compete.shown import lines
from robo_eval.core.errors import InputError


@pytest.fixture
def folder(contest, tmp_path, url):
    Ledger.create(tmp_path / "c", contest.parse(), url=url).close_connection()
    return tmp_path / "c"


def test_the_same_competition_is_played_scored_and_checked(folder, contest):
    with Ledger.open(folder) as ledger:
        team = contest.team(ledger, "alice")
        contest.play(ledger, team, 1.0)
        ledger.declare(1, 0, 3, 0.9)
        (entry,) = board(ledger).entries
        assert (entry.score.value, entry.played) == (1.0, 20)
        ledger.note(team, "forged", "x")
        assert ledger.progress()[1].episodes == 20
        assert ledger.latest_notes(1, team)[0]["detail"] == "x"
        ledger.close()
        ledger.reveal()
        head, *rows, end = map(json.loads, lines(ledger))
    assert (len(head["files"]), end) == (2, {"rows": len(rows)})
    assert sum(one["table"] == "links" for one in rows) == 21
    assert check(folder, sample=0).problems == []
    assert not (folder / "competition.db").exists()


def test_a_database_holds_one_competition(folder, contest, tmp_path, url):
    with pytest.raises(InputError, match="there is a ledger of a competition already"):
        Ledger.create(tmp_path / "other", contest.parse(), url=url)
    assert not (tmp_path / "other").exists()


def test_of_two_servers_one_plays_each_turn(folder, contest):
    """Each records what it holds; no episode is there twice."""
    with Ledger.open(folder) as ledger:
        team = contest.team(ledger, "alice")
    ready = threading.Barrier(2)

    def serve(name):
        with Ledger.open(folder) as own:
            ready.wait(timeout=60)
            try:
                turns = own.claim(team, name)
            except Refusal as err:
                return err.code
            for first in turns:
                turn = first
                while turn is not None:
                    row = own.row(turn, **contest.measured(0.5))
                    turn = own.record(turn, row, packed([1]))
            return len(turns)

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(serve, ("one", "two")))
    assert sorted(map(str, found)) == ["5", "elsewhere"]
    with Ledger.open(folder) as ledger:
        assert len(ledger.attempts()) == 1
        assert len(list(ledger.links(1))) == 20


def test_many_teams_play_at_once(folder, contest):
    names = [f"team{n}" for n in range(6)]
    with Ledger.open(folder) as ledger:
        teams = [contest.team(ledger, name) for name in names]

    def play(team):
        with Ledger.open(folder) as own:
            contest.play(own, team, server=team.name)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(play, teams))
    with Ledger.open(folder) as ledger:
        assert [entry.played for entry in board(ledger).entries] == [20] * 6
    assert check(folder, sample=0).problems == []


def test_a_database_that_dies_and_comes_back_loses_nothing(folder, contest, server):
    with Ledger.open(folder) as ledger:
        team = contest.team(ledger, "alice")
        turns = ledger.claim(team, "s")
        first = ledger.record(turns[0], ledger.row(turns[0], **contest.measured(0.5)), packed([1]))
        server.kill()
        server.start()
        ledger.record(first, ledger.row(first, **contest.measured(0.5)), packed([1]))
        contest.play(ledger, team)
        assert len(list(ledger.links(1))) == 20
    assert check(folder, sample=0).problems == []
