"""The guard as a process between a policy and a controller, over real DDS."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

if not os.environ.get("ROBO_EVAL_REQUIRE_ALL"):
    pytest.importorskip("rclpy")

RIG = Path(__file__).with_name("rig_guard.py")
DEADLINE_S = 60.0
TOPIC = "/bench/controller/commands"
ROBOT = """
name: bench
body: twin
namespace: /bench
control_rate_hz: 50
joints:
  slide:
    type: prismatic
    limits: {position_m: [-1, 1], velocity_m_s: 2, acceleration_m_s2: 1000, effort_n: 10}
  turn:
    type: revolute
    limits: {position_rad: [-2, 3], velocity_rad_s: 3, acceleration_rad_s2: 1000, effort_nm: 5}
controller:
  topic: controller/commands
  interface: effort
  joints: [slide, turn]
  timeout_s: 0.25
  timeout_provided_by: a parameter of the driver
state: {rate_hz: 100}
guard:
  cycle_hz: 20
  command_age_s: 2.5
  state_age_s: 2.5
  driver_heartbeat_s: 5.0
  policy_heartbeat_s: 2.5
  stop: {within_s: 1.0}
tasks: {RoboEval/CartPole3D-v0: {adapter: cartpole3d}}
"""


class EndedError(AssertionError):
    """A process that should run has ended; says what it said last."""


class Child:
    """A process whose lines are read as they come."""

    def __init__(self, arguments: list[str], env: dict[str, str], errors: Path) -> None:
        self.errors = errors
        with errors.open("w") as file:
            self.process = subprocess.Popen(
                [sys.executable, *arguments],
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                bufsize=1,
            )
        self.lines: list[dict[str, Any]] = []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._news:
                self.lines.append(json.loads(line) if line.startswith("{") else {"text": line})
                self._news.notify_all()

    def send(self, **order: Any) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(order) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            self.process.wait(DEADLINE_S)
            self.check()

    def check(self) -> None:
        """Raise if it has ended."""
        if self.process.poll() is not None:
            said = self.errors.read_text()[-3000:]
            raise EndedError(f"{self.errors.stem} ended with {self.process.returncode}: {said}")

    def wait(
        self, what: Callable[[dict[str, Any]], Any], since: int = 0, deadline_s: float = DEADLINE_S
    ) -> dict[str, Any]:
        """The first line from a position on that is as wanted."""
        until = time.monotonic() + deadline_s
        with self._news:
            while True:
                for line in self.lines[since:]:
                    if what(line):
                        return line
                since = len(self.lines)
                left = until - time.monotonic()
                if left > 0.0:
                    if not self._news.wait(min(left, 1.0)):
                        self.check()
                else:
                    silent = {"beat", "command", "limits"}
                    tail = [line for line in self.lines if not silent & line.keys()][-8:]
                    raise AssertionError(f"not in time; last lines {tail}")

    def end(self, number: int = signal.SIGINT, limit_s: float = 30.0) -> int:
        """Ask it to end, and then make it."""
        for each in (number, signal.SIGTERM, signal.SIGKILL):
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGCONT)
                self.process.send_signal(each)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(limit_s)
        self._reader.join(limit_s)
        return self.process.wait(limit_s)


class Scene:
    """A guard and its rig."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.env = environment
        self.rig = self.play("rig")
        self.guard: Child | None = None

    def play(self, name: str, **values: Any) -> Child:
        arguments = [str(RIG), "/bench", "effort", TOPIC, json.dumps(values)]
        return Child(arguments, self.env, self.folder / f"{name}.txt")

    def start(self, text: str = ROBOT) -> Child:
        path = self.folder / "robot.yaml"
        path.write_text(text)
        self.guard = Child(
            ["-m", "robo_eval_robot.guard_node", str(path)], self.env, self.folder / "guard.txt"
        )
        return self.guard

    def revive(self) -> None:
        """Play anew where the rig, which is not what is tested, has ended; the summary says why."""
        try:
            self.rig.check()
        except EndedError as err:
            warnings.warn(str(err), stacklevel=2)
            self.rig = self.play("rig")
            self.rig.wait(lambda line: line.get("up"))

    def mark(self) -> int:
        return len(self.rig.lines)

    def until_state(self, state: str, since: int = 0, **values: str) -> dict[str, Any]:
        return self.rig.wait(
            lambda line: line.get("state") == state and values.items() <= line["values"].items(),
            since,
        )

    def call(self, service: str, **data: Any) -> dict[str, Any]:
        since = self.mark()
        self.rig.send(call=service, **data)
        return self.rig.wait(lambda line: line.get("answer") == service, since)

    def running(self, **values: Any) -> None:
        """Enabled, with a policy that asks 100 times a second."""
        self.rig.send(set={"estop": False, "driver": True, **values})
        self.until_state("READY", self.mark())
        self.rig.send(set={"policy_hz": 100.0, "request": [1.5, -0.25], "beats": True})
        answer = self.call("enable", data=True)
        assert answer["success"], answer
        self.rig.wait(lambda line: line.get("command") == [1.5, -0.25], self.mark())

    def recover(self) -> None:
        until = time.monotonic() + DEADLINE_S
        while True:
            self.revive()
            try:
                self.rig.send(
                    set={"estop": False, "driver": True, "position": [0.0, 0.0], "policy_hz": 0.0}
                )
                answer = self.call("reset")
            except EndedError:
                continue
            if answer["success"]:
                return
            assert time.monotonic() < until, answer
            time.sleep(0.05)

    def stopped(self, code: str, since: int) -> dict[str, Any]:
        """The stop command came, then an incident and a state of this code."""
        self.rig.wait(lambda line: line.get("command") == [0.0, 0.0], since)
        incident = self.rig.wait(lambda line: line.get("incident") == code, since)
        state = self.rig.wait(lambda line: line.get("values", {}).get("cause") == code, since)
        assert state["state"] in {"PROTECTIVE_STOP", "ESTOP"}
        assert state["level"] == 2
        return incident

    def close(self) -> None:
        if self.guard is not None:
            self.guard.end()
        self.rig.end()


