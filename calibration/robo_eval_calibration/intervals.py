"""What values found in single recordings say together of a constant."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtrit

from robo_eval.core.task import Constant
from robo_eval.stats.estimate import Estimate
from robo_eval_calibration.recordings import Array

LEVEL: Final = 0.95
CONFOUNDED: Final = 0.95
"""Correlation from which on two constants cannot be told apart."""
LIKELY: Final = 3.84
"""Rise of twice the negative log likelihood at an end of a 95 % interval."""


class Verdict(StrEnum):
    """What recordings say of a constant."""

    IDENTIFIED = "identified"
    WEAK = "weak"
    NOT_IDENTIFIABLE = "not identifiable"
    AT_A_BOUND = "at a bound"
    NOT_SETTLED = "not settled"


def random_effects(
    values: ArrayLike, sds: ArrayLike, *, unit: str, quantum: float = 0.0
) -> tuple[Estimate, float]:
    """Mean over recordings, whose true values may differ, and the spread of those.

    Args:
        values: One a recording.
        sds: Standard deviation of each from its own fit.
        unit: Of the values.
        quantum: Least difference that can be played: no interval is narrower.

    Returns:
        The mean with its interval, and the standard deviation between recordings. One recording
        has the interval of its own fit, and the estimate says so.

    References:
        DerSimonian and Laird (1986), Controlled Clinical Trials 7:177-188; Knapp and Hartung
        (2003), Statistics in Medicine 22:2693-2710, with a factor of at least 1 as Rover, Knapp
        and Friede (2015), BMC Medical Research Methodology 15:99.

    Example:
        >>> estimate, between = random_effects([1.0, 1.2, 1.1], [0.01, 0.01, 0.01], unit="kg")
        >>> print(estimate, round(between, 3))
        1.100 [0.852, 1.348] n=3 0.099
    """
    x = np.asarray(values, dtype=np.float64)
    # A fit without any noise left has no width, and no weight may be infinite.
    variance = np.maximum(np.asarray(sds, dtype=np.float64) ** 2, 1e-24)
    n = len(x)
    weights = 1.0 / variance
    tau_squared = 0.0
    if n > 1:
        mean = float(weights @ x / weights.sum())
        spread = float(weights @ (x - mean) ** 2)
        room = float(weights.sum() - weights @ weights / weights.sum())
        tau_squared = max(0.0, (spread - (n - 1)) / room)
        weights = 1.0 / (variance + tau_squared)
    mean = float(weights @ x / weights.sum())
    standard_error = math.sqrt(1.0 / float(weights.sum()))
    if n > 1:
        factor = float(weights @ (x - mean) ** 2) / (n - 1)
        standard_error *= math.sqrt(max(1.0, factor))
    half = max(multiple_of(n) * standard_error, quantum / 2.0)
    estimate = Estimate(
        value=mean,
        low=mean - half,
        high=mean + half,
        level=LEVEL,
        n=n,
        method="re_kh" if n > 1 else "jacobian",
        unit=unit,
        reason=None
        if n > 1
        else "one recording: its interval knows nothing of what differs between recordings",
    )
    return estimate, math.sqrt(tau_squared)


def multiple_of(n: int) -> float:
    """Standard errors from a mean of n values to an end of its interval; of one its own."""
    quantile = (1.0 + LEVEL) / 2.0
    return float(stdtrit(n - 1, quantile) if n > 1 else ndtri(quantile))


def half_width(estimate: Estimate) -> float:
    """Half of an interval."""
    assert estimate.low is not None
    assert estimate.high is not None
    return (estimate.high - estimate.low) / 2.0


def holds(estimate: Estimate, value: float) -> bool:
    """Whether an interval holds a value."""
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low <= value <= estimate.high


def covariance_of(rows: Array, spans: Array) -> Array:
    """Covariance of constants from whitened columns.

    Args:
        rows: Shape (N, P).
        spans: Widths of the bounds, shape (P,): no constant is known less than that, so that what
            cannot be told apart has a finite width.
    """
    scaled = rows * spans
    found = np.linalg.inv(scaled.T @ scaled + np.eye(len(spans)))
    return np.asarray(found * np.outer(spans, spans), dtype=np.float64)


def correlations_of(covariance: Array) -> Array:
    """Correlations of a covariance."""
    sds = np.sqrt(np.diag(covariance))
    return np.asarray(covariance / np.outer(sds, sds), dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What is said of a constant.

    Attributes:
        verdict: In a word.
        partners: With which others it is confounded.
        reason: Why it is not identified; None if it is.
    """

    verdict: Verdict
    partners: tuple[str, ...] = ()
    reason: str | None = None


def judged_alone(one: Constant, half: float, sds: ArrayLike) -> Judged:
    """What is said of a constant that no other hangs together with, told so well in each unit."""
    rows = np.full((1, 1), 1.0 / max(float(np.min(sds)), 1e-12))
    return judged([one], {one.name: half}, rows)[one.name]


def judged(
    constants: Sequence[Constant],
    half_widths: Mapping[str, float],
    rows: Array,
) -> dict[str, Judged]:
    """Which constants are told well enough, from how wide their intervals are.

    Args:
        constants: The free ones.
        half_widths: Of their intervals, found or expected.
        rows: Whitened columns of the errors by each constant, shape (N, P).
    """
    spans = np.array([one.high - one.low for one in constants])
    sizes = np.linalg.norm(rows, axis=0)
    by_estimates = np.abs(correlations_of(covariance_of(rows, spans)))
    by_columns = np.abs(rows.T @ rows) / np.maximum(np.outer(sizes, sizes), 1e-300)
    alike = np.maximum(by_estimates, by_columns) > CONFOUNDED
    found = {}
    for index, one in enumerate(constants):
        half = half_widths[one.name]
        partners = tuple(
            other.name for at, other in enumerate(constants) if at != index and alike[index, at]
        )
        unit = f" {one.unit}" if one.unit else ""
        if sizes[index] * spans[index] < 1e-3:
            found[one.name] = Judged(
                verdict=Verdict.NOT_IDENTIFIABLE,
                reason="no prediction depends on it in these recordings",
            )
        elif half <= one.wanted:
            found[one.name] = Judged(verdict=Verdict.IDENTIFIED)
        elif partners or half > (one.high - one.low) / 2.0:
            told = f"cannot be told apart from {', '.join(partners)}" if partners else "is not told"
            found[one.name] = Judged(
                verdict=Verdict.NOT_IDENTIFIABLE,
                partners=partners,
                reason=f"it {told}: half-width {half:.3g}{unit}, wanted {one.wanted:.3g}",
            )
        else:
            found[one.name] = Judged(
                verdict=Verdict.WEAK, reason=f"half-width {half:.3g}{unit}, wanted {one.wanted:.3g}"
            )
    return found
