"""Simulator processes that connect to the server, and whoever else does."""

from __future__ import annotations

import pickle
import socket
import threading
from collections.abc import Callable
from typing import Any

import gymnasium
import pytest

from robo_eval.compete import arena
from robo_eval.compete.client import play


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("what a stranger sent was unpickled",)


class Still:
    def act(self, observation: Any) -> int:
        return 0


def test_far_workers_are_known_by_a_key_and_strangers_are_not_read(
    serve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []

    def stranger(host: str, port: int, said: bytes) -> bool:
        """Whether the server hangs up on who says this."""
        with socket.create_connection((host, port)) as line:
            line.settimeout(60.0)
            try:
                line.sendall(said)
                return line.recv(1) == b""
            except ConnectionResetError:
                return True

    def placed(address: str, work: Any, *given: Any) -> Callable[[], None]:
        told.extend(given)
        threading.Thread(target=work, args=given, daemon=True).start()
        return lambda: None

    monkeypatch.setattr(arena, "placed", placed)
    monkeypatch.setattr(arena, "own_address", lambda _address: "127.0.0.1")
    monkeypatch.setattr(arena, "cluster_cores", lambda _address: 1)
    served = serve(ray="somewhere:1", workers=None)
    host, port, key = told
    bomb = pickle.dumps(Bomb())
    for known in (bytes(32), key):  # a key is good once
        assert stranger(host, port, known + len(bomb).to_bytes(4, "little") + bomb)
    env = gymnasium.make("RoboEval/Remote-v0", url=served.url, token=served.team())
    assert play(env, Still()) == 4
    env.close()
