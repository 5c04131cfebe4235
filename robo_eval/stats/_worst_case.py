"""The largest chance over a rate that a hypothesis leaves open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_GRID: Final = 201
"""Rates at which the worst case is looked for first."""
_ZOOMS: Final = 6
"""Times the grid is narrowed around the worst rate, each to two of its steps."""


def worst_case(chance: Callable[[Array], Array]) -> float:
    """The largest of chances that are polynomials in a rate between 0 and 1, at most 1.

    They have several humps: look everywhere, then closer at the highest ones.

    Args:
        chance: Chances at some rates, shape (R,) to (R,).
    """
    angle = np.linspace(0.0, np.pi, _GRID)
    rates = (1.0 - np.cos(angle)) / 2.0
    found = chance(rates)
    inner = np.arange(1, _GRID - 1)
    humps = inner[(found[inner] >= found[inner - 1]) & (found[inner] >= found[inner + 1])]
    best = float(found.max())
    for hump in humps[np.argsort(-found[humps])][:3]:
        low, high = rates[hump - 1], rates[hump + 1]
        for _ in range(_ZOOMS):
            closer = np.linspace(low, high, 11)
            values = chance(closer)
            top = int(np.argmax(values))
            best = max(best, float(values[top]))
            low, high = closer[max(top - 1, 0)], closer[min(top + 1, 10)]
    return min(1.0, best)


def binomial(k: NDArray[np.int_], n: int, rates: Array) -> Array:
    """Chances of k successes of n at each rate, shape (len(k), len(rates))."""
    from scipy.special import betaln, xlog1py, xlogy

    k_ = k.astype(np.float64)[:, None]
    ways = -betaln(k_ + 1.0, n - k_ + 1.0) - np.log(n + 1.0)
    return np.asarray(np.exp(ways + xlogy(k_, rates) + xlog1py(n - k_, -rates)))
