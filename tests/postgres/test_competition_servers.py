"""Two servers of one competition as processes of their own, of which one is killed."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from robo_eval.compete.client import play
from robo_eval.compete.ledger import Ledger
from robo_eval.compete.link import SaidNoError
from robo_eval.compete.serving import opened
from robo_eval.core.errors import InputError
from tests.e2e.test_compete import FILE, Agent, Server, play_into_the_second

IMPATIENT = """
from robo_eval.cli.app import main
from robo_eval.compete import house, ledger
ledger.ALIVE_NS, house._BEAT_S = 3 * 10**9, 0.3
main()
"""
"""Servers who take each other for dead sooner than they do elsewhere."""


class Proxy:
    """One address in front of several servers, as a proxy of an organiser would be."""

    def __init__(self, url: str) -> None:
        self.to = url
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                host, _, port = self.to.rstrip("/").rpartition("/")[2].partition(":")
                try:
                    far = socket.create_connection((host, int(port)))
                except OSError:
                    near.close()
                    continue
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65_536):
                other.sendall(data)
        with suppress(OSError):
            other.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def servers(tmp_path: Path, url: str) -> Iterator[list[Server]]:
    (tmp_path / "cup.yaml").write_text(FILE)
    with opened(tmp_path / "cup.yaml", tmp_path / "cup", url) as ledger:
        ledger.close_connection()
    with ThreadPoolExecutor() as both:
        starts = [
            both.submit(Server, tmp_path, *words, program=("-c", IMPATIENT), name=name)
            for name, words in (("first", ["--database", url]), ("second", []))
        ]
        started = [one.result() for one in starts]
    yield started
    for one in started:
        if one.process.poll() is None:
            one.end(signal.SIGKILL)
        one.log.close()


def made(url: str, token: str) -> Any:
    return gymnasium.make("RoboEval/Remote-v0", url=url, token=token)


def test_trials_of_a_killed_server_go_on_at_the_other(servers: Any, tmp_path: Path) -> None:
    first, second = servers
    with Ledger.open(tmp_path / "cup") as ledger:
        tokens = {name: ledger.add_team(name) for name in ("alice", "bob")}
    proxy = Proxy(first.url)
    alice, bob = made(proxy.url, tokens["alice"]), made(second.url, tokens["bob"])
    for env in (alice, bob):
        play_into_the_second(env)
    with pytest.raises(SaidNoError, match="another server"):  # while that one lives
        made(second.url, tokens["alice"])
    first.end(signal.SIGKILL)
    proxy.to = second.url
    # The client waits until the other server takes over; only what was under way begins anew.
    assert alice.step(0)[4] == {"given_back": True}
    _, info = alice.reset()
    assert (info["episode_index"], alice.unwrapped.left) == (1, 2)
    assert "given_back" not in bob.step(0)[4]
    assert [play(env, Agent()) for env in (alice, bob)] == [2, 2]
    alice.close()
    bob.close()
    proxy.close()
    assert second.end() == 0
    with Ledger.open(tmp_path / "cup") as ledger:
        for number in (1, 2):
            links = list(ledger.links(number))
            assert [(link.kind, link.episode) for link in links] == [
                (kind, episode) for episode in range(3) for kind in ("episode", "declare")
            ]
            assert {link.run for link in links} == {1}
            assert not any(link.problem for link in links)


def test_a_start_that_fails_is_gone_on_with(contest: Any, tmp_path: Path, url: str) -> None:
    file = tmp_path / "cup.yaml"
    file.write_text(contest.text)
    with pytest.raises(InputError, match="the port"), opened(file, tmp_path / "c", url):
        raise InputError("the port is taken")
    with opened(file, tmp_path / "c", url) as ledger:
        assert ledger.add_team("first")
        ledger.close_connection()
    with (
        pytest.raises(InputError, match="--database"),
        opened(file, tmp_path / "c", "postgresql://h/other"),
    ):
        pass
