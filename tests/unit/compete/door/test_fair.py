"""One team, or one address, slows the others down no more than its share."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Frame, Opcode

from robo_eval.agents.wire import decode
from robo_eval.compete import budget, house, ledger, link, worlds
from robo_eval.compete import room as rooms
from robo_eval.compete.budget import Budget
from robo_eval.compete.messages import Hello
from robo_eval.compete.worlds import Job, JobResult, Stand, Start, TrialSetting, _Queue
from robo_eval.web import heads, security
from robo_eval.web import serve as web_serve
from tests.unit.compete.door import test_door

raw = test_door.raw


def test_a_budget_is_of_each_and_has_a_burst(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(budget.time, "monotonic", lambda: now[0])
    held = Budget(2.0, 4.0, most_s=1.0)
    assert [held.take("a") for _ in range(7)] == [0.0] * 5 + [0.5, 1.0]
    assert held.take("b") == 0.0
    assert held.take("a") == held.take("a") == 1.5  # refused, and nothing is owed for that
    now[0] += 0.5
    assert held.take("a") == 1.0
    now[0] += 1e6
    assert [held.take("a") for _ in range(6)] == [0.0] * 5 + [0.5]
    assert Budget(None, 0.0).take("a", 1e9) == 0.0


def test_who_would_wait_too_long_is_refused() -> None:
    async def asked() -> list[bool]:
        held = Budget(10.0, 1.0, most_s=0.0)
        return [await held.turn("a") for _ in range(4)]

    with ThreadPoolExecutor(1) as pool:  # a browser of other tests has the loop of this thread
        assert pool.submit(asyncio.run, asked()).result() == [True, True, False, False]


def test_a_budget_forgets_who_has_all_of_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(budget.time, "monotonic", lambda: now[0])
    held = Budget(1.0, 1.0)
    for number in range(20_000):
        now[0] += 1.0
        held.take(str(number))
    assert len(held._free_s) <= budget._MOST_KNOWN + 1


def test_steps_a_second_are_of_the_team_over_all_its_connections(serve: Any, raw: Any) -> None:
    served = serve(count=1, episodes=9, ticks=8, limits="steps_per_s: 40, connections: 4")
    token, steps, begin_s = served.team(), 0, time.monotonic()
    for rehearsal in (False, True) * 4:
        client = raw(served.url, token)
        client.hello(rehearsal=rehearsal)
        client.ask("reset", trials=[0])
        steps += 1
        state: dict[str, Any] = {"terminated": [False], "truncated": [False]}
        while not (state["terminated"][0] or state["truncated"][0]):
            state = client.ask("step", trials=[0], actions=[0])
            steps += 1
        client.close()
    assert steps > 41
    assert time.monotonic() - begin_s >= (steps - 1 - 40) / 40


def test_requests_of_an_address_wait_and_are_refused(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(house, "ASKED", (0.001, 2.0, 0.0))
    served = serve()
    for path in ("v1/competition", "", "v1/me"):
        request = urllib.request.Request(served.url + path)
        if path == "v1/me":
            request.add_header("Authorization", f"Bearer {served.team()}")
        with urllib.request.urlopen(request) as answer:
            assert answer.status == 200
    for path in ("v1/competition", "", "v1/me"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(served.url + path)
        assert refused.value.code == 429
        assert "this address" in refused.value.read().decode()
        assert refused.value.headers.get_content_type() == "text/plain"


FORM = (
    b"POST /login HTTP/1.1\r\nhost: localhost\r\norigin: http://localhost\r\n"
    b"content-type: application/x-www-form-urlencoded\r\n"
)


def drained(line: socket.socket) -> bytes:
    """All that comes until the other side hangs up."""
    heard = b""
    while part := line.recv(2**16):
        heard += part
    return heard


def dialled(served: Any) -> socket.socket:
    url = urllib.parse.urlsplit(served.url)
    return socket.create_connection((url.hostname, url.port), timeout=60.0)


@pytest.mark.parametrize(
    "before", [b"", b"GET /v1/competition HTTP/1.1\r\nhost: localhost\r\n\r\n"]
)
@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nhost: "])
def test_who_never_says_what_he_wants_is_dropped(
    serve: Any, raw: Any, monkeypatch: pytest.MonkeyPatch, before: bytes, said: bytes
) -> None:
    monkeypatch.setattr(heads, "HEAD_S", 0.5)
    served = serve()
    calm = raw(served.url, served.team())
    calm.hello()
    with dialled(served) as line:
        line.sendall(before + said)
        heard = drained(line)
    assert heard.startswith(b"HTTP/1.1 200") if before else heard == b""
    assert calm.ask("reset", trials=[0])["type"] == "state"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (b"/login", b"content-length: 50\r\n\r\n"),
        (b"/team", b"content-length: 50\r\n\r\ntoken="),
        (b"/v1/me", b"transfer-encoding: chunked\r\n\r\n6\r\ntoken=\r\n"),
    ],
)
def test_whose_body_never_comes_is_dropped(
    shared: Any, raw: Any, monkeypatch: pytest.MonkeyPatch, path: bytes, said: bytes
) -> None:
    monkeypatch.setattr(security, "BODY_S", 0.5)
    calm = raw(shared.url, shared.team())
    calm.hello()
    with dialled(shared) as line:
        line.sendall(FORM.replace(b"/login", path) + said)
        heard = drained(line)  # until it is hung up
    assert heard.startswith(b"HTTP/1.1 413")
    assert b"0.5 s" in heard
    assert calm.ask("reset", trials=[0])["type"] == "state"


def test_a_server_that_stops_says_nothing_of_requests_that_it_has_not_answered(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(house, "ASKED", (0.001, 0.5))
    monkeypatch.setattr(web_serve, "_STOP_S", 1)
    said = list[logging.LogRecord]()
    handler = logging.Handler()
    monkeypatch.setattr(handler, "emit", said.append)
    served = serve()
    logging.getLogger("uvicorn.error").addHandler(handler)
    try:
        with dialled(served) as half, dialled(served) as first, dialled(served) as waiting:
            half.sendall(FORM + b"content-length: 50\r\n\r\ntoken=")
            for line in (first, waiting):
                line.sendall(b"GET /v1/competition HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert first.recv(9) == b"HTTP/1.1 "
            test_door.until(lambda: len(served.serving._server.server_state.tasks) == 2)
            served.serving.stop()
    finally:
        logging.getLogger("uvicorn.error").removeHandler(handler)
    assert [one for one in said if one.exc_info] == []


def test_the_description_says_that_who_asks_too_often_is_refused(shared: Any) -> None:
    with urllib.request.urlopen(f"{shared.url}v1/openapi.json") as answer:
        paths = json.load(answer)["paths"]
    assert {"/v1/competition", "/v1/me"} <= paths.keys()
    for path in paths.values():
        assert path["get"]["responses"]["429"]["content"].keys() == {"text/plain"}


def test_connections_are_counted_by_team_and_strangers_by_address(
    serve: Any, raw: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(house, "CONNECTED", (0.001, 2.0, 0.0))
    served = serve()
    one, other = served.team(), served.team()
    for token, status in (("0" * 32, 401), (one, None)):
        for _ in range(3):
            if status is None:
                raw(served.url, token).close()
                continue
            with pytest.raises(InvalidStatus) as refused:
                raw(served.url, token)
            assert refused.value.response.status_code == status
    with pytest.raises(InvalidStatus) as refused:
        raw(served.url, one)
    assert refused.value.response.status_code == 429
    assert raw(served.url, other).hello()["type"] == "hello"


def test_rehearsals_are_counted_by_team_and_by_what_their_worlds_cost(
    serve: Any, raw: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(house, "REHEARSED", (0.001, 1.0, 0.0))
    served = serve()
    token = served.team()
    assert raw(served.url, token).hello(rehearsal=True)["type"] == "hello"
    served.serving.house.slowest_s = 10.0
    assert raw(served.url, token).hello(rehearsal=True)["type"] == "hello"
    assert raw(served.url, token).hello(rehearsal=True)["code"] == "busy"
    assert raw(served.url, token).hello()["type"] == "hello"


@pytest.mark.parametrize("opcode", [Opcode.PING, Opcode.PONG, Opcode.CONT])
def test_who_floods_with_frames_that_are_no_messages_is_dropped(
    shared: Any, raw: Any, opcode: Opcode
) -> None:
    client, calm = raw(shared.url, shared.team()), raw(shared.url, shared.team())
    client.hello()
    calm.hello()
    calm.socket.ping().wait(10)
    first = Opcode.TEXT if opcode is Opcode.CONT else Opcode.PONG
    frames = [Frame(first, b"", fin=first is Opcode.PONG)] + [
        Frame(opcode, b"x", fin=opcode is not Opcode.CONT)
    ] * 1000
    whole = b"".join(one.serialize(mask=True) for one in frames)
    with contextlib.suppress(OSError):
        client.socket.socket.sendall(whole)
    with pytest.raises(ConnectionClosed):
        client.hear()
    assert calm.ask("reset", trials=[0])["type"] == "state"


def test_worlds_are_made_in_parts_between_which_others_have_their_turn(contest: Any) -> None:
    (task,) = contest.parse().tasks[:1]
    stand, setting = Stand(), TrialSetting(task, ({}, {}, {}))
    parts = list(stand.done(Job(1, 1, "open", [0], [setting])))
    assert isinstance(parts[-1], JobResult)
    assert not parts[-1].broken
    assert parts[:-1] == [worlds.OPENING_SHARE] * 6


@pytest.mark.parametrize(
    ("asks_s", "made_s", "wanted_s"),
    [(0.0, 1.0, 64.0), (0.0, 63.0, 64.0), (0.0, 65.0, 128.0), (1.0, 1.0, 64.8), (1e9, 1.0, 320.0)],
)
def test_a_reset_waits_for_worlds_longer_by_what_others_ask_for_alone(
    monkeypatch: pytest.MonkeyPatch, asks_s: float, made_s: float, wanted_s: float
) -> None:
    """Of 64 trials that may take a second each, beside a team that asks for something so long."""
    now_s, hand, house_of_it = 0.0, MagicMock(), MagicMock(opening_s=float)
    hand.asked.beside = lambda _room: now_s <= asks_s

    async def passed() -> None:
        hello = Hello(type="hello", id=0, protocol=1, trials=64)
        mine = rooms.Room(house_of_it, MagicMock(), [], hello)

        async def sleep(seconds: float) -> None:
            nonlocal now_s
            now_s += seconds
            if mine.alone.locked() and now_s > made_s:
                mine.alone.release()

        # Servers of other tests sleep as well, in threads of their own.
        monkeypatch.setattr(rooms, "asyncio", MagicMock(sleep=sleep))
        await mine.alone.acquire()
        await mine._pace(64, hand)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, passed()).result()
    assert now_s == pytest.approx(wanted_s, abs=2 * rooms.PACE_S)


def test_a_team_that_only_sits_there_has_asked_for_nothing_a_moment_ago(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, asked = Clock(monkeypatch), worlds.AskTimes()
    asked[1] = clock.now_s
    assert (asked.beside(1), asked.beside(2)) == (False, True)
    asked[2] = clock.now_s
    assert asked.beside(1)
    clock.now_s += 1.0
    asked[1] = clock.now_s
    assert not asked.beside(1)


def test_a_client_is_more_patient_the_more_worlds_it_has_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(link.Link, "_connect", lambda _self: None)
    one, many = (
        link.Link("http://localhost:1", "t" * 32, {"trials": trials})._timeout_s
        for trials in (1, 64)
    )
    # Worlds of CartPole3D take 0.2 s to be made, and 0.4 s on a machine that is busy.
    assert one >= 60.0
    assert many > 5 * 2 * 64 * 0.4


@pytest.mark.parametrize("is_text", [True, False])
def test_many_trials_at_once_are_played_and_written_in_parts(
    contest: Any, monkeypatch: pytest.MonkeyPatch, is_text: bool
) -> None:
    monkeypatch.setattr(worlds, "_PART_S", -1.0)
    (task,) = contest.parse().tasks[:1]
    stand, places, frames = Stand(), range(4), list[Any]()
    list(stand.done(Job(1, 1, "open", places, [TrialSetting(task, ({},))] * 4)))
    for kind, given in (("reset", Start(5, 0, {})), ("step", 0)):
        job = Job(2, 1, kind, places, [given] * 4, {"type": "state", "id": 2}, is_text)
        *parts, answer = stand.done(job)
        assert len(parts) == (3 + 3 if is_text else 3)
        assert isinstance(answer, JobResult)
        frames.append(decode(answer.frame))
    for frame in frames:
        seen = np.asarray(frame["observation" if is_text else "value"])
        assert len(seen) == 4
        assert (seen == seen[0]).all()
        assert len(frame["reward"]) == 4


class Clock:
    """Time as a process of worlds sees it, which goes on when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 100.0
        monkeypatch.setattr(worlds.time, "perf_counter", lambda: self.now_s)


