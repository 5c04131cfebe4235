"""How able and general teams are over the cells of a competition, and what of a study they cover.

The formulas are those of `analysis.acc` and `analysis.aiq`; a trial is what an episode is there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Final

from robo_eval.compete.draw import cells_of
from robo_eval.core.estimate import Estimate
from robo_eval.core.wording import counted
from robo_eval.stats.resampling import T_FROM

if TYPE_CHECKING:
    from robo_eval.compete.competition import Competition
    from robo_eval.core.plan import PlannedCondition

LEAST_PANEL: Final = 2
"""Baselines that say how difficult cells are, where the reference panel does not."""
_SPREAD: Final = ("capability", "generality")
_FLOOR: Final = "it is at the floor, with a quality of 0 in every cell"
Means = Mapping[str, Sequence[float]]
"""Mean quality of the trials of each cell: of novel episodes, and of a control of all."""


def abilities(
    competition: Competition,
    teams: Sequence[str],
    means: Sequence[Means],
    panels: Sequence[Mapping[str, Means]],
) -> list[dict[str, Estimate]]:
    """Capability and normalised generality of teams, each with its reason where there is none.

    The response to a cell is the mean quality of its trials, which are resampled within their cell.
    How difficult a cell is says the reference panel; where it has not played all of them, those
    baselines do that have ended.

    Args:
        competition: Its cells.
        teams: Names.
        means: Of each team.
        panels: For each team, what teams that others rest on did in the same trials, by name.
    """
    named = [policy.name for policy in competition.baselines]
    known = panel_difficulties(competition)
    found: dict[int, dict[str, Estimate]] = {}
    asked: dict[int, tuple[Means, Mapping[str, float]]] = {}
    for place, (team, own, others) in enumerate(zip(teams, means, panels, strict=True)):
        panel = [one for name, one in others.items() if name in named and all(one.values())]
        lacking = sum(not values for values in own.values())
        if lacking:
            why = f"no episode has a score in {counted(lacking, 'cell')}"
        elif not known and team in named:
            why = "it is one of the baselines that say how difficult the cells are"
        elif not known and len(panel) < LEAST_PANEL:
            why = (
                "how difficult the cells are says neither the reference panel, which has not played"
                f" them all, nor {LEAST_PANEL} baselines that have"
            )
        else:
            asked[place] = own, known or _difficulties(panel)
            continue
        found[place] = dict.fromkeys(_SPREAD, _lacking(why))
    found |= _analysed(asked)
    return [found[place] for place in range(len(teams))]


def panel_difficulties(competition: Competition) -> dict[str, float]:
    """How difficult each cell is by the reference panel; empty where it has not played them all."""
    from robo_eval.analysis.panel import TASK, item_difficulty, unlike_items

    found: dict[str, float] = {}
    for key, cell in _conditions(competition).items():
        task = competition.tasks[cell.task]
        if task.env != TASK or unlike_items(task) or cell.level is None or cell.difficulty is None:
            return {}
        items = item_difficulty(task.profile.value)
        own = items[(items["level"] == cell.level) & (items["difficulty"] == cell.difficulty.value)]
        found[key] = float(own["item_difficulty"].iloc[0])
    return found


def _difficulties(panel: Sequence[Means]) -> dict[str, float]:
    """How difficult each cell is by what several agents did: 1 less their mean quality."""
    return {cell: 1.0 - fmean(fmean(one[cell]) for one in panel) for cell in panel[0]}


def quotients_of(
    competition: Competition, means: Sequence[Means], study: Path | None
) -> list[Estimate]:
    """The AIQ of teams in the space of a study, each with its reason where there is none.

    A test of the study is the cells of its environment, level, profile and keywords, at all
    difficulties that are played.

    Args:
        competition: Its cells.
        means: Of each team.
        study: Folder of the study; None if none is named.

    Raises:
        InputError: If it is no study that was run to its end, or counts other returns as 0 and 1.
    """
    if study is None:
        return [_lacking("no study of these levels is named")] * len(means)
    from robo_eval.analysis.aiq import quotient_interval
    from robo_eval.study.causes import listed
    from robo_eval.study.matched import check_returns, key_of, key_of_test
    from robo_eval.study.run import Study

    opened = Study.open(study)
    space = opened.known().space
    by_test: dict[str, list[str]] = {}
    for test in opened.tests:
        own = by_test[test.name] = []
        for key, cell in _conditions(competition).items():
            task = competition.tasks[cell.task]
            if key_of(task, cell.level, None) == key_of_test(test) and not cell.novelty:
                check_returns(test, task, competition.name)
                own.append(key)
    lacking = [name for name, cells in by_test.items() if not cells]
    why = "no episode has a score in a test of the study"
    if lacking:
        why = f"no trial is of {listed(lacking)}, which the study is of"
    table = [
        [[value for cell in cells for value in own.get(cell, ())] for cells in by_test.values()]
        for own in means
    ]
    return [
        _of_trials(quotient_interval(space, rows), rows) if all(rows) else _lacking(why)
        for rows in table
    ]


def _conditions(competition: Competition) -> dict[str, PlannedCondition]:
    """What trials are of, by its key; controls are of the task as it is."""
    every = (novel or nominal for nominal, novel in cells_of(competition))
    return {one.key: one for one in every}


def _analysed(
    asked: Mapping[int, tuple[Means, Mapping[str, float]]],
) -> dict[int, dict[str, Estimate]]:
    """Capability and generality, by place; teams of one axis together, which takes less time."""
    import pandas as pd

    from robo_eval.analysis.acc import acc_for_trial

    axes: dict[tuple[tuple[str, float], ...], list[int]] = {}
    for place, (_, difficulty) in asked.items():
        axes.setdefault(tuple(sorted(difficulty.items())), []).append(place)
    found = {}
    for axis, places in axes.items():
        # A cell is a level of its own, whatever it is of: level 0 has a meaning there.
        number = {cell: at for at, (cell, _) in enumerate(axis, 1)}
        items = [
            {"level": number[cell], "difficulty": "easy", "item_difficulty": value}
            for cell, value in axis
        ]
        rows = [
            {
                "episode_id": f"{place}-{cell}-{at}", "side": "sim", "task": cell,
                "policy": str(place), "quality": value, "success": False, "end_reason": "timeout",
                "level": number[cell], "difficulty": "easy",
            }
            for place in places for cell, own in asked[place][0].items()
            for at, value in enumerate(own)
        ]  # fmt: skip
        for row in acc_for_trial(pd.DataFrame(rows), pd.DataFrame(items)).rows:
            own = asked[int(row.policy)][0].values()
            # At the floor its formula gives the difficulty of the easiest cell, as if one could it.
            able = _lacking(_FLOOR) if row.flag == "floor" else _of_trials(row.capability, own)
            general = _of_trials(row.normalised_generality, own)
            found[int(row.policy)] = dict(zip(_SPREAD, (able, general), strict=True))
    return found


def _of_trials(found: Estimate, samples: Collection[Sequence[float]]) -> Estimate:
    """What is said of episodes where each of them is a trial, and of few no interval."""
    least = min(map(len, samples))
    if found.low is not None and least < T_FROM:
        why = f"a cell has {least} of the {T_FROM} trials that an interval needs in each"
        return replace(found, low=None, high=None, reason=why)
    return replace(found, reason=found.reason and found.reason.replace("episode", "trial"))


def _lacking(why: str) -> Estimate:
    return Estimate.missing(reason=why, unit="ratio")
