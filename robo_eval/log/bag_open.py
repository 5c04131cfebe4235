"""The messages of one bag, whatever it is stored in, decoded by the definitions it carries."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from robo_eval.core.errors import InputError, MissingExtraError, RoboEvalError
from robo_eval.log.bag_find import Bag
from robo_eval.log.bag_recover import is_cut_short, recover
from robo_eval.log.files import explained

if TYPE_CHECKING:
    from rosbags.highlevel import AnyReader

_ITS_LIBRARIES: Final = ("apsw", "sqlite3", "backports", "compression", "_zstd", "lz4", "ruamel")
"""Whose errors the rosbags library lets through; which of them it uses depends on its version."""
_REMEDY: Final = "restore it from a copy, or leave it out"


class OpenBag:
    """A bag whose messages can be read; made by `opened`.

    Attributes:
        bag: Which one.
        files: What its trace consists of: its own files, or what was recovered of them.
        is_recovered: Whether a file of it was cut short.
        topics: Type of the messages of each topic.
        start_ns: Time of the first message.
        end_ns: Time of the last message.
    """

    def __init__(
        self, bag: Bag, reader: AnyReader, files: tuple[Path, ...], *, is_recovered: bool
    ) -> None:
        self.bag: Final = bag
        self.files: Final = files
        self.is_recovered: Final = is_recovered
        self._reader: Final = reader
        self.topics: Final = {c.topic: c.msgtype for c in reader.connections}
        self.start_ns: Final = reader.start_time
        self.end_ns: Final = reader.end_time - 1

    @property
    def definitions(self) -> Any:  # noqa: ANN401 - as the rosbags library keeps them
        """Fields of each message type."""
        return self._reader.typestore.fielddefs

    def messages(self, topics: Iterable[str]) -> Iterator[tuple[str, int, Any]]:
        """Topic, time of receipt (ns) and content of each message, in the order of time.

        Raises:
            InputError: If the bag is damaged, or its time goes backwards.
        """
        wanted = set(topics)
        connections = [c for c in self._reader.connections if c.topic in wanted]
        if not connections:
            return
        previous = 0
        with _explained(self.bag.path):
            for connection, stamp, raw in self._reader.messages(connections=connections):
                if stamp < previous:
                    raise InputError(
                        f"{self.bag.path}: topic {connection.topic}: time goes backwards, from"
                        f" {previous} to {stamp} ns; the clock was set while it was recorded:"
                        " leave the bag out"
                    )
                previous = stamp
                yield connection.topic, stamp, self._reader.deserialize(raw, connection.msgtype)

    def raw_messages(self, first_ns: int, last_ns: int) -> Iterator[tuple[Any, int, bytes]]:
        """Connection, time and bytes of each message of all topics between two times."""
        with _explained(self.bag.path):
            yield from self._reader.messages(start=first_ns, stop=last_ns + 1)

    def definition_of(self, connection: Any) -> tuple[str, str]:  # noqa: ANN401
        """Encoding and text of the definition of a connection's messages."""
        data = str(connection.msgdef.data)
        if not data:
            data, _ = self._reader.typestore.generate_msgdef(connection.msgtype, ros_version=2)
            return "ros2msg", data
        return ("ros2idl" if connection.msgdef.format.name == "IDL" else "ros2msg"), data


@contextmanager
def opened(bag: Bag, scratch: Path) -> Iterator[OpenBag]:
    """Open a bag; what was cut short is recovered first.

    Args:
        bag: Which one.
        scratch: Folder for what is recovered.

    Raises:
        InputError: If it is empty, damaged or not to be read; the message names it.
        MissingExtraError: If the library that reads bags is not installed.
    """
    _check_storage(bag)
    cut = {path for path in bag.storage if path.suffix == ".mcap" and is_cut_short(path)}
    storage = []
    for path in bag.storage:
        if path in cut:
            recover(path, scratch / path.name)
        storage.append(scratch / path.name if path in cut else path)
    # What rosbag2 wrote about a bag is not true of a part of it.
    use_metadata = bag.has_metadata and not cut
    files = bag.files if use_metadata or not cut else tuple(storage)
    with _reader_of(bag, [bag.path] if use_metadata else storage) as reader:
        with _explained(bag.path):
            has_messages = bool(reader.connections) and reader.message_count > 0
        if not has_messages:
            raise InputError(f"{bag.path}: holds no messages; leave it out")
        yield OpenBag(bag, reader, files, is_recovered=bool(cut))


@contextmanager
def _reader_of(bag: Bag, paths: list[Path]) -> Iterator[AnyReader]:
    highlevel, typesys = _library()
    with _explained(bag.path):
        # Bags of old releases carry no definitions; those of the standard messages have changed
        # little since.
        standard = typesys.get_typestore(typesys.Stores.ROS2_HUMBLE)
        reader = highlevel.AnyReader(paths, default_typestore=standard)
        reader.open()
    try:
        yield reader
    finally:
        reader.close()


def _library() -> tuple[Any, Any]:
    try:
        from rosbags import highlevel, typesys
    except ImportError as err:
        raise MissingExtraError(
            'bags are read with the rosbags library; run: pip install "robo-eval[bags]"'
        ) from err
    return highlevel, typesys


def check_library() -> None:
    """Refuse to go on without the library that reads bags.

    Raises:
        MissingExtraError: If it is not installed.
    """
    _library()


def _check_storage(bag: Bag) -> None:
    for path in bag.storage:
        log = path.with_name(f"{path.name}-wal")
        with explained(log, "cannot be read"):
            is_pending = path.suffix == ".db3" and log.exists() and log.stat().st_size > 0
        if is_pending:
            raise InputError(
                f"{path}: was not closed, its newest messages are in {log.name}; close it by:"
                f" sqlite3 {path.name} 'PRAGMA wal_checkpoint(TRUNCATE)'"
            )


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn what the library raises about a damaged bag into one line that names it."""
    import zstandard
    from rosbags.highlevel.anyreader import AnyReaderError
    from rosbags.rosbag2 import ReaderError
    from rosbags.serde import SerdeError
    from rosbags.typesys import TypesysError

    broken = (
        AnyReaderError, ReaderError, SerdeError, TypesysError, zstandard.ZstdError,
        struct.error, OSError, EOFError, ValueError, KeyError, IndexError, TypeError,
        AssertionError, AttributeError, OverflowError, MemoryError, RuntimeError,
    )  # fmt: skip
    try:
        yield
    except RoboEvalError:
        raise
    except broken as err:
        reason = " ".join(str(err).split()) or type(err).__name__
        raise InputError(f"{path}: cannot be read as a bag: {reason:.200}; {_REMEDY}") from err
    except Exception as err:
        if type(err).__module__.partition(".")[0] not in _ITS_LIBRARIES:
            raise
        raise InputError(f"{path}: cannot be read as a bag: {err}; {_REMEDY}") from err
