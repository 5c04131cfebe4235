"""How a run is asked to stop: signals become a flag, so that nothing is cut in half."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass(slots=True)
class StopFlag:
    """Which signal asked; None if none did.

    Attributes:
        signal_name: The newest signal.
        is_now: Whether nothing is to be finished first: any signal but a first Ctrl-C means that.
    """

    signal_name: str | None = None
    is_now: bool = False


@contextmanager
def stop_signals() -> Iterator[StopFlag]:
    """Turn SIGINT, SIGTERM and SIGHUP into a flag, so that no commit is cut in half."""
    flag = StopFlag()

    def set_flag(number: int, _frame: FrameType | None) -> None:
        flag.is_now = flag.signal_name is not None or number != signal.SIGINT
        flag.signal_name = signal.Signals(number).name

    previous = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            previous[number] = signal.signal(number, set_flag)
    except ValueError:  # not the main thread: signals are the caller's business
        pass
    try:
        yield flag
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
