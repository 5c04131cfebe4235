"""`robo-eval verify`: whether a trial directory or an incident log still is what was logged."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robo_eval.cli.junit import Checks, JunitOption, reported
from robo_eval.cli.output import JsonOption, print_json, say
from robo_eval.core.errors import CheckFailedError, InputError, TrialDirectoryError
from robo_eval.core.wording import counted
from robo_eval.log.database import DATABASE as EPISODES
from robo_eval.log.directory import PLAN, TRACES, is_trial
from robo_eval.log.incident_log import DATABASE as INCIDENTS
from robo_eval.log.signing import BUNDLES

if TYPE_CHECKING:
    from robo_eval.log.verify import Findings, VerificationReport
    from robo_eval_incidents.verify import LogReport


def verify(
    trial: Annotated[
        str,
        typer.Argument(
            metavar="DIR", help="Trial directory, an incident log's path or URL, or a pack (.zip)."
        ),
    ],
    *,
    checkpoint: Annotated[
        list[Path] | None,
        typer.Option(
            "--checkpoint", metavar="FILE", help="Checkpoint of incidents that was kept elsewhere."
        ),
    ] = None,
    signed_by: Annotated[
        str | None,
        typer.Option("--signed-by", help="Fingerprint of the key that has to have signed."),
    ] = None,
    junit: JunitOption = None,
    json: JsonOption = False,
) -> None:
    """Check plan, rows, traces, incidents and signatures; exit code 1 if anything differs.

    Exit code 2 if the database cannot be read: nothing is known of its rows then.

    A signature proves that nothing changed after it. The fingerprint tells whose it is; `assess`
    and `incidents checkpoint` print it, and --signed-by checks it.

    Examples: robo-eval verify runs/demo/sim; robo-eval verify lab/incidents.db --checkpoint FILE
    """
    with reported(junit, "verify") as checks:
        if Path(trial).suffix.lower() == ".zip" and Path(trial).is_file():
            _verify_pack(Path(trial), checkpoint, signed_by, checks, json=json)
            return
        rows, incidents = _reports(trial, checkpoint or [], signed_by)
        kept = sorted(set(map(str, checkpoint or [])))
        if rows is not None:
            _note_trial(checks, rows)
        if incidents is not None:
            _note(checks, incidents.log, incidents, [incidents.log, *kept])
        if json:
            print_json(_as_dict(rows, incidents))
        else:
            for report in (rows, incidents):
                for line in report.lines() if report is not None else ():
                    say(line)
        if rows is not None and rows.unreadable is not None:
            raise TrialDirectoryError(f"{rows.unreadable}; nothing is known of its rows")
        problems = [one for report in (rows, incidents) if report for one in report.problems]
        if problems:
            name = trial if incidents is None or rows is not None else incidents.log
            files = sorted({one.file for one in problems})
            whole = "log"
            if set(files) <= set(kept):
                name, whole = ", ".join(files), "checkpoint; no problem of the log itself was found"
            raise CheckFailedError(
                f"{name}: {counted(len(problems), 'problem')} found; do not trust this {whole}"
            )


def _verify_pack(
    pack: Path, kept: list[Path] | None, signed_by: str | None, checks: Checks, *, json: bool
) -> None:
    """Whether the parts of a pack of an incident tell the same story."""
    from robo_eval_incidents.pack_check import verify_pack

    if kept:
        raise InputError("--checkpoint: a pack has none; it is signed itself: --signed-by")
    report = verify_pack(pack, signed_by=signed_by)
    _note(checks, report.file, report, report.checked)
    if json:
        print_json(report.as_dict())
    else:
        for line in report.lines():
            say(line)
    if not report.ok:
        raise CheckFailedError(
            f"{pack}: {counted(len(report.problems), 'problem')} found; do not trust this pack"
        )


def _note_trial(checks: Checks, rows: VerificationReport) -> None:
    """Note what was checked of a trial: plan, manifest, rows, traces, signed bundles."""
    from robo_eval.log.manifest import MANIFEST

    signed = [name for name in BUNDLES if any(one.startswith(f"{name}/:") for one in rows.notes)]
    is_traced = rows.traces or any(one.file.startswith(TRACES) for one in rows.problems)
    suite, traces = str(rows.trial), [TRACES] if is_traced else []
    _note(checks, suite, rows, [PLAN, MANIFEST, EPISODES, *traces, *signed])
    if not is_traced:
        checks.add(suite, TRACES, rows.unreadable or "no trace was checked", "missing")


def _note(checks: Checks, suite: str, report: Findings, parts: Iterable[str]) -> None:
    """Note a check for each part, with the problems of its files."""
    found: dict[str, list[str]] = {part: [] for part in parts}
    for problem in report.problems:
        part = problem.file if problem.file in found else problem.file.partition("/")[0]
        found.setdefault(part, []).append(str(problem))
    for part, problems in found.items():
        checks.add_problem(suite, part, "\n".join(problems))


def _reports(
    target: str, checkpoints: list[Path], signed_by: str | None
) -> tuple[VerificationReport | None, LogReport | None]:
    """What verification found of a trial and of a log of incidents, as far as each is there."""
    is_url = "://" in target
    path = Path(target)
    if not is_url and not path.exists():
        raise TrialDirectoryError(f"{path}: no such trial directory or incident log")
    is_log = is_url or path.is_file() or _is_only_log(path)
    rows = None
    if not is_log:
        from robo_eval.log.verify import verify_trial

        rows = verify_trial(path, signed_by=signed_by)
        log = path / INCIDENTS
        if not log.exists():
            if checkpoints:
                raise InputError(
                    f"{log}: is missing, and a checkpoint of it was given: the log of"
                    " incidents was lost, or the checkpoint is of another one"
                )
            return (_without_log(rows, log) if os.path.lexists(log) else rows), None
    from robo_eval_incidents.verify import verify_log

    return rows, verify_log(target, checkpoints=checkpoints, signed_by=signed_by)


def _without_log(rows: VerificationReport, log: Path) -> VerificationReport:
    """What was found of a trial whose log of incidents is a link to nowhere."""
    from robo_eval.log.verify import Problem

    lost = Problem(
        file=log.name,
        what=f"leads to {log.readlink()}, which is not there: the log of incidents is missing",
    )
    return replace(rows, problems=(*rows.problems, lost))


def _is_only_log(folder: Path) -> bool:
    """Whether a folder holds incidents and no trial."""
    return (folder / INCIDENTS).is_file() and not is_trial(folder)


def _as_dict(rows: VerificationReport | None, incidents: LogReport | None) -> dict[str, object]:
    if rows is None:
        return incidents.as_dict() if incidents is not None else {}
    found = rows.as_dict()
    if incidents is not None:
        found["ok"] = rows.ok and incidents.ok
        found["incidents"] = incidents.as_dict()
    return found
