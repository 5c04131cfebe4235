"""How long a process in a process of its own had no processor."""

from __future__ import annotations

import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from robo_eval.core import confined
from robo_eval.core.confined import Confined, can_fork


def answers(hears: Connection, speaks: Connection) -> None:
    while True:
        speaks.send(hears.recv())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says it")
def test_time_without_a_processor_is_that_of_both_processes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    process = Confined(answers, forks=can_fork())
    try:
        process.tell("ready?")
        assert process.pipe.recv() == "ready?"
        assert process.queued_s >= 0.0
        pid: Any = process._process.pid
        for name, queued_ns in (("self", 3_000_000), (str(pid), 20_000_000)):
            folder = tmp_path / "proc" / name
            folder.mkdir(parents=True)
            (folder / "schedstat").write_text(f"700 {queued_ns} 9\n")
        monkeypatch.setattr(confined, "Path", lambda text: tmp_path / str(text).lstrip("/"))
        assert process.queued_s == pytest.approx(0.023)
        (tmp_path / "proc" / "self" / "schedstat").unlink()
        assert process.queued_s == 0.0, "a kernel that does not say"
    finally:
        monkeypatch.undo()
        process.end()
