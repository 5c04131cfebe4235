"""An incident becomes a regression test: its clip, replayed, stops today's guard as it did."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from robo_eval.cli.app import app
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import EndReason
from robo_eval.log.bag_metadata import BagTopic
from robo_eval.log.bag_writer import BagWriter
from robo_eval.log.cdr import Template
from robo_eval_incidents.capture import capture
from robo_eval_robot.config import RobotConfig, parse_robot
from robo_eval_robot.guard import Guard, Reaction
from robo_eval_robot.guard_checks import Request
from robo_eval_robot.guard_replay import Outcome, replay
from robo_eval_robot.guard_watch import JointSample

S = 10**9
STEP_NS = S // 100
BEGIN_S = 0.2
"""When motion is enabled."""
ROBOT = """
name: bench
body: twin
namespace: /bench
control_rate_hz: 100
joints:
  slide:
    type: prismatic
    limits: {position_m: [-5, 5], velocity_m_s: 2, acceleration_m_s2: 500, effort_n: 10}
controller:
  topic: controller/commands
  interface: position
  joints: [slide]
  timeout_s: 0.25
  timeout_provided_by: a parameter of the driver
state:
  rate_hz: 100
  mode: {topic: driver/mode, follows: [running]}
  workspace: {topic: tool, x_m: [0, 1], y_m: [0, 1], z_m: [0, 1]}
  wrench: {force_n: 20, torque_nm: 3}
