"""`robo-eval agitb`: the twelve tests of a model that predicts streams of bits."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from robo_eval.cli.aiq_progress import progress
from robo_eval.cli.output import JsonOption, print_json, print_table, say
from robo_eval.core.errors import CheckFailedError

if TYPE_CHECKING:
    from robo_eval.analysis.agitb import Testbed, Tested


def agitb(
    model: Annotated[
        str, typer.Argument(metavar="MODULE:CLASS", help="Class of the model, on the Python path.")
    ],
    *,
    trials: Annotated[
        int | None, typer.Option("--trials", min=1, help="Most trials of a test. Default: 50.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="From which trials are drawn; else drawn.")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Run all trials of all tests, also after a failure.")
    ] = False,
    integrity: Annotated[
        bool, typer.Option("--integrity", help="First test that copies are independent.")
    ] = False,
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Processes; as many as there are processors.")
    ] = None,
    limit: Annotated[
        float, typer.Option("--limit", min=0.1, metavar="SECONDS", help="Longest trial.")
    ] = 300.0,
    json: JsonOption = False,
) -> None:
    """Test whether a model that predicts streams of bits learns as AGITB asks.

    A model is a class that is made without arguments, called with a number of ten bits, and
    returns the next one it expects; `==` compares its state. The same seed gives the same trials.
    Exit code 1 if a test is not passed.

    Example: robo-eval agitb examples.agitb.models:Suffix --trials 5 --all
    """
    from robo_eval.agents.registry import callable_at
    from robo_eval.analysis.agitb import run_testbed

    model_class = callable_at(model, model)
    with progress("agitb", quiet=json) as told:
        found = run_testbed(
            model_class,
            trials=trials,
            seed=seed,
            fail_fast=not every,
            integrity=integrity,
            workers=workers or os.cpu_count() or 1,
            limit_s=limit,
            told=told,
        )
    if json:
        print_json(found.as_dict())
    else:
        _print(found)
    if found.first_failure is not None:
        first = next(one for one in found.tests if one.test == found.first_failure)
        raise CheckFailedError(f"{found.model}: test {first.test}, {first.name}: {first.verdict}")


def _print(found: Testbed) -> None:
    tests = [*([] if found.integrity is None else [found.integrity]), *found.tests]
    print_table(
        f"{found.model}, seed {found.seed}",
        ("test", "name", "verdict", "trials", "of", "not passed", "what it did"),
        [
            (one.test, one.name, one.verdict, one.trials, one.wanted, one.failed, _what(one))
            for one in tests
        ],
        right=(0, 3, 4, 5),
        whole=(6,),
    )
    passed = sum(one.verdict == "pass" for one in found.tests)
    say(f"{passed} of {len(found.tests)} tests passed; the eleventh has no procedure")


def _what(one: Tested) -> str:
    if one.failure is None:
        return ""
    return f"trial {one.first_trial}, {one.failure.clause}: {one.failure.what}"
