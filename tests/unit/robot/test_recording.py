"""Which bag a message goes to, and what counts as missed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcap.reader import make_reader

from robo_eval.core.errors import InputError
from robo_eval.log.bag_metadata import BagTopic
from robo_eval.log.bag_restore import restore
from robo_eval.log.ros_schemas import full_name, schema_text
from robo_eval_robot.recording import SETTLE_S, Gaps, Received, Recording, folder_below

EVENTS, DATA, LATCHED, STATIC = "/r/episode/event", "/r/data", "/r/state", "/tf_static"
KIND = "std_msgs/String"


class Bench:
    """A recording, with what would come from ROS."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.said: list[dict[str, Any]] = []
        self.waiting: list[Received] = []
        self.clock_ns = 1_000
        self.now = 0.0
        names = [DATA, LATCHED, STATIC, EVENTS]
        self.recording = Recording(
            root,
            names,
            latched=[LATCHED, STATIC],
            chunk_bytes=1024,
            describe=lambda: [
                BagTopic(name=name, type=full_name(KIND), text=schema_text(KIND)) for name in names
            ],
            drain=self.drain,
            say=self.said.append,
        )

    def drain(self) -> None:
        while self.waiting:
            self.recording.take(self.waiting.pop(0))

    def message(self, topic: str, data: bytes = b"x") -> Received:
        self.clock_ns += 10
        return Received(topic, data, self.clock_ns, self.clock_ns - 5, self.clock_ns // 10)

    def take(self, topic: str, data: bytes = b"x") -> None:
        self.recording.take(self.message(topic, data))

    def event(self, name: str, key: str = "e", *, is_old: bool = False, **more: Any) -> None:
        event = {"event": name, "episode_id": key, **more}
        if name == "start":
            event.setdefault("uri", key)
        message = self.message(EVENTS, name.encode())
        self.recording.event(message, json.dumps(event), is_old=is_old, now=self.now)

    def tick(self, seconds: float) -> None:
        self.now += seconds
        self.recording.tick(self.now)

    def states(self) -> list[tuple[str, str | None]]:
        return [(said["state"], said["episode_id"]) for said in self.said]

    def bag(self, key: str = "e") -> list[tuple[str, bytes, int]]:
        with (self.root / key / f"{key}_0.mcap").open("rb") as file:
            return [(c.topic, m.data, m.log_time) for _, c, m in make_reader(file).iter_messages()]


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def test_only_what_comes_in_an_episode_is_in_its_bag(bench):
    bench.take(DATA, b"before")
    bench.waiting.append(bench.message(DATA, b"waits before"))
    bench.event("start")
    bench.take(DATA, b"in")
    bench.event("fault")
    bench.waiting.append(bench.message(DATA, b"waits in"))
    bench.event("end")
    bench.take(DATA, b"after")
    assert sorted(data for _, data, _ in bench.bag()) == [
        b"end", b"fault", b"in", b"start", b"waits in",
    ]  # fmt: skip
    assert bench.states() == [("recording", "e"), ("closed", "e")]
    assert bench.said[-1]["counts"] == {DATA: 2, LATCHED: 0, STATIC: 0, EVENTS: 3}


def test_the_last_latched_state_is_at_the_start_of_each_bag(bench):
    bench.take(LATCHED, b"old")
    bench.take(LATCHED, b"ready")
    for key in ("a", "b"):
        bench.event("start", key)
        bench.event("end", key)
        (first, second, _) = bench.bag(key)
        assert first[:2] == (LATCHED, b"ready")
        assert first[2] == second[2]


def test_all_static_transforms_are_at_the_start_of_each_bag(bench):
    for data in (b"base", b"camera", b"base"):
        bench.take(STATIC, data)
    for key in ("a", "b"):
        bench.event("start", key)
        bench.event("end", key)
        said = [data for topic, data, _ in bench.bag(key) if topic == STATIC]
        assert said == [b"base", b"camera"]


def test_another_start_ends_the_running_episode(bench):
    bench.event("start", "a")
    bench.event("start", "b")
    bench.event("end", "a")
    bench.take(DATA, b"b's")
    bench.event("end", "b")
    assert bench.states() == [
        ("recording", "a"), ("closed", "a"), ("recording", "b"), ("closed", "b"),
    ]  # fmt: skip
    assert restore(bench.root / "a").end == {"event": "end", "reason": "episode b was started"}
    assert (DATA, b"b's") in [entry[:2] for entry in bench.bag("b")]


def test_the_same_start_twice_is_one_episode(bench):
    bench.event("start")
    bench.event("start")
    bench.event("end")
    assert bench.states() == [("recording", "e"), ("closed", "e")]
    bench.event("start")
    assert "exists already" in bench.said[-1]["reason"]


def test_an_old_start_waits_for_its_end(bench):
    for key in ("a", "b", "c"):
        bench.event("start", key, is_old=True)
        if key != "c":
            bench.event("end", key, is_old=True)
    bench.tick(SETTLE_S / 2)
    assert bench.said == []
    bench.tick(SETTLE_S)
    assert bench.states() == [("recording", "c")]


def test_a_new_start_outranks_one_that_waits(bench):
    bench.event("start", "a", is_old=True)
    bench.event("start", "b")
    bench.tick(2 * SETTLE_S)
    assert bench.states() == [("recording", "b")]


def test_what_waits_long_for_its_chunk_is_written(bench):
    bench.event("start")
    size = (bench.root / "e" / "e_0.mcap").stat().st_size
    bench.tick(0.5)
    assert (bench.root / "e" / "e_0.mcap").stat().st_size == size
    bench.tick(1.0)
    assert (bench.root / "e" / "e_0.mcap").stat().st_size > size


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "1", '{"event": []}', '{"event": "start", "episode_id": 1, "uri": "x"}',
     '{"event": "start", "episode_id": "e"}', '{"event": "note", "text": "\\ud800"}',
     "[" * 100_000],
)  # fmt: skip
def test_what_is_no_event_is_only_recorded(bench, text):
    bench.event("start")
    bench.recording.event(bench.message(EVENTS, b"odd"), text, is_old=False, now=0.0)
    bench.event("end")
    assert [data for _, data, _ in bench.bag()] == [b"start", b"odd", b"end"]


@given(st.text(max_size=20))
def test_no_bag_leaves_the_root(uri):
    root = Path("/nothing/here")
    try:
        folder = folder_below(root, uri)
    except InputError as err:
        assert "\n" not in str(err)  # noqa: PT017
    else:
        assert root in folder.parents


# Gaps ------------------------------------------------------------------------------------------


@given(st.sets(st.integers(1, 200)), st.sets(st.integers(1, 200)))
def test_of_known_publishers_each_gap_is_counted(one, two):
    gaps = Gaps()
    for number in range(1, 201):
        for publisher, numbers in ((b"1", one), (b"2", two)):
            if number in numbers:
                gaps.see(number, publisher)
    spans = (max(n) - min(n) + 1 - len(n) for n in (one, two) if n)
    assert gaps.missed == sum(spans)


def test_of_several_unknown_publishers_none_is_counted():
    gaps = Gaps()
    for number in (1, 2, 5):
        gaps.see(number, None)
    assert gaps.missed == 2
    for number in (100, 6, 101, 7):
        gaps.see(number, None)
    # 100 looked like a gap, until 6 showed that there are two.
    assert gaps.missed == 2 + 94
    gaps.see(None, None)
    assert gaps.missed == 96
