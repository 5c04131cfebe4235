"""Bags become a trial, or are refused with bag, topic and remedy."""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcap.reader import make_reader
from mcap.records import Chunk, Message
from mcap.stream_reader import StreamReader, breakup_chunk
from mcap.writer import Writer as McapWriter
from rosbags.highlevel import AnyReader
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from robo_eval.core.errors import InputError, RoboEvalError, TrialDirectoryError
from robo_eval.core.kinds import EndReason, Side
from robo_eval.log.bag_importer import import_bags
from robo_eval.log.bag_recover import is_cut_short, recover
from robo_eval.log.store import EpisodeStore
from robo_eval.log.verify import verify_trial
from robo_eval.metrics.bag_measures import measure

STORE = get_typestore(Stores.ROS2_HUMBLE)
STORE.register(
    get_types_from_msg(
        "std_msgs/Header header\nbool success\nfloat64 score\nfloat64[] stages\n",
        "lab_msgs/msg/Result",
    )
)
T = STORE.types
START = 1_772_361_000_000_000_000
MS = 1_000_000
JOINTS = ["a", "b"]

BOOL, STRING = "std_msgs/msg/Bool", "std_msgs/msg/String"
JOINT_STATE = "sensor_msgs/msg/JointState"
ARRAY = "std_msgs/msg/Float64MultiArray"
WRENCH = "geometry_msgs/msg/WrenchStamped"
RESULT = "lab_msgs/msg/Result"

# (topic, type, [(milliseconds, message), ...])
Topic = tuple[str, str, list[tuple[int, Any]]]

MAP = """
constants: {task: push, side: real, policy: pi0}
columns: {success: /result.success}
"""
FULL = """
constants: {task: push, side: real}
folder: '(?P<policy>[a-z0-9]+)-(?P<seed>[0-9]+)'
columns: {success: /result.success, quality: /result.score, interventions: /teleop}
stops: {safety_stop: /estop, operator_stop: /stop}
signals: {joint_state: /joint_states, command: /commands, wrench: /wrench, joints: [a, b]}
measures: {settling_band: 0.01}
"""


