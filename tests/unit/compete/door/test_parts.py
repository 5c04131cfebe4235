"""Spaces, actions, queues and codecs of the door, each alone."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgpack
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from robo_eval.compete.budget import paced
from robo_eval.compete.link import checked_url
from robo_eval.compete.practice import agent_made_by
from robo_eval.compete.served_policy import Calls, OpenPiPolicy, pack_array, unpack_array
from robo_eval.compete.spaces import action_of, as_json, space_of
from robo_eval.compete.worlds import JobResult, _Queue
from robo_eval.core.errors import InputError

SPACES = [
    spaces.Discrete(5),
    spaces.Discrete(3, start=-1),
    spaces.Box(-1.0, 1.0, (2, 3), np.float32),
    spaces.Box(np.array([-np.inf, 0.0]), np.array([np.inf, 1.0]), dtype=np.float64),
    spaces.Box(0, 255, (4, 4, 3), np.uint8),
    spaces.MultiDiscrete([3, 4]),
    spaces.MultiBinary(4),
    spaces.Dict({"a": spaces.Discrete(2), "b": spaces.Tuple([spaces.Box(0.0, 1.0, (1,))])}),
]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_a_space_comes_back_from_json(space: spaces.Space[Any]) -> None:
    assert space_of(json.loads(json.dumps(as_json(space), allow_nan=False))) == space


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_a_sample_is_an_action(space: spaces.Space[Any]) -> None:
    space.seed(0)
    for _ in range(5):
        assert space.contains(action_of(space, space.sample()))


@pytest.mark.parametrize(
    "form",
    [None, {}, {"kind": "Box"}, {"kind": "Text"}, {"kind": "Discrete", "n": -1, "start": 0},
     {"kind": "Box", "shape": [10**9], "dtype": "<f4", "low": 0, "high": 1}],
)  # fmt: skip
def test_no_space_is_refused(form: Any) -> None:
    with pytest.raises(InputError, match="space"):
        space_of(form)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(ANYTHING, st.sampled_from(SPACES))
def test_whatever_is_taken_as_an_action_is_one(given: Any, space: spaces.Space[Any]) -> None:
    try:
        action = action_of(space, given)
    except InputError:
        return
    assert space.contains(action)


@pytest.mark.parametrize(
    "given",
    [[np.nan, 0.0], [2.0, 0.0], [0.0], [[0.0, 0.0]], ["a", "b"], [True, False], [1e300, 0.0], None],
)
def test_what_is_no_action_of_a_box_is_refused(given: Any) -> None:
    with pytest.raises(InputError, match="no action"):
        action_of(spaces.Box(-1.0, 1.0, (2,), np.float32), given)


def test_two_teams_get_the_same_time_however_much_one_asks_for() -> None:
    queue, had = _Queue(), {1: 0.0, 2: 0.0}
    for _ in range(50):  # a batch of 16 worlds takes as long as 16 single steps
        queue.add(1, iter([0.0] * 15 + [JobResult(1)]))
    for _ in range(200):
        queue.add(2, iter([JobResult(2)]))
    while len(queue) == 2:
        found = queue.next()
        assert not isinstance(found, float)
        room, job = found
        had[room] += 1.0
        queue.count(room, 1.0, next(job))
    assert had[1] == pytest.approx(had[2], rel=0.1)


def room_of(queue: _Queue) -> int:
    found = queue.next()
    assert not isinstance(found, float)
    return found[0]


def test_who_was_away_does_not_push_the_others_aside() -> None:
    queue = _Queue()
    queue.add(1, iter(()))
    for _ in range(100):
        queue.count(room_of(queue), 1.0, 0.0)
    queue.add(2, iter(()))
    served = []
    for _ in range(10):
        served.append(room_of(queue))
        queue.count(served[-1], 1.0, 0.0)
    assert served.count(1) >= 4


def test_a_pace_makes_up_for_a_second_at_most() -> None:
    import asyncio

    async def waited() -> float:
        pace = paced(1000.0)
        begin_s = asyncio.get_running_loop().time()
        for _ in range(60):
            await pace.turn("a", 20)  # 1200 steps, of which 1000 are free
        return asyncio.get_running_loop().time() - begin_s

    # In a thread of its own: a browser of other tests has the loop of this one.
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(asyncio.run, waited()).result() >= 0.1


@pytest.mark.parametrize(
    "url",
    ["", "ftp://host", "http://", f"http://{'a:b'}@host", "http://host?token=x", "http://host:x"],
)
def test_urls_that_lead_nowhere_are_refused(url: str) -> None:
    with pytest.raises(InputError, match="http://host:port"):
        checked_url(url)


@pytest.mark.parametrize(
    "value",
    [np.arange(6, dtype="<f4").reshape(2, 3), np.zeros((0, 3)), np.array(True), np.array(["ab"]),
     np.float32(0.5), np.int64(7)],
)  # fmt: skip
def test_arrays_travel_as_openpi_has_them(value: Any) -> None:
    whole = msgpack.packb({"a": value}, default=pack_array)
    found = msgpack.unpackb(whole, object_hook=unpack_array)["a"]
    np.testing.assert_array_equal(found, value)
    assert np.asarray(found).dtype == value.dtype


@pytest.mark.parametrize(
    "form",
    [
        {b"__ndarray__": True, b"data": b"", b"dtype": "|O", b"shape": [1]},
        {b"__ndarray__": True, b"data": b"1234", b"dtype": "<f4", b"shape": [2]},
        {b"__ndarray__": True, b"data": b"1234", b"dtype": "<f4", b"shape": [-1]},
        {b"__npgeneric__": True, b"data": 1, b"dtype": "|V8"},
    ],
)
def test_what_is_no_array_is_refused(form: Any) -> None:
    with pytest.raises(ValueError, match="array"):
        unpack_array(form)


def test_policies_to_be_called_are_named_with_their_team() -> None:
    assert Calls.of(["a=ws://h:1", "b=openpi+ws://h:2"]).urls["b"] == "openpi+ws://h:2"
    with pytest.raises(InputError, match="NAME=ws"):
        Calls.of(["ws://h:1"])


def test_openpi_answers_become_actions() -> None:
    from threading import Thread

    from websockets.sync.server import serve

    asked: list[Any] = []

    def handle(connection: Any) -> None:
        connection.send(msgpack.packb({}))
        for frame in connection:
            asked.append(msgpack.unpackb(frame, object_hook=unpack_array))
            actions = np.array([[1.0], [3.0]], np.float32)
            connection.send(msgpack.packb({"actions": actions}, default=pack_array))

    with serve(handle, "127.0.0.1", 0) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        port = server.socket.getsockname()[1]
        policy = OpenPiPolicy(f"ws://127.0.0.1:{port}", spaces.Discrete(5), prompt="balance")
        policy.reset(seed=1)
        assert [policy.act(np.zeros(3)) for _ in range(3)] == [1, 3, 1]
        policy.close()
        server.shutdown()
    assert len(asked) == 2
    assert asked[0]["prompt"] == "balance"
    np.testing.assert_array_equal(asked[0]["state"], np.zeros(3))


def test_a_participant_loads_neither_simulator_nor_server() -> None:
    code = (
        "import sys, gymnasium; gymnasium.spec('RoboEval/Remote-v0');"
        "assert 'robo_eval.compete.client' not in sys.modules;"
        "import robo_eval.compete.client;"
        "heavy = ('pybullet', 'fastapi', 'uvicorn', 'sqlalchemy', 'robo_eval_sim.engine');"
        "found = [one for one in heavy"
        " if one in sys.modules]; assert not found, found"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


class Acts:
    def act(self, observation: Any) -> int:
        return 0


def test_what_practises_needs_no_more_than_to_act() -> None:
    assert agent_made_by(f"{__name__}:Acts").act(None) == 0
    with pytest.raises(InputError, match=r"test_parts:OpenPiPolicy.*(without act|fails)"):
        agent_made_by(f"{__name__}:OpenPiPolicy")
    with pytest.raises(InputError, match=r"dict without act\(observation\)"):
        agent_made_by("builtins:dict")
