"""Whether two tables of distances go together: the test of Mantel."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.stats._checks import finite
from robo_eval.stats.arrays import floats

_MOST_EXACT: Final = 8
"""Of up to so many things all orders are tried; 8 have 40,320."""
_LEAST: Final = 4
"""Three things have six orders, of which none is rare."""
_ROUNDING: Final = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Mantel:
    """How two tables of distances of the same things go together.

    Attributes:
        r: Correlation (Pearson) of their upper triangles; NaN if one of them does not vary.
        p: Share of the orders of one table's things in which it is as large, their own among them;
            NaN with it.
        things: How many there are.
        orders: How many orders were tried.
    """

    r: float
    p: float
    things: int
    orders: int


def mantel(one: ArrayLike, other: ArrayLike, *, draws: int = 9_999, seed: int = 0) -> Mantel:
    """Correlate two tables of distances, and ask how often chance would do as well.

    The distances of a table are not independent, for each thing is in many of them, so that the
    usual interval of a correlation is too narrow. What may be exchanged are the things: rows and
    columns of one table together. One-sided: distances are asked to rise together.

    Args:
        one: Symmetric, shape (n, n), n >= 4; the diagonal has no part in it.
        other: The same of another kind.
        draws: Orders that are drawn where n is above 8; up to there all are tried.
        seed: Of the draws.

    Raises:
        ValueError: If the tables are not symmetric and of one shape, too small, or hold a number
            that is not finite above the diagonal.

    References:
        Mantel (1967), The detection of disease clustering and a generalized regression approach,
        Cancer Research 27:209-220.
    """
    first, second = floats("one", one), floats("other", other)
    n = len(first)
    if first.shape != (n, n) or second.shape != (n, n) or n < _LEAST:
        raise ValueError(
            f"tables have shapes {first.shape} and {second.shape}; both must be (n, n), n >= 4"
        )
    above = np.triu_indices(n, 1)
    for table in (first, second):
        finite("a table", table[above])
        if not np.allclose(table[above], table.T[above]):
            raise ValueError("a table is not symmetric")
    if np.ptp(first[above]) == 0.0 or np.ptp(second[above]) == 0.0:
        return Mantel(r=math.nan, p=math.nan, things=n, orders=0)
    centred, fixed = _standard(first, above), _standard(second, above)[above]
    r = float(centred[above] @ fixed)
    orders = as_large = 0
    for order in _orders(n, draws, seed):
        orders += 1
        as_large += float(centred[np.ix_(order, order)][above] @ fixed) >= r - _ROUNDING
    return Mantel(r=r, p=as_large / orders, things=n, orders=orders)


def _standard(table: NDArray[np.float64], above: tuple[Any, ...]) -> NDArray[np.float64]:
    """A table whose values above the diagonal have mean 0 and length 1."""
    centred = table - table[above].mean()
    found: NDArray[np.float64] = centred / np.linalg.norm(centred[above])
    return found


def _orders(n: int, draws: int, seed: int) -> Iterator[NDArray[np.intp]]:
    """Orders of n things, beginning with their own."""
    if n <= _MOST_EXACT:
        for order in itertools.permutations(range(n)):
            yield np.array(order)
        return
    yield np.arange(n)
    rng = np.random.default_rng(seed)
    for _ in range(draws):
        yield rng.permutation(n)
