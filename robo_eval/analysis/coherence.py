"""How evenly an agent does well over domains: the curve of generalised means, and its area.

An agent that shines in some domains and fails in others has a high arithmetic mean. The generalised
mean of a smaller exponent listens more to the weak domains, down to the minimum; the area under
the curve of exponents from -1 to 1 is the coherence score.

References:
    F. Fourati, A Coherence-Based Measure of AGI; domain scores after Hendrycks et al.,
    arXiv:2510.18212. The printed figures come out with the floor of 1e-6 on proportions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, logsumexp

from robo_eval.analysis.arrays import (
    as_numbers,
    bootstrap_name,
    check_shares,
    episode_rows,
    episode_seeds,
    percentiles,
    resampled_means,
)
from robo_eval.core.errors import InputError, ShapeError
from robo_eval.core.estimate import Estimate
from robo_eval.stats.arrays import same_labels

FLOOR: Final = 1e-6
"""The least a score counts as, a proportion."""
CONTRAST_FLOOR: Final = 1e-3
"""Floor of a second area, which is reported where a score is below `FLOOR`."""
EXPONENTS: Final = (-1.0, 1.0)
"""Between which exponents the area is taken."""
POINTS: Final = 2_001
"""Points of the trapezoid; their number is odd, so that 0 is one of them."""
TABLE: Final = (1.0, 0.5, 0.0, -0.5, -1.0)
"""Exponents whose mean is listed: from arithmetic by geometric to harmonic."""
_NEAR_ZERO: Final = 1e-8
_CELLS: Final = 4_000_000
"""Numbers in one piece of work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """What raising one domain would add.

    Attributes:
        domain: Its name.
        score: Its score, a proportion.
        gain: What the area gains where this domain alone is raised, a proportion.
    """

    domain: str
    score: float
    gain: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coherence:
    """The curve of generalised means of a profile of scores, all proportions.

    Attributes:
        area: Mean height of the curve between the exponents -1 and 1.
        means: The generalised mean by exponent, for those of `TABLE`.
        exponents: Exponents of the curve, shape (P,).
        curve: Generalised mean at each of them, shape (P,).
        floor: The least a score counted as.
        n_floored: Domains whose score was below it.
        contrast_area: The area with the floor `CONTRAST_FLOOR`, if a score was below the floor:
            how much of the area is the floor's doing. None otherwise.
        weakest: Name of the domain with the lowest score.
        step: By how much domains are raised in `bottlenecks`.
        bottlenecks: What raising each domain would add, most first.
    """

    area: float
    means: dict[float, float]
    exponents: NDArray[np.float64]
    curve: NDArray[np.float64]
    floor: float
    n_floored: int
    contrast_area: float | None
    weakest: str
    step: float
    bottlenecks: tuple[Bottleneck, ...]

    def as_dict(self) -> dict[str, Any]:
        """Everything but the curve as plain data for JSON."""
        return {
            "area": self.area,
            "means": {f"{p:g}": value for p, value in self.means.items()},
            "floor": self.floor,
            "n_floored": self.n_floored,
            "contrast_area": self.contrast_area,
            "weakest": self.weakest,
            "step": self.step,
            "bottlenecks": [asdict(one) for one in self.bottlenecks],
        }


@same_labels(error=InputError)
def generalised_mean(
    scores: ArrayLike,
    p: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    floor: float = FLOOR,
) -> float | NDArray[np.float64]:
    """The generalised (power) mean: 1 is arithmetic, 0 geometric, -1 harmonic, -inf the minimum.

    Args:
        scores: Proportions, shape (n,), or (B, n) for several profiles.
        p: Exponent, or exponents of shape (P,).
        weights: Weight of each score, shape (n,); equal if none are given.
        floor: The least a score counts as.

    Returns:
        Proportions of shape () or (B,), followed by (P,) for several exponents; a float for one
        profile and one exponent.

    Raises:
        InputError: If a number is missing or out of range; the message names it.
        ShapeError: If the shapes do not fit.

    Example:
        >>> f"{generalised_mean([0.5, 1.0], 0):.6f} {generalised_mean([0.5, 1.0], -1):.6f}"
        '0.707107 0.666667'
    """
    logs, log_weights = _prepared(scores, weights, floor)
    exponents = as_numbers("p", p)
    if exponents.ndim > 1 or np.isnan(exponents).any():
        raise ShapeError("p must be one exponent, or a row of them, without NaN")
    means = _means(np.atleast_2d(logs), log_weights, np.atleast_1d(exponents))
    shape = logs.shape[:-1] + exponents.shape
    return float(means[0, 0]) if shape == () else means.reshape(shape)


