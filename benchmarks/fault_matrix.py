"""What becomes of robot, rows and processes when something fails: a matrix of faults and targets.

Each cell is one fault on one process, and is tried twice. On the arm's drives, which live apart
from everything else and record their own motion: how many ticks until they stand. In a trial on the
gantry's twin: the row it logs, what `resume` does, and which processes are left.
`--out docs/faults.md` puts the table into the page, where it is explained, after each cell.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import itertools
import json
import math
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from robo_eval.agents.cartpole3d.balancer import Balancer

ROOT = Path(__file__).resolve().parent.parent
ROBOTS = ROOT / "ros2_ws/src/robo_eval_bringup/config"
FAULTS = ("kill", "stop", "flood", "garbage", "clock", "disk", "second", "stray")
BEGINS, ENDS = "<!-- measured -->", "<!-- end -->"
TARGETS = ("guard", "recorder", "conductor", "driver", "policy")
NO_DISK = "writes no file"
NO_STRAY = "the stray speaks in the policy's place: see there"
SENSELESS = {
    ("disk", "guard"): NO_DISK,
    ("disk", "driver"): NO_DISK,
    ("disk", "policy"): NO_DISK,
    ("clock", "policy"): "the conductor stamps its requests: see there",
    ("second", "policy"): "is the stray policy: see there",
    **{("stray", target): NO_STRAY for target in TARGETS[:-1]},
}
SENT: dict[tuple[str, str], dict[str, Any]] = {
    ("flood", "guard"): {"topic": "heartbeat/policy", "what": "empty", "hz": 1000},
    ("flood", "recorder"): {"topic": "episode/event", "what": "note", "hz": 1000},
    ("flood", "conductor"): {"topic": "safety/incidents", "what": "empty", "hz": 1000},
    ("flood", "driver"): {"topic": "commands", "what": "same", "hz": 1000},
    ("garbage", "guard"): {"topic": "joint_states", "what": "nan", "hz": 50},
    ("garbage", "recorder"): {"topic": "episode/event", "what": "text", "hz": 50},
    ("garbage", "conductor"): {"topic": "recorder/status", "what": "text", "hz": 50},
    ("garbage", "driver"): {"topic": "commands", "what": "nan", "hz": 50},
    ("clock", "driver"): {"topic": "joint_states", "what": "ahead", "hz": 50},
    ("stray", "policy"): {"topic": "policy/joint_command", "what": "stray", "hz": 50},
}
"""What an outsider publishes: where, what, and how often a second."""
MAY_GO_ON = {
    ("flood", "guard"), ("flood", "conductor"), ("flood", "policy"), ("garbage", "conductor"),
    ("second", "conductor"), ("disk", "conductor"),
}  # fmt: skip
"""Cells in which nobody has lost the robot: it may go on as its policy asks."""
MODULES = {"guard": ".guard_node ", "recorder": ".recorder ", "driver": ".twin_node "}
TICK_S = 0.02
STANDS = 0.02
"""Slower than this, m/s or rad/s, is standing: `guard.stop.standstill_velocity` of both robots."""
STOOD_S = 0.3
SPEED_RAD_S = 0.2
FAULT_S = 3.0
STARTS_S = 6.0
"""How long a process needs to start, at most."""
WAITS_TICKS = {
    **dict.fromkeys([("kill", "driver"), ("kill", "policy"), ("stop", "conductor")], 20.0),
    **dict.fromkeys([("stop", "driver"), ("stop", "policy")], 20.0),
    **dict.fromkeys([("flood", "driver"), ("garbage", "driver")], 25.0),
    **dict.fromkeys([("second", "guard"), ("second", "conductor"), ("second", "driver")], 500.0),
}
"""How long the guard waits for who is silent, 0.4 s, and how rarely it looks for others, 0.5 s;
a second process has to start first."""
OWN_FAULTS = {("kill", "policy"), ("garbage", "policy")}
"""Cells whose fault is the policy's own: its row says so, and counts against it."""
TRIES = 3
"""How often a half of a cell is tried on a machine that is too busy to begin."""
MOST_TICKS = 2.0
TIMEOUT_TICKS = 25.0
"""`controller.timeout_s` of both robots: 0.5 s."""
PATIENCE_S = 120.0
MARK = "ROBO_EVAL_FAULT_MATRIX"
EPISODES = 2
PLAN = f"""
name: faults
tasks: [{{env: RoboEval/CartPole3D-v0, kwargs: {{balls: 0}}, levels: [0]}}]
policies: [{{name: steered, factory: "fault_matrix:Steered"}}]
episodes: {EPISODES}
sides: [sim, twin]
"""
CLOCK = """
import os, pathlib, time
command = pathlib.Path("/proc/self/cmdline").read_text().replace("\\0", " ")
if os.environ.get("FAULT_CLOCK_OF", "-") in command:
    file = pathlib.Path(os.environ["FAULT_FOLDER"]) / "clock"
    wall, wall_ns = time.time, time.time_ns
    time.time = lambda: wall() + 3600.0 * file.exists()
    time.time_ns = lambda: wall_ns() + 3600 * 10**9 * file.exists()
"""
"""`sitecustomize.py`: the wall clock of one process jumps once a file is there."""


