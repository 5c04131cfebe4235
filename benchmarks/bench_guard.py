"""What the guard costs on the way to the controller, and how soon a violation becomes a stop.

Goals: a round trip through the guard takes at most a quarter longer than one past it; a stop
command within two control ticks of 10 ms (99 of 100). Two round trips are measured. That of
messages, where the controller answers at once: the guard is the third process on a way of two, and
cannot cost less than half. And that of control, where a driver applies a command at its next tick
and then says so: this is what a policy waits for.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

TICK_MS = 10.0
NAMESPACE = "/bench"
CONTROLLER, DIRECT, ECHO, TICKS = "controller/commands", "direct", "echo", "ticks"
ROBOT = f"""
name: bench
body: twin
namespace: {NAMESPACE}
control_rate_hz: 100
joints:
  a: {{type: prismatic, limits: &limits
      {{position_m: [-1, 1], velocity_m_s: 2, acceleration_m_s2: 1.0e+6, effort_n: 10}}}}
  b: {{type: prismatic, limits: *limits}}
  c: {{type: prismatic, limits: *limits}}
  d: {{type: prismatic, limits: *limits}}
  e: {{type: prismatic, limits: *limits}}
  f: {{type: prismatic, limits: *limits}}
  g: {{type: prismatic, limits: *limits}}
controller:
  topic: {CONTROLLER}
  interface: effort
  joints: [a, b, c, d, e, f, g]
  timeout_s: 0.25
  timeout_provided_by: nothing, this is a benchmark
