"""A progress bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import typer

if TYPE_CHECKING:
    from robo_eval.core.episode import Episode

_LINE_EVERY_S: Final = 5.0


@contextmanager
def episode_progress(
    title: str, *, quiet: bool
) -> Iterator[Callable[[int, int, Episode], None] | None]:
    """Shows episodes done, planned, and the time left; yields what a runner calls."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        yield from _bar(title)
    else:
        yield _lines(title)


def _bar(title: str) -> Iterator[Callable[[int, int, Episode], None]]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("episodes"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(title, total=None)

        def show(done: int, planned: int, newest: Episode) -> None:
            del newest
            progress.update(task, completed=done, total=planned)

        yield show


def _lines(title: str) -> Callable[[int, int, Episode], None]:
    started = time.monotonic()
    state = {"next": started + _LINE_EVERY_S}

    def show(done: int, planned: int, newest: Episode) -> None:
        del newest
        now = time.monotonic()
        if now >= state["next"] or done == planned:
            state["next"] = now + _LINE_EVERY_S
            typer.echo(f"{title}: {done}/{planned} episodes, {now - started:.0f} s", err=True)

    return show
