"""The room by itself: a second site of a few lines, made of it and of nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from argon2 import PasswordHasher
from fastapi import APIRouter, Request, WebSocket
from fastapi.testclient import TestClient
from sqlalchemy import StaticPool, create_engine
from starlette.testclient import WebSocketDenialResponse
from starlette.websockets import WebSocketDisconnect

from robo_eval.core.errors import InputError
from robo_eval.web import accounts as room
from robo_eval.web import sessions
from robo_eval.web.accounts import User
from robo_eval.web.app import make_app
from robo_eval.web.deps import Person, Site, ThisForm, Visitor, session_of_program
from robo_eval.web.security import HEADERS
from robo_eval.web.sessions import Sessions
from robo_eval.web.strict import StrictRoute
from robo_eval.web.templating import environment, field_of, render

JSON = {"content-type": "application/json"}
PASSWORD = "four words in a row"
HOME = """
{% extends "base.html.j2" %}
{% block title %}Table{% endblock %}
{% block main %}<h1>{{ user.name if user else "everybody" }}</h1>{% endblock %}
"""


class Role(StrEnum):
    ORGANISER = "organiser"


class Accounts(room.Accounts[User]):
    kind = User
    roles = Role
    verbs = "second user"


def second_site(templates: str) -> Any:
    """The app of a site with a public page, one of one's own, a form, a call and a WebSocket."""
    pages, api = APIRouter(), APIRouter(route_class=StrictRoute)

    @pages.get("/")
    def home(request: Request, found: Visitor) -> Any:
        return render(request, "home.html.j2", found)

    @pages.get("/own")
    def own(request: Request, session: Person) -> Any:
        return render(request, "home.html.j2", session)

    @pages.post("/close")
    def close(form: ThisForm) -> Any:
        raise InputError(f"name: {form.user.name} may close nothing")

    @api.post("/echo")
    def echo(request: Request, sent: dict[str, int]) -> Any:
        return {"by": session_of_program(request, "give a token").user.name, "sent": sent}

    @api.websocket("/play")
    async def play(socket: WebSocket) -> None:
        session_of_program(socket, "give a token")
        await socket.accept()
        async for text in socket.iter_text():
            await socket.send_text(text[::-1])

    options = {"poolclass": StaticPool, "connect_args": {"check_same_thread": False}}
    engine = create_engine("sqlite://", **options)
    room.TABLES.create_all(engine)
    database = SimpleNamespace(reading=engine.connect, writing=engine.begin)
    accounts = Accounts(database, floor_s=0.0)
    site = Site(
        name="second site",
        log_in=accounts.log_in,
        sessions=Sessions(database, accounts.find, cookie="second"),
        templates=environment(templates),
        api="/v1",
        is_public=True,
    )
    app = make_app(site, [pages], api, names=["testserver"], most_message=100)
    app.state.accounts = accounts
    return app


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    quick = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr(room, "_hasher", lambda: quick)
    room._no_hash.cache_clear()
    (tmp_path / "second_pages/templates").mkdir(parents=True)
    (tmp_path / "second_pages/__init__.py").touch()
    (tmp_path / "second_pages/templates/home.html.j2").write_text(HOME)
    monkeypatch.syspath_prepend(tmp_path)
    app = second_site("second_pages")
    app.state.accounts.add("R. Example", PASSWORD, ["organiser"], by="setup")
    with TestClient(app, raise_server_exceptions=False, follow_redirects=False) as made:
        yield made
    room._no_hash.cache_clear()


def token_of(text: str) -> str:
    found = re.search(r'name="csrf" value="([^"]+)"', text)
    assert found is not None
    return found[1]


def test_an_account_has_so_many_sessions_and_the_oldest_ends(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "_MOST_OF_ONE", 3)
    state = client.app.state  # type: ignore[attr-defined]
    user = state.accounts.find("R. Example")
    tokens = [state.site.sessions.begin(user) for _ in range(5)]
    found = [state.site.sessions.find(token) is not None for token in tokens]
    assert found == [False, False, True, True, True]


@pytest.fixture
def bearer(client: TestClient) -> dict[str, str]:
    """What a program sends."""
    state = client.app.state  # type: ignore[attr-defined]
    token = state.site.sessions.begin(state.accounts.find("R. Example"), for_program=True)
    return {"authorization": f"Bearer {token}"}


