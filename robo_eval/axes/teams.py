"""Whether several robots do more than one: the sociality axis, from counts of episodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval import formulas
from robo_eval.axes.axis import Measured
from robo_eval.axes.draws import JEFFREYS, estimate_of_draws, jeffreys_draws
from robo_eval.core.estimate import Estimate
from robo_eval.formulas import PENALTIES

if TYPE_CHECKING:
    from robo_eval.log.evidence import TeamTrial

_DRAWS: Final = 2_000


def sociality_of(trials: Sequence[TeamTrial], *, level: float = 0.95, seed: int = 0) -> Estimate:
    """Share of the shortfall of one robot that several make up for, less penalties.

    Tasks weigh alike. Of each task the best number of robots counts, and of several that are as
    good the smallest. Penalties are the shares of the episodes at that number in which the robots
    came into conflict, looped, chattered or all did the same, averaged over tasks.

    Args:
        trials: Episodes of the same tasks, tools and total budget with one and with more robots.
        level: Coverage of the interval, quantiles of draws from the Jeffreys posteriors of all
            shares; in each draw the numbers of robots are those chosen from the counts.
        seed: Seed of the draws.

    Returns:
        The axis; no value if no task was played with one robot and with several.

    References:
        Chojecki (2025), arXiv:2511.13411, section 3.1.
    """
    return sociality_measured(trials, level=level, seed=seed).raw


def sociality_measured(
    trials: Sequence[TeamTrial], *, level: float = 0.95, seed: int = 0
) -> Measured:
    """`sociality_of` with its draws, the lift before penalties, and how often each fault happened.

    Args:
        trials: See `sociality_of`.
        level: Coverage of the intervals.
        seed: Seed of the draws.

    References:
        Chojecki (2025), arXiv:2511.13411, section 3.1.
    """
    by_task: dict[str, dict[int, list[TeamTrial]]] = defaultdict(lambda: defaultdict(list))
    for trial in trials:
        if trial.episodes:
            by_task[trial.task][trial.robots].append(trial)
    whole = {task: sizes for task, sizes in by_task.items() if 1 in sizes and len(sizes) > 1}
    if not whole:
        reason = "no task was played with one robot and with several"
        return Measured(raw=Estimate.missing(reason=reason, unit="ratio", method=JEFFREYS))
    solo = [_tally(sizes[1], "successes") for sizes in whole.values()]
    best = [_best({k: own for k, own in sizes.items() if k > 1}) for sizes in whole.values()]
    team = [_tally(own, "successes") for own in best]
    faults = {name: [_tally(own, name) for own in best] for name in PENALTIES}
    means = {name: float(np.mean([k / n for k, n in counts])) for name, counts in faults.items()}
    raw, lift = _axis([k / n for k, n in solo], [k / n for k, n in team], means)
    rng = np.random.default_rng(seed)
    alone, together = _draws(solo, rng), _draws(team, rng)
    penalties = {name: _draws(counts, rng).mean(axis=1) for name, counts in faults.items()}
    drawn = np.array(
        [
            _axis(alone[i], together[i], {name: float(own[i]) for name, own in penalties.items()})
            for i in range(_DRAWS)
        ]
    )
    n_team = sum(n for _, n in team)
    n = sum(n for _, n in [*solo, *team])
    parts = {"lift": estimate_of_draws(lift, drawn[:, 1], n=n, level=level)} | {
        name: estimate_of_draws(means[name], own, n=n_team, level=level)
        for name, own in penalties.items()
    }
    value = estimate_of_draws(raw, drawn[:, 0], n=n, level=level)
    return Measured(raw=value, draws=drawn[:, 0], parts=parts)


def _axis(
    solo: Sequence[float] | NDArray[np.float64],
    team: Sequence[float] | NDArray[np.float64],
    penalties: Mapping[str, float],
) -> tuple[float, float]:
    """The axis, and the lift before penalties."""
    found = formulas.sociality(solo, team, penalty_means=penalties)
    return found["raw"] or 0.0, found["lift"] or 0.0


def _tally(trials: Sequence[TeamTrial], name: str) -> tuple[int, int]:
    """How often something was so, and episodes."""
    return sum(getattr(trial, name) for trial in trials), sum(trial.episodes for trial in trials)


def _best(sizes: Mapping[int, Sequence[TeamTrial]]) -> Sequence[TeamTrial]:
    def share(robots: int) -> float:
        k, n = _tally(sizes[robots], "successes")
        return k / n

    return sizes[max(sorted(sizes), key=share)]


def _draws(counts: Sequence[tuple[int, int]], rng: np.random.Generator) -> NDArray[np.float64]:
    """Draws of each share, shape (draws, tasks)."""
    return np.stack([jeffreys_draws(k, n, _DRAWS, rng) for k, n in counts], axis=1)
