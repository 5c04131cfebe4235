"""The messages of one file of a bag, as they are stored: of every one in it, index or not."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import quote
from zlib import crc32

import mcap.records
import zstandard
from mcap.data_stream import ReadDataStream
from mcap.opcode import Opcode
from mcap.stream_reader import get_chunk_data_stream

from robo_eval.core.errors import InputError
from robo_eval.log.mcap_file import CHUNK_BYTES, MAGIC, MESSAGE_HEADER

SQLITE_MAGIC: Final = b"SQLite format 3\x00"
ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
"""Also begins a message that was compressed by itself; no message in CDR begins so."""
_RECORD: Final = struct.Struct("<BQ")
"""Head of a record: opcode, length."""
_PRIVATE: Final = 0x80
"""From here on records are of whoever wrote the file, and of no meaning to others."""
_COMPRESSIONS: Final = ("", "none", "lz4", "zstd")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTopic:
    """A topic in one file.

    Attributes:
        topic: Its name.
        type: Type of its messages, `std_msgs/msg/Bool`.
        encoding: How their bytes are made; `cdr` in bags of ROS 2.
        format: What the definition is written in, such as `ros2msg`; empty if there is none.
        definition: Text of the definition of the type.
    """

    topic: str
    type: str
    encoding: str
    format: str = ""
    definition: str = ""


Stored = tuple[int, FileTopic, bytes]
"""Time (ns), channel and bytes of a message."""


class McapStorage:
    """An MCAP file, read from its first record to its last.

    Args:
        path: The file.

    Raises:
        InputError: If its chunks are compressed in an unknown way.
        ValueError: From any method, if a record is damaged; so do errors of the libraries.
    """

    def __init__(self, path: Path) -> None:
        self._path: Final = path
        self._file: Final[BinaryIO] = path.open("rb")
        self._schemas: dict[int, mcap.records.Schema] = {}
        self._channels: dict[int, FileTopic] = {}
        self._blocks: list[_Block] = []
        self.statistics: Mapping[str, int] = {}

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def channels(self) -> Iterable[FileTopic]:
        """Those of its topics; complete after a scan."""
        return self._channels.values()

    def scan(self) -> Iterator[Sequence[Stored]]:
        """All messages, some at a time as they are stored; to be called once, before `messages`."""
        run: tuple[int, int] | None = None
        for opcode, at, size in self._records():
            if opcode == Opcode.MESSAGE:
                start = run[0] if run else at
                run = (start, at + size)
                if at + size - start < CHUNK_BYTES:
                    continue
            if run is not None:
                yield self._scan_block(*run, is_chunk=False)
                run = None
            if opcode == Opcode.CHUNK:
                yield self._scan_block(at, at + size, is_chunk=True)
            elif opcode != Opcode.MESSAGE:
                self._define(opcode, at, size)

    def messages(
        self, wanted: Collection[str] | None, first_ns: int, last_ns: int
    ) -> Iterator[Stored]:
        """The messages of some topics, or of all, between two times, in the order of time."""
        # A chunk is loaded when its time has come: chunks may overlap.
        waiting: list[tuple[int, int, FileTopic, bytes]] = []
        number = 0
        for block in sorted(self._blocks, key=lambda block: block.first_ns):
            if block.last_ns < first_ns or block.first_ns > last_ns:
                continue
            if wanted is not None and block.topics.isdisjoint(wanted):
                continue
            while waiting and waiting[0][0] < block.first_ns:
                stamp, _, channel, data = heappop(waiting)
                yield stamp, channel, data
            for stamp, channel, data in self._messages(self._load(block)):
                if first_ns <= stamp <= last_ns and (wanted is None or channel.topic in wanted):
                    number += 1
                    heappush(waiting, (stamp, number, channel, data))
        while waiting:
            stamp, _, channel, data = heappop(waiting)
            yield stamp, channel, data

    def _records(self) -> Iterator[tuple[int, int, int]]:
        """Opcode, place and whole length of each record, up to the magic bytes at the end."""
        size = self._file.seek(0, 2)
        at = len(MAGIC)
        while at < size - len(MAGIC):
            self._file.seek(at)
            opcode, length = _RECORD.unpack(self._file.read(_RECORD.size))
            length += _RECORD.size
            if at + length > size - len(MAGIC):
                raise ValueError(f"the record at byte {at} ends behind the end of the file")
            yield opcode, at, length
            at += length

    def _scan_block(self, start: int, end: int, *, is_chunk: bool) -> list[Stored]:
        block = _Block(start=start, end=end, is_chunk=is_chunk)
        found = self._messages(self._load(block))
        if found:
            stamps = [stamp for stamp, _, _ in found]
            block.first_ns, block.last_ns = min(stamps), max(stamps)
            block.topics = {channel.topic for channel in {id(c): c for _, c, _ in found}.values()}
            self._blocks.append(block)
        return found

    def _load(self, block: _Block) -> bytes:
        if not block.is_chunk:
            self._file.seek(block.start)
            return self._file.read(block.end - block.start)
        chunk = mcap.records.Chunk.read(self._content(block.start, block.end - block.start))
        if chunk.compression not in _COMPRESSIONS:
            raise InputError(
                f"{self._path}: its chunks are compressed by {chunk.compression!r:.20}, which is"
                " not read; write it anew with mcap compress"
            )
        stream, size = get_chunk_data_stream(chunk, validate_crc=True)
        if size != chunk.uncompressed_size:
            raise ValueError(f"the chunk at byte {block.start} has {size} bytes, not those it says")
        return stream.read(size)

    def _messages(self, data: bytes) -> list[Stored]:
        found: list[Stored] = []
        at, size = 0, len(data)
        while at < size:
            opcode, length = _RECORD.unpack_from(data, at)
            end = at + _RECORD.size + length
            if end > size:
                raise ValueError("a record ends behind the end of its chunk")
            if opcode == Opcode.MESSAGE:
                _, _, number, _, stamp, _ = MESSAGE_HEADER.unpack_from(data, at)
                channel = self._channels.get(number)
                if channel is None:
                    raise ValueError(f"a message is of channel {number}, which no record describes")
                found.append((stamp, channel, _plain(data[at + MESSAGE_HEADER.size : end])))
            elif opcode in (Opcode.SCHEMA, Opcode.CHANNEL):
                self._take(opcode, ReadDataStream(BytesIO(data[at + _RECORD.size : end])))
            at = end
        return found

    def _define(self, opcode: int, at: int, size: int) -> None:
        if opcode in (Opcode.SCHEMA, Opcode.CHANNEL):
            self._take(opcode, self._content(at, size))
        elif opcode == Opcode.STATISTICS:
            found = mcap.records.Statistics.read(self._content(at, size))
            counts: dict[str, int] = {}
            for number, count in found.channel_message_counts.items():
                topic = self._channels[number].topic if number in self._channels else f"#{number}"
                counts[topic] = counts.get(topic, 0) + count
            self.statistics = {**counts, "": found.message_count}
        elif opcode == Opcode.DATA_END:
            said = mcap.records.DataEnd.read(self._content(at, size)).data_section_crc
            if said and said != self._crc(at):
                raise ValueError("the checksum of its messages is another one")
        elif not 0 < opcode <= max(Opcode) and opcode < _PRIVATE:
            raise ValueError(f"the record at byte {at} is of no kind there is")

    def _crc(self, end: int) -> int:
        self._file.seek(0)
        crc = 0
        for start in range(0, end, CHUNK_BYTES):
            crc = crc32(self._file.read(min(CHUNK_BYTES, end - start)), crc)
        return crc

    def _content(self, at: int, size: int) -> ReadDataStream:
        self._file.seek(at + _RECORD.size)
        return ReadDataStream(BytesIO(self._file.read(size - _RECORD.size)))

    def _take(self, opcode: int, stream: ReadDataStream) -> None:
        if opcode == Opcode.SCHEMA:
            schema = mcap.records.Schema.read(stream)
            self._schemas[schema.id] = schema
            return
        record = mcap.records.Channel.read(stream)
        found = self._schemas.get(record.schema_id)
        channel = FileTopic(
            topic=record.topic,
            type=type_name(found.name if found else ""),
            encoding=record.message_encoding,
            format=found.encoding if found else "",
            definition=found.data.decode(errors="replace") if found else "",
        )
        if self._channels.setdefault(record.id, channel) != channel:
            raise ValueError(f"channel {record.id} is described twice, and differently")


@dataclass(slots=True, kw_only=True)
class _Block:
    """A chunk, or messages in a row outside of chunks."""

    start: int
    end: int
    is_chunk: bool
    first_ns: int = 0
    last_ns: int = 0
    topics: set[str] = field(default_factory=set)


class SqliteStorage:
    """A database of messages, as rosbag2 writes one.

    Args:
        path: The file.

    Raises:
        InputError: If it is another database.
        ValueError: From any method, if it is damaged; so do errors of the library.
    """

    statistics: Final[Mapping[str, int]] = {}

    def __init__(self, path: Path) -> None:
        # Nothing is written beside it, not even a lock.
        self._base: Final = sqlite3.connect(f"file:{quote(str(path))}?immutable=1", uri=True)
        try:
            self._channels: Final = self._read_channels(path)
        except BaseException:
            self._base.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    def channels(self) -> Iterable[FileTopic]:
        """Those of its topics."""
        return self._channels.values()

    def scan(self) -> Iterator[Sequence[Stored]]:
        """All messages, some at a time as they are stored."""
        for message in self._rows("ORDER BY id", ()):
            yield (message,)

    def messages(
        self, wanted: Collection[str] | None, first_ns: int, last_ns: int
    ) -> Iterator[Stored]:
        """The messages of some topics, or of all, between two times, in the order of time."""
        numbers = [
            number
            for number, channel in self._channels.items()
            if wanted is None or channel.topic in wanted
        ]
        marks = ", ".join("?" * len(numbers))
        where = f"WHERE topic_id IN ({marks}) AND timestamp BETWEEN ? AND ? ORDER BY timestamp, id"
        yield from self._rows(where, (*numbers, first_ns, last_ns))

    def _rows(self, where: str, values: tuple[int, ...]) -> Iterator[Stored]:
        sql = f"SELECT topic_id, timestamp, data FROM messages {where}"  # noqa: S608 - ours
        found = self._base.execute(sql, values)
        for number, stamp, data in found:
            channel = self._channels.get(number)
            if channel is None:
                raise ValueError(f"a message is of topic {number}, which no row describes")
            yield stamp, channel, _plain(data)

    def _read_channels(self, path: Path) -> dict[int, FileTopic]:
        definitions: dict[str, tuple[str, str]] = {}
        # Bags from before ROS 2 Iron hold none.
        if self._columns("message_definitions"):
            found = self._base.execute(
                "SELECT topic_type, encoding, encoded_message_definition FROM message_definitions"
            )
            definitions = {name: (str(form or ""), str(text or "")) for name, form, text in found}
        if not self._columns("topics") or not self._columns("messages"):
            raise InputError(f"{path}: is a database without the tables of a bag; leave it out")
        topics = self._base.execute("SELECT id, name, type, serialization_format FROM topics")
        channels = {}
        for number, name, kind, encoding in topics:
            form, text = definitions.get(kind, ("", ""))
            channels[number] = FileTopic(
                topic=name, type=type_name(kind), encoding=encoding, format=form, definition=text
            )
        return channels

    def _columns(self, table: str) -> bool:
        return bool(self._base.execute(f"PRAGMA table_info({table})").fetchall())


Storage = McapStorage | SqliteStorage


def type_name(name: str) -> str:
    """A type as ROS 2 calls it: `std_msgs/Bool` is `std_msgs/msg/Bool`."""
    name = " ".join(name.split())
    package, slash, rest = name.partition("/")
    return f"{package}/msg/{rest}" if slash and "/" not in rest else name


def _plain(data: bytes) -> bytes:
    if data[:4] != ZSTD_MAGIC:
        return data
    return zstandard.ZstdDecompressor().decompress(data)
