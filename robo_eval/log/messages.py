"""What single ROS messages say, read from their bytes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from robo_eval.log.cdr import Cursor

Floats = NDArray[np.float64]


def joint_state(data: bytes) -> tuple[int, list[str], list[Floats]]:
    """Stamp (ns), names, and positions, velocities and efforts of a `sensor_msgs/JointState`.

    Raises:
        ValueError: If it is none.
    """
    cursor = Cursor(data)
    stamp_ns = cursor.header()
    names = [cursor.string() for _ in range(cursor.uint32())]
    return stamp_ns, names, [cursor.number_list() for _ in range(3)]


def imu(data: bytes) -> tuple[int, Floats]:
    """Stamp (ns), and orientation (xyzw) and angular velocity (rad/s) of a `sensor_msgs/Imu`.

    Raises:
        ValueError: If it is none.
    """
    cursor = Cursor(data)
    stamp_ns = cursor.header()
    orientation = cursor.numbers(4)
    cursor.numbers(9)
    return stamp_ns, np.concatenate([orientation, cursor.numbers(3)])


def after_header(data: bytes, count: int) -> Floats:
    """The first numbers behind a header: 6 of a `geometry_msgs/WrenchStamped` or `TwistStamped`.

    Of a wrench they are force (N) and torque (N m), of a twist linear (m/s) and angular velocity
    (rad/s). Of a `PoseStamped` the first 3 are the position (m).

    Raises:
        ValueError: If the message has fewer.
    """
    cursor = Cursor(data)
    cursor.header()
    return cursor.numbers(count)


def odometry_velocity(data: bytes) -> Floats:
    """The linear velocity (m/s) of a `nav_msgs/Odometry`, shape (3,).

    Raises:
        ValueError: If it is none.
    """
    cursor = Cursor(data)
    cursor.header()
    cursor.string()
    cursor.numbers(7 + 36)  # pose and covariance
    return cursor.numbers(3)


def diagnostics(data: bytes) -> Iterator[tuple[int, str, str, dict[str, str]]]:
    """Stamp (ns), name, message and values of each status of a `diagnostic_msgs/DiagnosticArray`.

    Raises:
        ValueError: If it is none.
    """
    cursor = Cursor(data)
    stamp_ns = cursor.header()
    for _ in range(cursor.uint32()):
        cursor.uint8()
        name, text, _ = cursor.string(), cursor.string(), cursor.string()
        values = {}
        for _ in range(cursor.uint32()):
            key = cursor.string()
            values[key] = cursor.string()
        yield stamp_ns, name, text, values
