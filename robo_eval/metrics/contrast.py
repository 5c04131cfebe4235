"""By how much one policy succeeds more often than another, and what could have been shown."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from robo_eval.core.estimate import Estimate
from robo_eval.core.wording import counted
from robo_eval.metrics.calibrated import CALIBRATION, is_calibrated
from robo_eval.metrics.performance import CONDITION, by_first
from robo_eval.metrics.standings import POWER, PolicyPair, Rate
from robo_eval.metrics.tables import Rows
from robo_eval.stats.clustered_pairs import (
    clustered_difference,
    detectable_difference,
    least_deciding_clusters,
)
from robo_eval.stats.paired import paired_table
from robo_eval.stats.planning import episodes_per_arm, minimum_detectable_difference
from robo_eval.stats.unconditional import least_deciding_of, pairs_interval, pairs_p
from robo_eval.stats.unpaired import barnard_p, newcombe_interval

if TYPE_CHECKING:
    from robo_eval.metrics.config import MetricConfig

_LEAST_MATCHED: Final = 0.5
"""Share of the episodes of the smaller policy that must have a match to be compared in pairs."""
_BARNARD_MOST: Final = 250_000
"""Product of the sizes up to which Barnard's test is used; 0.1 s at most."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attempts:
    """The episodes of one policy on one side, whatever number of attempts each took.

    Attributes:
        policy: Its name.
        success: 1 or 0 as `metrics.performance.by_first` counts it, or their mean where episodes
            were put together; NaN where there is no verdict, shape (n,).
        condition: Number of the condition, shape (n,).
        seed: Number of the seed, below 0 and of its own where there is none, shape (n,).
        repeats: Episodes with a verdict behind each value, shape (n,).
    """

    policy: str
    success: NDArray[np.float64]
    condition: NDArray[np.int64]
    seed: NDArray[np.int64]
    repeats: NDArray[np.int64]

    def take(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> Attempts:
        """Some of the episodes."""
        return Attempts(
            policy=self.policy,
            success=self.success[chosen],
            condition=self.condition[chosen],
            seed=self.seed[chosen],
            repeats=self.repeats[chosen],
        )

    def put_together(self) -> Attempts:
        """One value for each condition and seed, the mean of its episodes."""
        keys, first, group = np.unique(self.keys, return_index=True, return_inverse=True)
        known = ~np.isnan(self.success)
        repeats = np.bincount(group[known], minlength=len(keys))
        sums = np.bincount(group[known], weights=self.success[known], minlength=len(keys))
        means = np.divide(sums, repeats, out=np.full(len(keys), np.nan), where=repeats > 0)
        return replace(self.take(first), success=means, repeats=repeats)

    @property
    def scored(self) -> Attempts:
        """Those with a verdict."""
        return self.take(~np.isnan(self.success))

    @property
    def has_seeds(self) -> bool:
        """Whether there are episodes, each with a seed."""
        return bool(len(self.seed)) and bool(self.seed.min() >= 0)

    @property
    def keys(self) -> NDArray[np.int64]:
        """Condition and seed of each episode as a number, shape (n,)."""
        return (self.condition << 40) + self.seed


def attempts_of(members: Mapping[str, Rows]) -> dict[str, Attempts]:
    """The episodes of each policy, conditions and seeds numbered alike for all.

    Args:
        members: Rows of each policy, all cut from the same rows.
    """
    single = {policy: _last_attempts(rows) for policy, rows in members.items()}
    names = [*CONDITION, *([CALIBRATION] if all(map(is_calibrated, single.values())) else [])]
    condition = np.zeros(sum(map(len, single.values())), dtype=np.int64)
    for name in names:
        codes = [rows.codes(name) for rows in single.values()]
        numbers = np.concatenate([found.code for found in codes])
        # Numbered anew after each column, so that the product stays small.
        condition = pd.factorize(condition * max(found.size for found in codes) + numbers)[0]
    ends = np.cumsum([len(rows) for rows in single.values()])[:-1]
    return {
        policy: Attempts(
            policy=policy,
            success=np.where(rows.scored, by_first(rows, rows.succeeded.astype(float)), np.nan),
            condition=own.astype(np.int64),
            seed=np.where(rows.missing("seed"), -1 - np.arange(len(rows)), rows.codes("seed").code),
            repeats=np.ones(len(rows), dtype=np.int64),
        )
        for (policy, rows), own in zip(single.items(), np.split(condition, ends), strict=True)
    }


def _last_attempts(rows: Rows) -> Rows:
    """One row an episode: the scored one of several attempts."""
    ordered = rows.take(np.argsort(~rows.scored, kind="stable"))
    return ordered.take(~pd.Series(ordered.codes("base_id").code).duplicated().to_numpy())


def contrast(first: Attempts, second: Attempts, config: MetricConfig) -> PolicyPair:
    """Compare all that both played, whatever else either did.

    That is in pairs, where in the conditions of both at least half of the smaller policy matches.

    Args:
        first: Episodes of one policy.
        second: Of the other.
        config: Settings of the interval.
    """
    conditions = np.intersect1d(first.condition, second.condition)
    found = None
    if len(conditions) and first.has_seeds and second.has_seeds:
        # What repeats in a condition under one seed is one observation of it.
        one, other = first.put_together(), second.put_together()
        shared, at, there = np.intersect1d(
            one.keys, other.keys, assume_unique=True, return_indices=True
        )
        fewest = min(int(np.isin(own.condition, conditions).sum()) for own in (one, other))
        if len(shared) >= _LEAST_MATCHED * fewest:
            left_out = len(one.seed) + len(other.seed) - 2 * len(shared)
            found = contrast_of_pairs(one.take(at), other.take(there), left_out, config)
    found = found or contrast_of_episodes(first, second, config)
    return replace(found, n_conditions=len(conditions))


# In pairs ----------------------------------------------------------------------------------------


def contrast_of_pairs(
    first: Attempts, second: Attempts, left_out: int, config: MetricConfig
) -> PolicyPair:
    """Compare row i of one policy with row i of another.

    With a seed of its own for each pair: the exact test of pairs and the differences it does not
    reject. Where pairs share their seeds, or a seed repeats, the seeds are what is independent:
    Student's t of their means with a seed added at either end, and the interval of the same t.
    Flipping the signs of seeds would ask whether a seed could be swapped between the policies,
    which equally good ones that fail differently do not allow.

    Args:
        first: Episodes of one policy.
        second: Those of the other in the same conditions with the same seeds, in the same order.
        left_out: Episodes of either that have no counterpart.
        config: Settings of the interval.
    """
    both = ~np.isnan(first.success + second.success)
    one, other = first.take(both), second.take(both)
    n = len(one.success)
    seeds, cluster = np.unique(one.seed, return_inverse=True)
    if n and (len(seeds) < n or max(one.repeats.max(), other.repeats.max()) > 1):
        return _by_seed(one, other, cluster, left_out, config)
    table = paired_table(one.success, other.success)
    b, c = table.only_first, table.only_second
    if n:
        low, high = pairs_interval(b, c, n, level=config.level)
        difference = _difference((b - c) / n, low, high, n, "pairs_exact", config)
    else:
        difference = _none("no pair with both episodes scored")
    return PolicyPair(
        first=first.policy,
        second=second.policy,
        difference=difference,
        unit="pairs",
        n_units=n,
        n_discordant=b + c,
        n_pairs=n,
        left_out=left_out,
        p_value=pairs_p(b, c, n) if n else None,
        test="pairs_exact" if n else "none",
    )


def _by_seed(
    one: Attempts,
    other: Attempts,
    cluster: NDArray[np.intp],
    left_out: int,
    config: MetricConfig,
) -> PolicyPair:
    """Pairs that share their seeds: what a seed does in all conditions is one observation."""
    difference = one.success - other.success
    n = len(difference)
    sums, sizes = np.bincount(cluster, weights=difference), np.bincount(cluster)
    n_seeds = len(sums)
    if n_seeds > 1:
        found = clustered_difference(np.round(sums, 12), sizes, level=config.level)
        method = f"student_t_{n_seeds}_seeds"
        estimate = _difference(found.value, found.low, found.high, n, method, config)
    else:
        reason = f"{counted(n_seeds, 'seed')}, shared by all pairs, says too little"
        found, estimate = None, replace(_none(reason), value=float(difference.mean()), n=n)
    return PolicyPair(
        first=one.policy,
        second=other.policy,
        difference=estimate,
        unit="seeds",
        n_units=n_seeds,
        n_discordant=int((sums != 0.0).sum()),
        n_pairs=n,
        left_out=left_out,
        p_value=found.p if found else None,
        test="t_by_seed" if found else "none",
        seeds=found,
    )


# Without pairs -----------------------------------------------------------------------------------


def contrast_of_episodes(first: Attempts, second: Attempts, config: MetricConfig) -> PolicyPair:
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
    rates: tuple[Rate, Rate] | None = None
    test = "none"
    if not (n1 and n2):
        estimate = _none(problem or "no scored episode on one side")
    elif problem:
        value = float(x.sum() / n1 - y.sum() / n2)  # shares, where seeds repeat
        estimate = Estimate(value=value, n=n1 + n2, method="none", unit="ratio", reason=problem)
    else:
        low, high = newcombe_interval(k1, n1, k2, n2, level=config.level)
        estimate = _difference(k1 / n1 - k2 / n2, low, high, n1 + n2, "newcombe", config)
        p_value, test = _unpaired_p(k1, n1, k2, n2)
        rates = ((k1 / n1, n1), (k2 / n2, n2))
    return PolicyPair(
        first=first.policy,
        second=second.policy,
        difference=estimate,
        unit="episodes",
        n_units=n1 + n2,
        n_discordant=None,
        n_pairs=0,
        left_out=left_out,
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


# What could have been shown ----------------------------------------------------------------------


def detectable(pair: PolicyPair, alpha: float) -> float | None:
    """The least difference that so many episodes find with the power of `POWER`.

    Pairs are taken to disagree as often as they did, one more of each kind counted: no
    disagreement at all is no proof that there is none. Seeds are taken to scatter as they did,
    which counts one more of each kind as well.

    Args:
        pair: Two policies, and what was compared.
        alpha: Largest p value that decides.

    Returns:
        The difference; None if even the largest possible would not be found.
    """
    if not pair.n_units:
        return None
    if pair.n_discordant is None:
        return _detectable_of_episodes(pair, alpha)
    if pair.seeds is not None:
        return detectable_difference(pair.seeds, power=POWER, alpha=alpha)
    share = (pair.n_discordant + 2.0) / (pair.n_units + 2.0)
    return minimum_detectable_difference(
        pair.n_units, share, power=POWER, alpha=alpha, test="pairs"
    )


def _detectable_of_episodes(pair: PolicyPair, alpha: float) -> float | None:
    if pair.rates is None:
        return None
    (rate, n_first), (other, n_second) = pair.rates
    n = 2.0 / (1.0 / n_first + 1.0 / n_second)  # episodes a side that tell as much
    middle = (rate * n_first + other * n_second + 1.0) / (n_first + n_second + 2.0)

    def is_found(difference: float) -> bool:
        high = min(1.0, max(middle + difference / 2.0, difference))
        return episodes_per_arm(high, high - difference, power=POWER, alpha=alpha) <= n

    if not is_found(1.0):
        return None
    missed, enough = 0.0, 1.0
    for _ in range(30):
        half = (missed + enough) / 2.0
        missed, enough = (missed, half) if is_found(half) else (half, enough)
    return enough


def least_deciding(pair: PolicyPair, alpha: float) -> int | None:
    """The least number of units that decide at `alpha`, all for one side; None if none can."""
    if pair.n_discordant is None:
        return None
    least = least_deciding_of if pair.unit == "pairs" else least_deciding_clusters
    return least(pair.n_units, alpha)


# Estimates ---------------------------------------------------------------------------------------


def _none(reason: str) -> Estimate:
    """The difference of rates that nothing says anything about."""
    return Estimate.missing(reason=reason, unit="ratio")


def _difference(
    value: float, low: float, high: float, n: int, method: str, config: MetricConfig
) -> Estimate:
    """A difference of rates with its interval."""
    return Estimate(
        value=value, low=low, high=high, level=config.level, n=n, method=method, unit="ratio"
    )