def header(ms: float) -> Any:
    stamp = START + round(ms * MS)
    time = T["builtin_interfaces/msg/Time"](sec=stamp // 10**9, nanosec=stamp % 10**9)
    return T["std_msgs/msg/Header"](stamp=time, frame_id="")


def truth(*, data: bool) -> Any:
    return T[BOOL](data=data)


def joints(ms: float, position: Any, names: list[str] = JOINTS) -> Any:
    none = np.array([])
    return T[JOINT_STATE](
        header=header(ms),
        name=names,
        position=np.array(position, float),
        velocity=none,
        effort=none,
    )


def array(values: Any) -> Any:
    layout = T["std_msgs/msg/MultiArrayLayout"](dim=[], data_offset=0)
    return T[ARRAY](layout=layout, data=np.array(values, float))


def wrench(ms: float, force: float) -> Any:
    vector = T["geometry_msgs/msg/Vector3"]
    content = T["geometry_msgs/msg/Wrench"](
        force=vector(x=force, y=0.0, z=0.0), torque=vector(x=0.0, y=0.0, z=0.0)
    )
    return T[WRENCH](header=header(ms), wrench=content)


def result(ms: float, *, success: bool, score: float = 1.0) -> Any:
    return T[RESULT](header=header(ms), success=success, score=score, stages=np.array([0.5, 0.25]))


def simple(*, success: bool = True, at: int = 1000) -> list[Topic]:
    return [
        ("/alive", BOOL, [(0, truth(data=True))]),
        ("/result", RESULT, [(at, result(at, success=success, score=1.0 if success else 0.2))]),
    ]


def full(
    *, success: bool = True, estop: bool = False, stop: bool = False, helped: int = 0
) -> list[Topic]:
    """Two joints that reach a step at 500 ms with a time constant of 100 ms, at 100 Hz."""
    ticks = range(0, 2000, 10)
    reached = [0.0 if ms < 500 else 1.0 - math.exp(-(ms - 500) / 100.0) for ms in ticks]
    teleop = [(100 + 100 * i, truth(data=i % 2 == 0)) for i in range(2 * helped)]
    return [
        (
            "/joint_states",
            JOINT_STATE,
            [(ms, joints(ms, [q, -q])) for ms, q in zip(ticks, reached, strict=True)],
        ),
        ("/commands", ARRAY, [(ms, array([ms >= 500, -(ms >= 500)])) for ms in ticks]),
        ("/wrench", WRENCH, [(ms, wrench(ms, 0.01 * ms)) for ms in ticks]),
        ("/teleop", BOOL, teleop),
        ("/estop", BOOL, [(0, truth(data=False)), (1500, truth(data=estop))]),
        ("/stop", BOOL, [(1600, truth(data=True))] if stop else []),
        *simple(success=success, at=2000)[1:],
    ]


@pytest.fixture
def bag(tmp_path: Path) -> Callable[..., Path]:
    """Write a bag with the rosbags library."""

    def write(
        name: str = "pi0-7",
        topics: list[Topic] | None = None,
        *,
        storage: str = "mcap",
        compression: str | None = None,
        start: int = START,
    ) -> Path:
        path = tmp_path / "bags" / name
        path.parent.mkdir(exist_ok=True)
        plugin = StoragePlugin.MCAP if storage == "mcap" else StoragePlugin.SQLITE3
        writer = Writer(path, version=9, storage_plugin=plugin)
        if compression:
            writer.set_compression(CompressionMode[compression], CompressionFormat.ZSTD)
        with writer:
            put = []
            for topic, kind, messages in simple() if topics is None else topics:
                connection = writer.add_connection(topic, kind, typestore=STORE)
                put += [(ms, connection, kind, message) for ms, message in messages]
            for ms, connection, kind, message in sorted(put, key=lambda item: item[0]):
                writer.write(connection, start + ms * MS, STORE.serialize_cdr(message, kind))
        return path

    return write


@pytest.fixture
def bring(tmp_path: Path):
    """Import bags by a map."""

    def run(*bags: Path, topics: str = MAP, out: str = "out"):
        (tmp_path / "map.yaml").write_text(topics)
        return import_bags(bags, tmp_path / "map.yaml", tmp_path / out, measure=measure)

    return run


def episodes(done):
    with EpisodeStore(done.trial.path, durable=False, read_only=True) as store:
        return list(store.episodes())


def only(done):
    (episode,) = episodes(done)
    return episode


def bare_mcap(path: Path, topics: list[Topic], *, chunk: int = 1024, start: int = START) -> Path:
    """Write a bare MCAP file with the mcap library, in small chunks."""
    with path.open("wb") as out:
        writer = McapWriter(out, chunk_size=chunk)
        writer.start(profile="ros2", library="test")
        put = []
        for topic, kind, messages in topics:
            text, _ = STORE.generate_msgdef(kind, ros_version=2)
            schema = writer.register_schema(kind, "ros2msg", text.encode())
            channel = writer.register_channel(topic, "cdr", schema)
            put += [(ms, channel, kind, message) for ms, message in messages]
        for ms, channel, kind, message in sorted(put, key=lambda item: item[0]):
            stamp = start + ms * MS
            writer.add_message(channel, stamp, bytes(STORE.serialize_cdr(message, kind)), stamp)
        writer.finish()
    return path


@pytest.mark.parametrize("place", ["position[0]", "position[-1]"])
@pytest.mark.parametrize("other", [["grip"], ["b", "a"]])
def test_a_place_in_a_list_that_names_other_joints_in_other_messages_is_refused(
    bag, bring, place, other
):
    told = [(0, joints(0, [1, 2])), (10, joints(10, [5] * len(other), other))]
    topics = [("/joint_states", JOINT_STATE, told), *simple()]
    field = f"columns: {{success: /result.success, costs.x: '/joint_states.{place}'}}"
    found = rf"position\[(0|-1)\] of the topic map is of '{'ab'[place[-2:] == '1]']}' .* of '"
    with pytest.raises(InputError, match=found):
        bring(bag(topics=topics), topics=f"{MAP.splitlines()[1]}\n{field}\n")
    bring(
        bag("same", [(*topics[0][:2], told[:1]), *simple()]),
        topics=f"{MAP.splitlines()[1]}\n{field}\n",
    )


def test_a_place_behind_a_topic_is_one_in_its_field_data(bag, bring):
    topics = [("/cmd", ARRAY, [(0, array([3.0, 4.0]))]), *simple()]
    field = "columns: {success: /result.success, costs.x: '/cmd[1]'}"
    done = bring(bag(topics=topics), topics=f"{MAP.splitlines()[1]}\n{field}\n")
    assert only(done).costs["x"] == 4.0


# What becomes of a bag -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("storage", "compression"),
    [("mcap", None), ("sqlite3", None), ("sqlite3", "FILE"), ("sqlite3", "MESSAGE")],
)
def test_a_bag_becomes_an_episode(bag, bring, storage, compression):
    done = bring(bag(topics=full(), storage=storage, compression=compression), topics=FULL)
    episode = only(done)
    assert (episode.episode_id, episode.policy, episode.seed) == ("pi0-7", "pi0", 7)
    assert (episode.side, episode.task, episode.success) == (Side.REAL, "push", True)
    assert episode.start_ns == START
    assert episode.duration_s == episode.exposure_s == 2.0
    assert (episode.ticks, episode.interventions, episode.recovered) == (200, 0, False)
    quality = episode.control_quality
    assert set(quality) == {
        "tracking_rmse_rad", "jerk_rms_rad_s3", "peak_force_N", "settling_time_s",
    }  # fmt: skip
    # An exponential that starts at the size of the step: sqrt(tau / 2 / T) of its length.
    assert quality["tracking_rmse_rad"] == pytest.approx(math.sqrt(0.05 / 2.0), rel=0.06)
    assert quality["peak_force_N"] == pytest.approx(19.9)
    assert quality["settling_time_s"] == pytest.approx(0.1 * math.log(100.0), abs=0.011)
    assert not done.left_out
    report = verify_trial(done.trial.path)
    assert not report.problems
    assert (report.rows, report.traces) == (1, 1)


def test_a_bare_file_of_the_mcap_library_becomes_an_episode(tmp_path, bring):
    episode = only(bring(bare_mcap(tmp_path / "pi0-3.mcap", full()), topics=FULL))
    assert (episode.episode_id, episode.seed, episode.success) == ("pi0-3", 3, True)
    assert episode.trace_uri == "traces/pi0-3"


