"""How a terminal is read without waiting for it: a robot has to be heard meanwhile."""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Final, Protocol, TextIO

_CHUNK: Final = 4096


class TerminalGoneError(Exception):
    """Nobody can answer any more: the terminal was closed."""


class Terminal(Protocol):
    """Where a person reads questions and types answers, a line each."""

    def asking(self) -> AbstractContextManager[None]:
        """The time in which a question stands; what was typed before it answers nothing."""

    def say(self, text: str, end: str = "\n") -> None:
        """Show a text."""

    def line(self) -> str | None:
        """The next line, without its end; None if none is there yet.

        Raises:
            TerminalGoneError: If none will come.
        """


@dataclass(slots=True)
class OpenTerminal:
    """A terminal of the operating system.

    Attributes:
        fd: File descriptor that is read.
        out: Where questions go.
        aside: Makes room for a question, such as by taking a progress bar off the screen.
    """

    fd: int
    out: TextIO
    aside: Callable[[], AbstractContextManager[None]] = nullcontext
    _typed: bytes = field(default=b"", init=False)
    _is_gone: bool = field(default=False, init=False)

    @contextmanager
    def asking(self) -> Iterator[None]:
        """What was typed before is dropped, so that an Enter too many does not judge an episode."""
        self._drop()
        with self.aside():
            yield

    def say(self, text: str, end: str = "\n") -> None:
        """Show a text; a terminal that is gone is noticed by whoever reads."""
        with contextlib.suppress(OSError):
            self.out.write(f"{text}{end}")
            self.out.flush()

    def line(self) -> str | None:
        """The next line if it is there; never waits."""
        if b"\n" not in self._typed:
            self._typed += self._read()
        head, newline, rest = self._typed.partition(b"\n")
        if newline:
            self._typed = rest
            return head.decode("utf-8", "replace").rstrip("\r")
        if self._is_gone:
            raise TerminalGoneError("the terminal was closed")
        return None

    def _read(self) -> bytes:
        if self._is_gone:
            return b""
        try:
            if not select.select([self.fd], [], [], 0.0)[0]:
                return b""
            found = os.read(self.fd, _CHUNK)
        except (OSError, ValueError):  # hung up, or closed
            found = b""
        self._is_gone = not found
        return found

    def _drop(self) -> None:
        self._typed = b""
        while self._read():
            pass
