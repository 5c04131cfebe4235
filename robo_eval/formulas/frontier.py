"""How much can be delegated: quality that is reachable at each degree of autonomy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.errors import InputError, ShapeError
from robo_eval.formulas import checks
from robo_eval.formulas.checks import Numbers

_ROUNDING: Final = 1e-12
"""A pooled mean that misses a threshold by less does so because of rounding."""

ByBin: TypeAlias = (
    Mapping[float, float | None] | Sequence[float | None] | NDArray[np.floating] | Numbers
)
"""A number a bin, from low to high autonomy; or by the autonomy of the bin."""


class Delegability(TypedDict):
    """The frontier and what it adds up to.

    Attributes:
        isotonic: Fitted quality of each bin, never rising; None for an empty bin.
        auf: Mean of the fit over autonomy; None if all bins are empty.
        fraction_delegable: Share of autonomy at which the fit reaches the target quality; None
            without a target or if all bins are empty.
    """

    isotonic: list[float | None]
    auf: float | None
    fraction_delegable: float | None


def delegability(
    quality_by_autonomy_bin: ByBin,
    n_by_bin: ByBin,
    q_star: float | None = None,
    *,
    bin_weights: Numbers | None = None,
) -> Delegability:
    """Delegability frontier: the best quality at each degree of autonomy, made non-increasing.

    More autonomy leaves less help, so the quality that can be reached cannot rise with it; where a
    bin is above the one before, both are pooled in proportion to their episodes. An empty bin is
    dropped, and the fit says so with None in its place.

    Args:
        quality_by_autonomy_bin: Mean quality of the best admissible policy in each bin, in [0, 1],
            from low to high autonomy, shape (n,); or by the autonomy of the bin. Not read where
            the bin is empty.
        n_by_bin: Episodes in each bin, at least 0, shape (n,), or by the same keys.
        q_star: Quality from which on a task may be delegated; None for no answer.
        bin_weights: Weight of each bin, from low to high autonomy, shape (n,); none for equal ones,
            this project's choice.

    Returns:
        See `Delegability`.

    Raises:
        InputError: If a quality or `q_star` is not in [0, 1], a number of episodes negative, a
            quality missing where there are episodes, or all weights of bins with episodes are 0.
        ShapeError: If the lengths or the bins differ.

    References:
        Chojecki (2025), arXiv:2511.13411, sections 5 and 6; Barlow, Bartholomew, Bremner and Brunk
        (1972), Statistical Inference under Order Restrictions (isotonic regression).

    Example:
        >>> found = delegability([0.9, 0.92, 0.8, 0.6, 0.65], [10, 10, 10, 10, 10], q_star=0.75)
        >>> print(f"{found['auf']:.3f} {found['fraction_delegable']:.1f}")
        0.774 0.6
    """
    quality, episodes = _bins(quality_by_autonomy_bin, n_by_bin)
    target = None if q_star is None else checks.share("q_star", q_star)
    n = [checks.number(f"n_by_bin[{i}]", value, low=0.0) for i, value in enumerate(episodes)]
    full = [i for i, number in enumerate(n) if number > 0.0]
    measured = []
    for i in full:
        if quality[i] is None:
            raise InputError(
                f"quality_by_autonomy_bin[{i}] is None, but the bin has {n[i]:g} episodes"
            )
        measured.append(checks.share(f"quality_by_autonomy_bin[{i}]", quality[i]))
    shares = checks.weights_of("bin_weights", bin_weights, len(n)) if n else np.zeros(0)
    isotonic: list[float | None] = [None] * len(n)
    if not full:
        return {"isotonic": isotonic, "auf": None, "fraction_delegable": None}
    fit = non_increasing_fit(measured, [n[i] for i in full])
    for i, value in zip(full, fit, strict=True):
        isotonic[i] = value
    total = checks.total_weight("bin_weights of bins with episodes", shares[full])
    auf = checks.clip(math.fsum(shares[full] * np.array(fit)) / total)
    delegable = None
    if target is not None:
        reached = [i for i, value in zip(full, fit, strict=True) if value >= target - _ROUNDING]
        delegable = checks.clip(math.fsum(shares[reached]) / total)
    return {"isotonic": isotonic, "auf": auf, "fraction_delegable": delegable}


def _bins(quality: ByBin, n: ByBin) -> tuple[list[object], list[object]]:
    if isinstance(quality, Mapping) != isinstance(n, Mapping):
        raise ShapeError("quality_by_autonomy_bin and n_by_bin must both be mappings, or neither")
    if isinstance(quality, Mapping) and isinstance(n, Mapping):
        if set(quality) != set(n):
            differing = min(map(str, set(quality) ^ set(n)))
            raise ShapeError(f"bin {differing} is in one of quality_by_autonomy_bin and n_by_bin")
        keys = sorted(quality, key=lambda key: checks.number("autonomy of a bin", key))
        return [quality[key] for key in keys], [n[key] for key in keys]
    qualities = checks.sequence("quality_by_autonomy_bin", quality)
    episodes = checks.sequence("n_by_bin", n)
    if len(qualities) != len(episodes):
        raise ShapeError(
            f"quality_by_autonomy_bin has {len(qualities)} values and n_by_bin {len(episodes)}; "
            "they must be as many"
        )
    return qualities, episodes


def non_increasing_fit(values: Numbers, weights: Numbers) -> list[float]:
    """The non-increasing sequence nearest to a given one, by weighted least squares.

    Args:
        values: Numbers, shape (n,).
        weights: Weight of each, above 0, shape (n,).

    Returns:
        The fit, n numbers, none above the one before it.

    Raises:
        InputError: If a number is not finite or a weight not above 0.
        ShapeError: If the lengths differ.

    References:
        Barlow, Bartholomew, Bremner and Brunk (1972), Statistical Inference under Order
        Restrictions: pool adjacent violators.

    Example:
        >>> non_increasing_fit([0.5, 0.75, 0.25], [1, 1, 1])
        [0.625, 0.625, 0.25]
    """
    y, w = checks.numbers("values", values), checks.numbers("weights", weights, low=0.0)
    checks.same_length(values=y, weights=w)
    blocks: list[tuple[float, float, int]] = []  # mean, weight, length
    for value, weight in zip(y.tolist(), w.tolist(), strict=True):
        mean, total, length = value, checks.positive("weights", weight), 1
        while blocks and blocks[-1][0] < mean:
            before, before_total, before_length = blocks.pop()
            mean = before + (mean - before) * (total / (total + before_total))
            total, length = total + before_total, length + before_length
        blocks.append((mean, total, length))
    return [mean for mean, _, length in blocks for _ in range(length)]
