"""What can be heard of a robot without saying anything: messages, and who else is on its topics."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped, WrenchStamped
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Bool, Header

from robo_eval_robot import topics
from robo_eval_robot.config import RobotConfig
from robo_eval_robot.guard_watch import JointSample
from robo_eval_robot.process import Joined

NODE: Final = "doctor"
CLOCK: Final = "/clock"
_MOST: Final = 20_000
_SPIN_S: Final = 0.05
_GRAPH_S: Final = 1.0
"""How long after joining the graph others may need to be seen."""
COMMAND_TYPE: Final = "std_msgs/msg/Float64MultiArray"
FIELDS: Final = ("position", "velocity", "effort")


@dataclass(frozen=True, slots=True, kw_only=True)
class JointMessage(JointSample):
    """One message of joint states, and when it came.

    Attributes:
        received_s: By the monotonic clock.
        wall_ns: By the wall clock.
    """

    received_s: float
    wall_ns: int

    @property
    def fields(self) -> dict[str, Sequence[float]]:
        """What is said of the joints, by the field of the message."""
        return dict(zip(FIELDS, (self.positions, self.velocities, self.efforts), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A publisher or subscriber somebody else has.

    Attributes:
        node: Full name of its node.
        type: Of its messages.
        is_reliable: Whether delivery is repeated until it works.
        is_latched: Whether the last messages are kept for those who come late.
    """

    node: str
    type: str
    is_reliable: bool
    is_latched: bool


@dataclass(slots=True, kw_only=True)
class Heard:
    """Everything that was heard.

    Attributes:
        joints: Messages of joint states.
        arrivals: By topic, when messages came, monotonic clock.
        estop: What the emergency stop's topic said, in order.
        guard: What the guard said of itself last; empty if it did not.
        publishers: By topic.
        subscribers: By topic.
    """

    joints: list[JointMessage] = field(default_factory=list)
    arrivals: dict[str, list[float]] = field(default_factory=dict)
    estop: list[bool] = field(default_factory=list)
    guard: dict[str, str] = field(default_factory=dict)
    publishers: dict[str, tuple[Endpoint, ...]] = field(default_factory=dict)
    subscribers: dict[str, tuple[Endpoint, ...]] = field(default_factory=dict)


def listened(config: RobotConfig) -> dict[str, tuple[Any, QoSProfile]]:
    """Topics our nodes hear of a robot, full names, with type and the delivery they request."""
    state, newest = config.state, topics.reliable(1)
    found: dict[str, tuple[Any, QoSProfile]] = {
        config.topic(state.joint_states): (JointState, topics.reliable(10)),
        config.topic(config.guard.estop.topic): (Bool, newest),
    }
    if state.imu is not None:
        found[config.topic(state.imu.topic)] = (Imu, topics.reliable(10))
    if state.wrench is not None:
        found[config.topic(state.wrench.topic)] = (WrenchStamped, newest)
    if state.workspace is not None:
        found[config.topic(state.workspace.topic)] = (PoseStamped, newest)
    if config.guard.driver_heartbeat_s is not None:
        found[config.topic(topics.DRIVER_HEARTBEAT)] = (Header, newest)
    return found


class Hearing(Joined):
    """A node that only listens, to every publisher, whatever delivery it offers.

    Args:
        config: The robot.
    """

    def __init__(self, config: RobotConfig) -> None:
        # Without its own rosout and parameter services nothing at all is published.
        super().__init__(NODE, config, enable_rosout=False, start_parameter_services=False)
        self._config = config
        self._heard = Heard()
        self._joints: deque[JointMessage] = deque(maxlen=_MOST)
        self._since = time.monotonic()
        for topic, (kind, _) in listened(config).items():
            self.node.create_subscription(
                kind, topic, self._callback(topic, kind), topics.from_any(100)
            )
        estop = config.topic(config.guard.estop.topic)
        # Whoever keeps its last message sends it to those who ask for it only.
        self.node.create_subscription(Bool, estop, self._on_estop, topics.latched(10))
        self.node.create_subscription(
            DiagnosticArray, topics.SAFETY_STATE, self._on_guard, topics.latched(1)
        )

    def listen(self, first_s: float, then_s: float) -> Heard:
        """Wait for the first joint state, listen for a while, and look who is there.

        Args:
            first_s: How long to wait for the first, seconds.
            then_s: How long to listen then, seconds.
        """
        self._spin(first_s, lambda: bool(self._joints))
        self._spin(max(_GRAPH_S - (time.monotonic() - self._since), 0.0))
        self._joints.clear()
        self._heard.arrivals.clear()
        self._spin(then_s)
        self._heard.joints = list(self._joints)
        self._look_around()
        return self._heard

    def follow_estop(self, seconds: float) -> list[bool]:
        """What the emergency stop says until it was pressed and released, or time is up."""
        values = self._heard.estop

        def is_done() -> bool:
            return True in values and False in values[values.index(True) :]

        self._spin(seconds, is_done)
        return list(values)

    def _spin(self, seconds: float, is_enough: Callable[[], bool] = lambda: False) -> None:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0.0 and not is_enough():
            self._executor.spin_once(timeout_sec=min(left, _SPIN_S))

    def _look_around(self) -> None:
        config, node = self._config, self.node
        command = config.topic(config.controller.topic)
        policy = config.topic(topics.POLICY_COMMAND)
        # Plain, and of sessions, such as a run that is on.
        policies = [t for t, _ in node.get_topic_names_and_types() if t.startswith(policy)]
        for topic in (*listened(config), command, *policies, CLOCK):
            self._heard.publishers[topic] = endpoints_of(node.get_publishers_info_by_topic(topic))
        infos = node.get_subscriptions_info_by_topic(command)
        self._heard.subscribers[command] = endpoints_of(infos)

    def _callback(self, topic: str, kind: Any) -> Callable[[Any], None]:
        if kind is JointState:
            return self._on_joints
        if kind is Bool:
            return self._on_estop

        def arrived(_message: Any) -> None:
            self._heard.arrivals.setdefault(topic, []).append(time.monotonic())

        return arrived

    def _on_joints(self, message: Any) -> None:
        self._joints.append(
            JointMessage(
                received_s=time.monotonic(),
                wall_ns=time.time_ns(),
                stamp_ns=topics.ns_of(message.header.stamp),
                names=tuple(message.name),
                positions=tuple(message.position),
                velocities=tuple(message.velocity),
                efforts=tuple(message.effort),
            )
        )

    def _on_estop(self, message: Any) -> None:
        values = self._heard.estop
        if not values or values[-1] != message.data:
            values.append(message.data)

    def _on_guard(self, message: Any) -> None:
        self._heard.guard = topics.guard_of(message) or self._heard.guard


def type_of(kind: type[Any]) -> str:
    """Name of a message's type, such as `std_msgs/msg/Bool`."""
    return f"{kind.__module__.partition('.')[0]}/msg/{kind.__name__}"


def endpoints_of(infos: Sequence[Any]) -> tuple[Endpoint, ...]:
    """What the graph says of publishers or subscribers."""
    return tuple(
        Endpoint(
            node=f"{info.node_namespace.rstrip('/')}/{info.node_name}",
            type=info.topic_type,
            is_reliable=info.qos_profile.reliability == ReliabilityPolicy.RELIABLE,
            is_latched=info.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL,
        )
        for info in infos
    )
