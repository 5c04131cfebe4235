"""The messages of one bag, whatever it is stored in, decoded by the definitions it carries."""

from __future__ import annotations

import hashlib
import sqlite3
import struct
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from heapq import merge
from itertools import chain, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import numpy as np
from mcap.exceptions import McapError
from zstandard import ZstdError

from robo_eval.core.canonical import digest, file_digest
from robo_eval.core.errors import InputError, RoboEvalError, said
from robo_eval.log.bag_field import Definitions
from robo_eval.log.bag_find import PENDING, Bag, is_packed, plain_name, unpack
from robo_eval.log.bag_gaps import Integers, Span, gaps
from robo_eval.log.bag_recover import is_cut_short, recover
from robo_eval.log.bag_storage import (
    SQLITE_MAGIC,
    FileTopic,
    McapStorage,
    SqliteStorage,
    Storage,
    type_name,
)
from robo_eval.log.bag_types import CDR, MessageTypes, library
from robo_eval.log.files import explained
from robo_eval.log.mcap_file import MAGIC

_BROKEN: Final = (
    McapError, ZstdError, sqlite3.Error, struct.error, EOFError, ValueError, KeyError,
    IndexError, TypeError, AttributeError, OverflowError, MemoryError, RuntimeError,
)  # fmt: skip
"""What reading a damaged file raises."""
_LATEST_NS: Final = (1 << 63) - 1
_HEAD: Final = struct.Struct("<QQ")
_UNSIGNED: Final = (1 << 64) - 1
SLACK_NS: Final = 1_000_000_000
"""How much older than the one before it a message may be: a recorder may keep it in memory for a
while. A clock that was set jumps further, and two recordings lie further apart."""
_PAUSE_NS: Final = 10_000_000_000
"""How long there may be silence between files that only their numbers make one recording."""


@dataclass(slots=True)
class _Tally:
    """The messages of a topic of one type, over all files: their times and digest."""

    stamps: array[int] = field(default_factory=lambda: array("Q"))
    newest_ns: int = -1
    sha: Any = field(default_factory=lambda: hashlib.blake2b(digest_size=16))


@dataclass(frozen=True, slots=True)
class _Read:
    """What was seen in a file: its first and last time, and the number of messages by topic."""

    path: Path
    first_ns: int
    last_ns: int
    counts: Counter[str]


