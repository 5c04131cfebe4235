"""How verbs print: calm tables for people, one JSON document for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from robo_eval.core.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from robo_eval.core.estimate import Estimate

_NO_INTERVAL: Final = "[-]"
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")]
TaskOption = Annotated[
    str,
    typer.Option(metavar="ID", help="Gymnasium id; default the task of a plan that names none."),
]


def print_json(data: object) -> None:
    """One JSON document on standard output, without NaN or infinity."""
    is_unicode = str(sys.stdout.encoding).lower().startswith("utf")
    json.dump(data, sys.stdout, indent=2, allow_nan=False, ensure_ascii=not is_unicode)
    sys.stdout.write("\n")


def console() -> Console:
    """The console for people; rich is imported only when something is printed."""
    from rich.console import Console

    # A pipe or a log file has no width of its own: keep tables on one line there.
    width = None if sys.stdout.isatty() else 160
    return Console(highlight=False, width=width, soft_wrap=False)


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    right: Sequence[int] = (),
    whole: Sequence[int] = (),
) -> None:
    """A plain table.

    Args:
        title: What is in it.
        columns: Their names.
        rows: Cells of each row.
        right: Columns that are aligned to the right.
        whole: Columns in which a word that is too long goes on in the next line; elsewhere it is
            cut, with a sign.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, column in enumerate(columns):
        # Names that have to be typed are not cut.
        justify: Literal["left", "right"] = "right" if index in right else "left"
        overflow: Literal["fold", "ellipsis"] = "fold" if index in whole else "ellipsis"
        table.add_column(column, justify=justify, no_wrap=index <= 1, overflow=overflow)
    for row in rows:
        # Text, not markup: names come from plans and other labs' files.
        table.add_row(*(Text("" if cell is None else str(cell)) for cell in row))
    screen = console()
    # Not as the table's own title, which would be wrapped to the width of the table.
    screen.print(Text(title, style="italic"))
    screen.print(table)


def say(text: str = "") -> None:
    """A line for people."""
    typer.echo(text)


def next_steps(*commands: str) -> None:
    """Suggest what to type next."""
    say("next:")
    for command in commands:
        say(f"  {command}")


def check_folder_of(file: Path) -> None:
    """Refuse a file that is to be written to a folder that is not there.

    Raises:
        InputError: If it is not.
    """
    if not file.absolute().parent.is_dir():
        raise InputError(f"{file}: there is no folder {file.absolute().parent}")


def quoted(path: object) -> str:
    """A path as it can be pasted into a shell."""
    import shlex

    return shlex.quote(str(path))


def number(value: float, digits: int = 2) -> str:
    """A number with a fixed count of decimals, and no minus before a zero."""
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0.0 else text


def interval(estimate: Estimate, digits: int = 2) -> str:
    """`0.62 [0.55, 0.69]`; `0.62 [-]` without an interval; else why there is no number."""
    if estimate.value is None:
        return f"- ({estimate.reason})"
    text = number(estimate.value, digits)
    if estimate.low is None or estimate.high is None:
        return f"{text} {_NO_INTERVAL}"
    return f"{text} [{number(estimate.low, digits)}, {number(estimate.high, digits)}]"


def say_missing_intervals(estimates: Iterable[Estimate]) -> None:
    """Why some of the printed numbers have no interval."""
    lacking = [e for e in estimates if e.value is not None and (e.low is None or e.high is None)]
    reasons = dict.fromkeys(estimate.reason or "no reason given" for estimate in lacking)
    if reasons:
        say(f"{_NO_INTERVAL} no interval: {'; '.join(reasons)}")


def percent(level: float) -> str:
    """A coverage for people: `95 %`."""
    return f"{100 * level:g} %"
