"""A stray node that finds a run's topic of requests and asks on it, once in an episode.

The only argument is the robot's namespace. Out: the topic, then `asked`; it ends by itself.
"""

from __future__ import annotations

import json
import sys
import time

import rclpy
from rclpy.executors import ExternalShutdownException
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from robo_eval_robot import topics

HEARD = 5
"""Requests of the policy that come first."""
HZ = 50.0


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    rclpy.init()
    node = rclpy.create_node("stray", namespace=sys.argv[1])
    prefix = f"{sys.argv[1]}/{topics.POLICY_COMMAND}"
    topic = ""
    while not topic:
        rclpy.spin_once(node, timeout_sec=0.05)
        names = [name for name, _ in node.get_topic_names_and_types()]
        topic = next((name for name in names if name.startswith(prefix)), "")
    say(topic)
    heard: list[JointState] = []
    events: list[String] = []
    node.create_subscription(JointState, topic, heard.append, topics.reliable(10))
    node.create_subscription(String, topics.EPISODE_EVENT, events.append, topics.latched(10))
    while not any(json.loads(event.data).get("event") == "start" for event in events):
        heard.clear()  # of the preflight
        rclpy.spin_once(node, timeout_sec=0.05)
    while len(heard) < HEARD:
        rclpy.spin_once(node, timeout_sec=0.05)
    # Only now: one that is there before keeps motion from being enabled.
    publisher = node.create_publisher(JointState, topic, topics.reliable(10))
    while publisher.get_subscription_count() < 2:  # guard and recorder
        rclpy.spin_once(node, timeout_sec=0.02)
    for _ in range(10):
        message = JointState(name=heard[-1].name, effort=[0.0] * len(heard[-1].name))
        message.header.stamp = topics.time_of(time.time_ns())
        publisher.publish(message)
        rclpy.spin_once(node, timeout_sec=0.0)
        time.sleep(1.0 / HZ)
    say("asked")
    node.destroy_node()
    rclpy.try_shutdown()


if __name__ == "__main__":
    try:
        main()
    except (KeyboardInterrupt, ExternalShutdownException):
        sys.exit(0)
