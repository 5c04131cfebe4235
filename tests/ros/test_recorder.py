"""The recorder as a process beside one that publishes, over real DDS."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from rosbags.highlevel import AnyReader

from robo_eval.log.bag_restore import restore
from robo_eval_incidents.cut import cut_out

if not os.environ.get("ROBO_EVAL_REQUIRE_ALL"):
    pytest.importorskip("rclpy")

HERE = Path(__file__).parent
DEADLINE_S = 90.0
SPACE = "/twin0"
FAST = (
    "joint_states",
    "policy/joint_command",
    "forward_effort_controller/commands",
    "imu_sensor_broadcaster/imu",
)
CAMERAS = ("camera/image/compressed", "side/image/compressed")
ROBOT = """
name: bench
body: twin
namespace: /twin0
control_rate_hz: 50
joints:
  slide:
    type: prismatic
    limits: {position_m: [-1, 1], velocity_m_s: 2, acceleration_m_s2: 10, effort_n: 10}
controller:
  topic: forward_effort_controller/commands
  interface: effort
  joints: [slide]
  timeout_s: 0.25
  timeout_provided_by: a parameter of the driver
state: {rate_hz: 100, imu: {}}
guard: {}
tasks: {RoboEval/CartPole3D-v0: {adapter: cartpole3d}}
record:
  chunk_bytes: 8192
  topics:
    camera/image/compressed: sensor_msgs/msg/CompressedImage
    side/image/compressed: sensor_msgs/msg/CompressedImage
"""


class Rig:
    """The publishing process, which does as it is told."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._answers = selectors.DefaultSelector()
        self._answers.register(process.stdout, selectors.EVENT_READ)
        assert self.answer() == "ready"

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def do(**arguments: Any) -> Any:
            self.process.stdin.write(json.dumps([name, arguments]) + "\n")
            self.process.stdin.flush()
            return self.answer()

        return do

    def answer(self) -> Any:
        assert self._answers.select(2 * DEADLINE_S), "the rig says nothing"
        line = self.process.stdout.readline()
        assert line, "the rig has ended"
        return json.loads(line)

    def until(self, *states: str, **more: Any) -> dict[str, Any]:
        status = self.status(states=states, timeout_s=DEADLINE_S, **more)
        assert status, f"no status {states} {more}"
        return status

    def start(self, episode: str, uri: str | None = None) -> dict[str, Any]:
        """Start an episode and wait until it is recorded."""
        self.event(event="start", episode_id=episode, uri=uri or f"traces/{episode}", seed=7)
        return self.until("recording", "error", episode_id=episode)

    def end(self, episode: str) -> dict[str, Any]:
        self.event(event="end", episode_id=episode, outcome="success")
        return self.until("closed", "error", episode_id=episode)


class Stage:
    """A recorder and a rig in one folder."""

    def __init__(self, root: Path, environment: dict[str, str]) -> None:
        self.root = root
        self.errors = root / "recorder.log"
        self.robot = root / "robot.yaml"
        self.robot.write_text(ROBOT)
        self.env = environment
        self.children: list[subprocess.Popen[str]] = []

    def rig(self) -> Rig:
        command = [sys.executable, str(HERE / "rig_publisher.py"), SPACE]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.children.append(subprocess.Popen(command, env=self.env, **pipes))
        return Rig(self.children[-1])

    def recorder(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "robo_eval_robot.recorder", str(self.robot)]
        command += ["--root", str(self.root)]
        with self.errors.open("a") as errors:
            self.children.append(subprocess.Popen(command, env=self.env, stderr=errors, text=True))
        return self.children[-1]

    def both(self, *offered: str, **how: Any) -> tuple[Rig, subprocess.Popen[str]]:
        """A recorder that hears all that a rig offers."""
        recorder = self.recorder()
        rig = self.rig()
        rig.offer(names=offered, **how)
        assert rig.match(timeout_s=DEADLINE_S), self.errors.read_text()
        rig.until("idle")
        return rig, recorder

    def stop(self) -> None:
        for child in self.children:
            if child.stdin is not None:  # at its end the rig ends by itself
                with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                    child.stdin.close()
                    child.wait(30)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
                if child.poll() is None:
                    child.send_signal(number)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        child.wait(30)
            if child.stdout is not None:
                child.stdout.close()


@pytest.fixture
def stage(tmp_path: Path, ros_environment: dict[str, str]) -> Iterator[Stage]:
    stage = Stage(tmp_path, ros_environment)
    yield stage
    stage.stop()


