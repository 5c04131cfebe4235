"""The trace of one episode: an MCAP file of ROS 2 messages, written at its end, read back."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.canonical import canonical_json
from robo_eval.core.errors import InputError, ShapeError
from robo_eval.core.trajectory import Trajectory
from robo_eval.log.cdr import Bytes, Template
from robo_eval.log.files import write_atomically
from robo_eval.log.mcap_file import CHUNK_BYTES, MESSAGE_HEADER, McapFile, MessageIndex
from robo_eval.log.ros_schemas import full_name, schema_text
from robo_eval.log.trace_reader import EPISODE_RECORD, FORM, LAYOUT_RECORD, Event
from robo_eval.log.trace_reader import read_trace as read_trace

WORLD: Final = "world"
TOPICS: Final[dict[str, str]] = {
    "/joint_states": "sensor_msgs/JointState",
    "/tf": "tf2_msgs/TFMessage",
    "/reward": "std_msgs/Float64",
    "/observation": "std_msgs/Float64MultiArray",
    "/action": "std_msgs/Float64MultiArray",
    "/robot_description": "std_msgs/String",
    "/episode/event": "std_msgs/String",
}
"""Message type of each topic. At one instant they follow each other in this order."""

_MOST_NS: Final = (2**31 - 1) * 1_000_000_000
"""Seconds of a ROS time are 32 bits."""


def write_trace(
    path: Path,
    trajectory: Trajectory,
    *,
    events: Iterable[Event] = (),
    metadata: Mapping[str, str] | None = None,
    durable: bool = False,
) -> str:
    """Write the trace of one episode; it appears under its name complete, or not at all.

    Observation, joints, frames and the reward of an instant carry its time; an action carries
    the time of the observation it answers. Times are task time from 0, so that the same episode
    gives the same bytes.

    Args:
        path: File to write.
        trajectory: What happened.
        events: Further happenings: time (ns) and a JSON-able mapping.
        metadata: Texts by name, e.g. episode id, plan digest, seed.
        durable: Whether it must survive a power cut.

    Returns:
        SHA-256 of the file, as 64 hexadecimal digits.

    Raises:
        ShapeError: If an array has the wrong shape or times do not increase from 0 on.
        InputError: If an event or metadata is not JSON or text.
        TrialDirectoryError: If the file cannot be written.
    """
    _check(path, trajectory)
    data = _file_of(path, trajectory, sorted(events, key=lambda event: event[0]), metadata or {})
    write_atomically(path, data, durable=durable)
    return hashlib.sha256(data).hexdigest()


# Checking --------------------------------------------------------------------------------------


def _check(path: Path, trajectory: Trajectory) -> None:
    stamps = trajectory.stamp_ns
    if stamps.ndim != 1 or len(stamps) == 0:
        raise ShapeError(f"{path}: stamp_ns has shape {stamps.shape}; it needs (T,), T >= 1")
    n, joints, frames = len(stamps), len(trajectory.joint_names), len(trajectory.frames)
    if stamps[0] < 0 or stamps[-1] > _MOST_NS or (np.diff(stamps) <= 0).any():
        raise ShapeError(f"{path}: stamp_ns must increase, from 0 on and below 2^31 s")
    expected: dict[str, tuple[int | None, ...]] = {
        "joint_position": (n, joints),
        "joint_velocity": (n, joints),
        "pose_world_frame": (n, frames, 7),
        "actions": (n - 1, None),
        "rewards": (n - 1,),
        "observations": (n, None),
        **({} if trajectory.joint_effort is None else {"joint_effort": (n, joints)}),
    }
    for name, shape in expected.items():
        given = getattr(trajectory, name).shape
        fits = len(given) == len(shape) and all(
            want is None or have == want for have, want in zip(given, shape, strict=True)
        )
        if not fits:
            wanted = ", ".join("any" if size is None else str(size) for size in shape)
            raise ShapeError(f"{path}: {name} has shape {given}; it needs ({wanted})")
    finite = np.isfinite(trajectory.pose_world_frame).sum(axis=2)
    if ((finite != 0) & (finite != 7)).any() or np.isinf(trajectory.pose_world_frame).any():
        raise ShapeError(f"{path}: pose_world_frame is finite, or NaN in all 7 of a frame")
    names = [*trajectory.joint_names, *trajectory.frames]
    twice = len(set(trajectory.frames)) < frames or len(set(trajectory.joint_names)) < joints
    if twice or not all(names) or any("\0" in name for name in names):
        raise ShapeError(f"{path}: names of joints and frames must be unique and not empty")


# Writing ---------------------------------------------------------------------------------------


def _file_of(
    path: Path, trajectory: Trajectory, events: list[Event], metadata: Mapping[str, str]
) -> bytes:
    texts = {name: str(value) for name, value in sorted(metadata.items())}
    file = McapFile(profile="ros2", library="robo-eval")
    writer = _Writer(file, trajectory)
    writer.write(_event_texts(path, events))
    file.add_metadata(EPISODE_RECORD, texts)
    layout = {
        "form": FORM,
        "ticks": len(trajectory.rewards),
        "joint_names": list(trajectory.joint_names),
        "frames": list(trajectory.frames),
        "action_width": trajectory.actions.shape[1],
        "observation_width": trajectory.observations.shape[1],
    }
    file.add_metadata(
        LAYOUT_RECORD, {name: canonical_json(value).decode() for name, value in layout.items()}
    )
    return file.finish()


def _event_texts(path: Path, events: list[Event]) -> list[tuple[int, str]]:
    texts = []
    for stamp, content in events:
        if not 0 <= stamp <= _MOST_NS:
            raise InputError(f"{path}: event {content!r:.60} is at {stamp} ns; times start at 0")
        texts.append((int(stamp), canonical_json(dict(content)).decode()))
    return texts


class _Writer:
    """Turns a trajectory into blocks: runs of instants whose messages have the same shape."""

    def __init__(self, file: McapFile, trajectory: Trajectory) -> None:
        self._file = file
        self._trajectory = trajectory
        self._schemas: dict[str, int] = {}
        self._channels: dict[str, int] = {}
        self._sequence = 0
        finite = np.isfinite(trajectory.pose_world_frame)
        self._present: NDArray[np.bool_] = np.logical_and.reduce(finite, axis=2)
        self._templates: dict[bytes, Template] = {}
        joints = len(trajectory.joint_names)
        effort = trajectory.joint_effort
        self._joints = _joint_template(trajectory.joint_names, has_effort=effort is not None)
        state = [trajectory.joint_position, trajectory.joint_velocity]
        state += [] if effort is None else [effort]
        self._state = np.concatenate(state, axis=1, dtype=np.float64)
        self._reward = Template().add_numbers(1)
        self._observation = _array_template(trajectory.observations.shape[1])
        self._action = _array_template(trajectory.actions.shape[1])
        for topic in TOPICS:
            empty = (topic == "/joint_states" and not joints) or (
                topic == "/tf" and not trajectory.frames
            )
            if not empty:
                self._add_channel(topic)

    def _add_channel(self, topic: str) -> None:
        kind = TOPICS[topic]
        if kind not in self._schemas:
            self._schemas[kind] = self._file.add_schema(full_name(kind), schema_text(kind))
        self._channels[topic] = self._file.add_channel(topic, self._schemas[kind], {})

    def write(self, events: list[tuple[int, str]]) -> None:
        """All messages, in the order of their times."""
        stamps = self._trajectory.stamp_ns
        if self._trajectory.robot_description:
            self._text("/robot_description", 0, int(stamps[0]), self._trajectory.robot_description)
        # An event follows the instant it falls on.
        places = np.searchsorted(stamps, [stamp for stamp, _ in events], side="right").tolist()
        first = 0
        for number, ((stamp, text), place) in enumerate(zip(events, places, strict=True)):
            self._instants(first, place)
            self._text("/episode/event", number, stamp, text)
            first = place
        self._instants(first, len(stamps))

    def _text(self, topic: str, sequence: int, stamp: int, text: str) -> None:
        data = bytes(Template().add_string(text).data)
        channel = self._channels[topic]
        block = MESSAGE_HEADER.pack(5, 22 + len(data), channel, sequence, stamp, stamp) + data
        index = MessageIndex(
            channel, np.array([stamp], dtype=np.int64), np.zeros(1, dtype=np.int64)
        )
        self._file.add_block(block, [index])

    def _instants(self, first: int, last: int) -> None:
        """The messages of instants [first, last), in runs of one shape."""
        if first == last:
            return
        n = len(self._trajectory.stamp_ns)
        present = self._present[first:last]
        cuts = {first, last, *(first + 1 + np.flatnonzero((present[1:] != present[:-1]).any(1)))}
        # The first instant has no reward, the last one no action.
        cuts |= {cut for cut in (1, n - 1) if first < cut < last}
        ordered = sorted(int(cut) for cut in cuts)
        for start, end in itertools.pairwise(ordered):
            self._run(start, end)

    def _run(self, start: int, end: int) -> None:
        parts = self._parts(start)
        width = sum(MESSAGE_HEADER.size + len(part.data) for _, part, _, _ in parts)
        # Long episodes are cut, so that a chunk does not grow without bounds.
        step = max(1, CHUNK_BYTES // width)
        for low in range(start, end, step):
            self._block(parts, width, low, min(low + step, end))

    def _parts(self, at: int) -> list[tuple[str, Template, NDArray[np.float64], int]]:
        """Topic, shape, numbers and first instant of what is there at instant `at`."""
        trajectory = self._trajectory
        parts: list[tuple[str, Template, NDArray[np.float64], int]] = []
        if "/joint_states" in self._channels:
            parts.append(("/joint_states", self._joints, self._state, 0))
        if "/tf" in self._channels:
            mask = self._present[at]
            poses = trajectory.pose_world_frame[:, mask].reshape(len(self._present), -1)
            parts.append(("/tf", self._tf_template(mask), poses, 0))
        if at > 0:
            parts.append(("/reward", self._reward, trajectory.rewards[:, None], 1))
        parts.append(("/observation", self._observation, trajectory.observations, 0))
        if at < len(trajectory.rewards):
            parts.append(("/action", self._action, trajectory.actions, 0))
        return parts

    def _tf_template(self, mask: NDArray[np.bool_]) -> Template:
        key = mask.tobytes()
        if key not in self._templates:
            names = [self._trajectory.frames[i] for i in np.flatnonzero(mask)]
            self._templates[key] = _tf_template(names)
        return self._templates[key]

    def _block(
        self,
        parts: list[tuple[str, Template, NDArray[np.float64], int]],
        width: int,
        low: int,
        high: int,
    ) -> None:
        stamps = self._trajectory.stamp_ns[low:high].astype(np.int64)
        block: Bytes = np.empty((high - low, width), dtype=np.uint8)
        indices = []
        column = 0
        for topic, template, numbers, first in parts:
            head_end = column + MESSAGE_HEADER.size
            end = head_end + len(template.data)
            sequence = np.arange(low - first, high - first)
            _fill_heads(
                block[:, column:head_end],
                self._channels[topic],
                len(template.data),
                sequence,
                stamps,
            )
            template.fill(block[:, head_end:end], stamps, numbers[low - first : high - first])
            offsets = np.arange(high - low, dtype=np.int64) * width + column
            indices.append(MessageIndex(self._channels[topic], stamps, offsets))
            column = end
        self._file.add_block(block.tobytes(), indices)


def _fill_heads(
    out: Bytes,
    channel: int,
    size: int,
    sequence: NDArray[np.int64],
    stamps: NDArray[np.int64],
) -> None:
    heads = np.empty(
        len(out),
        dtype=[("op", "u1"), ("size", "<u8"), ("channel", "<u2"), ("sequence", "<u4"),
               ("log", "<u8"), ("publish", "<u8")],
    )  # fmt: skip
    heads["op"] = 5
    heads["size"] = 22 + size
    heads["channel"] = channel
    heads["sequence"] = sequence
    heads["log"] = stamps
    heads["publish"] = stamps
    out[:] = heads.view(np.uint8).reshape(len(out), -1)


def _joint_template(names: tuple[str, ...], *, has_effort: bool) -> Template:
    template = Template().add_stamp().add_string("").add_uint32(len(names))
    for name in names:
        template.add_string(name)
    template.add_number_list(len(names)).add_number_list(len(names))
    return template.add_number_list(len(names) if has_effort else 0)


def _tf_template(names: list[str]) -> Template:
    template = Template().add_uint32(len(names))
    for name in names:
        template.add_stamp().add_string(WORLD).add_string(name).add_numbers(7)
    return template


def _array_template(width: int) -> Template:
    # One dimension without a label: what std_msgs calls a layout is empty.
    return Template().add_uint32(0).add_uint32(0).add_number_list(width)
