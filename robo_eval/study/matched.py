"""Episodes of trials as performances in the tests of a study."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from robo_eval.analysis.trial import scored_frame
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Arm, Difficulty, Profile
from robo_eval.core.plan import TaskPlan, TrialPlan
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.provenance import software
from robo_eval.metrics.coverage import Coverage, coverage_of
from robo_eval.metrics.tables import groups, main_rows
from robo_eval.metrics.tasks import TaskLookup, as_text, rows_for_lookup
from robo_eval.study.causes import listed
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
        gaps: Of tests without episodes, at which difficulties they are lacking, by the place of the
            test; where that is not said, they are lacking altogether.
        seeds: Seeds of these episodes where tests share them, as numbers that are the same for all
            policies of a group; None where each episode is a draw by itself.
        coverage: Scored episodes out of those that were begun; None if that is not known.
    """

    policy: str
    episodes: list[NDArray[np.float64]]
    seeds: list[NDArray[np.int64]] | None = None
    gaps: Mapping[int, str] = field(default_factory=dict)
    coverage: Coverage | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PolicyGroup:
    """Policies that were played under the same conditions, and can be compared.

    Attributes:
        side: Where: `sim`, `twin` or `real`.
        difficulty: At which difficulty; `ALL` for every one there is, `""` if the tests have none.
        agents: The policies, by name.
        table: Their episodes, those without a score too, with the columns of
            `core.episode.COLUMNS`, and the trial directory of each in `trial`.
    """

    side: str
    difficulty: str
    agents: list[Played]
    table: pd.DataFrame


