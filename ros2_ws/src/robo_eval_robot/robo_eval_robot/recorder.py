"""The process that records each episode in a bag of its own."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.context import Context
from rclpy.duration import Duration
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from std_msgs.msg import String

from robo_eval.core.errors import InputError
from robo_eval.log.bag_metadata import STATIC_TRANSFORMS, BagTopic
from robo_eval.log.message_text import MessageTexts
from robo_eval_robot import topics
from robo_eval_robot.config import RobotConfig, read_robot
from robo_eval_robot.parameters import declare
from robo_eval_robot.process import run
from robo_eval_robot.recording import Received, RecorderState, Recording

if TYPE_CHECKING:
    from rclpy.callback_groups import Entity
    from rclpy.subscription import MessageInfo, Subscription

DEEP: Final = 1000
"""Messages that may wait: at 1 kHz, a second."""
_SENSOR_DEPTH: Final = 200
_STATUS_S: Final = 0.5
_OFFERS_S: Final = 1.0
_TICK_S: Final = 0.1
_SWEEP_NS: Final = 10_000_000
"""How often messages are taken in an episode; ten from each topic at 1 kHz."""
_IDLE_SWEEP_NS: Final = 50_000_000
"""How often they are taken, and thrown away, before and after one."""
_LAST_WORD_S: Final = 0.5
_USUAL: Final = {
    STATIC_TRANSFORMS: "tf2_msgs/msg/TFMessage",
    "/robot_description": "std_msgs/msg/String",
    "robot_description": "std_msgs/msg/String",
}
"""What most robots say once, and readers of a bag want to know."""
_NS_PER_S: Final = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTopic:
    """A topic to record.

    Attributes:
        name: Full name.
        type: Type such as `std_msgs/msg/String`.
        qos: How it is asked for.
        where: What named it, for error messages.
        is_kept: Whether its last message is written at the start of each bag; None if that is for
            its publishers to say.
        is_usual: Whether nobody named it; where its type is not installed it is left out.
    """

    name: str
    type: str
    qos: QoSProfile
    where: str
    is_kept: bool | None = False
    is_usual: bool = False


def recorded_topics(config: RobotConfig) -> list[RecordedTopic]:
    """All topics of a robot that are recorded.

    Raises:
        InputError: If the robot file gives one of them another type.
    """
    joints, deep = "sensor_msgs/msg/JointState", topics.reliable(DEEP)
    diagnostics = "diagnostic_msgs/msg/DiagnosticArray"
    state = config.state
    named: list[tuple[str, str, QoSProfile, str, bool | None]] = [
        (state.joint_states, joints, deep, "state.joint_states", False),
        (topics.POLICY_COMMAND, joints, deep, "", False),
        (config.controller.topic, "std_msgs/msg/Float64MultiArray", deep, "controller", False),
        (topics.SAFETY_STATE, diagnostics, topics.latched(DEEP), "", True),
        (topics.INCIDENTS, diagnostics, topics.latched(DEEP), "", False),
        (config.guard.estop.topic, "std_msgs/msg/Bool", topics.latched(DEEP), "guard.estop", True),
        (topics.EPISODE_EVENT, "std_msgs/msg/String", topics.latched(DEEP), "", False),
        (topics.POLICY_HEARTBEAT, "std_msgs/msg/Header", deep, "", False),
        (topics.DRIVER_HEARTBEAT, "std_msgs/msg/Header", deep, "", False),
    ]
    if state.mode is not None:
        named.append(
            (state.mode.topic, "std_msgs/msg/String", topics.latched(DEEP), "state.mode", True)
        )
    measured = (
        (state.imu, "sensor_msgs/msg/Imu", "state.imu"),
        (state.workspace, "geometry_msgs/msg/PoseStamped", "state.workspace"),
        (state.wrench, "geometry_msgs/msg/WrenchStamped", "state.wrench"),
    )
    named += [(one.topic, kind, deep, where, False) for one, kind, where in measured if one]
    for name, kind in config.record.topics.items():
        named.append((name, kind, topics.from_any(_SENSOR_DEPTH), f"record.topics.{name}", None))
    found: dict[str, RecordedTopic] = {}
    for name, kind, qos, where, is_kept in named:
        topic = RecordedTopic(
            name=config.topic(name), type=kind, qos=qos, where=where, is_kept=is_kept
        )
        first = found.setdefault(topic.name, topic)
        if first.type != kind:
            raise InputError(
                f"{where}: {topic.name} is recorded as {first.type} already, not {kind}; remove it"
            )
    for name, kind in _USUAL.items():
        usual = RecordedTopic(
            name=config.topic(name), type=kind, qos=topics.latched(DEEP), where="", is_kept=True,
            is_usual=True,
        )  # fmt: skip
        found.setdefault(usual.name, usual)
    return list(found.values())


def message_class(kind: str) -> type[Any]:
    """The Python class of a message type.

    Raises:
        InputError: If its package is not installed.
    """
    package, _, name = kind.partition("/msg/")
    try:
        found: type[Any] = getattr(importlib.import_module(f"{package}.msg"), name)
    except (ImportError, AttributeError) as err:
        raise InputError(
            f"message type {kind} cannot be loaded ({err}); correct the type, or install the"
            f" package {package.replace('_', '-')} of ROS 2"
        ) from err
    return found


class Swept(MutuallyExclusiveCallbackGroup):
    """Subscriptions for which the executor does not wake up, because a timer takes from them.

    The executor spends several times more on handing over one message than it takes to record it.
    """

    def can_execute(self, entity: Entity) -> bool:  # noqa: ARG002 - as the base has it
        """Never."""
        return False


class Recorder:
    """The node around a recording.

    Args:
        context: What it lives in.
        config: The robot.
        root: Folder below which bags go.

    Raises:
        InputError: If a type of the robot file is not installed; the message names it.
    """

    def __init__(self, context: Context, config: RobotConfig, root: Path) -> None:
        self._topics: Final[list[RecordedTopic]] = []
        texts = MessageTexts()
        self._described: dict[str, BagTopic] = {}
        self._classes: dict[str, type[Any]] = {}
        for topic in recorded_topics(config):
            try:
                self._described[topic.name] = BagTopic(
                    name=topic.name,
                    type=topic.type,
                    text=texts.text(topic.type),
                    type_hash=texts.type_hash(topic.type),
                )
                self._classes[topic.name] = message_class(topic.type)
            except InputError as err:
                if topic.is_usual:
                    continue
                where = f"{topic.where}: " if topic.where else ""
                raise InputError(f"{config.name}: {where}{err}") from err
            self._topics.append(topic)
        self.node = Node("recorder", context=context, namespace=config.namespace)
        declare(self.node, config, "record")
        self._status: Final = self.node.create_publisher(
            String, config.topic(topics.RECORDER_STATUS), topics.latched(1)
        )
        self._events: Final = config.topic(topics.EPISODE_EVENT)
        self._kept: Final = {topic.name for topic in self._topics if topic.is_kept}
        self._recording: Final = Recording(
            root,
            [topic.name for topic in self._topics],
            latched=self._kept,
            chunk_bytes=config.record.chunk_bytes,
            describe=self._describe,
            drain=self._sweep,
            say=self._say,
        )
        self._at_once, self._swept = MutuallyExclusiveCallbackGroup(), Swept()
        self._since_ns: Final = time.time_ns()
        self._asked: dict[str, QoSProfile] = {}
        self._subscriptions: dict[str, Subscription[Any]] = {}
        for topic in self._topics:
            self._listen(topic, topic.qos)
        self._sweeper: Final = self.node.create_timer(_IDLE_SWEEP_NS / _NS_PER_S, self._sweep)
        self.node.create_timer(_TICK_S, self._tick)
        self.node.create_timer(_STATUS_S, self._report)
        self.node.create_timer(_OFFERS_S, self._check_offers)
        self._say(self._recording.status())

    @property
    def is_over(self) -> bool:
        """A recorder goes on until it is stopped."""
        return False

    def finish(self) -> None:
        """Close the running bag, and say so."""
        self._recording.stop("recorder stopped")
        self._status.wait_for_all_acked(Duration(seconds=_LAST_WORD_S))

    # Messages ----------------------------------------------------------------------------------

    def _listen(self, topic: RecordedTopic, qos: QoSProfile) -> None:
        self._asked[topic.name] = qos
        self._subscriptions[topic.name] = self.node.create_subscription(
            self._classes[topic.name],
            topic.name,
            self._on_event,
            qos,
            callback_group=self._at_once if topic.name == self._events else self._swept,
            event_callbacks=SubscriptionEventCallbacks(use_default_callbacks=False),
            raw=True,
        )

    def _on_event(self, data: bytes, info: MessageInfo) -> None:
        message = _received(self._events, data, info)
        text = deserialize_message(data, String).data
        self._recording.event(
            message,
            text,
            is_old=message.published_ns < self._since_ns,
            now=time.monotonic(),
        )

    def _sweep(self) -> None:
        """Take what came since the last time, in the order of topics; its times are its own."""
        for name, subscription in self._subscriptions.items():
            if name == self._events:
                continue
            for _ in range(DEEP):
                taken = _take(subscription)
                if taken is None:
                    break
                self._recording.take(_received(name, *taken))

    # What is said and asked ----------------------------------------------------------------------

    def _describe(self) -> list[BagTopic]:
        return [
            BagTopic(
                name=name,
                type=topic.type,
                text=topic.text,
                type_hash=topic.type_hash,
                offered_qos=tuple(
                    qos_entry(info.qos_profile)
                    for info in self.node.get_publishers_info_by_topic(name)
                ),
            )
            for name, topic in self._described.items()
        ]

    def _say(self, status: dict[str, Any]) -> None:
        is_running = status["state"] == RecorderState.RECORDING
        self._sweeper.timer_period_ns = _SWEEP_NS if is_running else _IDLE_SWEEP_NS
        self._status.publish(String(data=json.dumps(status)))

    def _tick(self) -> None:
        self._recording.tick(time.monotonic())

    def _report(self) -> None:
        self._say(self._recording.status())

    def _check_offers(self) -> None:
        """Ask for less where a publisher offers less than was asked: nothing would come of it.

        Ask for more where all have kept what they said last, or it would never be heard.
        """
        for topic in self._topics:
            offered = [i.qos_profile for i in self.node.get_publishers_info_by_topic(topic.name)]
            asked = self._asked[topic.name]
            qos = accepted(asked, offered)
            if (qos.reliability, qos.durability) != (asked.reliability, asked.durability):
                self.node.get_logger().warning(
                    f"{topic.name} is offered {qos.reliability.name}, {qos.durability.name};"
                    " recorded so"
                )
                self.node.destroy_subscription(self._subscriptions[topic.name])
                self._listen(topic, qos)
            if topic.is_kept is None and qos.durability is DurabilityPolicy.TRANSIENT_LOCAL:
                self._kept.add(topic.name)


def accepted(asked: QoSProfile, offered: Sequence[QoSProfile]) -> QoSProfile:
    """What to ask for so that each publisher is heard, and what it has kept."""
    is_lossy = any(q.reliability is ReliabilityPolicy.BEST_EFFORT for q in offered)
    is_volatile = any(q.durability is DurabilityPolicy.VOLATILE for q in offered)
    if offered and not is_lossy and not is_volatile:
        return topics.latched(asked.depth)
    return topics.qos(
        asked.depth,
        ReliabilityPolicy.BEST_EFFORT if is_lossy else asked.reliability,
        DurabilityPolicy.VOLATILE if is_volatile else asked.durability,
    )


def _take(subscription: Subscription[Any]) -> tuple[bytes, MessageInfo] | None:
    """Take a message that came and waits, as the executor does; None if there is none."""
    is_raw = True
    with subscription.handle:
        taken: tuple[bytes, MessageInfo] | None = subscription.handle.take_message(
            subscription.msg_type, is_raw
        )
    return taken


def _received(name: str, data: bytes, info: MessageInfo) -> Received:
    publisher = info.get("publisher_gid")
    return Received(
        name,
        data,
        info["received_timestamp"] or time.time_ns(),
        info["source_timestamp"],
        info["publication_sequence_number"],
        publisher["data"] if publisher else None,
    )


def qos_entry(profile: QoSProfile) -> dict[str, Any]:
    """How a publisher offers a topic, as rosbag2 writes it."""
    return {
        "history": profile.history.name.lower(),
        "depth": profile.depth,
        "reliability": profile.reliability.name.lower(),
        "durability": profile.durability.name.lower(),
        "deadline": _time(profile.deadline),
        "lifespan": _time(profile.lifespan),
        "liveliness": profile.liveliness.name.lower(),
        "liveliness_lease_duration": _time(profile.liveliness_lease_duration),
        "avoid_ros_namespace_conventions": profile.avoid_ros_namespace_conventions,
    }


def _time(duration: Duration) -> dict[str, int]:
    seconds, nanoseconds = divmod(duration.nanoseconds, _NS_PER_S)
    return {"sec": seconds, "nsec": nanoseconds}


def make(context: Context, args: Sequence[str]) -> Recorder:
    """Build the recorder from its arguments.

    Raises:
        InputError: If the robot file or the folder cannot be used.
    """
    parser = argparse.ArgumentParser(
        prog="recorder", description="Record each episode of a robot in a bag of its own."
    )
    parser.add_argument("robot", type=Path, help="robot file (YAML)")
    parser.add_argument(
        "--root", type=Path, default=Path(), help="trial folder; bags go below it (default: here)"
    )
    given = parser.parse_args(list(args))
    if not given.root.is_dir():
        raise InputError(f"--root {given.root}: is not a folder; create it first")
    return Recorder(context, read_robot(given.robot), given.root)


def main(args: Sequence[str] | None = None) -> int:
    """Run the recorder until a signal ends it."""
    return run(make, args)


if __name__ == "__main__":
    sys.exit(main())
