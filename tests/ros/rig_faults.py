"""Stands between a robot's processes and lets through what it is told to, late, twice, or broken.

The only argument is a JSON object, see `OPTIONS`. Whoever is to be reached through it has its topic
renamed, see `WIRES`. Out: one JSON object a line. In: a line asks for what was seen so far; the
process ends with its input.
"""

from __future__ import annotations

import copy
import json
import math
import os
import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rclpy
from rclpy.node import Node
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray, String

from robo_eval_robot import topics

COMMANDS = "forward_effort_controller/commands"
OPTIONS: dict[str, Any] = {
    "namespace": "/twin0",
    "channels": [],  # of WIRES; on others it only listens
    # One for each episode, in the order they start; null for none. The fault begins when the policy
    # has asked `from` times, and is done to `count` messages of `channel`.
    "faults": [],
    "seed": 0,
}
# By channel: its type, the topic heard, and the topic spoken.
WIRES: dict[str, tuple[Any, str, str]] = {
    "requests": (JointState, topics.POLICY_COMMAND, "wire/requests"),  # the guard hears it
    "commands": (Float64MultiArray, COMMANDS, "wire/commands"),  # the twin hears it
    "states": (JointState, "wire/joint_states", "joint_states"),  # the twin says it
    "imu": (Imu, "wire/imu", "imu_sensor_broadcaster/imu"),  # the twin says it
}
LISTENED = ("requests", "commands", "states")


def say(**values: Any) -> None:
    sys.stdout.write(json.dumps({"t": time.monotonic(), **values}) + "\n")
    sys.stdout.flush()


def numbers(message: Any) -> Any:
    """What a message holds: the field that is filled."""
    if isinstance(message, Float64MultiArray):
        return message.data
    return message.position if len(message.position) else message.effort


