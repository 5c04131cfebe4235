"""No process of a run outlives its conductor, not even one that is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

CONDUCTOR = """
import sys, time
from pathlib import Path
from robo_eval_robot.children import Children

own = Children(Path("logs"))
own.start("guard", "stays", [])
time.sleep(600)
"""
STAYS = """
import os, signal, time
from pathlib import Path
from robo_eval_robot.process import PARENT, STOP_SIGNALS, die_with

def end(number, frame):
    Path("last_word").write_text("stop")
    os._exit(0)

for number in STOP_SIGNALS:
    signal.signal(number, end)
die_with(int(os.environ[PARENT]))
Path("pid.part").write_text(str(os.getpid()))
Path("pid.part").rename("pid")
while True:
    time.sleep(0.05)
"""


def until(is_so) -> None:
    deadline = time.monotonic() + 60.0
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def state_of(pid: int) -> str:
    """Of a process, as /proc has it; Z also where nothing of it is left."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return "Z"


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_guard_says_its_last_word_when_its_conductor_is_killed(
    tmp_path: Path, is_stopped: bool
) -> None:
    (tmp_path / "stays.py").write_text(STAYS)
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    conductor = subprocess.Popen(
        [sys.executable, "-c", CONDUCTOR],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        start_new_session=True,
    )
    try:
        until((tmp_path / "pid").exists)
        guard = int((tmp_path / "pid").read_text())
        if is_stopped:
            os.kill(guard, signal.SIGSTOP)
            until(lambda: state_of(guard) == "T")
    finally:
        conductor.kill()
        conductor.wait()
    try:
        until(lambda: state_of(guard) == "Z")
        assert (tmp_path / "last_word").read_text() == "stop"
    finally:
        with suppress(OSError):
            os.kill(guard, signal.SIGKILL)
