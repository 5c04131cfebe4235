"""Episodes of trials as performances in the tests of a study."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from robo_eval.analysis.trial import scored_frame
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Arm, Difficulty, Profile
from robo_eval.core.plan import TaskPlan, TrialPlan
from robo_eval.log.directory import TrialDirectory
from robo_eval.metrics.tasks import TaskLookup, as_text, rows_for_lookup
from robo_eval.study.entries import TaskTest, Test

ALL: Final = "all"
"""Stands for every difficulty together."""
_OWN_KEYS: Final = {"level", "profile", "difficulty"}
"""Keywords that have a column of their own in a log."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Played:
    """What one policy did in the tests of a study.

    Attributes:
        policy: Its name.
        episodes: Performances in [0, 1] of its scored episodes, one row for each test; a row may be
            empty.
    """

    policy: str
    episodes: list[NDArray[np.float64]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """Policies that were played under the same conditions, and can be compared.

    Attributes:
        side: Where: `sim`, `twin` or `real`.
        difficulty: At which difficulty; `ALL` for every one there is, `""` if the tests have none.
        agents: The policies, by name.
        table: Their episodes, with the columns of `core.episode.COLUMNS`.
    """

    side: str
    difficulty: str
    agents: list[Played]
    table: pd.DataFrame


def matched(tests: Sequence[Test], trials: Sequence[TrialDirectory]) -> list[Group]:
    """The episodes of trials that are of the tests of a study, by side and difficulty.

    An episode is of a test if environment, level, profile and further keywords are those of the
    test. The difficulty need not be: tests are placed at one, and agents ranked at each they were
    played at, and at all of them together. At level 0, which has nothing that could be easy or
    hard, episodes of any difficulty count in each where a policy has none of that one.

    Args:
        tests: Of the study.
        trials: Played trials; no two may have the same policy on the same side.

    Raises:
        InputError: If no episode is of a test, two trials have the same policy, or a trial counts
            another return as a performance of 1.
        TrialDirectoryError: If a log cannot be read.
    """
    tables = [_table(tests, trial) for trial in trials]
    _check_names(trials, tables)
    table = pd.concat(tables, ignore_index=True)
    if table.empty:
        raise InputError(_nothing(tests, trials))
    names = [_difficulty(one) for one in table["difficulty"]]
    table["difficulty_name"] = names
    order: list[str] = [one.value for one in Difficulty if one.value in set(names)]
    wanted = [*order, ALL] if len(order) > 1 else order or [""]
    return [
        _group(side, name, table[table["side"] == side], len(tests))
        for side in sorted(set(table["side"]), key=["sim", "twin", "real"].index)
        for name in wanted
    ]


def _group(side: str, name: str, table: pd.DataFrame, count: int) -> Group:
    agents, kept = [], []
    for policy, own in table.groupby("policy", sort=True):
        rows = [_of_difficulty(own[own["test"] == place], name) for place in range(count)]
        agents.append(
            Played(policy=str(policy), episodes=[one["quality"].to_numpy(float) for one in rows])
        )
        kept += rows
    chosen = pd.concat(kept, ignore_index=True)
    if name and name != ALL:
        chosen["difficulty"] = name  # those of level 0 too
    return Group(side=side, difficulty=name, agents=agents, table=chosen)


def _of_difficulty(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    is_level_0 = bool(len(rows)) and rows["level"].iloc[0] == 0
    if name in ("", ALL):
        # At level 0 one seed is one episode, whatever the difficulty it was played under.
        is_repeat = rows["seed"].notna() & rows.duplicated("seed") & is_level_0
        every: pd.DataFrame = rows.loc[~is_repeat]
        return every
    own: pd.DataFrame = rows.loc[rows["difficulty_name"] == name]
    if len(own) or not is_level_0:
        return own
    others = sorted(set(rows["difficulty_name"]))
    first: pd.DataFrame = rows.loc[rows["difficulty_name"] == others[0]]
    return first


def _table(tests: Sequence[Test], trial: TrialDirectory) -> pd.DataFrame:
    """Scored episodes of the main arm that are of a test, with the place of that test."""
    places = {_key_of(test): place for place, test in enumerate(tests)}
    table = scored_frame(trial)
    table = table[(table["arm"] == Arm.MAIN.value) & table["quality"].notna()]
    table = table.reset_index(drop=True)
    tasks = _tasks_of(table, trial.plan)
    found: list[int | None] = []
    for task, level, profile in zip(tasks, table["level"], table["profile"], strict=True):
        place = None if task is None else places.get(_key(task, level, profile))
        if place is not None and task is not None:
            _check_returns(tests[place], task, trial)
        found.append(place)
    table["test"] = pd.Series(found, dtype="Int64")
    kept: pd.DataFrame = table.loc[table["test"].notna()]
    return kept


def _tasks_of(table: pd.DataFrame, plan: TrialPlan) -> list[TaskPlan | None]:
    """The task each episode is of; None if the plan does not say."""
    if plan.imported is not None:
        # An imported log has no more to tell its tasks apart by than their environment.
        by_env = {task.env: task for task in plan.tasks}
        return [by_env.get(env) for env in table["task"]]
    lookup = TaskLookup(plan)

    def alike(index: int) -> Hashable:
        task = plan.tasks[index]
        return task.env, task.profile, as_text(task.kwargs), task.quality_range

    places = [lookup.index_of(row, alike) for row in rows_for_lookup(table)]
    return [None if place is None else plan.tasks[place] for place in places]


def _key(task: TaskPlan, level: Any, profile: Any) -> tuple[str, ...]:  # noqa: ANN401 - cells
    is_leveled = not pd.isna(level)
    own = str(profile) if isinstance(profile, str) else task.profile.value
    return (
        task.env,
        str(int(level)) if is_leveled else "",
        own if is_leveled else "",
        as_text(task.kwargs),
    )


def _key_of(test: Test) -> tuple[str, ...]:
    if not isinstance(test, TaskTest):
        return ("set", test.name, "", "")
    kwargs = dict(test.kwargs)
    is_leveled = "level" in kwargs
    return (
        test.task.env,
        str(kwargs["level"]) if is_leveled else "",
        str(kwargs.get("profile", Profile.PAPER.value)) if is_leveled else "",
        as_text({key: value for key, value in kwargs.items() if key not in _OWN_KEYS}),
    )


def _check_returns(test: Test, task: TaskPlan, trial: TrialDirectory) -> None:
    assert isinstance(test, TaskTest)
    if tuple(task.quality_range) != tuple(test.task.returns):
        raise InputError(
            f"{trial.path}: quality_range is {list(task.quality_range)}; {test.name} of the study"
            f" counts returns {list(test.task.returns)} as performance 0 and 1"
        )


def _check_names(trials: Sequence[TrialDirectory], tables: Sequence[pd.DataFrame]) -> None:
    seen: dict[tuple[str, str], TrialDirectory] = {}
    for trial, table in zip(trials, tables, strict=True):
        for name in sorted(set(zip(table["side"], table["policy"], strict=True))):
            if name in seen:
                raise InputError(
                    f"{trial.path} and {seen[name].path} both have {name[1]} on side {name[0]};"
                    " rank them one after the other, or name their policies apart"
                )
            seen[name] = trial


def _nothing(tests: Sequence[Test], trials: Sequence[TrialDirectory]) -> str:
    of_study = sorted({" ".join(filter(None, (key[0], key[2]))) for key in map(_key_of, tests)})
    of_trials = sorted(
        {
            f"{task.env} {task.profile.value}" if task.levels is not None else task.env
            for trial in trials
            for task in trial.plan.tasks
        }
    )
    return (
        f"{', '.join(str(trial.path) for trial in trials)}: no scored episode is of a test of the"
        f" study; it is of {', '.join(of_study)}, played was {', '.join(of_trials)}"
    )


def _difficulty(cell: Any) -> str:  # noqa: ANN401 - a cell
    return cell if isinstance(cell, str) else ""
