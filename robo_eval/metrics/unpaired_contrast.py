"""Which of two policies succeeds more often in episodes that nothing pairs."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from robo_eval.core.estimate import Estimate
from robo_eval.metrics.contrast import Attempts, Contrast, difference_of, no_difference
from robo_eval.stats.unpaired import barnard_p, newcombe_interval

if TYPE_CHECKING:
    from robo_eval.metrics.config import MetricConfig

_BARNARD_MOST: Final = 250_000
"""Product of the sizes up to which Barnard's test is used; 0.1 s at most."""


def contrast_of_episodes(first: Attempts, second: Attempts, config: MetricConfig) -> Contrast:
    """Compare all episodes of two policies in the conditions that both played.

    Barnard's exact test, or the score test beyond 500 episodes each; Newcombe's interval. There
    is neither where the conditions are mixed differently, since a policy with more of the easy ones
    would look better, nor where seeds repeat within a policy.

    Args:
        first: Episodes of one policy.
        second: Of the other.
        config: Settings of the interval.
    """
    shared = np.intersect1d(first.condition, second.condition)
    one, other = (side.take(np.isin(side.condition, shared)) for side in (first, second))
    left_out = len(first.seed) + len(second.seed) - len(one.seed) - len(other.seed)
    problem = _problem(one, other)
    x, y = (side.put_together().scored.success for side in (one, other))
    k1, n1, k2, n2 = round(x.sum()), len(x), round(y.sum()), len(y)
    p_value: float | None = None
    rates: tuple[float, float] | None = None
    test = "none"
    if not (n1 and n2):
        estimate = no_difference(problem or "no scored episode on one side")
    elif problem:
        value = float(x.sum() / n1 - y.sum() / n2)  # shares, where seeds repeat
        estimate = Estimate(value=value, n=n1 + n2, method="none", unit="ratio", reason=problem)
    else:
        low, high = newcombe_interval(k1, n1, k2, n2, level=config.level)
        estimate = difference_of(k1 / n1 - k2 / n2, low, high, n1 + n2, "newcombe", config)
        p_value, test = _unpaired_p(k1, n1, k2, n2)
        rates = (k1 / n1, k2 / n2)
    return Contrast(
        unit="episodes",
        n_units=n1 + n2,
        n_discordant=None,
        n_pairs=0,
        n_first=n1,
        n_second=n2,
        left_out=left_out,
        difference=estimate,
        p_value=p_value,
        test=test,
        rates=rates,
    )


def _problem(one: Attempts, other: Attempts) -> str | None:
    """Why two rates cannot be compared without pairs."""
    if not (len(one.seed) and len(other.seed)):
        return "no condition that both played"
    if _mixture(one) != _mixture(other):
        return "without pairs, both need the same mixture of conditions"
    for side in (one, other):
        seeds = side.seed[side.seed >= 0]
        if len(np.unique(seeds)) < len(seeds):
            return "seeds repeat, and too few of them are those of the other policy"
    return None


def _mixture(side: Attempts) -> dict[int, Fraction]:
    counts = Counter(side.condition.tolist())
    return {condition: Fraction(count, len(side.seed)) for condition, count in counts.items()}


def _unpaired_p(k1: int, n1: int, k2: int, n2: int) -> tuple[float, str]:
    if n1 * n2 <= _BARNARD_MOST:
        # In one order, so that rounding does not depend on which policy is named first.
        (ka, na), (kb, nb) = sorted([(k1, n1), (k2, n2)], key=lambda side: (side[1], side[0]))
        return barnard_p(ka, na, kb, nb), "barnard"
    pooled = (k1 + k2) / (n1 + n2)
    error = math.sqrt(pooled * (1.0 - pooled) * (1.0 / n1 + 1.0 / n2))
    if error == 0.0:
        return 1.0, "score"
    return math.erfc(abs(k1 / n1 - k2 / n2) / error / math.sqrt(2.0)), "score"
