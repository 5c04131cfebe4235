"""What the robot file says, as read-only ROS parameters: for `ros2 param`, logs and other nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node

from robo_eval_robot.config import PAGE, RobotConfig

_UNITS: Final = {
    "_rad_s3": "rad/s^3",
    "_m_s3": "m/s^3",
    "_rad_s2": "rad/s^2",
    "_m_s2": "m/s^2",
    "_rad_s": "rad/s",
    "_m_s": "m/s",
    "_rad": "rad",
    "_hz": "Hz",
    "_nm": "N m",
    "_n": "N",
    "_m": "m",
    "_s": "s",
    "_bytes": "bytes",
    "standstill_velocity": "m/s or rad/s",
    "braking": "N s/m or N m s/rad",
    "command_step": "unit of the interface",
    "debounce": "samples",
}
"""Unit by the end of a key; longer ends come first."""


def declare(node: Node, robot: RobotConfig, *sections: str) -> None:
    """Declare what a node uses of the robot file.

    Nobody can set them: the file is what a trial keeps a copy of, and limits do not change under
    a robot that moves.

    Args:
        node: The node.
        robot: The robot.
        sections: Keys of the file.
    """
    data = robot.model_dump(mode="json", include=set(sections), exclude_none=True)
    for name, value in _leaves(data, ""):
        unit = unit_of(name)
        description = ParameterDescriptor(
            description=f"`{name}` of the robot file, see {PAGE}"
            + (f"; in {unit}" if unit else ""),
            additional_constraints="set in the robot file only",
            read_only=True,
        )
        node.declare_parameter(name, value, description)


def unit_of(name: str) -> str:
    """Unit of a value of the robot file; empty for texts and counts.

    Args:
        name: Its place, such as `guard.cycle_hz`.
    """
    return next((unit for end, unit in _UNITS.items() if name.endswith(end)), "")


def _leaves(data: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{path}{key}.")
        elif not isinstance(value, Sequence) or isinstance(value, str) or value:
            yield f"{path}{key}", value
