"""Plays driver, policy, operator and controller for a guard, as JSON lines on stdin ask for.

In: one object a line. `{"set": {...}}` changes what is published (see `Rig.values`);
`{"call": "enable", "data": true}` calls a service; `{"request": [..]}` asks once;
`{"second": true}` opens a second publisher of the controller's topic; `{"event": "text"}`;
`{"estop_there": false}` ends the emergency stop's publisher; `{"gate": true}` presses or releases a
second one; `{"garbage": true}`; `{"parameter": name, "to": 1.0}`.
Out: one object a line, each with `t`, seconds of the monotonic clock.
"""

from __future__ import annotations

import json
import queue
import sys
import threading
import time
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.parameter_client import AsyncParameterClient
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64MultiArray, Header, String
from std_srvs.srv import SetBool, Trigger

from robo_eval_robot import topics

JOINTS = ("slide", "turn")
DRIVER_HZ = 100.0


def say(**values: Any) -> None:
    sys.stdout.write(json.dumps({"t": time.monotonic(), **values}) + "\n")
    sys.stdout.flush()


class Rig:
    def __init__(self, namespace: str, interface: str, command_topic: str) -> None:
        self.node = Node("rig", namespace=namespace)
        self.interface = interface
        self.command_topic = command_topic
        self.lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.values: dict[str, Any] = {
            "driver": True,  # joint states and its heartbeat come
            "position": [0.0, 0.0],
            "velocity": [0.0, 0.0],
            "policy_hz": 0.0,  # requests a second
            "request": [0.0, 0.0],
            "beats": True,  # the policy's heartbeat comes
            "estop": None,  # what is latched there
            "echo": True,  # every command is reported, not only those that differ
        }
        self.last: list[float] | None = None
        self.count = 0
        self.due = 0.0
        self.calls: dict[str, Any] = {}
        node, newest = self.node, topics.reliable(1)
        node.create_subscription(
            Float64MultiArray, command_topic, self.on_command, topics.reliable(100)
        )
        node.create_subscription(
            DiagnosticArray, topics.SAFETY_STATE, self.on_state, topics.latched(1)
        )
        node.create_subscription(
            DiagnosticArray, topics.INCIDENTS, self.on_incident, topics.latched(50)
        )
        node.create_subscription(Header, topics.GUARD_HEARTBEAT, self.on_beat, newest)
        self.joints = node.create_publisher(JointState, "joint_states", topics.reliable(10))
        self.requests = node.create_publisher(JointState, topics.POLICY_COMMAND, newest)
        self.policy = node.create_publisher(Header, topics.POLICY_HEARTBEAT, newest)
        self.driver = node.create_publisher(Header, topics.DRIVER_HEARTBEAT, newest)
        self.estop = node.create_publisher(Bool, "safety/estop", topics.latched(1))
        self.gate: Any = None
        self.events = node.create_publisher(String, topics.EPISODE_EVENT, topics.latched(10))
        self.second: Any = None
        self.parameters = AsyncParameterClient(node, f"{namespace}/guard")
        self.services = {
            "enable": node.create_client(SetBool, topics.SAFETY_ENABLE),
            **{
                name: node.create_client(Trigger, f"safety/{name}")
                for name in ("stop", "reset", "withhold")
            },
        }
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        node.create_timer(1.0 / DRIVER_HZ, self.drive, clock=steady)
        node.create_timer(0.05, self.beat, clock=steady)
        node.create_timer(0.01, self.work, clock=steady)

    # What is heard.

    def on_command(self, message: Any) -> None:
        data = list(message.data)
        self.count += 1
        if self.values["echo"] or data != self.last:
            say(command=data, count=self.count)
        self.last = data

    def on_state(self, message: Any) -> None:
        first = message.status[0]
        limits = {each.name: each.level[0] for each in message.status[1:]}
        values = {each.key: each.value for each in first.values}
        say(state=first.message, level=first.level[0], values=values, limits=limits)

    def on_incident(self, message: Any) -> None:
        for status in message.status:
            values = {each.key: each.value for each in status.values}
            say(incident=status.name, message=status.message, values=values)

    def on_beat(self, message: Any) -> None:
        say(beat=message.frame_id)

    # What is said.

    def drive(self) -> None:
        if not self.values["driver"]:
            return
        message = JointState(name=["turn", "other", "slide"])
        message.header.stamp = topics.time_of(time.time_ns())
        slide, turn = self.values["position"]
        message.position = [turn, 0.0, slide]
        slide, turn = self.values["velocity"]
        message.velocity = [turn, 0.0, slide]
        self.joints.publish(message)

    def beat(self) -> None:
        if self.values["driver"]:
            self.driver.publish(Header())
        if self.values["beats"]:
            self.policy.publish(Header())

    def ask(self, values: list[float], stamp_ns: int | None = None) -> None:
        message = JointState(name=list(JOINTS))
        message.header.stamp = topics.time_of(stamp_ns or time.time_ns())
        setattr(message, self.interface, values)
        self.requests.publish(message)

    def work(self) -> None:
        while not self.lines.empty():
            self.obey(json.loads(self.lines.get()))
        for name, future in list(self.calls.items()):
            if future.done():
                del self.calls[name]
                say(answer=name, success=future.result().success, message=future.result().message)
        rate_hz, now = self.values["policy_hz"], time.monotonic()
        for _ in range(50):
            if rate_hz <= 0.0 or now < self.due:
                break
            self.ask(self.values["request"])
            self.due = max(self.due + 1.0 / rate_hz, now - 0.025)

    def ask_parameter(self, name: str, to: float) -> None:
        """What it is, what it says of itself, and whether it can be set."""
        found: dict[str, Any] = {"parameter": name}

        def note(**values: Any) -> None:
            found.update(values)
            if len(found) == 4:
                say(**found)

        client = self.parameters
        client.get_parameters([name]).add_done_callback(
            lambda future: note(value=future.result().values[0].double_value)
        )
        client.describe_parameters([name]).add_done_callback(
            lambda future: note(description=future.result().descriptors[0].description)
        )
        client.set_parameters([Parameter(name, value=to)]).add_done_callback(
            lambda future: note(refused=not future.result().results[0].successful)
        )

    def spoil(self) -> None:
        """Say what no driver and no policy means, on every topic."""
        nan, inf = float("nan"), float("inf")
        for names, numbers in (
            ([], []),
            (["slide"], [nan]),
            (["slide", "turn"], [1.0]),
            (["slide", "turn"], [nan, inf]),
            (["slide", "slide"], [1.0, 1.0]),
            (["x" * 100_000] * 10, [1e308] * 10),
        ):
            message = JointState(name=names, position=numbers, velocity=numbers, effort=numbers)
            self.joints.publish(message)
            self.requests.publish(message)
        for text in ("", "{", "[" * 10_000, json.dumps({"episode_id": "y" * 100_000})):
            self.events.publish(String(data=text))
        for publisher in (self.policy, self.driver):
            publisher.publish(Header(frame_id="z" * 100_000))

    def obey(self, order: dict[str, Any]) -> None:
        if "set" in order:
            self.values.update(order["set"])
            if order["set"].get("estop") is not None:
                self.estop.publish(Bool(data=order["set"]["estop"]))
            if "driver" in order["set"] or {"position", "velocity"} & set(order["set"]):
                self.drive()
        if "request" in order:
            say(asked=True)
            self.ask([float(value) for value in order["request"]], order.get("stamp_ns"))
        if "event" in order:
            self.events.publish(String(data=order["event"]))
        if "estop_there" in order:
            self.node.destroy_publisher(self.estop)
            if order["estop_there"]:
                self.estop = self.node.create_publisher(Bool, "safety/estop", topics.latched(1))
        if "gate" in order:
            self.gate = self.gate or self.node.create_publisher(
                Bool, "safety/estop", topics.latched(1)
            )
            self.gate.publish(Bool(data=order["gate"]))
        if "parameter" in order:
            self.ask_parameter(order["parameter"], order["to"])
        if "garbage" in order:
            self.spoil()
        if "second" in order:
            self.second = self.node.create_publisher(
                Float64MultiArray, self.command_topic, topics.reliable(1)
            )
        if "call" in order:
            name = order["call"]
            request = SetBool.Request(data=order["data"]) if name == "enable" else Trigger.Request()
            self.services[name].wait_for_service(30.0)
            self.calls[name] = self.services[name].call_async(request)

    def listen(self) -> None:
        for line in sys.stdin:
            self.lines.put(line)
        self.lines.put(json.dumps({"end": True}))


def main() -> None:
    namespace, interface, command_topic, values = sys.argv[1:5]
    rclpy.init()
    rig = Rig(namespace, interface, command_topic)
    rig.values.update(json.loads(values))
    executor = SingleThreadedExecutor()
    executor.add_node(rig.node)
    reader = threading.Thread(target=rig.listen, daemon=True)
    reader.start()
    say(up=True)
    while reader.is_alive():
        executor.spin_once(timeout_sec=0.05)
    executor.shutdown(timeout_sec=0.5)
    rig.node.destroy_node()
    rclpy.try_shutdown()


if __name__ == "__main__":
    main()