class Steered(Balancer):
    """Balances, until a file says that its answers are to be none."""

    def act(self, observation: Any) -> Any:
        action = super().act(observation)
        return math.nan if (Path(os.environ["FAULT_FOLDER"]) / "garbage").exists() else action


@dataclass(kw_only=True)
class Cell:
    """What one fault on one target led to."""

    fault: str
    target: str
    senseless: str = ""
    stands_after: float | None = None
    """Ticks from the fault to standstill; None if it was not seen."""
    stop_ticks: float | None = None
    """Ticks from the guard's trip to its command to stand; None if it did not stop."""
    causes: str = ""
    row: str = ""
    run: str = ""
    resume: str = ""
    problems: list[str] = field(default_factory=list)


# Roles of processes of their own ----------------------------------------------------------------


def play_conductor(robot: Path, folder: Path) -> int:
    """Start guard and recorder, and have the first joint go on at one speed, as a policy would."""
    from robo_eval_robot.children import children
    from robo_eval_robot.config import read_robot
    from robo_eval_robot.link import RobotLink

    ends = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: ends.set())
    with children(folder / "logs") as own:
        own.start("guard", "robo_eval_robot.guard_node", [str(robot)])
        own.start("recorder", "robo_eval_robot.recorder", [str(robot), "--root", str(folder)])
        link = RobotLink(read_robot(robot))
        link.connect()
        link.event(event="start", episode_id="motion", uri="traces/motion")
        link.enable()
        latest = link.latest
        assert latest is not None
        places = [latest.joints[name].position for name in link.config.commanded]
        speed, due = 0.0, time.monotonic()
        while not ends.is_set():
            order = next(
                (name for name in ("kill", "stop", "garbage", "flood") if (folder / name).exists()),
                "",
            )
            speed = min(speed + 2.0 * TICK_S, SPEED_RAD_S)
            places[0] = math.nan if order == "garbage" else places[0] + speed * TICK_S
            for _ in range(20 if order == "flood" else order not in ("kill", "stop")):
                link.request(places)
            due = max(due + TICK_S, time.monotonic() - TICK_S)
            link.wait(lambda: False, due - time.monotonic())
    return 0


