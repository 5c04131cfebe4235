"""`robo-eval compete` as an organiser uses it."""

from __future__ import annotations

import json

from robo_eval.compete.competition import read_competition
from robo_eval.compete.ledger import Ledger


def test_from_a_starter_to_a_checked_leaderboard(quick_cli, contest, tmp_path):
    assert quick_cli("compete", "new", "open.yaml").code == 0
    again = quick_cli("compete", "new", "open.yaml")
    assert (again.code, "is there already" in again.err) == (2, True)
    competition = read_competition(tmp_path / "open.yaml")
    assert competition.opens is None  # it opens at once
    small = competition.model_copy(
        update={"trials": competition.trials.model_copy(update={"count": 1, "episodes": 12})}
    )
    Ledger.create(tmp_path / "c", small).close_connection()
    with Ledger.open(tmp_path / "c") as ledger:  # as a server would, beside all that follows
        token = quick_cli("compete", "team", "c", "alice").out.splitlines()[-1]
        assert len(token) >= 20
        contest.play(ledger, ledger.team_of(token), 0.5)
        told = json.loads(quick_cli("compete", "team", "c", "bob", "--json").out)
        ledger.claim(ledger.team_of(told["token"]), "s")
        assert quick_cli("compete", "team", "c", "carol").code == 0
        first, second = (quick_cli("compete", "team", "c", "carol", "--revoke") for _ in range(2))
        assert (first.code, "no more" in first.out) == (0, True)
        assert (second.code, "nothing changed" in second.out) == (0, True)
        table = quick_cli("compete", "leaderboard", "c").out
        assert all(name in table for name in ("alice", "bob", "unfinished", "withdrawn", "M2"))
        told = json.loads(quick_cli("compete", "leaderboard", "c", "--json").out)
        assert [entry["team"] for entry in told["entries"]] == ["alice", "bob", "carol"]
    refused = quick_cli("compete", "reveal", "c")
    assert (refused.code, "compete close" in refused.err) == (2, True)
    assert "1 open attempt forfeited" in quick_cli("compete", "close", "c").out
    assert quick_cli("compete", "reveal", "c").code == 0
    assert (tmp_path / "c" / "reveal.json").exists()
    late = quick_cli("compete", "team", "c", "dave")
    assert (late.code, "is closed" in late.err) == (2, True)
    checked = quick_cli("compete", "check", "c", "--replays", "0")
    assert checked.code == 0, checked.err
    # Rows that were made up do not survive being played again.
    checked = quick_cli("compete", "check", "c", "--replays", "2", "--json")
    assert (checked.code, json.loads(checked.out)["is_fine"]) == (1, False)


def test_the_table_names_attempts_and_says_once_what_no_team_has(quick_cli, contest, tmp_path):
    with Ledger.create(tmp_path / "c", contest.parse()) as ledger:
        for name in ("alice", "bob"):
            contest.play(ledger, contest.team(ledger, name))
        contest.team(ledger, "idle")
        table = quick_cli("compete", "leaderboard", "c").out
        every = quick_cli("compete", "leaderboard", "c", "--all").out
        ledger.claim(ledger.teams()[0], "s")
        assert " 20 of 20 episodes left to play" in ledger.standing(ledger.teams()[0]).sentence
    head, *rows = [line.split() for line in table.splitlines() if "alice" in line or "team" in line]
    assert head[:2] == ["team", "attempt"]
    assert rows[0][:3] == ["1", "alice", "1"]
    assert "left open by 1 comparison," in table
    assert "0/20" in table
    (line, _) = (one for one in table.splitlines() if "no policy is named" in one)
    assert line.startswith("- M3 recovered, M5 from the onset on, M6")
    assert "performance kept" not in table
    assert "--all" in table
    rules = [line for line in table.splitlines() if line.startswith(" ──")]
    assert len(rules) >= 2
    assert max(map(len, rules)) <= 120, "tables fit a screen"
    assert "performance kept" in every
    (head,) = (one for one in table.splitlines() if "capability" in one and "team" in one[:8])
    assert head.split() == ["team", "capability", "generality"]
    assert "AIQ: no study of these levels is named" in table


def test_who_closes_is_told_whom_it_ends_and_what_comes_next(quick_cli, contest, tmp_path):
    text = contest.parse(baselines=["nothing"])
    with Ledger.create(tmp_path / "c", text) as ledger:
        ledger.add_team("nothing")
        ledger.claim(contest.team(ledger, "alice"), "s")
        contest.team(ledger, "zoe")
    taken = quick_cli("compete", "team", "c", "nothing")
    assert (taken.code, "name of a baseline" in taken.err) == (2, True)
    done = quick_cli("compete", "close", "c").out
    assert "1 open attempt forfeited: alice (attempt 1)" in done
    assert "not played to the end: nothing (attempt 1)" in done
    again = quick_cli("compete", "close", "c").out
    assert "closed already" in again
    assert "compete reveal" in again
    assert quick_cli("compete", "reveal", "c").code == 0
    assert "compete check" in quick_cli("compete", "close", "c").out
    # Who is withdrawn after that is told so, and `check` names dates.
    assert "compete reveal c" in quick_cli("compete", "team", "c", "zoe", "--revoke").out
    checked = quick_cli("compete", "check", "c", "--replays", "0")
    assert checked.code == 1
    assert " UTC)" in checked.out
    assert quick_cli("compete", "reveal", "c").code == 0
    assert quick_cli("compete", "check", "c", "--replays", "0").code == 0


def test_who_is_added_after_the_closing_date_is_told_so(quick_cli, contest, tmp_path):
    Ledger.create(tmp_path / "c", contest.parse()).close_connection()
    assert "closing date" not in quick_cli("compete", "team", "c", "early").out
    file = tmp_path / "c" / "competition.yaml"
    file.write_text(file.read_text().replace("2200-", "2001-"))  # as if time had passed
    told = quick_cli("compete", "team", "c", "late").out.splitlines()
    assert any("no attempt begins after the closing date" in line for line in told)
    assert len(told[-1]) >= 20


def test_a_beacon_is_given_by_a_verb(quick_cli, contest, tmp_path):
    Ledger.create(tmp_path / "c", contest.parse(beacon="a lottery")).close_connection()
    assert quick_cli("compete", "beacon", "c", "1 2 3").code == 0
    other = quick_cli("compete", "beacon", "c", "1 2 4")
    assert (other.code, "another value" in other.err) == (2, True)


def test_wrong_folders_and_options_are_one_line(quick_cli, tmp_path):
    for words in (
        ["leaderboard", "none"], ["team", "none", "a"], ["close", "none"], ["reveal", "none"],
        ["check", "none"], ["check", "none", "--all", "--replays", "3"],
    ):  # fmt: skip
        done = quick_cli("compete", *words)
        assert done.code == 2
        assert len(done.err.strip().splitlines()) == 1


def test_a_verb_finds_its_imports_by_itself(cli, tmp_path):
    assert cli("compete", "new", "open.yaml").code == 0


def test_baselines_that_a_file_does_not_name_are_not_practised(quick_cli, contest, tmp_path):
    (tmp_path / "cup.yaml").write_text(contest.text)
    done = quick_cli("compete", "practice", "cup.yaml", "--baselines")
    assert (done.code, "cup.yaml: baselines" in done.err) == (2, True)
    assert "--baselines" in done.err
