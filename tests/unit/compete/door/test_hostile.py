"""Hostile messages: the server refuses them, and goes on answering everybody else."""

from __future__ import annotations

import contextlib
import json
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed

from robo_eval.agents.wire import decode, encode
from robo_eval.compete.messages import RefusedError, message_of
from tests.unit.compete.door.test_door import Raw

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["array", "dict", "tuple", "float", "x"]), inner)
    ),
    max_leaves=10,
)
FIELDS = st.dictionaries(
    st.sampled_from(
        ["id", "trials", "trial", "actions", "value", "probability", "threshold", "report",
         "protocol", "session", "task", "text", "level", "seed"]
    ),
    VALUES,
    max_size=6,
)  # fmt: skip
KINDS = st.sampled_from(["hello", "reset", "step", "declare", "feedback", "reveal", "", "error"])
TEXTS = st.builds(lambda kind, fields: json.dumps({"type": kind, **fields}), KINDS, FIELDS)
ALMOST = st.builds(
    lambda kind, number, fields: json.dumps({"type": kind, "id": number, "trials": [0], **fields}),
    KINDS, st.integers(0, 3), FIELDS,
)  # fmt: skip
HEADED = st.builds(
    lambda text, tail, off: struct.pack("<I", max(0, len(text) + off)) + text.encode() + tail,
    TEXTS, st.binary(max_size=40), st.integers(-3, 3),
)  # fmt: skip
FRAMES = st.one_of(
    TEXTS, ALMOST, HEADED, st.binary(max_size=60), st.text(max_size=40),
    st.integers(1, 3000).map(lambda deep: "[" * deep),
)  # fmt: skip


@pytest.fixture(scope="module")
def rivals(shared: Any) -> Any:
    """The attacker's token, and a client of another team that is in mid-episode."""
    other = Raw(shared.url, shared.team("calm"))
    other.hello()
    other.ask("reset", trials=[0])
    yield shared, shared.team("hostile"), other
    other.close()


@given(st.lists(FRAMES, min_size=1, max_size=12), st.booleans())
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_others_play_on_whatever_is_sent(rivals: Any, frames: list[Any], is_known: bool) -> None:
    served, token, other = rivals
    attacker = Raw(served.url, token)
    try:
        if is_known:
            attacker.hello()
        for frame in frames:
            attacker.socket.send(frame)
            answer = decode(attacker.socket.recv(timeout=30))
            assert answer["type"] in ("error", "hello", "state", "declared", "feedback")
            assert "Traceback" not in str(answer)
    except ConnectionClosed:
        pass
    finally:
        attacker.close()
    answer = other.ask("step", trials=[0], actions=[0])
    assert answer["type"] in ("state", "error")
    if answer["type"] == "error" or answer["truncated"][0] or answer["terminated"][0]:
        assert other.ask("reset", trials=[0])["type"] in ("state", "error")


def test_a_damaged_message_is_refused_or_another_good_one() -> None:
    good = [
        encode({"type": "hello", "id": 0, "protocol": 1, "trials": 1}),
        encode({"type": "step", "id": 1, "trials": [0]}, np.zeros((1, 2), np.float32)),
        encode({"type": "declare", "id": 2, "trial": 0, "probability": 0.5}),
    ]
    codes = set()
    for number in range(600):
        one = good[number % 3]
        whole = bytearray(one if isinstance(one, bytes) else one.encode())
        whole[number * 7 % len(whole)] = (number * 31) % 256
        frame: Any = bytes(whole) if isinstance(one, bytes) else whole.decode("latin-1")
        with contextlib.suppress(RefusedError):
            codes.add(message_of(frame).type)
    assert codes <= {"hello", "step", "declare"}
