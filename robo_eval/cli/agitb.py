"""`robo-eval agitb`: the twelve tests of a model that predicts streams of bits."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from robo_eval.agents.registry import callable_at
from robo_eval.cli.aiq_progress import progress
from robo_eval.cli.output import (
    JsonOption,
    check_folder_of,
    interval,
    print_json,
    print_table,
    quoted,
    say,
)
from robo_eval.core.errors import CheckFailedError, InputError
from robo_eval.core.policy import aside
from robo_eval.core.wording import counted

_LIMIT_S: Final = 300.0

if TYPE_CHECKING:
    from robo_eval.analysis.agitb import Testbed, Tested


def agitb(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:CLASS", help="Class of the model, on the Python path, or a file.so."
        ),
    ],
    *,
    trials: Annotated[
        int | None,
        typer.Option("--trials", min=1, help="Most trials of a test. Default: 50; compiled 5000."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Seed of all trials. Default: one is drawn.")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Run all trials of all tests, also after a failure.")
    ] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="As --all, with pass rates and times to learn.")
    ] = False,
    only: Annotated[
        str | None, typer.Option("--only", metavar="TEST:TRIAL", help="Run this trial alone.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only say what the class lacks to be a model.")
    ] = False,
    integrity: Annotated[
        bool, typer.Option("--integrity", help="Also run test 0: are copies independent?")
    ] = False,
    recorded: Annotated[
        Path | None,
        typer.Option(
            metavar="TRIAL", help="Feed signals of a robot, from the traces of a trial directory."
        ),
    ] = None,
    period: Annotated[
        float,
        typer.Option(
            "--period", min=1e-3, metavar="SECONDS", help="Time between two samples of --recorded."
        ),
    ] = 0.1,
    page: Annotated[
        Path | None,
        typer.Option("--page", metavar="FILE", help="Also write what was found as a page."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Processes. Default: one for each processor.")
    ] = None,
    limit: Annotated[
        float,
        typer.Option("--limit", min=0.1, metavar="SECONDS", help="How long a trial may take."),
    ] = _LIMIT_S,
    json: JsonOption = False,
) -> None:
    """Test whether a model that predicts streams of bits learns as AGITB asks.

    A model is a class that is made without arguments, called with a number of ten bits, and
    returns the next one it expects; `==` compares its state. The same seed gives the same trials.
    Exit code 1 if a test is not passed.

    Example: robo-eval agitb examples.agitb.models:Suffix --trials 5 --all

    Example: robo-eval agitb examples.agitb.models:Suffix --recorded runs/demo/matched
    """
    from robo_eval.analysis.agitb import missing, run_testbed

    if page is not None:
        if page.is_dir():
            raise InputError(f"--page: {page} is a folder; name a file in it")
        check_folder_of(page)
    found_model = _model(model)
    if check:
        _say_missing(model, missing(found_model, limit_s=limit), json=json)
        return
    fed, facts = _fed(recorded, period)
    with progress("agitb", quiet=json) as told:
        found = run_testbed(
            found_model,
            trials=trials,
            seed=seed,
            fail_fast=not (every or profile),
            integrity=integrity,
            workers=workers if workers is not None else os.cpu_count() or 1,
            limit_s=limit,
            told=told,
            only=None if only is None else _one(only),
            **fed,
        )
    again = f"robo-eval agitb {quoted(model)} --seed {found.seed}"
    if recorded is not None:
        found = replace(found, source=str(recorded))
        again += f" --recorded {quoted(recorded)} --period {period}"
    again += "" if limit == _LIMIT_S else f" --limit {limit}"
    if json:
        print_json({**found.as_dict(), "facts": dict(facts)})
    else:
        _print(found, facts, profile=profile)
    if page is not None:
        from robo_eval.report.agitb import write_page

        whole = f"{again} --only {only}" if only else f"{again} --trials {found.most}"
        whole += " --all" if every or profile else ""
        run = [("Model", model), ("Seed", str(found.seed)), ("Again", whole), *facts]
        write_page(found, page, run)
        if not json:
            say(f"page: {page}")
    asked = found.tests if only is None else _all(found)
    first = next((one for one in asked if one.failed), None)
    if first is not None:
        raise CheckFailedError(
            f"{found.model}: test {first.test}, {first.name}: {first.verdict}; that trial again:"
            f" {again} --only {first.test}:{first.first_trial}"
        )


def _model(model: str) -> Any:

    if model.endswith(".so"):
        from robo_eval.analysis.agitb.compiled import shared_library

        return shared_library(Path(model))
    with aside():
        return callable_at(model, model)


def _one(only: str) -> tuple[str, int]:
    test, colon, trial = only.partition(":")
    if not (colon and trial.isdecimal()):
        raise InputError(f"--only: is {only!r}; write TEST:TRIAL, such as 6:0")
    return test, int(trial)


def _fed(recorded: Path | None, period_s: float) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Where inputs come from other than from chance, and what is to be known of it."""
    if recorded is None:
        return {}, []
    from robo_eval.analysis.agitb.recorded import RecordedSequences, encoded
    from robo_eval.log.signals import sampled_signals

    sampled = sampled_signals(recorded, period_s)
    inputs, bits = encoded(sampled.signals)
    read = f"{recorded}: {counted(sampled.episodes, 'episode')} of side {sampled.side}"
    lost = f"; {counted(sampled.missing, 'trace')} missing" if sampled.missing else ""
    some = int((inputs > 0).sum())
    facts = [
        ("Recorded", f"{read} with a trace{lost}"),
        ("Samples", f"{len(inputs)}, one every {period_s:g} s; {some} with a bit"),
        *((f"Bit {bit}", text) for bit, text in enumerate(bits)),
    ]
    return {"streams": partial(RecordedSequences, inputs=inputs)}, facts