@pytest.fixture(scope="module")
def shared(
    tmp_path_factory: pytest.TempPathFactory,
    own_graph: Callable[[Path], contextlib.AbstractContextManager[dict[str, str]]],
) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("guard")
    with own_graph(folder) as environment, contextlib.closing(Scene(folder, environment)) as scene:
        scene.start()
        yield scene


@pytest.fixture
def scene(shared: Scene) -> Iterator[Scene]:
    """A guard that is running, shared by the tests that leave it alive."""
    if shared.guard is None or shared.guard.process.poll() is not None:
        shared.start()
    shared.revive()
    shared.running()
    yield shared
    if shared.guard is not None and shared.guard.process.poll() is None:
        shared.recover()


def only_stop_commands(scene: Scene, since: int) -> bool:
    commands = [line["command"] for line in scene.rig.lines[since:] if "command" in line]
    first = commands.index([0.0, 0.0])
    return all(command == [0.0, 0.0] for command in commands[first:])


def test_requests_pass_unchanged_and_the_guard_beats(scene: Scene) -> None:
    since = scene.mark()
    scene.rig.send(set={"request": [0.1, 1.0 / 3.0]})
    scene.rig.wait(lambda line: line.get("command") == [0.1, 1.0 / 3.0], since)
    scene.rig.wait(lambda line: line.get("beat") == "guard", since)
    state = scene.until_state("RUNNING", since)
    assert state["level"] == 0
    assert state["limits"]["slide velocity"] == 0
    assert int(state["values"]["passed"]) > 0


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"beats": False}, "policy_heartbeat"),
        pytest.param({"policy_hz": 0.0}, "command_age", marks=pytest.mark.slow),
        pytest.param({"driver": False}, "state_age", marks=pytest.mark.slow),
        pytest.param({"position": [1.5, 0.0]}, "position", marks=pytest.mark.slow),
        ({"request": [11.0, 0.0]}, "command_effort"),
    ],
)
def test_what_stops_the_robot(scene: Scene, change: dict[str, Any], code: str) -> None:
    since = scene.mark()
    scene.rig.send(set=change)
    scene.stopped(code, since)
    assert only_stop_commands(scene, since)


