"""The guard as a process: every request of a policy passes through it to the controller."""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped, WrenchStamped
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.context import Context
from rclpy.duration import Duration
from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64MultiArray, Header, String
from std_srvs.srv import SetBool, Trigger

from robo_eval.core.errors import InputError
from robo_eval_robot import topics
from robo_eval_robot.config import RobotConfig, read_robot
from robo_eval_robot.guard import MOVING, Answer, Guard, Reaction
from robo_eval_robot.guard_checks import Request
from robo_eval_robot.guard_messages import health_message, incident_message, state_message
from robo_eval_robot.guard_passing import Passing
from robo_eval_robot.guard_peers import Author, Origin
from robo_eval_robot.guard_watch import JointSample
from robo_eval_robot.parameters import declare
from robo_eval_robot.process import run, take_precedence

STATE_HZ: Final = 10.0
HEARTBEAT_HZ: Final = 20.0
GRAPH_HZ: Final = 2.0
HEALTH_HZ: Final = 1.0
_SOURCES: Final = 50
"""Messages of one emergency stop or mode that may wait, from all who publish it."""
_LAST_WORD_S: Final = 0.5
_LAST_WORDS: Final = 5
"""How often the last stop command is sent if nobody says that it was heard."""


class GuardNode:
    """The ROS side of the guard: messages in, reactions out.

    Args:
        context: ROS context.
        robot: The robot.
    """

    def __init__(self, context: Context, robot: RobotConfig) -> None:
        self.node = Node("guard", namespace=robot.namespace, context=context)
        declare(self.node, robot, "joints", "controller", "state", "guard")
        self._robot = robot
        self._guard = Guard(robot, time.monotonic())
        self._said: tuple[object, ...] = ()
        self._estops: dict[str, str] = {}
        self._is_warned = False
        self._last_stop_ns: int | None = None
        self._cycle_at: float | None = None
        self._cycles = 0
        self._cycles_ms: deque[float] = deque(maxlen=int(robot.guard.cycle_hz))
        self._publish()
        self._passing = Passing(self._send, robot.guard.command_age_s)
        self._subscribe()
        self._serve()
        self._now_and_then = [
            (max(round(robot.guard.cycle_hz / rate_hz), 1), callback)
            for rate_hz, callback in (
                (HEARTBEAT_HZ, self._beat),
                (STATE_HZ, self._say_state),
                (GRAPH_HZ, self._look_around),
                (HEALTH_HZ, self._say_health),
            )
        ]
        # Steady time: a clock that stands still, as /clock may, must not stop the watchdogs.
        self._scheduling = take_precedence(robot.guard.realtime_priority)
        self._steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.node.create_timer(1.0 / robot.guard.cycle_hz, self._on_cycle, clock=self._steady)

    @property
    def is_over(self) -> bool:
        """It guards until it is told to end."""
        return False

    def finish(self) -> None:
        """Slow the robot down; send the last command until it was heard, half a second at most."""
        reaction = self._guard.shut_down(time.monotonic())
        self._react(reaction)
        command = last = reaction.command
        until = time.monotonic() + self._robot.guard.stop.within_s
        while command is not None and time.monotonic() < until:
            time.sleep(1.0 / self._robot.guard.cycle_hz)
            if (command := self._guard.slow_down(time.monotonic())) is not None:
                self._command(command)
                last = command
        until = time.monotonic() + _LAST_WORD_S
        share = Duration(seconds=_LAST_WORD_S / _LAST_WORDS)
        while last is not None and self._commands.get_subscription_count():
            if self._commands.wait_for_all_acked(share) or time.monotonic() >= until:
                break
            self._command(last)
        self._say_state()
        self._states.wait_for_all_acked(share)

    # Topics and services.

    def _publish(self) -> None:
        full = self._robot.topic
        # Each event, such as that of incompatible QoS, would make every wait for messages longer.
        create = partial(
            self.node.create_publisher,
            event_callbacks=PublisherEventCallbacks(use_default_callbacks=False),
        )
        command_topic = full(self._robot.controller.topic)
        self._command_topic = command_topic
        self._commands = create(Float64MultiArray, command_topic, topics.reliable(1))
        self._states = create(DiagnosticArray, full(topics.SAFETY_STATE), topics.latched(1))
        self._incidents = create(DiagnosticArray, full(topics.INCIDENTS), topics.latched(50))
        self._beats = create(Header, full(topics.GUARD_HEARTBEAT), topics.reliable(1))
        self._health = create(DiagnosticArray, "/diagnostics", topics.reliable(10))

    def _subscribe(self) -> None:
        robot, newest = self._robot, topics.reliable(1)
        estop = robot.guard.estop.topic
        heard: list[tuple[Any, str, Callable[..., None], Any]] = [
            # Every request is heard and counted, also those that wait while a cycle is late.
            (JointState, topics.POLICY_COMMAND, self._on_request, topics.reliable(10)),
            (JointState, robot.state.joint_states, self._on_joint_state, newest),
            (Header, topics.POLICY_HEARTBEAT, self._on_policy_beat, newest),
            (Header, topics.DRIVER_HEARTBEAT, self._on_driver_beat, newest),
            (String, topics.EPISODE_EVENT, self._on_event, topics.latched(10)),
        ]
        told: list[tuple[Any, str, Callable[..., None]]] = [(Bool, estop, self._on_estop)]
        if robot.state.mode is not None:
            told.append((String, robot.state.mode.topic, self._on_mode))
        for kind, topic, callback in told:
            # Deep: of two sources that speak at once both are heard. And also from a publisher that
            # keeps nothing, whom the first of the two does not match.
            heard += [
                (kind, topic, callback, qos(_SOURCES)) for qos in (topics.latched, topics.reliable)
            ]
        if robot.state.workspace is not None:
            heard.append((PoseStamped, robot.state.workspace.topic, self._on_pose, newest))
        if robot.state.wrench is not None:
            heard.append((WrenchStamped, robot.state.wrench.topic, self._on_wrench, newest))
        for kind, topic, callback, qos in heard:
            self.node.create_subscription(
                kind,
                robot.topic(topic),
                callback,
                qos,
                event_callbacks=SubscriptionEventCallbacks(use_default_callbacks=False),
            )

    def _serve(self) -> None:
        full = self._robot.topic
        for service, ask in (
            (topics.SAFETY_STOP, self._guard.stop),
            (topics.SAFETY_RESET, self._guard.reset),
            (topics.SAFETY_WITHHOLD, self._guard.withhold),
        ):
            self.node.create_service(Trigger, full(service), partial(self._on_asked, ask))
        self.node.create_service(SetBool, full(topics.SAFETY_ENABLE), self._on_enable)
        power_off = self._robot.guard.stop.power_off
        self._power: Any = (
            None if power_off is None else self.node.create_client(Trigger, full(power_off))
        )

    # What comes in.

    def _on_request(self, message: Any, info: Any) -> None:
        request = Request(
            names=message.name,
            values=getattr(message, self._robot.controller.interface),
            stamp_ns=topics.ns_of(message.header.stamp),
        )
        origin = self._origin(info, self._guard.peers.requests)
        wall_ns, now = time.time_ns(), time.monotonic()
        reaction = self._guard.request(request, wall_ns=wall_ns, now=now, origin=origin)
        if reaction.command is not None and not reaction.stopped:
            self._passing.put(reaction.command, now)
            reaction.command = None
        self._react(reaction)

    def _on_joint_state(self, message: Any) -> None:
        stamp_ns = topics.ns_of(message.header.stamp)
        sample = JointSample(
            message.name, message.position, message.velocity, message.effort, stamp_ns=stamp_ns
        )
        self._react(self._guard.joint_state(sample, time.monotonic()))

    def _on_pose(self, message: Any) -> None:
        point = message.pose.position
        self._react(self._guard.pose((point.x, point.y, point.z), time.monotonic()))

    def _on_wrench(self, message: Any) -> None:
        force, torque = message.wrench.force, message.wrench.torque
        self._react(
            self._guard.wrench(
                math.hypot(force.x, force.y, force.z),
                math.hypot(torque.x, torque.y, torque.z),
                time.monotonic(),
            )
        )

    def _on_policy_beat(self, _message: Any, info: Any) -> None:
        origin = self._origin(info, self._guard.peers.beats)
        self._react(self._guard.policy_beat(time.monotonic(), origin))

    def _origin(self, info: Any, author: Author) -> Origin:
        source = bytes(info["publisher_gid"]["data"]).hex()
        if source not in author.nodes and self._guard.state in MOVING:
            self._look_around()  # for its name
        return Origin(source, info["publication_sequence_number"])

    def _on_driver_beat(self, _message: Any) -> None:
        self._guard.peers.heard_driver(time.monotonic())

    def _on_estop(self, message: Any, info: Any) -> None:
        source = bytes(info["publisher_gid"]["data"]).hex()
        if source not in self._estops:
            self._look_around()
        self._react(self._guard.estop(pressed=message.data, now=time.monotonic(), source=source))

    def _on_mode(self, message: Any) -> None:
        self._react(self._guard.mode(message.data, time.monotonic()))

    def _on_event(self, message: Any) -> None:
        self._guard.event(message.data)

    def _on_cycle(self) -> None:
        now = time.monotonic()
        if self._cycle_at is not None:
            self._cycles_ms.append((now - self._cycle_at) * 1e3)
        self._cycle_at = now
        self._react(self._guard.cycle(now, blocked_s=self._passing.blocked_s(now)))
        # One timer for all: who hears the heartbeat knows that ages are looked at.
        self._cycles += 1
        for number, (cycles, callback) in enumerate(self._now_and_then):
            if self._cycles % cycles == number % cycles:
                callback()

    def _look_around(self) -> None:
        found = self.node.get_publishers_info_by_topic(self._command_topic)
        is_ready = self._power is not None and self._power.service_is_ready()
        # Its own publisher may not be listed yet; another one then counts as the second.
        own = self.node.get_fully_qualified_name()
        others = sum(_full_name(each) != own for each in found)
        publishers = max(len(found), 1 + others)
        self._estops = self._publishers_of(self._robot.guard.estop.topic)
        self._guard.peers.requests.nodes = self._publishers_of(topics.POLICY_COMMAND)
        self._guard.peers.beats.nodes = self._publishers_of(topics.POLICY_HEARTBEAT)
        self._warn_of_best_effort()
        self._react(
            self._guard.graph(
                publishers=publishers,
                estop_sources=len(self._estops),
                power_off_ready=is_ready,
                now=time.monotonic(),
                estop_nodes=self._estops,
            )
        )

    def _publishers_of(self, topic: str) -> dict[str, str]:
        """Name of the node by publisher."""
        found = self.node.get_publishers_info_by_topic(self._robot.topic(topic))
        return {bytes(each.endpoint_gid).hex(): _full_name(each) for each in found}

    def _warn_of_best_effort(self) -> None:
        """Say once why joint states that are published do not come."""
        if self._is_warned or self._guard.joints.stamp_ns:
            return
        topic = self._robot.topic(self._robot.state.joint_states)
        if said := topics.unheard(self.node, topic):
            self._is_warned = True
            self.node.get_logger().warning(f"{topic}: {said}")

    def _on_asked(self, ask: Callable[[float], Answer], _request: Any, response: Any) -> Any:
        return self._answer(ask(time.monotonic()), response)

    def _on_enable(self, request: Any, response: Any) -> Any:
        self._look_around()
        return self._answer(self._guard.enable(on=request.data, now=time.monotonic()), response)

    def _answer(self, answer: Answer, response: Any) -> Any:
        self._react(answer.reaction)
        response.success, response.message = answer.success, answer.message
        return response

    # What goes out.

    def _react(self, reaction: Reaction) -> None:
        if reaction.command is not None:
            self._command(reaction.command)
        if reaction.stopped:
            self._last_stop_ns = time.time_ns()
        if reaction.power_off:
            self._remove_power()
        for violation in reaction.incidents:
            self._incidents.publish(incident_message(self._robot, self._guard, violation))
        if self._said != (self._guard.state, len(self._guard.causes)):
            self._say_state()
        for violation in reaction.incidents:
            self.node.get_logger().error(f"{violation.code}: {violation.message}")

    def _command(self, command: Sequence[float]) -> None:
        with self._passing.overtaken():
            self._send(command)

    def _send(self, command: Sequence[float]) -> None:
        self._commands.publish(Float64MultiArray(data=command))

    def _remove_power(self) -> None:
        if self._power is None or not self._power.service_is_ready():
            self._react(self._guard.power_off_failed("no such service.", time.monotonic()))
            return
        # Nor is a request that was asked again forgotten: a late answer is one.
        answered = partial(self._on_power_off, self._guard.stops)
        self._power.call_async(Trigger.Request()).add_done_callback(answered)

    def _on_power_off(self, stop: int, future: Any) -> None:
        response = future.result()
        if response.success:
            self._guard.power_is_off(stop)
            return
        why = response.message or "no reason given."
        self._react(self._guard.power_off_failed(why, time.monotonic(), stop))

    def _say_state(self) -> None:
        self._said = (self._guard.state, len(self._guard.causes))
        self._states.publish(
            state_message(
                self._robot,
                self._guard,
                last_stop_ns=self._last_stop_ns,
                now=time.monotonic(),
            )
        )

    def _beat(self) -> None:
        header = Header(frame_id="guard")
        header.stamp = topics.time_of(time.time_ns())
        self._beats.publish(header)

    def _say_health(self) -> None:
        self._health.publish(
            health_message(self._robot, self._guard, self._cycles_ms, self._scheduling)
        )


def _full_name(endpoint: Any) -> str:
    return f"{endpoint.node_namespace.rstrip('/')}/{endpoint.node_name}"


def make(context: Context, args: Sequence[str]) -> GuardNode:
    """Build the guard.

    Args:
        context: ROS context.
        args: The robot file.

    Raises:
        InputError: If not one file is given.
        PlanError: If the file cannot be used, for example because limits are missing.
    """
    if len(args) != 1:
        raise InputError(
            f"guard_node: takes one robot file, given {' '.join(args) or 'none'};"
            " for example: python -m robo_eval_robot.guard_node robot.yaml"
        )
    return GuardNode(context, read_robot(Path(args[0])))


def main(args: Sequence[str] | None = None) -> int:
    """Guard a robot until a signal comes.

    Args:
        args: Command line without the program; that of the process if none is given.
    """
    return run(make, args)


if __name__ == "__main__":
    sys.exit(main())
