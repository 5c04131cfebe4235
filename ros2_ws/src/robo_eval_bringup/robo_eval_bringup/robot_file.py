"""Which robot file a launch hands to its nodes.

Imports nothing of robo-eval: `ros2 launch` is often run by another Python than the nodes.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import yaml


def in_namespace(robot: str, namespace: str) -> str:
    """A robot file like another, in a namespace of its own.

    All nodes read their namespace from the robot file, so that none can be in another than the
    guard. A robot elsewhere is another robot: its name gets the namespace, too, and with it its
    rows, its lock and its report.

    Args:
        robot: Robot file; the nodes check it.
        namespace: Such as `/twin1`; if it is empty, or that of the file, the file stays as it is.

    Returns:
        The file itself, or a new one in the folder for temporary files.

    Raises:
        ValueError: If another namespace is wanted and the file is not a mapping with a name.
        OSError: If the file cannot be read.
    """
    if not namespace:
        return robot
    data = yaml.safe_load(Path(robot).read_text(encoding="utf-8"))
    if not isinstance(data, dict) or "name" not in data:
        raise ValueError(f"{robot}: is not a robot file, see docs/robots.md")
    if data.get("namespace") == namespace:
        return robot
    name = f"{data['name']}{namespace.replace('/', '-')}"
    data |= {"namespace": namespace, "name": name}
    new = Path(tempfile.mkdtemp(prefix="robo-eval-")) / f"{name}.yaml"
    new.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    return str(new)
