"""`robo-eval assess`: the autonomy level the evidence of a trial supports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robo_eval.cli.output import JsonOption, print_json, print_table, say
from robo_eval.cli.settings import ConfigOption, settings_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robo_eval.gates import Assessment, GateResult
    from robo_eval.log.directory import TrialDirectory


def assess(
    trial: Annotated[Path, typer.Argument(metavar="DIR", help="Trial directory.")],
    *,
    profile: Annotated[
        str, typer.Option("--profile", "-p", help="Name of a profile, or a TOML file.")
    ] = "robotics",
    policy: Annotated[str | None, typer.Option("--policy", help="Only this policy.")] = None,
    level: Annotated[
        int | None,
        typer.Option("--level", min=1, max=4, help="Print what is missing for this level."),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Print the gates of every level, not only the next.")
    ] = False,
    config: ConfigOption = None,
    key: Annotated[
        Path | None,
        typer.Option("--key", help="PEM file of the Ed25519 key to sign with; made if missing."),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write/--no-write", help="Keep a signed copy in DIR/assessment/.")
    ] = True,
    json: JsonOption = False,
) -> None:
    """Say which autonomy level the evidence supports, and what is missing for the next.

    A gate reads the end of the interval that speaks against it, and what was not measured does not
    pass. Without a physical robot no level above 1 is issued. Exit code 1 if the window does not
    count, which is after a critical incident, or the rows are not those that were logged.

    What was said is kept in DIR/assessment/ with the digest of every file it was made of, signed
    with your key (ROBO_EVAL_KEY, or a key of your own made the first time); verify checks it.

    Examples: robo-eval assess runs/matched; robo-eval assess runs/lab --level 2 --profile lab.toml
    """
    from robo_eval.core.errors import CheckFailedError
    from robo_eval.core.names import unknown_name
    from robo_eval.gates.bundle import as_json
    from robo_eval.gates.trial import assess_trial
    from robo_eval.log.directory import TrialDirectory

    opened = TrialDirectory.open(trial)
    every_policy = assess_trial(opened, profile, config=settings_of(config))
    if not every_policy:
        raise CheckFailedError(f"{trial}: no episode was logged, so there is nothing to assess")
    found = [one for one in every_policy if policy in (None, one.policy)]
    if policy is not None and not found:
        raise unknown_name("policy", policy, [one.policy for one in every_policy])
    broken = [
        audit
        for one in every_policy[:1]
        for _, audit in one.audits
        if audit.id == "log" and audit.status != "pass"
    ]
    if json:
        print_json(as_json(found))
    else:
        for number, one in enumerate(found):
            if number:
                say()
            _print(one, level, every=every)
    if broken:
        raise CheckFailedError(f"{trial}: the log does not verify: {broken[0].reason}")
    if write:
        _keep(opened, every_policy, profile, key, quiet=json)
    for one in found:
        if one.level is None:
            raise CheckFailedError(f"{trial}: policy {one.policy}: {one.reason}")


def _keep(
    trial: TrialDirectory,
    found: Sequence[Assessment],
    profile: str,
    key: Path | None,
    *,
    quiet: bool,
) -> None:
    """Write the signed bundle, and say whose signature it has."""
    from robo_eval.gates.bundle import write_assessment

    folder, who, new = write_assessment(trial, found, profile, key=key)
    if new is not None:
        typer.echo(f"robo-eval: a key to sign with was made: {new}", err=True)
    if not quiet:
        say()
        say(f"signed by key {who}: {folder}")


def _print(one: Assessment, wanted: int | None, *, every: bool) -> None:
    from robo_eval.gates.profile import LEVELS

    name = "no level" if one.level is None else f"AAI-{one.level}"
    say(f"{one.policy}: {name}, evidence {one.evidence_tag}; {one.reason}")
    if one.would_be is not None:
        say(f"  would be AAI-{one.would_be} on a robot")
    if (
        one.level is not None
        and one.level_by_points is not None
        and one.level_by_points > one.level
    ):
        say(f"  by point estimates AAI-{one.level_by_points}, which intervals do not support yet")
    shown = wanted or one.next_level or one.level
    levels = LEVELS if every else [shown] if shown is not None else []
    for number in levels:
        gates = one.at(number)
        if gates:
            print_table(
                f"gates of AAI-{number}",
                ("", "gate", "found", "asked", "why"),
                [_row(gate) for gate in gates],
                right=(2, 3),
            )
    if every or any(audit.status != "pass" for _, audit in one.audits):
        print_table(
            "audits",
            ("", "audit", "from", "why"),
            [
                (audit.status, audit.title, f"AAI-{start}", audit.reason)
                for start, audit in one.audits
                if every or audit.status != "pass"
            ],
        )
    if shown is not None and shown in one.missing:
        say(f"missing for AAI-{shown}:")
        for lacking in one.missing[shown]:
            say(f"  {lacking.text}")


def _row(gate: GateResult) -> tuple[str, str, str, str, str]:
    from robo_eval.gates.words import shown

    found = gate.found
    text = "-" if found.value is None else shown(found.value)
    if found.low is not None and found.high is not None and found.low != found.high:
        text += f" [{shown(found.low)}, {shown(found.high)}]"
    if found.value is not None:
        text += f" n={found.n}"
    sign = {"at_least": ">= ", "at_most": "<= ", "families": ">= "}.get(gate.test, "")
    return gate.status, gate.title, text, f"{sign}{shown(gate.threshold)}", gate.reason
