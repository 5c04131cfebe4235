"""The processes a run starts and has to end: guard, recorder, twin, and a view if asked for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from robo_eval_robot.link import RobotLostError
from robo_eval_robot.process import PARENT

_PATIENCE_S: Final = ((signal.SIGINT, 3.0), (signal.SIGTERM, 2.0), (signal.SIGKILL, 2.0))
"""What is asked first, and how long it may take: a node says its last word at the first two."""


@dataclass(slots=True)
class Child:
    """One process.

    Attributes:
        name: What it is called in messages.
        command: Its command line.
        process: The running process.
        log: Where its output goes.
        is_vital: Whether the run cannot go on without it.
    """

    name: str
    command: list[str]
    process: subprocess.Popen[bytes]
    log: Path
    is_vital: bool = True


class Children:
    """Starts processes in their own groups, so that Ctrl-C reaches them through us, in order.

    They stay in our session: when we die, however we die, the kernel wakes those that are stopped
    (SIGHUP and SIGCONT for the stopped members of a group that is orphaned), and they end as well.

    Args:
        logs: Folder for what they print.
        session: Arguments that all of them get, see `topics.of_session`.
    """

    def __init__(self, logs: Path, session: Sequence[str] = ()) -> None:
        self._logs = logs
        self._session = session
        self._children: dict[str, Child] = {}

    def start(
        self, name: str, module: str, arguments: Sequence[str], *, is_vital: bool = True
    ) -> None:
        """Start `python -m module`; what becomes of one that is not vital is nobody's concern."""
        self._logs.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", module, *arguments, *self._session]
        log = self._logs / f"{name}.log"
        self._children[name] = Child(name, command, self._spawn(command, log), log, is_vital)

    def _spawn(self, command: list[str], log: Path) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "ROS_LOG_DIR": str(self._logs / "ros"),
            PARENT: str(os.getpid()),
        }
        with log.open("ab") as output:
            return subprocess.Popen(  # noqa: S603 - our own modules
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                process_group=0,
            )

    def vital(self) -> list[str]:
        """Names of those the run cannot go on without."""
        return [child.name for child in self._children.values() if child.is_vital]

    def dead(self) -> list[str]:
        """Names of the vital processes that have ended though nobody asked them to."""
        return [n for n in self.vital() if self._children[n].process.poll() is not None]

    def check(self) -> None:
        """Raise if a vital one has ended.

        Raises:
            RobotLostError: The message names it, its exit code and the end of its output.
        """
        for name in self.dead():
            child = self._children[name]
            raise RobotLostError(
                f"the {name} ended with code {child.process.returncode}: {self._last_line(name)}"
            )

    def kill(self, name: str) -> None:
        """End one that hangs or was stopped, and would hear nothing gentler."""
        self._children[name].process.kill()
        self._children[name].process.wait()

    def restart(self, name: str) -> None:
        """Start one that has ended once more."""
        child = self._children[name]
        child.process.wait()
        child.process = self._spawn(child.command, child.log)

    def _last_line(self, name: str) -> str:
        text = self._children[name].log.read_text(encoding="utf-8", errors="replace").strip()
        return text.splitlines()[-1][:300] if text else "it printed nothing"

    def stop(self) -> dict[str, int]:
        """End all, the newest first and onlookers last; returns their exit codes by name.

        One that hangs would otherwise keep the robot's own processes waiting for their end.
        """
        codes = {}
        newest_first = list(reversed(self._children.values()))
        for child in sorted(newest_first, key=lambda child: not child.is_vital):
            codes[child.name] = _end(child.process)
        self._children.clear()
        return codes


def _end(process: subprocess.Popen[bytes]) -> int:
    for number, seconds in _PATIENCE_S:
        if process.poll() is not None:
            break
        process.send_signal(number)
        deadline = time.monotonic() + seconds
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
    return process.wait()


@contextmanager
def children(logs: Path, session: Sequence[str] = ()) -> Iterator[Children]:
    """Processes that end with the block, however it ends."""
    found = Children(logs, session)
    try:
        yield found
    finally:
        found.stop()