Parts = list[tuple[float, float | JobResult]]
"""For each part of a job how long it takes, seconds, and what it comes to."""
STEP: Parts = [(0.0001, JobResult(1))]
THINKS_S = 0.0005


def played(clock: Clock, other: Parts, *, steps: int = 300, thinks_s: float = 0.0) -> list[float]:
    """When each step of a team is answered, seconds, beside another that asks for one thing on end.

    Args:
        clock: Of the process.
        other: The other's jobs, which begins first.
        steps: How many.
        thinks_s: How long the other takes to ask again.
    """
    queue, told_s = _Queue(), list[float]()
    jobs = {1: other, 2: STEP}
    due_s = {1: clock.now_s, 2: clock.now_s + 0.05}
    begun_s = clock.now_s
    while len(told_s) < steps:
        for room, at_s in list(due_s.items()):
            if at_s <= clock.now_s:
                queue.add(room, iter(jobs[room]))  # type: ignore[arg-type] - with how long it takes
                del due_s[room]
        found = queue.next() if queue else 1.0
        if isinstance(found, float):  # it waits until that, or until somebody asks
            clock.now_s = min([clock.now_s + found, *due_s.values()]) + 1e-9
            continue
        room, job = found
        took_s, part = next(job)  # type: ignore[misc] - as above
        clock.now_s += took_s
        queue.count(room, took_s, part)
        if isinstance(part, JobResult):
            due_s[room] = clock.now_s + (THINKS_S if room == 2 else thinks_s)
            told_s += [clock.now_s - begun_s] if room == 2 else []
    return told_s


