"""`robo-eval calibrate watch`: constants over days."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robo_eval.cli.output import JsonOption, measured, print_json, print_table, say
from robo_eval.core.errors import CheckFailedError, InputError
from robo_eval.core.plain import plain
from robo_eval.core.wording import counted, p_text, shown

if TYPE_CHECKING:
    from robo_eval_calibration.watch import Watch, Watched

_WANDERING = 0.3
"""Days whose correlation is above this make one false alarm in ten and more."""


def watch(
    snapshots: Annotated[
        list[Path],
        typer.Argument(metavar="SNAPSHOT|DIR...", help="Snapshots, or trials that hold some."),
    ],
    *,
    in_use: Annotated[
        Path | None,
        typer.Option(
            "--in-use", metavar="SNAPSHOT", help="What simulations use; default the first day's."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Say which constants changed over days, since when, how sure that is, and when to calibrate.

    Give one snapshot a day, each fitted to recordings of that day, as many each day. A change is
    looked for from eight days on. Today's values are compared with those of the snapshot in use
    from the second day on. Exit code 1 if it is time to calibrate again, or nothing was compared.

    Example: robo-eval calibrate watch calibration/2026-*.yaml --in-use calibration/2026-11-02.yaml
    """
    from robo_eval_calibration.watch import day_of, snapshots_in, watched

    days = [day_of(path) for path in snapshots_in(snapshots)]
    named = Counter(one.resolve() for path in snapshots for one in snapshots_in([path]))
    twice = [f"{path} is named {n} times and counts once" for path, n in named.items() if n > 1]
    found = watched(days, in_use=None if in_use is None else day_of(in_use))
    if not found.constants:
        raise InputError(f"{days[0].source}: constants: none has a value, nor in any other file")
    if json:
        print_json(plain(found))
    else:
        _print(found)
        for note in twice:
            say(note)
    if not found.is_compared:
        told = f"nothing was compared: {counted(len(days), 'day')}"
        remedy = "give two days and more, each fitted to two recordings and more"
        raise CheckFailedError("; ".join((told, *twice, remedy)))
    if found.is_due:
        raise CheckFailedError(f"calibrate again: {'; '.join(found.reasons)}")


def _print(found: Watch) -> None:
    first, last = found.days[0], found.days[-1]
    print_table(
        f"{counted(len(found.days), 'day')} from {first} to {last};"
        f" in use: {found.in_use} of {found.in_use_day}",
        ("constant", "unit", "today", "less that in use", "p", "verdict", "since", "by", "p",
         "correlation of days"),
        [_row(one) for one in found.constants],
        right=(2, 3, 4, 7, 8, 9),
        prose=(5,),
    )  # fmt: skip
    wandering = [one.name for one in found.constants if (one.correlation.value or 0.0) > _WANDERING]
    if wandering:
        say(f"{', '.join(wandering)}: days are like their neighbours; one change in ten and more is"
            " then found where there is none")  # fmt: skip
    if found.is_compared and not found.is_due:
        say("nothing asks for a new calibration")


def _row(one: Watched) -> tuple[str, ...]:
    since = ""
    if one.since is not None:
        since = f"{one.since}"
        if one.since_low != one.since_high:
            since += f" ({one.since_low} to {one.since_high})"
    return (
        one.name, one.today.unit, measured(one.today), measured(one.moved), _p(one.moved_p),
        one.reason or one.verdict, since, "" if one.change is None else shown(one.change),
        _p(one.p), measured(one.correlation),
    )  # fmt: skip


def _p(value: float | None) -> str:
    return "-" if value is None else p_text(value)
