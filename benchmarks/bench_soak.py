"""Whether any message is lost between policy, guard, driver and recorder in a long run at 100 Hz.

Each is a process of its own, as in a trial. Requests and joint states are numbered, so that what
the driver, the policy's side and the bag hold can be compared with what was sent. The goal is a
`--seconds 600` without a loss.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

NAMESPACE = "/soak"
RATE_HZ = 100
STATES, COMMANDS, REQUESTS = "joint_states", "controller/commands", "policy/joint_command"
ROBOT = f"""
name: soak
body: twin
namespace: {NAMESPACE}
control_rate_hz: {RATE_HZ}
joints:
  slide:
    type: prismatic
    limits: {{position_m: [-1, 1], velocity_m_s: 2, acceleration_m_s2: 1.0e+6, effort_n: 10}}
controller:
  topic: {COMMANDS}
  interface: effort
  joints: [slide]
  timeout_s: 0.25
  timeout_provided_by: nothing, nothing moves here
state: {{rate_hz: {RATE_HZ}}}
guard: {{command_age_s: 1, state_age_s: 1, policy_heartbeat_s: 1}}
tasks: {{RoboEval/CartPole3D-v0: {{adapter: cartpole3d}}}}
"""
STEP = 1e-6
"""The n-th request asks for n times this effort, N."""


class Driver:
    """Publishes a state every 10 ms and notes which commands it hears."""

    def __init__(self, context: Any, _args: Sequence[str]) -> None:
        from rclpy.clock import Clock, ClockType
        from rclpy.node import Node
        from sensor_msgs.msg import JointState
        from std_msgs.msg import Bool, Float64MultiArray

        from robo_eval_robot import topics
        from robo_eval_robot.process import take_precedence

        self.node = Node("driver", namespace=NAMESPACE, context=context)
        self._kind, self._time_of = JointState, topics.time_of
        self._states = self.node.create_publisher(JointState, STATES, topics.reliable(10))
        self._estop = self.node.create_publisher(Bool, "safety/estop", topics.latched(1))
        self._estop.publish(Bool(data=False))
        self.heard: set[int] = set()
        self._sent = 0
        self.node.create_subscription(Float64MultiArray, COMMANDS, self._hear, topics.reliable(10))
        take_precedence(20)
        self.node.create_timer(
            1.0 / RATE_HZ, self._tick, clock=Clock(clock_type=ClockType.STEADY_TIME)
        )

    @property
    def is_over(self) -> bool:
        return False

    def _hear(self, message: Any) -> None:
        self.heard.add(round(message.data[0] / STEP))

    def _tick(self) -> None:
        self._sent += 1
        message = self._kind(name=["slide"], position=[self._sent * 1e-9], velocity=[0.0])
        message.header.stamp = self._time_of(time.time_ns())
        self._states.publish(message)

    def finish(self) -> None:
        print(json.dumps({"heard": len(self.heard - {0}), "states": self._sent}), flush=True)


def main_driver() -> int:
    from robo_eval_robot.process import run

    return run(Driver, [])


def measure(folder: Path, robot: Path, seconds: float) -> None:
    """Play, and print what was sent, heard and recorded."""
    import numpy as np

    from robo_eval_robot.children import children
    from robo_eval_robot.config import read_robot
    from robo_eval_robot.link import RUNNING, RobotLink, RobotStuckError
    from robo_eval_robot.recordings import Recordings

    driver = subprocess.Popen(
        [sys.executable, __file__, "driver"], stdout=subprocess.PIPE, text=True
    )
    with contextlib.ExitStack() as stack:
        stack.callback(driver.kill)
        own = stack.enter_context(children(folder))
        own.start("guard", "robo_eval_robot.guard_node", [str(robot)])
        own.start("recorder", "robo_eval_robot.recorder", [str(robot), "--root", str(folder)])
        link = RobotLink(read_robot(robot), "soak")
        link.connect()
        recordings = Recordings(link, folder, own.check)
        recordings.connect(20.0)
        recordings.begin("soak")
        link.enable()
        before = Counter({name: int(link.guard.values[name]) for name in ("requests", "passed")})
        sent, ages, last = 0, [], link.latest
        assert last is not None
        first = last
        stops: list[str] = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            snapshot = link.next_snapshot(last.stamp_ns, 1.0)
            if snapshot is None or link.guard.state != RUNNING:
                stops.append(link.guard.cause or "no state within 1 s")
                with contextlib.suppress(RobotStuckError):
                    link.reset()
                    link.enable()
                continue
            ages.append(snapshot.received_s - last.received_s)
            last = snapshot
            sent += 1
            link.request([sent * STEP])
        link.wait(lambda: False, 0.5)
        guard = Counter({name: int(link.guard.values[name]) for name in ("requests", "passed")})
        guard.subtract(before)
        trace = recordings.end("soak")
        link.disable()
        link.close()
        driver.send_signal(signal.SIGTERM)
        told = json.loads(driver.communicate(timeout=10)[0])
    assert trace is not None
    requested, applied, states = in_bag(folder / trace.uri)
    published = round((last.joints["slide"].position - first.joints["slide"].position) * 1e9)
    print(
        f"{seconds:g} s at {RATE_HZ} Hz: period p50 {1e3 * np.quantile(ages, 0.5):.1f}, p99"
        f" {1e3 * np.quantile(ages, 0.99):.1f}, max {1e3 * max(ages):.1f} ms;"
        f" stopped by the guard: {', '.join(stops) or 'never'}"
    )
    for label, count, of in (
        ("states the policy's side acted on", len(ages), published),
        ("requests the guard heard", guard["requests"], sent),
        ("requests the guard passed on", guard["passed"], sent),
        ("commands the driver heard", told["heard"], sent),
        ("requests in the bag", requested, sent),
        ("commands in the bag", applied, sent),
        ("states in the bag, of those it spans", states[0], states[1]),
    ):
        print(f"  {label:<36}{count:8d} of {of}, {of - count} lost")


def in_bag(bag: Path) -> tuple[int, int, tuple[int, int]]:
    """Different requests, different commands, and states beside the numbers they span."""
    from mcap.reader import make_reader
    from mcap_ros2.decoder import DecoderFactory

    requests, commands, states = set(), set(), set()
    for file in sorted(bag.glob("*.mcap")):
        with file.open("rb") as stream:
            reader = make_reader(stream, decoder_factories=[DecoderFactory()])
            for _, channel, _, message in reader.iter_decoded_messages():
                name = channel.topic.removeprefix(f"{NAMESPACE}/")
                if name == REQUESTS:
                    requests.add(round(message.effort[0] / STEP))
                elif name == COMMANDS:
                    commands.add(round(message.data[0] / STEP))
                elif name == STATES:
                    states.add(round(message.position[0] * 1e9))
    span = max(states) - min(states) + 1
    return len(requests - {0}), len(commands - {0}), (len(states), span)


def main() -> int:
    """Soak with the machine left alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", nargs="?", default="measure", choices=["measure", "driver"])
    parser.add_argument("--seconds", type=float, default=30.0)
    given = parser.parse_args()
    if given.role == "driver":
        return main_driver()
    if importlib.util.find_spec("rclpy") is None:
        print("not measured: needs rclpy, pip install 'robo-eval-stack[ros]'")
        return 0
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    os.environ.setdefault("ROS_DOMAIN_ID", str(1 + os.getpid() % 100))
    print(f"load before: {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as name:
        os.environ["ROS_LOG_DIR"] = name
        robot = Path(name) / "robot.yaml"
        robot.write_text(ROBOT)
        measure(Path(name), robot, given.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
