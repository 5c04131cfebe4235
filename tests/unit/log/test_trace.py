"""Traces hold every number, in messages that standard ROS 2 tools read."""

import hashlib
import os
import struct
from dataclasses import replace

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap.writer import Writer
from mcap_ros2.decoder import DecoderFactory
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from robo_eval.core.errors import InputError, ShapeError, TrialDirectoryError
from robo_eval.log.mcap_file import CHUNK_BYTES, MAGIC
from robo_eval.log.ros_schemas import DEFINITIONS, full_name, schema_text
from robo_eval.log.trace import TOPICS, read_trace, write_trace
from robo_eval.log.trace_reader import _check_sums

EVENTS = [
    (160_000_000, {"event": "end", "end_reason": "failure"}),
    (0, {"event": "start", "seed": 7}),
    (30_000_000, {"event": "clamped", "requested": 1.5, "applied": 1.0}),
]
METADATA = {"episode_id": "e0", "seed": "7", "policy": "ünit"}
ARRAYS = (
    "stamp_ns", "joint_position", "joint_velocity", "pose_world_frame", "actions", "rewards",
    "observations",
)  # fmt: skip


def assert_same(trace, given) -> None:
    for name in ARRAYS:
        read, written = getattr(trace, name), getattr(given, name)
        assert read.dtype == written.dtype, name
        assert read.shape == written.shape, name
        assert read.tobytes() == written.tobytes(), name
    for name in ("joint_names", "frames", "robot_description"):
        assert getattr(trace, name) == getattr(given, name)


def stamp(header) -> int:
    return header.stamp.sec * 10**9 + header.stamp.nanosec


def check_messages(messages, trajectory) -> dict[str, int]:
    """Compare (topic, time, message) with the trajectory; returns counts by topic."""
    counts = dict.fromkeys(TOPICS, 0)
    for topic, time_ns, message in messages:
        k = counts[topic]
        counts[topic] += 1
        if topic in ("/robot_description", "/episode/event"):
            continue
        assert time_ns == trajectory.stamp_ns[k + (topic == "/reward")]
        if topic == "/joint_states":
            assert stamp(message.header) == time_ns
            assert tuple(message.name) == trajectory.joint_names
            np.testing.assert_array_equal(message.position, trajectory.joint_position[k])
            np.testing.assert_array_equal(message.velocity, trajectory.joint_velocity[k])
            assert len(message.effort) == 0
        elif topic == "/tf":
            present = np.isfinite(trajectory.pose_world_frame[k]).all(axis=1)
            assert [t.child_frame_id for t in message.transforms] == [
                name for name, there in zip(trajectory.frames, present, strict=True) if there
            ]
            for item, pose in zip(
                message.transforms, trajectory.pose_world_frame[k][present], strict=True
            ):
                p, q = item.transform.translation, item.transform.rotation
                assert item.header.frame_id == "world"
                assert stamp(item.header) == time_ns
                assert [p.x, p.y, p.z, q.x, q.y, q.z, q.w] == pose.tolist()
        elif topic == "/reward":
            assert message.data == trajectory.rewards[k]
        else:
            array = {"/action": trajectory.actions, "/observation": trajectory.observations}[topic]
            assert len(message.layout.dim) == 0
            np.testing.assert_array_equal(message.data, array[k])
    return counts


def expected_counts(n: int) -> dict[str, int]:
    return {
        "/joint_states": n, "/tf": n, "/observation": n, "/reward": n - 1, "/action": n - 1,
        "/robot_description": 1, "/episode/event": 3,
    }  # fmt: skip


@pytest.fixture
def path(tmp_path):
    return tmp_path / "e0.mcap"


def test_read_back_is_what_was_written(path, make_trajectory):
    given = make_trajectory()
    digest = write_trace(path, given, events=EVENTS, metadata=METADATA)
    assert digest == hashlib.sha256(path.read_bytes()).hexdigest()
    trace = read_trace(path)
    assert_same(trace, given)
    assert trace.events == tuple(sorted(EVENTS, key=lambda event: event[0]))
    assert trace.metadata == METADATA
    assert [file.name for file in path.parent.iterdir()] == ["e0.mcap"]