def ended(process: subprocess.Popen[str], number: signal.Signals) -> int:
    process.send_signal(number)
    return process.wait(DEADLINE_S)


READ: dict[str, Callable[[Any], float]] = {
    f"{SPACE}/joint_states": lambda m: m.position[3],
    f"{SPACE}/policy/joint_command": lambda m: m.effort[0],
    f"{SPACE}/forward_effort_controller/commands": lambda m: m.data[0],
    f"{SPACE}/imu_sensor_broadcaster/imu": lambda m: m.angular_velocity.x,
    f"{SPACE}/camera/image/compressed": lambda m: len(m.data) + float(m.data[9]),
    f"{SPACE}/side/image/compressed": lambda m: len(m.data) + float(m.data[9]),
    f"{SPACE}/safety/state": lambda m: float(m.status[0].message),
    f"{SPACE}/safety/estop": lambda m: float(m.data),
    f"{SPACE}/episode/event": lambda m: float(len(m.data)),
}
Values = dict[str, list[float]]
# What the rig writes into message n, see `rig_publisher.message`.
VALUE: dict[str, Callable[[int], float]] = {
    "joint_states": lambda n: n + 0.375,
    "policy/joint_command": float,
    "forward_effort_controller/commands": float,
    "imu_sensor_broadcaster/imu": float,
    "camera/image/compressed": lambda n: 40_000.0 + n % 256,
    "side/image/compressed": lambda n: 40_000.0 + n % 256,
}


def by_mcap(folder: Path) -> Values:
    values: Values = {topic: [] for topic in READ}
    (path,) = folder.glob("*.mcap")
    with path.open("rb") as file:
        reader = make_reader(file, validate_crcs=True, decoder_factories=[DecoderFactory()])
        for _, channel, _, message in reader.iter_decoded_messages():
            values[channel.topic].append(float(READ[channel.topic](message)))
    return values


def by_rosbags(folder: Path) -> Values:
    values: Values = {topic: [] for topic in READ}
    with AnyReader([folder]) as reader:
        for connection, _, raw in reader.messages():
            message = reader.deserialize(raw, connection.msgtype)
            values[connection.topic].append(float(READ[connection.topic](message)))
    return values


def gaps(folder: Path) -> int:
    """How many publication numbers are missing in a bag."""
    last: dict[str, int] = {}
    missing = 0
    (path,) = folder.glob("*.mcap")
    with path.open("rb") as file:
        for _, channel, message in make_reader(file).iter_messages():
            missing += message.sequence - last.get(channel.topic, message.sequence - 1) - 1
            last[channel.topic] = message.sequence
    return missing


def told(status: dict[str, Any], name: str) -> tuple[int, int]:
    """How many messages of a topic a recorder has, and how many it knows to be lost."""
    topic = f"{SPACE}/{name}"
    return status["counts"].get(topic, 0), status["dropped"].get(topic, 0)


@pytest.mark.slow
def test_four_topics_at_1_khz_and_two_cameras_are_recorded_whole(stage):
    rig, recorder = stage.both(*FAST, *CAMERAS, "safety/state", "safety/estop")
    rig.one(name="safety/state")
    rig.one(name="safety/estop")
    rates = {**dict.fromkeys(FAST, 1000.0), **dict.fromkeys(CAMERAS, 30.0)}
    before = dict.fromkeys(rates, 0)
    # While the machine gives the recorder no time, some messages, of cameras first, are lost on
    # the way. They must be counted; and where none was lost, all must be there.
    for turn in range(10):
        episode = f"e{turn}"
        assert rig.start(episode)["state"] == "recording"
        sent = rig.flood(hz=rates, seconds=2.0)
        status = rig.until("recording", episode_id=episode)
        while missing := [name for name in sent if sum(told(status, name)) < sent[name]]:
            for name in missing:  # that the last one was lost shows at the next
                rig.one(name=name)
                sent[name] += 1
            status = rig.until("recording", episode_id=episode)
        rig.event(event="note", episode_id=episode, text="all is well")
        rig.until("recording", topic=f"{SPACE}/episode/event", least=2)
        status = rig.end(episode)
        folder = stage.root / "traces" / episode
        lost = {name: told(status, name)[1] for name in sent}
        assert {name: sum(told(status, name)) for name in sent} == sent
        assert gaps(folder) == sum(lost.values())
        if not any(lost.values()):
            break
        for name in sent:
            before[name] += sent[name]
    else:
        pytest.fail(f"messages were lost in each of ten floods, in the last {lost}")
    assert status["counts"][f"{SPACE}/episode/event"] == 3
    assert ended(recorder, signal.SIGTERM) == 0

    found = by_mcap(folder)
    assert found == by_rosbags(folder)
    for name in rates:
        numbers = range(before[name], before[name] + sent[name])
        assert found[f"{SPACE}/{name}"] == [VALUE[name](n) for n in numbers]
    # The states from before the episode are at its start.
    assert (found[f"{SPACE}/safety/state"], found[f"{SPACE}/safety/estop"]) == ([0.0], [0.0])
    again = restore(folder)
    assert again.was_complete
    assert (again.start["uri"], again.start["seed"]) == (f"traces/{episode}", 7)
    assert again.end["outcome"] == "success"


