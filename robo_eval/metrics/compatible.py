"""Whether the policies of two runs met the same test, and where not."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, Final

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval.core.names import listing
from robo_eval.metrics.tasks import as_text, axes_of, task_label, with_novelty

if TYPE_CHECKING:
    import pandas as pd

    from robo_eval.core.plan import TaskPlan, TrialPlan

_TASK: Final = ("env", "kwargs", "quality_range", "success_quality", "max_ticks", "success")
"""What makes a task the one it is, whatever conditions it is played in."""
_CONDITION: Final = ("task", "level", "difficulty", "profile", "drift_step")
"""What episodes are matched by: without one value in common nothing can be compared."""
_LEVEL: Final = ("task", "level", "difficulty", "profile")
_VERSIONS: Final = {"behaviour": 12, "task_version": None}
"""What one level has in common in all its episodes, and how many characters of it are shown."""
_TRIALS: Final = ("episodes", "onset", "onset_tick", "share", "condition")
"""What an episode of a trial was met after, and what was known of the onset."""
_SETTINGS: Final = ("level", "min_coverage")
"""Settings of the metrics that a comparison depends on."""


def incompatibilities(first: TrialPlan, second: TrialPlan) -> list[str]:
    """What differs between two plans so that their policies cannot be compared.

    Title, description, order, traces and retries do not matter, and neither does the number of
    episodes: the seeds that both plans name are compared, and the others left out. Where a trial
    was imported its plan only says what was found: the rows say which conditions and seeds both
    played, and only how a task of both is scored must be the same.

    Args:
        first: One plan.
        second: The other.

    Returns:
        One text a field, `seeds.first: 1000 and 2000`; empty if the policies can be compared.

    Example:
        >>> from robo_eval.core.plan import TrialPlan
        >>> plan = TrialPlan(name="x", tasks=[{"levels": [0, 1]}], policies=["random"])
        >>> other = TrialPlan(name="y", tasks=[{"levels": [0]}], policies=["balancer"], episodes=9)
        >>> incompatibilities(plan, other)
        ['tasks.0.levels: [0, 1] and [0]']
    """
    is_planned = first.imported is None and second.imported is None
    differing = _task_differences if is_planned else _definition_differences
    found = [] if _conditions(first) == _conditions(second) else differing(first, second)
    if is_planned:
        found += _difference("seeds.first", first.seeds.first, second.seeds.first)
    if is_planned or not set(first.sides) & set(second.sides):
        found += _difference("sides", _sorted(first.sides), _sorted(second.sides))
    if is_planned:
        voids = [_sorted(plan.void_reasons) for plan in (first, second)]
        found += _difference("void_reasons", *voids)
        if set(first.sides) != {Side.SIM}:
            found += _difference(
                "max_missed_ticks", first.max_missed_ticks, second.max_missed_ticks
            )
        found += _difference("judging.verdict", first.judging.verdict, second.judging.verdict)
        stops = [plan.stopping and plan.stopping.model_dump() for plan in (first, second)]
        found += _difference("stopping", *stops)
        rules = [plan.trials.model_dump() if plan.trials else {} for plan in (first, second)]
        for name in _TRIALS:
            found += _difference(f"trials.{name}", *(own.get(name) for own in rules))
    for name in _SETTINGS:
        values = [getattr(plan.metrics, name) for plan in (first, second)]
        found += _difference(f"metrics.{name}", *values)
    return found


def incompatible_rows(
    first: pd.DataFrame, second: pd.DataFrame, *, whatever_conditions: bool = False
) -> list[str]:
    """What differs between the episodes of two policies so that they cannot be compared.

    Versions of the scoring rules, robots of each physical side, calibration snapshots (in
    simulation another snapshot is another simulator), and conditions of which they share none.

    Args:
        first: Checked episodes of one policy, see `metrics.frame.episodes_frame`.
        second: Of the other.
        whatever_conditions: Whether they may share no condition, as where a third policy links
            them.

    Returns:
        One text a field, `robot (real): arm_1 and arm_2`; empty if they can be compared.
    """
    found: list[str] = []
    scored = [rows[rows["quality"].notna()] for rows in (first, second)]
    if all(len(rows) for rows in scored):
        found += _differing(scored, "score_version", "score_version")
    for side in Side:
        own = [rows[rows["side"] == side.value] for rows in (first, second)]
        if all(len(rows) for rows in own):
            columns = ("calibration",) if side is Side.SIM else ("robot", "calibration")
            for column in columns:
                found += _differing(own, column, f"{column} ({side.value})")
            for column in () if whatever_conditions else _CONDITION:
                if not set(map(str, own[0][column])) & set(map(str, own[1][column])):
                    found += _differing(own, column, f"{column} ({side.value})")
    return found


def check_levels(table: pd.DataFrame, *, across_versions: bool) -> tuple[str, ...]:
    """Refuse scored episodes of levels that changed in between.

    A level that behaves otherwise is another test under the same number. Rows without a digest or
    version, as of a robot, an import or an older trial, say nothing of it.

    Args:
        table: Checked episodes, with the trial directory of each in the column `trial`.
        across_versions: Whether to warn of them instead.

    Returns:
        A warning, or nothing.

    Raises:
        InputError: If levels changed; the message names them, and what they were in each trial.
    """
    scored = table[table["quality"].notna()]
    changed: dict[str, str] = {}
    for column, shown in _VERSIONS.items():
        for name, rows in levels_by_name(scored[scored[column].notna()]).items():
            if len(set(rows[column])) > 1:
                sides = [
                    f"{str(value)[:shown]}{_with_engine(own)} in"
                    f" {listing(sorted(set(own['trial'])))}"
                    for value, own in rows.groupby(column, sort=False)
                ]
                changed.setdefault(name, f"{column} {', '.join(sides)}")
    if not changed:
        return ()
    first, what = next(iter(changed.items()))
    others = f", as did {listing(list(changed)[1:])}" if len(changed) > 1 else ""
    text = f"{first} changed between episodes: {what}{others}"
    if across_versions:
        return (f"{text}; they are mixed all the same, as --across-versions asks for",)
    raise InputError(
        f"{text}; play the older episodes again, or mix them all the same by --across-versions"
    )


def levels_by_name(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Episodes by level: `RoboEval/Task-v0 level 3 easy (paper)`; a task without has one."""
    from robo_eval.metrics.frame import is_missing  # pandas, which a refusal need not wait for

    return {
        task_label(str(task), str(variant))
        if is_missing(level)
        else f"{task} level {level} {difficulty} ({profile})": rows
        for (task, level, difficulty, profile, variant), rows in table.groupby(
            [*_LEVEL, table["novelty"].map(lambda cell: with_novelty("", axes_of(cell)))],
            dropna=False,
            sort=False,
        )
    }


