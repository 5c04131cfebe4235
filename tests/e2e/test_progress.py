"""What a terminal shows of a run that goes on, at its width: nothing that counts is cut off."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from dataclasses import replace
from types import SimpleNamespace

import pytest

from robo_eval.cli.progress import Pace, episode_progress
from robo_eval.cli.run import SidePlayed, _played
from robo_eval.core.estimate import Estimate
from robo_eval.core.units import text_of

PAIR = "t0-l09-medium-a_policy_with_a_rather_long_name-s1000"
LONG = "a_trial_with_a_long_name on the-robot-in-the-other-building[2]"
SCRIPT = f"""
import sys, time
from robo_eval.cli.progress import episode_progress

with episode_progress(sys.argv[1], quiet=False, planned=120, status="getting ready") as shown:
    time.sleep(0.15)
    shown(41, 120, None)
    shown.status("{PAIR}, guard RUNNING")
    time.sleep(0.25)
    with shown.aside():
        print("asked")
    shown.status("{PAIR}, guard PROTECTIVE_STOP")
    time.sleep(0.15)
"""


def on_terminal(command: list[str], columns: int) -> list[list[str]]:
    """What a command draws on a terminal of its own: frame by frame, its lines."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR")}
    with subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**environment, "TERM": "xterm"},
    ) as process:
        os.close(theirs)
        drawn = b""
        while True:
            try:
                got = os.read(ours, 65536)
            except OSError:  # Linux says so when the other end is closed
                break
            if not got:
                break
            drawn += got
        assert process.wait(240.0) == 0, drawn.decode()
    os.close(ours)
    # Each frame begins by going up and clearing what is there.
    frames = re.split(r"(?:\x1b\[2K|\x1b\[1A|\r)+", drawn.decode())
    plain = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", frame) for frame in frames]
    return [frame.split("\n") for frame in plain if frame.strip()]


@pytest.mark.parametrize(("columns", "title"), [(80, "first"), (60, LONG), (80, LONG), (120, LONG)])
def test_progress_pair_guard_and_time_left_are_always_there(title, columns):
    frames = on_terminal([sys.executable, "-c", SCRIPT, title], columns)
    text = "\n".join("\n".join(frame) for frame in frames)
    assert all(len(line) <= columns for frame in frames for line in frame)
    assert "…" not in text
    # A terminal wraps nothing here that rich has not wrapped: join what rich put on two lines.
    joined = text.replace("\n", "").replace(" ", "")
    for part in (title, "0/120 episodes", "left -:--:--", "getting ready", "41/120 episodes"):
        assert part.replace(" ", "") in joined, part
    for state in ("RUNNING", "PROTECTIVE_STOP"):
        assert f"{PAIR}, guard {state}".replace(" ", "") in joined
    left = re.findall(r"41/120 episodes  0:00:0\d, left (\d:\d\d:\d\d)", text)
    assert left
    assert all(value != "0:00:00" for value in left)


def test_time_left_is_of_this_run_and_without_getting_ready():
    pace = Pace(100.0)
    assert pace.left_s(101.0) is None
    pace.see(21, 40, 120.0)  # twenty were there before; the first took getting ready too
    assert pace.left_s(120.0) == pytest.approx(20.0 * 19)
    pace.see(22, 40, 130.0)
    assert pace.left_s(130.0) == pytest.approx(10.0 * 18)
    assert pace.left_s(134.0) == pytest.approx(10.0 * 18 - 4.0)
    pace.see(22, 40, 140.0)  # an attempt that has to be repeated
    assert pace.left_s(140.0) == pytest.approx(20.0 * 18)
    pace.see(40, 40, 400.0)
    assert pace.left_s(1000.0) == 0.0


def test_a_line_says_which_attempt_ended_and_the_end_is_told_once(capsys):
    with episode_progress("lab", quiet=False) as shown:
        shown(3, 4, SimpleNamespace(attempt=1))  # the fourth is void, and is played again
        shown(4, 4, SimpleNamespace(attempt=2))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("lab: 4/4 episodes")
    assert "attempt 2" in line


def test_what_was_played_says_how_many_attempts_were_again():
    played = SidePlayed(planned=12, unscored=0, played=13, seconds=60.0, where="lab", again=1)
    assert "13 episodes played, 1 of them again, in 60.0 s" in _played(played)
    assert "12 episodes played in 60.0 s" in _played(replace(played, played=12, again=0))


def test_seconds_have_their_unit():
    known = Estimate(value=0.0204, n=9, method="counted", unit="s")
    assert text_of(known) == "0.0204 s"
