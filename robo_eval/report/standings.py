"""Which policy succeeds more often, and which cannot be told apart, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from robo_eval.metrics.comparison import compare_policies
from robo_eval.metrics.standings import PolicyPair, SideComparison
from robo_eval.metrics.stopped import plan_as_played
from robo_eval.page.words import count, interval_text, number

if TYPE_CHECKING:
    import pandas as pd

    from robo_eval.core.plan import TrialPlan
    from robo_eval.metrics.config import MetricConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Standings:
    """The policies of one side; templates read the comparison, and ask here for what needs words.

    Attributes:
        title: The side; empty where a trial has one only.
        found: Each policy, and every two of them.
    """

    title: str
    found: SideComparison

    def rests_on(self, pair: PolicyPair) -> str:
        """Pairs, seeds or episodes behind a difference."""
        if pair.unit == "episodes":
            text = count(pair.n_units, "episode")
        elif pair.unit == "seeds":
            text = f"{count(pair.n_pairs, 'pair')}, {count(pair.n_units, 'seed')}"
        else:
            text = count(pair.n_pairs, "pair")
        if self.found.is_partial:
            text += f" in {count(pair.n_conditions, 'condition')} of both"
        return text

    @property
    def notes(self) -> list[str]:
        """How to read both tables."""
        side, notes = self.found, []
        if any(own.letters for own in side.policies):
            notes.append(
                "The rank is what is left open; policies that share a letter were not told apart."
            )
        if side.n_compared:
            notes.append(
                f"p: {'; '.join(side.tests)}; adjusted for {count(side.n_compared, 'comparison')}"
                f" by Holm's method. A difference is shown at {number(side.alpha)} or less."
            )
        if any(pair.unit == "seeds" for pair in side.pairs):
            notes.append("Where seeds repeat, all episodes of a seed are one observation.")
        notes.extend(side.told)
        agreement = side.agreement
        if agreement is not None:
            policies = count(len(agreement.policies), "policy", "policies")
            for name, found in (
                ("Mean maximum rank violation of simulation (0: the same order)", agreement.mmrv),
                ("Pearson correlation of both sides", agreement.pearson),
            ):
                text = found.reason if found.value is None else interval_text(found)
                notes.append(f"{name}, {policies}: {text}.")
        return notes


def standings_of(sides: Sequence[SideComparison]) -> list[Standings]:
    """The tables of `compared_sides`."""
    return [
        Standings(title=side.side if side.agreement or len(sides) > 1 else "", found=side)
        for side in sides
    ]


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
