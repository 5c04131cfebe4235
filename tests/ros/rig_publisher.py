"""A process that publishes what a robot, its guard and its conductor publish, as it is told.

Commands come as JSON lines on stdin, answers go as JSON lines to stdout.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import TransformStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import CompressedImage, Imu, JointState
from std_msgs.msg import Bool, Float64MultiArray, String

from robo_eval_robot import topics

KINDS = {
    "joint_states": JointState,
    "policy/joint_command": JointState,
    "forward_effort_controller/commands": Float64MultiArray,
    "imu_sensor_broadcaster/imu": Imu,
    "camera/image/compressed": CompressedImage,
    "side/image/compressed": CompressedImage,
    "safety/state": DiagnosticArray,
    "safety/estop": Bool,
    "/tf_static": TransformStamped,
    "/robot_description": String,
    "site/map": String,
    "driver/mode": String,
}
JOINTS = [f"joint_{n}" for n in range(7)]


def message(topic: str, number: int) -> Any:
    """Message `number` of a topic; the number is in it."""
    kind = KINDS[topic]
    if kind is JointState:
        values = [number + 0.125 * joint for joint in range(7)]
        made = JointState(name=JOINTS, position=values, velocity=values, effort=values)
        made.header.stamp = topics.time_of(number)
    elif kind is Float64MultiArray:
        made = Float64MultiArray(data=[float(number), -1.0])
    elif kind is Imu:
        made = Imu()
        made.angular_velocity.x = float(number)
    elif kind is CompressedImage:
        made = CompressedImage(format="jpeg", data=bytes([number % 256]) * 40_000)
        made.header.stamp = topics.time_of(number)
    elif kind is DiagnosticArray:
        made = DiagnosticArray(status=[DiagnosticStatus(name="guard", message=str(number))])
    elif kind is TransformStamped:
        made = TransformStamped(child_frame_id=str(number))
    elif kind is String:
        made = String(data=str(number))
    else:
        made = Bool(data=bool(number % 2))
    return made


class Rig:
    def __init__(self, namespace: str) -> None:
        rclpy.init(args=[])
        self.namespace = namespace
        self.node = Node("rig", namespace=namespace)
        self.statuses: list[dict[str, Any]] = []
        self.publishers: dict[str, Any] = {}
        self.numbers: dict[str, int] = {}
        self.node.create_subscription(
            String,
            f"{namespace}/{topics.RECORDER_STATUS}",
            lambda said: self.statuses.append(json.loads(said.data)),
            topics.latched(50),
        )
        self.events = self.node.create_publisher(
            String, f"{namespace}/{topics.EPISODE_EVENT}", topics.latched(10)
        )

    def offer(self, names: list[str], best_effort: bool = False, latched: bool = False) -> None:
        for name in names:
            # Deep enough that a busy machine makes no reliable message go lost.
            qos = topics.latched(1) if name.startswith("safety/") else QoSProfile(depth=5000)
            if latched:
                qos = topics.latched(10)
            if best_effort:
                qos.reliability = ReliabilityPolicy.BEST_EFFORT
            full = name if name.startswith("/") else f"{self.namespace}/{name}"
            self.publishers[name] = self.node.create_publisher(KINDS[name], full, qos)
            self.numbers[name] = 0

    def match(self, timeout_s: float) -> bool:
        """Wait until the recorder hears each topic that is offered, and the events."""
        end = time.monotonic() + timeout_s
        waiting = [self.events, *self.publishers.values()]
        while any(p.get_subscription_count() == 0 for p in waiting):
            if time.monotonic() > end:
                return False
            rclpy.spin_once(self.node, timeout_sec=0.02)
        return True

    def flood(self, hz: dict[str, float], seconds: float) -> dict[str, int]:
        """Publish on several topics at their own rates; returns how many on each."""
        start = time.monotonic()
        due = dict.fromkeys(hz, start)
        sent = dict.fromkeys(hz, 0)
        while (now := time.monotonic()) < start + seconds:
            for name, rate in hz.items():
                if now >= due[name]:
                    due[name] += 1.0 / rate
                    self.one(name)
                    sent[name] += 1
            time.sleep(max(0.0, min(due.values()) - time.monotonic()))
        return sent

    def one(self, name: str) -> None:
        self.publishers[name].publish(message(name, self.numbers[name]))
        self.numbers[name] += 1

    def event(self, **event: Any) -> None:
        self.events.publish(String(data=json.dumps({"schema_version": 1, **event})))

    def text(self, data: str) -> None:
        self.events.publish(String(data=data))

    def status(
        self,
        states: list[str],
        timeout_s: float,
        episode_id: str | None = None,
        topic: str | None = None,
        least: int = 0,
    ) -> dict[str, Any] | None:
        """Wait for a status; with the last one that came, if it fits."""
        end = time.monotonic() + timeout_s
        seen = 0
        while time.monotonic() < end:
            for said in self.statuses[seen:]:
                fits = said["state"] in states and episode_id in (None, said["episode_id"])
                if fits and (topic is None or said["counts"].get(topic, 0) >= least):
                    self.statuses.clear()
                    return said
            seen = len(self.statuses)
            rclpy.spin_once(self.node, timeout_sec=0.02)
        return None


def say(answer: Any) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def main() -> None:
    rig = Rig(sys.argv[1])
    say("ready")
    for line in sys.stdin:
        name, arguments = json.loads(line)
        say(getattr(rig, name)(**arguments))
    rig.node.destroy_node()
    rclpy.try_shutdown()


if __name__ == "__main__":
    main()
