"""How far a study is: a bar with the time left, or a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import typer

_LINE_EVERY_S: Final = 10.0
Told = Callable[[float, float, str], None]
"""Told of work that is done and of all there is, in one unit, and of the newest piece."""


def duration(seconds: float) -> str:
    """A time for people."""
    return f"{seconds:.0f} s" if seconds < 90.0 else f"{seconds / 60:.0f} minutes"


@contextmanager
def progress(title: str, *, quiet: bool) -> Iterator[Told | None]:
    """A bar with the time left on a terminal, a line now and then elsewhere."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        yield from _bar(title)
    else:
        yield _lines(title)


def _bar(title: str) -> Iterator[Told]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn(),
        TextColumn("{task.fields[newest]}"),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, newest="")

        def told(done: float, total: float, newest: str) -> None:
            bar.update(task, completed=done, total=total, newest=newest)

        yield told


def _lines(title: str) -> Told:
    started = time.monotonic()
    state = {"next": started + _LINE_EVERY_S}

    def told(done: float, total: float, newest: str) -> None:
        now = time.monotonic()
        if now < state["next"]:
            return
        state["next"] = now + _LINE_EVERY_S
        left = (now - started) / done * (total - done) if done else 0.0
        text = f"{title}: {done / total:.0%}, {duration(left)} left"
        typer.echo(f"{text}, {newest}" if newest else text, err=True)

    return told
