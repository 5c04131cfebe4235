"""How messages become a bag in rosbag2's layout: a folder with one MCAP file and its metadata."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

from mcap.writer import CompressionType, Writer

from robo_eval.core.errors import InputError
from robo_eval.log.bag_metadata import METADATA_FILE, BagTopic, metadata_yaml
from robo_eval.log.files import explained, sync_folder, write_atomically

START_RECORD: Final = "robo_eval_episode"
"""Name of the MCAP metadata record with what began the episode."""
END_RECORD: Final = "robo_eval_end"
"""Name of the MCAP metadata record with what ended it."""
EVENT_JSON: Final = "event_json"
"""Key in both records: the whole object, as JSON."""
SYNC_S: Final = 1.0
"""How often what was written is made safe against a power cut."""

_SEQUENCE_MASK: Final = 0xFFFFFFFF
"""MCAP has 32 bits for a sequence number."""


def storage_name(folder: Path) -> str:
    """Name of the MCAP file of a bag."""
    return f"{folder.name}_0.mcap"


def record_of(event: Mapping[str, Any]) -> dict[str, str]:
    """An event as a metadata record: texts as they are, anything else as JSON."""
    texts = {
        str(key): value if isinstance(value, str) else json.dumps(value)
        for key, value in event.items()
    }
    return {**texts, EVENT_JSON: json.dumps(dict(event))}


class BagWriter:
    """A bag that is being written; nobody else may touch it until it is closed.

    Args:
        folder: Folder to create.
        topics: Topics that may be written.
        chunk_bytes: Size from which on a chunk is closed: what a killed process loses at most.
        start: What began the episode.
        sync_s: Seconds between two fsyncs, which a thread of its own does.

    Raises:
        InputError: If the folder exists.
        TrialDirectoryError: If it cannot be created or written.
    """

    def __init__(
        self,
        folder: Path,
        topics: Sequence[BagTopic],
        *,
        chunk_bytes: int,
        start: Mapping[str, Any],
        sync_s: float = SYNC_S,
    ) -> None:
        self.folder: Final = folder
        self.path: Final = folder / storage_name(folder)
        self._topics: Final = list(topics)
        self.counts: Final = {topic.name: 0 for topic in topics}
        """Number of messages by topic."""
        self._first_ns, self._last_ns = 1 << 63, 0
        with explained(folder, "cannot be created"):
            folder.parent.mkdir(parents=True, exist_ok=True)
            try:
                folder.mkdir()
            except FileExistsError as err:
                raise InputError(f"{folder}: exists already; give the episode a new uri") from err
        try:
            with explained(self.path, "cannot be written"):
                self._out = _Out(self.path)
        except BaseException:
            folder.rmdir()
            raise
        try:
            with explained(self.path, "cannot be written"):
                self._begin(chunk_bytes, start)
        except BaseException:
            # Nothing was recorded: nothing is left behind.
            self._out.close()
            self.path.unlink()
            folder.rmdir()
            raise
        self._syncer: Final = _Syncer(self._out.descriptor, sync_s)

    def _begin(self, chunk_bytes: int, start: Mapping[str, Any]) -> None:
        self._writer = Writer(
            self._out,  # type: ignore[arg-type]  # of a stream it only writes, tells and flushes
            chunk_size=chunk_bytes,
            compression=CompressionType.ZSTD,
        )
        self._writer.start(profile="ros2", library="robo-eval recorder")
        self._writer.add_metadata(START_RECORD, record_of(start))
        schemas: dict[str, int] = {}
        self._channels: dict[str, int] = {}
        for topic in self._topics:
            if topic.type not in schemas:
                schemas[topic.type] = self._writer.register_schema(
                    topic.type, "ros2msg", topic.text.encode()
                )
            self._channels[topic.name] = self._writer.register_channel(
                topic.name, "cdr", schemas[topic.type], topic.channel_metadata()
            )
        sync_folder(self.folder)
        sync_folder(self.folder.parent)

    def write(
        self, topic: str, data: bytes, *, received_ns: int, published_ns: int, sequence: int
    ) -> None:
        """Write a message; it is in the file once its chunk is full, or at `close_chunk`.

        Raises:
            TrialDirectoryError: If it cannot be written; `abandon` keeps what was.
        """
        channel = self._channels[topic]
        number = sequence & _SEQUENCE_MASK
        try:  # and not `explained`, which takes as long as the rest
            self._writer.add_message(channel, received_ns, data, max(0, published_ns), number)
        except OSError as err:
            with explained(self.path, "cannot be written"):
                raise err
        self.counts[topic] += 1
        if received_ns < self._first_ns:
            self._first_ns = received_ns
        if received_ns > self._last_ns:
            self._last_ns = received_ns

    def close_chunk(self) -> None:
        """Write what was taken so far, however little, so that a kill does not lose it.

        Raises:
            TrialDirectoryError: If it cannot be written, or not be made safe.
        """
        with explained(self.path, "cannot be written"):
            self._writer.flush()  # type: ignore[no-untyped-call]
            self._syncer.check()

    def close(self, end: Mapping[str, Any]) -> None:
        """Finish the bag: summary, metadata, all of it on the disk.

        Args:
            end: What ended the episode.

        Raises:
            TrialDirectoryError: If it cannot be written; `abandon` keeps what was.
        """
        with explained(self.path, "cannot be written"):
            self._writer.flush()  # type: ignore[no-untyped-call]
            self._writer.add_metadata(END_RECORD, record_of(end))
            self._writer.finish()  # type: ignore[no-untyped-call]
            self._syncer.stop()
            self._syncer.check()
            os.fsync(self._out.descriptor)
            self._out.close()
        span = (self._first_ns, self._last_ns) if any(self.counts.values()) else (0, 0)
        text = metadata_yaml(self.path.name, self._topics, self.counts, span)
        write_atomically(self.folder / METADATA_FILE, text)

    def abandon(self) -> None:
        """Give up writing: what is complete stays, as after a kill, and can be restored."""
        self._syncer.stop()
        with contextlib.suppress(OSError):
            self._out.cut()
        self._out.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self.close({"event": "end"})
        else:
            self.abandon()


class _Out:
    """A file to which each piece is written at once, or not at all.

    Without a buffer of its own, what was written is the kernel's and outlives a killed process.
    """

    def __init__(self, path: Path) -> None:
        self.descriptor: Final = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644
        )
        # Held as long as this process lives: nobody restores a bag that is being written.
        # A disk that knows no locks is written all the same.
        with contextlib.suppress(OSError):
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._size = 0
        self._is_open = True

    def write(self, data: bytes) -> int:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self.descriptor, rest) :]
        self._size += len(data)
        return len(data)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        """Nothing waits here."""

    def cut(self) -> None:
        """Remove the piece that did not fit."""
        if self._is_open:
            os.ftruncate(self.descriptor, self._size)
            os.fsync(self.descriptor)

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            os.close(self.descriptor)


class _Syncer:
    """A thread that syncs a file, so that no message waits for a disk."""

    def __init__(self, descriptor: int, period_s: float) -> None:
        self._descriptor = descriptor
        self._period_s = period_s
        self._is_over = threading.Event()
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._run, name="bag-sync", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise what the disk said."""
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(self._period_s):
            try:
                os.fsync(self._descriptor)
            except OSError as err:
                self._error = err
                return
