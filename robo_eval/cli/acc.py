"""`robo-eval acc`: capability and generality of the policies of a trial."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robo_eval.cli.output import JsonOption, print_json, print_table, say

if TYPE_CHECKING:
    from robo_eval.analysis.acc import AccTable

_MANY = "difficulties"


def acc(
    trial: Annotated[Path, typer.Argument(metavar="DIR", help="Trial directory.")],
    *,
    json: JsonOption = False,
) -> None:
    """Print the agent characteristic curves' numbers: capability, spread, generality.

    An item is a level at a difficulty; how difficult it is says a frozen reference panel, never
    the policies under test. Exit code 1 if the rows are not those that were logged.

    Example: robo-eval acc runs/demo/sim
    """
    from robo_eval.analysis.trial import acc_of, log_problem
    from robo_eval.cli.summary import verification_problem
    from robo_eval.core.errors import CheckFailedError
    from robo_eval.log.directory import TrialDirectory

    opened = TrialDirectory.open(trial)
    problem = log_problem(opened)
    table = acc_of(opened)
    if json:
        verified = {"verified": problem is None, "log_problem": problem}
        print_json({**table.as_dict(), **verified})
    else:
        if table.rows:
            _print_rows(table)
        else:
            say(f"{trial}: {table.reason or 'no condition of this trial has a known difficulty'}")
        for warning in table.warnings:
            say(f"warning: {warning}")
        for part in table.left_out:
            say(f"left out: {part}")
    said = verification_problem(trial, problem)
    if said:
        raise CheckFailedError(said)


def _print_rows(table: AccTable) -> None:
    from robo_eval.cli.summary import interval, percent, say_missing_intervals
    from robo_eval.metrics.words import counted

    rows = [
        (
            row.policy,
            row.side,
            interval(row.capability, 3),
            interval(row.spread, 3),
            interval(row.normalised_generality, 3),
            row.n_items,
            row.n_episodes,
            (row.flag or "").replace("_", " ") or ("unreliable" if row.unreliable else ""),
        )
        for row in table.rows
    ]
    columns = ("policy", "side", "capability", "spread", "generality", "items", "episodes", "")
    level = percent(table.rows[0].capability.level)
    print_table(f"agent characteristic curves [{level} interval]", columns, rows, right=(5, 6))
    say_missing_intervals(
        estimate
        for row in table.rows
        for estimate in (row.capability, row.spread, row.normalised_generality)
    )
    most = table.attainable_maximum
    counts = f"{counted(table.n_items, 'item')} at {counted(table.n_levels, 'difficulty', _MANY)}"
    say(
        f"{counts} from {table.h0:.3f} to {table.q:.3f}; generality is normalised to [-1, 1]"
        + ("" if most is None else f", the most attainable on this axis is {most:.3f}")
    )
    for reason in dict.fromkeys(row.unreliable for row in table.rows if row.unreliable):
        say(reason)
