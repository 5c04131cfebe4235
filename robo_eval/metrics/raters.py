"""Whether a second person sees the episodes as the log does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Side
from robo_eval.log.evidence import Rating
from robo_eval.log.spans import spans_ns
from robo_eval.metrics.attribution import rating_pairs
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.performance import success_estimate
from robo_eval.stats.agreement import cohens_kappa

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondRater:
    """How one second rater agrees with the verdicts in the log.

    Attributes:
        rater: Who.
        kappa: Cohen's kappa: agreement beyond chance.
        agreed: Share of the episodes in which both say the same.
        table: Episodes by logged verdict and rating, failure before success, 2 by 2.
        missing: Rated episodes without a verdict on both sides.
        blind: Ratings given without knowing the policy.
        late: Others, given once every episode of a robot had been played and names could be known.
        n: All ratings.
    """

    rater: str
    kappa: Estimate
    agreed: Estimate
    table: tuple[tuple[int, int], tuple[int, int]]
    missing: int
    blind: int
    late: int
    n: int


def second_raters(
    ratings: Sequence[Rating] | None, table: pd.DataFrame, config: MetricConfig
) -> tuple[SecondRater, ...]:
    """Agreement of each second rater with the log; none without ratings.

    Args:
        ratings: Second ratings.
        table: A table from `episodes_frame`.
        config: Settings.
    """
    by_rater: dict[str, list[Rating]] = {}
    for rating in ratings or ():
        by_rater.setdefault(rating.rater, []).append(rating)
    verdicts = dict(zip(table["episode_id"], table["success"], strict=True)) if by_rater else {}
    end_ns = last_end_ns(table)
    found = []
    for rater, own in sorted(by_rater.items()):
        counts, missing = rating_pairs(own, verdicts)
        n, same = int(counts.sum()), int(counts.trace())
        agreed = success_estimate(same, n, exact=True, level=config.level)
        if not n:
            agreed = replace(agreed, reason="no episode has both verdicts")
        found.append(
            SecondRater(
                rater=rater,
                kappa=cohens_kappa(counts, level=config.level),
                agreed=agreed,
                table=(
                    (int(counts[0, 0]), int(counts[0, 1])),
                    (int(counts[1, 0]), int(counts[1, 1])),
                ),
                missing=missing,
                blind=sum(rating.blind for rating in own),
                late=sum(
                    not rating.blind and rating.time_ns is not None and rating.time_ns > end_ns
                    for rating in own
                ),
                n=len(own),
            )
        )
    return tuple(found)


def last_end_ns(table: pd.DataFrame) -> float:
    """When the last episode of a robot or twin ended, ns UTC; infinite where that is not known."""
    starts, ends = spans_ns(table[table["side"] != Side.SIM.value])
    known = np.fmax(starts, ends)  # where no length is known, the start
    known = known[~np.isnan(known)]
    return float(known.max()) if len(known) else math.inf