def test_a_trace_is_the_bag_and_a_change_in_it_is_found(bag, bring):
    source = bag(topics=full())
    done = bring(source, topics=FULL)
    trace = done.trial.path / only(done).trace_uri
    for name in ("metadata.yaml", "pi0-7.mcap"):
        assert (trace / name).read_bytes() == (source / name).read_bytes()
    with AnyReader([trace]) as reader:
        assert reader.message_count == 603
    data = bytearray((trace / "pi0-7.mcap").read_bytes())
    data[len(data) // 2] ^= 1
    (trace / "pi0-7.mcap").write_bytes(data)
    (problem,) = verify_trial(done.trial.path).problems
    assert problem.file == "traces/pi0-7"
    assert "was changed" in problem.what


@pytest.mark.parametrize("change", ["added", "removed", "gone"])
def test_a_file_more_or_less_in_a_trace_is_found(bag, bring, change):
    done = bring(bag())
    trace = done.trial.path / only(done).trace_uri
    if change == "added":
        (trace / "notes.txt").write_text("nothing")
    elif change == "removed":
        (trace / "metadata.yaml").unlink()
    else:
        shutil.rmtree(trace)
    (problem,) = verify_trial(done.trial.path).problems
    assert problem.file == "traces/pi0-7"


def test_a_folder_of_bags_is_imported_in_order(bag, bring, tmp_path):
    for number in (10, 9, 1):
        bag(f"act-{number}", simple(success=number != 9), start=START + number)
    bare_mcap(tmp_path / "bags" / "pi0-2.mcap", simple())
    (tmp_path / "bags" / "notes.txt").write_text("not a bag")
    (tmp_path / "bags" / "photos").mkdir()
    text = MAP.replace(", policy: pi0", "") + "folder: '(?P<policy>[a-z0-9]+)-(?P<seed>[0-9]+)'\n"
    done = bring(tmp_path / "bags", topics=text)
    assert (done.bags, done.episodes) == (4, 4)
    assert [e.episode_id for e in episodes(done)] == ["act-1", "act-9", "act-10", "pi0-2"]
    assert [e.success for e in episodes(done)] == [True, False, True, True]
    plan = done.trial.plan
    assert plan.imported is not None
    assert (plan.imported.file, plan.imported.rows) == ("bags", 4)
    assert plan.imported.column_map["columns"] == {"success": "/result.success"}


def test_bags_are_found_at_any_depth(bag, bring, tmp_path):
    for policy in ("act", "pi0"):
        shutil.move(bag(f"run-{policy}"), tmp_path / "lab" / "monday" / policy / "run-1")
    text = """
constants: {task: push, side: real}
folder: '(?P<policy>\\w+)/(?P<family>\\w+)-1'
columns: {success: /result.success, episode_id: {field: /absent, default: ''}}
"""
    with pytest.raises(
        InputError, match=r"act/run-1: .*same messages as|pi0/run-1: .*same messages"
    ):
        bring(tmp_path / "lab", topics=text)
    done = bring(tmp_path / "lab" / "monday" / "pi0", topics=text)
    assert (only(done).policy, only(done).family) == ("pi0", "run")


def test_a_database_without_definitions_is_read_as_standard_messages(bag, bring):
    topics = [("/ok", BOOL, [(0, truth(data=True))]), *simple()[1:]]
    source = bag(topics=topics, storage="sqlite3")
    (path,) = source.glob("*.db3")
    with sqlite3.connect(path) as base:
        base.execute("DELETE FROM message_definitions")
    base.close()
    assert only(bring(source, topics=MAP.replace("/result.success", "/ok"))).success is True
    with pytest.raises(InputError, match=r"carries no definition of lab_msgs/msg/Result; convert"):
        bring(source, out="two")


def test_a_bare_database_becomes_an_episode(bag, bring):
    (path,) = bag(topics=full(), storage="sqlite3").glob("*.db3")
    episode = only(bring(path, topics=FULL))
    assert (episode.episode_id, episode.ticks) == ("pi0-7", 200)


def test_the_same_bags_give_the_same_rows(bag, bring):
    source = bag(topics=full())
    one, two = (bring(source, topics=FULL, out=out) for out in ("one", "two"))
    assert episodes(one) == episodes(two)


@pytest.mark.parametrize(
    ("bools", "end", "success", "quality"),
    [
        ({"estop": True}, EndReason.SAFETY_STOP, False, 1.0),
        ({"stop": True}, EndReason.OPERATOR_STOP, False, 1.0),
        ({"estop": True, "stop": True}, EndReason.SAFETY_STOP, False, 1.0),
        ({"success": False}, EndReason.FAILURE, False, 0.2),
        ({"success": False, "estop": True}, EndReason.SAFETY_STOP, False, 0.2),
        ({}, EndReason.SUCCESS, True, 1.0),
    ],
)
def test_a_stopped_episode_is_no_success(bag, bring, bools, end, success, quality):
    episode = only(bring(bag(topics=full(**bools)), topics=FULL))
    assert (episode.end_reason, episode.success, episode.quality) == (end, success, quality)


def test_interventions_are_counted_and_an_assisted_success_is_refused(bag, bring):
    source = bag(topics=full(helped=3))
    with pytest.raises(InputError, match=r"pi0-7, column '/teleop': is 3.*topic map"):
        bring(source, topics=FULL)
    episode = only(bring(source, topics=FULL + "assisted_success: failure\n"))
    assert (episode.interventions, episode.success) == (3, False)


def test_fields_are_taken_as_the_map_says(bag, bring):
    battery = [
        (100 * i, T["std_msgs/msg/Float64"](data=value)) for i, value in enumerate((4, 1, 3))
    ]
    notes = [(50, T[STRING](data=json.dumps({"who": {"name": "kim"}})))]
    topics = [
        *simple(),
        ("/battery", "std_msgs/msg/Float64", battery),
        ("/notes", STRING, notes),
        ("/quiet", "std_msgs/msg/Float64", []),
    ]
    text = """
constants: {task: push, side: twin, policy: pi0}
columns:
  success: /result.success
  operator: /notes.data.who.name
  costs.first_j: {field: /battery, take: first}
  costs.last_j: /battery
  costs.mean_kj: {field: /battery, take: mean, unit: kJ}
  costs.least_j: {field: /battery, take: min}
  costs.most_j: {field: /battery, take: max}
  costs.all_j: {field: /battery, take: sum, scale: 2}
  costs.messages: {field: /battery, take: count}
  costs.stage: {field: '/result.stages[1]'}
  costs.quiet: {field: /quiet, default: '7'}
  costs.absent: {field: /absent, default: '8'}
"""
    episode = only(bring(bag(topics=topics), topics=text))
    assert episode.operator == "kim"
    assert episode.costs == {
        "first_j": 4, "last_j": 3, "mean_kj": pytest.approx(8e3 / 3), "least_j": 1, "most_j": 4,
        "all_j": 16, "messages": 3, "stage": 0.25, "quiet": 7, "absent": 8,
    }  # fmt: skip
    assert episode.exposure_s == 0.0  # no physical robot
    assert episode.ticks is None
    assert episode.control_quality == {}


def test_words_in_names_and_messages_are_translated(bag, bring):
    source = bag(
        "P0-7", [("/end", STRING, [(0, T[STRING](data="ok")), (9, T[STRING](data="hit"))])]
    )
    text = """
constants: {task: push, side: real}
folder: {pattern: 'bags/(?P<policy>P\\d)-7', values: {policy: {P0: pi0}}}
columns: {end_reason: {field: /end, values: {ok: success, hit: out_of_bounds}}}
"""
    episode = only(bring(source, topics=text))
    assert (episode.policy, episode.end_reason) == ("pi0", EndReason.OUT_OF_BOUNDS)


def test_exposure_is_the_time_in_motion(bag, bring):
    moving = [(0, False), (200, True), (500, False), (800, True)]
    topics = [*simple(), ("/moving", BOOL, [(ms, truth(data=v)) for ms, v in moving])]
    source = bag(topics=topics)
    assert only(bring(source, topics=MAP + "exposure: /moving\n")).exposure_s == 0.5
    assert only(bring(source, topics=MAP + "exposure: bag\n", out="two")).exposure_s == 1.0


def test_exposure_by_a_speed(bag, bring):
    speeds = [(0, [0.0, 0.0]), (300, [0.0, -0.2]), (700, [0.001, 0.0])]
    topics = [*simple(), ("/speed", ARRAY, [(ms, array(v)) for ms, v in speeds])]
    text = MAP + "exposure: {field: /speed, above: 0.01}\n"
    assert only(bring(bag(topics=topics), topics=text)).exposure_s == pytest.approx(0.4)


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_a_bag_is_cut_at_its_markers(bag, bring, storage):
    words = [
        (100, "go"), (300, "done"), (400, "go"), (500, "note"), (600, "go"), (800, "note"),
        (900, "done"),
    ]  # fmt: skip
    outcomes = [(200, True), (500, False), (850, True)]
    topics = [
        ("/alive", BOOL, [(0, truth(data=True)), (1000, truth(data=True))]),
        ("/event", STRING, [(ms, T[STRING](data=json.dumps({"event": w}))) for ms, w in words]),
        ("/result", RESULT, [(ms, result(ms, success=s, score=s)) for ms, s in outcomes]),
        ("/commands", ARRAY, [(ms, array([0.0, 0.0])) for ms in range(0, 1001, 10)]),
    ]
    text = (
        MAP
        + "episodes: {field: /event.data.event, start: go, end: [done]}\n"
        + "signals: {command: /commands, joints: [a, b]}\n"
    )
    done = bring(bag(topics=topics, storage=storage), topics=text)
    # Of 101 commands, those until 90 ms, between 310 and 390 ms and from 910 ms on.
    assert done.outside == {"/commands": 29}
    one, two, three = episodes(done)
    assert [e.episode_id for e in (one, two, three)] == ["pi0-7-001", "pi0-7-002", "pi0-7-003"]
    assert [e.success for e in (one, two, three)] == [True, False, True]
    assert [e.start_ns - START for e in (one, two, three)] == [100 * MS, 400 * MS, 600 * MS]
    assert [e.duration_s for e in (one, two, three)] == pytest.approx([0.2, 0.2, 0.3])
    assert [e.ticks for e in (one, two, three)] == [21, 20, 31]
    assert not verify_trial(done.trial.path).problems
    (file,) = (done.trial.path / two.trace_uri).iterdir()
    with AnyReader([file]) as reader:
        assert {c.topic: c.msgcount for c in reader.connections} == {
            "/event": 2, "/result": 1, "/commands": 20,
        }  # fmt: skip
        assert reader.start_time == two.start_ns


def test_joints_are_matched_by_name(bag, bring):
    order = [["a", "b"], ["b", "c", "a"]]
    states = [
        (ms, joints(ms, [1.0, 2.0] if ms % 20 else [2.0, 9.0, 1.0], order[ms % 20 == 0]))
        for ms in range(0, 1000, 10)
    ]
    grip = [(ms + 5, joints(ms, [0.3], ["grip"])) for ms in range(0, 1000, 10)]
    commands = [(ms, joints(ms, [2.5, 1.0], ["b", "a"])) for ms in range(0, 1000, 10)]
    topics = [
        *simple(),
        ("/joint_states", JOINT_STATE, [*states, *grip]),
        ("/commands", JOINT_STATE, commands),
    ]
    signals = "signals: {joint_state: /joint_states, command: /commands, joints: [a, b]}\n"
    episode = only(bring(bag(topics=topics), topics=MAP + signals))
    expected = math.sqrt(0.5**2 / 2.0)
    assert episode.control_quality["tracking_rmse_rad"] == pytest.approx(expected)
    assert episode.control_quality["jerk_rms_rad_s3"] == pytest.approx(0.0, abs=1e-6)


def test_a_measure_of_metres_and_a_clock_of_headers(bag, bring):
    # Received late by up to 9 ms, stamped evenly: t cubed has a jerk of 6.
    states = [(10 * i + i % 10, joints(10 * i, [(i / 100) ** 3, 0.0])) for i in range(100)]
    text = MAP + "signals: {joint_state: /joint_states, joint_unit: m, clock: header}\n"
    source = bag(topics=[*simple(), ("/joint_states", JOINT_STATE, states)])
    quality = only(bring(source, topics=text)).control_quality
    assert quality == {"jerk_rms_m_s3": pytest.approx(math.sqrt(18.0), rel=1e-3)}
    late = only(bring(source, topics=text.replace("header", "received"), out="two"))
    assert late.control_quality["jerk_rms_m_s3"] != pytest.approx(math.sqrt(18.0), rel=0.1)


def test_what_cannot_be_measured_is_left_out_with_a_reason(bag, bring):
    topics = [
        *simple(),
        ("/joint_states", JOINT_STATE, []),
        ("/wrench", WRENCH, [(1, wrench(1, 2))]),
    ]
    text = MAP + "signals: {joint_state: /joint_states, wrench: /wrench}\n"
    done = bring(bag(topics=topics), topics=text)
    assert only(done).control_quality == {"peak_force_N": 2.0}
    (left,) = done.left_out
    assert (left.episode_id, left.measure) == ("pi0-7", "jerk_rms_rad_s3")
    assert left.reason == "/joint_states is silent"


# A recording that was cut short ----------------------------------------------------------------


def cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def test_a_file_cut_short_is_recovered(tmp_path, bring):
    path = bare_mcap(tmp_path / "pi0-3.mcap", full())
    cut(path, path.stat().st_size // 2)
    # Silence would be a failure in a whole recording.
    done = bring(
        path,
        topics=FULL.replace(
            "success: /result.success", "success: {field: /result.success, default: false}"
        ),
    )
    episode = only(done)
    assert episode.recovered
    assert done.recovered == ("pi0-3",)
    assert (episode.end_reason, episode.success, episode.quality) == (EndReason.LOST, None, None)
    assert 0.2 < episode.duration_s < 1.9
    assert 0 < episode.ticks < 200
    assert not verify_trial(done.trial.path).problems
    trace = done.trial.path / episode.trace_uri / "pi0-3.mcap"
    with trace.open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        assert sum(1 for _ in reader.iter_messages()) > 100


def test_an_outcome_said_before_the_cut_counts(tmp_path, bring):
    topics = [*full()[:3], *simple(at=10)]
    path = bare_mcap(tmp_path / "pi0-3.mcap", topics)
    cut(path, path.stat().st_size - 3000)
    episode = only(bring(path))
    assert (episode.recovered, episode.success) == (True, True)


def test_an_episode_that_was_over_before_the_cut_is_whole(tmp_path, bring):
    words = [(0, "go"), (500, "done"), (11_000, "go"), (29_500, "done")]
    topics = [
        ("/event", STRING, [(ms, T[STRING](data=w)) for ms, w in words]),
        ("/ok", BOOL, [(29_000, truth(data=True))]),
        ("/alive", BOOL, [(ms, truth(data=True)) for ms in range(0, 30_000, 10)]),
    ]
    path = bare_mcap(tmp_path / "pi0-3.mcap", topics)
    cut(path, path.stat().st_size * 3 // 4)
    text = MAP.replace("/result.success", "{field: /ok, default: false}")
    one, two = episodes(
        bring(path, topics=text + "episodes: {field: /event, start: go, end: done}")
    )
    assert (one.end_reason, one.success) == (EndReason.FAILURE, False)
    assert (two.end_reason, two.success) == (EndReason.LOST, None)


def test_a_bag_folder_that_was_never_closed_is_recovered(bag, bring, tmp_path):
    source = bag(topics=full())
    (source / "metadata.yaml").unlink()
    bare_mcap(source / "pi0-7.mcap", full())
    cut(source / "pi0-7.mcap", 20_000)
    episode = only(bring(source, topics=FULL))
    assert episode.recovered
    # The same, found in a folder of bags.
    assert only(bring(tmp_path / "bags", topics=FULL, out="two")).duration_s == episode.duration_s


def chunks_of(path: Path) -> list[tuple[int, int]]:
    """Where each chunk of a file ends, and how many messages it holds."""
    with path.open("rb") as file:
        indexes = make_reader(file).get_summary().chunk_indexes
    with path.open("rb") as file:
        records = StreamReader(file, emit_chunks=True).records
        chunks = [record for record in records if isinstance(record, Chunk)]
    counts = [sum(isinstance(r, Message) for r in breakup_chunk(chunk)) for chunk in chunks]
    ends = [index.chunk_start_offset + index.chunk_length for index in indexes]
    return list(zip(ends, counts, strict=True))


def test_outcomes_beside_bags_join_by_the_name_of_the_bag(bag, bring, tmp_path):
    bags = [
        bag("pi0-7"),
        bag("pi0-8", start=START + 10**12),
        bag("act-7", start=START + 2 * 10**12),
    ]
    plain = "constants: {task: insert, side: real, robot: arm, policy: pi0}\n"
    (tmp_path / "sheet.csv").write_text("recording,good\nbags/pi0-7.mcap,1\npi0-8,0\npi0-9,1\n")
    sheet = "outcomes: {file: sheet.csv, key: recording, columns: {success: good}}\n"
    done = bring(*bags, topics=plain + sheet)
    ends = {one.episode_id: one.end_reason.value for one in episodes(done)}
    assert ends == {"pi0-7": "success", "pi0-8": "failure", "act-7": "no_verdict"}
    said = [remark.what for remark in done.remarks]
    assert any("1 line of 3 without an episode: pi0-9" in what for what in said)
    assert any("says nothing of 1 episode: act-7" in what for what in said)
    for path, word in zip(bags, ("true", "false", "true"), strict=True):
        (path / "success.txt").write_text(word)
    done = bring(*bags, topics=plain + "outcomes: bags/*/success.txt\n", out="texts")
    assert [one.success for one in episodes(done)] == [True, False, True]


@pytest.fixture(scope="session")
def whole_file(tmp_path_factory):
    return bare_mcap(tmp_path_factory.mktemp("cut") / "whole.mcap", full())


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_whatever_byte_a_file_is_cut_at_its_complete_chunks_are_recovered(whole_file, data):
    size = data.draw(st.integers(1, whole_file.stat().st_size - 1))
    part, sound = (whole_file.with_name(name) for name in ("part.mcap", "sound.mcap"))
    part.write_bytes(whole_file.read_bytes()[:size])
    assert is_cut_short(part)
    complete = sum(count for end, count in chunks_of(whole_file) if end <= size)
    if not complete:
        with pytest.raises(InputError, match=r"part\.mcap: .* nothing can be read"):
            recover(part, sound)
        return
    end = max(end for end, _ in chunks_of(whole_file) if end <= size)
    assert recover(part, sound) <= size - end
    with whole_file.open("rb") as one, sound.open("rb") as two:
        expected, found = (
            [(c.topic, m.log_time, m.data) for _, c, m in make_reader(file).iter_messages()]
            for file in (one, two)
        )
    assert found == expected[:complete]


# What is refused -------------------------------------------------------------------------------


def nan_topics() -> list[Topic]:
    states = [(ms, joints(ms, [0.0, math.nan if ms == 500 else 0.0])) for ms in range(0, 1000, 10)]
    return [*simple(), ("/joint_states", JOINT_STATE, states)]


JOINT_MAP = MAP + "signals: {joint_state: /joint_states}\n"


def test_nan_in_a_joint_state_is_refused_or_leaves_the_measure_out(bag, bring):
    source = bag(topics=nan_topics())
    with pytest.raises(
        InputError, match=r"topic /joint_states.*message 51, at 0\.500 s.*leave_out"
    ):
        bring(source, topics=JOINT_MAP)
    done = bring(source, topics=JOINT_MAP + "measures: {invalid: leave_out}\n")
    assert only(done).control_quality == {}
    assert done.left_out[0].reason.endswith("1 of 100 messages, first in message 51, at 0.500 s")


def refused_topics() -> dict[str, tuple[list[Topic], str, str]]:
    states = [(ms, joints(ms, [0.0, 0.0])) for ms in range(0, 1000, 10)]
    named = ("/joint_states", JOINT_STATE, states)
    back = [(ms, joints(1000 - ms, [0.0, 0.0])) for ms in range(0, 1000, 10)]
    changing = [*states, (1000, joints(1000, [0.0], ["a"]))]
    short = [(0, joints(0, [0.0]))]
    signals = "signals: {joint_state: /joint_states, command: /commands}\n"
    markers = "episodes: {field: /event, start: go}\n"
    point = T["trajectory_msgs/msg/JointTrajectory"](
        header=header(0), joint_names=JOINTS, points=[]
    )
    empty = ("/commands", ARRAY, [(0, array([0.0]))])
    trajectory = "trajectory_msgs/msg/JointTrajectory"
    number = "std_msgs/msg/Float64"
    infinite = ("/x", number, [(0, T[number](data=math.inf))])
    words = ("/x", STRING, [(0, T[STRING](data="y"))])
    start = ("/event", STRING, [(0, T[STRING](data="start"))])
    shouted = ("/estop", STRING, [(0, T[STRING](data="on"))])
    listed = JOINT_MAP.replace("states}", "states, joints: [%s]}")
    on_header = JOINT_MAP.replace("states}", "states, clock: header}")

    def success(text: str) -> str:
        return MAP.replace("/result.success", text)

    def joint_topics(states: list[tuple[int, Any]]) -> list[Topic]:
        return [*simple(), ("/joint_states", JOINT_STATE, states)]

    return {
        "topic": (simple(), success("/reslut.success"),
                  r"did you mean '/result'.*columns.success of the topic map.*default"),
        "field": (simple(), success("/result.sucess"), "field 'sucess'; did you mean 'success'"),
        "part": (simple(), success("/result.success.x"), r"bool has no part \.x"),
        "list": (simple(), success("/result.stages"), "is a list, not one value"),
        "place": (simple(), success("/result.stages.x"), r"name a place in it, such as \[0\]"),
        "message": (simple(), success("/result.header"), "not one value"),
        "truth": (simple(), success("/result.score"), r"topic map.*neither true nor false"),
        "silent": ([*simple()[:1], ("/result", RESULT, [])], MAP, "no message says it.*default"),
        "joints": (simple(), JOINT_MAP.replace("/joint_states", "/alive"),
                   "std_msgs/msg/Bool; name a topic of sensor_msgs"),
        "backwards": (joint_topics(back), on_header,
                      r"/joint_states.*99 of 100 messages go back.*first message 2;.*clock: rec"),
        "names": (joint_topics(changing), JOINT_MAP, "message 101: joint 'b' .*signals.joints"),
        "joint": (joint_topics(states), listed % "x, y", "unknown joint 'x'; valid: a, b"),
        "some": (joint_topics(states), listed % "a, bb", "'bb'; did you mean 'b'"),
        "sizes": (joint_topics(short), JOINT_MAP, "has 1 position for 2 joints"),
        "nameless": ([*simple(), named, empty], MAP + signals, "list them under signals.joints"),
        "width": ([*simple(), named, empty], MAP + signals.replace("}", ", joints: [a, b]}"),
                  "has 1 position for 2 joints"),
        "text": ([*simple(), named, ("/commands", STRING, [])], MAP + signals,
                 "string is no list of numbers"),
        "points": ([*simple(), named, ("/commands", trajectory, [(0, point)])], MAP + signals,
                   "trajectory of 0 points"),
        "force": (simple(), MAP + "signals: {wrench: /result.header}\n", "is no force"),
        "headless": ([*simple(), ("/f", "geometry_msgs/msg/Wrench", [])],
                     MAP + "signals: {wrench: /f, clock: header}\n", "set signals.clock: received"),
        "markers": ([*simple(), start], MAP + markers, "it says 'start', the map 'go'"),
        "stop": ([*simple(), shouted], MAP + "stops: {safety_stop: /estop}\n", "'on' is neither"),
        "no stop": (simple(), MAP + "stops: {safety_stop: /alife}\n",
                    r"did you mean '/alive'.*give it a default"),
        "name": (simple(), MAP + "folder: '(?P<operator>x+)'\n", "'pi0-7' does not match"),
        "quality": (simple(), success("/result.success, quality: {field: /result.score, scale: 3}"),
                    r"gives 3, which is outside \[0, 1\]"),
        "infinite": ([*simple(), infinite], success("/result.success, costs.x: /x"),
                     "is not a finite number.*topic map"),
        "mean": ([*simple(), words], success("/result.success, costs.x: {field: /x, take: mean}"),
                 "'y' is not a finite number"),
    }  # fmt: skip


REFUSED = refused_topics()


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_bag_does_not_hold_is_named(bag, bring, tmp_path, case):
    topics, text, message = REFUSED[case]
    source = bag(topics=topics)
    with pytest.raises(InputError, match=message) as caught:
        bring(source, topics=text)
    said = str(caught.value)
    assert str(source) in said
    assert "\n" not in said
    assert "column map" not in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bags", "map.yaml"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sigals: {}", "unknown key 'sigals'; did you mean 'signals'"),
        ("signals: {joint_sate: /x}", "signals.joint_sate: .* did you mean 'joint_state'"),
        ("signals: {clock: wall}", "signals.clock: unknown clock 'wall'"),
        ("signals: {joint_state: /x.position}", "name a topic without a field"),
        ("signals: {joints: [a, a]}", "signals.joints: holds 'a' twice"),
        ("signals: {joints: {a: c, b: c}}", "signals.joints: holds 'c' twice"),
        ("signals: {joints: {a: b, b: a}}", "signals.joints: holds 'a' twice"),
        ("gaps: skip", "gaps: unknown gaps 'skip'"),
        ("measures: {jerk_window_s: '-1'}", "measures.jerk_window_s: must be greater than 0"),
        ("stops: {estop: /x}", "stops.estop: unknown key 'estop'"),
        ("stops: {safety_stop: {field: /x, default: 'true'}}", "unknown word 'true'"),
        ("folder: '(?P<polcy>.*)'", "unknown column 'polcy'; did you mean 'policy'"),
        ("folder: '('", "is not a regular expression"),
        ("folder: 'x.*'", "no named group"),
        ("folder: '(?P<task>.*)'", "'task' is in constants and in folder"),
        ("episodes: {field: /x}", "episodes.start: is missing"),
        ("episodes: {field: /x, start: a, end: a}", "both start and end"),
        ("exposure: always", "neither bag nor a field"),
        ("columns: {succes: /x}", "unknown column 'succes'"),
        ("columns: {success: 'a b'}", "columns.success.field: is no field"),
        ("columns: {success: {field: /x, tkae: last}}", "unknown key 'tkae'; did you mean 'take'"),
        ("columns: {success: {field: /x, take: mean}}", "success is not a number"),
        ("columns: {duration_s: {field: /x, unit: kg}}", "unknown unit 'kg'"),
        ("columns: {trace_uri: /x}", "unknown column 'trace_uri'"),
        ("success_quality: 2", "success_quality: must be less than or equal to 1"),
        ("constants: {task: push, side: real}", "says nothing about 'policy'"),
        ("columns: {operator: /x}", "must say where success, end_reason or quality"),
        ("constants: [task]", "must be a mapping"),
    ],
)
def test_a_wrong_map_is_refused_at_its_place(bring, tmp_path, text, message):
    key = text.partition(":")[0]
    lines = [line for line in MAP.strip().splitlines() if not line.startswith(f"{key}:")]
    with pytest.raises(InputError, match=message) as caught:
        bring(tmp_path, topics="\n".join([*lines, text]))
    assert str(caught.value).startswith(f"{tmp_path / 'map.yaml'}: ")