state: {{rate_hz: 100}}
guard: {{command_age_s: 2.0, state_age_s: 2.0, policy_heartbeat_s: 2.0}}
tasks: {{RoboEval/CartPole3D-v0: {{adapter: cartpole3d}}}}
"""
JOINTS = list("abcdefg")


def echo() -> None:
    """Plays the controller: sends back what it hears, at once and again at each tick."""
    import rclpy
    from std_msgs.msg import Float64MultiArray

    from robo_eval_robot import topics

    rclpy.init()
    node = rclpy.create_node("echo", namespace=NAMESPACE)
    back = node.create_publisher(Float64MultiArray, ECHO, topics.reliable(1))
    ticks = node.create_publisher(Float64MultiArray, TICKS, topics.reliable(1))
    applied = Float64MultiArray(data=[0.0])

    def hear(message: Any) -> None:
        nonlocal applied
        applied = message
        back.publish(message)

    for topic in (CONTROLLER, DIRECT):
        node.create_subscription(Float64MultiArray, topic, hear, topics.reliable(1))
    node.create_timer(TICK_MS / 1e3, lambda: ticks.publish(applied))
    try:
        rclpy.spin(node)
    except (KeyboardInterrupt, rclpy.executors.ExternalShutdownException):
        pass
    finally:
        node.destroy_node()
        rclpy.try_shutdown()


def flood() -> None:
    """Plays a policy out of control: 2,000 requests a second."""
    import rclpy
    from sensor_msgs.msg import JointState
    from std_msgs.msg import Header

    from robo_eval_robot import topics

    rclpy.init()
    node = rclpy.create_node("flood", namespace=NAMESPACE)
    requests = node.create_publisher(JointState, topics.POLICY_COMMAND, topics.reliable(1))
    beats = node.create_publisher(Header, topics.POLICY_HEARTBEAT, topics.reliable(1))
    message = JointState(name=JOINTS, effort=[0.5] * 7)
    due = time.perf_counter()
    while True:
        message.header.stamp = topics.time_of(time.time_ns())
        requests.publish(message)
        beats.publish(message.header)
        due += 0.0005
        time.sleep(max(0.0, due - time.perf_counter()))


class Bench:
    """Plays driver and policy, and measures."""

    def __init__(self) -> None:
        import rclpy
        from rclpy.executors import SingleThreadedExecutor
        from sensor_msgs.msg import JointState
        from std_msgs.msg import Bool, Float64MultiArray, Header
        from std_srvs.srv import SetBool, Trigger

        from robo_eval_robot import topics

        rclpy.init()
        self.topics = topics
        self.kinds = (JointState, Float64MultiArray, Header, SetBool, Trigger)
        self.node = node = rclpy.create_node("bench", namespace=NAMESPACE)
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(node)
        newest = topics.reliable(1)
        self.joints = node.create_publisher(JointState, "joint_states", topics.reliable(10))
        self.requests = node.create_publisher(JointState, topics.POLICY_COMMAND, newest)
        self.beats = node.create_publisher(Header, topics.POLICY_HEARTBEAT, newest)
        self.direct = node.create_publisher(Float64MultiArray, DIRECT, newest)
        self.estop = node.create_publisher(Bool, "safety/estop", topics.latched(1))
        self.estop.publish(Bool(data=False))
        self.enable = node.create_client(SetBool, topics.SAFETY_ENABLE)
        self.reset = node.create_client(Trigger, topics.SAFETY_RESET)
        self.heard: float | None = None
        self.at = 0.0
        self.applied: float | None = None
        node.create_subscription(Float64MultiArray, TICKS, self._on_tick, newest)
        node.create_subscription(Float64MultiArray, ECHO, self._on_echo, newest)
        node.create_timer(0.01, self.state)
        node.create_timer(0.05, self.beat)
        self.position = 0.0
        self.lost = 0
        self.has_left = False

    def _on_echo(self, message: Any) -> None:
        self.heard, self.at = message.data[0], time.perf_counter()

    def _on_tick(self, message: Any) -> None:
        self.applied = message.data[0]

    def state(self) -> None:
        message = self.kinds[0](name=JOINTS, velocity=[0.0] * 7)
        message.position = [self.position] * 7
        message.header.stamp = self.topics.time_of(time.time_ns())
        self.joints.publish(message)

    def request(self, value: float) -> None:
        message = self.kinds[0](name=JOINTS, effort=[value] * 7)
        message.header.stamp = self.topics.time_of(time.time_ns())
        if not self.has_left:
            self.requests.publish(message)

    def beat(self) -> None:
        if not self.has_left:
            self.beats.publish(self.kinds[2]())

    def leave(self) -> None:
        """Leave the policy's topics to another process: the guard hears one author only."""
        assert self.call(self.enable, data=False)
        self.has_left = True
        self.node.destroy_publisher(self.requests)
        self.node.destroy_publisher(self.beats)

    def spin_until(self, done: Callable[[], bool], limit_s: float = 10.0) -> bool:
        until = time.perf_counter() + limit_s
        while not done():
            if time.perf_counter() > until:
                return False
            self.executor.spin_once(timeout_sec=0.01)
        return True

    def call(self, client: Any, **fields: Any) -> bool:
        client.wait_for_service(10.0)
        kind = self.kinds[3] if fields else self.kinds[4]
        future = client.call_async(kind.Request(**fields))
        assert self.spin_until(future.done), "no answer"
        return bool(future.result().success)

    def run(self) -> None:
        """Bring the guard to RUNNING."""
        until = time.perf_counter() + 20.0
        while not self.call(self.enable, data=True):
            assert time.perf_counter() < until, "the guard does not become ready"
            self.spin_until(lambda: False, 0.02)

    def round_trip_ms(self, value: float, *, guarded: bool) -> float | None:
        self.heard = None
        begun = time.perf_counter()
        if guarded:
            self.request(value)
        else:
            self.direct.publish(self.kinds[1](data=[value] * 7))
        if not self.spin_until(lambda: self.heard == value, 1.0):
            return None
        return (self.at - begun) * 1e3

    def control_ms(self, count: int) -> dict[str, list[float]]:
        """From a request to the first tick that has applied it, guarded and direct in turns."""
        times: dict[str, list[float]] = {"direct": [], "guarded": []}
        for number in range(2 * count):
            kind, value = ("guarded", "direct")[number % 2], 1e-6 * (number + 1)
            begun = time.perf_counter()
            if kind == "guarded":
                self.request(value)
            else:
                self.direct.publish(self.kinds[1](data=[value] * 7))
            if self.spin_until(lambda value=value: self.applied == value, 1.0):
                times[kind].append((time.perf_counter() - begun) * 1e3)
            else:
                self.lost += 1
                self.call(self.reset)
                self.run()
        return times

    def round_trips(self, count: int, *, pause_s: float) -> dict[str, list[float]]:
        """Guarded and direct in turns, so that a machine that slows down slows both."""
        times: dict[str, list[float]] = {"direct": [], "guarded": []}
        due = time.perf_counter()
        for number in range(2 * count):
            kind = "guarded" if number % 2 else "direct"
            taken = self.round_trip_ms(1e-6 * (number + 1), guarded=kind == "guarded")
            if taken is not None:
                times[kind].append(taken)
            else:
                # Something took so long that the guard stopped: not a round trip, but said.
                self.lost += 1
                self.call(self.reset)
                self.run()
            due = max(due + pause_s, time.perf_counter() - pause_s)
            while time.perf_counter() < due:
                self.executor.spin_once(timeout_sec=max(0.0, due - time.perf_counter()))
        return times

    def policies(self) -> int:
        return int(self.node.count_publishers(self.topics.POLICY_COMMAND))

    def stops_ms(self, count: int) -> list[float]:
        """From a joint state beyond its limit to the stop command."""
        commands: list[tuple[float, float]] = []
        subscription = self.node.create_subscription(
            self.kinds[1],
            CONTROLLER,
            lambda message: commands.append((time.perf_counter(), message.data[0])),
            self.topics.reliable(1),
        )
        taken = []
        for _ in range(count):
            self.request(0.5)
            commands.clear()
            self.spin_until(lambda: any(value == 0.5 for _, value in commands), 1.0)
            commands.clear()
            # Not in step with the guard's cycle.
            self.spin_until(lambda: False, 0.001 * (len(taken) % 17))
            self.position = 1.5
            begun = time.perf_counter()
            self.state()
            if self.spin_until(lambda: any(value == 0.0 for _, value in commands), 5.0):
                taken.append((next(at for at, v in commands if v == 0.0) - begun) * 1e3)
            self.position = 0.0
            self.state()
            self.spin_until(lambda: False, 0.02)
            while not self.call(self.reset):
                self.spin_until(lambda: False, 0.01)
            self.run()
        self.node.destroy_subscription(subscription)
        return taken


