"""What stands in the `metadata.yaml` of a bag, as rosbag2 writes and reads it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from robo_eval.core import door

METADATA_FILE: Final = "metadata.yaml"
QOS_KEY: Final = "offered_qos_profiles"
"""Key of a channel's metadata: how its publishers offered it, as YAML."""
HASH_KEY: Final = "topic_type_hash"
"""Key of a channel's metadata: hash of its type."""

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


def described(path: Path) -> tuple[list[str], int] | None:
    """The files and the number of messages that a bag's metadata speaks of.

    Returns:
        None if there is no such file, or it says something else.
    """
    try:
        content = door.yaml_of(door.written(path).decode(), path)[_ROOT]
        return [str(name) for name in content["relative_file_paths"]], int(content["message_count"])
    except (OSError, KeyError, TypeError, ValueError):
        return None


class _Plain(yaml.SafeDumper):
    """YAML without references to earlier parts, which not every reader follows."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ANN401, ARG002 - as the base has it
        return True
