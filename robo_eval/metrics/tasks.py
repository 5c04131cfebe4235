"""Which section of its plan an episode was played under, and what the sections are called."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Arm
from robo_eval.core.wording import in_short

if TYPE_CHECKING:
    import pandas as pd

    from robo_eval.core.plan import TaskPlan, TrialPlan

VARIANT: Final = "task_variant"
"""Column that `episodes_frame` adds: what tells the task from others of its family."""

_ID: Final = re.compile(r"(?:control-)?t(\d+)-")
"""How the ids of planned episodes begin: with the number of their task in the plan."""
_SETTINGS: Final = ("max_ticks", "quality_range", "success_quality", "success")
_LONGEST: Final = 60
"""Characters of a variant; a longer one gives way to the number of the task."""


class TaskLookup:
    """Finds the task of a plan that a row was played under.

    Args:
        plan: The plan the rows were recorded under.
    """

    def __init__(self, plan: TrialPlan) -> None:
        self._tasks = plan.tasks
        # What another lab calls its episodes says nothing about a plan made from them.
        self._has_ids = plan.imported is None

    def index_of(self, row: Mapping[Hashable, Any], alike: Callable[[int], Hashable]) -> int | None:
        """Number of the task in the plan.

        The id of an episode that was played here begins with it. Elsewhere level, difficulty and
        profile must lead to one task, or to several that are alike.

        Args:
            row: An episode, by column: episode_id, arm, task, level, difficulty, profile.
            alike: What tasks must agree in to be taken for one another, given their number.

        Returns:
            The number; None if no task of the plan has this environment.

        Raises:
            InputError: If several tasks could be meant that are not alike.
        """
        fitting = [i for i, task in enumerate(self._tasks) if task.env == row["task"]]
        if not fitting:
            return None
        own = [i for i in fitting if _plays(self._tasks[i], row)]
        match = _ID.match(str(row["episode_id"])) if self._has_ids else None
        named = int(match[1]) if match else -1
        # A control is played at level 0, which its section need not name.
        if named in (fitting if row["arm"] == Arm.CONTROL.value else own):
            return named
        for candidates in (own, fitting):
            if candidates and len({alike(i) for i in candidates}) == 1:
                return candidates[0]
        if named in fitting:
            return named
        raise InputError(
            f"episode {row['episode_id']}: {len(fitting)} tasks of the plan play {row['task']!r}"
            " differently, and neither level nor id says which one was played"
        )

    def kind_of(self, row: Mapping[Hashable, Any]) -> tuple[Hashable, ...]:
        """What decides about `index_of`: rows of one kind were played under one task."""
        match = _ID.match(str(row["episode_id"])) if self._has_ids else None
        cells = (row[name] for name in ("arm", "task", "level", "difficulty", "profile"))
        return (match[1] if match else None, *cells)


def _plays(task: TaskPlan, row: Mapping[Hashable, Any]) -> bool:
    if task.levels is None:
        return row["level"] is None
    is_described_so = row["profile"] in (None, task.profile.value)
    return (
        is_described_so and row["level"] in task.levels and row["difficulty"] in task.difficulties
    )


def task_variants(plan: TrialPlan) -> tuple[str, ...]:
    """What tells each task of a plan from the others of its family.

    Tasks of one family that differ in environment, keywords or scoring are different tasks, and
    their episodes must not be averaged. What they differ in is their variant.

    Returns:
        One text a task, in the order of the plan, such as `{balls: 0}`; empty where the family
        says all, and for the task that leaves a keyword to its default.

    Example:
        >>> from robo_eval.core.plan import TrialPlan
        >>> tasks = [{"kwargs": {"balls": 0}}, {"kwargs": {"balls": 2}}, {"family": "other"}]
        >>> plan = TrialPlan(name="x", tasks=tasks, policies=["random"])
        >>> task_variants(plan)
        ('{balls: 0}', '{balls: 2}', '')
    """
    by_family: dict[str, list[int]] = {}
    for index, task in enumerate(plan.tasks):
        by_family.setdefault(task.family or task.env, []).append(index)
    variants = [""] * len(plan.tasks)
    for members in by_family.values():
        settings = {index: _settings(plan.tasks[index]) for index in members}
        names = list(dict.fromkeys(name for given in settings.values() for name in given))
        telling = [
            name for name in names if len({given.get(name) for given in settings.values()}) > 1
        ]
        for index, given in settings.items():
            # Sections with the same settings are one task, whatever their levels.
            first = next(i for i, other in settings.items() if other == given)
            variants[index] = _variant(first, given, telling)
    return tuple(variants)


def with_novelty(variant: str, novelty: Mapping[str, float]) -> str:
    """The variant of a task played with novelty by its magnitude.

    Example:
        >>> with_novelty("", {"friction": 0.5, "payload": 2.0})
        '{friction: 0.5, payload: 2}'
    """
    if not novelty:
        return variant
    told = ", ".join(f"{axis}: {in_short(size)}" for axis, size in sorted(novelty.items()))
    return f"{variant} {{{told}}}".lstrip()


def task_label(family: str, variant: str) -> str:
    """What a task is called: its family, and what tells it from others of that family."""
    return f"{family} {variant}" if variant else family


def _settings(task: TaskPlan) -> dict[str, str]:
    """What makes a task the one it is, as text, but for its levels."""
    settings = {f"kwargs.{name}": as_text(value) for name, value in sorted(task.kwargs.items())}
    return {
        "env": task.env,
        **settings,
        **{name: as_text(getattr(task, name)) for name in _SETTINGS},
    }


def as_text(value: object) -> str:
    """A setting of a plan as a person would write it."""
    return json.dumps(value, sort_keys=True, default=str, ensure_ascii=False)


def _variant(index: int, given: Mapping[str, str], telling: list[str]) -> str:
    parts = [
        f"{name.removeprefix('kwargs.')}: {given[name]}"
        for name in telling
        if name != "env" and name in given
        if name.startswith("kwargs.") or given[name] != "null"
    ]
    settings = "{" + ", ".join(parts) + "}" if parts else ""
    if len(settings) > _LONGEST:
        settings = f"{{tasks.{index}}}"
    return " ".join(part for part in (given["env"] if "env" in telling else "", settings) if part)


def variants_of(table: pd.DataFrame, plan: TrialPlan | None) -> list[str]:
    """The variant of the task of each row; see `task_variants`.

    Args:
        table: Episodes; columns episode_id, arm, task, family, level, difficulty, profile.
        plan: The plan they were recorded under, if there is one.

    Raises:
        InputError: If a row could belong to several tasks that differ.
    """
    if plan is None or plan.imported is not None:
        return _with_magnitudes(_variants_by_environment(table), table)
    variants = task_variants(plan)
    found = _variants_by_plan(table, plan, variants) if any(variants) else [""] * len(table)
    has_axes = any(task.axes for task in plan.tasks)
    return _with_magnitudes(found, table) if has_axes else found


def axes_of(novelty: object) -> Mapping[str, float]:
    """The magnitudes that a row's novelty was asked for by axis; none for that of a level."""
    asked = novelty.get("axes") if isinstance(novelty, Mapping) else None
    return asked if isinstance(asked, Mapping) else {}