guard: {driver_heartbeat_s: 0.3, policy_heartbeat_s: 0.3}
"""
TOPICS = {
    "joint_states": "sensor_msgs/msg/JointState",
    "policy/joint_command": "sensor_msgs/msg/JointState",
    "heartbeat/policy": "std_msgs/msg/Header",
    "heartbeat/driver": "std_msgs/msg/Header",
    "safety/estop": "std_msgs/msg/Bool",
    "driver/mode": "std_msgs/msg/String",
    "tool": "geometry_msgs/msg/PoseStamped",
    "force_torque_sensor_broadcaster/wrench": "geometry_msgs/msg/WrenchStamped",
    "controller/commands": "std_msgs/msg/Float64MultiArray",
    "safety/state": "diagnostic_msgs/msg/DiagnosticArray",
    "safety/incidents": "diagnostic_msgs/msg/DiagnosticArray",
    "episode/event": "std_msgs/msg/String",
}
CAUSES = (
    "velocity", "command_velocity", "command_not_finite", "command_age", "policy_heartbeat",
    "driver_heartbeat", "estop", "mode", "workspace", "force", "state_age",
)  # fmt: skip


def robot(old: str = "", new: str = "") -> RobotConfig:
    """The robot, with a setting that is otherwise."""
    assert old in ROBOT
    return parse_robot(ROBOT.replace(old, new), source="bench.yaml")


class Recorded:
    """A guard that hears a robot, and all that was said, as a recorder has it."""

    def __init__(self, start_ns: int) -> None:
        self.start_ns, self.at_ns = start_ns, start_ns
        self.guard = Guard(robot(), start_ns * 1e-9)
        self.messages: list[tuple[str, int, bytes]] = []
        self.said = ""
        self.command = 0.0

    @property
    def now(self) -> float:
        return self.at_ns * 1e-9

    def write(self, topic: str, data: bytes) -> None:
        self.messages.append((f"/bench/{topic}", self.at_ns, data))

    def stamped(self, numbers: Callable[[Template], Template], values: list[float]) -> bytes:
        template = numbers(Template().add_stamp().add_string(""))
        out = np.empty((1, len(template.data)), dtype=np.uint8)
        template.fill(out, np.array([self.at_ns]), np.array([values]))
        return out.tobytes()

    def joints(self, topic: str, position: float, velocity: float) -> None:
        def shape(template: Template) -> Template:
            template.add_uint32(1).add_string("slide").add_number_list(1)
            return template.add_number_list(1).add_number_list(0)

        self.write(topic, self.stamped(shape, [position, velocity]))

    def react(self, reaction: Reaction | None) -> None:
        if reaction is None:
            return
        if reaction.command is not None:
            data = Template().add_uint32(0).add_uint32(0).add_number_list(1)
            out = np.empty((1, len(data.data)), dtype=np.uint8)
            data.fill(out, np.array([0]), np.array([reaction.command]))
            self.write("controller/commands", out.tobytes())
        for trip in reaction.incidents:
            self.diagnostics("safety/incidents", str(trip.code), trip.message)
        if self.guard.state != self.said:
            self.said = self.guard.state
            self.diagnostics("safety/state", "guard", self.said, state=str(self.said))

    def diagnostics(self, topic: str, name: str, text: str, **values: str) -> None:
        message = Template().add_stamp().add_string("").add_uint32(1)
        message.data += b"\x02"
        for part in (name, text, "bench"):
            message.add_string(part)
        message.add_uint32(len(values))
        for key, value in values.items():
            message.add_string(key).add_string(value)
        out = np.empty((1, len(message.data)), dtype=np.uint8)
        message.fill(out, np.array([self.at_ns]), np.empty((1, 0)))
        self.write(topic, out.tobytes())

    def play(self, cause: str, at_s: float, seconds: float) -> None:
        """Move along, and let one thing go wrong from some second on."""
        guard, position = self.guard, 0.0
        for tick in range(round(seconds * 100)):
            self.at_ns = self.start_ns + tick * STEP_NS
            bad = cause if tick >= at_s * 100 else ""
            moves = guard.state == "RUNNING"
            position += 0.003 * moves
            if tick % 5 == 0:
                if bad != "policy_heartbeat":
                    guard.peers.heard_policy(self.now)
                    self.write("heartbeat/policy", self.stamped(lambda each: each, []))
                if bad != "driver_heartbeat":
                    guard.peers.heard_driver(self.now)
                    self.write("heartbeat/driver", self.stamped(lambda each: each, []))
                self.write("safety/estop", b"\0\1\0\0" + bytes([bad == "estop"]))
                self.react(guard.estop(pressed=bad == "estop", now=self.now))
                word = "freedrive" if bad == "mode" else "running"
                self.write("driver/mode", bytes(Template().add_string(word).data))
                self.react(guard.mode(word, self.now))
            place = [2.0 if bad == "workspace" else 0.5, 0.5, 0.5]
            self.write("tool", self.stamped(lambda each: each.add_numbers(7), [*place, 0, 0, 0, 1]))
            self.react(guard.pose((place[0], 0.5, 0.5), self.now))
            felt = [30.0 if bad == "force" else 1.0, 0.0, 0.0]
            wrench = self.stamped(lambda each: each.add_numbers(6), [*felt, 0, 0, 0])
            self.write("force_torque_sensor_broadcaster/wrench", wrench)
            self.react(guard.wrench(felt[0], 0.0, self.now))
            if bad != "state_age":
                velocity = 2.5 if bad == "velocity" else 0.3 * moves
                self.joints("joint_states", position, velocity)
                sample = JointSample(
                    names=["slide"], positions=[position], velocities=[velocity], efforts=[],
                    stamp_ns=self.at_ns,
                )  # fmt: skip
                self.react(guard.joint_state(sample, self.now))
            if tick == BEGIN_S * 100:
                self.react(guard.enable(on=True, now=self.now).reaction)
                self.command = position
            if guard.state == "RUNNING" and bad != "command_age":
                self.command += 0.003 if bad != "command_velocity" else 0.03
                value = float("nan") if bad == "command_not_finite" else self.command
                self.joints("policy/joint_command", value, 0.0)
                asked = Request(names=["slide"], values=[value], stamp_ns=self.at_ns)
                self.react(guard.request(asked, wall_ns=self.at_ns, now=self.now))
            self.react(guard.cycle(self.now))
            if tick % 10 == 0:
                self.diagnostics("safety/state", "guard", self.said, state=str(self.said))

    def save(self, folder: Path, without: str = "") -> Path:
        topics = [
            BagTopic(name=f"/bench/{name}", type=kind, text="string data\n", offered_qos="")
            for name, kind in TOPICS.items()
            if name != without
        ]
        with BagWriter(folder, topics, chunk_bytes=1 << 16, start={"event": "start"}) as bag:
            for number, (topic, at_ns, data) in enumerate(self.messages):
                if topic != f"/bench/{without}":
                    bag.write(topic, data, received_ns=at_ns, published_ns=at_ns, sequence=number)
        return folder


START_NS = 1_772_000_000 * S


def recorded(tmp_path: Path, cause: str, at_s: float = 0.6, **saved: str) -> tuple[Path, int]:
    """A clip, and when the guard stopped in it."""
    played = Recorded(START_NS)
    played.play(cause, at_s, at_s + 0.6)
    stopped = [at for topic, at, _ in played.messages if topic.endswith("safety/incidents")]
    return played.save(tmp_path / "clip", **saved), stopped[0]


@pytest.mark.parametrize("cause", CAUSES)
def test_a_clip_stops_the_same_guard_as_it_did(tmp_path: Path, cause: str) -> None:
    clip, stopped_ns = recorded(tmp_path, cause)
    before, now = replay(clip, robot(), stopped_ns)
    assert before.causes[0] == cause
    assert now.causes == before.causes
    assert before.late_s(now) == pytest.approx(0.0, abs=0.021)


@pytest.mark.parametrize(
    ("cause", "old", "new"),
    [
        ("velocity", "velocity_m_s: 2", "velocity_m_s: 3"),
        ("force", "force_n: 20", "force_n: 40"),
        ("workspace", "x_m: [0, 1]", "x_m: [0, 3]"),
        ("mode", "follows: [running]", "follows: [running, freedrive]"),
    ],
)
def test_a_looser_limit_is_seen(tmp_path: Path, cause: str, old: str, new: str) -> None:
    clip, stopped_ns = recorded(tmp_path, cause)
    before, now = replay(clip, robot(old, new), stopped_ns)
    assert cause in before.causes
    assert cause not in now.causes


def test_a_guard_that_waits_longer_stops_later(tmp_path: Path) -> None:
    clip, stopped_ns = recorded(tmp_path, "command_age")
    before, now = replay(clip, robot("guard: {", "guard: {command_age_s: 0.2, "), stopped_ns)
    assert before.causes == now.causes == ("command_age",)
    assert before.late_s(now) == pytest.approx(0.1, abs=0.03)


def test_a_tighter_limit_stops_before(tmp_path: Path) -> None:
    clip, stopped_ns = recorded(tmp_path, "force")
    before, now = replay(clip, robot("velocity_m_s: 2", "velocity_m_s: 0.2"), stopped_ns)
    assert before.causes == ("force",)
    assert now.causes[0] in {"velocity", "command_velocity"}
    assert (before.late_s(now) or 0.0) < -0.3


def test_a_clip_that_begins_in_motion_goes_on_from_the_command_that_acts(tmp_path: Path) -> None:
    played = Recorded(START_NS)
    played.play("force", 0.6, 1.0)
    middle_ns = START_NS + 4 * S // 10
    played.messages = [each for each in played.messages if each[1] >= middle_ns]
    stopped_ns = next(at for topic, at, _ in played.messages if topic.endswith("incidents"))
    before, now = replay(played.save(tmp_path / "clip"), robot(), stopped_ns)
    assert now == Outcome(stopped_ns=before.stopped_ns, causes=("force",))


@pytest.mark.parametrize("topic", ["heartbeat/policy", "joint_states", "driver/mode"])
def test_a_clip_without_what_the_guard_hears_is_refused(tmp_path: Path, topic: str) -> None:
    clip, stopped_ns = recorded(tmp_path, "force", without=topic)
    with pytest.raises(InputError, match=f"cannot be replayed: it lacks /bench/{topic}"):
        replay(clip, robot(), stopped_ns)


@pytest.fixture
def of_a_stop(lab: Any, tmp_path: Path) -> Callable[..., Any]:
    """A trial with an incident, and the verb on it."""

    def write(folder: Path, *_said: Any, start_ns: int) -> Path:
        played = Recorded(start_ns)
        played.play("force", 0.6, 1.0)
        return played.save(folder)

    lab._record = write
    lab.play(end_detail="guard: force", end_reason=EndReason.SAFETY_STOP)
    capture(lab.path)
    (incident,) = lab.incidents()

    def call(text: str = ROBOT, *options: str) -> Any:
        (tmp_path / "bench.yaml").write_text(text)
        given = ("--log", str(lab.path), "--robot", str(tmp_path / "bench.yaml"))
        return CliRunner().invoke(app, ["incidents", "test", incident.name, *given, *options])

    return call


def test_the_verb_tells_what_was_and_what_is(of_a_stop: Callable[..., Any]) -> None:
    same, other = of_a_stop(), of_a_stop(ROBOT.replace("force_n: 20", "force_n: 40"))
    assert same.exit_code == 0, same.output
    assert [line.split()[:2] for line in same.output.splitlines() if "stops" in line] == [
        ["was", "stops"], ["is", "stops"],
    ]  # fmt: skip
    assert other.exit_code == 1
    told = json.loads(of_a_stop(ROBOT, "--json").stdout)
    assert (told["same"], told["was"], told["is"]) == (True, ["force"], ["force"])
    assert abs(told["late_ms"]) < 25.0


def test_what_cannot_be_replayed_is_code_2(of_a_stop: Callable[..., Any], lab: Any) -> None:
    (clip,) = (lab.path / "incidents").glob("*.mcap")
    data = bytearray(clip.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 200] = bytes(200)
    clip.write_bytes(data)
    with pytest.raises(InputError, match=f"{clip.name}: is not the file that was recorded"):
        raise of_a_stop().exception
    clip.unlink()
    with pytest.raises(InputError, match=f"{clip.name}: is missing"):
        raise of_a_stop().exception
