"""How many of the episodes that should have a score have one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from robo_eval.core.kinds import EndReason
from robo_eval.core.plain import UNSAID
from robo_eval.metrics.tables import Rows

NOT_PLAYED = "not_played"
"""What is missing of an episode the plan asks for and the log does not hold."""
NO_VERDICT = "no_verdict"
"""What is missing of an episode that was played to its end and has no score all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Scored episodes out of those there should be.

    An episode counts once, whatever number of attempts it took.

    Attributes:
        scored: Episodes with a score.
        attempted: Episodes tried at least once.
        planned: Episodes the plan asks for; None without a plan.
        attempts: Tries, those repeated after a fault or void included.
        voids: Tries a person declared void.
        missing: Episodes without a score, by what their last try ended by.
        minimum: Share that must be scored for a headline or a verdict.
    """

    scored: int
    attempted: int
    planned: int | None
    attempts: int
    voids: int
    missing: Mapping[str, int] = field(default_factory=dict)
    minimum: float = field(default=0.95, metadata=UNSAID)

    SAID: ClassVar = ("expected", "share", "is_sufficient", "text")

    @property
    def expected(self) -> int:
        """Episodes there should be a score of."""
        return max(self.attempted, self.planned or 0)

    @property
    def share(self) -> float | None:
        """Scored out of expected; None if none is expected."""
        return self.scored / self.expected if self.expected else None

    @property
    def is_sufficient(self) -> bool:
        """Whether a headline or a verdict may be given."""
        # Rounded, because 0.95 times a number of episodes can exceed the whole number it is.
        needed = round(self.minimum * self.expected, 9)
        return self.scored > 0 and self.scored >= needed

    @property
    def text(self) -> str:
        """For people: `7 of 20 scored (13 fault)`."""
        what = ", ".join(
            f"{count} {reason.replace('_', ' ')}" for reason, count in self.missing.items()
        )
        return f"{self.scored} of {self.expected} scored" + (f" ({what})" if what else "")

    def bounds(self, total: float, seen: int) -> tuple[float, float] | None:
        """Means that arise when every missing episode counts as 0, and as 1.

        Args:
            total: Sum over the scored episodes of a quantity in [0, 1].
            seen: How many there are, seeds that repeat in a condition once.

        Returns:
            The two means; None if nothing is missing or nothing is expected.
        """
        lost = self.expected - self.scored
        if lost == 0:
            return None
        return total / (seen + lost), (total + lost) / (seen + lost)


def coverage_of(episodes: Rows, *, planned: int | None = None, minimum: float = 0.95) -> Coverage:
    """Count scored and missing episodes.

    Args:
        episodes: Rows of one group.
        planned: Episodes the plan asks for in this group.
        minimum: Share that must be scored for a headline or a verdict.
    """
    attempt, end = episodes["attempt"], episodes["end_reason"]
    number, is_scored = episodes.codes("base_id").code, episodes.scored
    scored = np.sort(number[is_scored])
    scored = scored[np.append(scored[1:] != scored[:-1], True)[: len(scored)]]
    rest = np.flatnonzero(~is_scored)
    place = np.searchsorted(scored, number[rest])
    rest = rest[np.append(scored, -1)[place] != number[rest]]
    # Of the tries at one episode the last counts; stable, so of equal numbers the later row.
    rest = rest[np.lexsort((attempt[rest].astype(np.int64), number[rest]))]
    is_last = np.append(number[rest][1:] != number[rest][:-1], True)[: len(rest)]
    missing: Counter[str] = Counter()
    for reason, count in Counter(end[rest[is_last]].tolist()).items():
        missing[NO_VERDICT if EndReason(reason).is_scored else str(reason)] += count
    attempted = len(scored) + int(is_last.sum())
    if planned is not None and planned > attempted:
        missing[NOT_PLAYED] = planned - attempted
    return Coverage(
        scored=len(scored),
        attempted=attempted,
        planned=planned,
        attempts=len(episodes),
        voids=int((end == EndReason.VOID.value).sum()),
        missing=dict(sorted(missing.items())),
        minimum=minimum,
    )