class Outsider:
    """Writes down states, commands and trips with the time, and publishes what it is told to."""

    is_over = False

    def __init__(self, context: Any, args: Sequence[str]) -> None:
        from diagnostic_msgs.msg import DiagnosticArray
        from rclpy.node import Node
        from sensor_msgs.msg import JointState
        from std_msgs.msg import Float64MultiArray, Header, String

        from robo_eval_robot import topics
        from robo_eval_robot.config import read_robot

        config, self._folder = read_robot(Path(args[0])), Path(args[1])
        self._config, self._topics = config, topics
        self.node = Node("outsider", namespace=config.namespace, context=context)
        self._kinds = {
            "heartbeat/policy": Header, "joint_states": JointState, "commands": Float64MultiArray,
            "policy/joint_command": JointState, "safety/incidents": DiagnosticArray,
        }  # fmt: skip
        self._text = String
        self._last: dict[str, Any] = {}
        self._out = (self._folder / "heard.jsonl").open("w", buffering=1)
        self._order: dict[str, Any] | None = None
        self._has_spoken = False
        for name, take in (
            ("joint_states", lambda m: {"velocity": list(m.velocity)[: len(config.commanded)]}),
            ("commands", lambda m: {"command": list(m.data)}),
            ("safety/incidents", lambda m: {
                "trips": [s.name for s in m.status], "at": topics.ns_of(m.header.stamp) * 1e-9}),
        ):  # fmt: skip
            self.node.create_subscription(
                self._kinds[name],
                self._named(name),
                self._hearing(name, take),
                topics.reliable(100),
            )
        self.node.create_timer(0.01, self._look)

    def finish(self) -> None:
        self._out.close()

    def _named(self, topic: str) -> str:
        """A topic as it is called here; that of a policy may have a session's name in it."""
        if topic == "commands":
            return self._config.topic(self._config.controller.topic)
        plain: str = self._config.topic(topic)
        known = [name for name, _ in self.node.get_topic_names_and_types()]
        return max((name for name in known if name.startswith(plain)), key=len, default=plain)

    def _hearing(self, name: str, take: Callable[[Any], Any]) -> Callable[[Any], None]:
        def heard(message: Any) -> None:
            self._last[name] = message
            self._out.write(json.dumps({"t": time.time(), **take(message)}) + "\n")

        return heard

    def _look(self) -> None:
        file = self._folder / "order.json"
        if self._order is not None or not file.exists():
            return
        order = self._order = json.loads(file.read_text())
        topic, topics = order["topic"], self._topics
        publisher = self.node.create_publisher(
            self._kinds.get(topic, self._text), self._named(topic),
            topics.latched(10) if topic not in self._kinds else topics.reliable(10),
        )  # fmt: skip
        until = time.monotonic() + FAULT_S

        def say() -> None:
            if not publisher.get_subscription_count() and time.monotonic() < until - 2.0:
                return  # nobody has found it yet
            if not self._has_spoken:
                self._has_spoken = self._out.write('{"sent": true}\n') > 0
            publisher.publish(self._made(topic, order["what"]))
            if time.monotonic() >= until:
                timer.cancel()
                self.node.destroy_publisher(publisher)

        timer = self.node.create_timer(1.0 / order["hz"], say)

    def _made(self, topic: str, what: str) -> Any:
        message = self._last.get(topic) or self._kinds.get(topic, self._text)()
        if what == "nan":
            (message.data if topic == "commands" else message.position)[0] = math.nan
        if what in ("ahead", "stray"):
            ahead_ns = 3600 * 10**9 * (what == "ahead")
            message.header.stamp = self._topics.time_of(time.time_ns() + ahead_ns)
        if what == "stray":
            names = self._config.commanded
            message.name = list(names)
            # What was commanded last, and a little more: within all limits.
            values = [value + 0.001 for value in self._last["commands"].data]
            setattr(message, self._config.controller.interface, values)
        if what in ("note", "text"):
            message.data = '{"event": "note"}' if what == "note" else "no JSON {"
        return message


# One cell ---------------------------------------------------------------------------------------