TEXT = b"this is a text, and no recording of anything"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none", None, "there is no such bag"),
        ("hollow/notes", TEXT, "hollow: holds no bags"),
        ("x.txt", b"x", "is not a bag"),
        ("zero.mcap", b"", r"zero\.mcap: is empty; leave it out"),
        ("text.mcap", TEXT, "is not an MCAP file"),
        ("text.db3", TEXT, r"text\.db3: is not a database: it begins with"),
    ],
)
def test_a_file_that_is_no_bag_is_named(bring, tmp_path, name, content, message):
    file = tmp_path / name
    if content is not None:
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)
    with pytest.raises(InputError, match=message):
        bring(tmp_path / name.partition("/")[0])
    assert not (tmp_path / "out").exists()


def test_an_empty_bag_among_others_is_named(bag, bring):
    with pytest.raises(InputError, match="act-1: holds no messages; leave it out"):
        bring(bag(), bag("act-1", [("/result", RESULT, [])]))


def test_a_bag_is_imported_once(bag, bring, tmp_path):
    source = bag()
    with pytest.raises(InputError, match="pi0-7: is named twice"):
        bring(source, tmp_path / "bags")
    shutil.copytree(source, tmp_path / "copy")
    with pytest.raises(InputError, match=r"copy: holds the same messages as .*pi0-7"):
        bring(source, tmp_path / "copy")


