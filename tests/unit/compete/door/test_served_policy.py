"""Policies that teams serve: called from outside the server, again and again, and never trusted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Thread
from typing import Any

import msgpack
import numpy as np
import pytest
from gymnasium import spaces
from websockets.sync.server import serve as serve_sockets

from robo_eval.agents.wire import MAX_CHUNK
from robo_eval.compete import served_policy
from robo_eval.compete.served_policy import Calls, OpenPiPolicy, pack_array, unpack_array
from robo_eval.compete.serving import listening
from robo_eval.core.errors import InputError
from tests.unit.compete.door.conftest import Served, tiny
from tests.unit.compete.door.test_door import attempt_of, until


class Policy:
    """A policy in openpi's framing that answers what it is told to."""

    def __init__(self, port: int = 0) -> None:
        self.answer: Any = np.ones((2, 1), np.float32)
        self.asked = 0
        self.opened = ExitStack()
        server = self.opened.enter_context(serve_sockets(self._handle, "127.0.0.1", port))
        self.opened.callback(server.shutdown)
        Thread(target=server.serve_forever, daemon=True).start()
        self.url = f"ws://127.0.0.1:{server.socket.getsockname()[1]}"

    def _handle(self, connection: Any) -> None:
        connection.send(msgpack.packb({}))
        for _ in connection:
            self.asked += 1
            whole = self.answer
            if not isinstance(whole, bytes):
                whole = msgpack.packb({"actions": whole}, default=pack_array)
            connection.send(whole)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_policy, "_PAUSE_S", 0.2)


@pytest.fixture
def policy() -> Iterator[Callable[..., Policy]]:
    with ExitStack() as opened:

        def make(port: int = 0) -> Policy:
            made = Policy(port)
            opened.enter_context(made.opened)
            return made

        yield make


def row_of(shape: list[int], data: bytes) -> dict[str, Any]:
    return {b"__ndarray__": True, b"dtype": "<f4", b"shape": shape, b"data": data}


@pytest.mark.parametrize("shape", [[2**62, 4], [2**32, 2**32]])
def test_a_shape_that_overflows_is_no_array(shape: list[int]) -> None:
    with pytest.raises(ValueError, match="no array"):
        unpack_array(row_of(shape, b""))


@pytest.mark.parametrize(
    "answer",
    [
        row_of([10**15, 0], b""),
        row_of([0, 3], b""),
        np.zeros((MAX_CHUNK + 1, 1), np.float32),
        np.zeros(3, np.float32),
    ],
    ids=["many rows of nothing", "no rows", "too many rows", "no rows and columns"],
)
def test_an_answer_that_is_no_chunk_is_refused(policy: Any, answer: Any) -> None:
    served = policy()
    served.answer = msgpack.packb({"actions": answer}, default=pack_array)
    called = OpenPiPolicy(served.url, spaces.Discrete(5))
    with pytest.raises(InputError, match=f"127.*1 to {MAX_CHUNK}"):
        called.act(np.zeros(3))
    called.close()


def test_an_answer_that_is_too_long_is_not_read(policy: Any) -> None:
    served = policy()
    served.answer = bytes(17 * 2**20)
    called = OpenPiPolicy(served.url, spaces.Discrete(5))
    with pytest.raises(Exception, match=r"1009|too big"):
        called.act(np.zeros(3))
    called.close()


def test_no_attempt_begins_before_a_policy_has_answered_and_then_it_plays_all(
    serve: Any, policy: Any
) -> None:
    served, said = serve(count=1, episodes=2), list[str]()
    with listening("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    url = f"openpi+ws://127.0.0.1:{port}"
    Calls({"called": url}).begin(served.serving, said.append)
    until(lambda: bool(said))
    assert "called again" in said[0]
    assert f"127.0.0.1:{port}" in said[0]
    assert served.ledger.attempts() == []
    here = policy(port)
    here.answer = np.full((1, 1), 9.0, np.float32)  # no action of this space
    until(lambda: any("no action" in line for line in said))
    assert served.ledger.attempts() == []
    here.answer = np.ones((2, 1), np.float32)
    until(lambda: "2 episodes of RoboEval/CartPole3D-v0 played" in said[-1])
    assert attempt_of(served, "called").ended_ns is not None
    assert len(served.rows()) == 2


def test_a_policy_waits_for_the_opening(
    tmp_path: Path, policy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, said = policy(), list[str]()
    served = Served(tmp_path / "early", f"{tiny(count=1)}\nopens: 2098-01-01T00:00:00Z\n")
    try:
        Calls({"early": f"openpi+{here.url}"}).begin(served.serving, said.append)
        until(lambda: bool(said))
        assert "opens at" in said[0]
        early_ns = served.ledger.competition.opens_ns - time.time_ns()
        monkeypatch.setattr(served.serving.house.ledger, "now", lambda: time.time_ns() + early_ns)
        until(lambda: "1 episodes" in said[-1] or "2 episodes" in said[-1])
    finally:
        served.stop()


def test_a_process_that_dies_is_begun_again(
    serve: Any, policy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = list[Any]()

    class Watched(served_policy.Confined):
        def __init__(self, *given: Any, **how: Any) -> None:
            super().__init__(*given, **how)
            begun.append(self)

    monkeypatch.setattr(served_policy, "Confined", Watched)
    served, said = serve(count=1), list[str]()
    Calls({"dies": "ws://127.0.0.1:9"}).begin(served.serving, said.append)
    until(lambda: bool(said))
    begun[0]._process.kill()
    until(lambda: len(begun) == 2)
    assert "begun again" in said[-1]
