"""Whether two sides rank policies alike, or two raters judge alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.stats._checks import check_choice, check_level, finite, pair_up, whole
from robo_eval.stats._resample import (
    RESAMPLES,
    check_resamples,
    distinct_rows,
    percentile_statistic,
    resampled_means,
)
from robo_eval.stats.arrays import same_labels
from robo_eval.stats.estimate import Estimate, without_interval

Ties = Literal["published", "half"]
"""How equal simulated rates count; see `mmrv`."""

CORRELATION: Final = "correlation"
"""Unit of a correlation."""
LEAST_POLICIES: Final = 4
"""Policies from which a correlation is given; of three, any is compatible with anything."""


@same_labels()
def mmrv(sim: ArrayLike, real: ArrayLike, *, ties: Ties = "published") -> float:
    """Mean maximum rank violation: what simulation's ranking costs in reality; 0 is the same order.

    For each policy the largest difference in reality to one that simulation ranks on the other
    side of it, averaged. The weight is the difference in reality, so the arguments must not be
    swapped.

    Args:
        sim: Rate of each policy in simulation, shape (P,), P >= 2.
        real: Rate of each policy in reality, shape (P,).
        ties: A tie in simulation of policies that differ in reality counts as a violation of the
            better one (`"published"`), or as half a violation of both (`"half"`). A tie in reality
            costs nothing either way.

    Raises:
        ValueError: If there are fewer than two policies, the sides differ in length, or a number
            is not finite.

    References:
        Li et al. (2024), Evaluating Real-World Robot Manipulation Policies in Simulation, CoRL,
        arXiv 2405.05941 (ties as in the authors' code).

    Example:
        >>> sim = [0.787, 0.857, 0.710, 0.567, 0.027, 0.170]
        >>> real = [0.907, 0.853, 0.920, 0.760, 0.133, 0.293]
        >>> print(f"{mmrv(sim, real):.4f}")
        0.0313
    """
    s, r = finite("sim", sim), finite("real", real)
    pair_up("sim", s, "real", r)
    check_choice("ties", ties, Ties)
    if len(s) < 2:
        raise ValueError(f"a ranking needs 2 policies, given {len(s)}")
    return float(_mmrv(s[None], r[None], ties)[0])


@same_labels()
def pearson(
    sim: ArrayLike,
    real: ArrayLike,
    *,
    level: float = 0.95,
    least_policies: int = LEAST_POLICIES,
) -> Estimate:
    """Correlation of two sides over policies, with Fisher's interval.

    The interval takes the policies for a sample of policies and their rates as exact;
    `ranking_agreement` does the opposite.

    Args:
        sim: Rate of each policy on one side, shape (P,).
        real: Rate of each policy on the other, shape (P,).
        level: Coverage aimed at.
        least_policies: Policies below which there is no value.

    Returns:
        The correlation; no value if a side is constant or there are too few policies.

    Raises:
        ValueError: If the sides differ in length or a number is not finite.

    References:
        Fisher (1921), Metron 1:3-32.

    Example:
        >>> found = pearson([0.1, 0.4, 0.5, 0.9], [0.2, 0.3, 0.7, 0.8])
        >>> print(f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]")
        0.89 [-0.49, 1.00]
        >>> pearson([0.1, 0.4, 0.5], [0.2, 0.3, 0.7]).reason
        '3 policies; a correlation needs 4'
    """
    x, y = finite("sim", sim), finite("real", real)
    pair_up("sim", x, "real", y)
    check_level(level)
    n = len(x)
    missing = _no_correlation(x, y, least_policies)
    if missing is not None:
        return without_interval(None, n=n, reason=missing, level=level, unit=CORRELATION)
    r = float(_pearson(x[None], y[None])[0])
    if abs(r) > 1.0 - 1e-12:
        return without_interval(
            r, n=n, reason="all policies lie on one line", level=level, unit=CORRELATION
        )
    low, high, reason = -1.0, 1.0, "of three policies, any fits" if n <= 3 else None
    if n > 3:
        half = NormalDist().inv_cdf(0.5 + level / 2.0) / math.sqrt(n - 3)
        low, high = math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)
    return Estimate(
        value=r,
        low=low,
        high=high,
        level=level,
        n=n,
        method="fisher",
        unit=CORRELATION,
        reason=reason,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingAgreement:
    """Whether simulation and reality rank the same policies alike.

    Attributes:
        mmrv: Mean maximum rank violation, lower is better.
        pearson: Correlation of the rates.
    """

    mmrv: Estimate
    pearson: Estimate


@same_labels()
def ranking_agreement(
    sim: Sequence[ArrayLike],
    real: Sequence[ArrayLike],
    *,
    paired: bool,
    ties: Ties = "published",
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> RankingAgreement:
    """Agreement of two rankings, with intervals for how few episodes each rate rests on.

    Episodes are resampled inside each policy, so the intervals speak about these policies. Chance
    alone violates ranks, so resampled violations lie above the measured one: read the upper end.

    Args:
        sim: Outcomes or qualities of each policy in simulation, P sequences.
        real: Outcomes or qualities of the same policies in reality, P sequences.
        paired: Whether the i-th episodes of both sides of a policy are a pair, and resampled as
            one.
        ties: See `mmrv`.
        level: Coverage aimed at.
        resamples: Bootstrap resamples.
        seed: Seed of the resamples; the order of policies and episodes changes nothing.

    Raises:
        ValueError: If the sides differ in policies, a policy has no episode, pairs are not
            complete, or a number is not finite.

    Example:
        >>> sim = [[1] * 18 + [0] * 2, [1] * 14 + [0] * 6, [1] * 9 + [0] * 11, [1] * 4 + [0] * 16]
        >>> real = [[1] * 16 + [0] * 4, [1] * 15 + [0] * 5, [1] * 6 + [0] * 14, [0] * 20]
        >>> found = ranking_agreement(sim, real, paired=True)
        >>> print(f"{found.mmrv.value} {found.pearson.value:.2f} {found.pearson.low:.2f}")
        0.0 0.98 0.86
    """
    check_resamples(level, resamples)
    check_choice("ties", ties, Ties)
    if len(sim) != len(real):
        raise ValueError(f"both sides need the same policies, given {len(sim)} and {len(real)}")
    policies = []
    for one, other in zip(sim, real, strict=True):
        x, y = finite("sim", one), finite("real", other)
        if min(len(x), len(y)) == 0:
            raise ValueError("a policy has no episodes on one side; leave it out of both")
        if paired:
            pair_up("sim", x, "real", y)
        tables = [np.column_stack([x, y])] if paired else [x[:, None], y[:, None]]
        policies.append([distinct_rows(table) for table in tables])
    policies.sort(key=lambda sides: [(s.values.tolist(), s.counts.tolist()) for s in sides])
    n = len(policies)
    if n < 2:
        return no_ranking(n, f"{n} policies; a ranking needs 2", level)
    rates = np.array(
        [
            np.concatenate([s.counts @ s.values / s.counts.sum() for s in sides])
            for sides in policies
        ]
    )
    rng = np.random.default_rng(seed)
    drawn = np.stack(
        [np.hstack([resampled_means(s, resamples, rng) for s in sides]) for sides in policies]
    )
    s_drawn, r_drawn = drawn[:, :, 0].T, drawn[:, :, 1].T
    method = "bootstrap_of_pairs_percentile" if paired else "bootstrap_of_episodes_percentile"
    violation = percentile_statistic(
        float(_mmrv(rates[None, :, 0], rates[None, :, 1], ties)[0]),
        _mmrv(s_drawn, r_drawn, ties),
        level=level,
        n=n,
        method=method,
    )
    missing = _no_correlation(rates[:, 0], rates[:, 1], LEAST_POLICIES)
    if missing is not None:
        correlation = without_interval(None, n=n, reason=missing, level=level, unit=CORRELATION)
    else:
        correlation = percentile_statistic(
            float(_pearson(rates[None, :, 0], rates[None, :, 1])[0]),
            _pearson(s_drawn, r_drawn),
            level=level,
            n=n,
            method=method,
            unit=CORRELATION,
        )
        if correlation.high is not None:
            # The noise of episodes lowers every r, so that none of these speaks against a high one.
            correlation = replace(correlation, high=1.0)
    return RankingAgreement(mmrv=violation, pearson=correlation)


def no_ranking(n: int, reason: str, level: float) -> RankingAgreement:
    """What is said of so many policies whose rankings are not compared."""
    none = without_interval(None, n=n, reason=reason, level=level)
    return RankingAgreement(mmrv=none, pearson=replace(none, unit=CORRELATION))


@same_labels()
def cohens_kappa(table: ArrayLike, *, level: float = 0.95) -> Estimate:
    """Agreement of two raters beyond what chance would give: 1 is full, 0 is chance.

    Args:
        table: How often the first rater said i and the second j of the same thing, shape (K, K).
        level: Coverage aimed at.

    Returns:
        Kappa with a large-sample interval, cut off at -1 and 1. No value if there is nothing rated
        or both used one and the same category only; no interval where the raters never differ.

    Raises:
        ValueError: If the table is not square or a count is not whole.

    References:
        Cohen (1960), Educational and Psychological Measurement 20:37-46; Fleiss, Cohen and Everitt
        (1969), Psychological Bulletin 72:323-327.

    Example:
        >>> found = cohens_kappa([[20, 5], [10, 15]])
        >>> print(f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]")
        0.40 [0.15, 0.65]
    """
    counts = whole("table", table)
    check_level(level)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1]:
        raise ValueError(f"table must have shape (K, K), given {counts.shape}")
    n = int(counts.sum())
    if n == 0:
        return without_interval(None, n=0, reason="nothing was rated", level=level)
    p = counts / n
    row, column = p.sum(axis=1), p.sum(axis=0)
    seen, chance = float(np.trace(p)), float(row @ column)
    if chance >= 1.0:
        return without_interval(None, n=n, reason="both raters used one category only", level=level)
    kappa = (seen - chance) / (1.0 - chance)
    weight = row[None, :] + column[:, None]  # how often i and j are said, rows and columns swapped
    on = float((np.diag(p) * ((1.0 - chance) - np.diag(weight) * (1.0 - seen)) ** 2).sum())
    off = float(((p - np.diag(np.diag(p))) * weight**2).sum()) * (1.0 - seen) ** 2
    variance = on + off - (seen * chance - 2.0 * chance + seen) ** 2
    if variance <= 1e-13 * (on + off):  # what rounding leaves of 0
        same = int(np.trace(counts)) == n
        why = "the raters never differ" if same else "its large-sample standard error is 0"
        return without_interval(kappa, n=n, reason=why, level=level)
    error = math.sqrt(variance / n) / (1.0 - chance) ** 2
    half = NormalDist().inv_cdf(0.5 + level / 2.0) * error
    low, high = max(kappa - half, -1.0), min(kappa + half, 1.0)
    return Estimate(
        value=kappa,
        low=low,
        high=high,
        level=level,
        n=n,
        method="fleiss_cohen_everitt",
        unit="ratio",
    )


@same_labels()
def rating_table(first: ArrayLike, second: ArrayLike) -> NDArray[np.int64]:
    """How often the first rater said i and the second j, shape (K, K).

    Args:
        first: Category of each thing by the first rater, numbers, shape (n,).
        second: By the second rater, shape (n,).

    Raises:
        ValueError: If the sides differ in length or a number is not finite.

    Example:
        >>> rating_table([0, 0, 1], [0, 1, 1]).tolist()
        [[1, 1], [0, 1]]
    """
    x, y = finite("first", first), finite("second", second)
    pair_up("first", x, "second", y)
    categories, code = np.unique(np.concatenate([x, y]), return_inverse=True)
    k = len(categories)
    return np.bincount(code[: len(x)] * k + code[len(x) :], minlength=k * k).reshape(k, k)


def _no_correlation(x: NDArray[np.float64], y: NDArray[np.float64], least: int) -> str | None:
    """Why there is no correlation, if there is none."""
    if len(x) < least:
        return f"{len(x)} policies; a correlation needs {least}"
    for name, side in (("sim", x), ("real", y)):
        if len(side) == 0 or side.min() == side.max():
            return f"all policies are equal in {name}"
    return None


def _mmrv(sim: NDArray[np.float64], real: NDArray[np.float64], ties: Ties) -> NDArray[np.float64]:
    """Of each of B sets of P rates, shapes (B, P) to (B,)."""
    found = np.empty(len(sim))
    step = max(1, 1_000_000 // sim.shape[1] ** 2)
    for first in range(0, len(sim), step):
        s, r = sim[first : first + step], real[first : first + step]
        by_sim, by_real = s[:, :, None] - s[:, None, :], r[:, :, None] - r[:, None, :]
        if ties == "half":
            violated = np.abs(np.sign(by_sim) - np.sign(by_real)) / 2.0
        else:
            violated = ((by_sim > 0.0) != (by_real > 0.0)).astype(np.float64)
        found[first : first + step] = (np.abs(by_real) * violated).max(axis=2).mean(axis=1)
    return found


def _pearson(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Correlation of each of B rows, shapes (B, P) to (B,); NaN where a side is constant."""
    dx, dy = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    spread = np.sqrt((dx**2).sum(axis=1) * (dy**2).sum(axis=1))
    constant = (np.ptp(x, axis=1) == 0.0) | (np.ptp(y, axis=1) == 0.0) | (spread == 0.0)
    with np.errstate(invalid="ignore"):
        r = (dx * dy).sum(axis=1) / np.where(constant, np.nan, spread)
    return np.asarray(np.clip(r, -1.0, 1.0))