def test_a_damaged_bag_is_refused(bring, tmp_path):
    path = bare_mcap(tmp_path / "pi0-3.mcap", full())
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"pi0-3\.mcap: cannot be read as a bag: .*; restore it"):
        bring(path, topics=FULL)


def test_a_damaged_database_is_refused(bag, bring):
    source = bag(topics=full(), storage="sqlite3")
    (path,) = source.glob("*.db3")
    cut(path, path.stat().st_size // 2)
    with pytest.raises(InputError, match=r"pi0-7\.db3: cannot be read as a bag: .*; restore it"):
        bring(source, topics=FULL)


def test_a_database_with_a_pending_log_is_refused(bag, bring):
    source = bag(storage="sqlite3")
    (path,) = source.glob("*.db3")
    with sqlite3.connect(path) as base:
        base.execute("PRAGMA journal_mode=WAL")
        base.execute("CREATE TABLE more (x)")
        base.commit()
        with pytest.raises(InputError, match=r"newest messages are in .*wal_checkpoint"):
            bring(source)
    base.close()


def test_a_missing_part_of_a_bag_is_named(bag, bring):
    source = bag()
    (source / "pi0-7.mcap").unlink()
    with pytest.raises(
        InputError, match=r"pi0-7: metadata\.yaml names pi0-7\.mcap, which is missing"
    ):
        bring(source)


def test_an_output_that_exists_is_refused_and_kept(bag, bring, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("mine")
    with pytest.raises(TrialDirectoryError, match="exists already and is not empty"):
        bring(bag())
    assert (tmp_path / "out" / "mine").read_text() == "mine"


def test_a_failed_import_leaves_nothing(bag, bring, tmp_path):
    bag("act-1")
    bag("act-2", simple(success=False))
    bad = tmp_path / "bags" / "act-3"
    bag("act-3", [("/other", BOOL, [(0, truth(data=True))])])
    with pytest.raises(RoboEvalError, match="act-3"):
        bring(tmp_path / "bags")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bags", "map.yaml"]
    shutil.rmtree(bad)
    assert bring(tmp_path / "bags").episodes == 2