class OpenBag:
    """A bag whose messages can be read; made by `opened`.

    Attributes:
        bag: Which one.
        files: What its trace consists of: its own files, or what was recovered of them.
        lost: What is missing of a bag that was cut short; empty if it was not.
        topics: Type of the messages of each topic; of several, the types between commas.
        start_ns: Time of the first message.
        end_ns: Time of the last message.
        fingerprint: Digest of all messages with topic, type and time: of a copy it is the same,
            however it is compressed, split or stored.
    """

    def __init__(
        self, bag: Bag, storages: Mapping[Path, Storage], files: tuple[Path, ...], lost: str
    ) -> None:
        self.bag: Final = bag
        self.files: Final = files
        self._storages: Final = storages
        self._channels: Final[dict[str, list[FileTopic]]] = {}
        self._types: Final[dict[FileTopic, MessageTypes]] = {}
        self._tallies: Final[dict[tuple[str, str], _Tally]] = {}
        read = [self._scan(path, storage) for path, storage in storages.items()]
        if not self._tallies:
            raise InputError(f"{bag.path}: holds no messages; leave it out")
        if bag.is_by_number:
            _check_pauses(read)
        self._add_silent()
        self.lost: Final = lost and self._lost(lost)
        if not lost and bag.metadata is not None:
            named = {plain_name(name) for name in bag.metadata.files} or set(map(_name, read))
            counts = sum((file.counts for file in read if _name(file) in named), Counter[str]())
            remedy = (
                "copy the files of the bag once more, or write metadata.yaml anew with ros2 bag"
                " reindex"
            )
            _check_count(bag.path, "metadata.yaml", bag.metadata.counts, counts, remedy)
        self.topics: Final = {
            topic: ", ".join(sorted({channel.type for channel in channels}))
            for topic, channels in self._channels.items()
        }
        self.start_ns: Final = min(file.first_ns for file in read if file.counts)
        self.end_ns: Final = max(tally.newest_ns for tally in self._tallies.values())
        self.fingerprint: Final = digest(
            {
                f"{topic} {kind}": tally.sha.hexdigest()
                for (topic, kind), tally in self._tallies.items()
            }
        )

    @property
    def is_recovered(self) -> bool:
        """Whether a file of it was cut short."""
        return bool(self.lost)

    def gaps(self) -> list[Span]:
        """Where all topics are silent far beyond their usual periods, see `bag_gaps`."""
        return gaps(self.times())

    def times(self) -> list[Integers]:
        """Times of the messages of each topic in their order, ns."""
        stamps = [np.array(tally.stamps).astype(np.int64) for tally in self._tallies.values()]
        return [np.sort(times, kind="stable") for times in stamps]

    def topic_at(self, stamp: int) -> str:
        """A topic that has a message at a time."""
        return next(topic for (topic, _), tally in self._tallies.items() if stamp in tally.stamps)

    def definitions_of(self, topic: str) -> Definitions:
        """Fields of the type of a topic, and of those it needs.

        Raises:
            InputError: If its messages cannot be read; says why, and what would do.
        """
        channels = self._channels[topic]
        if len({channel.type for channel in channels}) > 1:
            raise InputError(
                f"topic {topic} has messages of the types {self.topics[topic]}; map a topic of"
                " one type, or leave the bag out"
            )
        found = [self._types_of(channel).fields for channel in channels]
        if any(fields != found[0] for fields in found[1:]):
            raise InputError(
                f"topic {topic}: {channels[0].type} is defined twice, and differently; map another"
                " topic, or leave the bag out"
            )
        return found[0]

    def messages(self, topics: Iterable[str]) -> Iterator[tuple[str, int, Any]]:
        """Topic, time of receipt (ns) and content of each message, in the order of time.

        Raises:
            InputError: If a message cannot be read.
        """
        for stamp, channel, data in self._in_order(frozenset(topics), 0, _LATEST_NS):
            try:
                message = self._types_of(channel).message(data)
            except ValueError as err:
                problem = str(err)
                if not isinstance(err, InputError):
                    problem = (
                        f"cannot be read as {channel.type}: {err!s:.200}; it is damaged, or the"
                        " definition in the bag is another one: map another topic, or leave the"
                        " bag out"
                    )
                raise InputError(
                    f"{self.bag.path}: topic {channel.topic}: the message at {stamp} ns {problem}"
                ) from err
            yield channel.topic, stamp, message

    def raw_messages(self, first_ns: int, last_ns: int) -> Iterator[tuple[FileTopic, int, bytes]]:
        """Channel, time and bytes of each message of all topics between two times."""
        for stamp, channel, data in self._in_order(None, first_ns, last_ns):
            yield channel, stamp, data

    def definition_of(self, channel: FileTopic, data: bytes) -> tuple[str, str]:
        """Format and text of the definition of a channel's messages, such as `data`, if any."""
        if not channel.definition:
            try:
                return "ros2msg", self._types_of(channel).text(data)
            except ValueError:
                return channel.format, ""
        return channel.format, channel.definition

    def _in_order(
        self, topics: frozenset[str] | None, first_ns: int, last_ns: int
    ) -> Iterator[tuple[int, FileTopic, bytes]]:
        with explained_as_bag(self.bag.path):
            yield from merge(
                *(s.messages(topics, first_ns, last_ns) for s in self._storages.values()),
                key=itemgetter(0),
            )

    def _types_of(self, channel: FileTopic) -> MessageTypes:
        if channel not in self._types:
            try:
                self._types[channel] = MessageTypes(channel)
            except InputError as err:
                kind = f" of type {channel.type}" if channel.type else ""
                raise InputError(f"topic {channel.topic}{kind}: {err}") from err
        return self._types[channel]

    def _scan(self, path: Path, storage: Storage) -> _Read:
        """Look at every message of a file once."""
        before = self._counts()
        # By their ids: to compare channels takes longer than the rest.
        takers: dict[int, tuple[Any, Any]] = {}
        begun: dict[tuple[str, str], tuple[_Tally, int]] = {}
        pack = _HEAD.pack
        with explained_as_bag(path):
            for stamp, channel, data in chain.from_iterable(storage.scan()):
                taker = takers.get(id(channel))
                if taker is None:
                    tally = self._tally_of(channel)
                    begun.setdefault((channel.topic, channel.type), (tally, len(tally.stamps)))
                    taker = takers[id(channel)] = (tally.sha.update, tally.stamps.append)
                update, append = taker
                unsigned = stamp & _UNSIGNED
                update(pack(unsigned, len(data)) + data)
                append(unsigned)
        read = {
            key: np.array(tally.stamps[at:]).astype(np.int64) for key, (tally, at) in begun.items()
        }
        first = min((int(stamps.min()) for stamps in read.values()), default=_LATEST_NS)
        last = max((int(stamps.max()) for stamps in read.values()), default=-1)
        if first < 0:
            raise InputError(
                f"{path}: its messages have times from {first} to {last} ns, which no clock"
                " shows; leave the bag out"
            )
        for (topic, kind), stamps in read.items():
            _check_order(path, topic, self._tallies[topic, kind], stamps)
        counts = self._counts() - before
        source, remedy = "its own statistics", "write it anew with mcap recover"
        _check_count(path, source, storage.statistics, counts, remedy)
        return _Read(path, first, last, counts)

    def _tally_of(self, channel: FileTopic) -> _Tally:
        channels = self._channels.setdefault(channel.topic, [])
        if channel not in channels:
            channels.append(channel)
        return self._tallies.setdefault((channel.topic, channel.type), _Tally())

    def _add_silent(self) -> None:
        """Add the topics of which there is no message."""
        silent = [channel for s in self._storages.values() for channel in s.channels()]
        if self.bag.metadata is not None:
            silent += [
                FileTopic(topic=topic, type=type_name(kind), encoding=CDR)
                for topic, kind in self.bag.metadata.types.items()
            ]
        for channel in silent:
            self._channels.setdefault(channel.topic, [channel])

    def _counts(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        for (topic, _), tally in self._tallies.items():
            counts[topic] += len(tally.stamps)
        return counts

    def _lost(self, what: str) -> str:
        read = sum(self._counts().values())
        said = self.bag.metadata.counts.get("", 0) if self.bag.metadata else 0
        of = f" of {said}" if said > read else ""
        return f"{read}{of} messages were read, {what}"


def _name(read: _Read) -> str:
    return plain_name(read.path.name)


def _check_order(path: Path, topic: str, tally: _Tally, stamps: Integers) -> None:
    """Refuse a topic whose time goes back further than a recorder keeps a message."""
    newest = np.maximum.accumulate(np.append(tally.newest_ns, stamps))
    back = np.flatnonzero(stamps < newest[:-1] - SLACK_NS)
    if len(back):
        raise InputError(
            f"{path}: topic {topic}: time goes backwards, from {newest[back[0]]} to"
            f" {stamps[back[0]]} ns; if the clock was set, or time began again while it was"
            " recorded, leave the bag out; otherwise put it into the order of time with ros2 bag"
            " convert"
        )
    tally.newest_ns = int(newest[-1])


def _check_pauses(read: Sequence[_Read]) -> None:
    """Refuse files that only their numbers make one recording if they lie far apart in time."""
    for one, two in pairwise(file for file in read if file.counts):
        pause_ns = two.first_ns - one.last_ns
        if pause_ns > _PAUSE_NS:
            raise InputError(
                f"{two.path}: is numbered as a part of one recording with {one.path.name}, but"
                f" begins {pause_ns / 1e9:.1f} s after its end; put the files of each recording"
                " into a folder of its own, named as they are without the number"
            )


def _check_count(
    path: Path, source: str, said: Mapping[str, int], found: Mapping[str, int], remedy: str
) -> None:
    """Refuse what holds fewer messages of a topic than it should, or in all (topic '')."""
    found = {**found, "": sum(found.values())}
    for topic in sorted(said, reverse=True):
        if said[topic] > found.get(topic, 0):
            of = f" of topic {topic}" if topic else ""
            raise InputError(
                f"{path}: holds {found.get(topic, 0)} messages{of}, {source} says {said[topic]};"
                f" {remedy}"
            )


@contextmanager
def opened(bag: Bag, scratch: Path) -> Iterator[OpenBag]:
    """Open a bag; what is compressed is unpacked, and what was cut short is recovered first.

    Args:
        bag: Which one.
        scratch: Folder for what is unpacked and recovered.

    Raises:
        InputError: If it is empty, damaged or not to be read; the message names it.
        MissingExtraError: If the library that reads definitions is not installed.
    """
    _check_pending(bag)
    with ExitStack() as stack:
        storages: dict[Path, Storage] = {}
        recovered: dict[Path, Path] = {}
        lost = []
        for path in bag.storage:
            plain = unpack(path, scratch / "unpacked") if is_packed(path) else path
            if path in bag.copies:
                _check_copy(path, plain, bag.copies[path], scratch / "copies")
            with _called(plain, path):
                if _is_database(plain):
                    with explained_as_bag(path):
                        storages[path] = SqliteStorage(plain)
                else:
                    if is_cut_short(plain):
                        recovered[path] = scratch / "recovered" / plain.name
                        with explained(scratch, "cannot be written"):
                            recovered[path].parent.mkdir(exist_ok=True)
                        lost_bytes = recover(plain, recovered[path])
                        lost.append(f"{lost_bytes} bytes behind them in {path.name}")
                    storages[path] = McapStorage(recovered.get(path, plain))
            stack.callback(storages[path].close)
        files = tuple(recovered.get(path, path) for path in bag.storage) if recovered else bag.files
        what = f"{' and '.join(lost)} could not be" if lost else ""
        yield OpenBag(bag, storages, files, what)


def check_library() -> None:
    """Refuse to go on without the library that reads definitions.

    Raises:
        MissingExtraError: If it is not installed.
    """
    library()


@contextmanager
def _called(plain: Path, path: Path) -> Iterator[None]:
    """Let errors name the file that was given, and not what was unpacked of it."""
    try:
        yield
    except InputError as err:
        raise type(err)(str(err).replace(str(plain), str(path))) from err


def _check_copy(path: Path, plain: Path, copy: Path, scratch: Path) -> None:
    with explained(copy, "cannot be read"):
        other = unpack(copy, scratch) if is_packed(copy) else copy
        is_same = file_digest(plain) == file_digest(other)
    if not is_same:
        raise InputError(
            f"{copy}: is named as the compressed copy of {path.name}, and holds something else;"
            " move one of the two away"
        )


def _is_database(path: Path) -> bool:
    with explained(path, "cannot be read"), path.open("rb") as file:
        head = file.read(len(SQLITE_MAGIC))
    if head.startswith(SQLITE_MAGIC):
        return True
    if not head:
        raise InputError(f"{path}: is empty; leave it out")
    if not head.startswith(MAGIC) and ".db3" in path.suffixes:
        raise InputError(f"{path}: is not a database: it begins with {head[:8]!r}; leave it out")
    return False


def _check_pending(bag: Bag) -> None:
    for path in bag.storage:
        for ending in PENDING:
            log = path.with_name(f"{path.name}{ending}")
            with explained(log, "cannot be read"):
                is_pending = log.exists() and log.stat().st_size > 0
            if is_pending:
                raise InputError(
                    f"{path}: was not closed, its newest messages are in {log.name}; close it by:"
                    f" sqlite3 {path.name} 'PRAGMA wal_checkpoint(TRUNCATE)'"
                )


@contextmanager
def explained_as_bag(path: Path) -> Iterator[None]:
    """Turn what damaged bytes raise into one line that names the file."""
    try:
        with explained(path, "cannot be read"):
            yield
    except RoboEvalError:
        raise
    except _BROKEN as err:
        raise InputError(
            f"{path}: cannot be read as a bag: {said(err, named=False):.200}; restore it from a"
            " copy, or leave it out"
        ) from err