def _with_engine(rows: pd.DataFrame) -> str:
    engines = sorted(set(rows["engine"].dropna()))
    return f" ({', '.join(engines)})" if engines else ""


def _differing(tables: list[pd.DataFrame], column: str, name: str) -> list[str]:
    from robo_eval.metrics.frame import is_missing  # pandas, which a refusal need not wait for

    one, other = (
        sorted({"none" if is_missing(value) else str(value) for value in rows[column].unique()})
        for rows in tables
    )
    return [] if one == other else [f"{name}: {', '.join(one)} and {', '.join(other)}"]


def _difference(name: str, one: Any, other: Any) -> list[str]:
    return [] if one == other else [f"{name}: {_text(one)} and {_text(other)}"]


def _text(value: Any) -> str:
    return "none" if value is None else as_text(value)


def _sorted(values: Any) -> list[str]:
    return sorted(str(value) for value in values)


# Tasks -------------------------------------------------------------------------------------------


def _conditions(plan: TrialPlan) -> dict[Hashable, set[Hashable]]:
    """Levels and difficulties by task: the order and the sections they stand in do not matter."""
    found: dict[Hashable, set[Hashable]] = {}
    for condition in plan.conditions():
        task = plan.tasks[condition.task]
        key = tuple(_text(value) for value in _fields(task, with_levels=False).values())
        where = (condition.level, condition.difficulty, condition.novelty)
        found.setdefault(key, set()).add(where)
    return found


def _fields(task: TaskPlan, *, with_levels: bool) -> Mapping[str, Any]:
    """The fields of a task that matter, what means the same written alike."""
    fields: dict[str, Any] = {name: _plain(getattr(task, name)) for name in _TASK}
    # Without a family the environment stands in for it.
    fields["family"] = task.family or task.env
    fields["profile"] = None if task.levels is None else task.profile.value
    if with_levels:
        fields["levels"] = None if task.levels is None else sorted(task.levels)
        fields["difficulties"] = None if task.levels is None else _sorted(task.difficulties)
        fields["axes"], fields["pairs"] = _plain(task.axes), _plain(task.pairs)
    return fields


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _definition_differences(first: TrialPlan, second: TrialPlan) -> list[str]:
    """Fields in which tasks differ that both trials call by one name."""
    one, other = _definitions(first), _definitions(second)
    return [
        f"{place}: {one[place]} and {other[place]}"
        for place in one
        if one[place] != other.get(place, one[place])
    ]


def _definitions(plan: TrialPlan) -> dict[str, str]:
    """What the sections of a task say in each field that matters, by task and field."""
    found: dict[str, set[str]] = {}
    for task in plan.tasks:
        for field in _TASK:
            place = f"{task.family or task.env}: {field}"
            found.setdefault(place, set()).add(_text(_plain(getattr(task, field))))
    return {place: " or ".join(sorted(values)) for place, values in found.items()}


def _task_differences(first: TrialPlan, second: TrialPlan) -> list[str]:
    """Fields of the sections that differ, in order; of different numbers of sections, that."""
    n, m = len(first.tasks), len(second.tasks)
    if n != m:
        return [f"tasks: {n} and {m} sections that do not name the same conditions"]
    found = []
    for index, pair in enumerate(zip(first.tasks, second.tasks, strict=True)):
        one, other = (_fields(task, with_levels=True) for task in pair)
        # What follows from another field that differs is not said again.
        implied = {"family"} if not any(task.family for task in pair) else set()
        if None in (one["levels"], other["levels"]):
            implied |= {"profile", "difficulties"}
        for name in (name for name in one if name not in implied):
            found += _difference(f"tasks.{index}.{name}", one[name], other[name])
    return found