@dataclass
class Bench:
    """Processes of one try, all marked, in a graph of their own."""

    folder: Path
    robot: Path
    environment: dict[str, str]
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        with (self.folder / "output.txt").open("ab") as errors:
            process = subprocess.Popen(
                [sys.executable, *map(str, arguments)], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=errors, text=True, cwd=self.folder,
                env=self.environment, start_new_session=True,
            )  # fmt: skip
        self.started.append(process)
        return process

    def running(self) -> dict[int, str]:
        """Command lines of marked processes, by process id."""
        mark, found = f"{MARK}={self.folder}".encode(), {}
        for place in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError, IndexError):
                is_ours = mark in (place / "environ").read_bytes().split(b"\0")
                if is_ours and (place / "stat").read_text().rpartition(")")[2].split()[0] != "Z":
                    line = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    found[int(place.name)] = line
        return found

    def wait(self, is_so: Callable[[], Any], what: str, seconds: float = PATIENCE_S) -> None:
        until = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > until:
                said = (self.folder / "output.txt").read_text(errors="replace")[-300:]
                raise TimeoutError(f"not within {seconds:g} s: {what}; {said}")
            time.sleep(0.005)

    def heard(self) -> list[dict[str, Any]]:
        """What the outsider wrote; a line that is not whole yet is left."""
        file = self.folder / "heard.jsonl"
        lines = file.read_text().split("\n")[:-1] if file.exists() else []
        return [json.loads(line) for line in lines]

    def strike(
        self, fault: str, target: str, conductor: int, look: Callable[[], int]
    ) -> tuple[float, int]:
        """Do what the cell is about, for as long as a fault lasts.

        Returns:
            When it began, and what was seen by looking then.
        """
        lines = self.running()
        pids = {
            name: pid
            for pid, line in lines.items()
            for name, part in MODULES.items()
            if part in f"{line} "
        }
        own = [pid for pid in lines if _parent(pid) == conductor and pid not in pids.values()]
        policies = [pid for pid in own if "resource_tracker" not in lines[pid]]
        pids |= {"conductor": conductor, **({"policy": policies[-1]} if policies else {})}
        pid = pids.get(target)
        if (fault, target) in SENT:
            (self.folder / "order.part").write_text(json.dumps(SENT[fault, target]))
            (self.folder / "order.part").rename(self.folder / "order.json")
            self.wait(lambda: any("sent" in row for row in self.heard()), "the outsider speaks")
        began = time.time(), look()
        if target == "policy" or fault == "clock":
            (self.folder / fault).touch()
        if pid is not None and fault in ("kill", "stop"):
            os.kill(pid, signal.SIGKILL if fault == "kill" else signal.SIGSTOP)
        elif pid is not None and fault == "disk":
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        if fault == "second":
            self.second(lines[pids[target]].split()[1:])
            time.sleep(STARTS_S)
            self.started[-1].terminate()
        time.sleep(FAULT_S)
        if fault == "stop" and pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
            time.sleep(1.0)
        (self.folder / "garbage").unlink(missing_ok=True)
        return began

    def second(self, command: list[str]) -> None:
        """Start a process once more, with an output of its own."""
        other = str(self.folder / "other")
        for option in {"-o", "--root"} & set(command):
            command[command.index(option) + 1] = other
        self.start(*[part.replace("motion.jsonl", "other.jsonl") for part in command])

    def end(self) -> list[str]:
        """End all that was started here; what outlives its conductor is an orphan."""
        for process in reversed(self.started):
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        with contextlib.suppress(TimeoutError):
            self.wait(lambda: not self.running(), "all end", 15.0)
        left = self.running()
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while self.started:
            self.started.pop().communicate()
        return [" ".join(line.split()[1:4]) for line in left.values()]