def _say_missing(model: str, missing: str | None, *, json: bool) -> None:
    if json:
        print_json({"model": model, "missing": missing})
    elif missing is None:
        say(f"{model}: is a model; nothing is missing")
    if missing is not None:
        raise CheckFailedError(f"{model}: {missing}")


def _print(found: Testbed, facts: list[tuple[str, str]], *, profile: bool) -> None:
    tests = _all(found)
    title = f"{found.model}, seed {found.seed}" + (f", fed {found.source}" if found.source else "")
    print_table(
        title,
        ("test", "name", "verdict", "trials", "of", "not passed"),
        [(one.test, one.name, one.verdict, one.trials, one.wanted, one.failed) for one in tests],
        right=(0, 3, 4, 5),
    )
    for one in tests:
        if one.failure is not None:
            what = f"{one.failure.clause}: {one.failure.what}"
            say(f"test {one.test}, trial {one.first_trial}, {what}")
    if profile:
        print_table(
            "profile",
            ("test", "passed", "trials", "passes: 10 %", "50 %", "90 %", "never learned", "of"),
            [_profiled(one) for one in tests if one.trials],
            right=(0, 2, 3, 4, 5, 6, 7),
        )
    for name, text in facts:
        say(f"{name}: {text}")
    if len(found.tests) > 1:
        passed = sum(one.verdict == "pass" for one in found.tests)
        say(
            f"{passed} of {len(found.tests)} tests passed, with at most"
            f" {counted(found.most, 'trial')} of each; the eleventh has no procedure"
        )


def _all(found: Testbed) -> list[Tested]:
    return [*([] if found.integrity is None else [found.integrity]), *found.tests]


def _profiled(one: Tested) -> tuple[object, ...]:
    passes = one.learning
    own = [passes.get(key) for key in ("10%", "50%", "90%")] if passes["n"] else []
    shown = ["never" if number is None else number for number in own] or [""] * 3
    rate = one.pass_rate
    return (
        one.test, interval(rate), one.trials, *shown,
        passes["never"], passes["n"],
    )  # fmt: skip
