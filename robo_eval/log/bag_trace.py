"""The part of a bag that is one episode, as a trace of its own."""

from __future__ import annotations

import os
from pathlib import Path

from mcap.writer import CompressionType, Writer

from robo_eval.core.canonical import digest, file_digest
from robo_eval.log.bag_open import OpenBag
from robo_eval.log.mcap_file import CHUNK_BYTES


def copy_part(bag: OpenBag, first_ns: int, last_ns: int, target: Path) -> str:
    """Write the messages of a bag between two times to an MCAP file in a folder of its own.

    Args:
        bag: The bag.
        first_ns: From then on.
        last_ns: Until then.
        target: File to write; its folder is created.

    Returns:
        The digest of the folder, see `trace_folder.trace_digest`.

    Raises:
        InputError: If the bag is damaged.
        OSError: If the file cannot be written.
    """
    target.parent.mkdir(parents=True)
    with target.open("xb") as out:
        writer = Writer(out, chunk_size=CHUNK_BYTES, compression=CompressionType.ZSTD)
        writer.start(profile="ros2", library="robo-eval")
        schemas: dict[str, int] = {}
        channels: dict[tuple[str, str], int] = {}
        for connection, stamp, raw in bag.raw_messages(first_ns, last_ns):
            kind, topic = connection.msgtype, connection.topic
            if kind not in schemas:
                encoding, text = bag.definition_of(connection)
                schemas[kind] = writer.register_schema(kind, encoding, text.encode())
            if (topic, kind) not in channels:
                channels[topic, kind] = writer.register_channel(topic, "cdr", schemas[kind])
            writer.add_message(channels[topic, kind], stamp, bytes(raw), stamp)
        writer.finish()  # type: ignore[no-untyped-call]
        out.flush()
        os.fsync(out.fileno())
    return digest({target.name: file_digest(target)})
