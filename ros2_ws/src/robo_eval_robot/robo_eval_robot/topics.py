"""Topics and services of our own nodes, and how each is delivered."""

from __future__ import annotations

import secrets
from typing import Final

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from robo_eval_robot.config import DRIVER_HEARTBEAT as DRIVER_HEARTBEAT
from robo_eval_robot.config import EPISODE_EVENT as EPISODE_EVENT
from robo_eval_robot.config import GUARD_HEARTBEAT as GUARD_HEARTBEAT
from robo_eval_robot.config import INCIDENTS as INCIDENTS
from robo_eval_robot.config import POLICY_COMMAND as POLICY_COMMAND
from robo_eval_robot.config import POLICY_HEARTBEAT as POLICY_HEARTBEAT
from robo_eval_robot.config import SAFETY_STATE as SAFETY_STATE

SAFETY_STOP: Final = "safety/stop"
"""`std_srvs/Trigger`: stop now."""
SAFETY_RESET: Final = "safety/reset"
"""`std_srvs/Trigger`: from a stop, whose cause is gone, to ready."""
SAFETY_ENABLE: Final = "safety/enable"
"""`std_srvs/SetBool`: whether commands are passed on."""
SAFETY_WITHHOLD: Final = "safety/withhold"
"""`std_srvs/Trigger`: send nothing for a while, to see that the driver stops by itself."""
RECORDER_STATUS: Final = "recorder/status"
"""`std_msgs/String` with one JSON object: what the recorder does."""

_NS_PER_S: Final = 1_000_000_000


def of_session() -> list[str]:
    """Arguments by which nodes give the policy's topics names that nobody knew before.

    A standard message carries no token, so its topic does. Bags keep the plain names.
    """
    session = f"s{secrets.token_hex(4)}"
    rules = [f"{topic}:={topic}/{session}" for topic in (POLICY_COMMAND, POLICY_HEARTBEAT)]
    return ["--ros-args", *(part for rule in rules for part in ("-r", rule)), "--"]


def reliable(depth: int) -> QoSProfile:
    """Delivered in order, and nothing kept for those who come late."""
    return qos(depth, ReliabilityPolicy.RELIABLE, DurabilityPolicy.VOLATILE)


def latched(depth: int) -> QoSProfile:
    """The last messages are kept for those who come late, while the publisher lives."""
    return qos(depth, ReliabilityPolicy.RELIABLE, DurabilityPolicy.TRANSIENT_LOCAL)


def from_any(depth: int) -> QoSProfile:
    """What every publisher can offer; what is lost on the way is not sent again."""
    return qos(depth, ReliabilityPolicy.BEST_EFFORT, DurabilityPolicy.VOLATILE)


def qos(depth: int, reliability: ReliabilityPolicy, durability: DurabilityPolicy) -> QoSProfile:
    """The last messages of a topic, sent and kept as named."""
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST, depth=depth, reliability=reliability, durability=durability
    )


def unheard(node: Node, topic: str) -> str:
    """Who publishes what a reliable subscriber does not hear, with the remedy; empty if nobody."""
    for each in node.get_publishers_info_by_topic(topic):
        if each.qos_profile.reliability == ReliabilityPolicy.BEST_EFFORT:
            return f"{each.node_name} offers best effort; set its reliability to reliable"
    return ""


def values_of(status: DiagnosticStatus) -> dict[str, str]:
    """What a diagnostic status says, by key."""
    return {entry.key: entry.value for entry in status.values}


def guard_of(message: DiagnosticArray) -> dict[str, str]:
    """What `safety/state` says of the guard: its values and its `state`; empty if nothing."""
    for status in message.status:
        if status.name == "guard":
            return {"state": status.message, **values_of(status)}
    return {}


def ns_of(stamp: Time) -> int:
    """A time stamp in nanoseconds."""
    return int(stamp.sec) * _NS_PER_S + int(stamp.nanosec)


def time_of(ns: int) -> Time:
    """Nanoseconds as a time stamp."""
    seconds, nanoseconds = divmod(ns, _NS_PER_S)
    return Time(sec=seconds, nanosec=nanoseconds)
