"""How verbs print: calm tables for people, one JSON document for programs."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from robo_eval.core.errors import InputError
from robo_eval.core.estimate import Estimate
from robo_eval.core.wording import shown

_NO_INTERVAL: Final = "[-]"
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")]
WorkersOption = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Processes; as many as there are processors."),
]
RayOption = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Ray cluster to use: `auto` or host:port.")
]
TaskOption = Annotated[
    str,
    typer.Option(metavar="ID", help="Gymnasium id; default the task of a plan that names none."),
]


def print_json(data: object) -> None:
    """One JSON document on standard output, without NaN or infinity."""
    is_unicode = str(sys.stdout.encoding).lower().startswith("utf")
    json.dump(data, sys.stdout, indent=2, allow_nan=False, ensure_ascii=not is_unicode)
    sys.stdout.write("\n")


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    right: Sequence[int] = (),
    prose: Sequence[int] = (),
    keys: int = 0,
) -> None:
    """A plain table that fits the screen.

    Args:
        title: What is in it.
        columns: Their names.
        rows: Cells of each row.
        right: Columns that are aligned to the right.
        prose: Columns of sentences, which may go on in the next line after any word; names and
            numbers may not.
        keys: How many columns say what a row is of, before each part of what does not fit.
    """
    from rich.cells import cell_len
    from rich.console import Console
    from rich.text import Text

    from robo_eval.cli.table import Table, wrapped

    cells = [["" if cell is None else str(cell).expandtabs() for cell in row] for row in rows]
    screen, width = Console(highlight=False), _width()
    head, body = Table(columns, cells, right=right, prose=prose, keys=keys).laid_out(width)
    rule = ("-" if screen.options.ascii_only else "─") * max(map(cell_len, [*head, *body]))
    above = wrapped(title, width or cell_len(title))
    # Not as one text, which would be wrapped again, and not as markup: names come from plans and
    # other labs' files.
    parts = {"italic": [*above, ""], "bold": head, "": [f" {rule[1:]}", *body, ""]}
    for style, lines in parts.items():
        for line in lines:
            screen.print(Text(line, style), soft_wrap=True)


def _width() -> int | None:
    """Letters on a line of the screen; None of a pipe or a file, which has no width of its own."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def say(text: str = "") -> None:
    """A line for people; on a screen it goes on in the next one between words."""
    width = _width()
    if width is not None and len(text) > width // 2:
        from robo_eval.cli.table import wrapped

        text = "\n".join(wrapped(text, width))
    typer.echo(text)


def next_steps(*commands: str) -> None:
    """Suggest what to type next."""
    say("next:")
    for command in commands:
        typer.echo(f"  {command}")  # to be pasted: in one line


def check_folder_of(file: Path) -> None:
    """Refuse a file that is to be written to a folder that is not there.

    Raises:
        InputError: If it is not.
    """
    if not file.absolute().parent.is_dir():
        raise InputError(f"{file}: there is no folder {file.absolute().parent}")


def check_own(file: Path, what: str, option: str, read: Callable[[Path], object]) -> None:
    """Refuse to write where a file of another kind would be replaced, or no folder is there.

    Args:
        file: What is to be written.
        what: Of which kind it is.
        option: By which it is named.
        read: Raises an InputError where a file is of another kind.

    Raises:
        InputError: If one would be replaced.
    """
    check_folder_of(file)
    try:
        if file.exists():
            read(file)
    except InputError as err:
        raise InputError(
            f"{file}: is no {what} and would be replaced; name another file by {option}, or delete"
            " it"
        ) from err


def quoted(path: object) -> str:
    """A path as it can be pasted into a shell."""
    return shlex.quote(str(path))


def number(value: float, digits: int | None = 2) -> str:
    """A number with a fixed count of decimals, and no minus before a zero; None as it is shown."""
    if digits is None:
        return shown(value)
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0.0 else text


def interval(estimate: Estimate, digits: int | None = 2) -> str:
    """`0.62 [0.55, 0.69]`; `0.62 [-]` without an interval; else why there is no number."""
    if estimate.value is None:
        return f"- ({estimate.reason})"
    text = number(estimate.value, digits)
    if estimate.low is None or estimate.high is None:
        return f"{text} {_NO_INTERVAL}"
    return f"{text} [{number(estimate.low, digits)}, {number(estimate.high, digits)}]"


def measured(found: Estimate) -> str:
    """A value of any size with four digits, and its interval if it has one; else a dash."""
    if found.value is None:
        return "-"
    if found.low is None or found.high is None:
        return shown(found.value)
    return f"{shown(found.value)} [{shown(found.low)}, {shown(found.high)}]"


def say_missing_intervals(estimates: Iterable[Estimate]) -> None:
    """Why some of the printed numbers have no interval."""
    lacking = [e for e in estimates if e.value is not None and (e.low is None or e.high is None)]
    reasons = dict.fromkeys(estimate.reason or "no reason given" for estimate in lacking)
    if reasons:
        say(f"{_NO_INTERVAL} no interval: {'; '.join(reasons)}")


def percent(level: float) -> str:
    """A coverage for people: `95 %`."""
    return f"{100 * level:g} %"
