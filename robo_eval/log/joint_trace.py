"""What joints and IMU said in a recorded bag, as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
from mcap.exceptions import McapError
from mcap.reader import make_reader
from numpy.typing import NDArray

from robo_eval.core import door
from robo_eval.core.errors import InputError
from robo_eval.log.files import explained
from robo_eval.log.messages import imu, joint_state

JOINTS: Final = "sensor_msgs/msg/JointState"
_IMU: Final = "sensor_msgs/msg/Imu"
_Message = tuple[int, list[str], list[NDArray[np.float64]], int]
"""Stamp, names, what `joint_state` says, and when it was received."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JointTrace:
    """Joint states of a bag in the order of their stamps.

    Attributes:
        stamp_ns: Shape (T,).
        received_ns: When the recorder received each, by its own clock, shape (T,).
        names: J joints.
        position: Shape (T, J), metres or radians.
        velocity: Shape (T, J); NaN where it was not measured.
        effort: Shape (T, J), newtons or N m; NaN where it was not measured.
        imu_stamp_ns: Shape (I,).
        imu: Orientation quaternion xyzw and angular velocity (rad/s), shape (I, 7).
        set_back: How many stamps are earlier than that of the message recorded before.
    """

    stamp_ns: NDArray[np.int64]
    received_ns: NDArray[np.int64]
    names: tuple[str, ...]
    position: NDArray[np.float64]
    velocity: NDArray[np.float64]
    effort: NDArray[np.float64]
    imu_stamp_ns: NDArray[np.int64]
    imu: NDArray[np.float64]
    set_back: int = 0


def read_joint_trace(bag: Path, joint_topic: str, imu_topic: str | None = None) -> JointTrace:
    """Read the joint states of a bag.

    Args:
        bag: Folder of the bag.
        joint_topic: Full name of the topic.
        imu_topic: Full name of the IMU's topic, if there is one.

    Raises:
        InputError: If there is no such topic, or a message cannot be decoded.
        TrialDirectoryError: If the bag cannot be read.
    """
    files = sorted(bag.glob("*.mcap"))
    if not files:
        raise InputError(f"{bag}: holds no MCAP file")
    joints: list[_Message] = []
    imus: list[tuple[int, NDArray[np.float64]]] = []
    for file in files:
        for topic, schema, received_ns, data in _messages(file, joint_topic, imu_topic):
            try:
                if topic == joint_topic and schema == JOINTS:
                    joints.append((*joint_state(data), received_ns))
                elif schema == _IMU:
                    imus.append(imu(data))
            except ValueError as err:
                raise InputError(f"{file}: {topic}: {err}") from err
    if not joints:
        raise InputError(f"{bag}: has no joint states on {joint_topic}")
    set_back = sum(after[0] < before[0] for before, after in pairwise(joints))
    joints.sort(key=lambda entry: entry[0])
    imus.sort(key=lambda entry: entry[0])
    names = tuple(joints[0][1])
    return JointTrace(
        stamp_ns=np.array([stamp for stamp, *_ in joints], dtype=np.int64),
        received_ns=np.array([received_ns for *_, received_ns in joints], dtype=np.int64),
        names=names,
        position=_columns(names, joints, 0),
        velocity=_columns(names, joints, 1),
        effort=_columns(names, joints, 2),
        imu_stamp_ns=np.array([stamp for stamp, _ in imus], dtype=np.int64),
        imu=np.array([numbers for _, numbers in imus]).reshape(-1, 7),
        set_back=set_back,
    )


def _messages(
    file: Path, joint_topic: str, imu_topic: str | None
) -> Iterator[tuple[str, str, int, bytes]]:
    topics = [joint_topic, *([imu_topic] if imu_topic else [])]
    with explained(file, "cannot be read"), door.opened(file) as stream:
        try:
            for schema, channel, message in make_reader(stream).iter_messages(topics=topics):
                kind = schema.name if schema else ""
                yield channel.topic, kind, message.log_time, message.data
        except McapError as err:
            raise InputError(f"{file}: is damaged: {err}; `robo-eval recover` may help") from err


def _columns(
    names: tuple[str, ...],
    joints: list[_Message],
    which: int,
) -> NDArray[np.float64]:
    """One quantity of every message, in the order of the names; order may change between them."""
    found = np.full((len(joints), len(names)), np.nan)
    for row, (_, given, parts, _) in enumerate(joints):
        numbers = parts[which]
        for column, name in enumerate(names):
            place = given.index(name) if name in given else -1
            if 0 <= place < len(numbers):
                found[row, column] = numbers[place]
    return found
