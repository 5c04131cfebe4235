"""What a comparison of policies says: of each, of every two, of a side."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal

from robo_eval.core.claims import did
from robo_eval.core.estimate import Estimate
from robo_eval.core.plain import UNSAID
from robo_eval.core.wording import noun_for
from robo_eval.metrics.coverage import Coverage
from robo_eval.metrics.performance import place_of
from robo_eval.metrics.rank_agreement import RankAgreement
from robo_eval.stats.clustered_pairs import ClusteredDifference

Unit = Literal["pairs", "seeds", "episodes"]
"""What counts as one independent observation of a difference."""
Rate = tuple[float, int]
"""Success rate of a policy, and of how many episodes."""
TESTS: Final = {
    "pairs_exact": "an exact test of pairs asks whether both succeed equally often",
    "t_by_seed": (
        "Student's t test asks whether both succeed equally often, by the mean of each seed and"
        " with one more seed won by either"
    ),
    "barnard": "Barnard's exact test asks whether both shares are the same",
    "score": "a score test asks whether both shares are the same",
}
"""What each test asks, as a sentence."""
POWER: Final = 0.8
"""Chance of finding it that a detectable difference is stated for; the usual choice."""


def ranks_text(rank_range: tuple[int, int] | None) -> str:
    """The ranks that are left open, for people.

    Example:
        >>> ranks_text((1, 3))
        '1 to 3'
    """
    if rank_range is None:
        return "-"
    best, worst = rank_range
    return f"{best}" if best == worst else f"{best} to {worst}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One policy among those it is compared with.

    Attributes:
        policy: Name.
        coverage: Scored episodes out of those there should be.
        n_success: Strict successes.
        success: Share of strict successes, exact interval.
        bounds: That share if all missing episodes count as failures, and as successes; None if
            none is missing.
        rank_range: Best and worst rank that the decisions allow; None below the least coverage.
        letters: Policies share a letter where they were not told apart; None like the range.
        n_conditions: Conditions it played.
    """

    policy: str
    coverage: Coverage
    n_success: int
    success: Estimate
    bounds: tuple[float, float] | None = field(metadata={"json": "success_bounds"})
    rank_range: tuple[int, int] | None = None
    letters: str | None = None
    n_conditions: int = 0

    @property
    def share(self) -> float:
        """Share of strict successes; 0 without a scored episode."""
        return self.success.value or 0.0

    @property
    def place(self) -> float:
        """Sorts policies by what they achieved, see `metrics.performance.place_of`."""
        return place_of(self.success, self.coverage)

    @property
    def ranks(self) -> str:
        """The ranks that are left open, for people."""
        return ranks_text(self.rank_range)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyPair:
    """Two policies on one side.

    Attributes:
        first: Name of the policy that did better, or of the earlier one if they did alike.
        second: Name of the other.
        difference: Success of the first less that of the second.
        unit: What is independent: `pairs`, `seeds` (shared by several pairs) or `episodes`.
        n_units: How many there are.
        n_discordant: Pairs that ended differently, or seeds that lean one way; None without
            pairs.
        n_pairs: Pairs with both episodes scored; 0 without pairs.
        left_out: Episodes of either without a counterpart in the other.
        n_conditions: Conditions that both played.
        p_value: Two-sided, by itself; None if there is no test.
        test: Which one: `pairs_exact`, `t_by_seed`, `barnard`, `score` or `none`.
        seeds: What the seeds said, where they are the unit.
        rates: Success of both, without pairs.
        p_holm: Adjusted for all pairs of the side that are decided on; None if this is not.
        verdict: `first`, `second` or `undecided`; None below the least coverage, or untested.
        detectable: Difference that would have been shown with 80 % power; None where a verdict
            names a winner or there is none, and where no difference would have been shown.
        least_deciding: Units that decide at the least, all for one side; None if none can.
        reason: Why there is no verdict; None if there is one.
    """

    first: str
    second: str
    difference: Estimate
    unit: Unit
    n_units: int
    n_discordant: int | None
    n_pairs: int
    left_out: int
    n_conditions: int = 0
    p_value: float | None
    test: str
    seeds: ClusteredDifference | None = field(default=None, metadata=UNSAID)
    rates: tuple[Rate, Rate] | None = field(default=None, metadata=UNSAID)
    p_holm: float | None = None
    verdict: str | None = None
    detectable: float | None = None
    least_deciding: int | None = None
    reason: str | None = None

    SAID: ClassVar = ("winner", "text")

    @property
    def winner(self) -> str | None:
        """Name of the policy that was shown to be better, if one was."""
        return {"first": self.first, "second": self.second}.get(self.verdict or "")

    @property
    def text(self) -> str:
        """The verdict for people."""
        if self.winner is not None:
            other = self.second if self.verdict == "first" else self.first
            return f"{self.winner} {did('higher', other)}"
        if self.verdict is None:
            return f"no verdict: {self.reason}"
        if self.detectable is not None:
            could = f"could have shown >= {self.detectable:.2f} with {POWER:.0%} power"
            return f"no difference shown ({could.replace('%', ' %')})"
        units = noun_for(self.n_units, self.unit.removesuffix("s"))
        if self.least_deciding is None or self.least_deciding > self.n_units:
            return f"no difference shown ({self.n_units} {units} are too few to show any)"
        how = "end differently" if self.unit == "pairs" else "lean one way"
        least = f"at least {self.least_deciding} must {how}"
        return f"no difference shown ({self.n_units} {units}; {least})"


