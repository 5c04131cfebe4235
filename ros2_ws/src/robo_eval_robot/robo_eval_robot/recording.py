"""What the recorder does with what it hears: which bag a message goes to, and what was missed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

from robo_eval.core import door
from robo_eval.core.errors import InputError, RoboEvalError
from robo_eval.log.bag_metadata import STATIC_TRANSFORMS, BagTopic
from robo_eval.log.bag_writer import BagWriter

STATUS_VERSION: Final = 1
SETTLE_S: Final = 0.5
"""How long an event from before this process waits for the one that ends its episode."""
CHUNK_S: Final = 1.0
"""Longest time a message waits for its chunk to fill."""

_log: Final = logging.getLogger(__name__)


class RecorderState(StrEnum):
    """What the recorder does."""

    IDLE = "idle"
    RECORDING = "recording"
    CLOSED = "closed"
    ERROR = "error"


class Received(NamedTuple):
    """A message as it came.

    Attributes:
        topic: Full name.
        data: Its bytes.
        received_ns: When it came, ns since 1970.
        published_ns: When it was published, by the clock of the publisher.
        sequence: Its number among those of its publisher; None if the middleware does not say.
        publisher: Who published it; None if the middleware does not say.
    """

    topic: str
    data: bytes
    received_ns: int
    published_ns: int
    sequence: int | None = None
    publisher: bytes | None = None


class Gaps:
    """How many messages of a topic did not come, by the numbers of those that did.

    A middleware that does not say who published a message shows only that numbers went down: from
    then on more than one publisher is at work, and nothing is counted any more.
    """

    def __init__(self) -> None:
        self.missed = 0
        self._last: dict[bytes | None, int] = {}
        self._is_mixed = False

    def see(self, sequence: int | None, publisher: bytes | None) -> None:
        """Take note of a message."""
        if sequence is None:
            return
        last = self._last.get(publisher)
        if last is not None:
            if sequence > last + 1 and not (self._is_mixed and publisher is None):
                self.missed += sequence - last - 1
            elif sequence <= last:
                self._is_mixed = True
        self._last[publisher] = sequence


@dataclass(frozen=True, slots=True)
class _Episode:
    id: str
    uri: str
    event: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Waiting:
    due: float
    episode: _Episode
    message: Received


@dataclass
class Recording:
    """The bag of the running episode, and what came before it.

    Attributes:
        root: Folder below which bags go.
        topics: Full names of the topics that are recorded.
        latched: Those whose last message is written at the start of each bag; may grow.
        chunk_bytes: Size of a chunk of the file.
        describe: Says at the start of an episode what the topics are and how they are offered.
        drain: Takes all that waits to be taken, before an episode is closed.
        say: Publishes a status.
    """

    root: Path
    topics: Sequence[str]
    latched: Collection[str]
    chunk_bytes: int
    describe: Callable[[], Sequence[BagTopic]]
    drain: Callable[[], None]
    say: Callable[[dict[str, Any]], None]

    def __post_init__(self) -> None:
        self._gaps = {topic: Gaps() for topic in self.topics}
        self._kept: dict[tuple[str, bytes], Received] = {}
        self._waiting: dict[str, _Waiting] = {}
        self._bag: BagWriter | None = None
        self._episode: _Episode | None = None
        self._state = RecorderState.IDLE
        self._reason = ""
        self._dropped_before: dict[str, int] = {}
        self._counts: dict[str, int] = {}
        self._chunk_due = 0.0

    # Messages ----------------------------------------------------------------------------------

    def take(self, message: Received) -> None:
        """Record a message, or throw it away while no episode runs."""
        topic = message.topic
        self._gaps[topic].see(message.sequence, message.publisher)
        if topic in self.latched:
            is_static = topic.endswith(STATIC_TRANSFORMS)
            self._kept[topic, message.data if is_static else b""] = message
        if self._bag is not None:
            self._write(message, message.received_ns)

    def event(self, message: Received, text: str, *, is_old: bool, now: float) -> None:
        """Take a message on the topic of events, which may begin or end an episode.

        Args:
            message: The message.
            text: What it says.
            is_old: Whether it was published before this process listened. The middleware hands
                over old events one by one, so one that begins an episode waits a moment for the
                one that ends it.
            now: Monotonic time, s.
        """
        try:
            name, episode = _read(text)
        except ValueError as err:
            _log.warning("%s: %s", message.topic, err)
            self.take(message)
            return
        if name == "start":
            self._gaps[message.topic].see(message.sequence, message.publisher)
            if self._is_running(episode.id):
                self._write(message, message.received_ns)
            elif is_old:
                self._waiting[episode.id] = _Waiting(now + SETTLE_S, episode, message)
            else:
                self._start(episode, message, now)
        elif name == "end" and self._is_running(episode.id):
            self.drain()
            self.take(message)
            self._close(episode.event)
        else:
            if name == "end":
                self._waiting.pop(episode.id, None)
            self.take(message)

    def tick(self, now: float) -> None:
        """Do what is due: call it a few times a second."""
        for key, waiting in list(self._waiting.items()):
            if now >= waiting.due:
                del self._waiting[key]
                self._start(waiting.episode, waiting.message, now)
        if self._bag is not None and now >= self._chunk_due:
            self._chunk_due = now + CHUNK_S
            try:
                self._bag.close_chunk()
            except RoboEvalError as err:
                self._fail(str(err))

    def stop(self, reason: str) -> None:
        """Finish the running bag, if there is one."""
        if self._bag is not None:
            self.drain()
            self._close({"event": "end", "reason": reason})

    def _is_running(self, key: str) -> bool:
        return self._bag is not None and self._episode is not None and self._episode.id == key

    @property
    def is_recording(self) -> bool:
        """Whether an episode is being recorded."""
        return self._bag is not None

    def status(self) -> dict[str, Any]:
        """What the recorder does, as it is published."""
        counts = self._counts if self._bag is None else self._bag.counts
        return {
            "schema_version": STATUS_VERSION,
            "state": self._state.value,
            "episode_id": self._episode.id if self._episode else None,
            "uri": self._episode.uri if self._episode else None,
            "counts": dict(counts),
            "dropped": {
                topic: missed
                for topic, gaps in self._gaps.items()
                if (missed := gaps.missed - self._dropped_before.get(topic, 0))
            },
            "reason": self._reason,
        }

    # Episodes ----------------------------------------------------------------------------------

    def _start(self, episode: _Episode, message: Received, now: float) -> None:
        self._waiting.clear()
        # What waits to be taken belongs to the time before.
        self.drain()
        self._close({"event": "end", "reason": f"episode {episode.id} was started"})
        self._episode, self._counts, self._reason = episode, {}, ""
        self._dropped_before = {topic: gaps.missed for topic, gaps in self._gaps.items()}
        try:
            self._bag = BagWriter(
                folder_below(self.root, episode.uri),
                self.describe(),
                chunk_bytes=self.chunk_bytes,
                start=episode.event,
            )
        except RoboEvalError as err:
            self._fail(str(err))
            return
        self._chunk_due = now + CHUNK_S
        self._state = RecorderState.RECORDING
        for kept in self._kept.values():
            # As of now, so that a state from long ago does not make the episode longer.
            self._write(kept, message.received_ns)
        self._write(message, message.received_ns)
        if self._bag is not None:
            self.say(self.status())

    def _write(self, message: Received, received_ns: int) -> None:
        if self._bag is None:
            return
        try:
            self._bag.write(
                message.topic,
                message.data,
                received_ns=received_ns,
                published_ns=message.published_ns,
                sequence=message.sequence or 0,
            )
        except RoboEvalError as err:
            self._fail(str(err))

    def _close(self, event: dict[str, Any]) -> None:
        if self._bag is None:
            return
        try:
            self._bag.close(event)
        except RoboEvalError as err:
            self._fail(str(err))
            return
        self._counts, self._bag = self._bag.counts, None
        self._state = RecorderState.CLOSED
        self.say(self.status())

    def _fail(self, reason: str) -> None:
        self._reason = reason
        if self._bag is not None:
            self._reason += "; what was recorded until then stays, robo-eval recover restores it"
            self._bag.abandon()
            self._counts, self._bag = self._bag.counts, None
        self._state = RecorderState.ERROR
        _log.error("%s", self._reason)
        self.say(self.status())


def folder_below(root: Path, uri: str) -> Path:
    """The folder of a bag.

    Raises:
        InputError: If it is not below the root.
    """
    base = root.resolve()
    try:
        folder = (base / uri).resolve()
    except (OSError, RuntimeError, ValueError):  # such as a ring of links, or a zero byte
        folder = base
    if folder == base or not folder.is_relative_to(base):
        raise InputError(
            f"uri {uri!r}: leads out of {base}; name a folder below it, such as traces/EPISODE"
        )
    return folder


def _read(text: str) -> tuple[str, _Episode]:
    """Name of an event, and the episode it is about.

    Raises:
        ValueError: If it is no event.
    """
    event = door.object_of(text)
    if not isinstance(event.get("event"), str):
        raise ValueError(f"is no event, which is a JSON object with the key event: {text:.100}")
    key, uri = event.get("episode_id"), event.get("uri")
    if event["event"] == "start" and not (isinstance(key, str) and isinstance(uri, str)):
        raise ValueError(f"an event that starts an episode needs episode_id and uri: {text:.100}")
    return event["event"], _Episode(str(key), uri if isinstance(uri, str) else "", event)
