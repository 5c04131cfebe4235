"""`robo-eval aiq`: how complex tests are, how different, and the space they make."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from robo_eval.cli.aiq_handicap import handicap
from robo_eval.cli.aiq_progress import duration, progress
from robo_eval.cli.aiq_rank import rank
from robo_eval.cli.output import JsonOption, RayOption, WorkersOption, print_json, print_table, say

if TYPE_CHECKING:
    from robo_eval.study.outcome import Outcome
    from robo_eval.study.run import Cost, Study

app = typer.Typer(no_args_is_help=True)

app.command("rank", short_help="Rank the policies of trials in the space of a study.")(rank)
app.command("handicap", short_help="Take nodes away from networks, and see what they cover.")(
    handicap
)

_LISTED: Final = 10
FolderArgument = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a study.")]


@app.command("run", short_help="Run a suite of tests, or go on with it.")
def run(
    suite: Annotated[Path, typer.Argument(metavar="SUITE.yaml", help="Suite file.")],
    *,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for results; may be there.")],
    workers: WorkersOption = None,
    ray: RayOption = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Say what the rest costs, and stop.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Train pools of policies and learners of mixtures, and place the tests in a space.

    Every piece of work is kept under a digest of all it depends on. So the same command goes on
    where a run was stopped, and after a change it only does what the change affects. It writes
    study.json and a page, report.html.

    Example: robo-eval aiq run examples/suites/small.yaml --out runs/small
    """
    from robo_eval.log.provenance import cores
    from robo_eval.study.run import Study

    count = cores() if workers is None else workers
    study = Study.of(suite, out)
    with progress("experts", quiet=json) as told:
        cost = study.prepare(workers=count, ray=ray, progress=told)
    if estimate:
        _print_cost(cost, count, ray, json=json)
        return
    if not json:
        say(_cost_text(cost, count, ray))
    with progress("study", quiet=json) as told:
        outcome = study.run(workers=count, ray=ray, progress=told)
    page = _page(study, outcome, out)
    _print(outcome, json=json)
    if not json:
        say(f"results: {out / 'study.json'}")
        say(f"page: {page}")


@app.command("show", short_help="Print what a study found.")
def show(folder: FolderArgument, *, json: JsonOption = False) -> None:
    """Print what a study found, from the results that are kept.

    Example: robo-eval aiq show runs/small
    """
    from robo_eval.study.run import Study

    _print(Study.open(folder).known(), json=json)


