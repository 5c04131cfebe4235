"""Only what a map names must be readable; what is not is named with its type and a remedy."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from mcap.reader import make_reader
from mcap.writer import Writer
from rosbags.typesys import Stores, get_typestore

from robo_eval.core.errors import InputError
from robo_eval.log.bag_importer import import_bags
from robo_eval.log.store import EpisodeStore

STORE = get_typestore(Stores.ROS2_HUMBLE)
START = 1_772_361_000_000_000_000
S = 10**9
BOOL, FLOAT, RESULT = "std_msgs/msg/Bool", "std_msgs/msg/Float64", "lab_msgs/msg/Result"
CDR = b"\x00\x01\x00\x00"
TRUE = CDR + b"\x01"
RULE = "=" * 80
IDL = f"""{RULE}
IDL: %s
// generated from rosidl
#include "builtin_interfaces/msg/Time.idl"
module %s {{ module msg {{
  @verbatim (language="comment", text="a" "b")
  struct %s {{ %s }};
}}; }};
"""

# (topic, type, encoding of the schema, its text, encoding of the messages, messages)
Channel = tuple[str, str, str, str | bytes, str, list[bytes]]
FINE: Channel = ("/success", BOOL, "ros2msg", "bool data\n", "cdr", [TRUE])


def write(path: Path, *channels: Channel) -> Path:
    with path.open("wb") as out:
        writer = Writer(out)
        writer.start(profile="ros2", library="test")
        for topic, kind, form, text, encoding, messages in channels:
            data = text.encode() if isinstance(text, str) else text
            schema = writer.register_schema(kind, form, data) if kind else 0
            channel = writer.register_channel(topic, encoding, schema)
            for number, message in enumerate(messages):
                stamp = START + number * S
                writer.add_message(channel, stamp, message, stamp)
        writer.finish()
    return path


@pytest.fixture
def bring(tmp_path):
    def run(*channels: Channel, success: str = "/success", more: str = ""):
        (tmp_path / "map.yaml").write_text(
            "constants: {task: push, side: sim, policy: pi0}\n"
            f"columns: {{success: {success}{more}}}\n"
        )
        file = write(tmp_path / "run.mcap", *channels)
        done = import_bags([file], tmp_path / "map.yaml", tmp_path / "out")
        with EpisodeStore(done.trial.path, durable=False, read_only=True) as store:
            (episode,) = store.episodes()
        return episode

    return run


BAD: dict[str, tuple[str, str, str | bytes, str]] = {
    "service event": ("lab/srv/Add_Event", "ros2msg", "int64 a\n---\nint64 b\n", "cdr"),
    "json": ("note", "jsonschema", '{"type": "object"}', "json"),
    "no schema": ("", "", "", "json"),
    "protobuf": ("foxglove.Log", "protobuf", b"\x0a\x00", "protobuf"),
    "no package": ("Metadata", "", "", "cdr"),
    "no text": ("lab_msgs/action/Fib_FeedbackMessage", "ros2msg", "", "cdr"),
    "bare name": ("lab_msgs/msg/Cloud", "ros2msg", "lab_msgs/msg/Cloud", "cdr"),
    "missing part": ("lab_msgs/msg/A", "ros2msg", "lab_msgs/B b\n", "cdr"),
    "no text at all": ("lab_msgs/msg/A", "ros2msg", b"\xff\xfe\x00", "cdr"),
    "itself": ("lab_msgs/msg/A", "ros2msg", "lab_msgs/A[] a\n%\n", "cdr"),
    "ros 1": ("std_msgs/String", "ros1msg", "string data\n", "ros1"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_the_map_does_not_name_may_be_unreadable(bring, case):
    assert bring(("/other", *BAD[case], [bytes(8)]), FINE).success is True


@pytest.mark.parametrize("case", BAD)
def test_what_the_map_names_is_refused_with_its_type_and_a_remedy(bring, case):
    kind, _, _, encoding = BAD[case]
    with pytest.raises(InputError) as caught:
        bring(("/other", *BAD[case], [bytes(8)]), FINE, success="/other")
    said = str(caught.value)
    assert (
        f"columns.success of the topic map: topic /other{f' of type {kind}' if kind else ''}"
        in (said.replace("std_msgs/msg/String", "std_msgs/String"))
    )
    assert "map another topic" in said or f"{encoding}, and only cdr is read; write it" in said
    assert "restore" not in said
    assert "damaged" not in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("kind", "form", "text"),
    [
        (BOOL, "ros2msg", ""),
        (BOOL, "", ""),
        (BOOL, "ros2msg", BOOL),
        (BOOL, "ros2msg", "# what it holds\nbool data true\n"),
        (BOOL, "ros2idl", IDL % (BOOL, "std_msgs", "Bool", "boolean data;")),
        (BOOL, "omgidl", "module std_msgs { module msg { struct Bool { boolean data; }; }; };"),
        ("std_msgs/Bool", "ros2msg", "bool data\n"),
        ("std_msgs/Bool", "ros1msg", "bool data\n"),
    ],
)
def test_a_standard_type_is_read_with_any_definition_or_none(bring, kind, form, text):
    assert bring(("/success", kind, form, text, "cdr", [TRUE])).success is True


def test_an_encoding_that_was_left_empty_is_that_of_ros_2(bring):
    assert bring(("/success", BOOL, "ros2msg", "bool data\n", "", [TRUE])).success is True


def test_standard_parts_of_a_type_of_a_lab_need_no_definition(bring):
    text = "bool success\nstd_msgs/Header header\n"
    message = CDR + b"\x01\0\0\0" + bytes(8) + struct.pack("<I", 2) + b"w\0"
    channel = ("/result", RESULT, "ros2msg", text, "cdr", [message])
    assert bring(channel, success="/result.success").success is True


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (RESULT, "# of Windows\r\n\r\nbool success # yes\r\nint32 LIMIT=5\r\n"),
        (RESULT, "\ufeff\tbool\tsuccess"),
        (RESULT, f"Sub sub\n{RULE}\nMSG: lab_msgs/Sub\nbool success\n"),
        ("lab_msgs/srv/Try_Request", "bool success\n"),
        ("lab_msgs/action/Try_Feedback", "bool success\n"),
        ("Result", "bool success\n"),
    ],
)
def test_a_type_of_a_lab_may_be_written_and_called_as_it_likes(bring, kind, text):
    channel = ("/result", kind, "ros2msg", text, "cdr", [TRUE])
    field = "/result.sub.success" if "sub" in text else "/result.success"
    assert bring(channel, success=field).success is True


def test_the_name_of_a_type_is_not_run_as_code(bring, tmp_path):
    mark = tmp_path / "mark"
    kind = f"A: pass\nopen({str(mark)!r}, 'w')\nclass B"
    channel = ("/result", kind, "ros2msg", "bool success\n", "cdr", [TRUE])
    with pytest.raises(InputError, match="its name is none") as caught:
        bring(channel, success="/result.success")
    assert "\n" not in str(caught.value)
    assert not mark.exists()


def test_a_field_may_have_a_name_that_python_keeps(bring):
    channel = ("/result", RESULT, "ros2msg", "bool pass\n", "cdr", [TRUE])
    assert bring(channel, success="/result.pass").success is True


# Wide texts: each middleware has its own way ---------------------------------------------------


def wide(text: str, way: str) -> bytes:
    data = text.encode("utf-32-le" if way == "words" else "utf-16-le")
    return struct.pack("<I", len(data) if way == "bytes" else len(text)) + data


@pytest.mark.parametrize("is_padded", [True, False])
@pytest.mark.parametrize("way", ["halves", "words", "bytes"])
@pytest.mark.parametrize("text", ["a", "ok", "abc", "grün"])
def test_a_wide_text_is_a_text(bring, text, way, is_padded):
    body = wide(text, way) + b"\x01"
    body += bytes(-len(body) % 4) if is_padded else b""
    definition = "wstring note\nbool success\n"
    episode = bring(
        ("/result", RESULT, "ros2msg", definition, "cdr", [CDR + body]),
        success="/result.success",
        more=", operator: /result.note",
    )
    assert (episode.success, episode.operator) == (True, text)


WIDE_FIELDS = "wstring<9> note; sequence<wstring> more; boolean success;"


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("ros2msg", 'wstring<=9 note "-"\nwstring[] more\nbool success\n'),
        (
            "ros2idl",
            IDL % (RESULT, "lab_msgs", "Result", WIDE_FIELDS),
        ),
    ],
)  # fmt: skip
def test_wide_texts_may_be_bounded_and_many(bring, form, text):
    body = wide("by", "halves") + struct.pack("<I", 1) + wide("hand", "halves") + b"\x01"
    episode = bring(
        ("/result", RESULT, form, text, "cdr", [CDR + body]),
        success="/result.success",
        more=", operator: '/result.more[0]'",
    )
    assert (episode.success, episode.operator) == (True, "hand")


# Two of one name -------------------------------------------------------------------------------

OTHER: Channel = ("/success", FLOAT, "ros2msg", "float64 data\n", "cdr", [CDR + bytes(8)])


def test_two_types_on_one_topic_are_refused_if_the_map_names_it(bring):
    with pytest.raises(
        InputError, match=r"topic /success has messages of the types .*/Bool, .*/Float64; map"
    ):
        bring(FINE, OTHER)
    assert bring(FINE, OTHER, ("/ok", *FINE[1:]), success="/ok").success is True


def test_one_type_that_is_defined_in_two_ways_is_refused(bring):
    channel = ("/success", BOOL, "ros2msg", "bool other\n", "cdr", [TRUE])
    with pytest.raises(InputError, match=r"topic /success: std_msgs/msg/Bool is defined twice"):
        bring(FINE, channel)


def test_two_publishers_with_one_definition_are_read(bring):
    false = ("/success", BOOL, "ros2msg", "bool data # of the other\n", "cdr", [TRUE, CDR + b"\0"])
    assert bring(FINE, false).success is False


# Messages --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (b"\0\0\0\0\x01", None),
        (b"\0\x07\0\0\x01", r"begins with 00070000, which is not the plain CDR of ROS 2; convert"),
        (CDR, r"cannot be read as std_msgs/msg/Bool: .*it is damaged, or the definition"),
        (CDR + bytes(40), r"it has 44 bytes, and the definition says 5"),
    ],
)
def test_a_message_is_read_or_named(bring, message, said):
    channel = ("/success", BOOL, "ros2msg", "bool data\n", "cdr", [message])
    if said is None:
        assert bring(channel).success is True
        return
    with pytest.raises(InputError, match=rf"topic /success: the message at {START} ns .*{said}"):
        bring(channel)


# Standard messages of other releases, without a definition ---------------------------------------

RANGE, SPLIT = "sensor_msgs/msg/Range", "rosbag2_interfaces/msg/WriteSplitEvent"


def standard(release: str, kind: str, **values) -> bytes:
    """A standard message as a release of ROS 2 writes it."""
    store = get_typestore(Stores[f"ROS2_{release}"])
    if kind == RANGE:
        time = store.types["builtin_interfaces/msg/Time"](sec=1, nanosec=0)
        head = store.types["std_msgs/msg/Header"](stamp=time, frame_id="sonar")
        fixed = {"radiation_type": 0, "field_of_view": 0.1, "min_range": 0.0, "max_range": 4.0}
        values = {"header": head, **fixed, **values}
    return bytes(store.serialize_cdr(store.types[kind](**values), kind))


NEWEST = "LYRICAL" if "ROS2_LYRICAL" in Stores.__members__ else "KILTED"


@pytest.mark.parametrize(
    ("kind", "message", "field", "expected"),
    [
        (RANGE, standard("HUMBLE", RANGE, range=1.5), "range", 1.5),
        (RANGE, standard("IRON", RANGE, range=1.5, variance=0.25), "range", 1.5),
        (RANGE, standard(NEWEST, RANGE, range=1.5, variance=0.25), "variance", 0.25),
        (SPLIT, standard("HUMBLE", SPLIT, closed_file="7", opened_file=""), "closed_file", 7),
        (
            SPLIT,
            standard("JAZZY", SPLIT, closed_file="7", opened_file="", node_name="8"),
            "node_name",
            8,
        ),
        (
            "rcl_interfaces/msg/LoggerLevel",
            standard("JAZZY", "rcl_interfaces/msg/LoggerLevel", name="x", level=40),
            "level",
            40,
        ),
    ],
)
def test_a_standard_message_of_any_release_needs_no_definition(
    bring, kind, message, field, expected
):
    channel = ("/sonar", kind, "", "", "cdr", [message])
    episode = bring(channel, FINE, more=f", costs.found: /sonar.{field}")
    assert episode.costs == {"found": expected}


def test_a_standard_message_that_fits_no_release_is_named(bring):
    channel = ("/sonar", RANGE, "", "", "cdr", [standard("HUMBLE", RANGE, range=1.0) + bytes(12)])
    with pytest.raises(
        InputError, match=r"/sonar: .* fits none of the definitions .*Range .*ros2 bag convert"
    ):
        bring(channel, FINE, more=", costs.found: /sonar.range")


# Traces ----------------------------------------------------------------------------------------


def test_the_part_of_an_episode_holds_the_messages_of_every_topic(tmp_path):
    """Also those that the map does not name and nobody here can read."""
    words = [
        CDR + struct.pack("<I", len(word) + 1) + word.encode() + b"\0" for word in ("go", "end")
    ]
    event = ("/event", "std_msgs/msg/String", "ros2msg", "string data\n", "cdr", words)
    others = [(f"/other{i}", *bad, [b"{}", b"{}"]) for i, bad in enumerate(BAD.values())]
    sonar = standard("IRON", RANGE, range=1.5, variance=0.25)
    others.append(("/sonar", RANGE, "", "", "cdr", [sonar, sonar]))
    file = write(tmp_path / "run.mcap", event, FINE, *others)
    (tmp_path / "map.yaml").write_text(
        "constants: {task: push, side: sim, policy: pi0}\n"
        "columns: {success: /success}\nepisodes: {field: /event, start: go, end: end}\n"
    )
    import_bags([file], tmp_path / "map.yaml", tmp_path / "out")

    def content(path: Path) -> list[tuple[str, str, int, bytes]]:
        with path.open("rb") as stream:
            return [
                (c.topic, c.message_encoding, m.log_time, m.data)
                for _, c, m in make_reader(stream).iter_messages()
            ]

    (trace,) = (tmp_path / "out" / "traces" / "run-001").iterdir()
    assert sorted(content(trace)) == sorted(content(file))
    # What was written without a definition has the one that fits in its trace.
    with trace.open("rb") as stream:
        schemas = make_reader(stream).get_summary().schemas.values()
    assert [b"variance" in s.data for s in schemas if s.name == RANGE] == [True]
