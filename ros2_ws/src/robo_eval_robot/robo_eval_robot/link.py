"""The conductor's connection to a robot: states in; requests, events and service calls out."""

from __future__ import annotations

import json
import math
import time
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.qos import QoSProfile
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Header, String
from std_srvs.srv import SetBool, Trigger

from robo_eval.core import door
from robo_eval.core.errors import CheckFailedError, InputError, NotHereError
from robo_eval_robot import topics
from robo_eval_robot.config import RobotConfig
from robo_eval_robot.doctor_peers import controller, takers_of
from robo_eval_robot.doctor_state import why_silent
from robo_eval_robot.hearing import Heard, endpoints_of
from robo_eval_robot.process import Joined, choose_transport
from robo_eval_robot.snapshot import ImuReading, JointReading, Snapshot

_HEARTBEAT_S: Final = 0.05
_SERVICE_S: Final = 10.0
_ASK_AGAIN_S: Final = 1.5
_QUIET_S: Final = 2.0
"""How long guard and twin, which speak many times a second, may be silent at least."""
_RECORDER_QUIET_S: Final = 5.0
"""The same of the recorder, which speaks twice a second unless its disk is slow."""
_DRAIN_S: Final = 0.3
_LEAST_PATIENCE_S: Final = 1.0
_KEPT: Final = 64
RUNNING: Final = "RUNNING"
READY: Final = "READY"
STOPPED: Final = ("PROTECTIVE_STOP", "ESTOP")


class RobotLostError(CheckFailedError):
    """A process of the robot's side does not answer any more."""