@same_labels(error=InputError)
def auc(
    scores: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    floor: float = FLOOR,
    points: int = POINTS,
) -> float | NDArray[np.float64]:
    """The coherence score: mean height of the curve of generalised means from -1 to 1.

    Args:
        scores: Proportions, shape (n,), or (B, n) for several profiles.
        weights: Weight of each score, shape (n,); equal if none are given.
        floor: The least a score counts as. The area depends on it where a score is 0.
        points: Points of the trapezoid, an odd number.

    Returns:
        A proportion, or one for each profile, shape (B,).

    Raises:
        InputError: If a number is missing or out of range; the message names it.
        ShapeError: If the shapes do not fit.

    Example:
        >>> f"{100 * auc([0.8, 0.8, 0.2]):.4f}"
        '50.2509'
    """
    logs, log_weights = _prepared(scores, weights, floor)
    areas = _areas(np.atleast_2d(logs), log_weights, _grid(points))
    return float(areas[0]) if logs.ndim == 1 else areas


@same_labels(error=InputError)
def coherence(
    scores: ArrayLike,
    *,
    domains: Sequence[str] | None = None,
    weights: ArrayLike | None = None,
    floor: float = FLOOR,
    points: int = POINTS,
    step: float = 0.1,
) -> Coherence:
    """The curve of one profile, its area, and which domains hold it back.

    Args:
        scores: Proportions, shape (n,).
        domains: Their names; numbers from 1 on if none are given.
        weights: Weight of each domain, shape (n,); equal if none are given.
        floor: The least a score counts as.
        points: Points of the curve, an odd number.
        step: By how much a domain is raised to find what that would add; never above 1.

    Raises:
        InputError: If a number is missing or out of range; the message names it.
        ShapeError: If the shapes do not fit.

    Example:
        >>> found = coherence([0.9, 0.6, 0.3, 0.0], domains=["see", "move", "plan", "speak"])
        >>> found.weakest, f"{100 * found.area:.3f}", f"{100 * found.contrast_area:.2f}"
        ('speak', '14.386', '16.94')
    """
    logs, log_weights = _prepared(scores, weights, floor)
    if logs.ndim != 1:
        raise ShapeError(f"scores have shape {logs.shape}; one profile has shape (n,)")
    if not 0.0 < step <= 1.0:
        raise InputError(f"step is {step}; it must be in (0, 1]")
    values = as_numbers("scores", scores)
    names = _names(domains, len(values))
    grid = _grid(points)
    curve = _means(logs[None], log_weights, grid)[0]
    area = float(_areas(logs[None], log_weights, grid)[0])
    n_floored = int((values < floor).sum())
    contrast = auc(values, weights=weights, floor=CONTRAST_FLOOR, points=points)
    table = _means(logs[None], log_weights, np.array(TABLE))[0]
    return Coherence(
        area=area,
        means=dict(zip(TABLE, table.tolist(), strict=True)),
        exponents=grid,
        curve=curve,
        floor=floor,
        n_floored=n_floored,
        contrast_area=float(contrast) if n_floored else None,
        weakest=names[int(values.argmin())],
        step=step,
        bottlenecks=_bottlenecks(values, names, weights, floor, points, step, area),
    )


# With intervals --------------------------------------------------------------------------------


def auc_interval(
    episodes: Sequence[ArrayLike],
    *,
    weights: ArrayLike | None = None,
    floor: float = FLOOR,
    seeds: Sequence[ArrayLike] | None = None,
    level: float = 0.95,
    resamples: int = 1_000,
    seed: int = 0,
) -> Estimate:
    """The coherence score of domain means over episodes, with a bootstrap interval.

    Episodes are drawn with replacement within each domain, and everything is computed anew; where
    domains share their seeds, a seed is drawn with its episodes in all of them. Where
    all episodes of a domain failed, every draw fails too, and the interval is too narrow; the
    reason says so, with the area that a plausible rate in its place gives (`plausible_rate`).

    Args:
        episodes: Performances in [0, 1] of the episodes of each domain, one row each.
        weights: Weight of each domain; equal if none are given.
        floor: The least a score counts as.
        seeds: Seeds of these episodes where domains share them; None if no two are alike.
        level: Coverage aimed at.
        resamples: Draws.
        seed: Of the draws; the same seed gives the same interval.

    Raises:
        InputError: If a domain has no episode, a number is missing or out of range, or there is not
            a seed for each episode.
    """
    if not 0.0 < level < 1.0:
        raise InputError(f"level is {level}; it must be between 0 and 1")
    if resamples < 1:
        raise InputError(f"resamples is {resamples}; it must be 1 or more")
    if not len(episodes):
        raise InputError("episodes is empty; name at least one domain")
    rows = episode_rows(episodes)
    means = np.array([row.mean() for row in rows])
    labels = episode_seeds(seeds, rows)
    drawn = resampled_means(rows, resamples, seed, labels)
    areas = np.asarray(auc(drawn, weights=weights, floor=floor))
    low, high, reason = percentiles(areas, level, labels)
    return Estimate(
        value=float(auc(means, weights=weights, floor=floor)),
        low=low,
        high=high,
        level=level,
        n=sum(map(len, rows)),
        method=bootstrap_name("domains", labels),
        unit="ratio",
        reason=reason or _zeros(rows, means, weights, floor),
    )


