"""What can still be read of an MCAP file that was cut short."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import zstandard
from mcap.exceptions import McapError
from mcap.records import Channel, Header, McapRecord, Message, Metadata, Schema
from mcap.stream_reader import StreamReader
from mcap.writer import CompressionType, Writer

from robo_eval.core import door
from robo_eval.core.errors import InputError
from robo_eval.log.files import explained
from robo_eval.log.mcap_file import CHUNK_BYTES, MAGIC

BROKEN: Final = (
    McapError, ValueError, struct.error, EOFError, MemoryError, OverflowError, RuntimeError,
    zstandard.ZstdError,
)  # fmt: skip
"""What reading a damaged MCAP file raises."""
DAMAGE: Final = (*BROKEN, KeyError, IndexError, TypeError, AttributeError, AssertionError)
"""The same, where messages of it are decoded as well."""
LIBRARY: Final = "robo-eval recovery"
"""What a recovered file says it was written by."""


def is_cut_short(path: Path) -> bool:
    """Whether an MCAP file has a beginning, and not the end that closes it.

    Raises:
        InputError: If it is not an MCAP file, or is empty.
        TrialDirectoryError: If it cannot be read.
    """
    with explained(path, "cannot be read"), door.opened(path) as file:
        head = file.read(len(MAGIC))
        size = file.seek(0, 2)
        file.seek(max(0, size - len(MAGIC)))
        tail = file.read()
    if not head:
        raise InputError(f"{path}: is empty; leave it out")
    if head != MAGIC[: len(head)]:
        raise InputError(f"{path}: is not an MCAP file: it begins with {head!r}; leave it out")
    return size < 2 * len(MAGIC) or tail != MAGIC


def recover(source: Path, target: Path) -> int:
    """Write every message that can be read, up to the last complete chunk, to a sound file.

    Args:
        source: MCAP file without its end.
        target: File to write.

    Returns:
        How many bytes behind the last message could not be read.

    Raises:
        InputError: If there is none.
        TrialDirectoryError: If a file cannot be read or written.
    """
    with explained(source, "cannot be recovered"):
        messages, lost_bytes = _copy(source, target)
    if not messages:
        raise InputError(
            f"{source}: is cut short before its first complete chunk, nothing can be read;"
            " leave it out"
        )
    return lost_bytes


def _copy(source: Path, target: Path) -> tuple[int, int]:
    """Copy what can be read; returns how many messages, and bytes behind them."""
    count = end = 0
    schemas: dict[int, int] = {0: 0}
    channels: dict[int, int] = {}
    with door.opened(source) as stream, target.open("wb") as out:
        writer = Writer(out, chunk_size=CHUNK_BYTES, compression=CompressionType.ZSTD)
        is_started = False
        for record in _records(StreamReader(stream, validate_crcs=True)):
            if not is_started:
                writer.start(
                    profile=record.profile if isinstance(record, Header) else "ros2",
                    library=LIBRARY,
                )
                is_started = True
            count += _put(writer, record, schemas, channels)
            end = stream.tell()
        if is_started:
            writer.finish()  # type: ignore[no-untyped-call]
        return count, stream.seek(0, 2) - end


def _records(reader: StreamReader) -> Iterator[McapRecord]:
    try:
        yield from reader.records
    except BROKEN:
        # Here it was cut; what came before is what there is.
        return


def _put(
    writer: Writer, record: McapRecord, schemas: dict[int, int], channels: dict[int, int]
) -> int:
    """Write one record; returns how many messages it was."""
    if isinstance(record, Schema):
        if record.id not in schemas:
            schemas[record.id] = writer.register_schema(record.name, record.encoding, record.data)
    elif isinstance(record, Channel):
        if record.id not in channels:
            channels[record.id] = writer.register_channel(
                record.topic,
                record.message_encoding,
                schemas.get(record.schema_id, 0),
                dict(record.metadata),
            )
    elif isinstance(record, Metadata):
        writer.add_metadata(record.name, dict(record.metadata))
    elif isinstance(record, Message) and record.channel_id in channels:
        writer.add_message(
            channels[record.channel_id],
            record.log_time,
            record.data,
            record.publish_time,
            record.sequence,
        )
        return 1
    return 0
