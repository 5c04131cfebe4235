"""Drives as a process: the topics of an arm's driver, what people do to it, and a recording.

`twin_node` starts it for a robot file with `twin.drive`.
"""

from __future__ import annotations

import json
import os
import time
from array import array
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.context import Context
from rclpy.duration import Duration
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64MultiArray, Header, String
from std_srvs.srv import SetBool, Trigger

from robo_eval.core.errors import InputError
from robo_eval_robot import topics
from robo_eval_robot.config import Drive, RobotConfig
from robo_eval_robot.parameters import declare
from robo_eval_twin.body import Reading
from robo_eval_twin.drives import Drives

_BEAT_HZ: Final = 10.0
_RECONNECT_S: Final = 1.0
"""How long nothing is heard of a driver that connects anew."""
_FAULTS: Final = {
    "faults.deaf": False,  # commands are not heard
    "faults.estop_silent": False,  # the emergency stop is not told any more
    "faults.power_off": "",  # `refused`, or `silent`: never answered
}
"""Parameters that anybody may set while it runs."""


class Driver:
    """What every stand-in publishes and hears as a robot's driver does.

    Args:
        context: ROS context.
        config: The robot.
        joints: Names of its joints.
    """

    def __init__(self, context: Context, config: RobotConfig, joints: Sequence[str]) -> None:
        self.node = own = Node("twin", context=context, namespace=config.namespace)
        # What a twin hides is no parameter: nobody is to see how it differs from the simulator.
        declare(own, config, "control_rate_hz", "controller", "state")
        self._joints = list(joints)
        self._states = own.create_publisher(
            JointState, config.state.joint_states, topics.reliable(10)
        )
        self._beats = own.create_publisher(Header, topics.DRIVER_HEARTBEAT, topics.reliable(1))
        own.create_subscription(
            Float64MultiArray, config.controller.topic, self._hear, topics.reliable(1)
        )

    @property
    def is_over(self) -> bool:
        """A robot does not end by itself."""
        return False

    def _hear(self, message: Float64MultiArray) -> None:
        """Take a command."""
        raise NotImplementedError

    def _every(self, seconds: float, tick: Callable[[], None]) -> None:
        # A steady clock: setting the wall clock must not make physics jump.
        self.node.create_timer(seconds, tick, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _say_joints(self, stamp: Time, measured: Reading | Drives) -> None:
        self._states.publish(
            JointState(
                header=Header(stamp=stamp),
                name=self._joints,
                position=array("d", measured.position),
                velocity=array("d", measured.velocity),
                effort=array("d", measured.effort),
            )
        )


class DrivesNode(Driver):
    """Publishes joint states and mode, follows commands, and writes down every tick.

    Args:
        context: ROS context.
        config: The robot.
        drive: How its drives behave.

    Raises:
        InputError: If the file to record to cannot be written.
    """

    def __init__(self, context: Context, config: RobotConfig, drive: Drive) -> None:
        super().__init__(context, config, config.commanded)
        own = self.node
        for name, value in {"record": "", **_FAULTS}.items():
            own.declare_parameter(name, value)
        self._drives = Drives(config, drive)
        record = self._is("record") or os.devnull
        try:
            # A line at a time, so that a driver that is killed has told all.
            self._record = Path(record).open("w", encoding="utf-8", buffering=1)  # noqa: SIM115 - closed in finish
        except OSError as err:
            raise InputError(f"record: {record}: cannot be written: {err.strerror}") from err
        self._tick_s = 1.0 / config.state.rate_hz
        self._beat_ticks = max(1, round(config.state.rate_hz / _BEAT_HZ))
        self._ticks = self._away_ticks = 0
        self._is_pressed = False
        self._told = ""
        often = topics.latched(1)
        often.deadline = Duration(seconds=2.0 / _BEAT_HZ)  # so that who listens can ask for it
        self._estop = own.create_publisher(Bool, config.guard.estop.topic, often)
        mode = config.state.mode
        self._mode = own.create_publisher(String, mode.topic, topics.latched(1)) if mode else None
        self._health = own.create_publisher(DiagnosticArray, "/diagnostics", topics.reliable(10))
        own.create_subscription(
            Float64MultiArray, "driver/hand", self._on_hand, topics.reliable(10)
        )
        self._serve()
        self._start_s = time.monotonic()
        self._beat()
        self._every(self._tick_s, self._tick)

    def finish(self) -> None:
        """Nothing to say: a driver that dies is silent."""
        self._record.close()

    def _is(self, parameter: str) -> Any:
        return self.node.get_parameter(parameter).value

    # What people and circuits do to it.

    def _serve(self) -> None:
        drives = self._drives
        asked: dict[str, Callable[[], None]] = {
            "power_on": self._power_on,
            "unlock_protective_stop": drives.unlock,
            "protective_stop": lambda: drives.stop("asked for"),
            "reconnect": self._reconnect,
        }
        switched: dict[str, Callable[[bool], None]] = {
            "freedrive": lambda on: drives.freedrive(on=on),
            "controller": lambda on: drives.switch(on=on),
            "estop": self._press,
        }
        for name, ask in asked.items():
            self.node.create_service(Trigger, f"driver/{name}", partial(self._on_asked, ask))
        for name, switch in switched.items():
            self.node.create_service(SetBool, f"driver/{name}", partial(self._on_switched, switch))
        off = self.node.create_service(Trigger, "driver/power_off", self._on_power_off)
        tell = off.send_response

        def tell_unless_silent(response: Any, header: Any) -> None:
            if self._is("faults.power_off") != "silent":
                tell(response, header)

        # A callback cannot keep its answer to itself.
        off.send_response = tell_unless_silent  # type: ignore[method-assign]

    def _on_asked(self, ask: Callable[[], None], _request: Any, response: Any) -> Any:
        ask()
        return self._answered(response)

    def _on_switched(self, switch: Callable[[bool], None], request: Any, response: Any) -> Any:
        switch(request.data)
        return self._answered(response)

    def _answered(self, response: Any) -> Any:
        response.success, response.message = True, f"is {self._drives.mode}"
        self._beat()
        return response

    def _on_power_off(self, _request: Any, response: Any) -> Any:
        if self._is("faults.power_off"):
            response.success, response.message = False, "refused"
            return response
        self._drives.power(on=False)
        return self._answered(response)

    def _power_on(self) -> None:
        if not self._is_pressed:
            self._drives.power(on=True)

    def _press(self, pressed: bool) -> None:  # noqa: FBT001 - what the message holds
        self._is_pressed = pressed
        if pressed:
            self._drives.power(on=False)

    def _reconnect(self) -> None:
        self._drives.switch(on=False)
        self._away_ticks = round(_RECONNECT_S / self._tick_s)

    def _on_hand(self, message: Float64MultiArray) -> None:
        try:
            self._drives.guide(message.data)
        except InputError as err:
            self.node.get_logger().warning(str(err))

    # What a driver does.

    def _hear(self, message: Float64MultiArray) -> None:
        if not self._away_ticks and not self._is("faults.deaf"):
            self._drives.hear(message.data)

    def _tick(self) -> None:
        # A timer leaves out what a busy computer is late for; drives leave out nothing.
        before, due = self._ticks, int((time.monotonic() - self._start_s) / self._tick_s)
        while self._ticks < due:
            self._advance()
        if self._away_ticks or self._ticks == before:
            return
        self._say_joints(self._stamp(), self._drives)

    def _advance(self) -> None:
        self._drives.tick(self._tick_s)
        self._ticks += 1
        row = self._drives.row()
        self._record.write(f"{json.dumps(row)}\n")
        if self._away_ticks:
            self._away_ticks -= 1
            if not self._away_ticks:
                self._drives.switch(on=True)
            return
        if row["events"]:
            self._say_health(row["events"])
        if row["events"] or self._ticks % self._beat_ticks == 0:
            self._beat()

    def _stamp(self) -> Any:
        """When the tick was due, by the clock as it is now."""
        late_s = time.monotonic() - self._start_s - self._ticks * self._tick_s
        return topics.time_of(time.time_ns() - round(late_s * 1e9))

    def _beat(self) -> None:
        self._beats.publish(Header(stamp=self._stamp(), frame_id="driver"))
        if self._mode is not None:
            self._mode.publish(String(data=str(self._drives.mode)))
        if not self._is("faults.estop_silent"):
            self._estop.publish(Bool(data=self._is_pressed))

    def _say_health(self, events: list[str]) -> None:
        is_fault = any(event.startswith("protective stop") for event in events)
        status = DiagnosticStatus(
            level=DiagnosticStatus.ERROR if is_fault else DiagnosticStatus.OK,
            name=f"{self.node.get_namespace()}/driver",
            message="; ".join(events),
        )
        message = DiagnosticArray(status=[status])
        message.header.stamp = self._stamp()
        self._health.publish(message)
