"""By how much one policy succeeds more often than another, and what could have been shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from robo_eval.core.estimate import Estimate
from robo_eval.metrics.performance import CONDITION, by_first
from robo_eval.metrics.tables import Rows
from robo_eval.stats.clustered_pairs import (
    ClusteredDifference,
    detectable_difference,
    least_deciding_clusters,
)
from robo_eval.stats.planning import episodes_per_arm, minimum_detectable_difference
from robo_eval.stats.unconditional import least_deciding_of

if TYPE_CHECKING:
    from robo_eval.metrics.config import MetricConfig

CALIBRATION: Final = "calibration"
"""Column that tells simulators apart, where rows have it."""
Unit = Literal["pairs", "seeds", "episodes"]
"""What counts as one independent observation of a difference."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attempts:
    """The episodes of one policy on one side, whatever number of attempts each took.

    Attributes:
        success: 1 or 0 as `metrics.performance.by_first` counts it, or their mean where episodes
            were put together; NaN where there is no verdict, shape (n,).
        condition: Number of the condition, shape (n,).
        seed: Number of the seed, below 0 and of its own where there is none, shape (n,).
        repeats: Episodes with a verdict behind each value, shape (n,).
    """

    success: NDArray[np.float64]
    condition: NDArray[np.int64]
    seed: NDArray[np.int64]
    repeats: NDArray[np.int64]

    def take(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> Attempts:
        """Some of the episodes."""
        return Attempts(
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
            success=np.where(rows.scored, by_first(rows, rows.succeeded.astype(float)), np.nan),
            condition=own.astype(np.int64),
            seed=np.where(rows.missing("seed"), -1 - np.arange(len(rows)), rows.codes("seed").code),
            repeats=np.ones(len(rows), dtype=np.int64),
        )
        for (policy, rows), own in zip(single.items(), np.split(condition, ends), strict=True)
    }


def is_calibrated(rows: Rows) -> bool:
    """Whether rows say how the simulator was calibrated."""
    try:
        rows.codes(CALIBRATION)
    except KeyError:
        return False
    return True


def _last_attempts(rows: Rows) -> Rows:
    """One row an episode: the scored one of several attempts."""
    ordered = rows.take(np.argsort(~rows.scored, kind="stable"))
    return ordered.take(~pd.Series(ordered.codes("base_id").code).duplicated().to_numpy())


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """What the episodes of two policies say about the difference of their success rates.

    Attributes:
        unit: What is independent: pairs, the seeds that pairs share, or single episodes where
            nothing pairs them.
        n_units: How many there are.
        n_discordant: Pairs that ended differently, or seeds that lean one way; None without pairs.
        n_pairs: Pairs with a verdict on both sides; 0 without pairs.
        n_first: Scored episodes of the first policy that are compared.
        n_second: Of the second.
        left_out: Episodes of either that have no counterpart in the other.
        difference: Success of the first less that of the second.
        p_value: Two-sided; None if there is no test.
        test: Which one.
        seeds: What the seeds said, where they are the unit.
        rates: Success of both, without pairs.
        n_conditions: Conditions that both played.
    """

    unit: Unit
    n_units: int
    n_discordant: int | None
    n_pairs: int
    n_first: int
    n_second: int
    left_out: int
    difference: Estimate
    p_value: float | None
    test: str
    seeds: ClusteredDifference | None = None
    rates: tuple[float, float] | None = None
    n_conditions: int = 0

    def detectable(self, alpha: float, power: float) -> float | None:
        """The least difference that so many episodes find with the given power.

        Pairs are taken to disagree as often as they did, one more of each kind counted: no
        disagreement at all is no proof that there is none. Seeds are taken to scatter as they did,
        which counts one more of each kind as well.

        Args:
            alpha: Largest p value that decides.
            power: Chance wanted that it is found.

        Returns:
            The difference; None if even the largest possible would not be found.
        """
        if not self.n_units:
            return None
        if self.n_discordant is None:
            return self._detectable_of_episodes(alpha, power)
        if self.seeds is not None:
            return detectable_difference(self.seeds, power=power, alpha=alpha)
        share = (self.n_discordant + 2.0) / (self.n_units + 2.0)
        return minimum_detectable_difference(
            self.n_units, share, power=power, alpha=alpha, test="pairs"
        )

    def _detectable_of_episodes(self, alpha: float, power: float) -> float | None:
        if self.rates is None:
            return None
        n = 2.0 / (1.0 / self.n_first + 1.0 / self.n_second)  # episodes a side that tell as much
        middle = (self.rates[0] * self.n_first + self.rates[1] * self.n_second + 1.0) / (
            self.n_first + self.n_second + 2.0
        )

        def is_found(difference: float) -> bool:
            high = min(1.0, max(middle + difference / 2.0, difference))
            return episodes_per_arm(high, high - difference, power=power, alpha=alpha) <= n

        if not is_found(1.0):
            return None
        missed, enough = 0.0, 1.0
        for _ in range(30):
            half = (missed + enough) / 2.0
            missed, enough = (missed, half) if is_found(half) else (half, enough)
        return enough

    def least_deciding(self, alpha: float) -> int | None:
        """The least number of units that decide at `alpha`, all for one side; None if none can."""
        if self.n_discordant is None:
            return None
        least = least_deciding_of if self.unit == "pairs" else least_deciding_clusters
        return least(self.n_units, alpha)


def no_difference(reason: str) -> Estimate:
    """The difference of rates that nothing says anything about."""
    return Estimate.missing(reason=reason, unit="ratio")


def difference_of(
    value: float, low: float, high: float, n: int, method: str, config: MetricConfig
) -> Estimate:
    """A difference of rates with its interval."""
    return Estimate(
        value=value, low=low, high=high, level=config.level, n=n, method=method, unit="ratio"
    )
