"""The part of a bag that is one episode, as a trace of its own."""

from __future__ import annotations

import os
from pathlib import Path

from mcap.writer import CompressionType, Writer

from robo_eval.core.canonical import digest, file_digest
from robo_eval.log.bag_open import OpenBag
from robo_eval.log.bag_storage import Channel
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
        schemas: dict[tuple[str, str, str], int] = {}
        channels: dict[Channel, int] = {}
        for channel, stamp, data in bag.raw_messages(first_ns, last_ns):
            if channel not in channels:
                form, text = bag.definition_of(channel, data)
                key = (channel.type, form, text)
                if key not in schemas:
                    schemas[key] = writer.register_schema(channel.type, form, text.encode())
                channels[channel] = writer.register_channel(
                    channel.topic, channel.encoding, schemas[key]
                )
            writer.add_message(channels[channel], stamp, data, stamp)
        writer.finish()  # type: ignore[no-untyped-call]
        out.flush()
        os.fsync(out.fileno())
    return digest({target.name: file_digest(target)})
