"""A trial that was imported: the plan that says so, and its directory."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import yaml

from robo_eval.core.episode import QUALITY_DECIMALS
from robo_eval.core.errors import InputError, PlanError, TrialDirectoryError
from robo_eval.core.kinds import Difficulty, Profile
from robo_eval.core.plan import TrialPlan, parse_plan
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.files import PART_SUFFIX, explained
from robo_eval.log.import_row import RowMaker
from robo_eval.log.import_score import ImportedRow
from robo_eval.log.store import EpisodeStore

_BATCH: Final = 256


def plan_of_import(
    path: Path,
    maker: RowMaker,
    rows: Sequence[ImportedRow],
    *,
    traces: str = "none",
) -> TrialPlan:
    """A plan that describes what was found, and says that it was.

    Args:
        path: What was imported.
        maker: What made the rows.
        rows: The rows.
        traces: Which episodes have a trace, in the words of a plan.

    Raises:
        InputError: If a name in the rows is none that a plan can hold.
    """
    tasks: dict[tuple[Any, ...], dict[str, Any]] = {}
    counts: dict[tuple[Any, ...], int] = {}
    policies: dict[str, dict[str, str]] = {}
    sides: dict[str, None] = {}
    raw_map = maker.map.raw
    for values in (row.values for row in rows):
        level = values.get("level")
        profile, difficulty = values.get("profile"), values.get("difficulty")
        # With the defaults of a plan, which could not name one condition twice.
        key = (values["task"], profile or Profile.PAPER, level, difficulty or Difficulty.EASY)
        task: dict[str, Any] = {"env": values["task"], "family": values["family"]}
        if raw_map.get("success_quality") is not None:
            task["success_quality"] = round(float(raw_map["success_quality"]), QUALITY_DECIMALS)
        if level is not None:
            task["levels"] = [level]
            task |= {"profile": str(key[1]), "difficulties": [str(key[3])]}
        if level is None:
            key = (values["task"], None, None, None)
        tasks.setdefault(key, task)
        policies.setdefault(values["policy"], {"name": values["policy"]})
        sides.setdefault(values["side"].value)
        cell = (*key, values["policy"], values["side"])
        counts[cell] = counts.get(cell, 0) + 1
    data = {
        "name": f"Imported: {path.name}"[:100],
        "description": "Episodes of another log. What is below was found in it, not planned.",
        "tasks": list(tasks.values()),
        "policies": list(policies.values()),
        "episodes": max(counts.values()),
        "sides": list(sides),
        "order": "blocked",
        "traces": traces,
        "imported": {
            "file": path.name,
            "sha256": maker.sha256,
            "rows": len(rows),
            "column_map": dict(raw_map),
        },
    }
    try:
        return parse_plan(yaml.safe_dump(data), source=str(path))
    except PlanError as err:
        raise InputError(
            f"{err}; rename it with `values` in the {maker.map.WHAT[0]}, or where the map itself"
            " names it: in constants, or as a key of policies"
        ) from err


def check_new(folder: Path) -> None:
    """Refuse a place where an import cannot put its trial directory, before anything is read.

    Raises:
        TrialDirectoryError: If there is something already, or it cannot be written.
    """
    # Said here, since for a trial `check_new` would advise to resume it.
    with explained(folder, "cannot be used"):
        if folder.is_dir() and any(folder.iterdir()):
            raise TrialDirectoryError(
                f"{folder}: exists already and is not empty; choose another --out"
            )
    TrialDirectory.check_new(folder)


def write_trial(
    folder: Path,
    plan: TrialPlan,
    rows: Sequence[ImportedRow],
    *,
    notes: Iterable[str] = (),
    warn: Callable[[str], None] | None = None,
    fill: Callable[[Path], None] | None = None,
) -> TrialDirectory:
    """Write imported rows as a new trial directory; it appears complete or not at all.

    Args:
        folder: Directory to create.
        plan: What describes them.
        rows: The rows.
        notes: What somebody should know who looks at the rows only.
        warn: Called with each of them before anything is written.
        fill: Puts more files into the directory while it has another name, such as traces; may
            complete the values of the rows.

    Raises:
        TrialDirectoryError: If it cannot be written.
        InputError: If a row is not valid.
    """
    for note in notes:
        if warn is not None:
            warn(note)
    with explained(folder, "cannot be created"):
        folder.parent.mkdir(parents=True, exist_ok=True)
    staging = folder.with_name(f".{folder.name}.{os.getpid()}{PART_SUFFIX}.import")
    try:
        trial = TrialDirectory.create(staging, plan, planned=len(rows))
        if fill is not None:
            fill(staging)
        episodes = [row.episode(trial.plan_digest) for row in rows]
        with trial.lock(), EpisodeStore(staging, durable=True) as store:
            for first in range(0, len(episodes), _BATCH):
                store.append(episodes[first : first + _BATCH])
            trial.write_manifest(status="complete", store=store)
        try:
            staging.rename(folder)
        except OSError as err:
            raise TrialDirectoryError(
                f"{folder}: cannot take its place: {err.strerror}; choose another --out"
            ) from err
    finally:
        with suppress(OSError):
            shutil.rmtree(staging)
    return TrialDirectory.open(folder)
