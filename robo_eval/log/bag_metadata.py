"""What stands in the `metadata.yaml` of a bag, as rosbag2 writes and reads it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Final

import yaml

from robo_eval.core import door
from robo_eval.core.errors import InputError, PlanError
from robo_eval.log.files import explained

METADATA_FILE: Final = "metadata.yaml"
_ANEW: Final = "write it anew with ros2 bag reindex, or move it away"
QOS_KEY: Final = "offered_qos_profiles"
"""Key of a channel's metadata: how its publishers offered it, as YAML."""
HASH_KEY: Final = "topic_type_hash"
"""Key of a channel's metadata: hash of its type."""
STATIC_TRANSFORMS: Final = "/tf_static"
"""End of a topic that is latched by many: what each of them said holds."""

POLICY_COMMAND: Final = "policy/joint_command"
"""`sensor_msgs/JointState` in the robot's namespace: what the policy asks for, once a tick.

Only the guard hears it. It is told here because bags are read where there is no ROS."""

_VERSION: Final = 9
_ROOT: Final = "rosbag2_bagfile_information"


@dataclass(frozen=True, slots=True, kw_only=True)
class BagTopic:
    """A topic of a bag.

    Attributes:
        name: Full name.
        type: Type such as `std_msgs/msg/String`.
        text: Definition of the type with those it needs.
        type_hash: Hash of the type; empty if unknown.
        offered_qos: How each publisher offered it, as rosbag2 writes it.
    """

    name: str
    type: str
    text: str
    type_hash: str = ""
    offered_qos: tuple[Mapping[str, Any], ...] = ()

    def channel_metadata(self) -> dict[str, str]:
        """What the channel of the topic carries beside its name."""
        profiles = yaml.dump([dict(p) for p in self.offered_qos], Dumper=_Plain, sort_keys=False)
        return {QOS_KEY: profiles.strip() if self.offered_qos else "", HASH_KEY: self.type_hash}


def metadata_yaml(
    file: str,
    topics: Sequence[BagTopic],
    counts: Mapping[str, int],
    span_ns: tuple[int, int],
    custom: Mapping[str, str] | None = None,
) -> bytes:
    """The text of the metadata of a bag of one file.

    Args:
        file: Name of the file.
        topics: Its topics.
        counts: Number of messages by topic.
        span_ns: Times of the first and the last message.
        custom: What else is said about the bag.
    """
    total = sum(counts.values())
    start = {"nanoseconds_since_epoch": span_ns[0]}
    duration = {"nanoseconds": max(0, span_ns[1] - span_ns[0])}
    entries = [
        {
            "topic_metadata": {
                "name": topic.name,
                "type": topic.type,
                "serialization_format": "cdr",
                "offered_qos_profiles": [dict(profile) for profile in topic.offered_qos],
                "type_description_hash": topic.type_hash,
            },
            "message_count": counts.get(topic.name, 0),
        }
        for topic in topics
    ]
    content = {
        "version": _VERSION,
        "storage_identifier": "mcap",
        "duration": duration,
        "starting_time": start,
        "message_count": total,
        "topics_with_message_count": entries,
        "compression_format": "",
        "compression_mode": "",
        "relative_file_paths": [file],
        "files": [
            {
                "path": file,
                "starting_time": dict(start),
                "duration": dict(duration),
                "message_count": total,
            }
        ],
        "custom_data": dict(custom) if custom else None,
        "ros_distro": os.environ.get("ROS_DISTRO", ""),
    }
    return yaml.dump({_ROOT: content}, Dumper=_Plain, sort_keys=False).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """What a bag's metadata says of it.

    Attributes:
        files: Names of its files.
        types: Type of the messages of each topic.
        counts: Number of messages by topic; of all under the empty name.
    """

    files: tuple[str, ...]
    types: Mapping[str, str]
    counts: Mapping[str, int]


def described(path: Path) -> Described | None:
    """What a bag's metadata says of it, in any version of the file.

    Returns:
        None if there is no such file, or it is about something else.

    Raises:
        InputError: If it is damaged.
        TrialDirectoryError: If it cannot be read.
    """
    try:
        with explained(path, "cannot be read"):
            if not path.is_file():
                return None
            data = door.written(path)
        content = door.yaml_of(data.decode(), path)
        if not isinstance(content, dict) or _ROOT not in content:
            return None
        return _described(content[_ROOT])
    except PlanError as err:
        raise InputError(f"{err}; {_ANEW}") from err
    except (LookupError, TypeError, AttributeError, ValueError) as err:
        raise InputError(
            f"{path}: cannot be read: it is not as rosbag2 writes it; {_ANEW}"
        ) from err


def _described(content: Any) -> Described:
    if not isinstance(content, dict):
        raise TypeError
    types: dict[str, str] = {}
    counts = Counter({"": int(content.get("message_count", 0))})
    for entry in content.get("topics_with_message_count") or ():
        # The first version had another name for it.
        topic = entry.get("topic_metadata") or entry["topic_and_type"]
        types[str(topic["name"])] = str(topic["type"])
        counts[str(topic["name"])] += int(entry["message_count"])
    return Described(
        # Until version 3 with the folder before it.
        files=tuple(PurePath(name).name for name in content["relative_file_paths"] or ()),
        types=types,
        counts=counts,
    )


class _Plain(yaml.SafeDumper):
    """YAML without references to earlier parts, which not every reader follows."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - as the base has it
        return True
