"""Who sees what on the pages of a competition, and what nobody sees before the reveal."""

from __future__ import annotations

import re
import stat
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from robo_eval.compete.ledger import KEY
from robo_eval.compete.pages.site import CompetitionSite, organiser_key
from robo_eval.compete.scores import board, number_text
from robo_eval.core.errors import InputError
from robo_eval.core.units import text_of
from robo_eval.web import accounts
from robo_eval.web.security import HEADERS
from tests.unit.compete.door.conftest import Served, tiny
from tests.unit.compete.pages.conftest import Visitor, played

PATHS = (
    "/", "/login", "/own", "/team", "/team?start=1", "/team/1/0/0", "/organiser", "/reveal.json",
    "/v1/competition", "/v1/openapi.json", "/static/live.js", "/none",
)  # fmt: skip


def until_text(visitor: Visitor, path: str, text: str) -> str:
    for _ in range(2000):
        found = visitor.get(path).text
        if text in found:
            return found
        threading.Event().wait(0.03)
    raise AssertionError(f"{text} did not come: {found}")


def test_nothing_hidden_is_in_any_byte_of_a_page(cup: Any, come: Any) -> None:
    until_text(come(), "/", "[0.")  # the scores are there
    own = {one.team: one for one in board(cup.ledger).entries}
    assert own["alice"].not_begun
    assert own["bob"].not_begun
    hidden = cup.secrets() | {"level 6", "parameters", "novelty began"}
    assert len(hidden) > 8
    # What is known of an attempt again and again gives each of its episodes.
    hidden |= {text_of(own["bob"].score)} - {text_of(own["alice"].score)}
    for name in ("", "alice", "bob", "organiser"):
        visitor = come(name)
        for path in PATHS:
            answer = visitor.get(path, follow_redirects=True)
            whole = answer.text + str(answer.headers)
            assert not {word for word in hidden if word in whole}, (name, path)
            # Measures of detection would tell onsets to who knows what was declared.
            assert "M1" not in whole
            assert "restricted" not in whole


def test_a_page_says_what_is_hidden_and_until_when(come: Any) -> None:
    for visitor, path in ((come(), "/"), (come("alice"), "/team")):
        text = visitor.get(path).text
        assert "hidden until the organiser reveals" in text
        assert "2099-01-01 00:00:00 UTC" in text
    assert come().get("/reveal.json").status_code == 404
    assert come("alice").get("/team/1/0/0").status_code == 403


def test_everybody_sees_the_board_and_each_only_its_own_page(cup: Any, come: Any) -> None:
    text = until_text(come(), "/", "bob")
    assert cup.ledger.meta()["commitment"] in text
    assert "unfinished" in text
    for name, others in (("alice", "bob"), ("bob", "alice")):
        team = come(name).get("/team").text
        assert f"<h1>{name}</h1>" in team
        assert others not in team
        assert come(name).get("/organiser").status_code == 403
    bob = come("bob").get("/team").text
    assert "goes on: 1 of 4 episodes left" in bob
    assert "Your move" in bob
    organiser = come("organiser")
    assert organiser.get("/team").status_code == 403
    own = organiser.get("/organiser").text
    assert "alice" in own
    assert "bob" in own
    assert "1/1" in own, "workers that are alive"
    text = come().get("/").text
    rules = {"Trials of an attempt": "2", "Time for an action": "30 s", "novel": "none"}
    for name, value in rules.items():
        assert re.search(rf"{name}</dt><dd>{value}</dd>", text), name


def test_who_is_not_logged_in_is_asked_to(come: Any) -> None:
    for path in ("/team", "/organiser", "/team/1/0/0"):
        answer = come().get(path)
        assert answer.status_code == 303
        assert answer.headers["location"] == f"/login?next={path}"


def test_programs_get_text_and_the_interface_is_as_it_was(come: Any) -> None:
    text = come().get("/", headers={"accept": "*/*"})
    assert text.headers["content-type"].startswith("text/plain")
    assert "RoboEval/Remote-v0" in text.text
    assert come().get("/v1/me").json()["detail"].startswith("a team's token is wanted")
    assert come("alice").get("/v1/me").status_code == 401, "a cookie opens nothing to programs"


def test_a_wrong_token_is_refused_slowly_and_noted(cup: Any, come: Any) -> None:
    visitor = come()
    answer = visitor.log_in("0" * 32)
    assert answer.status_code == 401
    assert "no team&#39;s token" in answer.text
    assert "0" * 32 not in answer.text
    assert any(note["detail"] == "a login to the pages" for note in cup.notes())
    assert visitor.get("/team").status_code == 303


