"""What every table keeps on a narrow screen; `run_prepared.py` asks it of each that is printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.cells import cell_len

WIDTHS = (80, 120)


def misfits(table: Any, width: int, laid_out: Callable[..., Any]) -> list[str]:
    """What a table loses, or how it leaves a screen of so many letters."""
    head, body = laid_out(table, width)
    lines, found = [*head, *body], []
    told = " ".join(word for line in lines for word in line.split())
    longest = 0
    for row in table.rows:
        for place, cell in enumerate(row):
            parts = cell.split() if place in table.prose else cell.split("\n")
            longest = max([longest, *map(cell_len, parts)])
            for part in parts:
                is_there = (
                    part in told
                    if place in table.prose
                    else any(part.rstrip() in line for line in lines)
                    # What no screen is wide enough for may go on in the next line.
                    or (cell_len(part) > width - 10 and " ".join(part.split()) in told)
                )
                if not is_there:
                    found.append(f"{part!r} is not whole")
    names = max(map(cell_len, table.columns), default=0)
    if longest <= width - 10 and names <= width - 10:
        found += [f"{cell_len(line)} letters: {line}" for line in lines if cell_len(line) > width]
    if "…" in told and not any("…" in cell for row in table.rows for cell in row):
        found.append("something was cut off")
    return found


def check(table: Any, laid_out: Callable[..., Any]) -> None:
    """Refuse a table that loses something on a screen of 80 or of 120 letters."""
    found = [one for width in WIDTHS for one in misfits(table, width, laid_out)]
    assert not found, f"{list(table.columns)}: {found}"
