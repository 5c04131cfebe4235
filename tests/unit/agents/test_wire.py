"""What is sent to a remote policy arrives bit for bit, and what arrives broken is refused."""

import contextlib
import json
import math
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from robo_eval.agents import make_agent, wire
from robo_eval.agents.session import Session, chunk_length
from robo_eval.agents.wire import MAX_FRAME_BYTES, check_token, decode, encode, is_finite
from robo_eval.core.errors import InputError
from robo_eval_sim.tasks.cartpole3d.layout import Action

DTYPES = st.one_of(
    npst.boolean_dtypes(),
    npst.integer_dtypes(endianness="?"),
    npst.unsigned_integer_dtypes(endianness="?"),
    npst.floating_dtypes(endianness="?", sizes=(16, 32, 64)),
)
ARRAYS = DTYPES.flatmap(
    lambda dtype: npst.arrays(dtype, npst.array_shapes(min_dims=0, min_side=0, max_dims=4))
)
LEAVES = st.one_of(
    ARRAYS,
    ARRAYS.filter(lambda array: array.ndim == 0).map(lambda array: array[()]),
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=5),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=5), inner, max_size=3),
    ),
    max_leaves=6,
)


def assert_same(found: Any, given: Any) -> None:
    assert type(found) is type(given)
    if isinstance(given, np.ndarray | np.generic):
        assert found.dtype == given.dtype
        assert found.shape == given.shape
        assert found.tobytes() == given.tobytes()
    elif isinstance(given, dict):
        assert list(found) == list(given)
        for key in given:
            assert_same(found[key], given[key])
    elif isinstance(given, list | tuple):
        assert len(found) == len(given)
        for one, other in zip(found, given, strict=True):
            assert_same(one, other)
    elif isinstance(given, float):
        if math.isnan(given):
            assert math.isnan(found)
        else:
            assert struct.pack("d", found) == struct.pack("d", given)
    else:
        assert found == given


@given(VALUES)
def test_a_value_arrives_as_it_was_sent(value):
    message = decode(encode({"type": "act", "id": 1}, value))
    assert_same(message["value"], value)


@given(VALUES, st.data())
def test_a_damaged_frame_is_refused_or_read_but_breaks_nothing(value, data):
    frame = encode({"type": "act", "id": 1}, value)
    cut = data.draw(st.integers(0, len(frame)))
    damaged = frame[:cut] + data.draw(st.binary(max_size=8)) + frame[cut + 1 :]
    with contextlib.suppress(InputError):
        decode(damaged)


@given(st.one_of(st.binary(max_size=200), st.text(max_size=200)))
def test_garbage_is_refused(frame):
    with pytest.raises(InputError):
        decode(frame)


def framed(value: object, blob: bytes = b"") -> bytes:
    head = json.dumps({"type": "act", "id": 1, "value": value}).encode()
    return struct.pack("<I", len(head)) + head + blob


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (framed({"array": ["<f4", [3]]}, b"12345678"), "needs 12 bytes; 8 are there"),
        (framed({"array": ["<f4", [1]]}, b"12345678"), "4 bytes that belong to no array"),
        (framed({"array": ["<f4", [-1]]}), "impossible shape"),
        (framed({"array": ["<f4", [True]]}, b"1234"), "impossible shape"),
        (framed({"array": ["<f4", [0, 2**30, 2**30, 2**30]]}), "impossible shape"),
        (framed({"array": ["<f4", [1] * 17]}, b"1234"), "impossible shape"),
        (framed({"array": ["|O", [1]]}, b"12345678"), "unknown dtype"),
        (framed({"array": "<f4"}), r"\[dtype, shape\]"),
        (framed({"number": ["<f4", [1]]}, b"1234"), "a number has shape"),
        (framed({"pickle": "gASVBAAAAAAAAACMAXiULg=="}), "unknown form: 'pickle'"),
        (framed({"a": 1, "b": 2}), "unknown form"),
        (b'\x15\0\0\0{"type":"act","id":1}', "has no value"),
        (struct.pack("<I", 2**31) + b"{}", "says its JSON has"),
        (b"\0", "no length at its start"),
        (b"\1\0\0\0\xff", "not UTF-8"),
        ('{"type": "act", "x": NaN}', "NaN is not a JSON number"),
        ("[" * 100_000, "not JSON"),
        ("[1]", "not a JSON object with a type"),
        ('{"type": 3}', "not a JSON object with a type"),
        (b'\x23\0\0\0{"type":"act","id":1,"value":1e999}', "a number is too large"),
    ],
)
def test_a_broken_message_says_what_is_wrong(frame, words):
    with pytest.raises(InputError, match=words):
        decode(frame)


def test_values_nested_too_deep_are_refused_on_both_sides():
    deep: Any = 1
    for _ in range(40):
        deep = [deep]
    with pytest.raises(InputError, match="nested more than 32 deep"):
        encode({"type": "act", "id": 1}, deep)
    with pytest.raises(InputError, match="nested more than 32 deep"):
        decode(framed(deep))