def test_one_logs_in_sends_a_form_and_logs_out(client: TestClient) -> None:
    public = client.get("/")
    assert "<h1>everybody</h1>" in public.text
    assert '<a href="/login">Log in</a>' in public.text
    assert "· Second site</title>" in public.text
    asked = client.get("/own?a=b")
    assert (asked.status_code, asked.headers["location"]) == (303, "/login?next=/own%3Fa%3Db")
    fields = {"name": "r. example", "password": "wrong", "next": "/own"}
    fields["csrf"] = token_of(client.get("/login").text)
    refused = client.post("/login", data=fields)
    assert refused.status_code == 401
    assert "Name or password is wrong" in refused.text
    done = client.post("/login", data=fields | {"password": PASSWORD})
    assert (done.status_code, done.headers["location"]) == (303, "/own")
    assert set(done.cookies) == {"second"}
    page = client.get("/own").text
    assert "<h1>R. Example</h1>" in page
    assert client.post("/close", data={"csrf": "other"}).status_code == 403
    problem = client.post("/close", data={"csrf": token_of(page)})
    assert problem.status_code == 422
    assert "Name: R. Example may close nothing." in problem.text
    assert client.post("/logout", data={"csrf": token_of(page)}).status_code == 303
    assert client.get("/own").status_code == 303


@pytest.mark.parametrize(
    ("path", "status"), [("/", 200), ("/nowhere", 404), ("/static/base.css", 200), ("/v1/x", 404)]
)
def test_every_answer_carries_the_headers_and_is_at_its_own_name(
    client: TestClient, path: str, status: int
) -> None:
    answer = client.get(path)
    assert answer.status_code == status
    assert HEADERS.items() <= dict(answer.headers).items()
    foreign = client.get(path, headers={"host": "elsewhere.example"})
    assert foreign.status_code == 421
    assert HEADERS.items() <= dict(foreign.headers).items()


def test_an_error_is_a_page_for_people_and_a_line_for_programs(
    client: TestClient, bearer: dict[str, str]
) -> None:
    page = client.get("/nowhere")
    assert "There is nothing here" in page.text
    assert '<a href="/">' in page.text
    for sent, status, said in (
        (b'{"a": 1, "a": 2}', 400, "the body gives 'a' twice"),
        (b'{"a": "x"}', 422, "a: "),
        (b"x" * 300_000, 413, "longer than"),
    ):
        answer = client.post("/v1/echo", content=sent, headers=bearer | JSON)
        assert (answer.status_code, said in answer.text) == (status, True), answer.text
    refused = client.post("/v1/echo", json={"a": 1})
    assert (refused.status_code, refused.json()) == (401, {"detail": "give a token"})
    assert refused.headers["www-authenticate"].startswith("Bearer")
    told = client.post("/v1/echo", json={"a": 1}, headers=bearer).json()
    assert told == {"by": "R. Example", "sent": {"a": 1}}


# WebSockets --------------------------------------------------------------------------------------


@pytest.mark.parametrize("origin", [None, "http://testserver", "https://TestServer"])
def test_a_websocket_of_a_program_or_of_our_own_page_is_open(
    client: TestClient, bearer: dict[str, str], origin: str | None
) -> None:
    given = bearer | ({} if origin is None else {"origin": origin})
    with client.websocket_connect("/v1/play", headers=given) as socket:
        socket.send_text("abc")
        assert socket.receive_text() == "cba"


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"origin": "http://elsewhere.example"}, 403),
        ({"origin": "http://testserver:8080"}, 403),
        ({"origin": "http://testserver.elsewhere.example"}, 403),
        ({"origin": "http://testserver@elsewhere.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": ""}, 403),
        ({"origin": "http://[x"}, 403),
        ({"host": "elsewhere.example"}, 421),
        ({"host": "elsewhere.example", "origin": "http://elsewhere.example"}, 421),
    ],
)
def test_a_websocket_of_another_site_is_refused_before_it_opens(
    client: TestClient, bearer: dict[str, str], given: dict[str, str], status: int
) -> None:
    with (
        pytest.raises(WebSocketDenialResponse) as refusal,
        client.websocket_connect("/v1/play", headers=bearer | given),
    ):
        pass
    assert refusal.value.status_code == status
    assert HEADERS.items() <= dict(refusal.value.headers).items()


@pytest.mark.parametrize("sent", ["x" * 101, "ü" * 51, b"x" * 101])
def test_a_message_that_is_too_long_ends_a_websocket(
    client: TestClient, bearer: dict[str, str], sent: str | bytes
) -> None:
    with client.websocket_connect("/v1/play", headers=bearer) as socket:
        socket.send_text("x" * 100)
        assert socket.receive_text() == "x" * 100
        socket.send_bytes(sent) if isinstance(sent, bytes) else socket.send_text(sent)
        with pytest.raises(WebSocketDisconnect) as end:
            socket.receive_text()
    assert end.value.code == 1009


def test_a_problem_names_its_field() -> None:
    assert [field_of(text) for text in ("name: is empty", "it is: so", "no")] == ["name", "", ""]
