"""`robo-eval acc`: capability and generality of the policies of a trial."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robo_eval.cli.output import (
    JsonOption,
    interval,
    percent,
    print_json,
    print_table,
    say,
    say_missing_intervals,
)
from robo_eval.cli.summary import too_few_scored, verification_problem
from robo_eval.core.errors import CheckFailedError
from robo_eval.core.wording import counted
from robo_eval.log.directory import TrialDirectory

if TYPE_CHECKING:
    from robo_eval.analysis.acc import AccTable
    from robo_eval.analysis.acc.trial import AccRow

_MANY = "difficulties"


def acc(
    trial: Annotated[Path, typer.Argument(metavar="DIR", help="Trial directory.")],
    *,
    json: JsonOption = False,
) -> None:
    """Print capability, spread and generality of each agent, from its characteristic curve.

    An item is a level at a difficulty. How hard an item is was measured once, by a reference
    panel; the policies under test do not change it. Exit code 1 if the rows are not those that
    were logged, or fewer than 95 % of the episodes of a policy have a score.

    Example: robo-eval acc runs/demo/sim
    """
    from robo_eval.analysis.trial import acc_of, log_problem

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
    uncovered = too_few_scored(table.uncovered) if table.uncovered else None
    said = verification_problem(trial, problem) or uncovered
    if said:
        raise CheckFailedError(said)


def _remark(row: AccRow) -> str:
    """What to mind of a row, in a word or two."""
    parts = [(row.flag or "").replace("_", " ")]
    if not row.is_covered:
        parts.append("too few scored")
    if row.is_partial:
        parts.append("not comparable")
    remark = ", ".join(part for part in parts if part)
    return remark or ("unreliable" if row.unreliable else "")


def _items(row: AccRow) -> str:
    return f"{row.n_items} of {row.n_expected_items}" if row.n_missing_items else f"{row.n_items}"


def _say_unreliable(rows: Sequence[AccRow]) -> None:
    """Why numbers are not to be trusted: a line for all policies of which the same is true."""
    has_sides = len({row.side for row in rows}) > 1
    names: dict[str, list[str]] = {}
    for row in rows:
        if row.unreliable:
            name = f"{row.policy} ({row.side})" if has_sides else row.policy
            names.setdefault(row.unreliable, []).append(name)
    for reason, own in names.items():
        say(f"{', '.join(own)}: {reason}")


def _print_rows(table: AccTable) -> None:
    rows = [
        (
            row.policy,
            row.side,
            interval(row.capability, 3),
            interval(row.spread, 3),
            interval(row.normalised_generality, 3),
            _items(row),
            row.n_episodes,
            _remark(row),
        )
        for row in table.rows
    ]
    columns = ("policy", "side", "capability", "spread", "generality", "items", "episodes", "")
    level = percent(table.rows[0].capability.level)
    title = f"agent characteristic curves [{level} interval]"
    print_table(title, columns, rows, right=(5, 6), prose=(7,))
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
    _say_unreliable(table.rows)