def test_nan_stops_and_the_incident_names_the_episode(scene: Scene) -> None:
    scene.rig.send(event="{broken")
    scene.rig.send(event=json.dumps({"event": "start", "episode_id": "e-7"}))
    time.sleep(0.2)  # events and requests overtake each other
    since = scene.mark()
    # Not once: with a queue of one, the next request may replace it before it is seen.
    scene.rig.send(set={"request": [float("nan"), 0.0]})
    incident = scene.stopped("command_not_finite", since)
    assert incident["values"]["value"] == "nan"
    assert incident["values"]["joint"] == "slide"
    assert incident["values"]["episode_id"] == "e-7"
    assert incident["values"]["suggested_severity"] == "near_miss"
    assert only_stop_commands(scene, since)


def test_the_emergency_stop_and_the_way_back(scene: Scene) -> None:
    since = scene.mark()
    scene.rig.send(set={"estop": True})
    scene.stopped("estop", since)
    refused = scene.call("reset")
    assert not refused["success"]
    assert "pressed" in refused["message"]
    since = scene.mark()
    scene.rig.send(set={"estop": False})
    scene.until_state("ESTOP", since)
    assert not scene.call("enable", data=True)["success"]
    assert scene.call("reset")["success"]
    since = scene.mark()
    scene.until_state("READY", since)
    scene.rig.wait(lambda line: line.get("beat"), scene.mark())
    assert not any(
        line.get("command", [0.0, 0.0]) != [0.0, 0.0] for line in scene.rig.lines[since:]
    )
    assert scene.call("enable", data=True)["success"]


def test_an_emergency_stop_that_is_gone_stops(scene: Scene) -> None:
    since = scene.mark()
    scene.rig.send(estop_there=False)
    scene.stopped("estop_lost", since)
    assert not scene.call("reset")["success"]
    scene.rig.send(estop_there=True)


def test_limits_are_parameters_with_units_that_nobody_can_set(scene: Scene) -> None:
    since = scene.mark()
    name = "joints.slide.limits.velocity_m_s"
    scene.rig.send(parameter=name, to=99.0)
    told = scene.rig.wait(lambda line: line.get("parameter") == name, since)
    assert told["value"] == 2.0
    assert told["description"].endswith("; in m/s")
    assert told["refused"]


def test_services_stop_and_withhold(scene: Scene) -> None:
    assert scene.call("withhold")["success"]
    since = scene.mark()
    scene.until_state("WITHHELD", since)
    scene.rig.wait(lambda line: line.get("beat"), scene.mark())
    assert not any("command" in line for line in scene.rig.lines[since:])
    assert scene.call("enable", data=False)["success"]
    since = scene.mark()
    scene.until_state("READY", since)
    assert scene.call("enable", data=True)["success"]
    since = scene.mark()
    assert scene.call("stop")["success"]
    scene.stopped("operator_stop", since)


def test_a_pressed_emergency_stop_is_not_released_by_another(scene: Scene) -> None:
    """Of one node and one topic, so that only the publishers tell them apart."""
    since = scene.mark()
    scene.rig.send(gate=True)
    scene.stopped("estop", since)
    scene.rig.send(set={"estop": False})
    time.sleep(0.2)
    answer = scene.call("reset")
    assert not answer["success"]
    assert "pressed: /bench/rig" in answer["message"]
    scene.rig.send(gate=False)
    scene.recover()


def test_a_flood_of_requests_delays_no_stop(scene: Scene) -> None:
    since = scene.mark()
    scene.rig.send(set={"policy_hz": 2000.0, "echo": False})
    passed = int(scene.until_state("RUNNING", since)["values"]["passed"])
    scene.rig.wait(
        lambda line: (
            line.get("state") == "RUNNING" and int(line["values"]["passed"]) > passed + 200
        ),
        since,
    )
    since = scene.mark()
    scene.rig.send(set={"position": [1.5, 0.0]})
    scene.stopped("position", since)
    scene.rig.send(set={"echo": True, "policy_hz": 0.0})
    assert only_stop_commands(scene, since)


@pytest.mark.slow
def test_garbage_on_every_topic_stops_and_is_told_briefly(scene: Scene) -> None:
    since = scene.mark()
    scene.rig.send(garbage=True)
    incident = scene.rig.wait(lambda line: "incident" in line, since)
    assert incident["incident"].startswith(("command_", "state_"))
    scene.rig.wait(lambda line: line.get("state") == "PROTECTIVE_STOP", since)
    assert only_stop_commands(scene, since)
    scene.rig.wait(lambda line: line.get("beat") == "guard", scene.mark())
    lines = scene.rig.lines[since:]
    assert all(len(line["message"]) < 1000 for line in lines if "incident" in line)


