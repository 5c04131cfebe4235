"""The part of a trace around an event, as a file of its own."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from mcap.reader import make_reader

from robo_eval.core.canonical import file_digest
from robo_eval.core.errors import InputError, TrialDirectoryError
from robo_eval_incidents.cut import CUT_RECORD, cut_out

START_NS = 1_772_000_000 * 10**9
S = 10**9
CUT = """
import resource, sys
from pathlib import Path
from robo_eval_incidents.cut import cut_out
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
trace, out, start, end = sys.argv[1:]
try:
    cut_out(Path(trace), int(start), int(end), Path(out))
except Exception as err:
    print(type(err).__name__, err)
"""


@pytest.fixture
def bag(record, tmp_path: Path) -> Path:
    return record(
        tmp_path / "traces" / "e1",
        (0.0, "state", "READY"),
        (5.0, "state", "RUNNING"),
        (6.0, "cause", "force", "Too much.", {"episode_id": "e1"}),
        (15.0, "cause", "estop", "Pressed.", {"episode_id": "e1"}),
        (15.1, "state", "ESTOP"),
        (15.2, "event", {"event": "end"}),
    )


def contents(path: Path) -> list[tuple[str, int, int, bytes]]:
    with path.open("rb") as stream:
        return [
            (channel.topic, message.log_time - START_NS, message.publish_time - START_NS,
             message.data)
            for _, channel, message in make_reader(stream, validate_crcs=True).iter_messages()
        ]  # fmt: skip


def test_a_part_keeps_topics_definitions_and_what_held_before(bag: Path, tmp_path: Path) -> None:
    out = tmp_path / "incidents" / "i.mcap"
    cut = cut_out(bag, START_NS + 10 * S, START_NS + 20 * S, out)
    found = contents(out)
    assert (cut.sha256, cut.start_ns) == (file_digest(out), START_NS + 10 * S)
    assert list(out.parent.iterdir()) == [out]
    # What was latched comes first, logged as of the beginning, with the time it was said at.
    before = [(topic, log, said) for topic, log, said, _ in found if said < 10 * S]
    assert sorted(before) == [
        ("/arm/safety/state", 10 * S, 5 * S),
        ("/robot_description", 10 * S, 0),
        ("/tf_static", 10 * S, 0),
        ("/tf_static", 10 * S, 0),
    ]
    within = [entry for entry in found if entry[2] >= 10 * S]
    assert cut.messages == len(within)
    ticks = [data[8:].rstrip(b"\0") for topic, *_, data in within if topic == "/arm/joint_states"]
    assert ticks == [f"tick {n}".encode() for n in range(100, 201)]
    with (bag / "e1_0.mcap").open("rb") as stream:
        whole = [
            (channel.topic, message.log_time - START_NS, message.publish_time - START_NS,
             message.data)
            for _, channel, message in make_reader(stream).iter_messages(
                starting_at=START_NS + 10 * S, ending_at=START_NS + 20 * S
            )
        ]  # fmt: skip
    assert sorted(within) == sorted(whole)
    with out.open("rb") as stream:
        reader = make_reader(stream)
        summary = reader.get_summary()
        metadata = {each.name: each.metadata for each in reader.iter_metadata()}
    assert summary is not None
    assert {schema.name for schema in summary.schemas.values()} == {
        "tf2_msgs/msg/TFMessage", "std_msgs/msg/String", "diagnostic_msgs/msg/DiagnosticArray",
    }  # fmt: skip
    assert all(schema.data == b"string data\n" for schema in summary.schemas.values())
    qos = {c.topic: c.metadata["offered_qos_profiles"] for c in summary.channels.values()}
    assert "transient_local" in qos["/arm/safety/state"]
    assert "robo_eval_episode" in metadata
    assert metadata[CUT_RECORD]["trace"] == "e1"


def test_an_event_of_before_is_no_state_that_still_holds(bag: Path, tmp_path: Path) -> None:
    cut_out(bag, START_NS + 10 * S, START_NS + 20 * S, tmp_path / "i.mcap")
    causes = [e for e in contents(tmp_path / "i.mcap") if e[0] == "/arm/safety/incidents"]
    assert [said for _, _, said, _ in causes] == [15 * S]


def test_the_same_part_is_the_same_bytes(bag: Path, tmp_path: Path) -> None:
    first = cut_out(bag, START_NS, START_NS + 5 * S, tmp_path / "a.mcap")
    again = cut_out(bag, START_NS, START_NS + 5 * S, tmp_path / "b.mcap", is_named_by_digest=True)
    assert again.path == tmp_path / f"b-{again.sha256[:12]}.mcap"
    assert sorted(path.name for path in tmp_path.glob("b*")) == [again.path.name]
    assert first.sha256 == again.sha256


def test_rosbags_reads_a_part(bag: Path, tmp_path: Path) -> None:
    from rosbags.rosbag2 import Reader

    from robo_eval.log.bag_restore import restore

    out = tmp_path / "i" / "i_0.mcap"
    cut = cut_out(bag, START_NS + 10 * S, START_NS + 20 * S, out)
    restore(out.parent)  # writes the metadata rosbag2 wants beside it
    with Reader(out.parent) as reader:
        assert reader.message_count == cut.messages + 4


def test_simulated_time_is_moved_to_when_it_was(record, tmp_path: Path) -> None:
    trace = record(tmp_path / "e1", start_ns=0) / "e1_0.mcap"
    out = tmp_path / "i.mcap"
    cut = cut_out(trace, START_NS + 2 * S, START_NS + 4 * S, out, shift_ns=START_NS)
    times = [log for topic, log, *_ in contents(out) if topic == "/arm/joint_states"]
    assert (min(times), max(times)) == (2 * S, 4 * S)
    assert cut.messages == 21


def test_a_bag_of_several_files_is_cut_across_them(record, tmp_path: Path) -> None:
    folder = tmp_path / "split"
    folder.mkdir()
    for number in (0, 1):
        part = record(tmp_path / f"p{number}", start_ns=START_NS + number * 30 * S)
        (part / f"p{number}_0.mcap").rename(folder / f"split_{number}.mcap")
    cut = cut_out(folder, START_NS + 25 * S, START_NS + 35 * S, tmp_path / "i.mcap")
    times = [log for topic, log, *_ in contents(tmp_path / "i.mcap") if "joint" in topic]
    assert (min(times), max(times)) == (25 * S, 35 * S)
    assert cut.messages == 101 + 3  # with what was latched anew in the second file


def test_what_was_cut_short_is_read_as_far_as_it_goes(bag: Path, tmp_path: Path) -> None:
    path = bag / "e1_0.mcap"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    before = path.read_bytes()
    cut = cut_out(bag, START_NS, START_NS + 60 * S, tmp_path / "i.mcap")
    assert 20 < cut.messages < 300
    assert path.read_bytes() == before


def damaged(bag: Path) -> Path:
    path = bag / "e1_0.mcap"
    data = bytearray(path.read_bytes())
    data[len(data) // 3 : len(data) // 2] = bytes(len(data) // 2 - len(data) // 3)
    path.write_bytes(data)
    return bag


def emptied(bag: Path) -> Path:
    (bag / "e1_0.mcap").write_bytes(b"")
    return bag


def other_form(bag: Path) -> Path:
    for file in bag.iterdir():
        file.unlink()
    with closing(sqlite3.connect(bag / "e1_0.db3")) as database:
        database.execute("CREATE TABLE topics (id, name, type)")
        database.execute("CREATE TABLE messages (id, topic_id, timestamp, data)")
    return bag


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (damaged, "damaged"),
        (emptied, "is empty"),
        (other_form, "not stored as MCAP"),
        (lambda bag: bag.parent / "none", "is missing"),
    ],
)
def test_a_trace_that_cannot_be_used_leaves_nothing(bag, tmp_path, spoil, said) -> None:
    trace = spoil(bag)
    with pytest.raises(InputError, match=said) as caught:
        cut_out(trace, START_NS, START_NS + 30 * S, tmp_path / "out" / "i.mcap")
    assert "\n" not in str(caught.value)
    assert list(tmp_path.glob("out/*")) == []


def test_another_time_is_refused_and_an_older_file_stays(bag: Path, tmp_path: Path) -> None:
    out = tmp_path / "i.mcap"
    out.write_bytes(b"older")
    with pytest.raises(InputError, match="holds no message of the time"):
        cut_out(bag, START_NS + 900 * S, START_NS + 999 * S, out)
    assert out.read_bytes() == b"older"


def test_a_full_disk_leaves_nothing(bag: Path, tmp_path: Path) -> None:
    out = tmp_path / "out" / "i.mcap"
    done = subprocess.run(
        [sys.executable, "-c", CUT, bag, out, str(START_NS), str(START_NS + 20 * S)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.startswith(f"TrialDirectoryError {out}: cannot be written")
    assert list(out.parent.iterdir()) == []


def test_a_place_that_cannot_be_written_is_named(bag: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TrialDirectoryError, match="cannot be written"):
        cut_out(bag, START_NS, START_NS + S, tmp_path / "file" / "i.mcap")
