"""How far a run is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final

import typer

from robo_eval.core.episode import Episode

_LINE_EVERY_S: Final = 5.0


class ShownProgress:
    """What a runner tells about its progress.

    Args:
        show: Shows episodes done, planned, and the newest row.
        status: Shows what goes on right now; none where there is no room for it.
        aside: Takes what is shown off the screen while somebody is asked something.
    """

    def __init__(
        self,
        show: Callable[[int, int, Episode], None],
        status: Callable[[str], None] | None = None,
        aside: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._show = show
        self._status = status
        self.aside = aside

    def __call__(self, done: int, planned: int, newest: Episode) -> None:
        """An episode has ended."""
        self._show(done, planned, newest)

    def status(self, text: str) -> None:
        """Something goes on."""
        if self._status is not None:
            self._status(text)


class Pace:
    """How long the rest takes, from how long the episodes so far took.

    Args:
        now: Monotonic time, s.
    """

    def __init__(self, now: float) -> None:
        self._since_s = self._last_s = now
        self._since_done: int | None = None
        self._done = self._planned = 0

    def see(self, done: int, planned: int, now: float) -> None:
        """An episode has ended."""
        if self._since_done is None:
            self._since_done = done - 1  # what was there when this run began
        elif self._done == self._since_done + 1 < done:
            # From the second on without the first, which took getting ready as well.
            self._since_s, self._since_done = self._last_s, self._done
        self._done, self._planned, self._last_s = done, planned, now

    def left_s(self, now: float) -> float | None:
        """Seconds until all is played; None before the first episode has ended."""
        if self._since_done is None or self._done == self._since_done:
            return None
        each_s = (self._last_s - self._since_s) / (self._done - self._since_done)
        return max(0.0, each_s * (self._planned - self._done) - (now - self._last_s))


@contextmanager
def episode_progress(
    title: str,
    *,
    quiet: bool,
    planned: int | None = None,
    status: str = "",
    label: Callable[[Episode], str] | None = None,
) -> Iterator[ShownProgress | None]:
    """Shows episodes done, planned, and the time left; yields what a runner calls.

    Args:
        title: What is played.
        quiet: Whether nothing is shown.
        planned: Episodes that are to be played; None if the first row is to tell.
        status: What goes on before the runner says so itself.
        label: Says what goes on from the newest row, where the runner does not.
    """
    if quiet:
        yield None
    elif sys.stderr.isatty():
        yield from _bar(title, planned, status, label)
    else:
        yield _lines(title)


def _bar(
    title: str, planned: int | None, status: str, label: Callable[[Episode], str] | None
) -> Iterator[ShownProgress]:
    from rich.console import Console

    from robo_eval.cli.progress_screen import ProgressScreen

    pace = Pace(time.monotonic())
    screen = ProgressScreen(
        title, Console(stderr=True), left_s=lambda: pace.left_s(time.monotonic())
    )
    screen.show(0, planned)
    screen.status = status
    with screen:

        def show(done: int, planned: int, newest: Episode) -> None:
            pace.see(done, planned, time.monotonic())
            screen.show(done, planned)
            if label is not None:
                screen.status = label(newest)

        def tell(text: str) -> None:
            screen.status = text

        @contextmanager
        def aside() -> Iterator[None]:
            screen.live.transient = True
            screen.stop()
            try:
                yield
            finally:
                screen.live.transient = False
                screen.start()

        yield ShownProgress(show, tell, aside)


def _lines(title: str) -> ShownProgress:
    started = time.monotonic()
    state = {"next": started + _LINE_EVERY_S}

    def show(done: int, planned: int, newest: Episode) -> None:
        now = time.monotonic()
        if now >= state["next"] or done == planned:
            state["next"] = now + _LINE_EVERY_S
            again = f", the last in attempt {newest.attempt}" if newest.attempt > 1 else ""
            took = f"{now - started:.0f} s"
            typer.echo(f"{title}: {done}/{planned} episodes, {took}{again}", err=True)

    return ShownProgress(show)
