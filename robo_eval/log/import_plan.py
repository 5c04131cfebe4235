"""The plan of an imported trial: what was found in it, and that it was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from robo_eval.core.episode import QUALITY_DECIMALS
from robo_eval.core.errors import InputError, PlanError
from robo_eval.core.kinds import Difficulty, Profile
from robo_eval.core.plan import TrialPlan, parse_plan


def plan_of_import(
    path: Path,
    raw_map: Mapping[str, Any],
    sha256: str,
    rows: Sequence[Mapping[str, Any]],
    *,
    traces: str = "none",
) -> TrialPlan:
    """A plan that describes what was found, and says that it was.

    Args:
        path: What was imported.
        raw_map: The map it was read by, as written.
        sha256: SHA-256 of what was imported.
        rows: The values of each row by our columns.
        traces: Which episodes have a trace, in the words of a plan.

    Raises:
        InputError: If a name in the rows is none that a plan can hold.
    """
    tasks: dict[tuple[Any, ...], dict[str, Any]] = {}
    counts: dict[tuple[Any, ...], int] = {}
    policies: dict[str, dict[str, str]] = {}
    sides: dict[str, None] = {}
    for values in rows:
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
            "sha256": sha256,
            "rows": len(rows),
            "column_map": dict(raw_map),
        },
    }
    try:
        return parse_plan(yaml.safe_dump(data), source=str(path))
    except PlanError as err:
        raise InputError(f"{err}; rename it with `values` in the column map") from err
