"""What a trace file says, read with the `mcap` library and checked while reading."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from mcap.opcode import Opcode
from mcap.reader import make_reader
from mcap.records import Message
from numpy.typing import NDArray

from robo_eval.core import door
from robo_eval.core.errors import TrialDirectoryError
from robo_eval.core.trajectory import Trajectory
from robo_eval.log.bag_recover import DAMAGE
from robo_eval.log.cdr import Cursor
from robo_eval.log.files import explained
from robo_eval.log.mcap_file import MAGIC
from robo_eval.log.messages import joint_state

Event = tuple[int, Mapping[str, Any]]
"""Time since the start of the episode (ns), and what happened (JSON)."""

FORM: Final = 1
"""Version of what a trace holds, kept in it."""
EPISODE_RECORD: Final = "robo_eval.episode"
"""MCAP metadata record with what the caller says about the episode."""
LAYOUT_RECORD: Final = "robo_eval.layout"
"""MCAP metadata record with the names and sizes needed to read the arrays back."""
_REMEDY: Final = "play the episode again, or restore the file from a copy"
_FOOTER: Final = struct.Struct("<BQQQI")
_DATA_END: Final = struct.Struct("<BQI")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace(Trajectory):
    """A trajectory read back from a trace.

    Attributes:
        events: Time (ns) and content of each event.
        metadata: What was said about the episode when it was written.
    """

    events: tuple[Event, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)


def read_trace(path: Path) -> Trace:
    """Read a trace back; every number is the one that was written.

    Raises:
        TrialDirectoryError: If the file is missing, damaged, cut short or no trace of ours.
    """
    with explained(path, "cannot be read"):
        data = door.bytes_of(path)
    if not data.startswith(MAGIC):
        raise TrialDirectoryError(f"{path}: is not an MCAP file; {_REMEDY}")
    try:
        return _read(path, data)
    except DAMAGE as err:
        if isinstance(err, TrialDirectoryError):
            raise
        reason = str(err) or type(err).__name__
        raise TrialDirectoryError(
            f"{path}: is damaged or cut short ({reason:.100}); {_REMEDY}"
        ) from err


def _read(path: Path, data: bytes) -> Trace:
    is_ours = _check_sums(data)
    reader = make_reader(io.BytesIO(data), validate_crcs=True)
    records = {record.name: record.metadata for record in reader.iter_metadata()}
    if not is_ours or LAYOUT_RECORD not in records:
        raise TrialDirectoryError(
            f"{path}: is an MCAP file of another program (without check sums or the record"
            f" {LAYOUT_RECORD!r})"
        )
    layout = {name: door.json_of(text) for name, text in records[LAYOUT_RECORD].items()}
    if layout["form"] > FORM:
        raise TrialDirectoryError(
            f"{path}: has form {layout['form']}, which is newer than this program's {FORM};"
            " install a newer robo-eval to read it"
        )
    content = _Content(layout)
    for _, channel, message in reader.iter_messages(log_time_order=False):
        content.take(channel.topic, message)
    return content.trace(records.get(EPISODE_RECORD, {}))


def _check_sums(data: bytes) -> bool:
    """Check the sums over the whole file; False if it carries none.

    The library checks chunks only; these cover every byte.

    Raises:
        ValueError: If a sum does not match.
        struct.error: If the file is too short to hold them.
    """
    end = len(data) - len(MAGIC)
    if data[end:] != MAGIC:
        raise ValueError("its end is missing")
    footer = end - _FOOTER.size
    opcode, length, summary, _, summary_crc = _FOOTER.unpack_from(data, footer)
    if (opcode, length) != (Opcode.FOOTER, 20) or not _DATA_END.size <= summary <= footer:
        raise ValueError("its footer is damaged")
    data_end = summary - _DATA_END.size
    opcode, length, data_crc = _DATA_END.unpack_from(data, data_end)
    if (opcode, length) != (Opcode.DATA_END, 4):
        raise ValueError("the end of its data is damaged")
    if data_crc == 0 or summary_crc == 0:
        return False
    if (
        zlib.crc32(data[:data_end]) != data_crc
        or zlib.crc32(data[summary : end - 4]) != summary_crc
    ):
        raise ValueError("its check sum is wrong")
    return True


class _Content:
    """The arrays of a trace while its messages come in."""

    def __init__(self, layout: dict[str, Any]) -> None:
        ticks, joints = int(layout["ticks"]), len(layout["joint_names"])
        self._joint_names = tuple(map(str, layout["joint_names"]))
        self._frames = {str(name): i for i, name in enumerate(layout["frames"])}
        n = ticks + 1
        self._stamps: list[int] = []
        self._description = ""
        self._events: list[Event] = []
        self._positions = np.empty((n, joints))
        self._velocities = np.empty((n, joints))
        self._efforts: NDArray[np.float64] | None = None
        self._poses = np.full((n, len(self._frames), 7), np.nan)
        self._rewards = np.empty(ticks)
        self._observations = np.empty((n, int(layout["observation_width"])))
        self._actions = np.empty((ticks, int(layout["action_width"])))
        self._counts: dict[str, int] = {}
        self._takers: dict[str, Callable[[Message, Cursor], None]] = {
            "/joint_states": self._joint_state,
            "/tf": self._transforms,
            "/reward": self._reward,
            "/observation": self._observation,
            "/action": self._action,
            "/robot_description": self._text,
            "/episode/event": self._event,
        }

    def take(self, topic: str, message: Message) -> None:
        """Put the content of a message where it belongs."""
        taker = self._takers.get(topic)
        if taker is None:
            raise ValueError(f"topic {topic!r:.60} does not belong here")
        number = self._counts.get(topic, 0)
        if message.sequence != number:
            raise ValueError(f"message {number} of {topic} is missing")
        taker(message, Cursor(message.data))
        self._counts[topic] = number + 1

    def trace(self, metadata: dict[str, str]) -> Trace:
        """What the messages add up to."""
        n = len(self._observations)
        expected = {"/observation": n, "/reward": n - 1, "/action": n - 1}
        expected |= {"/joint_states": n} if self._joint_names else {}
        expected |= {"/tf": n} if self._frames else {}
        for topic, count in expected.items():
            if self._counts.get(topic, 0) != count:
                raise ValueError(f"{self._counts.get(topic, 0)} of {count} messages of {topic}")
        return Trace(
            stamp_ns=np.array(self._stamps, dtype=np.int64),
            joint_names=self._joint_names,
            joint_position=self._positions,
            joint_velocity=self._velocities,
            joint_effort=self._efforts,
            frames=tuple(self._frames),
            pose_world_frame=self._poses,
            actions=self._actions,
            rewards=self._rewards,
            observations=self._observations,
            robot_description=self._description,
            events=tuple(self._events),
            metadata=metadata,
        )

    def _joint_state(self, message: Message, _cursor: Cursor) -> None:
        _, names, (positions, velocities, efforts) = joint_state(message.data)
        if tuple(names) != self._joint_names:
            raise ValueError("joint names differ")
        self._positions[message.sequence] = positions
        self._velocities[message.sequence] = velocities
        if len(efforts):
            if self._efforts is None:
                self._efforts = np.full_like(self._velocities, np.nan)
            self._efforts[message.sequence] = efforts

    def _transforms(self, message: Message, cursor: Cursor) -> None:
        poses = self._poses[message.sequence]
        for _ in range(cursor.uint32()):
            cursor.header()
            frame = self._frames[cursor.string()]
            poses[frame] = cursor.numbers(7)

    def _reward(self, message: Message, cursor: Cursor) -> None:
        self._rewards[message.sequence] = cursor.numbers(1)[0]

    def _observation(self, message: Message, cursor: Cursor) -> None:
        self._stamps.append(message.log_time)
        self._observations[message.sequence] = _array(cursor)

    def _action(self, message: Message, cursor: Cursor) -> None:
        self._actions[message.sequence] = _array(cursor)

    def _text(self, _message: Message, cursor: Cursor) -> None:
        self._description = cursor.string()

    def _event(self, message: Message, cursor: Cursor) -> None:
        self._events.append((message.log_time, door.json_of(cursor.string())))


def _array(cursor: Cursor) -> NDArray[np.float64]:
    for _ in range(cursor.uint32()):
        cursor.string()
        cursor.uint32()
        cursor.uint32()
    cursor.uint32()
    return cursor.number_list()