@dataclass(frozen=True, slots=True, kw_only=True)
class SideComparison:
    """All policies of one side, against each other.

    Attributes:
        side: Where they were played.
        policies: Each policy, in the order of the plan.
        pairs: Every two of them.
        n_compared: Pairs that were decided on, which is what Holm adjusts for.
        alpha: Largest adjusted p value that decides.
        agreement: Whether simulation ranks the policies alike; None in simulation itself and
            where nothing was simulated.
    """

    side: str
    policies: tuple[Standing, ...]
    pairs: tuple[PolicyPair, ...]
    n_compared: int
    alpha: float
    agreement: RankAgreement | None = None

    SAID: ClassVar = ("power", "tests", "not_told_apart", "overlap")

    @property
    def not_told_apart(self) -> tuple[str, ...]:
        """The best policy, and those that were not told apart from it; empty without ranks.

        The best is that with the highest share of those that none was shown to be better than.
        """
        ranked = [own for own in self.by_success if own.rank_range is not None]
        if not ranked:
            return ()
        best = min(ranked, key=lambda own: (own.rank_range or (0,))[0]).policy
        return best, *(
            other for other, pair in self._pairs_of(best).items() if pair.verdict == "undecided"
        )

    @property
    def told(self) -> tuple[str, ...]:
        """Who may be as good as the best, and what shares are of, for people."""
        found = []
        if len(self.policies) > 2 and self.not_told_apart:
            best, *others = self.not_told_apart
            unknown = [name for name, pair in self._pairs_of(best).items() if pair.verdict is None]
            without = f"; not compared with it: {', '.join(unknown)}" if unknown else ""
            names = ", ".join(others) or "none"
            found.append(f"Not told apart from the best, {best}: {names}{without}.")
        if self.is_partial:
            found.append(
                "Policies played different conditions: a share is of all that its policy played, a"
                " difference of what both played."
            )
        return tuple(found)

    def _pairs_of(self, policy: str) -> dict[str, PolicyPair]:
        """Its pairs by the other policy, the best first."""
        found = {
            pair.second if pair.first == policy else pair.first: pair
            for pair in self.pairs
            if policy in (pair.first, pair.second)
        }
        return {own.policy: found[own.policy] for own in self.by_success if own.policy in found}

    @property
    def overlap(self) -> dict[str, dict[str, int]]:
        """Conditions that every two policies have both played, the best policy first."""
        policies = [own.policy for own in self.by_success]
        found = {own.policy: dict.fromkeys(policies, own.n_conditions) for own in self.by_success}
        for pair in self.pairs:
            for one, other in ((pair.first, pair.second), (pair.second, pair.first)):
                found[one][other] = pair.n_conditions
        return found

    @property
    def is_partial(self) -> bool:
        """Whether a policy played conditions that another did not."""
        return len({n for row in self.overlap.values() for n in row.values()}) > 1

    @property
    def by_success(self) -> list[Standing]:
        """The policies, the best first, and those without a rank last."""
        return sorted(self.policies, key=lambda own: own.place)

    @property
    def tests(self) -> tuple[str, ...]:
        """What the p values come from, for people."""
        return tuple(TESTS[name] for name in TESTS if any(p.test == name for p in self.pairs))

    @property
    def power(self) -> float:
        """Power at which a difference counts as one that could have been shown."""
        return POWER

    @property
    def uncovered(self) -> tuple[Standing, ...]:
        """Policies with too few scored episodes for a rank or a verdict."""
        return tuple(own for own in self.policies if not own.coverage.is_sufficient)