class RobotStuckError(CheckFailedError):
    """The guard does not let the robot move, and will not until somebody sees to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardReport:
    """What the guard last said of itself.

    Attributes:
        state: INIT, READY, RUNNING, PROTECTIVE_STOP, ESTOP, or empty if it never spoke.
        cause: Code of what stopped it first; empty if nothing did.
        values: Everything it says, as texts.
    """

    state: str = ""
    cause: str = ""
    values: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trip:
    """One incident the guard reported.

    Attributes:
        code: Which check tripped.
        text: What happened, one sentence.
        stamp_ns: When, by the guard's clock.
        values: Value, limit, unit, joint, episode, as texts.
    """

    code: str
    text: str
    stamp_ns: int
    values: dict[str, str]


class RobotLink(Joined):
    """A node in the conductor's own process, spun only while it waits.

    Heartbeats go out from the same loop that waits for states, so a policy that hangs is silent,
    and the guard notices.

    Args:
        config: The robot.
        name: Of the node.
        session: Its arguments, see `topics.of_session`; without, the topics have plain names.
    """

    def __init__(
        self, config: RobotConfig, name: str = "conductor", session: list[str] | None = None
    ) -> None:
        self.config: Final = config
        choose_transport()
        super().__init__(name, config, cli_args=session)
        self.guard = GuardReport()
        self.recorder: dict[str, Any] = {}
        self.patience_s = 0.0
        """How long to wait for a guard at least, and to ask again when it refuses motion: a process
        that was killed stays on the graph for a while, its successor is found late, and the guard
        takes the dead one for a second master."""
        self.trips: deque[Trip] = deque(maxlen=_KEPT)
        self.complaints: dict[str, str] = {}
        """What is wrong, as others below the namespace say on `/diagnostics`, by their names."""
        self.heard: deque[dict[str, Any]] = deque(maxlen=_KEPT)
        """Events of others, such as the twin's."""
        # A second at least: those that wait tell a late computer from states that were lost.
        self._kept = max(_KEPT, math.ceil(config.state.rate_hz))
        self._snapshots: deque[Snapshot] = deque(maxlen=self._kept)
        self._imus: deque[tuple[int, ImuReading]] = deque(maxlen=self._kept)
        self._waiting: deque[tuple[int, float, dict[str, JointReading]]] = deque(maxlen=self._kept)
        self._scene_ns = 0
        self._next_beat_s = 0.0
        often = max(_QUIET_S, config.guard.policy_heartbeat_s)
        self._quiet_s = {"guard": often, "twin": often, "recorder": _RECORDER_QUIET_S}
        self._heard_s: dict[str, float] = {}
        self._listened_s = 0.0
        self._spun_s = time.monotonic()
        self._seen_trips: set[tuple[int, str]] = set()
        self._connect_topics()

    def _connect_topics(self) -> None:
        node, config = self.node, self.config
        self._requests = node.create_publisher(
            JointState, topics.POLICY_COMMAND, topics.reliable(10)
        )
        self._beats = node.create_publisher(Header, topics.POLICY_HEARTBEAT, topics.reliable(1))
        self._events = node.create_publisher(String, topics.EPISODE_EVENT, topics.latched(10))
        heard: list[tuple[Any, str, Callable[[Any], None]]] = [
            (JointState, config.state.joint_states, self._on_joints)
        ]
        if config.state.imu is not None:
            heard.append((Imu, config.state.imu.topic, self._on_imu))
        deep = topics.reliable(self._kept)
        self._measured = [
            (node.create_subscription(kind, topic, callback, deep), callback)
            for kind, topic, callback in heard
        ]
        told: list[tuple[Any, str, Callable[[Any], None], QoSProfile]] = [
            (DiagnosticArray, topics.SAFETY_STATE, self._on_guard, topics.latched(1)),
            (Header, topics.GUARD_HEARTBEAT, lambda _: self._hear("guard"), topics.reliable(1)),
            (DiagnosticArray, topics.INCIDENTS, self._on_trip, topics.latched(50)),
            (DiagnosticArray, "/diagnostics", self._on_health, topics.reliable(10)),
            (String, topics.RECORDER_STATUS, self._on_recorder, topics.latched(1)),
            (String, topics.EPISODE_EVENT, self._on_event, topics.latched(10)),
        ]
        for kind, topic, callback, qos in told:
            node.create_subscription(kind, topic, callback, qos)
        self._services: dict[str, Any] = {
            name: node.create_client(kind, name)
            for name, kind in (
                (topics.SAFETY_STOP, Trigger),
                (topics.SAFETY_RESET, Trigger),
                (topics.SAFETY_WITHHOLD, Trigger),
                (topics.SAFETY_ENABLE, SetBool),
            )
        }

    # Waiting -----------------------------------------------------------------------------------

    def spin(self, seconds: float) -> None:
        """Take what arrives within some seconds, at least once, and send heartbeats."""
        self._beat()
        self._executor.spin_once(timeout_sec=max(0.0, min(seconds, _HEARTBEAT_S)))
        self._listened_s, self._spun_s = self.listened_s, time.monotonic()

    @property
    def listened_s(self) -> float:
        """A clock, seconds: how long this process has listened.

        Time in which nobody listened, such as that of a slow policy or of a process that was
        stopped, is nobody's silence: what arrived meanwhile waits to be taken.
        """
        return self._listened_s + min(time.monotonic() - self._spun_s, 2 * _HEARTBEAT_S)

    def wait(self, is_so: Callable[[], bool], seconds: float) -> bool:
        """Spin until something is so; False if it is not within some seconds of listening."""
        deadline = self.listened_s + seconds
        while not is_so():
            left = deadline - self.listened_s
            if left <= 0.0:
                return False
            self.spin(left)
        return True

    def _beat(self) -> None:
        now = time.monotonic()
        if now >= self._next_beat_s:
            self._next_beat_s = now + _HEARTBEAT_S
            self._beats.publish(Header(stamp=topics.time_of(time.time_ns()), frame_id="policy"))

    # Silence -----------------------------------------------------------------------------------

    def _hear(self, name: str) -> None:
        self._heard_s[name] = self._listened_s

    def is_silent(self, name: str, *, anew: bool = False) -> bool:
        """Whether a process that has spoken does not any more.

        Args:
            name: `guard`, `twin` or `recorder`.
            anew: Whether to listen until it speaks once more, however short its silence is.
        """
        heard, seconds = self._heard_s.get(name), self._quiet_s[name]
        if heard is None:
            return False
        if anew:
            return not self.wait(lambda: self._heard_s[name] > heard, seconds)
        return self._listened_s - heard > seconds

    def forget(self, names: Sequence[str]) -> None:
        """Let nothing that processes said before they died pass for what their successors say."""
        self.wait(lambda: False, _DRAIN_S)  # their last words lie in queues
        for name in names:
            self._heard_s.pop(name, None)
        if "guard" in names:
            self.guard = GuardReport()
        if "twin" in names:
            self.forget_before(0)
        if "recorder" in names:
            self.recorder = {}

    # States ------------------------------------------------------------------------------------

    @property
    def latest(self) -> Snapshot | None:
        """The newest state; None before the first."""
        return self._snapshots[-1] if self._snapshots else None

    def next_snapshot(self, after_ns: int, seconds: float) -> Snapshot | None:
        """The newest state once one is stamped later than a time; None if none comes in time."""
        deadline = self.listened_s + seconds
        while True:
            self._complete(time.monotonic())
            if self.latest is not None and self.latest.stamp_ns > after_ns:
                self._catch_up()
                return self.latest
            left = deadline - self.listened_s
            if left <= 0.0:
                return None
            self.spin(left)

    @property
    def state_patience_s(self) -> float:
        """How long to wait for the next state, seconds."""
        return max(_LEAST_PATIENCE_S, 10.0 * self.config.guard.state_age_s)

    def state_after(self, after_ns: int) -> Snapshot:
        """The newest state once one is stamped later than a time.

        Raises:
            RobotLostError: If none comes for long.
        """
        seconds = self.state_patience_s
        snapshot = self.next_snapshot(after_ns, seconds)
        if snapshot is None:
            raise RobotLostError(
                f"robot {self.config.name!r}: no state for {seconds:g} s on"
                f" {self.config.topic(self.config.state.joint_states)}"
            )
        return snapshot

    def fresh(self, after_ns: int = 0) -> Snapshot:
        """A state that was measured from now on, and after a time of the driver's clock."""
        return self.state_after(max(after_ns, self.latest.stamp_ns if self.latest else 0))

    def _catch_up(self) -> None:
        """Take all states that wait: the executor hands over one at a time."""
        is_raw = False
        for one, callback in self._measured:
            with one.handle:
                while taken := one.handle.take_message(one.msg_type, is_raw):
                    callback(taken[0])

    def snapshots_after(self, stamp_ns: int) -> list[Snapshot]:
        """The newest states that are stamped later than a time, oldest first."""
        return [one for one in self._snapshots if one.stamp_ns > stamp_ns]

    def forget_before(self, stamp_ns: int) -> None:
        """Take no state of an earlier scene for one of the new scene, nor half of one.

        What has arrived is forgotten, whatever its stamps say: a driver's clock may have been set
        back since. What arrives later is of the new scene if it is stamped so: topics arrive in no
        common order.
        """
        self._scene_ns = stamp_ns
        for kept in (self._snapshots, self._imus, self._waiting):
            kept.clear()

    def _on_joints(self, message: JointState) -> None:
        self._hear("twin")
        velocity, effort = message.velocity, message.effort
        joints = {
            name: JointReading(
                position=message.position[i],
                velocity=velocity[i] if i < len(velocity) else None,
                effort=effort[i] if i < len(effort) else None,
            )
            for i, name in enumerate(message.name)
            if i < len(message.position)
        }
        if not all(name in joints for name in self.config.joints):
            return  # of another controller's joints
        now = time.monotonic()
        self._waiting.append((topics.ns_of(message.header.stamp), now, joints))
        self._complete(now)

    def _on_imu(self, message: Imu) -> None:
        turn, rate = message.orientation, message.angular_velocity
        reading = ImuReading(
            quat_xyzw=(turn.x, turn.y, turn.z, turn.w),
            angular_velocity=(rate.x, rate.y, rate.z),
        )
        stamp_ns = topics.ns_of(message.header.stamp)
        if stamp_ns > self._scene_ns:
            self._imus.append((stamp_ns, reading))
        self._complete(time.monotonic())

    def _complete(self, now: float) -> None:
        """Put together joint states and what the IMU said at the same time.

        Topics arrive in no common order. A message the IMU lost is waited for half a period.
        """
        patience = 0.5 / self.config.state.rate_hz
        while self._waiting:
            stamp, received, joints = self._waiting[0]
            imu = None
            if self.config.state.imu is not None:
                if not self._imus:
                    return
                if self._imus[-1][0] < stamp and now - received < patience:
                    return
                imu = next((r for t, r in reversed(self._imus) if t <= stamp), self._imus[0][1])
            self._waiting.popleft()
            self._snapshots.append(
                Snapshot(stamp_ns=stamp, received_s=received, joints=joints, imu=imu)
            )

    # Requests and events -----------------------------------------------------------------------

    def request(self, values: Sequence[float]) -> None:
        """Ask the guard to pass on a command, in the order of the controller's joints."""
        self._beat()
        message = JointState(name=list(self.config.commanded))
        message.header.stamp = topics.time_of(time.time_ns())
        setattr(message, self.config.controller.interface, array("d", values))
        self._requests.publish(message)

    def event(self, **fields: Any) -> None:
        """Publish an event of an episode."""
        text = json.dumps({"schema_version": 1, **fields}, allow_nan=False)
        self._events.publish(String(data=text))

    def _on_event(self, message: String) -> None:
        try:
            event = door.object_of(message.data)
        except ValueError:
            return
        self.heard.append(event)

    def wait_event(self, seconds: float, **fields: str) -> dict[str, Any] | None:
        """The event that has these fields; None if it does not come in time."""

        def found() -> dict[str, Any] | None:
            for event in self.heard:
                if all(event.get(name) == value for name, value in fields.items()):
                    return event
            return None

        self.wait(lambda: found() is not None, seconds)
        return found()

    # Guard and recorder ------------------------------------------------------------------------

    def _on_guard(self, message: DiagnosticArray) -> None:
        if said := topics.guard_of(message):
            cause = said.get("cause", "")
            self.guard = GuardReport(state=said["state"], cause=cause, values=said)

    def has_judged(self, snapshot: Snapshot) -> bool:
        """Whether what the guard says of itself came after it had seen this state."""
        seen = int(self.guard.values.get("state_stamp_ns", 0))
        return self.guard.state != RUNNING or seen >= snapshot.stamp_ns

    def _on_trip(self, message: DiagnosticArray) -> None:
        stamp_ns = topics.ns_of(message.header.stamp)
        for status in message.status:
            if (stamp_ns, status.name) in self._seen_trips:
                continue
            self._seen_trips.add((stamp_ns, status.name))
            values, text = topics.values_of(status), status.message
            self.trips.append(Trip(code=status.name, text=text, stamp_ns=stamp_ns, values=values))

    def _on_health(self, message: DiagnosticArray) -> None:
        own = f"{self.config.namespace}/"
        for status in message.status:
            if status.level != DiagnosticStatus.ERROR:
                self.complaints.pop(status.name, None)
            elif status.name.startswith(own) and status.name != f"{own}guard":
                self.complaints[status.name] = status.message

    def _on_recorder(self, message: String) -> None:
        self._hear("recorder")
        try:
            status = door.object_of(message.data)
        except ValueError:
            return
        self.recorder = status

    def call(self, name: str, *, data: bool | None = None) -> str | None:
        """Call a service of the guard.

        Args:
            name: One of the names in `topics`.
            data: For a service that takes a truth.

        Returns:
            What it objects to; None if it did as asked.

        Raises:
            RobotLostError: If it does not answer.
        """
        client = self._services[name]
        deadline = self.listened_s + max(_SERVICE_S, self.patience_s)
        while self.listened_s < deadline and not self.is_silent("guard"):
            if not self.wait(client.service_is_ready, deadline - self.listened_s):
                break
            request = Trigger.Request() if data is None else SetBool.Request(data=data)
            future = client.call_async(request)
            # Asked again: after a guard has died the graph shows it for a while, and what was
            # asked before its successor was found reaches nobody. Asking twice does no harm.
            if self.wait(future.done, _ASK_AGAIN_S):
                answer: Any = future.result()
                return None if answer.success else str(answer.message)
            client.remove_pending_request(future)
        raise RobotLostError(f"the guard does not answer {self.config.topic(name)}")

    def reset(self) -> None:
        """Bring a guard that stopped the robot back to READY; nothing if it did not.

        Raises:
            RobotLostError: If the guard does not answer.
            RobotStuckError: If what stopped it persists; the message says what.
        """
        if self.guard.state not in STOPPED:
            return
        # A cause may take a moment to clear, such as a state that has to be fresh again.
        deadline = self.listened_s + self.config.start_up_s
        problem = self.call(topics.SAFETY_RESET)
        while problem is not None and self.listened_s < deadline:
            self.wait(lambda: False, 0.1)
            problem = self.call(topics.SAFETY_RESET)
        if problem is not None:
            raise RobotStuckError(f"the guard cannot be reset: {problem}")
        self.wait(lambda: self.guard.state not in STOPPED, _SERVICE_S)

    def enable(self) -> None:
        """Open the guard for motion.

        Raises:
            RobotLostError: If the guard does not answer.
            RobotStuckError: If it refuses; the message says why.
        """
        deadline = self.listened_s + self.patience_s
        problem = self.call(topics.SAFETY_ENABLE, data=True)
        while problem is not None and self.listened_s < deadline:
            self.wait(lambda: False, 0.5)
            problem = self.call(topics.SAFETY_ENABLE, data=True)
        if problem is not None:
            raise RobotStuckError(f"the guard does not enable motion: {problem}")
        if not self.wait(lambda: self.guard.state == RUNNING, _SERVICE_S):
            raise RobotStuckError(f"the guard is {self.guard.state or 'silent'}, not {RUNNING}")

    def disable(self) -> None:
        """Close the guard: it stops the robot and passes nothing on."""
        self.call(topics.SAFETY_ENABLE, data=False)

    def connect(self) -> None:
        """Wait until robot and guard are there.

        Raises:
            NotHereError: If nothing is heard of the robot, and it is no twin.
            InputError: If something else is not there in time; the message names it and the remedy.
        """
        config, seconds = self.config, max(self.config.start_up_s, self.patience_s)
        where = f"robot {config.name!r} in {config.namespace}"
        if not self.wait(lambda: bool(self._snapshots or self._waiting), seconds):
            # A twin runs on the computer that plays: its silence is no sign of another one.
            kind = InputError if config.body == "twin" else NotHereError
            raise kind(f"{where}: {self._nothing_on(config.state.joint_states, seconds)}")
        if config.state.imu is not None and not self.wait(lambda: bool(self._imus), seconds):
            raise InputError(f"{where}: {self._nothing_on(config.state.imu.topic, seconds)}")
        if not self.wait(lambda: self.guard.state not in ("", "INIT"), seconds):
            said = self.guard.values.get("waits_for") or self.guard.values.get("cause") or ""
            raise InputError(
                f"{where}: the guard is {self.guard.state or 'silent'} after {seconds:g} s"
                + (f": {said}" if said else "")
            )
        command = config.topic(config.controller.topic)
        listeners = partial(self.node.get_subscriptions_info_by_topic, command)
        if not self.wait(lambda: bool(takers_of(config, endpoints_of(listeners()))), seconds):
            nobody = controller(config, Heard())
            raise InputError(f"{where}: {nobody.found}; {nobody.remedy}")

    def _nothing_on(self, topic: str, seconds: float) -> str:
        """That nothing arrives on a topic, and what may be the matter."""
        full = self.config.topic(topic)
        found = endpoints_of(self.node.get_publishers_info_by_topic(full))
        remedy = topics.unheard(self.node, full) or why_silent(found)
        return f"nothing arrives on {full} within {seconds:g} s; {remedy}"
