"""Where a live view of a robot goes, checked before anything is created."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import typer

from robo_eval.core.errors import InputError, MissingExtraError, pip_install
from robo_eval.core.kinds import Side

WINDOW: Final = "window"
"""Target of the view that opens a window."""
_ADDRESSES: Final = ("rerun+http://", "rerun+https://")


def view_target(view: bool, to: str | None, sides: Sequence[Side]) -> str | None:  # noqa: FBT001 - the two options
    """Where the view goes: `window`, an address or a file; None if there is to be none.

    Args:
        view: Whether a window is to open.
        to: A file or an address.
        sides: What is played.

    Raises:
        InputError: If there is nothing to show, or no place to show it; the message says which.
        MissingExtraError: If Rerun is not installed.
    """
    if not view and to is None:
        return None
    option = "--view" if to is None else "--view-to"
    if view and to is not None:
        raise InputError("--view and --view-to: give one; the window can save what it shows")
    if not set(sides) - {Side.SIM}:
        raise InputError(
            f"{option} shows a robot while it acts, and only sim is played here; a simulated"
            " episode is seen in the report, or as a film by `robo-eval film`"
        )
    if find_spec("rerun") is None:
        raise MissingExtraError(
            f"{option} needs Rerun, which is not installed: {pip_install('view')}"
        )
    if to is None:
        return _window()
    return to if to.startswith(_ADDRESSES) else _file(to)


def _window() -> str:

    is_there = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    if sys.platform == "linux" and not is_there:
        raise InputError(
            "--view opens a window, and there is no display (DISPLAY and WAYLAND_DISPLAY are not"
            " set); use --view-to FILE.rrd, and open that file by `rerun FILE.rrd` elsewhere"
        )
    return WINDOW


def _file(to: str) -> str:

    path = Path(to)
    if "://" in to or path.suffix != ".rrd":
        raise InputError(
            f"--view-to {to}: is neither a file that ends in .rrd nor an address such as"
            " rerun+http://127.0.0.1:9876/proxy"
        )
    if path.exists():
        raise InputError(f"--view-to {to}: exists already; name a new file")
    if not path.parent.is_dir():
        raise InputError(f"--view-to {to}: its folder does not exist; create it first")
    return str(path.resolve())


def print_view_problem(log: Path, since: int) -> None:
    """Say that the view had to give up, which stops no trial.

    Args:
        log: What it printed.
        since: Bytes of that which are of an earlier run.
    """
    if not log.exists():
        return
    with log.open("rb") as file:
        file.seek(since)
        text = file.read().decode("utf-8", "replace")
    lines = [line for line in text.splitlines() if "error" in line.lower()]
    if lines:
        typer.echo(f"note: the view did not last: {lines[-1][:300]} (see {log})", err=True)
