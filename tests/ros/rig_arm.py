"""Plays a policy and the people around an arm, one step after the other.

Arguments: the robot file and a JSON list of steps. `["until", state]` waits for that of the guard;
`["call", service, true]` calls a `SetBool`, without the third a `Trigger`; `["move", speed, s]`
asks the first joint to speed up and go on, rad/s; `["hand", speed, s]` moves it by hand, and lets
it rest as long; `["wait", s]`; `["set", parameter, value]` is one of the driver's;
`["estop", true]` is said once by a second source, as long as the rig lives.
Out: a JSON list with an object for each step: the guard's state and causes after it, and an answer.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.srv import SetParameters
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64MultiArray, Header
from std_srvs.srv import SetBool, Trigger

from robo_eval_robot import topics
from robo_eval_robot.config import read_robot

PATIENCE_S = 60.0


class Rig:
    def __init__(self, path: Path) -> None:
        self.robot = read_robot(path)
        self.node = node = Node("rig", namespace=self.robot.namespace)
        self.state = self.causes = ""
        self.places: list[float] = []
        node.create_subscription(
            DiagnosticArray, topics.SAFETY_STATE, self.on_state, topics.latched(1)
        )
        node.create_subscription(JointState, "joint_states", self.on_joints, topics.reliable(1))
        self.requests = node.create_publisher(
            JointState, topics.POLICY_COMMAND, topics.reliable(10)
        )
        self.beats = node.create_publisher(Header, topics.POLICY_HEARTBEAT, topics.reliable(1))
        self.hands = node.create_publisher(Float64MultiArray, "driver/hand", topics.reliable(10))
        self.estop: Any = None
        node.create_timer(0.05, lambda: self.beats.publish(Header()))

    def on_state(self, message: Any) -> None:
        values = {each.key: each.value for each in message.status[0].values}
        self.state, self.causes = message.status[0].message, values["causes"]

    def on_joints(self, message: Any) -> None:
        at = dict(zip(message.name, message.position, strict=True))
        self.places = [at[name] for name in self.robot.commanded]

    def spin(self, is_over: Callable[[], Any], what: str) -> None:
        until = time.monotonic() + PATIENCE_S
        while not is_over():
            if time.monotonic() > until:
                raise SystemExit(f"not in time: {what}; the guard is {self.state} {self.causes}")
            rclpy.spin_once(self.node, timeout_sec=0.02)

    def do_wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        self.spin(lambda: time.monotonic() >= until, "time passes")

    def do_until(self, state: str) -> None:
        self.spin(lambda: self.state == state and self.places, state)

    def do_call(self, service: str, on: bool | None = None) -> dict[str, Any]:
        kind = Trigger if on is None else SetBool
        request = Trigger.Request() if on is None else SetBool.Request(data=on)
        response = self.ask(kind, service, request)
        return {"success": response.success, "message": response.message}

    def do_set(self, name: str, value: Any) -> None:
        parameters = [Parameter(name, value=value).to_parameter_msg()]
        request = SetParameters.Request(parameters=parameters)
        assert self.ask(SetParameters, "twin/set_parameters", request).results[0].successful

    def ask(self, kind: Any, service: str, request: Any) -> Any:
        client = self.node.create_client(kind, service)
        self.spin(client.service_is_ready, f"{service} is there")
        future = client.call_async(request)
        self.spin(future.done, f"{service} answers")
        return future.result()

    def do_move(self, speed: float, seconds: float) -> None:
        period_s = 1.0 / self.robot.control_rate_hz
        places, now, due = list(self.places), 0.0, time.monotonic()
        for _ in range(round(seconds / period_s)):
            now = min(now + 2.0 * period_s, speed)
            places[0] += now * period_s
            message = JointState(name=list(self.robot.commanded), position=places)
            message.header.stamp = topics.time_of(time.time_ns())
            self.requests.publish(message)
            due += period_s
            self.do_wait(due - time.monotonic())

    def do_hand(self, speed: float, seconds: float) -> None:
        self.spin(self.hands.get_subscription_count, "the driver hears hands")
        for velocity in (speed, 0.0):
            self.hands.publish(Float64MultiArray(data=[velocity] + [0.0] * 5))
            self.do_wait(seconds)

    def do_estop(self, pressed: bool) -> None:
        if self.estop is None:
            often = topics.latched(1)
            often.deadline = Duration(seconds=0.2)
            self.estop = self.node.create_publisher(Bool, "safety/estop", often)
            self.spin(self.estop.get_subscription_count, "the guard hears it")
        self.estop.publish(Bool(data=pressed))


def main() -> None:
    rclpy.init(args=[])
    rig = Rig(Path(sys.argv[1]))
    told = []
    for name, *values in json.loads(sys.argv[2]):
        answer = getattr(rig, f"do_{name}")(*values) or {}
        told.append({"state": rig.state, "causes": rig.causes, "place": rig.places[0], **answer})
    sys.stdout.write(json.dumps(told))
    rig.node.destroy_node()
    rclpy.try_shutdown()


if __name__ == "__main__":
    main()