def test_arrays_that_arrive_can_be_written_to():
    (array,) = decode(encode({"type": "act", "id": 1}, [np.zeros(3)]))["value"]
    array += 1.0


def test_a_member_of_an_enum_arrives_as_its_number():
    assert decode(encode({"type": "actions"}, [Action.LEFT]))["value"] == [int(Action.LEFT)]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (object(), "builtins.object cannot be sent"),
        (np.array([object()]), "array of object cannot be sent"),
        ({1: 2}, "keys that are not text"),
        (b"raw", "builtins.bytes cannot be sent"),
    ],
)
def test_what_cannot_be_sent_is_named(value, words):
    with pytest.raises(InputError, match=words):
        encode({"type": "act", "id": 1}, value)


def test_a_frame_that_is_too_large_is_not_sent(monkeypatch):
    assert MAX_FRAME_BYTES == 64 * 2**20
    monkeypatch.setattr(wire, "MAX_FRAME_BYTES", 2**20)
    with pytest.raises(InputError, match="too large; the limit is 1 MiB"):
        encode({"type": "act", "id": 1}, np.zeros(2**20, np.uint8))


def test_finite_means_every_number():
    assert is_finite([1, "nan", None, np.zeros(2), {"a": (0.5,)}])
    for bad in (math.inf, np.float32("nan"), np.array([0.0, math.inf]), ({"a": [math.nan]},)):
        assert not is_finite([bad])


def test_a_token_is_long_and_plain():
    assert check_token(None) is None
    assert check_token("") is None
    assert check_token("0123456789abcdef") == "0123456789abcdef"
    for bad in ("short", "0123456789abcdef\r\nX: y", "0123456789 abcdef", "ä" * 20):
        with pytest.raises(InputError, match="16 to 256 ASCII") as caught:
            check_token(bad)
        assert bad not in str(caught.value)


class Alone:
    """A lock that counts."""

    def __init__(self) -> None:
        self.held = 0

    def __enter__(self) -> None:
        self.held += 1

    def __exit__(self, *rest: object) -> None:
        self.held -= 1


class Chunked:
    name = "chunked"
    digest = "c" * 64
    chunk_length = 2

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def reset(self, *, seed=None):
        self.seed = seed

    def act(self, observation):
        raise AssertionError("chunks are asked for")

    def act_chunk(self, observation):
        return self.answer


def session(policy: Any, chunk: int = 2) -> Session:
    hello = {"name": policy.name, "digest": policy.digest, "chunk": chunk}
    made = Session(hello, lambda: policy, Alone())  # type: ignore[arg-type]
    answer = decode(made.answer(encode({"type": "hello", "id": 1, "protocol": 1})))
    assert answer == {"type": "hello", "id": 1, "protocol": 1, **hello}
    return made


@pytest.mark.parametrize("answer", [[1, 2], (1, 2), np.array([1, 2]), [5]])
def test_a_chunk_is_answered_as_a_list(answer):
    found = decode(session(Chunked(answer)).answer(encode({"type": "act", "id": 2}, 0)))
    assert found["type"] == "actions"
    assert found["value"] == list(answer)
    assert found["inference_s"] >= 0.0


@pytest.mark.parametrize("answer", [[], [1, 2, 3], 7, None, "ab"])
def test_what_is_no_chunk_is_an_error_and_no_end(answer):
    talk = session(Chunked(answer))
    found = decode(talk.answer(encode({"type": "act", "id": 2}, 0)))
    assert found["type"] == "error"
    assert "act_chunk answered with" in found["message"]
    assert not talk.is_over


def test_how_many_actions_must_be_said():
    assert chunk_length(make_agent("balancer")) == 1
    assert chunk_length(Chunked([1])) == 2
    for bad in (None, 0, True, 1001):
        policy = Chunked([1])
        policy.chunk_length = bad  # type: ignore[assignment]
        with pytest.raises(InputError, match="needs chunk_length"):
            chunk_length(policy)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        ("{", "not JSON"),
        ('{"type":"act","id":2}', "without an observation"),
        ('{"type":"reset","id":2,"seed":"x"}', "seed 'x'"),
        ('{"type":"reset","id":null}', "no whole number as its id"),
        ('{"type":"dance","id":2}', "unknown message type 'dance'"),
        ('{"type":"hello","id":2,"protocol":2}', "the client speaks protocol 2"),
    ],
)
def test_a_broken_protocol_ends_the_session_with_a_line(frame, words):
    talk = session(make_agent("nothing"), 1)
    found = decode(talk.answer(frame))
    assert found["type"] == "error"
    assert words in found["message"]
    assert talk.is_over


def test_nobody_plays_without_an_introduction():
    talk = Session({"chunk": 1}, lambda: make_agent("nothing"), Alone())  # type: ignore[arg-type]
    assert "reset came before hello" in talk.answer('{"type":"reset","id":1,"seed":null}')  # type: ignore[operator]
    assert talk.is_over
