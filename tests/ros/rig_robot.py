"""Plays a robot whose faults are chosen: joint states, emergency stop, and who is on its topics.

The only argument is a JSON object, see `OPTIONS`.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
import time
from typing import Any

import rclpy
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Bool, Float64MultiArray, Header

from robo_eval_robot import topics

OPTIONS: dict[str, Any] = {
    "namespace": "/twin0",
    "joints": ["cart_x", "cart_y", "pole_roll", "pole_pitch"],
    "rate_hz": 50.0,
    "best_effort": False,  # offered by joint states
    "nan": False,  # in the first joint's position
    "late_s": 0.0,  # how old stamps are
    "velocity": True,  # whether velocities are filled
    "estop": [False],  # said one after the other, every 0.4 s; none for no such topic
    "controller": True,  # whether somebody takes commands
    "rivals": [],  # topics that another node also publishes commands on
}
COMMANDS = "forward_effort_controller/commands"


def main() -> None:
    options = {**OPTIONS, **json.loads(sys.argv[1])}
    rclpy.init(args=[])
    node = Node("driver", namespace=options["namespace"])
    qos = QoSProfile(depth=10)
    if options["best_effort"]:
        qos.reliability = ReliabilityPolicy.BEST_EFFORT
    states = node.create_publisher(JointState, "joint_states", qos)
    imu = node.create_publisher(Imu, "imu_sensor_broadcaster/imu", topics.reliable(10))
    beats = node.create_publisher(Header, topics.DRIVER_HEARTBEAT, topics.reliable(1))
    if options["controller"]:
        node.create_subscription(
            Float64MultiArray, COMMANDS, lambda _message: None, topics.reliable(1)
        )
    rival = Node("rival", namespace=options["namespace"])
    held = [
        rival.create_publisher(
            Float64MultiArray if topic == COMMANDS else JointState, topic, topics.reliable(1)
        )
        for topic in options["rivals"]
    ]
    if options["estop"]:
        estop = node.create_publisher(Bool, "safety/estop", topics.latched(1))
        said = itertools.cycle(options["estop"])
        estop.publish(Bool(data=next(said)))
        if len(options["estop"]) > 1:
            node.create_timer(0.4, lambda: estop.publish(Bool(data=next(said))))
    count = len(options["joints"])

    def tick() -> None:
        stamp = topics.time_of(time.time_ns() - round(1e9 * options["late_s"]))
        message = JointState(name=options["joints"], position=[0.0] * count)
        message.header.stamp = stamp
        if options["velocity"]:
            message.velocity = [0.0] * count
        if options["nan"]:
            message.position[0] = math.nan
        states.publish(message)
        imu.publish(Imu(header=Header(stamp=stamp)))
        beats.publish(Header(stamp=stamp))

    node.create_timer(1.0 / options["rate_hz"], tick)
    sys.stdout.write(f"up {len(held)}\n")
    sys.stdout.flush()
    while True:
        rclpy.spin_once(node, timeout_sec=0.1)


if __name__ == "__main__":
    main()
