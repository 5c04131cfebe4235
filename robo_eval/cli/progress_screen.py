"""The lines at the bottom of a terminal that say how far a run is, whatever its width."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Final

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, Task, TextColumn
from rich.table import Column
from rich.text import Text

_BAR: Final = 10
"""Least width of the bar."""


class ProgressScreen(Progress):
    """A bar with its numbers, and a line for what goes on.

    No number is ever cut: the title goes above the bar where there is no room beside it, and what
    goes on wraps.

    Args:
        title: What is played.
        console: The terminal.
        left_s: Says how long the rest takes, s; None while nobody knows.
    """

    def __init__(self, title: str, console: Console, *, left_s: Callable[[], float | None]) -> None:
        self._title: Final = title
        self._left_s: Final = left_s
        self.status = ""
        """What goes on right now."""
        super().__init__(
            _Words(lambda _: self._title if self._is_beside() else ""),
            BarColumn(bar_width=None, table_column=Column(min_width=_BAR, ratio=1)),
            _Words(self._counts),
            console=console,
            expand=True,
        )
        self._task: Final = self.add_task("", total=None)

    def show(self, done: int, planned: int | None) -> None:
        """So many episodes are done."""
        self.update(self._task, completed=done, total=planned)

    def get_renderables(self) -> Iterable[RenderableType]:
        """Title, bar and status, from top to bottom."""
        if not self.tasks:
            return
        if not self._is_beside():
            yield Text(self._title, overflow="fold")
        yield self.make_tasks_table(self.tasks)
        if self.status:
            yield Text(self.status, overflow="fold")

    def _is_beside(self) -> bool:
        """Whether the title has room beside bar and numbers."""
        numbers = len(self._counts(self.tasks[0]))
        return len(self._title) + numbers + _BAR + 4 <= min(100, self.console.width)

    def _counts(self, task: Task) -> str:
        planned = "?" if task.total is None else f"{task.total:.0f}"
        elapsed, left = _clock(task.elapsed), _clock(self._left_s())
        return f"{task.completed:.0f}/{planned} episodes  {elapsed}, left {left}"


class _Words(TextColumn):
    """A text that changes by itself, neither wrapped nor read as markup."""

    def __init__(self, text: Callable[[Task], str]) -> None:
        super().__init__("", table_column=Column(no_wrap=True))
        self._text: Final = text

    def render(self, task: Task) -> Text:
        """The text."""
        return Text(self._text(task))


def _clock(seconds: float | None) -> str:
    return "-:--:--" if seconds is None else str(timedelta(seconds=round(seconds)))