def row(label: str, times: Sequence[float]) -> str:
    ordered = sorted(times)
    p99 = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    return (
        f"{label:<34}{statistics.median(ordered):8.2f}{p99:8.2f}{ordered[-1]:8.2f}{len(ordered):7d}"
    )


def measure(count: int) -> None:
    bench = Bench()
    bench.run()
    bench.round_trips(100, pause_s=0.0)
    print(f"{'ms':<34}{'p50':>8}{'p99':>8}{'max':>8}{'n':>7}")
    for label, pause_s in (("back to back", 0.0), ("at 100 Hz", 0.005)):
        times = bench.round_trips(count, pause_s=pause_s)
        for kind, each in times.items():
            print(row(f"round trip {label}, {kind}", each))
        say_ratio(times)
    times = bench.control_ms(count)
    for kind, each in times.items():
        print(row(f"until a tick has applied it, {kind}", each))
    say_ratio(times)
    print(f"round trips that did not come back: {bench.lost}")
    say_stops("violation to stop command", bench.stops_ms(max(count // 3, 20)))
    bench.leave()
    bench.spin_until(lambda: not bench.policies())
    other = subprocess.Popen([sys.executable, __file__, "flood"])
    try:
        bench.spin_until(lambda: bench.policies() > 0)
        bench.run()
        say_stops("  at 2,000 requests a second", bench.stops_ms(max(count // 10, 20)))
    finally:
        other.kill()
        other.wait(10)


def say_ratio(times: dict[str, list[float]]) -> None:
    guarded, direct = (statistics.median(times[kind]) for kind in ("guarded", "direct"))
    print(
        f"  guarded / direct {guarded / direct:.2f}; {guarded - direct:.2f} ms more, which is"
        f" {(guarded - direct) / TICK_MS:.1%} of a control period of {TICK_MS:g} ms"
    )


def say_stops(label: str, stops: Sequence[float]) -> None:
    print(row(label, stops))
    print(row("    in control ticks of 10 ms", [each / TICK_MS for each in stops]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "role", nargs="?", default="all", choices=["all", "echo", "flood", "measure"]
    )
    parser.add_argument("--count", type=int, default=1000, help="round trips of each kind")
    given = parser.parse_args()
    if given.role in {"echo", "flood"}:
        {"echo": echo, "flood": flood}[given.role]()
        return
    if given.role == "measure":
        measure(given.count)
        return
    if importlib.util.find_spec("rclpy") is None:
        print("not measured: needs rclpy, pip install 'robo-eval-stack[ros]'")
        return
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores")
    print(f"load before: {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as name:
        env = {
            **os.environ,
            "ROS_DOMAIN_ID": str(1 + os.getpid() % 100),
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
            "ROS_LOG_DIR": name,
        }
        robot = Path(name) / "robot.yaml"
        robot.write_text(ROBOT)
        # The guard logs an error a stop, which is what is measured here.
        quiet = {"env": env, "stderr": subprocess.DEVNULL}
        others = [
            subprocess.Popen([sys.executable, "-m", "robo_eval_robot.guard_node", robot], **quiet),
            subprocess.Popen([sys.executable, __file__, "echo"], **quiet),
        ]
        try:
            arguments = [__file__, "measure", "--count", str(given.count)]
            subprocess.run([sys.executable, *arguments], env=env, check=True)
        finally:
            for each in others:
                each.terminate()
            for each in others:
                each.wait(10)


if __name__ == "__main__":
    main()
