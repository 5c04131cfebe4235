"""What the simulated half of a plan is played with: snapshots are read, and their copies kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import typer

from robo_eval.core.canonical import text_digest
from robo_eval.core.errors import InputError, PlanError
from robo_eval.core.kinds import Side
from robo_eval.core.names import unknown_name
from robo_eval.core.plan import CalibrationPlan, TrialPlan
from robo_eval.core.task import task_of
from robo_eval.core.yaml_form import text_of, validated
from robo_eval.log.directory import CALIBRATION
from robo_eval.log.snapshot import parse_snapshot

_READ: Final[dict[str, str]] = {}
"""Texts of the snapshots that were read, by their SHA-256."""


def _warn(text: str) -> None:
    typer.echo(text, err=True)


def with_snapshots(plan: TrialPlan, path: Path, warn: Callable[[str], None] = _warn) -> TrialPlan:
    """The plan with what its calibrations play, as it is locked.

    Args:
        plan: The plan.
        path: Its file; snapshots are named relative to it.
        warn: Told of snapshots that were not accepted.

    Raises:
        PlanError: If a snapshot cannot be read or is of another task, two share a name, or a
            constant is unknown or beyond its bounds; the message names file and field.
    """
    if not plan.calibrations:
        return plan
    data = plan.model_dump(exclude_unset=True)
    filled = []
    for index, entry in enumerate(plan.calibrations):
        fill = _drawn if entry.file is None else _snapshot
        try:
            found = fill(entry, plan, path.parent, warn)
        except InputError as err:
            raise PlanError(f"{path}: calibrations.{index}.{err}") from err
        filled.append(entry.model_dump(exclude_unset=True) | found)
    locked = validated(data | {"calibrations": filled}, TrialPlan, str(path))
    chosen, ways = plan.metrics.calibration, locked.ways(Side.SIM)
    known = {*(entry.name for entry in locked.calibrations), *(way.calibration for way in ways)}
    if chosen is not None and chosen not in known:
        names = sorted(filter(None, known))
        raise PlanError(f"{path}: metrics.{unknown_name('calibration', chosen, names)}")
    return locked


def snapshot_texts(plan: TrialPlan) -> dict[str, bytes]:
    """The copies of snapshots that a locked plan names, by their names in its trial."""
    return {
        entry.file: _READ[entry.sha256].encode()
        for entry in plan.calibrations
        if entry.file is not None and entry.sha256 is not None
    }


def _snapshot(
    entry: CalibrationPlan, plan: TrialPlan, folder: Path, warn: Callable[[str], None]
) -> dict[str, Any]:
    """What a snapshot plays, by recording."""
    file = folder / str(entry.file)
    try:
        text = text_of(file, "calibration")
        snapshot = parse_snapshot(text, file)
    except InputError as err:
        raise InputError(f"file: {err}") from err
    digest = text_digest(text)
    if entry.sha256 not in (None, digest):
        raise InputError(f"sha256: {file} is another file than this plan was locked with")
    for index, task in enumerate(plan.tasks):
        for problem in snapshot.problems(task=task.env):
            raise InputError(
                f"file: {file} does not fit tasks.{index}: {problem}; a plan that names it plays"
                f" {snapshot.task} alone: give each other task a plan of its own"
            )
    recordings = {}
    for row in snapshot.row_names():
        recording = row.partition("/")[2]
        values = snapshot.played(
            recording, noise="noise" in entry.play, force="disturbance" in entry.play
        )
        left_out = () if "constants" in entry.play else snapshot.constants
        recordings[recording] = {n: value for n, value in values.items() if n not in left_out}
    if not any(recordings.values()):
        raise InputError(f"play: {file} holds nothing of {', '.join(entry.play)}")
    for warning in snapshot.warnings:
        warn(f"{file}: {warning}")
    name = entry.name or snapshot.name
    _READ[digest] = text
    return {
        "name": name,
        "file": f"{CALIBRATION}/{name}.yaml",
        "sha256": digest,
        "recordings": recordings,
    }


def _drawn(entry: CalibrationPlan, plan: TrialPlan, *_: object) -> dict[str, Any]:
    """Which of the constants that are drawn are drawn by their logarithm."""
    logarithmic: set[str] = set()
    for index, task in enumerate(plan.tasks) if entry.randomised else ():
        spec = task_of(task.env)
        if spec is None:
            raise InputError(f"randomised: {task.env} (tasks.{index}) declares no constants")
        try:
            for values in zip(*entry.randomised.values(), strict=True):
                spec.checked(dict(zip(entry.randomised, values, strict=True)))
        except InputError as err:
            raise InputError(f"randomised: {err}") from err
        logarithmic |= {one.name for one in spec.constants if one.is_log} & set(entry.randomised)
    return {"logarithmic": sorted(logarithmic)} if logarithmic else {}
