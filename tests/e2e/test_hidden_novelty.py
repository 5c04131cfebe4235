"""Nothing that is sent to a policy elsewhere tells what novelty it meets."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from robo_eval.agents.wire import decode
from robo_eval.core.kinds import Side
from robo_eval.core.plan import parse_plan
from robo_eval.core.schedule import schedule
from robo_eval.core.task import task_of
from robo_eval_sim.play import Stage

PLANS = {
    "RoboEval/PickPlace-v0": (
        "pick-place",
        "axes: {friction: [0.0937], payload: [7.31], delay: [0.213]}, pairs: [[friction, payload]]",
    ),
    "RoboEval/Drawer-v0": ("drawer", "axes: {payload: [7.31], fixture_shift: [0.0193]}"),
    "RoboEval/CartPole3D-v0": ("balancer", "kwargs: {balls: 2}, axes: {cart_mass: [7.31]}"),
    "levels of RoboEval/PickPlace-v0": ("pick-place", "levels: [0, 5, 12], difficulties: [hard]"),
    "levels of RoboEval/CartPole3D-v0": ("balancer", "levels: [0, 1, 9, 14], difficulties: [hard]"),
}
NAME = "secret-plan-of-the-lab"


class Tap:
    """A door in front of a server that keeps every byte that goes to it."""

    def __init__(self, port: int) -> None:
        self._behind = port
        self._listens = socket.create_server(("127.0.0.1", 0))
        self.port = self._listens.getsockname()[1]
        self.sent: list[bytearray] = []
        self._threads = [threading.Thread(target=self._open, daemon=True)]
        self._threads[0].start()

    def _open(self) -> None:
        while True:
            try:
                near, _ = self._listens.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._behind))
            kept = bytearray()
            self.sent.append(kept)
            for one, other, into in ((near, far, kept), (far, near, None)):
                thread = threading.Thread(target=self._pass, args=(one, other, into), daemon=True)
                self._threads.append(thread)
                thread.start()

    @staticmethod
    def _pass(one: socket.socket, other: socket.socket, into: bytearray | None) -> None:
        try:
            while data := one.recv(65536):
                if into is not None:
                    into.extend(data)
                other.sendall(data)
        except OSError:
            pass
        finally:
            for end in (one, other):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listens.shutdown(socket.SHUT_RDWR)
        self._listens.close()
        for thread in self._threads:
            thread.join(timeout=10)


def messages_of(sent: bytes) -> tuple[bytes, list[str | bytes]]:
    """What opens a WebSocket and what only keeps it, and the unmasked messages (RFC 6455)."""
    head, _, rest = sent.partition(b"\r\n\r\n")
    found: list[str | bytes] = []
    parts: list[bytes] = []
    kind = 0
    while rest:
        first, second = rest[0], rest[1]
        size, at = second & 127, 2
        if size > 125:
            form = ">H" if size == 126 else ">Q"
            (size,) = struct.unpack_from(form, rest, at)
            at += struct.calcsize(form)
        assert second & 128, "what a client sends is masked"
        mask, at = np.frombuffer(rest[at : at + 4], np.uint8), at + 4
        data = np.frombuffer(rest[at : at + size], np.uint8)
        plain = (data ^ np.resize(mask, size)).tobytes()
        if first & 8:  # a ping or pong, which may come between parts of a message, or the end
            head += plain
        else:
            kind = first & 15 or kind
            parts.append(plain)
            if first & 128:
                whole = b"".join(parts)
                found.append(whole.decode() if kind == 1 else whole)
                parts = []
        rest = rest[at + size :]
    return head, found


@pytest.fixture
def tapped(request: pytest.FixtureRequest) -> Iterator[Tap]:
    agent, _ = PLANS[request.param]
    command = [sys.executable, "-m", "robo_eval", "serve-policy", agent, "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        url = re.search(r"ws://\S+:(\d+)", server.stdout.readline())
        assert url
        tap = Tap(int(url[1]))
        yield tap
        tap.close()
        server.terminate()


@pytest.mark.parametrize(("tapped", "what"), [(one, one) for one in PLANS], indirect=["tapped"])
def test_no_byte_tells_of_a_novelty(tapped: Tap, what: str, tmp_path: Path) -> None:
    env = what.removeprefix("levels of ")
    text = (
        f"name: {NAME}\n"
        f"tasks: [{{env: {env}, family: family-of-the-lab, {PLANS[what][1]}}}]\n"
        "policies:\n"
        "  - name: policy-of-the-lab\n"
        "    factory: robo_eval.agents.remote:RemotePolicy\n"
        f'    kwargs: {{url: "ws://127.0.0.1:{tapped.port}", timeout_s: 60}}\n'
        "episodes: 1\ntraces: none\n"
    )
    plan = parse_plan(text, source="plan")
    stage = Stage(plan, "d" * 64, tmp_path)
    todo = schedule(plan, Side.SIM)
    rows = [stage.play(planned) for planned in todo]
    stage.close()
    assert {row.end_reason.is_scored for row in rows} == {True}
    assert any(row.novelty for row in rows)

    (sent,) = map(bytes, tapped.sent)
    head, messages = messages_of(sent)
    assert sum(b'"type":"act"' in one for one in messages if isinstance(one, bytes)) == sum(
        row.ticks for row in rows
    )
    said = head + b"\n".join(one.encode() if isinstance(one, str) else one for one in messages)
    spec = task_of(env)
    assert spec is not None
    words = {level.name for level in spec.levels().values() if level.number}
    words |= {"novelty", "axes", "level", "difficulty", "hard", "onset", "control", "variant"}
    words |= {NAME, "of-the-lab", "plan_digest", env, str(tmp_path)}
    words |= {planned.episode_id for planned in todo}
    assert [word for word in words if word.encode() in said] == []
    # Where a cube rests without novelty is seen of it under any.
    with gymnasium.make(env) as usual:
        seen = usual.reset(seed=todo[0].seed)[0].tobytes()
    for number in numbers_in([row.novelty for row in rows]):
        for form in ("<d", "<f", ">d"):
            packed = struct.pack(form, number)
            assert packed not in said or packed in seen, number
        if len(repr(number)) > 4:
            assert repr(number).encode() not in said

    # Beside seed, numbering and what is observed, every episode is told the same.
    told: list[set[str]] = []
    for message in map(decode, messages):
        if message["type"] == "reset":
            told.append(set())
        if told:
            seen = message.get("value")
            rest = {name: one for name, one in message.items() if name not in ("id", "seed")}
            rest["value"] = None if seen is None else [seen.shape, str(seen.dtype)]
            told[-1].add(json.dumps(rest))
    assert len(told) == len(rows)
    assert all(one == told[0] for one in told)


def numbers_in(value: Any) -> set[float]:
    """The numbers that were drawn; those that are everywhere, such as 0 and 1, say nothing."""
    if isinstance(value, dict):
        return set().union(*(numbers_in(one) for one in value.values()))
    if isinstance(value, list | tuple):
        return set().union(*(numbers_in(one) for one in value))
    if isinstance(value, int | float) and not isinstance(value, bool) and value % 1:
        return {float(value)}
    return set()
