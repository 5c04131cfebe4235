"""One team, or one address, slows the others down no more than its share."""

from __future__ import annotations

import asyncio
import contextlib
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Frame, Opcode

from robo_eval.compete import budget, house, ledger, worlds
from robo_eval.compete.budget import Budget
from robo_eval.compete.worlds import Job, Setting, Stand, _Queue
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
    stand, setting = Stand(), Setting(task, ({}, {}, {}))
    parts = list(stand.done(Job(1, 1, "open", [0], [setting])))
    assert parts[-1] is not None
    assert not parts[-1].broken
    assert parts[:-1] == [worlds._REST] * 6


def test_others_who_play_are_known_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(worlds.time, "monotonic", lambda: now[0])
    queue = _Queue()
    queue.add(1, iter(()))
    assert not queue.is_shared(1)
    queue.add(2, iter(()))
    assert queue.is_shared(1)
    now[0] += 2.0
    assert not queue.is_shared(1)


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