class Rig:
    def __init__(self, options: dict[str, Any]) -> None:
        self.node = Node("between", namespace=options["namespace"])
        self.faults = list(options["faults"])
        self.fault: dict[str, Any] = {}
        self.rng = random.Random(options["seed"])
        self.asked = 0  # in this episode
        self.left = 0  # messages of it the fault is still done to
        self.held: list[tuple[Any, Any]] = []
        self.later: list[tuple[float, Callable[[Any], None], Any]] = []
        self.seen: dict[str, Any] = {
            "commands": 0, "states": 0, "broken_commands": 0, "broken_states": 0, "last": None
        }  # fmt: skip
        self.speakers: dict[str, Any] = {}
        self.ends = threading.Event()
        self.questions = 0
        for channel in {*LISTENED, *options["channels"]}:
            kind, heard, spoken = WIRES[channel]
            if channel in options["channels"]:
                self.speakers[channel] = self.node.create_publisher(
                    kind, spoken, topics.reliable(10)
                )
            elif channel == "states":
                heard = spoken
            self.node.create_subscription(kind, heard, self.hearing(channel), topics.reliable(100))
        self.node.create_subscription(
            String, topics.EPISODE_EVENT, self.on_event, topics.reliable(10)
        )

    def on_event(self, message: Any) -> None:
        event = json.loads(message.data)
        if event.get("event") == "start":
            self.fault = (self.faults.pop(0) if self.faults else None) or {}
            self.asked, self.left = 0, self.fault.get("count", 0)
            say(episode=event["episode_id"], fault=self.fault)
        elif event.get("event") == "end":
            self.fault = {}
            self.held.clear()
            self.later.clear()  # or it would meet what comes at once from now on

    def hearing(self, channel: str) -> Callable[[Any], None]:
        def heard(message: Any) -> None:
            self.look(channel, message)
            if channel in self.speakers:
                self.pass_on(channel, message, self.speakers[channel].publish)

        return heard

    def look(self, channel: str, message: Any) -> None:
        """Count, and notice what must not be."""
        self.asked += channel == "requests"
        if channel == "commands":
            self.seen["last"] = list(message.data)
        if channel in ("commands", "states"):
            self.seen[channel] += 1
            found = numbers(message)
            size = 2 if channel == "commands" else 4
            if len(found) != size or not all(map(math.isfinite, found)):
                self.seen[f"broken_{channel}"] += 1

    def pass_on(self, channel: str, message: Any, publish: Callable[[Any], None]) -> None:
        fault = self.fault
        # What gives both stamps has one clock.
        concerned = channel == fault.get("channel") or (
            channel == "imu" and fault.get("channel") == "states" and fault["kind"] == "stamp"
        )
        if not concerned or self.asked < fault["from"] or self.left <= 0:
            publish(message)
            return
        self.left -= channel != "imu"
        kind = fault["kind"]
        if kind == "storm":
            # More often than not nothing, never enough in a row to be silence, and nothing is held
            # for longer than until the next message.
            swap = ["swap"] if self.held else ["pass", "pass", "pass", *fault["of"]]
            kind = self.rng.choice(swap)
        getattr(self, f"do_{kind}")(message, publish, fault)

    def do_pass(self, message: Any, publish: Callable[[Any], None], _fault: Any) -> None:
        publish(message)

    def do_drop(self, *_: Any) -> None:
        pass

    def do_twice(self, message: Any, publish: Callable[[Any], None], fault: Any) -> None:
        publish(message)
        if fault["channel"] == "states":
            publish(message)  # at once: after the next one its stamp would go back
        else:
            self.follow(message, publish)

    def follow(self, message: Any, publish: Callable[[Any], None]) -> None:
        """Not at once: of two that are there together some see the last one only."""
        self.later.append((time.monotonic() + 0.006, publish, message))

    def do_swap(self, message: Any, publish: Callable[[Any], None], _fault: Any) -> None:
        """Every second message overtakes the one before."""
        if self.held:
            publish(message)
            self.follow(self.held.pop(), publish)
        else:
            self.held.append(message)

    def do_late(self, message: Any, publish: Callable[[Any], None], fault: Any) -> None:
        self.later.append((time.monotonic() + fault["seconds"], publish, message))

    def do_stamp(self, message: Any, publish: Callable[[Any], None], fault: Any) -> None:
        changed = copy.deepcopy(message)
        ns = topics.ns_of(message.header.stamp) + round(1e9 * fault["seconds"])
        changed.header.stamp = topics.time_of(ns)
        publish(changed)

    def do_clock(self, message: Any, publish: Callable[[Any], None], fault: Any) -> None:
        """Set the clock of those that look at it, see test_faults.py."""
        Path(os.environ["RIG_CLOCK"]).write_text(str(fault["seconds"]))
        publish(message)

    def do_value(self, message: Any, publish: Callable[[Any], None], fault: Any) -> None:
        changed = copy.deepcopy(message)
        numbers(changed)[0] = float(fault["value"])
        publish(changed)

    def do_short(self, message: Any, publish: Callable[[Any], None], _fault: Any) -> None:
        changed = copy.deepcopy(message)
        numbers(changed).pop()
        publish(changed)

    def work(self) -> None:
        now = time.monotonic()
        due = [entry for entry in self.later if entry[0] <= now]
        self.later = [entry for entry in self.later if entry[0] > now]
        for _, publish, message in due:
            publish(message)
        while self.questions:
            self.questions -= 1
            say(seen=self.seen)

    def read(self) -> None:
        for _ in sys.stdin:
            self.questions += 1
        self.ends.set()


def main() -> None:
    options = {**OPTIONS, **json.loads(sys.argv[1])}
    rclpy.init(args=[])
    rig = Rig(options)
    threading.Thread(target=rig.read, daemon=True).start()
    say(up=True)
    while not rig.ends.is_set():
        rclpy.spin_once(rig.node, timeout_sec=0.005)
        rig.work()
    rig.node.destroy_node()
    rclpy.try_shutdown()


if __name__ == "__main__":
    main()
