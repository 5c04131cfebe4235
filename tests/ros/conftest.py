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
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import psutil
import pytest

import robo_eval_twin

# `ROBO_EVAL_REQUIRE_ALL` turns this skip into a failure, see tests/conftest.py.
pytest.importorskip("rclpy", reason="ROS 2 is not installed: pip install .[ros]")

DEADLINE_S = 240.0
_LOCKS = Path(tempfile.gettempdir()) / f"robo-eval-ros-tests-{os.getuid()}"
_AGES = ("command_age_s: 0.4", "state_age_s: 0.4", "policy_heartbeat_s: 0.8",
         "driver_heartbeat_s: 0.8")  # fmt: skip
"""How long the guard of the built-in twin waits, in its robot file."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Waiting for its turn is no part of the time a test may take."""
    for item in items:
        is_ours = Path(__file__).parent in item.path.parents
        if is_ours and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(900, func_only=True))


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
        modules = {"guard_node": "guard", "recorder": "recorder", "twin_node": "twin"}
        found = {}
        with suppress(psutil.NoSuchProcess):
            for child in psutil.Process(self.process.pid).children():
                with suppress(psutil.NoSuchProcess):
                    command = " ".join(child.cmdline())
                    for module, name in modules.items():
                        if f".{module} " in f"{command} ":
                            found[name] = child.pid
        return found

    def wait_children(self) -> dict[str, int]:
        _wait_until(lambda: len(self.children()) == 3, "guard, recorder and twin run")
        return self.children()

    def finish(self) -> Finished:
        out, err = self.process.communicate(timeout=DEADLINE_S)
        return Finished(self.process.returncode, out, err)


def _wait_until(is_so: Callable[[], bool], what: str, seconds: float = 120.0) -> None:
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
    with _lock("turn"):
        yield


def _lock(name: str, how: int = fcntl.LOCK_EX) -> TextIO:
    """Held until it is closed."""
    _LOCKS.mkdir(exist_ok=True)
    file = (_LOCKS / name).open("w")
    try:
        fcntl.flock(file, how)
    except BlockingIOError:
        file.close()
        raise
    return file


def _free_domain() -> tuple[int, TextIO]:
    """A domain that nobody else on this computer tests on, and what keeps it."""
    for step in range(100):
        number = 1 + (os.getpid() + step) % 100
        with suppress(BlockingIOError):
            return number, _lock(f"domain-{number}", fcntl.LOCK_EX | fcntl.LOCK_NB)
    raise AssertionError("all domains are taken")


@contextmanager
def _own_graph(folder: Path) -> Iterator[dict[str, str]]:
    """The environment of processes that meet nobody else.

    It is copied whole, because the wheels of rclpy leave marks in it that belong together.
    """
    number, kept = _free_domain()
    with kept:
        yield {
            **os.environ,
            "ROS_DOMAIN_ID": str(number),
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
            "ROS_LOG_DIR": str(folder / "ros-logs"),
            "NO_COLOR": "1",
            "TERM": "dumb",
            "PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}".rstrip(":"),
        }


@pytest.fixture(scope="session")
def own_graph() -> Callable[[Path], AbstractContextManager[dict[str, str]]]:
    """Gives an environment for processes on a domain of their own, with a folder for their logs."""
    return _own_graph


@pytest.fixture
def ros_environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """That of this test."""
    with _own_graph(tmp_path) as environment:
        yield environment


@pytest.fixture
def quick_twin(tmp_path: Path) -> str:
    """The built-in twin's robot file under a name nobody else uses."""
    text = Path(robo_eval_twin.__file__).with_name("gantry_twin.yaml").read_text()
    return text.replace("name: gantry-twin", f"name: twin-{os.getpid()}-{tmp_path.name[-30:]}")


@pytest.fixture
def waiting_twin(quick_twin: str) -> Callable[[float], str]:
    """Gives the same with a guard that waits some seconds for who does not speak."""

    def call(seconds: float) -> str:
        # A guard that is late itself by ten cycles stops.
        changes = {"cycle_hz: 50": "cycle_hz: 20"}
        changes |= {age: f"{age.partition(':')[0]}: {seconds}" for age in _AGES}
        return _changed(quick_twin, changes)

    return call


@pytest.fixture
def twin(waiting_twin: Callable[[float], str]) -> str:
    """The same with a patient guard, for tests about other things than limits of time."""
    return _changed(waiting_twin(4.0), {"within_s: 2.0": "within_s: 10.0"})


def _changed(text: str, changes: dict[str, str]) -> str:
    """A robot file in which something is otherwise."""
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return text


def end(process: subprocess.Popen[Any]) -> None:
    """End a process, more and more firmly."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            process.send_signal(number)
            with suppress(subprocess.TimeoutExpired):
                process.wait(30.0)
    with suppress(ValueError):  # its streams may have been closed
        process.communicate()


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
        end(process)


@pytest.fixture
def begin(
    tmp_path: Path, ros_environment: dict[str, str]
) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a Python process that ends with the test."""
    started: list[subprocess.Popen[str]] = []

    def call(*command: object, **extra: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            [sys.executable, *map(str, command)], stdin=pipe, stdout=pipe, stderr=pipe, text=True,
            cwd=tmp_path, env={**ros_environment, **extra},
        )  # fmt: skip
        started.append(process)
        return process

    yield call
    for process in reversed(started):
        end(process)


@pytest.fixture
def cli(start: Callable[..., Command]) -> Callable[..., Finished]:
    """Run `robo-eval` to its end."""

    def call(*args: object, **extra: str) -> Finished:
        return start(*args, **extra).finish()

    return call