def test_guessing_leaves_room_for_others(
    cup: Any, come: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = accounts.Places(floor_s=0.5)
    found: Counter[str] = Counter()

    def guess() -> None:
        try:
            with places.place("somewhere"):
                raise accounts.LoginError("wrong")
        except accounts.BusyError:
            found["busy"] += 1
        except accounts.LoginError:
            found["wrong"] += 1

    threads = [threading.Thread(target=guess) for _ in range(10)]
    for one in threads:
        one.start()
    with places.place("elsewhere"):
        pass
    for one in threads:
        one.join()
    assert found["busy"] >= 1
    assert found["wrong"] <= 4
    with places.place("somewhere"):
        pass


def test_the_organisers_key_is_for_its_owner_alone_and_stays(cup: Any, tmp_path: Path) -> None:
    assert stat.S_IMODE((cup.folder / KEY).stat().st_mode) == 0o600
    assert organiser_key(tmp_path) == organiser_key(tmp_path)
    (tmp_path / KEY).write_text("short\n")
    with pytest.raises(InputError, match=rf"{KEY}: .*20 .* delete the file"):
        organiser_key(tmp_path)


def test_a_token_is_never_in_an_address_and_cookies_are_guarded(cup: Any, come: Any) -> None:
    visitor = come()
    answer = visitor.log_in(cup.tokens["alice"], "//evil.example/")
    assert answer.headers["location"] == "/"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert cup.tokens["alice"] not in str(answer.headers)
    csrf = visitor.get("/team").text.split('name="csrf" value="')[1].split('"')[0]
    assert visitor.http.post("/logout", data={"csrf": "0" * 43}).status_code == 403
    assert visitor.http.post("/logout", data={"csrf": csrf}).status_code == 303
    assert visitor.get("/team").status_code == 303


@pytest.mark.parametrize("name", ["", "organiser"])
def test_hostile_requests_change_nothing_and_are_answered(cup: Any, come: Any, name: str) -> None:
    visitor, before = come(name), cup.ledger.standings()
    odd = ["-1", "9" * 40, "0x1", "1.5", "%00", "..", "' OR 1=1", "\N{SNOWMAN}", "a" * 5000]
    paths = [f"/team/{one}/0/0" for one in odd] + [f"/team?start={one}" for one in odd]
    paths += [f"/organiser?start={one}" for one in odd]
    paths += [f"/static/{up}{file}" for up in ("../", "%2e%2e/", "..%2f", "/", "....//")
              for file in ("secret.json", KEY, "../secret.json", "competition.db")]  # fmt: skip
    paths += [f"/login?next={one}" for one in odd] + ["//", "/team/", "/%2e%2e/secret.json"]
    secret = (cup.folder / "secret.json").read_text()[12:40]
    for path in paths:
        answer = visitor.get(path)
        assert answer.status_code < 500, path
        assert secret not in answer.text
        assert "Traceback" not in answer.text
        for header, value in HEADERS.items():
            assert answer.headers[header] == value, path
    for path in ("/", "/team", "/organiser", "/reveal.json", "/v1/competition", "/login"):
        for body in (b"", b"\xff\xfe", b"csrf=1&csrf=2", b"{", b"a" * 300_000):
            assert 400 <= visitor.http.post(path, content=body).status_code < 500
    assert visitor.get("/", headers={"host": "evil.example"}).status_code == 421
    assert cup.ledger.standings() == before


def test_after_the_reveal_all_is_told_and_films_are_drawn(tmp_path: Path, come: Any) -> None:
    served: Any = Served(tmp_path / "cup", tiny(level=6, ticks=60))
    try:
        served.tokens = {"alice": played(served, "alice"), "bob": served.team("bob")}
        served.tokens["organiser"] = (served.folder / KEY).read_text().strip()
        served.ledger.revoke("bob")
        alice, bob = come("alice", served), come("bob", served)
        assert "The team was withdrawn" in bob.get("/team").text
        served.ledger.close()
        assert "at any time now" in alice.get("/team").text
        served.ledger.reveal()
        text = until_text(alice, "/", "level 6 gravity")
        assert "no novelty" in text
        assert "M2.1 false alarm" in until_text(alice, "/", "M2")
        assert f"compete check {served.url}" in text
        assert "Take part" not in text
        own = next(one for one in board(served.ledger).entries if one.team == "alice")
        assert number_text(own.score) in text, "a page and the terminal say a number alike"
        organiser = come("organiser", served).get("/organiser").text
        assert "withdrawn</span>" in organiser.split("bob")[1].split("</tr>")[0]
        told = alice.get("/reveal.json").json()
        team = alice.get("/team").text
        failed = [one for one in served.rows() if one.row.success is False]
        assert failed
        for one in failed:
            assert f"/team/1/{one.trial}/{one.episode}" in team
            assert str(told["draws"][0][one.trial]["episodes"][one.episode][0]) in team
        path = f"/team/1/{failed[0].trial}/{failed[0].episode}"
        film = until_text(alice, path, 'id="clip-0"')
        assert "data-do=" in film
        assert bob.get(path).status_code == 404
        assert alice.get("/team/1/9/9").status_code == 404
        # A session outlasts the server: it is in the ledger.
        later = CompetitionSite.of(served.serving.house)
        (cookie,) = [one for one in alice.http.cookies.jar if one.name == later.sessions.cookie]
        assert later.sessions.find(cookie.value).user.name == "alice"  # type: ignore[union-attr]
        later.close()
    finally:
        served.stop()
