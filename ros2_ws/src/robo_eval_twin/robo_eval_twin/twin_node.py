"""The twin as a process: the topics of a ros2_control robot, and a stagehand that sets episodes up.

Run it as `python -m robo_eval_twin.twin_node ROBOT.yaml`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rclpy.context import Context
from sensor_msgs.msg import Imu
from std_msgs.msg import Bool, Float64MultiArray, Header, String

from robo_eval.core import door
from robo_eval.core.errors import InputError
from robo_eval_robot import topics
from robo_eval_robot.config import RobotConfig, Twin, read_robot
from robo_eval_robot.process import run, take_precedence
from robo_eval_twin.body import Body, Reading, body_of
from robo_eval_twin.drives_node import Driver, DrivesNode

_HEARTBEAT_TICKS = 5
_PRIORITY: Final = 20
"""Real-time priority: a driver goes before the guard, whose commands it could not use otherwise."""


class TwinNode(Driver):
    """Publishes what the body's sensors show every tick, and applies the commands it hears.

    Stamps lie on the grid of ticks, so that a message that was lost leaves a gap.
    """

    def __init__(self, context: Context, config: RobotConfig, kind: type[Body]) -> None:
        super().__init__(context, config, kind.joints)
        hidden = config.twin or Twin()
        timeout_s = config.controller.timeout_s if hidden.has_command_timeout else None
        self._body = kind(hidden.perturbation, timeout_s)
        self._order = [config.commanded.index(name) for name in kind.driven]
        self._tick_ns = round(kind.tick_s * 1e9)
        self._ticks = 0
        self._start_ns = time.time_ns()
        own = self.node
        imu = config.state.imu
        self._imu = own.create_publisher(Imu, imu.topic, topics.reliable(10)) if imu else None
        self._estop = own.create_publisher(Bool, config.guard.estop.topic, topics.latched(1))
        self._estop.publish(Bool(data=False))
        self._answers = own.create_publisher(String, topics.EPISODE_EVENT, topics.latched(10))
        own.create_subscription(String, topics.EPISODE_EVENT, self._on_event, topics.reliable(10))
        take_precedence(_PRIORITY)
        self._every(kind.tick_s, self._tick)

    def finish(self) -> None:
        """Nothing to say: a twin that dies is silent, as a robot is."""
        self._body.close()

    @property
    def _stamp_ns(self) -> int:
        """End of the newest tick, by the driver's clock."""
        return self._start_ns + self._ticks * self._tick_ns

    def _hear(self, message: Float64MultiArray) -> None:
        numbers = list(message.data)
        if len(numbers) != len(self._order):
            self.node.get_logger().warning(f"a command of {len(numbers)} numbers is ignored")
            return
        try:
            self._body.hear([numbers[place] for place in self._order])
        except InputError as err:
            self.node.get_logger().warning(str(err))

    def _on_event(self, message: String) -> None:
        try:
            event = door.object_of(message.data)
        except ValueError:
            return
        problem = None
        try:
            self._play_stagehand(event)
        except (InputError, TypeError, KeyError, ValueError) as err:
            problem = f"{type(err).__name__}: {err}"
        if event.get("event") == "prepare":
            answer = {
                "schema_version": 1,
                "event": "arranged",
                "episode_id": event.get("episode_id"),
                "request": event.get("request"),
                "stamp_ns": self._stamp_ns,
                "problem": problem,
            }
            self._answers.publish(String(data=json.dumps(answer)))
        elif problem is not None:
            self.node.get_logger().error(f"{event.get('event')}: {problem}")

    def _play_stagehand(self, event: Mapping[str, Any]) -> None:
        """Do what a person does at a real robot: set up, hold, press, disturb."""
        if event.get("event") == "prepare":
            keywords = event.get("keywords", {})
            self._body.arrange(keywords, seed=int(event["seed"]), state=event.get("state"))
        elif event.get("event") == "go":
            self._body.arm()
        elif event.get("event") == "inject" and event.get("fault") == "command_dropout":
            self._body.go_deaf(int(event["ticks"]))
        elif event.get("event") == "inject" and event.get("fault") == "estop":
            self._estop.publish(Bool(data=bool(event["pressed"])))

    def _tick(self) -> None:
        reading = self._body.tick()
        self._ticks += 1
        stamp = topics.time_of(self._stamp_ns)
        if self._ticks % _HEARTBEAT_TICKS == 0:
            self._beats.publish(Header(stamp=stamp, frame_id="driver"))
        if reading is None:
            return
        if self._imu is not None:
            self._imu.publish(_imu(stamp, self._body.imu_frame, reading))
        self._say_joints(stamp, reading)


def _imu(stamp: Any, frame: str, reading: Reading) -> Imu:
    message = Imu(header=Header(stamp=stamp, frame_id=frame))
    turn, rate = message.orientation, message.angular_velocity
    turn.x, turn.y, turn.z, turn.w = (float(part) for part in reading.quat_xyzw)
    rate.x, rate.y, rate.z = (float(part) for part in reading.angular_velocity)
    message.linear_acceleration_covariance[0] = -1.0  # not measured
    return message


def _make(context: Context, arguments: Sequence[str]) -> TwinNode | DrivesNode:
    if len(arguments) != 1:
        raise InputError("usage: python -m robo_eval_twin.twin_node ROBOT.yaml")
    config = read_robot(Path(arguments[0]))
    if config.body != "twin":
        raise InputError(f"{arguments[0]}: body: is {config.body!r}; a twin needs `body: twin`")
    if config.twin is not None and config.twin.drive is not None:
        return DrivesNode(context, config, config.twin.drive)
    return TwinNode(context, config, body_of(config))


def main() -> int:
    """Run the twin until a signal ends it."""
    return run(_make)


if __name__ == "__main__":
    sys.exit(main())