def _parent(pid: int) -> int:
    with contextlib.suppress(OSError, IndexError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def stands_after(samples: Sequence[tuple[float, float]], since_s: float) -> float | None:
    """Ticks from a time until a robot stands for a while; None if it does not, or if none is told.

    Args:
        samples: Time and largest speed, in order.
        since_s: The time.
    """
    began = None
    for at_s, speed in samples:
        if at_s >= since_s:
            began = (at_s if began is None else began) if speed < STANDS else None
            if began is not None and at_s - began >= STOOD_S:
                break
    return None if began is None else (began - since_s) / TICK_S


def stop_ticks(heard: Sequence[dict[str, Any]]) -> tuple[float | None, str]:
    """Ticks from the guard's first trip to the last command that changes; and all causes."""
    trips = [row for row in heard if row.get("trips")]
    causes = ",".join(dict.fromkeys(cause for row in trips for cause in row["trips"]))
    after = [row for row in heard if "command" in row and trips and row["t"] >= trips[0]["at"]]
    changed = [
        now["t"] - trips[0]["at"]
        for before, now in itertools.pairwise(after)
        if any(abs(a - b) > 1e-4 for a, b in zip(before["command"], now["command"], strict=True))
    ]
    return (max(changed, default=0.0) / TICK_S if after else None), causes


@contextlib.contextmanager
def bench(robot: str, clock_of: str = "-") -> Iterator[Bench]:
    """A folder with a robot file, and an environment for processes of one try."""
    with tempfile.TemporaryDirectory(prefix="faults-") as place:
        folder, file = Path(place), Path(place) / "robot.yaml"
        text = (ROBOTS / robot).read_text()
        file.write_text(text.replace("\nname: ", f"\nname: {folder.name}-", 1))
        (folder / "sitecustomize.py").write_text(CLOCK)
        paths = [str(folder), str(ROOT / "benchmarks"), os.environ.get("PYTHONPATH", "")]
        environment = {
            **os.environ, MARK: str(folder), "FAULT_FOLDER": str(folder),
            "FAULT_CLOCK_OF": clock_of,
            "PYTHONPATH": ":".join(paths).rstrip(":"), "ROS_LOG_DIR": str(folder / "ros"),
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
            "ROS_DOMAIN_ID": str(1 + os.getpid() % 100),
        }  # fmt: skip
        made = Bench(folder, file, environment)
        try:
            yield made
        finally:
            made.end()


def move_arm(cell: Cell) -> None:
    """Strike while an arm moves, and read what its drives wrote."""
    clock_of = {"conductor": f"{__file__} conductor"}.get(
        cell.target, MODULES.get(cell.target, "-")
    )
    with bench("arm_twin.yaml", clock_of) as own:
        record = own.folder / "motion.jsonl"
        own.start(
            "-m", "robo_eval_twin.twin_node", own.robot, "--ros-args", "-p", f"record:={record}"
        )
        own.start(__file__, "outsider", own.robot, own.folder)
        own.wait(own.heard, "the outsider hears the drives")
        conductor = own.start(__file__, "conductor", own.robot, own.folder)

        def rows() -> list[dict[str, Any]]:
            return [json.loads(line) for line in record.read_text().split("\n")[:-1]]

        own.wait(lambda: rows()[-1]["velocity"][0] > 0.8 * SPEED_RAD_S, "the arm moves")
        known = len(own.heard())
        _, size = own.strike(cell.fault, cell.target, conductor.pid, lambda: record.stat().st_size)
        told, heard = rows(), own.heard()[known:]
        struck = record.read_bytes()[:size].count(b"\n")
        samples = [(row["t_s"], max(map(abs, row["velocity"]))) for row in told]
        cell.stands_after = stands_after(samples, told[struck - 1]["t_s"])
        ticks, cell.causes = stop_ticks(heard)
        # Where nobody else speaks to the drives.
        if SENT.get((cell.fault, cell.target), {}).get("topic") != "commands":
            cell.stop_ticks = ticks
        faults = [
            each for row in told[struck:] for each in row["events"] if "protective stop" in each
        ]
        cell.problems += [f"the drives made a {each}" for each in faults[:1]]
        cell.problems += [f"orphan on the arm: {each}" for each in own.end()]
        is_dead = (cell.fault, cell.target) in {("kill", "driver"), ("second", "driver")}
        if cell.stands_after is None and cell.target != "recorder" and not is_dead:
            if (cell.fault, cell.target) not in MAY_GO_ON:
                cell.problems.append("the arm moves on")
        elif (cell.stands_after or 0.0) > TIMEOUT_TICKS + WAITS_TICKS.get(
            (cell.fault, cell.target), 0.0
        ):
            cell.problems.append("the arm stands later than the driver's own timeout")
        if cell.stop_ticks is not None and cell.stop_ticks > MOST_TICKS:
            cell.problems.append(f"a stop took {cell.stop_ticks:.1f} ticks")


def play_trial(cell: Cell) -> None:
    """Strike in the second episode of a trial, then resume it."""
    from robo_eval.log.verify import verify_trial

    clock_of = {"conductor": "robo_eval run"}.get(cell.target, MODULES.get(cell.target, "-"))
    with bench("gantry_twin.yaml", clock_of) as own:
        (own.folder / "plan.yaml").write_text(PLAN)
        trial, own_output = own.folder / "trial", ["--json", "--no-report"]
        own.start(__file__, "outsider", own.robot, own.folder)
        run = own.start(
            "-m", "robo_eval", "run", "plan.yaml", "-o", trial, "--sides", "twin",
            "--robot", own.robot, *own_output,
        )  # fmt: skip
        traces = trial / "traces"
        own.wait(
            lambda: run.poll() is not None or len(list(traces.glob("*"))) > 1, "an episode is over"
        )
        time.sleep(0.3)
        before = logged(trial)
        struck, known = own.strike(cell.fault, cell.target, run.pid, lambda: len(logged(trial)))
        own.wait(lambda: run.poll() is not None, "the run ends")
        cell.run = f"exit {run.returncode}"
        speeds = [
            (row["t"], max(map(abs, row["velocity"]))) for row in own.heard() if "velocity" in row
        ]
        if cell.target == "recorder" and cell.fault in ("kill", "stop", "disk"):
            cell.stands_after = stands_after(speeds, struck)
        left = len(own.running())
        own.wait(lambda: len(own.running()) <= 1 or not left, "all that the run started ends", 20.0)
        rows = logged(trial)[len(before) :][:1]
        if known > len(before):
            raise TimeoutError("the episode was over before the fault")
        cell.row = "; ".join(map(_said, rows)) or "none"
        if cell.stands_after is None or cell.stands_after > TIMEOUT_TICKS:
            # Whatever it did meanwhile, nobody may count it.
            unseen = cell.target == "recorder" and cell.fault in ("kill", "stop", "disk")
            if unseen and any(row["quality"] is not None for row in rows):
                cell.problems.append("an episode counts that was not recorded")
        resumed = own.start("-m", "robo_eval", "resume", trial, *own_output)
        own.wait(lambda: resumed.poll() is not None, "resume ends")
        after = logged(trial)
        scored = sum(row["quality"] is not None for row in after if row["side"] == "twin")
        cell.resume = f"exit {resumed.returncode}, {scored} of {EPISODES} scored"
        if after[: len(before)] != before:
            cell.problems.append("a finished episode was lost")
        is_own = (cell.fault, cell.target) in OWN_FAULTS
        excused = is_own and any(row["fault_by"] == "policy" for row in after)
        if scored + excused < EPISODES:
            cell.problems.append(f"resume leaves {EPISODES - scored} without a score")
        if not verify_trial(trial).ok:
            cell.problems.append("verify finds the trial damaged")
        cell.problems += [f"orphan of the trial: {each}" for each in own.end()]


def logged(trial: Path) -> list[dict[str, Any]]:
    """Rows of a trial, in order; none before there is a log."""
    with contextlib.suppress(sqlite3.OperationalError):
        database = sqlite3.connect(f"file:{trial / 'episodes.db'}?mode=ro", uri=True)
        with contextlib.closing(database):
            database.row_factory = sqlite3.Row
            found = database.execute("SELECT * FROM episodes ORDER BY sequence")
            return [dict(row) for row in found]
    return []


def _said(row: dict[str, Any]) -> str:
    detail = (row["end_detail"] or "").replace("|", "/").splitlines()[:1]
    return " ".join([row["end_reason"], *(f"({line:.60})" for line in detail)])


def play(fault: str, target: str, halves: Sequence[str]) -> Cell:
    """One cell, in both halves; where nothing could be tried, again."""
    cell = Cell(fault=fault, target=target, senseless=SENSELESS.get((fault, target), ""))
    for half, work in {"arm": move_arm, "trial": play_trial}.items():
        problem = ""
        for _ in range(TRIES * (half in halves and not cell.senseless)):
            try:
                work(cell)
            except (TimeoutError, ProcessLookupError, LookupError) as err:
                problem = f"{half}: not tried: {str(err)[:200]}".replace("\n", " ")
            else:
                break
        else:
            cell.problems += [problem] * bool(problem)
    return cell


# The page ---------------------------------------------------------------------------------------


def shown(cell: Cell) -> str:
    """A row of the table."""
    if cell.senseless:
        return f"| {cell.fault} | {cell.target} | makes no sense: {cell.senseless} | | | | |"
    ticks = [
        "—" if each is None else f"{each:.1f}" for each in (cell.stands_after, cell.stop_ticks)
    ]
    problems = "; ".join(cell.problems).replace("|", "/") or "as wanted"
    causes = f" {cell.causes}" if cell.causes else ""
    return (
        f"| {cell.fault} | {cell.target} | {ticks[0]} | {ticks[1]}{causes} | {cell.row} |"
        f" {cell.run}; {cell.resume} | {problems} |"
    )


def table(cells: Sequence[Cell], load: str) -> str:
    """What was measured, in Markdown."""
    import numpy as np

    from robo_eval import __version__

    stops = [cell.stop_ticks for cell in cells if cell.stop_ticks is not None]
    tried = [cell for cell in cells if not cell.senseless]
    failed = sum(bool(cell.problems) for cell in tried)
    said = (
        f"99 % of {len(stops)} stops took at most {np.quantile(stops, 0.99):.1f}"
        if stops
        else "none"
    )
    return (
        f"robo-eval {__version__}, {time.strftime('%Y-%m-%d', time.gmtime())}, {load}. Of"
        f" {len(tried)} tries {failed} did not end as wanted. Ticks from a trip to the command to"
        f" stand: {said}.\n\n"
        "| fault | on | stands after, ticks | stop, ticks; causes | row | run; `resume` | found |\n"
        "|---|---|---|---|---|---|---|\n"
    ) + "\n".join(map(shown, cells))


def into_page(file: Path, text: str) -> str:
    """A page with what was measured in it.

    Raises:
        ValueError: If it has no place for that.
    """
    head, _, rest = file.read_text().partition(BEGINS)
    _, found, tail = rest.partition(ENDS)
    if not found:
        raise ValueError(f"has no lines {BEGINS} and {ENDS}")
    return f"{head}{BEGINS}\n\n{text}\n\n{ENDS}{tail}"


def chosen(
    parser: argparse.ArgumentParser, option: str, text: str, known: Sequence[str]
) -> list[str]:
    """Names of a list with commas; one that is not known ends the command."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known:
            parser.error(f"{option}: {name!r} is none of {', '.join(known)}")
    return [name for name in known if name in names]


def arguments() -> argparse.Namespace:
    """What was asked for; what makes no sense ends the command with one error."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("role", nargs="?", default="measure", choices=["measure", *ROLES], help="leave it out")
    add("files", nargs="*", help=argparse.SUPPRESS)
    add("--faults", default=",".join(FAULTS), help="such as kill,stop; all by default")
    add("--targets", default=",".join(TARGETS), help="such as guard; all by default")
    add("--halves", default="arm,trial", help="arm (motion), trial (rows), or both")
    add("--repeat", type=int, default=1, help="how often each cell is played, 1 to 100")
    add("--json", action="store_true", help="print JSON in place of the table")
    add("--out", type=Path, help="put the table into this page (.md)")
    given = parser.parse_args()
    if len(given.files) != 2 * (given.role in ROLES):
        parser.error("role: is for processes of this command's own; give options only")
    given.faults = chosen(parser, "--faults", given.faults, FAULTS)
    given.targets = chosen(parser, "--targets", given.targets, TARGETS)
    given.halves = chosen(parser, "--halves", given.halves, ("arm", "trial"))
    if not 1 <= given.repeat <= 100:
        parser.error(f"--repeat: 1 to 100 is needed, given {given.repeat}")
    try:
        _ = given.out and into_page(given.out, "")
    except (OSError, ValueError) as err:
        parser.error(f"--out: {given.out} cannot take the table: {err}; name docs/faults.md")
    return given


def main() -> int:
    """Play the chosen cells, and print or write what they led to."""
    given = arguments()
    if importlib.util.find_spec("rclpy") is None:
        print("not measured: needs rclpy, pip install 'robo-eval-stack[ros]'")
        return 0
    if given.role in ROLES:
        return ROLES[given.role](*map(Path, given.files))
    load, cells, text = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores before", [], ""
    for fault, target in itertools.product(given.faults, given.targets):
        for _ in range(1 if (fault, target) in SENSELESS else given.repeat):
            cells.append(play(fault, target, given.halves))
            print(shown(cells[-1]), file=sys.stderr, flush=True)
            text = table(cells, f"{load}, {os.getloadavg()[0]:.1f} after")
            if given.out is not None:
                given.out.write_text(into_page(given.out, text))
    print(json.dumps([asdict(cell) for cell in cells]) if given.json else text)
    return 0


def play_outsider(robot: Path, folder: Path) -> int:
    from robo_eval_robot.process import run

    return run(Outsider, [str(robot), str(folder)])


ROLES = {"conductor": play_conductor, "outsider": play_outsider}


if __name__ == "__main__":
    sys.exit(main())
