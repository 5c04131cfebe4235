"""How blocks of ready-made messages become an MCAP file, one chunk after the other.

The library's own writer takes messages one by one, at several microseconds each; here a block
of messages is one array of bytes. All other records are the library's.

References:
    MCAP format specification, https://mcap.dev/spec
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import zstandard
from mcap.data_stream import RecordBuilder
from mcap.opcode import Opcode
from mcap.records import (
    Channel,
    Chunk,
    ChunkIndex,
    DataEnd,
    Footer,
    Header,
    McapRecord,
    Metadata,
    MetadataIndex,
    Schema,
    Statistics,
    SummaryOffset,
)
from numpy.typing import NDArray

MAGIC: Final = b"\x89MCAP0\r\n"
MESSAGE_HEADER: Final = struct.Struct("<BQHIQQ")
"""Head of a message record: opcode, length, channel, sequence, log time, publish time."""
CHUNK_BYTES: Final = 1 << 20
"""Size from which on a chunk is closed, before compression."""

_LEVEL: Final = 1


@dataclass(frozen=True, slots=True)
class MessageIndex:
    """Where the messages of one channel are within a block.

    Attributes:
        channel: Channel id.
        stamp_ns: Their times, shape (N,).
        offsets: Where each record starts, from the start of the block, shape (N,).
    """

    channel: int
    stamp_ns: NDArray[np.int64]
    offsets: NDArray[np.int64]


class McapFile:
    """An MCAP file in memory.

    Args:
        profile: What readers may expect, e.g. `ros2`.
        library: What wrote it.
    """

    def __init__(self, *, profile: str, library: str) -> None:
        self._out = bytearray(MAGIC + _bytes_of(Header(profile, library)))
        self._chunk = bytearray()
        self._entries: dict[int, list[NDArray[np.int64]]] = {}
        self._schemas: list[Schema] = []
        self._channels: list[Channel] = []
        self._chunks: list[ChunkIndex] = []
        self._metadata: list[MetadataIndex] = []
        self._counts: dict[int, int] = {}
        self._span: tuple[int, int] | None = None

    def add_schema(self, name: str, text: str) -> int:
        """Add a message definition; returns its id."""
        schema = Schema(
            id=len(self._schemas) + 1, name=name, encoding="ros2msg", data=text.encode()
        )
        self._schemas.append(schema)
        self._chunk += _bytes_of(schema)
        return len(self._schemas)

    def add_channel(self, topic: str, schema: int, metadata: Mapping[str, str]) -> int:
        """Add a topic; returns its id."""
        channel = Channel(
            id=len(self._channels) + 1,
            topic=topic,
            message_encoding="cdr",
            metadata=dict(metadata),
            schema_id=schema,
        )
        self._channels.append(channel)
        self._chunk += _bytes_of(channel)
        return channel.id

    def add_block(self, block: bytes, indices: Sequence[MessageIndex]) -> None:
        """Add messages whose records are ready, in the order of their times."""
        base = len(self._chunk)
        self._chunk += block
        for index in indices:
            entry = np.empty((len(index.stamp_ns), 2), dtype=np.int64)
            entry[:, 0] = index.stamp_ns
            entry[:, 1] = index.offsets + base
            self._entries.setdefault(index.channel, []).append(entry)
        if len(self._chunk) >= CHUNK_BYTES:
            self._close_chunk()

    def add_metadata(self, name: str, values: Mapping[str, str]) -> None:
        """Add a record of names and texts."""
        self._close_chunk()
        data = _bytes_of(Metadata(name=name, metadata=dict(values)))
        self._metadata.append(MetadataIndex(offset=len(self._out), length=len(data), name=name))
        self._out += data

    def finish(self) -> bytes:
        """The whole file."""
        self._close_chunk()
        self._out += _bytes_of(DataEnd(zlib.crc32(self._out)))
        start = len(self._out)
        groups: list[tuple[Opcode, Sequence[McapRecord]]] = [
            (Opcode.SCHEMA, self._schemas),
            (Opcode.CHANNEL, self._channels),
            (Opcode.STATISTICS, [self._statistics()]),
            (Opcode.CHUNK_INDEX, self._chunks),
            (Opcode.METADATA_INDEX, self._metadata),
        ]
        offsets = []
        for opcode, records in groups:
            if records:
                data = b"".join(map(_bytes_of, records))
                offsets.append(SummaryOffset(opcode, len(self._out), len(data)))
                self._out += data
        offsets_start = len(self._out)
        self._out += b"".join(map(_bytes_of, offsets))
        head = struct.pack("<BQQQ", Opcode.FOOTER, 8 + 8 + 4, start, offsets_start)
        crc = zlib.crc32(head, zlib.crc32(self._out[start:]))
        self._out += _bytes_of(
            Footer(summary_start=start, summary_offset_start=offsets_start, summary_crc=crc)
        )
        return bytes(self._out + MAGIC)

    def _statistics(self) -> Statistics:
        first, last = self._span or (0, 0)
        return Statistics(
            attachment_count=0,
            channel_count=len(self._channels),
            channel_message_counts=dict(sorted(self._counts.items())),
            chunk_count=len(self._chunks),
            message_count=sum(self._counts.values()),
            message_end_time=last,
            message_start_time=first,
            metadata_count=len(self._metadata),
            schema_count=len(self._schemas),
        )

    def _close_chunk(self) -> None:
        if not self._entries:
            return
        entries = {channel: np.concatenate(parts) for channel, parts in self._entries.items()}
        first = min(int(entry[0, 0]) for entry in entries.values())
        last = max(int(entry[-1, 0]) for entry in entries.values())
        packed = zstandard.ZstdCompressor(level=_LEVEL).compress(bytes(self._chunk))
        chunk = Chunk(
            compression="zstd",
            data=packed,
            message_start_time=first,
            message_end_time=last,
            uncompressed_crc=zlib.crc32(self._chunk),
            uncompressed_size=len(self._chunk),
        )
        chunk_start = len(self._out)
        self._out += _bytes_of(chunk)
        index_start = len(self._out)
        offsets: dict[int, int] = {}
        for channel, entry in sorted(entries.items()):
            offsets[channel] = len(self._out)
            self._counts[channel] = self._counts.get(channel, 0) + len(entry)
            raw = entry.astype("<u8").tobytes()
            self._out += struct.pack("<BQHI", Opcode.MESSAGE_INDEX, 6 + len(raw), channel, len(raw))
            self._out += raw
        self._chunks.append(
            ChunkIndex(
                message_start_time=first,
                message_end_time=last,
                chunk_start_offset=chunk_start,
                chunk_length=index_start - chunk_start,
                message_index_offsets=offsets,
                message_index_length=len(self._out) - index_start,
                compression=chunk.compression,
                compressed_size=len(packed),
                uncompressed_size=chunk.uncompressed_size,
            )
        )
        self._span = (min(first, self._span[0]) if self._span else first, last)
        self._chunk.clear()
        self._entries.clear()


def _bytes_of(record: McapRecord) -> bytes:
    builder = RecordBuilder()
    record.write(builder)
    return bytes(builder.end())  # type: ignore[no-untyped-call]
