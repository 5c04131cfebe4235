"""How much a novelty, or another policy, changed the outcome of matched episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.estimate import Estimate
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.frame import episodes_frame
from robo_eval.metrics.performance import (
    CONDITION,
    DEFAULT,
    by_first,
    once_by_seed,
    planned_episodes,
)
from robo_eval.metrics.tables import (
    Rows,
    groups,
    main_rows,
    means_by,
    not_begun,
    numbered,
    places_of,
    sort_key,
)
from robo_eval.metrics.tasks import VARIANT, task_label
from robo_eval.stats.bounded import bounded_mean_interval

if TYPE_CHECKING:
    import pandas as pd

    from robo_eval.core.plan import TrialPlan

_SCOPES: Final[tuple[tuple[str, ...], ...]] = (
    CONDITION,
    ("side", "task", "family", VARIANT, "profile", "level"),
    ("side",),
)
"""Over what an effect is taken: one condition, a level in all its difficulties, everything."""

DECIDED: Final = ("lower", "higher")
"""Verdicts of an interval that excludes 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """Mean difference between an episode and the one it is matched with.

    Attributes:
        side: Where the episodes were played.
        policy: Name.
        level: Novelty level; None if taken over levels.
        difficulty: Strength of the novelty; None if taken over difficulties.
        task: Gymnasium id of the environment; None if taken over all.
        family: Task family; None if taken over all.
        profile: Description of the levels; None if there is none, or if taken over all.
        difference: Quality of the episode minus that of its match. Episodes that share a seed, or
            without seeds a match, are averaged first, so its n counts seeds or matches, not pairs.
        n_pairs: Pairs with both episodes scored.
        n_expected: Pairs there should be.
        verdict: `"lower"`, `"higher"` or `"undecided"`; None where too few pairs are scored, or
            there is no interval.
        task_variant: What tells the task from others of its family in the plan; empty where the
            family says all, None if taken over all.
        n_not_begun: Pairs whose novelty never began, because the episode ended before its onset.
    """

    side: str
    policy: str
    level: int | None
    difficulty: str | None
    task: str | None
    family: str | None
    profile: str | None
    difference: Estimate
    n_pairs: int
    n_expected: int
    verdict: str | None
    task_variant: str | None = None
    n_not_begun: int = 0

    SAID: ClassVar = ("label",)

    @property
    def label(self) -> str | None:
        """What the task is called, see `metrics.performance.Cell.label`; None over all tasks."""
        return None if self.family is None else task_label(self.family, self.task_variant or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class NoveltyEffects:
    """Effects of novelty against the matched control, at three resolutions.

    Attributes:
        cells: By condition and policy.
        levels: By level and policy, over difficulties.
        policies: By policy, over all levels.
    """

    cells: tuple[Effect, ...]
    levels: tuple[Effect, ...]
    policies: tuple[Effect, ...]


def novelty_effects(
    episodes: pd.DataFrame, plan: TrialPlan | None = None, config: MetricConfig = DEFAULT
) -> NoveltyEffects:
    """What novelty changed: each episode minus its matched control, which its row names.

    Args:
        episodes: Episodes with the columns of `core.episode.COLUMNS`.
        plan: Says how many pairs there should be.
        config: Settings of the intervals.
    """
    return effects_of(episodes_frame(episodes, plan), plan, config)


def effects_of(
    table: pd.DataFrame,
    plan: TrialPlan | None,
    config: MetricConfig,
    rows: Rows | None = None,
    *,
    of: tuple[str, str] | None = None,
) -> NoveltyEffects:
    """`novelty_effects` of a table that was checked already.

    Args:
        table: The episodes, and the controls they are matched with.
        plan: Says how many pairs there should be.
        config: Settings of the intervals.
        rows: Those of `main_rows` whose effects are asked for; all if not given.
        of: Side and policy of these rows, if they are of one.
    """
    every = Rows.of(table, ("base_id", "quality", "seed"))
    every = every.take(every.scored)
    rows = main_rows(table) if rows is None else rows
    rows = rows.take(~rows.missing("control_id"))
    rows = rows.take(numbered(rows, ("base_id",))[1])
    # Controls of one seed start alike, in several tasks as where one repeats it.
    seeds = np.array([*every["seed"], None], dtype=object)
    seeds = seeds[places_of(every, rows["control_id"])]
    rows = rows.having(
        difference=differences(*_looked_up(every, rows["base_id"], rows["control_id"])),
        control_seed=seeds,
        not_begun=not_begun(rows),
    )
    planned = planned_episodes(plan, of_novelty=True) if plan is not None else {}
    planned = {key: count for key, count in planned.items() if of in (None, (key[0], key[-1]))}
    found = [tuple(_effects(rows, "control_seed", scope, planned, config)) for scope in _SCOPES]
    return NoveltyEffects(cells=found[0], levels=found[1], policies=found[2])


def _looked_up(scored: Rows, *columns: NDArray[Any]) -> tuple[NDArray[np.float64], ...]:
    """Quality of the episodes that each column names, shape (n,); NaN where there is none."""
    quality = np.append(scored["quality"], np.nan)  # what is not found has place -1
    return tuple(quality[places_of(scored, names)] for names in columns)


def differences(own: NDArray[np.float64], match: NDArray[np.float64]) -> NDArray[np.float64]:
    """Episode less match, NaN where one is missing, shape (n,)."""
    values, place = np.unique(own - match, return_inverse=True)
    # Rounded, because 0.9 - 1.0 and 0.8 - 0.9 are the same difference.
    rounded = np.array([round(value, 12) for value in values.tolist()], dtype=np.float64)
    return rounded[place]


def policy_differences(
    episodes: pd.DataFrame,
    policy: str,
    baseline: str,
    *,
    by: Sequence[str] = ("side", "level"),
    config: MetricConfig = DEFAULT,
) -> list[Effect]:
    """How much better one policy did than another on the same conditions and seeds.

    Args:
        episodes: Episodes with the columns of `core.episode.COLUMNS`.
        policy: Name of the policy.
        baseline: Name of the policy it is compared with.
        by: Columns of the condition the differences are taken by; the others are averaged over.
        config: Settings of the intervals.

    Returns:
        One effect a group, in order; episodes of one seed are averaged before resampling.
    """
    rows = main_rows(episodes_frame(episodes))
    # Of several attempts at one episode the scored one counts; episodes that repeat a seed in a
    # condition count as `by_first` says; without a seed nothing says which episode is the match.
    rows = rows.take(np.argsort(~rows.scored, kind="stable"))
    rows = rows.take(numbered(rows, ("base_id",))[1])
    rows = rows.take(~rows.missing("seed"))
    keys = (*CONDITION, "seed")
    rows = rows.having(quality=by_first(rows, rows["quality"]), not_begun=not_begun(rows))
    repeat, first = numbered(rows, ("policy", *keys))
    means = _mean_qualities(repeat, rows, len(first))
    firsts = rows.take(first)
    condition, conditions = numbered(firsts, keys)
    is_own, is_match = (firsts["policy"] == name for name in (policy, baseline))
    matches = np.full(len(conditions), np.nan)
    matches[condition[is_match]] = means[is_match]
    own = firsts.take(is_own).having(
        difference=differences(means[is_own], matches[condition[is_own]])
    )
    return _effects(own, "seed", tuple(by), {}, config)


def _mean_qualities(group: NDArray[np.intp], rows: Rows, size: int) -> NDArray[np.float64]:
    """Mean quality of the scored rows of each group, shape (size,); NaN where there are none."""
    means = np.full(size, np.nan)
    known, place = np.unique(group[rows.scored], return_inverse=True)
    means[known] = means_by(place, rows["quality"][rows.scored], len(known))
    return means


def _effects(
    rows: Rows,
    draw: str,
    scope: tuple[str, ...],
    planned: Mapping[tuple[Any, ...], int],
    config: MetricConfig,
) -> list[Effect]:
    expected: dict[tuple[Any, ...], int] = {}
    for key, count in planned.items():
        named = dict(zip((*CONDITION, "policy"), key, strict=True))
        own = tuple(named[column] for column in (*scope, "policy"))
        expected[own] = expected.get(own, 0) + count
    found = groups(rows, (*scope, "policy"))
    keys = [*expected, *sorted((key for key in found if key not in expected), key=sort_key)]
    return [
        _effect(
            dict(zip((*scope, "policy"), key, strict=True)),
            found.get(key, rows.take([])),
            draw,
            expected.get(key, 0),
            config,
        )
        for key in keys
    ]


def _effect(
    names: Mapping[str, Any], rows: Rows, draw: str, expected: int, config: MetricConfig
) -> Effect:
    pairs = rows.take(~np.isnan(rows["difference"]))
    n_expected = max(expected, len(rows))
    difference = _difference(pairs, draw, config)
    is_covered = len(pairs) >= round(config.min_coverage * n_expected, 9)
    verdict = None
    if not is_covered:
        counts = f"{len(pairs)} of {n_expected} pairs scored"
        reason = f"{counts}; {difference.reason}" if difference.reason else counts
        difference = replace(difference, reason=reason)
    elif difference.low is not None and difference.high is not None:
        verdict = (
            "lower" if difference.high < 0.0 else "higher" if difference.low > 0.0 else "undecided"
        )
    return Effect(
        side=str(names.get("side", "")),
        policy=str(names["policy"]),
        level=names.get("level"),
        difficulty=names.get("difficulty"),
        task=names.get("task"),
        family=names.get("family"),
        task_variant=names.get(VARIANT),
        profile=names.get("profile"),
        difference=difference,
        n_pairs=len(pairs),
        n_expected=n_expected,
        verdict=verdict,
        n_not_begun=int(pairs["not_begun"].sum()),
    )


def _difference(pairs: Rows, draw: str, config: MetricConfig) -> Estimate:
    if not len(pairs):
        return Estimate.missing(reason="no pair with both episodes scored", unit="ratio")
    once = once_by_seed(pairs, difference=pairs["difference"])
    draw = "control_id" if once.missing(draw).any() else draw
    group, first = numbered(once, (draw,))
    found = bounded_mean_interval(
        means_by(group, once["difference"], len(first)), within=(-1.0, 1.0), level=config.level
    )
    return replace(found, method=f"paired_{found.method}")