def _with_magnitudes(variants: list[str], table: pd.DataFrame) -> list[str]:
    if "novelty" not in table.columns:
        return variants
    cells = zip(variants, table["novelty"].tolist(), strict=True)
    return [with_novelty(variant, axes_of(cell)) for variant, cell in cells]


def _variants_by_plan(table: pd.DataFrame, plan: TrialPlan, variants: Sequence[str]) -> list[str]:
    lookup = TaskLookup(plan)

    def alike(index: int) -> Hashable:
        return plan.tasks[index].family or plan.tasks[index].env, variants[index]

    found = []
    known: dict[tuple[Hashable, ...], str] = {}
    for row in rows_for_lookup(table):
        kind = lookup.kind_of(row)
        if kind not in known:
            index = lookup.index_of(row, alike)
            known[kind] = "" if index is None else variants[index]
        found.append(known[kind])
    return found


def rows_for_lookup(table: pd.DataFrame) -> list[dict[Hashable, Any]]:
    """The rows of a table with what `TaskLookup` reads of them."""
    names = ("episode_id", "arm", "task", "level", "difficulty", "profile")
    columns = (table[name] for name in names)
    return [dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True)]


def _variants_by_environment(table: pd.DataFrame) -> list[str]:
    """Without a plan only the environment can tell tasks of one family apart."""
    environments: dict[object, set[str]] = {}
    rows = list(zip(table["family"], table["task"], strict=True))
    for family, task in set(rows):
        environments.setdefault(family or task, set()).add(task)
    variants = {
        (family, task): task if len(environments[family or task]) > 1 else ""
        for family, task in set(rows)
    }
    return [variants[row] for row in rows]
