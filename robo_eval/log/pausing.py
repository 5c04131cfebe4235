"""Whether a trial is asked to wait before its next episode: a small file in its directory."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from robo_eval.log.files import explained, write_atomically
from robo_eval.log.notes import iso_time

PAUSE_FILE: Final = "paused"
"""While it is there nothing is begun on the robot; it holds the time since when."""


def pause(trial: Path) -> bool:
    """Ask whoever plays a trial to wait before the next episode; False if that was so already.

    Raises:
        TrialDirectoryError: If the file cannot be written.
    """
    if is_paused(trial):
        return False
    write_atomically(trial / PAUSE_FILE, f"{iso_time(time.time_ns())}\n".encode())
    return True


def go_on(trial: Path) -> bool:
    """Take that back; False if nobody had asked.

    Raises:
        TrialDirectoryError: If the file cannot be removed.
    """
    was_paused = is_paused(trial)
    with explained(trial / PAUSE_FILE, "cannot be removed"):
        (trial / PAUSE_FILE).unlink(missing_ok=True)
    return was_paused


def is_paused(trial: Path) -> bool:
    """Whether a trial is asked to wait."""
    return (trial / PAUSE_FILE).exists()
