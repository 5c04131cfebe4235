"""Real ROS 2 nodes as processes of their own, on a domain nobody else uses."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

# `ROBO_EVAL_REQUIRE_ALL` turns this skip into a failure, see tests/conftest.py.
pytest.importorskip("rclpy", reason="ROS 2 is not installed: pip install .[ros]")

DEADLINE_S = 90.0
_NUMBERS = count()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tries a test of this folder again, three times at most, when it fails.

    These tests are about times between processes, and a machine that serves others too may leave a
    process without a processor for half a second: then the guard stops the robot, as it has to,
    and the test has seen another scene than its own. What is wrong fails four times; what was
    tried again is listed at the end of the run.
    """
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.flaky(reruns=3, reruns_delay=2))


@dataclass(frozen=True)
class Finished:
    """What a command left behind."""

    code: int
    out: str
    err: str


class Command:
    """A running `robo-eval`, and the processes it started."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def children(self) -> dict[str, int]:
        """Process ids of guard, recorder and twin, by name."""
        listing = subprocess.run(
            ["pgrep", "-a", "-P", str(self.process.pid)], capture_output=True, text=True
        ).stdout
        modules = {"guard_node": "guard", "recorder": "recorder", "twin_node": "twin"}
        found = {}
        for line in listing.splitlines():
            number, _, command = line.partition(" ")
            for module, name in modules.items():
                if f".{module} " in f"{command} ":
                    found[name] = int(number)
        return found

    def wait_children(self) -> dict[str, int]:
        _wait_until(lambda: len(self.children()) == 3, "guard, recorder and twin run")
        return self.children()

    def finish(self) -> Finished:
        out, err = self.process.communicate(timeout=DEADLINE_S)
        return Finished(self.process.returncode, out, err)


def _wait_until(is_so: Callable[[], bool], what: str, seconds: float = 30.0) -> None:
    """Look until something is so."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.02)


@pytest.fixture
def wait_until() -> Callable[..., None]:
    """Looks until something is so, or fails."""
    return _wait_until


def _is_alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


@pytest.fixture
def is_alive() -> Callable[[int], bool]:
    """Tells whether a process runs."""
    return _is_alive


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """One such test at a time, however many workers: each starts several busy processes."""
    with (Path(tempfile.gettempdir()) / f"robo-eval-ros-tests-{os.getuid()}.lock").open(
        "w"
    ) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture
def ros_environment(tmp_path: Path) -> dict[str, str]:
    """Copied whole, because the wheels of rclpy leave marks in it that belong together."""
    return {
        **os.environ,
        "ROS_DOMAIN_ID": str(1 + (os.getpid() * 13 + next(_NUMBERS)) % 100),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        "ROS_LOG_DIR": str(tmp_path / "ros-logs"),
        "NO_COLOR": "1",
        "TERM": "dumb",
        "PYTHONPATH": str(tmp_path),
    }


@pytest.fixture
def start(tmp_path: Path, ros_environment: dict[str, str]) -> Iterator[Callable[..., Command]]:
    """Start `robo-eval` and go on; what still runs at the end of the test is ended."""
    started: list[subprocess.Popen[str]] = []

    def call(*args: object, **extra: str) -> Command:
        process = subprocess.Popen(
            [sys.executable, "-m", "robo_eval", *map(str, args)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env={**ros_environment, **extra},
        )
        started.append(process)
        return Command(process)

    yield call
    for process in started:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            if process.poll() is None:
                process.send_signal(number)
                try:
                    process.wait(8.0)
                except subprocess.TimeoutExpired:
                    continue
        process.communicate()


@pytest.fixture
def cli(start: Callable[..., Command]) -> Callable[..., Finished]:
    """Run `robo-eval` to its end."""

    def call(*args: object, **extra: str) -> Finished:
        return start(*args, **extra).finish()

    return call
