"""Two axes from counts of episodes: tools under drift, and several robots beside one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval import formulas
from robo_eval.core.defaults import LEVEL
from robo_eval.core.estimate import Estimate
from robo_eval.formulas import PENALTIES
from robo_eval.formulas.composite import AXES
from robo_eval.gates.axes.draws import (
    JEFFREYS,
    Resampled,
    estimate_of_first,
    exact_share,
    share_and_draws,
    tallied,
)
from robo_eval.stats.proportions import clopper_pearson_interval

if TYPE_CHECKING:
    from robo_eval.gates.axes.settings import AxisSettings
    from robo_eval.log.evidence import TeamTrial, ToolUse

Array = NDArray[np.float64]
Counts = Mapping[str, tuple[int, int]]
"""Successes and episodes by category."""

_ENOUGH: Final = 0.5
"""Success under mild drift that a category of tools counts from."""
_MILD: Final = "mild"
_RATIO: Final = "ratio"
_CATEGORIES: Final = "categories"
_DRAWS: Final = 2_000


def categories_under_mild_drift(uses: Sequence[ToolUse], level: float) -> Estimate:
    """Tool categories that succeed under mild drift: by their share, and by its exact interval.

    Args:
        uses: How often each category was used with success.
        level: Coverage of the interval of each share.
    """
    used = tallied((use for use in uses if use.drift == _MILD), lambda use: use.category)
    if not used:
        reason = f"tools.csv has no line with drift {_MILD!r}"
        return Estimate.missing(reason=reason, unit=_CATEGORIES)
    return _passing(used, _ENOUGH, level)


def _passing(used: Counts, least: float, level: float) -> Estimate:
    bounds = {name: clopper_pearson_interval(*count, level=level) for name, count in used.items()}
    return Estimate(
        value=float(sum(k / n >= least for k, n in used.values())),
        low=float(sum(low >= least for low, _ in bounds.values())),
        high=float(sum(high >= least for _, high in bounds.values())),
        level=level,
        n=sum(n for _, n in used.values()),
        method="clopper_pearson",
        unit=_CATEGORIES,
    )


def tools_measured(
    uses: Sequence[ToolUse] | None,
    settings: AxisSettings,
    *,
    level: float = LEVEL,
    resamples: int = 2000,
    seed: int = 0,
) -> Resampled:
    """Tools: n / (n + k0) times success, at the declared magnitude of drift.

    n are the categories whose share of successes reaches the least that counts; success is that of
    all episodes at the magnitude, of categories that do not count as well. Intervals are quantiles
    of draws from the Jeffreys posteriors of the shares, each of which decides anew which categories
    count.

    Args:
        uses: How often each category was used with success; None where there is no such file.
        settings: Magnitude, least success and prior.
        level: Coverage of the intervals.
        resamples: Draws.
        seed: Seed of the draws.

    Returns:
        The axis, with the number of categories, the success of each, and the axis at each other
        magnitude as its parts.

    References:
        Chojecki (2025), arXiv:2511.13411, section 3.1.
    """
    drift = settings.tool_drift
    by_drift: dict[str, Counts] = {}
    for name in sorted({use.drift for use in uses or ()}):
        own = tallied((use for use in uses or () if use.drift == name), lambda use: use.category)
        if own:
            by_drift[name] = dict(sorted(own.items()))
    # The headline first: what else was played moves none of its draws.
    rng = np.random.default_rng([seed, AXES.index("T")])
    order = sorted(by_drift, key=lambda name: name != drift)
    found = {name: _at(by_drift[name], settings, level, resamples, rng) for name in order}
    parts = {
        f"T under {name or 'unnamed'} drift": found[name][0] for name in order if name != drift
    }
    if drift not in found:
        needed = (
            f"tools.csv needs lines with drift {drift!r} (category, drift, episodes, successes)"
        )
        reason = f"no tool was used under the declared drift; {needed}"
        raw = Estimate.missing(reason=reason, unit=_RATIO, method=JEFFREYS)
        return Resampled(raw=raw, parts=parts)
    raw, draws = found[drift]
    used = by_drift[drift]
    categories = {"categories": _passing(used, settings.tool_success, level)}
    shares = {f"success of {name}": exact_share(*count, level) for name, count in used.items()}
    return Resampled(raw=raw, draws=draws, parts=categories | shares | parts)


def _at(
    used: Counts, settings: AxisSettings, level: float, resamples: int, rng: np.random.Generator
) -> tuple[Estimate, Array]:
    """The axis at one magnitude, and its draws."""
    total = sum(n for _, n in used.values())
    drawn = np.stack([share_and_draws(k, n, resamples, rng) for k, n in used.values()])
    rate = np.array([n for _, n in used.values()]) @ drawn / total
    passing = (drawn >= settings.tool_success).sum(axis=0)
    found = np.asarray(formulas.tool_economy(passing, np.minimum(rate, 1.0), settings.tool_prior))
    return estimate_of_first(found, n=total, level=level), found[1:]


# Several robots ----------------------------------------------------------------------------------


def sociality_measured(
    trials: Sequence[TeamTrial] | None, *, level: float = 0.95, seed: int = 0
) -> Resampled:
    """Share of the shortfall of one robot that several make up for, less penalties.

    Tasks weigh alike. Of each task the best number of robots counts, and of several that are as
    good the smallest. Penalties are the shares of the episodes at that number in which the robots
    came into conflict, looped, chattered or all did the same, averaged over tasks.

    Args:
        trials: Episodes of the same tasks, tools and total budget with one and with more robots;
            None where there is no such file.
        level: Coverage of the intervals, quantiles of draws from the Jeffreys posteriors of all
            shares; in each draw the numbers of robots are those chosen from the counts.
        seed: Seed of the draws.

    Returns:
        The axis, with the lift before penalties and how often each fault happened as its parts; no
        value if no task was played with one robot and with several.

    References:
        Chojecki (2025), arXiv:2511.13411, section 3.1.
    """
    by_task: dict[str, dict[int, list[TeamTrial]]] = defaultdict(lambda: defaultdict(list))
    for trial in trials or ():
        if trial.episodes:
            by_task[trial.task][trial.robots].append(trial)
    whole = {task: sizes for task, sizes in by_task.items() if 1 in sizes and len(sizes) > 1}
    if not whole:
        reason = (
            "no task was played with one robot and with several; teams.csv needs lines of the same"
            " task with 1 robot and with several (task, robots, episodes, successes)"
        )
        return Resampled(raw=Estimate.missing(reason=reason, unit="ratio", method=JEFFREYS))
    solo = [_tally(sizes[1], "successes") for sizes in whole.values()]
    best = [_best({k: own for k, own in sizes.items() if k > 1}) for sizes in whole.values()]
    team = [_tally(own, "successes") for own in best]
    rng = np.random.default_rng(seed)
    alone, together = _draws(solo, rng), _draws(team, rng)
    penalties = {
        name: _draws([_tally(own, name) for own in best], rng).mean(axis=0) for name in PENALTIES
    }
    found = formulas.sociality(alone, together, penalty_means=penalties)
    n_team = sum(n for _, n in team)
    n = n_team + sum(n for _, n in solo)
    raw = np.asarray(found["raw"])
    parts = {"lift": estimate_of_first(np.asarray(found["lift"]), n=n, level=level)} | {
        name: estimate_of_first(own, n=n_team, level=level) for name, own in penalties.items()
    }
    return Resampled(raw=estimate_of_first(raw, n=n, level=level), draws=raw[1:], parts=parts)


def _tally(trials: Sequence[TeamTrial], name: str) -> tuple[int, int]:
    """How often something was so, and episodes."""
    return sum(getattr(trial, name) for trial in trials), sum(trial.episodes for trial in trials)


def _best(sizes: Mapping[int, Sequence[TeamTrial]]) -> Sequence[TeamTrial]:
    def share(robots: int) -> float:
        k, n = _tally(sizes[robots], "successes")
        return k / n

    return sizes[max(sorted(sizes), key=share)]


def _draws(counts: Sequence[tuple[int, int]], rng: np.random.Generator) -> NDArray[np.float64]:
    """Each share and draws of it, shape (tasks, 1 + draws)."""
    return np.stack([share_and_draws(k, n, _DRAWS, rng) for k, n in counts])
