"""`robo-eval metrics`: the numbers of a trial, each with interval and sample size."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from robo_eval.cli.junit import Checks, reported
from robo_eval.cli.options import taking
from robo_eval.cli.output import interval, print_json, print_table, say
from robo_eval.cli.robots import audit_problem, rows_of_body
from robo_eval.cli.settings import ScoreOptions, settings_of
from robo_eval.cli.summary import (
    ENOUGH_SCORED,
    coverage_problem,
    print_summary,
    summary_of,
    verification_problem,
)
from robo_eval.core.errors import CheckFailedError, InputError
from robo_eval.core.plain import plain
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.export import read_episodes
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.deviation import Deviation

if TYPE_CHECKING:
    from robo_eval.metrics.summary import TrialSummary

_MOST_TOLD: Final = 3
"""Reasons and episodes of a deviation that are printed; the JSON has more."""


@taking(ScoreOptions)
def metrics(
    how: ScoreOptions,
    trial: Annotated[
        Path | None,
        typer.Argument(metavar="DIR", help="Trial directory, or a table of episodes."),
    ] = None,
    *,
    every: Annotated[
        bool, typer.Option("--list", help="List the metrics there are of a policy on a side.")
    ] = False,
    columns: Annotated[
        Path | None,
        typer.Option("--map", "-m", help="Column map of a CSV file with columns of its own."),
    ] = None,
) -> None:
    """Score the episodes of a trial with the code at hand, and print its metrics.

    The log is not touched: scores that differ from the recorded ones are kept beside it, in
    scores/, by version. Exit code 1 if the rows are not those that were logged, fewer than 95 %
    of the episodes have a score, the evidence (incidents and the like) does not fit them, or
    attempts of a robot were left out beyond what the plan allows.

    A table is what `robo-eval export` wrote, as Parquet or CSV, or any CSV file with a column map;
    nothing is kept of it.

    Examples: robo-eval metrics runs/demo/sim; robo-eval metrics runs/lab --incidents log.csv;
    robo-eval metrics lab.csv --map lab-map.yaml; robo-eval metrics --list
    """
    if every:
        if how.junit is not None:
            raise InputError("--junit: --list checks nothing; leave one of the two out")
        if trial is not None:
            raise InputError(f"{trial}: --list looks at no trial; leave one of the two out")
        settings_of(how.config, how.files)
        _list(as_json=how.json)
        return
    if trial is None:
        raise InputError("DIR is missing: name a trial directory or a table, or ask for --list")
    with reported(how.junit, "metrics") as checks:
        settings, evidence = settings_of(how.config, how.files), how.evidence
        if trial.is_file():
            summary = _of_table(trial, columns, settings, evidence)
        elif columns is not None:
            raise InputError(f"{trial}: --map is for a CSV file; this is none")
        else:
            summary = summary_of(TrialDirectory.open(trial), config=settings, evidence=evidence)
        if how.json:
            print_json(summary.as_dict())
        else:
            print_summary(summary)
            print_deviations(summary)
        problem = _noted(checks, trial, summary)
        if problem:
            raise CheckFailedError(problem)


def _noted(checks: Checks, trial: Path, summary: TrialSummary) -> str | None:
    """Note what is checked, and each number; the first problem, or None."""
    problems = {}
    if summary.verified is not None:  # a table has no log
        problems["the log verifies"] = verification_problem(trial, summary.log_problem)
    problems |= {
        "the evidence fits the episodes": audit_problem(summary),
        ENOUGH_SCORED: coverage_problem(summary),
        "few attempts were left out": summary.left_out_problem,
    }
    for name, problem in problems.items():
        checks.add_problem("checks", name, problem)
    for row in summary.policies:
        for name, found in (("performance", row.performance), ("success", row.success_exact)):
            is_there = row.is_sayable and found.value is not None
            text = interval(found) if row.is_sayable else row.coverage.text
            status = "pass" if is_there else "missing"
            checks.add(f"{row.policy}, {row.side}", name, text, status)
    for body in (*summary.robots, *summary.simulated):
        for name, value, why in rows_of_body(body):
            status, text = ("missing", why) if value == "-" else ("pass", f"{value}; {why}")
            checks.add(f"{body.policy}, {body.side}", name, text, status)
    return next(filter(None, problems.values()), None)


def _list(*, as_json: bool) -> None:
    from robo_eval.metrics.registry import registered

    found = registered().values()
    if as_json:
        print_json({"metrics": plain(tuple(found))})
        return
    print_table(
        "Metrics of a policy on a side",
        ("name", "unit", "meaning"),
        [
            (name, unit, one.meaning if name == one.name else f"see {one.name}")
            for one in found
            for name, unit in ((one.name, one.unit), *one.also.items())
        ],
        prose=(2,),
    )


def _of_table(
    table: Path,
    columns: Path | None,
    settings: MetricConfig | None,
    evidence: Mapping[str, Path],
) -> TrialSummary:
    """The numbers of a table of episodes, in our columns or, with a map, in any."""
    from robo_eval.log.evidence_read import read_evidence
    from robo_eval.metrics.summary import summarise

    if columns is None:
        # Nothing lies beside a table: evidence has to be named.
        noted = read_evidence(None, evidence)
        try:
            episodes = read_episodes(table)
        except InputError as err:
            raise InputError(f"{err}; a CSV file with columns of its own needs --map") from err
        try:
            return summarise(episodes, config=settings or MetricConfig(), evidence=noted)
        except InputError as err:
            raise InputError(_named(str(err), table)) from err

    from robo_eval.analysis.trial import analyse_trial
    from robo_eval.log.importer import import_csv

    with tempfile.TemporaryDirectory(prefix="robo-eval-") as folder:
        trial = import_csv(table, columns, Path(folder) / "trial")
        return analyse_trial(trial, config=settings, evidence=evidence)


def _named(message: str, file: Path) -> str:
    """A message about a table, with the file it is of and its rows counted from 1."""
    place = re.match(r"episodes table: row (\d+)", message)
    if place:
        return f"{file}: row {int(place[1]) + 1}{message[place.end() :]}"
    return f"{file}: {message}"


def print_deviations(summary: TrialSummary) -> None:
    """Each deviation in a line; nothing if nothing was planned."""
    if summary.deviations is None:
        return
    if not summary.deviations:
        say("deviations from the plan: none")
        return
    say("deviations from the plan:")
    for found in summary.deviations:
        say(f"  {_deviation(found)}")


def _deviation(found: Deviation) -> str:
    side = f" ({found.side})" if found.side else ""
    parts = [f"{found.what}{side}: {found.count}"]
    reasons = [f"{n} {reason}" for reason, n in list(found.reasons.items())[:_MOST_TOLD]]
    if len(found.reasons) > _MOST_TOLD:
        reasons.append("...")
    parts += [part for part in ("; ".join(reasons), found.text) if part]
    names = ", ".join(found.episodes[:_MOST_TOLD])
    if names:
        parts.append(f"{names}, ..." if found.count > _MOST_TOLD else names)
    return "; ".join(parts)