def test_the_mcap_library_reads_every_number(path, make_trajectory):
    given = make_trajectory()
    write_trace(path, given, events=EVENTS, metadata=METADATA)
    with path.open("rb") as file:
        reader = make_reader(file, validate_crcs=True, decoder_factories=[DecoderFactory()])
        assert reader.get_header().profile == "ros2"
        decoded = [
            (item.channel.topic, item.message.log_time, item.decoded_message)
            for item in reader.iter_decoded_messages()
        ]
        counts = check_messages(decoded, given)
        assert counts == expected_counts(len(given.stamp_ns))
        summary = reader.get_summary()
        assert summary.statistics.message_count == sum(counts.values())
        by_topic = {
            summary.channels[i].topic: count
            for i, count in summary.statistics.channel_message_counts.items()
        }
        assert by_topic == counts
        for channel in summary.channels.values():
            schema = summary.schemas[channel.schema_id]
            assert (channel.message_encoding, schema.encoding) == ("cdr", "ros2msg")
            assert schema.name == full_name(TOPICS[channel.topic])
        times = [time for _, time, _ in decoded]
        assert times == sorted(times)
        metadata = {record.name: record.metadata for record in reader.iter_metadata()}
        assert metadata["robo_eval.episode"] == METADATA


def test_messages_are_found_by_topic_and_time(path, make_trajectory):
    given = make_trajectory(n=50)
    write_trace(path, given)
    with path.open("rb") as file:
        reader = make_reader(file)
        found = list(
            reader.iter_messages(
                topics=["/reward"], starting_at=200_000_000, ending_before=300_000_000
            )
        )
    assert [message.log_time for _, _, message in found] == [
        200_000_000, 220_000_000, 240_000_000, 260_000_000, 280_000_000,
    ]  # fmt: skip


def test_rosbags_reads_every_number(path, make_trajectory):
    given = make_trajectory()
    write_trace(path, given, events=EVENTS, metadata=METADATA)
    with AnyReader([path]) as reader:
        messages = [
            (connection.topic, time, reader.deserialize(raw, connection.msgtype))
            for connection, time, raw in reader.messages()
        ]
    assert check_messages(messages, given) == expected_counts(len(given.stamp_ns))
    texts = [message.data for topic, _, message in messages if topic == "/robot_description"]
    assert texts == ["<robot name='ünit'/>"]


@pytest.mark.parametrize("short", sorted(DEFINITIONS))
def test_definitions_are_the_standard_ones(short):
    store = get_typestore(Stores.ROS2_JAZZY)
    ours = get_types_from_msg(DEFINITIONS[short], full_name(short))
    assert ours[full_name(short)] == store.fielddefs[full_name(short)]


@pytest.mark.parametrize("short", sorted(set(TOPICS.values())))
def test_schema_texts_have_the_standard_type_hash(short):
    standard = get_typestore(Stores.ROS2_JAZZY)
    from_text = get_typestore(Stores.EMPTY)
    from_text.register(get_types_from_msg(schema_text(short), full_name(short)))
    digest = from_text.hash_rihs01(full_name(short))
    assert digest.startswith("RIHS01_")
    assert digest == standard.hash_rihs01(full_name(short))


def test_the_same_episode_gives_the_same_bytes(tmp_path, make_trajectory):
    digests = {
        write_trace(tmp_path / f"{i}.mcap", make_trajectory(), events=EVENTS, metadata=metadata)
        for i, metadata in enumerate([METADATA, dict(reversed(METADATA.items()))])
    }
    assert len(digests) == 1
    other = write_trace(tmp_path / "other.mcap", make_trajectory(seed=1), events=EVENTS)
    assert other not in digests


@pytest.mark.parametrize(
    "shape",
    [
        {"n": 1}, {"n": 2}, {"joints": 0}, {"frames": 0}, {"frames": 1}, {"width": 0},
        {"joints": 0, "frames": 0, "width": 0, "n": 1}, {"n": 400, "frames": 12, "width": 276},
    ],
    ids=str,
)  # fmt: skip
def test_any_shape_comes_back(path, make_trajectory, shape):
    given = make_trajectory(**shape)
    write_trace(path, given)
    assert_same(read_trace(path), given)


def test_frames_may_come_and_go_at_every_tick(path, make_trajectory):
    given = make_trajectory(n=60, frames=6)
    gone = np.random.default_rng(3).random((60, 6)) < 0.5
    given.pose_world_frame[gone] = np.nan
    write_trace(path, given)
    assert_same(read_trace(path), given)


