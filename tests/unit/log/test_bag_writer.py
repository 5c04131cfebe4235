"""What is written as a bag can be read by others, and what is left of a killed one is restored."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_typestore

from robo_eval.core.errors import InputError, TrialDirectoryError
from robo_eval.log.bag_metadata import METADATA_FILE, BagTopic
from robo_eval.log.bag_restore import Restored, restore
from robo_eval.log.bag_writer import BagWriter
from robo_eval.log.message_text import MessageTexts
from robo_eval.log.ros_schemas import full_name, schema_text
from robo_eval.log.trace_folder import trace_digest

STORE = get_typestore(Stores.ROS2_JAZZY)
QOS = {
    "history": "keep_last",
    "depth": 10,
    "reliability": "reliable",
    "durability": "volatile",
    "deadline": {"sec": 9223372036, "nsec": 854775807},
    "lifespan": {"sec": 9223372036, "nsec": 854775807},
    "liveliness": "automatic",
    "liveliness_lease_duration": {"sec": 9223372036, "nsec": 854775807},
    "avoid_ros_namespace_conventions": False,
}
HASH = "RIHS01_a13ee3a330e346c9d87b5aa18d24e11690752bd33a0350f11c5882bc9179260e"
START = {"schema_version": 1, "event": "start", "episode_id": "e1", "uri": "traces/e1", "seed": 7}
SECOND = 1_000_000_000


def topic(name: str, short: str, **more) -> BagTopic:
    return BagTopic(
        name=name, type=full_name(short), text=schema_text(short), offered_qos=(QOS,), **more
    )


TOPICS = [
    topic("/r/joint_states", "sensor_msgs/JointState", type_hash=HASH),
    topic("/r/commands", "std_msgs/Float64MultiArray"),
    topic("/r/silent", "std_msgs/String"),
]


def joint_state(number: int) -> bytes:
    types = STORE.types
    time = types["builtin_interfaces/msg/Time"](sec=number, nanosec=5)
    header = types["std_msgs/msg/Header"](stamp=time, frame_id="")
    values = np.array([number, number + 0.5])
    made = types["sensor_msgs/msg/JointState"](
        header=header, name=["a", "b"], position=values, velocity=values, effort=values
    )
    return bytes(STORE.serialize_cdr(made, "sensor_msgs/msg/JointState"))


def command(number: int) -> bytes:
    types = STORE.types
    layout = types["std_msgs/msg/MultiArrayLayout"](dim=[], data_offset=0)
    made = types["std_msgs/msg/Float64MultiArray"](layout=layout, data=np.array([float(number)]))
    return bytes(STORE.serialize_cdr(made, "std_msgs/msg/Float64MultiArray"))


def fill(writer: BagWriter, count: int) -> None:
    for number in range(count):
        name, data = (
            (TOPICS[0].name, joint_state(number))
            if number % 2
            else (TOPICS[1].name, command(number))
        )
        writer.write(
            name,
            data,
            received_ns=SECOND + number * 1000,
            published_ns=SECOND + number * 1000 - 10,
            sequence=number + 1,
        )


def write_bag(folder: Path, count: int = 400, chunk_bytes: int = 2048) -> Path:
    writer = BagWriter(folder, TOPICS, chunk_bytes=chunk_bytes, start=START)
    fill(writer, count)
    writer.close({"event": "end", "outcome": "success"})
    return folder


def by_mcap(folder: Path) -> list[tuple[str, int, float]]:
    (path,) = folder.glob("*.mcap")
    with path.open("rb") as file:
        reader = make_reader(file, validate_crcs=True, decoder_factories=[DecoderFactory()])
        return [
            (
                channel.topic,
                message.log_time,
                next(iter(getattr(ros, "position", None) or ros.data)),
            )
            for _, channel, message, ros in reader.iter_decoded_messages()
        ]


def by_rosbags(folder: Path) -> list[tuple[str, int, float]]:
    found = []
    with AnyReader([folder]) as reader:
        for connection, stamp, raw in reader.messages():
            made = reader.deserialize(raw, connection.msgtype)
            values = getattr(made, "position", None)
            found.append(
                (connection.topic, stamp, float((made.data if values is None else values)[0]))
            )
    return found


def test_two_libraries_read_the_same_values(tmp_path):
    folder = write_bag(tmp_path / "traces" / "e1")
    assert sorted(path.name for path in folder.iterdir()) == ["e1_0.mcap", METADATA_FILE]
    expected = [
        (TOPICS[0 if number % 2 else 1].name, SECOND + number * 1000, float(number))
        for number in range(400)
    ]
    assert by_mcap(folder) == expected
    assert by_rosbags(folder) == expected


def test_metadata_and_records_say_what_the_bag_is(tmp_path):
    folder = write_bag(tmp_path / "e1")
    with AnyReader([folder]) as reader:
        counts = {c.topic: c.msgcount for c in reader.connections}
        (joints,) = (c for c in reader.connections if c.topic == "/r/joint_states")
        assert counts == {"/r/joint_states": 200, "/r/commands": 200, "/r/silent": 0}
        assert joints.msgtype == "sensor_msgs/msg/JointState"
        assert joints.ext.offered_qos_profiles[0].depth == 10
        assert (reader.start_time, reader.end_time) == (SECOND, SECOND + 399_001)
    with (folder / "e1_0.mcap").open("rb") as file:
        records = {r.name: r.metadata for r in make_reader(file).iter_metadata()}
    assert records["robo_eval_episode"] | {"event_json": ""} == {
        "schema_version": "1",
        "event": "start",
        "episode_id": "e1",
        "uri": "traces/e1",
        "seed": "7",
        "event_json": "",
    }
    assert json.loads(records["robo_eval_end"]["event_json"])["outcome"] == "success"


def test_publish_times_and_numbers_are_kept(tmp_path):
    folder = write_bag(tmp_path / "e1", count=3)
    with (folder / "e1_0.mcap").open("rb") as file:
        found = [(m.publish_time, m.sequence) for _, _, m in make_reader(file).iter_messages()]
    assert found == [(SECOND - 10, 1), (SECOND + 990, 2), (SECOND + 1990, 3)]


def test_a_bag_without_messages_is_sound(tmp_path):
    folder = write_bag(tmp_path / "e1", count=0)
    assert by_mcap(folder) == []
    assert restore(folder).was_complete


def test_an_existing_folder_is_refused(tmp_path):
    (tmp_path / "e1").mkdir()
    with pytest.raises(InputError, match=r"e1: exists already"):
        write_bag(tmp_path / "e1")
    assert list((tmp_path / "e1").iterdir()) == []


# Restoring -------------------------------------------------------------------------------------


def test_a_complete_bag_is_left_as_it_is(tmp_path):
    folder = write_bag(tmp_path / "e1")
    before = trace_digest(folder)
    end = {"event": "end", "outcome": "success"}
    assert restore(folder) == Restored(messages=400, was_complete=True, start=START, end=end)
    assert trace_digest(folder) == before


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import test_bag_writer as t
writer = t.BagWriter(Path(sys.argv[1]), t.TOPICS, chunk_bytes=2048, start=t.START)
t.fill(writer, 777)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_writer_left_is_restored_up_to_the_last_chunk(tmp_path):
    folder = tmp_path / "e1"
    here = str(Path(__file__).parent)
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder), here], timeout=240)
    assert done.returncode == -signal.SIGKILL
    found = restore(folder)
    assert not found.was_complete
    assert (found.start, found.end) == (START, None)
    # A message is about 130 bytes, so a chunk holds some 15 of them.
    assert 777 - 25 <= found.messages < 777
    assert by_mcap(folder) == by_rosbags(folder)
    assert [value for _, _, value in by_mcap(folder)] == list(range(found.messages))
    assert sorted(path.name for path in folder.iterdir()) == ["e1_0.mcap", METADATA_FILE]
    before = trace_digest(folder)
    assert restore(folder) == found
    assert trace_digest(folder) == before


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = write_bag(tmp_path_factory.mktemp("whole") / "bag", count=150, chunk_bytes=1024)
    return (folder / "bag_0.mcap").read_bytes(), (folder / METADATA_FILE).read_bytes()


@settings(max_examples=40, deadline=None)
@given(data=st.data(), has_metadata=st.booleans())
def test_a_bag_cut_anywhere_is_refused_or_restored_to_a_prefix(
    whole, tmp_path_factory, data, has_metadata
):
    content, metadata = whole
    size = data.draw(st.integers(0, len(content)))
    folder = tmp_path_factory.mktemp("cut") / "bag"
    folder.mkdir()
    (folder / "bag_0.mcap").write_bytes(content[:size])
    if has_metadata:
        (folder / METADATA_FILE).write_bytes(metadata)
    try:
        found = restore(folder)
    except InputError:
        assert (folder / "bag_0.mcap").read_bytes() == content[:size]
        assert not list(folder.glob(".*"))
        return
    assert found.start == START
    assert found.was_complete == (size == len(content))
    values = [value for _, _, value in by_rosbags(folder)]
    assert values == list(range(found.messages))
    assert restore(folder) == found


def test_metadata_that_is_missing_or_of_another_file_is_written_again(tmp_path):
    folder = write_bag(tmp_path / "e1")
    before = (folder / METADATA_FILE).read_bytes()
    for damage in (b"", b"rosbag2_bagfile_information: {}\n", b"{", None):
        if damage is None:
            (folder / METADATA_FILE).unlink()
        else:
            (folder / METADATA_FILE).write_bytes(damage)
        assert restore(folder).was_complete
        assert (folder / METADATA_FILE).read_bytes() == before


def test_a_bag_that_is_being_written_is_not_touched(tmp_path):
    writer = BagWriter(tmp_path / "e1", TOPICS, chunk_bytes=2048, start=START)
    with pytest.raises(InputError, match="is still being written; stop the recorder"):
        restore(tmp_path / "e1")
    writer.close({"event": "end"})
    assert restore(tmp_path / "e1").was_complete


@pytest.mark.parametrize("files", [(), ("a.mcap", "b.mcap")])
def test_a_folder_that_is_no_bag_is_refused(tmp_path, files):
    for name in files:
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(InputError, match=r"holds one \.mcap file, this one holds"):
        restore(tmp_path)
    with pytest.raises(InputError, match="is not a folder"):
        restore(tmp_path / "nothing")


# A full disk -----------------------------------------------------------------------------------


def test_a_full_disk_keeps_what_was_written(tmp_path, monkeypatch):
    writer = BagWriter(tmp_path / "e1", TOPICS, chunk_bytes=2048, start=START)
    fill(writer, 200)
    size = writer.path.stat().st_size

    def full(descriptor: int, data: bytes) -> int:
        room = size + 100 - os.fstat(descriptor).st_size
        if room <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, data[:room])

    real = os.write
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(TrialDirectoryError, match=r"e1_0\.mcap: cannot be written: No space left"):
        fill(writer, 200)
    writer.abandon()
    monkeypatch.undo()
    assert writer.path.stat().st_size == size
    assert 180 < restore(tmp_path / "e1").messages <= 200


def test_a_disk_that_is_full_at_the_very_end_costs_only_the_metadata(tmp_path, monkeypatch):
    writer = BagWriter(tmp_path / "e1", TOPICS, chunk_bytes=2048, start=START)
    fill(writer, 100)

    def full(path: Path, text: bytes) -> None:
        raise TrialDirectoryError(f"{path}: cannot be written: No space left on device")

    monkeypatch.setattr("robo_eval.log.bag_writer.write_atomically", full)
    with pytest.raises(TrialDirectoryError, match=r"metadata\.yaml: cannot be written"):
        writer.close({"event": "end"})
    # Its number may belong to another file by now, which must not be cut.
    other = os.open(tmp_path / "other", os.O_RDWR | os.O_CREAT)
    os.write(other, b"12345678" * 10_000)
    writer.abandon()
    assert os.fstat(other).st_size == 80_000
    os.close(other)
    assert restore(tmp_path / "e1").was_complete
    assert len(by_rosbags(tmp_path / "e1")) == 100


def test_a_disk_that_is_full_from_the_start_leaves_nothing(tmp_path, monkeypatch):
    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(TrialDirectoryError, match="No space left"):
        BagWriter(tmp_path / "e1", TOPICS, chunk_bytes=2048, start=START)
    assert list(tmp_path.iterdir()) == []


# Definitions -----------------------------------------------------------------------------------


@pytest.fixture
def installed(tmp_path):
    for name, text in {
        "geo_msgs/msg/Point.msg": "float64 x\nfloat64 y",
        "geo_msgs/msg/Path.msg": "# a path\nPoint[] points  # of Points\nstring<=8 name 'a/b'\n",
        "arm_msgs/msg/Plan.msg": "uint8 FAST=1\ngeo_msgs/Path[<=3] paths\ngeo_msgs/Point goal\n",
        "arm_msgs/msg/Broken.msg": "no_msgs/Thing thing\n",
    }.items():
        path = tmp_path / "share" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return MessageTexts([tmp_path])


def test_a_definition_carries_each_one_it_needs_once(installed):
    line = "=" * 80
    assert installed.text("arm_msgs/msg/Plan") == (
        "uint8 FAST=1\ngeo_msgs/Path[<=3] paths\ngeo_msgs/Point goal\n"
        f"{line}\nMSG: geo_msgs/Path\n# a path\nPoint[] points  # of Points\nstring<=8 name 'a/b'\n"
        f"{line}\nMSG: geo_msgs/Point\nfloat64 x\nfloat64 y\n"
    )
    assert installed.type_hash("arm_msgs/msg/Plan") == ""


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("arm_msgs/msg/Plam", r"arm_msgs/msg/Plam is not installed below .*arm-msgs"),
        ("arm_msgs/msg/Broken", r"no_msgs/msg/Thing is not installed"),
        ("arm_msgs/Plan", r"'arm_msgs/Plan' is not a message type; write it like"),
        ("../../msg/Plan", r"is not a message type"),
    ],
)
def test_an_unknown_type_is_refused(installed, kind, message):
    with pytest.raises(InputError, match=message):
        installed.text(kind)