@pytest.mark.parametrize(
    ("other", "most"),
    [
        (
            [(0.022, worlds.OPENING_SHARE)] * 4 + [(0.0001, JobResult(1))],
            1 + 1 / worlds.OPENING_SHARE,
        ),
        ([(0.00015, worlds.BATCH_SHARE)] * 64 + [(0.00015, JobResult(1))], 1.1),
    ],
    ids=["worlds", "steps"],
)
def test_who_plays_one_trial_hardly_feels_who_asks_for_much(
    monkeypatch: pytest.MonkeyPatch, other: Parts, most: float
) -> None:
    clock = Clock(monkeypatch)
    honest = played(clock, STEP, thinks_s=THINKS_S)
    beside = played(clock, other)
    assert (beside[-1] - beside[0]) / (honest[-1] - honest[0]) < most
    longest = max(took_s for took_s, _ in other)
    apart = np.diff(beside)
    assert max(apart) < 2 * longest + THINKS_S + 0.0002  # never two parts of a world in a row
    slow = sum(apart > THINKS_S + 0.0002 + longest / 2)
    assert slow < len(apart) / 2


def test_who_rests_keeps_nobody_waiting_and_goes_on_where_it_is_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    queue, long, short = _Queue(), iter(()), iter(())
    queue.add(1, long)
    queue.count(1, 1.0, 2.0)
    assert queue.next() == (1, long)  # nobody else is there
    queue.add(2, short)
    queue.count(2, 5.0, 0.0)
    assert queue.next() == (2, short)  # though it has had more
    queue.count(2, 0.0, JobResult(2))
    assert queue.next() == pytest.approx(2.0)
    clock.now_s += 1.0  # nobody has asked for something any more
    assert queue.next() == (1, long)


def test_who_comes_back_changes_only_the_trials_that_have_begun(
    serve: Any, raw: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed, change = list[Any](), ledger._change
    monkeypatch.setattr(
        ledger, "_change", lambda db, row, **to: (changed.append(to), change(db, row, **to))
    )
    served = serve(count=40)
    token = served.team()
    client = raw(served.url, token)
    client.hello()
    assert changed == []
    client.ask("reset", trials=[0])
    changed.clear()
    raw(served.url, token).hello()
    assert len(changed) <= 2  # who left, and who came back


@pytest.mark.parametrize("end", [{"type": "http.disconnect"}, None])
def test_half_a_body_is_never_taken_for_a_whole_one(
    monkeypatch: pytest.MonkeyPatch, end: dict[str, Any] | None
) -> None:
    monkeypatch.setattr(security, "BODY_S", 0.01)
    parts = [{"type": "http.request", "body": b"token=", "more_body": True}]

    async def receive() -> Any:
        if parts:
            return parts.pop()
        return end or await asyncio.Event().wait()

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(asyncio.run, security._whole(receive)).result() is None