@pytest.mark.slow
def test_joint_states_of_best_effort_are_warned_of_once(
    tmp_path: Path, ros_environment: dict[str, str], quick_twin: str
) -> None:
    (tmp_path / "robot.yaml").write_text(quick_twin)
    rig = Path(__file__).with_name("rig_robot.py")
    options = json.dumps({"best_effort": True, "controller": False})
    with contextlib.ExitStack() as ending:
        robot = Child([str(rig), options], ros_environment, tmp_path / "rig.txt")
        ending.callback(robot.end)
        arguments = ["-m", "robo_eval_robot.guard_node", str(tmp_path / "robot.yaml")]
        guard = Child(arguments, ros_environment, tmp_path / "guard.txt")
        ending.callback(guard.end)
        until = time.monotonic() + DEADLINE_S
        while "best effort" not in guard.errors.read_text():
            guard.check()
            assert time.monotonic() < until, guard.errors.read_text()
            time.sleep(0.05)
        time.sleep(1.2)  # it looks around twice a second
    said = [line for line in guard.errors.read_text().splitlines() if "best effort" in line]
    assert len(said) == 1
    for part in ("/twin0/joint_states: ", "set its reliability to reliable"):
        assert part in said[0]


@pytest.mark.slow
@pytest.mark.parametrize("asks", [True, False])
def test_a_command_that_blocks_starves_no_stop(
    tmp_path: Path, ros_environment: dict[str, str], asks: bool
) -> None:
    program = """
import sys, time
from robo_eval_robot import guard_node

send = guard_node.GuardNode._send

def blocks(self, command):
    if any(command):
        time.sleep(1000.0)
    send(self, command)

guard_node.GuardNode._send = blocks
sys.exit(guard_node.main())
"""
    (tmp_path / "robot.yaml").write_text(ROBOT)
    with contextlib.closing(Scene(tmp_path, ros_environment)) as scene:
        arguments = ["-c", program, str(tmp_path / "robot.yaml")]
        scene.guard = Child(arguments, ros_environment, tmp_path / "guard.txt")
        scene.rig.send(set={"estop": False, "driver": True})
        scene.until_state("READY")
        since = scene.mark()
        assert scene.call("enable", data=True)["success"]
        scene.rig.send(set={"policy_hz": 100.0, "request": [1.5, -0.25]})
        scene.rig.wait(lambda line: int(line.get("values", {}).get("passed", 0)) > 3, since)
        if asks:
            assert scene.call("stop")["success"]
        # Without being asked it stops once the command has been on its way for ten cycles.
        scene.stopped("operator_stop" if asks else "guard_overrun", since)
        assert only_stop_commands(scene, since)
        scene.rig.wait(lambda line: line.get("beat") == "guard", scene.mark())


@pytest.mark.parametrize(
    "number", [signal.SIGSTOP, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)]
)
def test_a_policy_that_hangs_or_dies_stops_the_robot(scene: Scene, number: int) -> None:
    """In a process of its own, which also hears all that the guard says."""
    scene.rig.send(set={"policy_hz": 0.0, "beats": False})
    assert scene.call("enable", data=False)["success"]
    policy = scene.play("policy", driver=False)
    try:
        policy.wait(lambda line: line.get("state") == "READY")
        policy.send(set={"policy_hz": 100.0, "request": [2.5, 0.0]})
        assert scene.call("enable", data=True)["success"]
        scene.rig.wait(lambda line: line.get("command") == [2.5, 0.0])
        since = scene.mark()
        scene.until_state("RUNNING", since)
        since = scene.mark()
        policy.process.send_signal(number)
        scene.rig.wait(lambda line: line.get("state") == "PROTECTIVE_STOP", since)
        cause = scene.until_state("PROTECTIVE_STOP", since)["values"]["cause"]
        assert cause in {"command_age", "policy_heartbeat"}
        assert only_stop_commands(scene, since)
        # A listener that does not listen holds nothing up.
        count = scene.rig.wait(lambda line: "command" in line, scene.mark())["count"]
        scene.rig.wait(lambda line: line.get("count", 0) > count + 10)
        assert scene.call("stop")["success"]
    finally:
        policy.end(signal.SIGKILL)
        scene.rig.send(set={"beats": True})