def plausible_rate(n: int) -> float:
    """A rate that n failures of n do not rule out: Jeffreys' 97.5 % quantile.

    Args:
        n: Episodes, all without success.

    Raises:
        InputError: If n is not positive.
    """
    if n < 1:
        raise InputError(f"n is {n}; it must be 1 or more")
    return float(betaincinv(0.5, n + 0.5, 0.975))


def _zeros(
    rows: Sequence[NDArray[np.float64]],
    means: NDArray[np.float64],
    weights: ArrayLike | None,
    floor: float,
) -> str | None:
    failed = np.flatnonzero(means == 0.0)
    if not len(failed):
        return None
    instead = means.copy()
    instead[failed] = [plausible_rate(len(rows[int(index)])) for index in failed]
    area = float(auc(instead, weights=weights, floor=floor))
    many = f"{len(failed)} domains are" if len(failed) > 1 else "1 domain is"
    return f"{many} 0 in all episodes: the interval is too narrow; plausible rates give {area:.4f}"


# Within ----------------------------------------------------------------------------------------


def _bottlenecks(
    values: NDArray[np.float64],
    names: Sequence[str],
    weights: ArrayLike | None,
    floor: float,
    points: int,
    step: float,
    area: float,
) -> tuple[Bottleneck, ...]:
    raised = np.minimum(values + step * np.eye(len(values)), 1.0)
    gains = np.atleast_1d(auc(raised, weights=weights, floor=floor, points=points)) - area
    found = [
        # A mean never falls where a score rises; rounding may say so.
        Bottleneck(domain=name, score=float(score), gain=max(float(gain), 0.0))
        for name, score, gain in zip(names, values, gains, strict=True)
    ]
    return tuple(sorted(found, key=lambda one: (-one.gain, one.domain)))


def _prepared(
    scores: ArrayLike, weights: ArrayLike | None, floor: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Logarithms of the floored scores, and of weights that sum to 1."""
    values = as_numbers("scores", scores)
    if values.ndim not in (1, 2) or not values.shape[-1]:
        raise ShapeError(f"scores have shape {values.shape}; it must be (n,) or (B, n), n >= 1")
    check_shares("scores", values)
    if not 0.0 < floor <= 1.0:
        raise InputError(f"floor is {floor}; it must be in (0, 1]")
    return np.log(np.maximum(values, floor)), _log_weights(weights, values.shape[-1])


def _log_weights(weights: ArrayLike | None, n: int) -> NDArray[np.float64]:
    own = np.ones(n) if weights is None else as_numbers("weights", weights)
    if own.shape != (n,):
        raise ShapeError(f"weights have shape {own.shape}; there are {n} scores")
    if not np.isfinite(own).all() or (own < 0.0).any() or own.sum() == 0.0:
        raise InputError("weights must be finite, not negative, and not all 0")
    with np.errstate(divide="ignore"):
        logs: NDArray[np.float64] = np.log(own / own.sum())
    return logs


def _means(
    logs: NDArray[np.float64], log_weights: NDArray[np.float64], exponents: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Generalised means of floored scores, shape (B, P)."""
    kept = log_weights > -np.inf
    logs, log_weights = logs[:, kept], log_weights[kept]
    # Powers overflow where p is around -50; their logarithms do not.
    near_zero, endless = np.abs(exponents) < _NEAR_ZERO, np.isinf(exponents)
    safe = np.where(near_zero | endless, 1.0, exponents)
    found = logsumexp(logs[:, None, :] * safe[:, None] + log_weights, axis=2) / safe
    if near_zero.any():
        own = np.exp(log_weights)
        mean = logs @ own
        variance = ((logs - mean[:, None]) ** 2) @ own
        # To second order, which is exact to rounding so close to 0.
        found[:, near_zero] = mean[:, None] + exponents[near_zero] * np.atleast_2d(variance).T / 2.0
    found[:, exponents == np.inf] = logs.max(axis=1)[:, None]
    found[:, exponents == -np.inf] = logs.min(axis=1)[:, None]
    # Rounding must not lead out of the range of the scores.
    return np.exp(np.clip(found, logs.min(axis=1)[:, None], logs.max(axis=1)[:, None]))


def _areas(
    logs: NDArray[np.float64], log_weights: NDArray[np.float64], grid: NDArray[np.float64]
) -> NDArray[np.float64]:
    piece = max(1, _CELLS // (len(grid) * logs.shape[1]))
    areas = [
        np.trapezoid(_means(logs[start : start + piece], log_weights, grid), grid, axis=1)
        for start in range(0, len(logs), piece)
    ]
    return np.concatenate(areas) / (EXPONENTS[1] - EXPONENTS[0])


def _grid(points: int) -> NDArray[np.float64]:
    if points < 3 or points % 2 == 0:
        raise InputError(f"points is {points}; it must be odd, and 3 or more: 0 is one of them")
    return np.linspace(*EXPONENTS, points)


def _names(domains: Sequence[str] | None, n: int) -> list[str]:
    names = [str(index + 1) for index in range(n)] if domains is None else list(domains)
    if len(names) != n:
        raise ShapeError(f"there are {n} scores and {len(names)} names of domains")
    return names
