"""Whether several robots do more than one: the sociality axis, from counts of episodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval import formulas
from robo_eval.core.estimate import Estimate
from robo_eval.formulas import PENALTIES
from robo_eval.gates.axes.draws import JEFFREYS, Measured, estimate_of_first, share_and_draws

if TYPE_CHECKING:
    from robo_eval.log.evidence import TeamTrial

_DRAWS: Final = 2_000


def sociality_measured(
    trials: Sequence[TeamTrial], *, level: float = 0.95, seed: int = 0
) -> Measured:
    """Share of the shortfall of one robot that several make up for, less penalties.

    Tasks weigh alike. Of each task the best number of robots counts, and of several that are as
    good the smallest. Penalties are the shares of the episodes at that number in which the robots
    came into conflict, looped, chattered or all did the same, averaged over tasks.

    Args:
        trials: Episodes of the same tasks, tools and total budget with one and with more robots.
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
    return Measured(raw=estimate_of_first(raw, n=n, level=level), draws=raw[1:], parts=parts)


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
