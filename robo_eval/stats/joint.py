"""How far several numbers computed from the same pairs could be off, resampled together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.stats._checks import finite, pair_up
from robo_eval.stats._resample import (
    RESAMPLES,
    CountedRows,
    check_resamples,
    distinct_rows,
    few_clusters_note,
    groups_by,
    percentile_statistic,
    resampled_means,
    sorted_clusters,
    two_stage_means,
)
from robo_eval.stats.arrays import same_labels
from robo_eval.stats.estimate import Estimate, without_interval
from robo_eval.stats.paired import bonett_price_interval, folded_interval, paired_table
from robo_eval.stats.proportions import wilson_interval

OfMeans = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""A statistic of column means: takes shape (B, d), gives shape (B,), NaN where undefined."""

METHOD: Final = "joint_bootstrap_percentile"
LEAST_ROWS: Final = 5
"""Rows from which there is an interval; below, resampling knows too few values."""


def joint_intervals(
    columns: ArrayLike,
    statistics: Sequence[OfMeans],
    *,
    clusters: ArrayLike | None = None,
    level: float = 0.95,
    unit: str = "ratio",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> list[Estimate]:
    """Intervals of statistics of column means; the same resampled rows feed all of them.

    What two statistics have in common they then have in common in every resample, too, and sides
    of a pair are never torn apart. Equal rows are counted first and resampled by their counts, so a
    million pairs of outcomes cost no more than a hundred.

    Args:
        columns: One row a pair (or episode), one column a measured number, shape (n, d).
        statistics: Functions of the column means.
        clusters: Which task (day, robot, ...) each row belongs to, shape (n,). Clusters are then
            resampled first, and the mean of a column is the mean of its cluster means.
        level: Coverage aimed at.
        unit: Unit of the statistics.
        resamples: Bootstrap resamples.
        seed: Seed of the resamples; the order of rows changes nothing.

    Returns:
        One statistic for each function; without an interval below 5 rows, or if every resample
        gives the same.

    Raises:
        ValueError: If there is no row, or a number is not finite.

    References:
        Efron and Tibshirani (1993), An Introduction to the Bootstrap, chapters 8 and 13.

    Example:
        >>> pairs = [(1, 1)] * 14 + [(1, 0)] * 2 + [(0, 0)] * 4
        >>> (ratio,) = joint_intervals(pairs, [lambda means: means[:, 1] / means[:, 0]])
        >>> print(f"{ratio.value:.3f} [{ratio.low:.2f}, {ratio.high:.2f}]")
        0.875 [0.69, 1.00]
    """
    check_resamples(level, resamples)
    found = _resampled(columns, clusters, resamples, seed)
    with np.errstate(divide="ignore", invalid="ignore"):
        return [
            found.statistic(
                float(statistic(found.means[None, :])[0]),
                statistic(found.draws),
                level=level,
                unit=unit,
            )
            for statistic in statistics
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimRealIntervals:
    """What pairs of a simulated and a real episode say.

    Attributes:
        sim: Mean outcome in simulation.
        real: Mean outcome in reality.
        difference: Simulation minus reality.
        ratio: Reality over simulation.
        agreement: 1 less the absolute difference, at least 0.
        index: Cube root of real, safety and agreement multiplied; no value without safety.
    """

    sim: Estimate
    real: Estimate
    difference: Estimate
    ratio: Estimate
    agreement: Estimate
    index: Estimate


@same_labels()
def sim_real_intervals(
    sim: ArrayLike,
    real: ArrayLike,
    *,
    safety: float | None = None,
    clusters: ArrayLike | None = None,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> SimRealIntervals:
    """How simulation and reality compare in pairs, from one joint bootstrap.

    Where a number has an interval that is better than a bootstrap, it is that: outcomes of 0 and 1
    that are not clustered have Wilson's for the two rates and Bonett and Price's for their
    difference. The agreement has the interval of the difference, folded: resampled differences
    are almost never 0, so percentiles of the agreement would rule out 1 where it is 1 (measured:
    they cover in 3 % of trials of 2000 pairs). For the same reason the upper end of the index
    takes the agreement as 1 where the interval of the difference holds 0.

    Args:
        sim: Outcomes in simulation, in [0, 1], shape (n,).
        real: Outcomes in reality of the same task, seed and policy, shape (n,).
        safety: Safety score in [0, 1], taken as exact; None if not measured.
        clusters: As `joint_intervals`.
        level: Coverage aimed at.
        resamples: As `joint_intervals`.
        seed: As `joint_intervals`.

    Raises:
        ValueError: If there is no pair, the sides differ in length, or a number is not in [0, 1].

    Example:
        >>> found = sim_real_intervals([1] * 16 + [0] * 4, [1] * 14 + [0] * 6, safety=0.95)
        >>> print(f"{found.agreement.value:.2f} {found.agreement.low:.2f}")
        0.90 0.74
        >>> print(f"{found.index.value:.3f} [{found.index.low:.2f}, {found.index.high:.2f}]")
        0.843 [0.72, 0.95]
    """
    check_resamples(level, resamples)
    s, r = finite("sim", sim), finite("real", real)
    pair_up("sim", s, "real", r)
    table = np.column_stack([s, r])
    outside = (table < 0.0) | (table > 1.0)
    if outside.any():
        raise ValueError(f"outcomes must be between 0 and 1, given {table[outside][0]}")
    if safety is not None and not 0.0 <= safety <= 1.0:
        raise ValueError(f"safety must be between 0 and 1, given {safety}")
    found = _resampled(table, clusters, resamples, seed)
    if clusters is None and np.isin(table, (0.0, 1.0)).all():
        rates, difference = _of_outcomes(s, r, level)
    else:
        rates = [
            found.statistic(float(found.means[i]), found.draws[:, i], level=level) for i in (0, 1)
        ]
        difference = found.statistic(
            float(found.means[0] - found.means[1]),
            found.draws[:, 0] - found.draws[:, 1],
            level=level,
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = found.statistic(
            float(found.means[1] / found.means[0]),
            found.draws[:, 1] / found.draws[:, 0],
            level=level,
        )
    return SimRealIntervals(
        sim=rates[0],
        real=rates[1],
        difference=difference,
        ratio=ratio,
        agreement=_folded(difference),
        index=_index(found, difference, safety, level),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Resampled:
    """Column means, shape (d,), and those of each resample, shape (B, d)."""

    means: NDArray[np.float64]
    draws: NDArray[np.float64]
    n: int
    clusters: int | None

    def statistic(
        self,
        value: float,
        draws: NDArray[np.float64],
        *,
        level: float,
        unit: str = "ratio",
        upper_draws: NDArray[np.float64] | None = None,
    ) -> Estimate:
        """One statistic of these resamples."""
        reason = None
        if self.n < LEAST_ROWS:
            reason = f"{self.n} rows; a bootstrap needs {LEAST_ROWS}"
        elif self.clusters == 1:
            reason = "one cluster says nothing about clusters like it"
        if reason is not None and np.isfinite(value):
            return without_interval(value, n=self.n, reason=reason, level=level, unit=unit)
        return percentile_statistic(
            value,
            draws,
            level=level,
            n=self.n,
            method=METHOD if self.clusters is None else f"two_stage_{METHOD}",
            unit=unit,
            upper_draws=upper_draws,
            note=few_clusters_note(self.clusters) if self.clusters is not None else None,
        )


def _resampled(
    columns: ArrayLike, clusters: ArrayLike | None, resamples: int, seed: int
) -> _Resampled:
    table = finite("columns", columns, ndim=2)
    if len(table) == 0:
        raise ValueError("no rows; there is nothing to resample")
    rng = np.random.default_rng(seed)
    if clusters is None:
        rows = distinct_rows(table)
        means, draws = _means(rows), resampled_means(rows, resamples, rng)
        return _Resampled(means=means, draws=draws, n=len(table), clusters=None)
    groups = sorted_clusters(groups_by(clusters, table))
    return _Resampled(
        means=np.mean([_means(rows) for rows in groups], axis=0),
        draws=two_stage_means(groups, resamples, rng),
        n=len(table),
        clusters=len(groups),
    )


def _means(rows: CountedRows) -> NDArray[np.float64]:
    return np.asarray(rows.counts @ rows.values / rows.counts.sum())


def _of_outcomes(
    sim: NDArray[np.float64], real: NDArray[np.float64], level: float
) -> tuple[list[Estimate], Estimate]:
    """Rates of both sides and their difference where every outcome is 0 or 1."""
    n = len(sim)

    def share(value: float, low: float, high: float, method: str) -> Estimate:
        return Estimate(
            value=value, low=low, high=high, level=level, n=n, method=method, unit="ratio"
        )

    rates = []
    for side in (sim, real):
        low, high = wilson_interval(int(side.sum()), n, level=level)
        rates.append(share(float(side.mean()), low, high, "wilson"))
    table = paired_table(sim, real)
    low, high = bonett_price_interval(table.only_first, table.only_second, n, level=level)
    value = (table.only_first - table.only_second) / n
    return rates, share(value, low, high, "bonett_price")


def _folded(difference: Estimate) -> Estimate:
    """1 less the absolute difference, with the interval that the difference's turns into."""
    value, low, high = difference.value, difference.low, difference.high
    assert value is not None  # means of numbers are numbers
    agreement = max(0.0, 1.0 - abs(value))
    if low is None or high is None:
        return replace(difference, value=agreement)
    low, high = folded_interval(low, high)
    method = f"{difference.method}_folded"
    return replace(difference, value=agreement, low=low, high=high, method=method)


def _index(found: _Resampled, difference: Estimate, safety: float | None, level: float) -> Estimate:
    if safety is None:
        return without_interval(None, n=found.n, reason="safety was not measured", level=level)
    means, draws = found.means, found.draws
    agreement = 1.0 - np.abs(draws[:, 0] - draws[:, 1])
    low, high = difference.low, difference.high
    told_apart = low is None or high is None or not low <= 0.0 <= high
    return found.statistic(
        float(np.cbrt(means[1] * safety * (1.0 - abs(means[0] - means[1])))),
        np.cbrt(draws[:, 1] * safety * agreement),
        upper_draws=np.cbrt(draws[:, 1] * safety * (agreement if told_apart else 1.0)),
        level=level,
    )