@app.command("report", short_help="Write the page of a study.")
def report(
    folder: FolderArgument,
    *,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The page; DIR/report.html if not given.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Write one HTML file with pictures and tables of what a study found; it needs no network.

    `aiq run` writes it as well, and `aiq rank` one with agents.

    Example: robo-eval aiq report runs/small
    """
    from robo_eval.study.run import Study

    study = Study.open(folder)
    page = _page(study, study.known(), folder if out is None else out)
    if json:
        print_json({"page": str(page)})
    else:
        say(f"page: {page}")


@app.command("agree", short_help="Say whether studies of the same tests agree.")
def agree(
    folder: FolderArgument,
    other: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR", help="A second study; without it, two halves of the first are compared."
        ),
    ] = None,
    *,
    json: JsonOption = False,
) -> None:
    """Print how complexities and dissimilarities of two studies correlate.

    Run a suite again with another seed, or with a larger budget, to see how far it can be trusted.
    With one study, two halves of its pool and of its trainings are compared; this runs nothing.
    Spearman's correlation compares ranks, so it is low where tests hardly differ. Pearson's
    compares the numbers themselves.

    Example: robo-eval aiq agree runs/once runs/again
    """
    from robo_eval.study.agreement import agreement, agreement_within
    from robo_eval.study.run import Study

    study = Study.open(folder)
    outcome, of_what = study.known(), " of its halves" if other is None else ""
    is_one_seed = False
    if other is None:
        found = agreement_within(outcome)
    else:
        second = Study.open(other)
        found = agreement(outcome, second.known())
        is_one_seed = study.suite.seed == second.suite.seed
    if json:
        # JSON has no NaN, which says that there is nothing to rank or to split.
        known = {
            name: {key: None if math.isnan(value) else value for key, value in asdict(one).items()}
            for name, one in found.items()
        }
        print_json(known)
        return
    for name, one in found.items():
        said = (
            "not known: there is nothing to split, or all values are equal"
            if math.isnan(one.spearman)
            else f"Spearman {one.spearman:.3f}, Pearson {one.pearson:.3f} (n = {one.n})"
        )
        say(f"{name}: correlation{of_what} {said}")
    if is_one_seed:
        say(
            f"warning: both studies have seed {study.suite.seed}; they share examples, episodes and"
            " maybe networks, and that alone makes them agree"
        )


def _page(study: Study, outcome: Outcome, path: Path) -> Path:
    from robo_eval.study.page import write_page

    return write_page(outcome, path, suite=study.suite)


# What is printed -------------------------------------------------------------------------------


def _print(outcome: Outcome, *, json: bool) -> None:
    if json:
        from robo_eval.study.run import as_json

        print_json(as_json(outcome))
        return
    measured, table = outcome.measured, outcome.dissimilarities
    rows = [
        (
            measured.tests[place],
            f"{outcome.space.complexities[place]:.3f}",
            _interval(outcome, place),
            f"{outcome.curves[place].extrapolated_share:.0%}",
            f"{outcome.others[place].area:.0f}",
            f"{measured.alone[place].mean():.3f}",
            measured.experts[place],
            f"{measured.expert_performances[place].mean():.3f}",
        )
        for place in outcome.by_complexity
    ]
    columns = (
        "test", "of largest", "parameters, 95 % interval", "extrapolated",
        f"by {outcome.other_rule}", "learner", "expert", "its performance",
    )  # fmt: skip
    n = len(measured.sizes)
    title = f"{outcome.name}: complexity by the rule {outcome.rule} ({n} policies)"
    print_table(title, columns, rows, right=(1, 2, 3, 4, 5, 7))
    say(
        "the two rules cannot be compared: by one all complexities are equal"
        if math.isnan(outcome.rule_agreement)
        else f"rank correlation of the two rules: {outcome.rule_agreement:.2f} (Spearman)"
    )
    _print_pairs(outcome)
    floor = "" if table.floor is None else f"; a test to itself {table.floor:.4f}"
    say(f"space: {outcome.space.k} dimensions hold {outcome.held:.0%} of it{floor}")
    say(f"triples that break the triangle inequality: {table.violations} of {table.triangles}")
    for warning in outcome.warnings:
        say(f"warning: {warning}")


def _interval(outcome: Outcome, place: int) -> str:
    estimate = outcome.complexities[place]
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.0f} (no interval)"
    return f"{estimate.value:.0f} [{estimate.low:.0f}, {estimate.high:.0f}]"


def _print_pairs(outcome: Outcome) -> None:
    names = outcome.measured.tests
    ordered = outcome.by_unlikeness
    rows = [
        (names[i], names[j], str(estimate).partition(" n=")[0], estimate.n)
        for (i, j), estimate in ordered[:_LISTED]
    ]
    title = f"most unlike pairs, of {len(ordered)}"
    print_table(
        title, ("test", "and", "dissimilarity, 95 % interval", "trainings"), rows, right=(3,)
    )


def _cost_text(cost: Cost, workers: int, ray: str | None) -> str:
    if not cost.pieces:
        return f"everything is done already: {cost.known} pieces of work"
    here = "" if ray is not None else f"; {duration(cost.core_s / workers)} here"
    known = f", {cost.known} are done already" if cost.known else ""
    hours = f"{cost.core_s / 3600:.{1 if cost.core_s >= 360.0 else 3}f}"
    return f"about {hours} core-hours{here}: {cost.pieces} pieces of work{known}"


def _print_cost(cost: Cost, workers: int, ray: str | None, *, json: bool) -> None:
    if json:
        print_json({"pieces": cost.pieces, "known": cost.known, "core_seconds": cost.core_s})
    else:
        say(_cost_text(cost, workers, ray))
