"""What verbs print on a real terminal of 80 and of 120 columns."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import termios
import threading
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

POLICIES = ("ours", "pi0-fast-droid-finetuned-on-lab", "octo-base")
COLUMNS = """
columns: {episode_id: trial, side: where, success: ok, pair_id: pair, policy: who, task: kind,
          exposure_s: seconds, duration_s: seconds}
"""
VERBS = (
    ("metrics", "trial"),
    ("metrics", "--list"),
    ("compare", "trial"),
    ("assess", "trial", "--policy", "ours", "--all", "--no-write"),
    ("levels",),
    ("agents",),
    ("incidents", "list", "--log", "log.db"),
    ("incidents", "show", "lab/2", "--log", "log.db"),
    ("incidents", "todo", "--log", "log.db"),
    ("incidents", "rates", "--log", "log.db"),
    ("incidents", "trends", "--log", "log.db"),
    ("incidents", "exposure", "--log", "log.db"),
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, commands: Any) -> Path:
    """An imported trial of three policies on a robot and in simulation, and a log of incidents."""
    folder = tmp_path_factory.mktemp("lab")
    lines = ["trial,where,ok,pair,who,kind,seconds"]
    for number, who in enumerate(POLICIES):
        for i in range(8):
            pair = f"{who}-{i}"
            for side, every in (("real", 3 + number), ("sim", 5)):
                ok = int(i % every > 0)
                lines.append(f"{side}-{pair},{side},{ok},{pair},{who},pick,{30 + i}")
    (folder / "lab.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "map.yaml").write_text(COLUMNS, encoding="utf-8")
    told = "The gripper hit the edge of the table while it went for the red cube, and let it fall."
    for words in (
        ("import", "csv", "lab.csv", "--map", "map.yaml", "--out", "trial"),
        ("incidents", "add", told, "--log", "log.db", "--station", "lab", "--side", "real",
         "--robot", "arm-with-a-long-name", "--severity", "minor", "--category", "collision",
         "--when", "-2h", "--by", "R. Example"),
        ("incidents", "exposure", "--log", "log.db", "--station", "lab", "--robot",
         "arm-with-a-long-name", "--mode", "autonomous", "--since", "-9h", "--until", "-1h",
         "--by", "R. Example"),
    ):  # fmt: skip
        done = commands(*words, folder=folder)
        assert done.code == 0, done.err
    return folder


def on_screen(commands: Any, words: tuple[str, ...], folder: Path, width: int) -> str:
    """What a terminal of so many columns is sent."""
    screen, program = os.openpty()
    fcntl.ioctl(program, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    parts: list[bytes] = []

    def read() -> None:
        while not parts or not parts[-1].endswith(b"\0"):
            parts.append(os.read(screen, 65_536))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    streams = {"stdin": os.devnull, "stdout": os.ttyname(program), "stderr": os.devnull}
    code = commands.play(
        {"arguments": list(words), "folder": str(folder), "limit_s": 60, **streams,
         "environment": {**environment, "NO_COLOR": "1", "TERM": "dumb"}}
    )  # fmt: skip
    os.write(program, b"\0")
    reader.join(60)
    os.close(program)
    os.close(screen)
    assert code in (0, 1)
    return b"".join(parts).decode().replace("\r\n", "\n").rstrip("\0")


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_nothing_is_lost_on_a_narrow_screen(
    commands: Any, lab: Path, words: tuple[str, ...]
) -> None:
    wide = commands(*words, folder=lab).out
    assert wide.strip()
    for width in (80, 120):
        shown = on_screen(commands, words, lab, width)
        assert "…" not in shown
        assert [line for line in shown.splitlines() if cell_len(line) > width] == []
        # Names, numbers and numbers with their intervals.
        for whole in re.findall(r"\S*\d\S*(?: \[[^\]\n]*\d\])?|\S+", wide):
            assert whole in shown or set(whole) == {"─"}, (width, whole)


def test_metrics_are_short_on_a_narrow_screen(commands: Any, lab: Path) -> None:
    wide = commands("metrics", "trial", folder=lab).out
    shown = on_screen(commands, ("metrics", "trial"), lab, 80)
    assert len(shown.splitlines()) < 1.4 * len(wide.splitlines())