@pytest.mark.slow
def test_a_killed_recorder_loses_no_complete_chunk(stage):
    rig, recorder = stage.both("joint_states", "policy/joint_command")
    rig.start("e1")
    sent = rig.flood(hz={"joint_states": 500.0, "policy/joint_command": 500.0}, seconds=1.5)
    rig.until("recording", topic=f"{SPACE}/joint_states", least=sent["joint_states"])
    recorder.kill()
    recorder.wait(DEADLINE_S)
    folder = stage.root / "traces" / "e1"
    assert not (folder / "metadata.yaml").exists()
    found = restore(folder)
    assert not found.was_complete
    assert found.start["episode_id"] == "e1"
    # A message and its head are more than 300 bytes, and the last chunk less than 8192 + 300.
    assert sum(sent.values()) - 30 <= found.messages <= sum(sent.values()) + 1
    values = by_rosbags(folder)[f"{SPACE}/joint_states"]
    assert values == [n + 0.375 for n in range(len(values))]

    # The next recorder does not go on with what that one began; the next episode is recorded.
    stage.recorder()
    refused = rig.until("error")
    assert "exists already" in refused["reason"]
    assert rig.start("e2")["state"] == "recording"
    assert rig.end("e2")["state"] == "closed"


@pytest.mark.slow
def test_a_full_disk_is_said_and_survived(stage):
    rig, recorder = stage.both("joint_states", "camera/image/compressed")
    rig.start("e1")
    soft, hard = resource.prlimit(recorder.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(recorder.pid, resource.RLIMIT_FSIZE, (30_000, hard))
    rig.flood(hz={"joint_states": 500.0}, seconds=3.0)
    status = rig.until("error", episode_id="e1")
    assert "e1_0.mcap: cannot be written: File too large" in status["reason"]
    assert "robo-eval recover" in status["reason"]
    assert "\n" not in status["reason"]
    resource.prlimit(recorder.pid, resource.RLIMIT_FSIZE, (soft, hard))
    rig.event(event="end", episode_id="e1")
    assert rig.start("e2")["state"] == "recording"
    rig.one(name="joint_states")
    assert rig.end("e2")["state"] == "closed"
    assert ended(recorder, signal.SIGTERM) == 0
    kept = restore(stage.root / "traces" / "e1")
    assert not kept.was_complete
    assert kept.messages > 50
    assert restore(stage.root / "traces" / "e2").was_complete


@pytest.mark.parametrize(
    ("number", "times"),
    [
        (signal.SIGINT, 1),
        pytest.param(signal.SIGINT, 5, marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, 5, marks=pytest.mark.slow),
    ],
)
def test_a_stopped_recorder_closes_its_bag(stage, number, times):
    rig, recorder = stage.both("joint_states")
    for turn in range(times):
        if turn:
            recorder = stage.recorder()
            assert rig.match(timeout_s=DEADLINE_S), stage.errors.read_text()
            rig.until("idle")
        episode = f"e{turn}"
        rig.start(episode)
        sent = rig.flood(hz={"joint_states": 200.0}, seconds=0.2)
        # On a busy machine the last message may still be on its way.
        rig.until("recording", topic=f"{SPACE}/joint_states", least=sent["joint_states"])
        assert ended(recorder, number) == 0, stage.errors.read_text()
        status = rig.until("closed", episode_id=episode)
        assert status["counts"][f"{SPACE}/joint_states"] == sent["joint_states"]
        found = restore(stage.root / "traces" / episode)
        assert found.was_complete
        assert found.end == {"event": "end", "reason": "recorder stopped"}
        read = by_rosbags(stage.root / "traces" / episode)
        assert len(read[f"{SPACE}/joint_states"]) == sent["joint_states"]


@pytest.mark.slow
def test_what_cannot_be_recorded_is_refused_and_what_can_is_recorded(stage):
    rig, recorder = stage.both("joint_states", best_effort=True)
    (stage.root / "link").symlink_to("/tmp")
    for number, uri in enumerate(["../e1", "/tmp/e1", ".", "traces/../..", "link/e1", ""]):
        status = rig.start(f"bad{number}", uri or ".")
        assert status["state"] == "error"
        assert "leads out of" in status["reason"]
    for text in ("{", "[]", '{"event": 1}', '{"event": "start"}', '{"event": "end"}', "ü"):
        rig.text(data=text)
    assert rig.start("e1")["state"] == "recording"
    assert "exists already" in rig.start("e2", "traces/e1")["reason"]
    rig.event(event="end", episode_id="unknown")
    assert rig.start("e3")["state"] == "recording"
    # A publisher that offers less than was asked for is heard all the same.
    rig.match(timeout_s=DEADLINE_S)
    rig.flood(hz={"joint_states": 100.0}, seconds=1.5)
    assert rig.end("e3")["counts"][f"{SPACE}/joint_states"] > 0
    assert ended(recorder, signal.SIGTERM) == 0
    assert restore(stage.root / "traces" / "e1").end["reason"] == "episode e2 was started"
    assert {path.name for path in (stage.root / "traces").iterdir()} == {"e1", "e3"}


# No type of `tf2_msgs` can be had from pip.
LATCHED = {
    "/tf_static": "geometry_msgs/msg/TransformStamped",
    "/robot_description": "",
    "site/map": "std_msgs/msg/String",
    "driver/mode": "",
}


@pytest.mark.slow
def test_what_was_latched_before_is_in_every_bag_and_in_a_piece_of_it(stage):
    named = "".join(f"    {name}: {kind}\n" for name, kind in LATCHED.items() if kind)
    mode = "imu: {}, mode: {topic: driver/mode, follows: [running]}"
    stage.robot.write_text(ROBOT.replace("imu: {}", mode) + named)
    rig = stage.rig()
    rig.offer(names=list(LATCHED), latched=True)
    for name in LATCHED:
        rig.one(name=name)
    rig.one(name="/tf_static")  # of another part; both hold
    stage.recorder()
    rig.offer(names=["joint_states"])
    assert rig.match(timeout_s=DEADLINE_S), stage.errors.read_text()
    full = [name if name.startswith("/") else f"{SPACE}/{name}" for name in LATCHED]
    for episode in ("e1", "e2", "e3"):
        assert rig.start(episode)["state"] == "recording"
        for topic in full:
            rig.until("recording", episode_id=episode, topic=topic, least=1)
        rig.flood(hz={"joint_states": 100.0}, seconds=0.3)
        assert rig.end(episode)["counts"]["/tf_static"] == 2
    for episode in ("e2", "e3"):
        bag = stage.root / "traces" / episode
        (path,) = bag.glob("*.mcap")
        times = [time for _, time in logged(path)]
        piece = stage.root / f"{episode}.mcap"
        cut_out(bag, (min(times) + max(times)) // 2, max(times), piece)
        for file in (path, piece):
            first_ns = logged(file)[0][1]
            topics = [topic for topic, time in logged(file) if time == first_ns]
            assert {topic: topics.count(topic) for topic in full} == {
                topic: 2 if topic == "/tf_static" else 1 for topic in full
            }


def logged(path: Path) -> list[tuple[str, int]]:
    with path.open("rb") as file:
        return [(c.topic, m.log_time) for _, c, m in make_reader(file).iter_messages()]


@pytest.mark.slow
def test_a_recorder_that_comes_late_takes_the_episode_that_runs(stage):
    rig = stage.rig()
    for episode in ("old1", "old2"):
        rig.event(event="start", episode_id=episode, uri=f"traces/{episode}")
        rig.event(event="end", episode_id=episode)
    rig.event(event="start", episode_id="now", uri="traces/now")
    stage.recorder()
    assert rig.until("recording", "error")["episode_id"] == "now"
    assert rig.end("now")["state"] == "closed"
    assert [path.name for path in (stage.root / "traces").iterdir()] == ["now"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("CompressedImage", "CompressedImages"), "record.topics.camera/image/compressed: message"),
        (("side/image/compressed: sensor", "episode/event: sensor"), "is recorded as std_msgs"),
    ],
)
def test_a_type_that_is_not_there_is_one_error_at_the_start(stage, change, message):
    stage.robot.write_text(ROBOT.replace(*change))
    assert stage.recorder().wait(DEADLINE_S) == 2
    said = stage.errors.read_text()
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert message in said