def matched(tests: Sequence[Test], trials: Sequence[TrialDirectory]) -> list[PolicyGroup]:
    """The episodes of trials that are of the tests of a study, by side and difficulty.

    An episode is of a test if environment, level, profile and further keywords are those of the
    test. The difficulty need not be: tests are placed at one, and agents ranked at each they were
    played at, and at all of them together; there a test counts for a policy only if it has episodes
    at every difficulty that any policy has. At level 0, which has nothing that could be easy or
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
    if not table["quality"].notna().any():
        raise InputError(_nothing(tests, trials))
    table["difficulty_name"] = [_difficulty(one) for one in table["difficulty"]]
    return [
        _group(side, name, table[table["side"] == side], len(tests))
        for side in sorted(set(table["side"]), key=["sim", "twin", "real"].index)
        for name in _wanted(table[table["side"] == side])
    ]


def warnings_of(trials: Sequence[TrialDirectory]) -> tuple[str, ...]:
    """Why episodes may not be of the tests that a study is of, or not all there.

    A study does not hold how its levels behave, so only the software tells whether the levels of a
    log are the same.

    Args:
        trials: Played trials.

    Raises:
        TrialDirectoryError: If a manifest cannot be read.
    """
    found = []
    for trial in trials:
        manifest = trial.manifest
        if manifest is None or trial.plan.imported is not None:
            continue
        if manifest.software != software():
            found.append(
                f"{trial.path}: played by {manifest.software}, and this is {software()}; levels"
                " that changed in between are not those of the study"
            )
        if manifest.status != "complete":
            found.append(
                f"{trial.path}: the trial is not finished; {manifest.rows} of {manifest.planned}"
                " episodes were there when it last stopped"
            )
    return tuple(found)


def _wanted(table: pd.DataFrame) -> list[str]:
    """The difficulties that something was scored at, and `ALL` if there are several."""
    names = set(table.loc[table["quality"].notna(), "difficulty_name"])
    order: list[str] = [one.value for one in Difficulty if one.value in names]
    return [*order, ALL] if len(order) > 1 else order or [""]


def _group(side: str, name: str, table: pd.DataFrame, count: int) -> PolicyGroup:
    played, kept = {}, []
    table = table.assign(seed_number=pd.factorize(table["seed"], sort=True)[0])
    common = [_scored_at(table[table["test"] == place]) for place in range(count)]
    for policy, own in table.groupby("policy", sort=True):
        rows = [_of_difficulty(own[own["test"] == place], name) for place in range(count)]
        gaps = {
            place: listed(sorted(missing))
            for place in range(count)
            if name == ALL and (missing := common[place] - _scored_at(rows[place]))
        }
        rows = [one.iloc[:0] if place in gaps else one for place, one in enumerate(rows)]
        played[str(policy)] = (rows, gaps)
        kept += rows
    chosen = pd.concat(kept, ignore_index=True)
    if name and name != ALL:
        chosen["difficulty"] = name  # those of level 0 too
    counts = {
        str(policy): coverage_of(rows)
        for (policy,), rows in groups(main_rows(chosen), ("policy",)).items()
    }
    agents = [
        Played(
            policy=policy,
            episodes=[one["quality"].dropna().to_numpy(float) for one in rows],
            seeds=_shared_seeds([one[one["quality"].notna()] for one in rows]),
            gaps=gaps,
            coverage=counts.get(policy),
        )
        for policy, (rows, gaps) in played.items()
    ]
    chosen = chosen.drop(columns="seed_number")
    return PolicyGroup(side=side, difficulty=name, agents=agents, table=chosen)


def _shared_seeds(rows: Sequence[pd.DataFrame]) -> list[NDArray[np.int64]] | None:
    """Numbers of the seeds of episodes, where several episodes are of one seed; else None."""
    found = [one["seed_number"].to_numpy(np.int64) for one in rows]
    every = np.concatenate(found)
    if not len(every) or (every < 0).any() or len(np.unique(every)) == len(every):
        return None
    return found


def _scored_at(rows: pd.DataFrame) -> set[str]:
    """The difficulties that a test was scored at; level 0 has none."""
    return set(rows.loc[rows["quality"].notna() & (rows["level"] != 0), "difficulty_name"])


def _of_difficulty(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    is_level_0 = bool(len(rows)) and rows["level"].iloc[0] == 0
    if name in ("", ALL):
        # At level 0 one seed is one episode, whatever the difficulty it was played under; of
        # attempts at it the scored one counts.
        every = rows.iloc[np.argsort(rows["quality"].isna(), kind="stable")]
        is_repeat = every["seed"].notna() & every.duplicated("seed") & is_level_0
        first: pd.DataFrame = every.loc[~is_repeat].sort_index()
        return first
    own: pd.DataFrame = rows.loc[rows["difficulty_name"] == name]
    if not is_level_0 or own["quality"].notna().any():
        return own
    others = sorted(set(rows.loc[rows["quality"].notna(), "difficulty_name"]))
    return rows.loc[rows["difficulty_name"] == others[0]] if others else own


def _table(tests: Sequence[Test], trial: TrialDirectory) -> pd.DataFrame:
    """Episodes of the main arm that are of a test, with the place of that test."""
    places = {key_of_test(test): place for place, test in enumerate(tests)}
    table = scored_frame(trial)
    table = table[table["arm"] == Arm.MAIN.value].reset_index(drop=True)
    tasks = _tasks_of(table, trial.plan)
    found: list[int | None] = []
    for task, level, profile in zip(tasks, table["level"], table["profile"], strict=True):
        place = None if task is None else places.get(key_of(task, level, profile))
        if place is not None and task is not None:
            check_returns(tests[place], task, str(trial.path))
        found.append(place)
    table["test"] = pd.Series(found, dtype="Int64")
    table["trial"] = str(trial.path)
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
        return task.env, task.profile, as_text(_keywords(task)), task.quality_range

    places = [lookup.index_of(row, alike) for row in rows_for_lookup(table)]
    return [None if place is None else plan.tasks[place] for place in places]


def key_of(task: TaskPlan, level: Any, profile: Any) -> tuple[str, ...]:
    """What an episode of a task shares with the test that it is of; see `key_of_test`."""
    is_leveled = not pd.isna(level)
    own = str(profile) if isinstance(profile, str) else task.profile.value
    return (
        task.env,
        str(int(level)) if is_leveled else "",
        own if is_leveled else "",
        as_text(_keywords(task)),
    )


def _keywords(task: TaskPlan) -> dict[str, Any]:
    """Further keywords of `gymnasium.make`, a time limit among them."""
    limit = {} if task.max_ticks is None else {"max_episode_steps": task.max_ticks}
    return {**task.kwargs, **limit}


def key_of_test(test: Test) -> tuple[str, ...]:
    """Environment, level, profile and further keywords of a test."""
    if not isinstance(test, TaskTest):
        return (f"set {test.name}", "", "", "")
    kwargs = dict(test.kwargs)
    is_leveled = "level" in kwargs
    return (
        test.task.env,
        str(kwargs["level"]) if is_leveled else "",
        str(kwargs.get("profile", Profile.PAPER.value)) if is_leveled else "",
        as_text({key: value for key, value in kwargs.items() if key not in _OWN_KEYS}),
    )


def check_returns(test: Test, task: TaskPlan, where: str) -> None:
    """Refuse a task whose performance is not that of the test.

    Raises:
        InputError: If it counts other returns as 0 and 1; `where` says what names the task.
    """
    assert isinstance(test, TaskTest)
    if tuple(task.quality_range) != tuple(test.task.returns):
        raise InputError(
            f"{where}: quality_range is {list(task.quality_range)}; {test.name} of the study"
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
    played = {
        (
            task.env,
            "" if level is None else str(level),
            "" if level is None else task.profile.value,
            as_text(_keywords(task)),
        )
        for trial in trials
        for task in trial.plan.tasks
        for level in (task.levels or (None,))
    }
    return (
        f"{', '.join(str(trial.path) for trial in trials)}: no scored episode is of a test of the"
        f" study; it is of {_described(map(key_of_test, tests))}; played was {_described(played)}"
    )


def _described(keys: Iterable[tuple[str, ...]]) -> str:
    """Tests for people: `Task-v0 compat, level 0, 1 and 9`."""
    levels: dict[str, set[int]] = {}
    for env, level, profile, keywords in keys:
        name = " ".join(filter(None, (env, profile, "" if keywords == "{}" else keywords)))
        levels.setdefault(name, set()).update([int(level)] if level else [])
    return "; ".join(
        f"{name}, level {listed([str(one) for one in sorted(own)])}" if own else name
        for name, own in sorted(levels.items())
    )


def _difficulty(cell: object) -> str:
    return cell if isinstance(cell, str) else ""