def test_long_episodes_are_cut_into_chunks(path, make_trajectory):
    given = make_trajectory(n=3000, width=200)
    write_trace(path, given, events=EVENTS)
    with path.open("rb") as file:
        summary = make_reader(file).get_summary()
    assert len(summary.chunk_indexes) > 3
    assert max(index.uncompressed_size for index in summary.chunk_indexes) < 2 * CHUNK_BYTES
    assert_same(read_trace(path), given)
    with AnyReader([path]) as reader:
        assert reader.message_count == 5 * 3000 - 2 + 1 + 3


def test_no_description_is_no_message(path, make_trajectory):
    write_trace(path, replace(make_trajectory(), robot_description=""))
    assert read_trace(path).robot_description == ""


WRONG = {
    "actions": lambda t: replace(t, actions=t.actions[:-1]),
    "rewards": lambda t: replace(t, rewards=t.rewards[:, None]),
    "observations": lambda t: replace(t, observations=t.observations[1:]),
    "joint_position": lambda t: replace(t, joint_position=t.joint_position[:, :1]),
    "joint_velocity": lambda t: replace(t, joint_velocity=t.joint_velocity[0]),
    "pose_world_frame": lambda t: replace(t, pose_world_frame=t.pose_world_frame[:, :, :6]),
    "pose_world_frame is finite": lambda t: replace(
        t, pose_world_frame=np.where(np.arange(7) == 3, np.nan, t.pose_world_frame)
    ),
    "stamp_ns must increase": lambda t: replace(t, stamp_ns=t.stamp_ns[::-1]),
    "stamp_ns has shape": lambda t: replace(t, stamp_ns=t.stamp_ns[:0]),
    "names": lambda t: replace(t, frames=("a", "a", "b", "c")),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_shapes_are_named(path, make_trajectory, name):
    with pytest.raises(ShapeError, match=rf"e0\.mcap: {name}"):
        write_trace(path, WRONG[name](make_trajectory()))
    assert not path.exists()


def test_events_must_be_json_and_within_the_episode(path, make_trajectory):
    with pytest.raises(InputError, match="canonical"):
        write_trace(path, make_trajectory(), events=[(0, {"x": float("nan")})])
    with pytest.raises(InputError, match="times start at 0"):
        write_trace(path, make_trajectory(), events=[(-1, {})])
    assert not path.exists()


def test_an_unwritable_place_is_named(tmp_path, make_trajectory):
    with pytest.raises(TrialDirectoryError, match=r"no/e0\.mcap: cannot be written"):
        write_trace(tmp_path / "no/e0.mcap", make_trajectory())


def test_a_rewritten_trace_replaces_the_old_one(path, make_trajectory):
    write_trace(path, make_trajectory(seed=1), durable=True)
    write_trace(path, make_trajectory(seed=2), durable=True)
    assert_same(read_trace(path), make_trajectory(seed=2))


def test_a_trace_cut_anywhere_is_refused(path, make_trajectory):
    write_trace(path, make_trajectory(n=3), events=EVENTS[:1])
    data = path.read_bytes()
    for length in range(0, len(data), 7):
        path.write_bytes(data[:length])
        with pytest.raises(TrialDirectoryError, match=r"e0\.mcap: "):
            read_trace(path)


def test_a_trace_with_any_changed_byte_is_refused(path, make_trajectory):
    write_trace(path, make_trajectory(n=3), events=EVENTS[:1], metadata=METADATA)
    data = path.read_bytes()
    assert _check_sums(data)
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 0x40
        if not changed.startswith(MAGIC):
            continue
        with pytest.raises((ValueError, struct.error)):
            _check_sums(bytes(changed))
    for at in range(0, len(data), 50):
        changed = bytearray(data)
        changed[at] ^= 0x01
        path.write_bytes(changed)
        with pytest.raises(TrialDirectoryError, match=r"e0\.mcap: is "):
            read_trace(path)


def test_foreign_files_are_named(path):
    with pytest.raises(TrialDirectoryError, match="No such file"):
        read_trace(path)
    path.write_bytes(os.urandom(5000))
    with pytest.raises(TrialDirectoryError, match="is not an MCAP file"):
        read_trace(path)
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start(profile="ros2")
        writer.finish()
    with pytest.raises(TrialDirectoryError, match="MCAP file of another program"):
        read_trace(path)
    with path.open("wb") as file:
        writer = Writer(file, enable_data_crcs=True)
        writer.start(profile="ros2")
        writer.add_metadata("robo_eval.layout", {"form": "99"})
        writer.finish()
    with pytest.raises(TrialDirectoryError, match="form 99, which is newer"):
        read_trace(path)
