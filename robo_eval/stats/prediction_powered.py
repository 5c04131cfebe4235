"""A real rate from few real episodes, sharpened by many simulated ones."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.stats._checks import check_level, finite, pair_up
from robo_eval.stats.arrays import same_labels
from robo_eval.stats.bounded import bounded_mean_interval, with_doubt_of
from robo_eval.stats.estimate import Estimate, without_interval

LEAST_PAIRS: Final = 30
"""Pairs below which the estimate is refused: its weight comes from the pairs as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionPowered:
    """A real mean estimated with the help of simulation, and without.

    Attributes:
        estimate: With the simulated episodes; no value below 30 pairs. Never for a safety gate.
        plain: Of the real episodes alone.
        standard_error: Of the estimate; None where it has none.
        plain_standard_error: Of the plain mean; None for one pair.
        weight: How much the simulation counts, from 0 (not at all) to 1; None below 30 pairs.
        correlation: Of both sides over the pairs; None where a side is constant.
        n: Pairs.
        n_sim: Simulated episodes without a real one.
    """

    estimate: Estimate
    plain: Estimate
    standard_error: float | None
    plain_standard_error: float | None
    weight: float | None
    correlation: float | None
    n: int
    n_sim: int


@same_labels()
def prediction_powered_rate(
    real: ArrayLike, sim: ArrayLike, sim_only: ArrayLike, *, level: float = 0.95
) -> PredictionPowered:
    """Mean real outcome from pairs and further simulated episodes.

    Simulation says where reality would lie if both agreed, the pairs correct it by how far they do
    not. The weight of the simulation is the one with the least variance; where it predicts
    nothing, the plain mean is left. Pairs and further episodes must follow the same law of
    conditions. What lies outside [0, 1] is cut off.

    Args:
        real: Outcome or quality of each real episode, in [0, 1], shape (n,), n >= 1.
        sim: Of its simulated twin, shape (n,).
        sim_only: Of simulated episodes without a twin, shape (N,), N >= 2.
        level: Coverage aimed at.

    Raises:
        ValueError: If the sides differ in length, there is no pair or are fewer than two further
            episodes, or a number is not in [0, 1].

    References:
        Angelopoulos, Duchi and Zrnic (2023), PPI++: Efficient Prediction-Powered Inference,
        arXiv 2311.01453 (the weight: power tuning).

    Example:
        >>> real = [1] * 40 + [0] * 20
        >>> sim = [1] * 36 + [0] * 4 + [1] * 4 + [0] * 16
        >>> found = prediction_powered_rate(real, sim, [1] * 1500 + [0] * 500)
        >>> print(f"{found.estimate.low:.3f} {found.estimate.value:.3f} {found.estimate.high:.3f}")
        0.616 0.723 0.823
        >>> print(f"{found.plain.low:.3f} {found.plain.value:.3f} {found.plain.high:.3f}")
        0.533 0.667 0.783
    """
    check_level(level)
    y, f, more = (
        _shares(name, values)
        for name, values in (("real", real), ("sim", sim), ("sim_only", sim_only))
    )
    pair_up("real", y, "sim", f)
    n, n_sim = len(y), len(more)
    if n < 1 or n_sim < 2:
        raise ValueError(f"1 pair and 2 further episodes are needed, given {n} and {n_sim}")
    plain_error = float(y.std(ddof=1)) / math.sqrt(n) if n > 1 else None
    plain = bounded_mean_interval(y, level=level)
    correlation = None
    if n > 1 and np.ptp(y) > 0.0 and np.ptp(f) > 0.0:
        correlation = float(np.corrcoef(y, f)[0, 1])
    weight: float | None = None
    error: float | None = None
    if n < LEAST_PAIRS:
        few = f"{n} pairs; at least {LEAST_PAIRS} needed"
        estimate = without_interval(None, n=n, reason=few, level=level)
    else:
        weight = _weight(y, f, n_sim)
        value = float(y.mean() + weight * (more.mean() - f.mean()))
        variance = (y - weight * f).var(ddof=1) / n + weight**2 * more.var(ddof=1) / n_sim
        error = math.sqrt(float(variance))
        # What the pairs leave open of reality beyond simulation, and what simulation leaves open.
        shift = weight * float(more.mean())
        of_pairs = bounded_mean_interval(
            y - weight * f + shift, within=(shift - weight, shift + 1.0), level=level
        )
        found = with_doubt_of(of_pairs, bounded_mean_interval(more, level=level), weight)
        ends = (found.low or 0.0, value, found.high or 0.0)
        low, value, high = (min(max(end, 0.0), 1.0) for end in ends)
        estimate = replace(found, value=value, low=low, high=high, method="prediction_powered")
    return PredictionPowered(
        estimate=estimate,
        plain=plain,
        standard_error=error,
        plain_standard_error=plain_error,
        weight=weight,
        correlation=correlation,
        n=n,
        n_sim=n_sim,
    )


def _weight(y: NDArray[np.float64], f: NDArray[np.float64], n_sim: int) -> float:
    """The weight of the simulation with the least variance, in [0, 1]."""
    if np.ptp(f) == 0.0:
        return 0.0
    covariance = np.cov(y, f)
    best = float(covariance[0, 1] / ((1.0 + len(y) / n_sim) * covariance[1, 1]))
    return min(max(best, 0.0), 1.0)


def _shares(name: str, values: ArrayLike) -> NDArray[np.float64]:
    x = finite(name, values)
    outside = (x < 0.0) | (x > 1.0)
    if outside.any():
        raise ValueError(f"{name} must be between 0 and 1, given {x[outside][0]}")
    return x
