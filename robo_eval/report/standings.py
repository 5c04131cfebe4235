"""Which policy succeeds more often, and which cannot be told apart, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from robo_eval.core.estimate import Estimate
from robo_eval.core.wording import p_text
from robo_eval.metrics.comparison import compare_policies
from robo_eval.metrics.standings import PolicyPair, SideComparison, Standing
from robo_eval.metrics.stopped import plan_as_played
from robo_eval.page.words import count, interval_text, number

if TYPE_CHECKING:
    import pandas as pd

    from robo_eval.core.plan import TrialPlan
    from robo_eval.metrics.config import MetricConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """One policy among those of its side.

    Attributes:
        policy: Name.
        rank: What the decisions leave open: `1`, `1 to 3`; `-` below the least coverage.
        letters: It shares one with each policy it was not told apart from.
        success: Share of strict successes.
        episodes: Scored episodes out of those there should be, and why others are missing.
        bounds: That share if every missing episode failed, and succeeded; empty if none is missing.
    """

    policy: str
    rank: str
    letters: str
    success: Estimate
    episodes: str
    bounds: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Duel:
    """Two policies against each other.

    Attributes:
        label: Both names.
        difference: Success of the first less that of the second.
        rests_on: Pairs, seeds or episodes.
        p: p value after Holm's adjustment; `-` without a test.
        verdict: In words.
        is_decided: Whether one was shown to be better.
    """

    label: str
    difference: Estimate
    rests_on: str
    p: str
    verdict: str
    is_decided: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Standings:
    """The policies of one side.

    Attributes:
        title: The side; empty where a trial has one only.
        ranks: Each policy, the best first.
        duels: Every two of them.
        notes: How to read both.
    """

    title: str
    ranks: Sequence[Rank]
    duels: Sequence[Duel]
    notes: Sequence[str]


def standings_of(sides: Sequence[SideComparison]) -> list[Standings]:
    """The tables of `compared_sides`."""
    return [_standings(side, has_title=bool(side.agreement) or len(sides) > 1) for side in sides]


def compared_sides(
    table: pd.DataFrame, plan: TrialPlan, config: MetricConfig
) -> list[SideComparison]:
    """Compare the policies of each side that has several.

    Args:
        table: Checked episodes, see `metrics.frame.episodes_frame`.
        plan: The locked plan.
        config: Settings.
    """
    found = compare_policies(table, plan_as_played(table, plan), config)
    return [side for side in found if len(side.policies) > 1]


def _standings(side: SideComparison, *, has_title: bool) -> Standings:
    is_partial = side.is_partial
    return Standings(
        title=side.side if has_title else "",
        ranks=[_rank(own) for own in side.by_success],
        duels=[_duel(pair, is_partial=is_partial) for pair in side.pairs],
        notes=_notes(side),
    )


def _rank(own: Standing) -> Rank:
    bounds = ""
    if own.bounds is not None:
        bounds = f"{number(own.bounds[0])} to {number(own.bounds[1])}"
    return Rank(
        policy=own.policy,
        rank=own.ranks,
        letters=own.letters or "-",
        success=own.success,
        episodes=own.coverage.text,
        bounds=bounds,
    )


def _duel(pair: PolicyPair, *, is_partial: bool) -> Duel:
    if pair.unit == "episodes":
        rests_on = count(pair.n_units, "episode")
    elif pair.unit == "seeds":
        rests_on = f"{count(pair.n_pairs, 'pair')}, {count(pair.n_units, 'seed')}"
    else:
        rests_on = count(pair.n_pairs, "pair")
    if is_partial:
        rests_on += f" in {count(pair.n_conditions, 'condition')} of both"
    p = "-"
    if pair.p_holm is not None:
        p = p_text(pair.p_holm)
    return Duel(
        label=f"{pair.first} − {pair.second}",
        difference=pair.difference,
        rests_on=rests_on,
        p=p,
        verdict=pair.text,
        is_decided=pair.winner is not None,
    )


def _notes(side: SideComparison) -> list[str]:
    notes = []
    if any(own.letters for own in side.policies):
        notes.append(
            "The rank is what is left open; policies that share a letter were not told apart."
        )
    if side.n_compared:
        notes.append(
            f"p: {'; '.join(side.tests)}; adjusted for"
            f" {count(side.n_compared, 'comparison')} by Holm's method. A difference is shown at"
            f" {number(side.alpha)} or less."
        )
    if any(pair.unit == "seeds" for pair in side.pairs):
        notes.append("Where seeds repeat, all episodes of a seed are one observation.")
    notes.extend(side.told)
    agreement = side.agreement
    if agreement is not None:
        for name, found in (
            ("Mean maximum rank violation of simulation (0: the same order)", agreement.mmrv),
            ("Pearson correlation of both sides", agreement.pearson),
        ):
            text = found.reason if found.value is None else interval_text(found)
            notes.append(f"{name}, {count(len(agreement.policies), 'policy', 'policies')}: {text}.")
    return notes
