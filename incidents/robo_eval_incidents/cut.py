"""How the part of a trace around an event becomes a file of its own."""

from __future__ import annotations

import os
import re
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from mcap.opcode import Opcode
from mcap.reader import McapReader, make_reader
from mcap.records import Channel, Message, Schema
from mcap.writer import CompressionType, Writer

from robo_eval.core import door
from robo_eval.core.canonical import file_digest
from robo_eval.core.errors import InputError, said
from robo_eval.log.bag_find import find_bags
from robo_eval.log.bag_metadata import QOS_KEY, STATIC_TRANSFORMS
from robo_eval.log.bag_recover import DAMAGE, is_cut_short, recover
from robo_eval.log.files import explained, part_of, sync_folder
from robo_eval.log.mcap_file import CHUNK_BYTES

CUT_RECORD: Final = "robo_eval_cut"
"""Name of the MCAP metadata record that says what the file was cut from."""

_DIGITS: Final = 12
"""How many digits of a digest are in the name of a file."""
_RECORD: Final = struct.Struct("<BQ")
"""How a record of an MCAP file begins: opcode and length."""
_DESCRIPTION: Final = "/robot_description"
_LATCHED: Final = re.compile(r"durability:\s*(transient_local|1)\b")
_EVENTS: Final = ("safety/incidents", "episode/event")
"""Latched, but each message is of a moment: an earlier one would look like one of the window."""

