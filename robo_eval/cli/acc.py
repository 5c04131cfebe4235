"""`robo-eval acc`: capability and generality of the policies of a trial."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from robo_eval.cli.output import JsonOption, print_json, print_table, say


def acc(
    trial: Annotated[Path, typer.Argument(metavar="DIR", help="Trial directory.")],
    *,
    json: JsonOption = False,
) -> None:
    """Print the agent characteristic curves' numbers: capability, spread, generality.

    An item is a level at a difficulty; how difficult it is says a frozen reference panel, never
    the policies under test.

    Example: robo-eval acc runs/demo/sim
    """
    from robo_eval.analysis.trial import acc_of
    from robo_eval.cli.summary import interval
    from robo_eval.log.directory import TrialDirectory

    table = acc_of(TrialDirectory.open(trial))
    if json:
        print_json(table.as_dict())
        return
    if not table.rows:
        say(f"{trial}: {table.reason or 'no condition of this trial has a known difficulty'}")
        return
    rows = [
        (
            row.policy,
            row.side,
            interval(row.capability, 3),
            interval(row.spread, 3),
            interval(row.normalised_generality, 3),
            row.n_items,
            row.n_episodes,
            row.flag or ("unreliable" if row.unreliable else ""),
        )
        for row in table.rows
    ]
    columns = ("policy", "side", "capability", "spread", "generality", "items", "episodes", "")
    print_table("agent characteristic curves [95 % interval]", columns, rows, right=(5, 6))
    most = table.attainable_maximum
    say(
        f"{table.n_items} items on {table.n_levels} difficulties from {table.h0:.3f} to"
        f" {table.q:.3f}; generality is normalised to [-1, 1]"
        + ("" if most is None else f", the most attainable on this axis is {most:.3f}")
    )
    for reason in dict.fromkeys(row.unreliable for row in table.rows if row.unreliable):
        say(reason)
    if table.left_out:
        say(f"left out, no known difficulty: {', '.join(table.left_out)}")