@pytest.mark.slow
def test_a_stray_node_is_not_taken_for_the_policy(scene: Scene) -> None:
    stray = scene.play("stray", driver=False, beats=False)
    try:
        stray.wait(lambda line: line.get("state") == "RUNNING")
        scene.rig.send(set={"policy_hz": 0.0, "beats": False})  # nobody else asks
        since = scene.mark()
        stray.send(set={"policy_hz": 100.0, "request": [2.5, 0.0], "beats": True})
        incident = scene.stopped("other_author", since)
        assert incident["values"]["value"] == "2"
        assert not any(line.get("command") == [2.5, 0.0] for line in scene.rig.lines[since:])
        assert only_stop_commands(scene, since)
    finally:
        stray.end()
        scene.rig.send(set={"beats": True})


@pytest.mark.slow
def test_a_frozen_guard_wakes_up_stopped(scene: Scene) -> None:
    assert scene.guard is not None
    scene.guard.process.send_signal(signal.SIGSTOP)
    time.sleep(3.0)  # longer than a guard may be late
    since = scene.mark()
    scene.guard.process.send_signal(signal.SIGCONT)
    scene.rig.wait(lambda line: line.get("state") == "PROTECTIVE_STOP", since)
    assert only_stop_commands(scene, since)


@pytest.mark.parametrize(
    ("number", "times"),
    [
        (signal.SIGINT, 1),
        pytest.param(signal.SIGINT, 5, marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, 5, marks=pytest.mark.slow),
    ],
)
def test_the_last_word_is_a_stop_command(scene: Scene, number: int, times: int) -> None:
    for turn in range(times):
        if turn:
            scene.start()
            scene.running()
        assert scene.guard is not None
        since = scene.mark()
        assert scene.guard.end(number) == 0, scene.guard.errors.read_text()
        scene.rig.wait(lambda line: line.get("command") == [0.0, 0.0], since)
        scene.rig.wait(lambda line: line.get("incident") == "guard_shutdown", since)
        assert only_stop_commands(scene, since)


def asks(scene: Scene) -> None:
    """A turn of the rig."""
    time.sleep(0.1)
    since = scene.mark()
    scene.rig.send(request=[0.5, 0.0])
    scene.rig.wait(lambda line: "asked" in line, since)


def test_a_killed_guard_leaves_silence(scene: Scene) -> None:
    assert scene.guard is not None
    scene.guard.end(signal.SIGKILL)
    asks(scene)  # what was on its way has arrived
    since = scene.mark()
    time.sleep(0.5)
    asks(scene)
    assert not any("command" in line for line in scene.rig.lines[since:])
    assert scene.rig.process.poll() is None


def test_a_second_publisher_stops(tmp_path: Path, ros_environment: dict[str, str]) -> None:
    with contextlib.closing(Scene(tmp_path, ros_environment)) as scene:
        scene.start()
        scene.running()
        since = scene.mark()
        scene.rig.send(second=True)
        scene.stopped("second_publisher", since)
        answer = scene.call("reset")
        assert not answer["success"]
        assert TOPIC in answer["message"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ROBOT.replace("limits: {position_m", "limitz: {position_m"), "joints.slide.limitz"),
        (
            ROBOT.replace("turn:\n    type: revolute\n    limits", "turn:\n    type: x\n    no"),
            "turn",
        ),
        (None, "no such robot file"),
    ],
)
def test_without_limits_it_does_not_start(
    tmp_path: Path, ros_environment: dict[str, str], text: str | None, message: str
) -> None:
    path = tmp_path / "robot.yaml"
    if text is not None:
        path.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "robo_eval_robot.guard_node", str(path)],
        env=ros_environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert message in done.stderr


@pytest.mark.parametrize("shown", [False, True])
def test_what_nobody_thought_of_is_one_line(ros_environment: dict[str, str], shown: bool) -> None:
    program = "from robo_eval_robot.process import run; raise SystemExit(run(lambda *_: 1 / 0))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**ros_environment, **({"ROBO_EVAL_TRACEBACK": "1"} if shown else {})},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    lines = done.stderr.strip().splitlines()
    assert lines[-1] == (
        "error: ZeroDivisionError: division by zero (ROBO_EVAL_TRACEBACK=1 shows where)"
    )
    assert ("Traceback" in done.stderr) == (len(lines) > 1) == shown
