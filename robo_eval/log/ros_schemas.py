"""The standard ROS 2 message definitions that traces use."""

from __future__ import annotations

from typing import Final

SEPARATOR: Final = "=" * 80
"""Line between a definition and the next one it needs."""

DEFINITIONS: Final[dict[str, str]] = {
    "builtin_interfaces/Time": "int32 sec\nuint32 nanosec\n",
    "std_msgs/Header": "builtin_interfaces/Time stamp\nstring frame_id\n",
    "std_msgs/String": "string data\n",
    "std_msgs/Float64": "float64 data\n",
    "std_msgs/MultiArrayDimension": "string label\nuint32 size\nuint32 stride\n",
    "std_msgs/MultiArrayLayout": "MultiArrayDimension[] dim\nuint32 data_offset\n",
    "std_msgs/Float64MultiArray": "MultiArrayLayout layout\nfloat64[] data\n",
    "geometry_msgs/Vector3": "float64 x\nfloat64 y\nfloat64 z\n",
    "geometry_msgs/Quaternion": "float64 x 0\nfloat64 y 0\nfloat64 z 0\nfloat64 w 1\n",
    "geometry_msgs/Transform": "Vector3 translation\nQuaternion rotation\n",
    "geometry_msgs/TransformStamped": (
        "std_msgs/Header header\nstring child_frame_id\nTransform transform\n"
    ),
    "sensor_msgs/JointState": (
        "std_msgs/Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\n"
        "float64[] effort\n"
    ),
    "tf2_msgs/TFMessage": "geometry_msgs/TransformStamped[] transforms\n",
}
"""Fields of each type by its short name."""

_NEEDS: Final[dict[str, tuple[str, ...]]] = {
    "std_msgs/String": (),
    "std_msgs/Float64": (),
    "std_msgs/Float64MultiArray": ("std_msgs/MultiArrayLayout", "std_msgs/MultiArrayDimension"),
    "sensor_msgs/JointState": ("std_msgs/Header", "builtin_interfaces/Time"),
    "tf2_msgs/TFMessage": (
        "geometry_msgs/TransformStamped",
        "std_msgs/Header",
        "builtin_interfaces/Time",
        "geometry_msgs/Transform",
        "geometry_msgs/Vector3",
        "geometry_msgs/Quaternion",
    ),
}
"""Types that a message type is made of."""


def full_name(short: str) -> str:
    """The name a schema carries: `std_msgs/String` is `std_msgs/msg/String`."""
    package, name = short.split("/")
    return f"{package}/msg/{name}"


def schema_text(short: str) -> str:
    """A definition with those it needs behind it, as MCAP's encoding `ros2msg` wants it."""
    parts = [DEFINITIONS[short]]
    parts += [f"{SEPARATOR}\nMSG: {needed}\n{DEFINITIONS[needed]}" for needed in _NEEDS[short]]
    return "".join(parts)