Item = tuple[Schema | None, Channel, Message]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A part of a trace.

    Attributes:
        path: The file.
        sha256: Its digest.
        start_ns: First instant of it.
        end_ns: Last instant of it.
        messages: How many messages are within; what was latched before is not counted.
    """

    path: Path
    sha256: str
    start_ns: int
    end_ns: int
    messages: int


def cut_out(
    trace: Path,
    start_ns: int,
    end_ns: int,
    out: Path,
    *,
    shift_ns: int = 0,
    is_named_by_digest: bool = False,
) -> Cut:
    """Write what a trace holds between two instants to an MCAP file.

    Topics, definitions and metadata stay. What was said before and still held, such as
    `/tf_static`, `/robot_description` and other latched states, comes first, logged at `start_ns`,
    as a recorder that was started then would have it. The same trace gives the same bytes.

    Args:
        trace: An MCAP file, or a bag folder with such files. What was cut short is read up to its
            last complete chunk.
        start_ns: First instant, ns.
        end_ns: Last instant, ns.
        out: File to write or replace; its folder is made. It appears complete or not at all.
        shift_ns: Added to the times of a trace that counts from elsewhere, as simulated ones do,
            which begin at 0.
        is_named_by_digest: Whether the first digits of its SHA-256 are put at the end of the
            file's name, so that pieces of different copies of a trace do not get the same name.

    Raises:
        InputError: If the trace is missing or damaged, is not an MCAP file, or holds nothing of
            that time.
        TrialDirectoryError: If `out` cannot be written.
    """
    with sound_files(trace) as files, explained(out, "cannot be written"):
        out.parent.mkdir(parents=True, exist_ok=True)
        part = part_of(out)
        try:
            with part.open("wb") as stream:
                copy = _Copy(stream, shift_ns)
                with explained_damage(trace):
                    count = copy.write(files, start_ns - shift_ns, end_ns - shift_ns)
                if not count:
                    raise InputError(f"{trace}: holds no message of the time of the event")
                copy.finish(
                    {
                        "trace": trace.name,
                        "start_ns": str(start_ns),
                        "end_ns": str(end_ns),
                        "shift_ns": str(shift_ns),
                    }
                )
                stream.flush()
                os.fsync(stream.fileno())
            sha256 = file_digest(part)
            if is_named_by_digest:
                out = out.with_stem(f"{out.stem}-{sha256[:_DIGITS]}")
            part.replace(out)
        finally:
            part.unlink(missing_ok=True)
        sync_folder(out.parent)
    return Cut(path=out, sha256=sha256, start_ns=start_ns, end_ns=end_ns, messages=count)


@contextmanager
def sound_files(trace: Path) -> Iterator[tuple[Path, ...]]:
    """The MCAP files of a trace, in order; what was cut short is recovered for the moment.

    Raises:
        InputError: If it is missing, is not stored as MCAP, or nothing of it can be read.
    """
    if not trace.exists():
        raise InputError(f"{trace}: is missing")
    bags = find_bags([trace])
    storage = [path for bag in bags for path in bag.storage]
    if not storage or any(path.suffix != ".mcap" for path in storage):
        raise InputError(f"{trace}: is not stored as MCAP; `ros2 bag convert` makes it so")
    with tempfile.TemporaryDirectory(prefix="robo-eval-") as scratch:
        files = []
        for number, path in enumerate(storage):
            if is_cut_short(path):
                sound = Path(scratch) / f"{number}.mcap"
                recover(path, sound)
                files.append(sound)
            else:
                files.append(path)
        yield tuple(files)


def opened(path: Path) -> IO[bytes]:
    """A file of a trace.

    Raises:
        TrialDirectoryError: If it cannot be read.
    """
    with explained(path, "cannot be read"):
        return door.opened(path)


@contextmanager
def explained_damage(trace: Path) -> Iterator[None]:
    """Turn what reading a damaged trace raises into one line that names it.

    Raises:
        InputError: In place of any such error of the body.
    """
    try:
        yield
    except InputError:
        raise
    except DAMAGE as err:
        raise InputError(f"{trace}: is damaged: {said(err, named=False):.100}") from err


class _Copy:
    """An MCAP file into which parts of others go."""

    def __init__(self, stream: IO[bytes], shift_ns: int) -> None:
        self._writer = Writer(stream, chunk_size=CHUNK_BYTES, compression=CompressionType.ZSTD)
        self._shift_ns = shift_ns
        self._schemas: dict[tuple[str, str, bytes], int] = {}
        self._channels: dict[tuple[int, int], int] = {}

    def write(self, files: tuple[Path, ...], first_ns: int, last_ns: int) -> int:
        """Copy what the files hold of a time; returns how many messages that were."""
        kept: dict[tuple[int, int, bytes], Item] = {}
        for number, path in enumerate(files):
            with opened(path) as stream:
                reader = make_reader(stream, validate_crcs=True)
                if number == 0:
                    self._begin(reader)
                for item in reader.iter_messages(_latched_topics(reader), ending_before=first_ns):
                    if is_latched(item[1]):
                        kept[_key(number, item)] = item
        for (number, _, _), item in kept.items():
            self._put(number, item, log_ns=first_ns)
        count = 0
        for number, path in enumerate(files):
            with opened(path) as stream:
                reader = make_reader(stream, validate_crcs=True)
                _check_chunks(stream, reader, first_ns, last_ns)
                for item in reader.iter_messages(starting_at=first_ns, ending_at=last_ns):
                    self._put(number, item, log_ns=item[2].log_time)
                    count += 1
        return count

    def finish(self, said: dict[str, str]) -> None:
        """Close the file, and say in it what it is."""
        self._writer.add_metadata(CUT_RECORD, said)
        self._writer.finish()  # type: ignore[no-untyped-call]

    def _begin(self, reader: McapReader) -> None:
        self._writer.start(profile=reader.get_header().profile, library="robo-eval")
        for record in reader.iter_metadata():
            self._writer.add_metadata(record.name, dict(record.metadata))

    def _put(self, number: int, item: Item, *, log_ns: int) -> None:
        schema, channel, message = item
        key = (number, channel.id)
        if key not in self._channels:
            self._channels[key] = self._writer.register_channel(
                channel.topic,
                channel.message_encoding,
                0 if schema is None else self._schema(schema),
                dict(channel.metadata),
            )
        self._writer.add_message(
            self._channels[key],
            max(0, log_ns + self._shift_ns),
            message.data,
            max(0, message.publish_time + self._shift_ns),
            message.sequence,
        )

    def _schema(self, schema: Schema) -> int:
        key = (schema.name, schema.encoding, schema.data)
        if key not in self._schemas:
            self._schemas[key] = self._writer.register_schema(
                schema.name, schema.encoding, schema.data
            )
        return self._schemas[key]


def is_latched(channel: Channel) -> bool:
    """Whether the last message of a topic holds until the next one."""
    if channel.topic.endswith((STATIC_TRANSFORMS, _DESCRIPTION)):
        return True
    if channel.topic.endswith(_EVENTS):
        return False
    return bool(_LATCHED.search(channel.metadata.get(QOS_KEY, "")))


def _latched_topics(reader: McapReader) -> list[str] | None:
    """Topics to look for latched messages in; None for all, in a file without an index."""
    summary = reader.get_summary()
    if summary is None or not summary.chunk_indexes:
        return None
    return sorted({c.topic for c in summary.channels.values() if is_latched(c)})


def _check_chunks(stream: IO[bytes], reader: McapReader, first_ns: int, last_ns: int) -> None:
    """Refuse a file in which a chunk of a time is overwritten: the library takes zeros for none.

    Raises:
        ValueError: If there is no chunk where the index has one.
    """
    summary = reader.get_summary()
    for index in [] if summary is None else summary.chunk_indexes:
        if index.message_end_time < first_ns or index.message_start_time > last_ns:
            continue
        stream.seek(index.chunk_start_offset)
        opcode, length = _RECORD.unpack(stream.read(_RECORD.size))
        if (opcode, length + _RECORD.size) != (Opcode.CHUNK, index.chunk_length):
            raise ValueError("a piece of it is overwritten")


def _key(number: int, item: Item) -> tuple[int, int, bytes]:
    """What a later message takes the place of: transforms come from many, and all of them hold."""
    _, channel, message = item
    is_static = channel.topic.endswith(STATIC_TRANSFORMS)
    return number, channel.id, message.data if is_static else b""
