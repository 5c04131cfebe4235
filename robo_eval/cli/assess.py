"""`robo-eval assess`: the autonomy level the evidence of a trial supports."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robo_eval.cli.junit import Checks, JunitOption, reported
from robo_eval.cli.output import JsonOption, measured, print_json, print_table, say
from robo_eval.cli.settings import ConfigOption, MetricsOption, settings_of
from robo_eval.core.wording import shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from robo_eval.gates import Assessment, GateResult
    from robo_eval.gates.axes.anchors import Axis
    from robo_eval.gates.axes.progress import Progress
    from robo_eval.gates.trial import TrialFindings
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
        typer.Option("--level", min=1, max=5, help="Print what is missing for this level."),
    ] = None,
    require: Annotated[
        int | None,
        typer.Option("--require", min=1, max=5, help="Exit code 1 below this level."),
    ] = None,
    every: Annotated[
        bool,
        typer.Option(
            "--all", help="Print axes, progress and the gates of every level, not only the next."
        ),
    ] = False,
    since: Annotated[
        Path | None,
        typer.Option("--since", help="An earlier trial, to compare what can be delegated."),
    ] = None,
    config: ConfigOption = None,
    files: MetricsOption = None,
    key: Annotated[
        Path | None,
        typer.Option("--key", help="PEM file of the Ed25519 key to sign with; made if missing."),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write/--no-write", help="Keep a signed copy in DIR/assessment/.")
    ] = True,
    junit: JunitOption = None,
    json: JsonOption = False,
) -> None:
    """Say which autonomy level the evidence supports, and what is missing for the next.

    A gate reads the end of the interval that speaks against it, and what was not measured does not
    pass. Without a physical robot no level above 1 is issued. Exit code 1 if there is no level: the
    tasks are not fit for a level, a critical incident ends the window, or the rows are not
    those that were logged; if attempts were left out beyond what the plan allows; and below the
    level that --require names.

    What was said is kept in DIR/assessment/ with the digest of every file it was made of, signed
    with your key (ROBO_EVAL_KEY, or a key of your own made the first time); verify checks it.

    Examples: robo-eval assess runs/matched; robo-eval assess runs/lab --level 2 --profile lab.toml;
    robo-eval assess runs/agent --profile general --all
    """
    from robo_eval.core.errors import CheckFailedError
    from robo_eval.core.names import unknown_name
    from robo_eval.gates.trial import examine_trial
    from robo_eval.log.directory import TrialDirectory

    with reported(junit, "assess") as checks:
        opened = TrialDirectory.open(trial)
        earlier = None if since is None else TrialDirectory.open(since)
        findings = examine_trial(opened, profile, config=settings_of(config, files), since=earlier)
        every_policy = findings.policies
        if not every_policy:
            raise CheckFailedError(f"{trial}: no episode was logged, so there is nothing to assess")
        found = [one for one in every_policy if policy in (None, one.policy)]
        if policy is not None and not found:
            raise unknown_name("policy", policy, [one.policy for one in every_policy])
        broken = _changed(every_policy[0])
        if json:
            print_json(replace(findings, policies=tuple(found)).as_dict())
        else:
            for number, one in enumerate(found):
                if number:
                    say()
                _print(one, level, every=every)
            _print_trial(findings, every=every)
        _note(checks, found, level, require)
        if broken:
            raise CheckFailedError(f"{trial}: {broken}")
        if write:
            _keep(opened, findings, profile, key, quiet=json)
        for one in found:
            problem = _problem(one, require)
            if problem:
                raise CheckFailedError(f"{trial}: policy {one.policy}: {problem}")


def _changed(one: Assessment) -> str | None:
    """That the rows are not those that were logged; None if they are."""
    audits = (audit for _, audit in one.audits if audit.id == "log" and audit.status != "pass")
    return next((f"the log does not verify: {audit.reason}" for audit in audits), None)


def _problem(one: Assessment, required: int | None) -> str | None:
    """Why the command ends with exit code 1; None if it does not."""
    if one.level_conservative is None:
        return one.reason
    if required is not None and one.level_conservative < required:
        return f"{one.headline}; --require asks for {one.name_of(required)}"
    return one.readings.left_out


def _note(
    checks: Checks, found: Iterable[Assessment], wanted: int | None, required: int | None
) -> None:
    """Note whether there is a level, and all that each level asks, or the wanted one."""
    for one in found:
        asked = "has a level" if required is None else f"is at {one.name_of(required)} or above"
        checks.add_problem(one.policy, asked, _changed(one) or _problem(one, required))
        for check in one.readings.battery:
            checks.add(f"{one.policy}, battery", check.title, check.reason, check.status)
        for start, audit in one.audits:
            if wanted is None or start <= wanted:
                checks.add(f"{one.policy}, audits", audit.title, audit.reason, audit.status)
        for gate in one.gates:
            if gate.counts and wanted in (None, gate.level):
                status, title, text, asked, why = _row(gate)
                told = "; ".join(part for part in (why, f"found {text}, asked {asked}") if part)
                checks.add(f"{one.policy}, {one.name_of(gate.level)}", title, told, status)


def _keep(
    trial: TrialDirectory,
    found: TrialFindings,
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

    say(f"{one.policy}: {one.headline}; evidence {one.evidence}; {one.reason}")
    if one.would_be is not None:
        unfit = one.level_conservative is None
        condition = "with tasks fit for a level" if unfit else "on a robot"
        say(f"  would be {one.name_of(one.would_be)} {condition}")
    left_out = one.readings.left_out or one.readings.left_out_allowed
    if left_out:
        say(f"  {left_out}")
    _print_index(one)
    if every:
        _print_axes(one)
    shown = wanted or one.next_level or one.level_conservative
    levels = LEVELS if every else [shown] if shown is not None else []
    if wanted is not None and wanted not in {gate.level for gate in one.gates if gate.counts}:
        say(f"  the profile asks nothing of {one.name_of(wanted)}, so nothing can show it")
    for number in levels:
        gates = [*one.at(number), *(one.reported(number) if every else ())]
        if gates:
            print_table(
                f"gates of {one.name_of(number)}",
                ("", "gate", "found", "asked", "why"),
                [_row(gate) for gate in gates],
                right=(2, 3),
                prose=(4,),
            )
    _print_checks(one, every=every)
    if shown is not None and shown in one.missing:
        say(f"missing for {one.name_of(shown)}:")
        for lacking in one.missing[shown]:
            say(f"  {lacking.effort}: {lacking.text}")


def _print_checks(one: Assessment, *, every: bool) -> None:
    """The battery and the audits; in short those that do not pass."""
    checks = one.readings.battery
    if every and checks:
        print_table(
            "battery",
            ("", "check", "why"),
            [(check.status, check.title, check.reason) for check in checks],
            prose=(2,),
        )
    if every or any(audit.status != "pass" for _, audit in one.audits):
        print_table(
            "audits",
            ("", "audit", "from", "why"),
            [
                (audit.status, audit.title, one.name_of(start), audit.reason)
                for start, audit in one.audits
                if every or audit.status != "pass"
            ],
            prose=(3,),
        )


def _print_index(one: Assessment) -> None:
    """The index in one line, or what it lacks."""
    found = one.readings.index
    if found is None:
        return
    if found.index.value is None:
        say(f"  no index: {found.index.reason}")
        return
    say(f"  index {measured(found.index)}, adjusted for unevenness {measured(found.adjusted)}")


def _print_axes(one: Assessment) -> None:
    """The ten axes, and how each family went on."""
    if one.readings.axes:
        print_table(
            "axes",
            ("axis", "raw", "counts 0 and 1", "value", "why"),
            [_axis_row(axis) for axis in one.readings.axes],
            right=(1, 2, 3),
            prose=(4,),
        )
        for axis in one.readings.axes:
            if axis.source:
                say(f"anchors of {axis.name}: {axis.source}")
    if one.readings.progress:
        print_table(
            "progress",
            ("family", "kappa", "per day", "steps", "slope", "curvature"),
            [_progress_row(name, found) for name, found in one.readings.progress.items()],
            right=(1, 2, 3, 4, 5),
        )


def _axis_row(axis: Axis) -> tuple[str, str, str, str, str]:
    anchors = "-" if axis.baseline is None else f"{axis.baseline:g} and {axis.expert:g}"
    if axis.scale == "log":
        anchors += ", log"
    raw = measured(axis.raw) if axis.raw.value is not None else "-"
    if axis.raw.value is not None and axis.raw.unit != "ratio":
        raw += f" {axis.raw.unit}"
    value = "-" if axis.value.value is None else f"{measured(axis.value)} n={axis.value.n}"
    return f"{axis.name}, {axis.title}", raw, anchors, value, axis.value.reason or ""


def _progress_row(name: str, found: Progress) -> tuple[str, ...]:
    shown = (found.kappa, found.kappa_time)
    bends = (found.slope, found.curvature)
    return (name, *map(measured, shown), f"{found.steps:.3g}", *map(measured, bends))


def _print_trial(findings: TrialFindings, *, every: bool) -> None:
    """What is said of all policies together: the frontier and the checklist."""
    frontier, checklist = findings.frontier, findings.checklist
    say()
    if frontier.auf.value is not None:
        say(
            f"delegability: area under the frontier {measured(frontier.auf)}, share of demands for"
            f" autonomy with quality {findings.profile.frontier.quality:g}:"
            f" {measured(frontier.fraction_delegable)}"
        )
    if findings.shift is not None and findings.since is not None:
        said = "nowhere below" if findings.shift.progress else "somewhere below"
        found = findings.shift.auf
        ends = measured(found).partition(" ")[2]
        text = f"area {found.value or 0.0:+.4g} {ends}, {said} what it was"
        say(f"since {findings.since['trial']}: {found.reason if found.value is None else text}")
    done = len(checklist.items) - len(checklist.open)
    say(f"reproducibility checklist: {done} of {len(checklist.items)} answered")
    if every:
        for item in checklist.open:
            say(f"  open: {item.question} ({item.id}, {item.source})")


def _row(gate: GateResult) -> tuple[str, str, str, str, str]:
    found = gate.found
    text = "-" if found.value is None else shown(found.value)
    if found.low is not None and found.high is not None and found.low != found.high:
        text += f" [{shown(found.low)}, {shown(found.high)}]" + " one-sided" * gate.is_one_sided
    if gate.test == "families" and found.low is not None:
        text = f"{found.low:g} of {found.n}"
    elif found.value is None and found.low is not None:
        text = f"at least {shown(found.low)}"
    elif found.value is not None and found.n and found.method not in ("counted", "declared"):
        text += f" n={found.n}"
    signs = {"at_least": ">= ", "at_most": "<= ", "above": "> ", "families": ">= "}
    sign = signs.get(gate.test, "")
    title = gate.title if gate.counts else f"{gate.title} (reported)"
    # What passes by its number alone is said by that and by what was asked.
    is_plain = gate.status == "pass" and gate.test != "families" and found.method != "declared"
    why = "" if is_plain else gate.reason
    return gate.status, title, text, f"{sign}{shown(gate.threshold)}", why
