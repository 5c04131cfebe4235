"""The intelligence space of a suite: where its tests lie, from how different they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.analysis.arrays import as_numbers
from robo_eval.core.errors import InputError, ShapeError
from robo_eval.stats.arrays import same_labels

SHARE: Final = 0.95
"""Share of the positive eigenvalues that the kept dimensions have, unless their number is given."""
MOST_DIMENSIONS: Final = 10
"""No more are kept unless they are asked for."""
MOST_NEGATIVE: Final = 0.1
"""Negative mass above which dissimilarities are called not representable."""
LEAST_COMMUNALITY: Final = 0.5
"""Communality below which a test is called badly represented."""
_SAME: Final = 1e-9
_ZERO: Final = 1e-12
"""Eigenvalues below this share of the largest are rounding."""

Model = Literal["angular", "metric"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Space:
    """Where the tests of a suite lie. It is made once, and the same for all agents.

    Attributes:
        points: Position of each test, its complexity times its direction, shape (n, k).
        directions: Unit vectors, shape (n, k); a row of zeros where a test has no direction.
        k: Dimensions that were kept.
        eigenvalues: Of the table of cosines, descending, shape (n,), negative ones included.
        communality: How much of each test the kept dimensions hold, shape (n,), 1 for all of it.
        negative_mass: Sum of the negative eigenvalues by that of the positive ones, without signs:
            0 if there is a space in which the tests lie as they should.
        complexities: Of the tests, shape (n,).
        dissimilarities: Of the tests, shape (n, n).
        d_max: Dissimilarity that is a right angle.
        model: How directions were made.
        warnings: What to be careful about.
    """

    points: NDArray[np.float64]
    directions: NDArray[np.float64]
    k: int
    eigenvalues: NDArray[np.float64]
    communality: NDArray[np.float64]
    negative_mass: float
    complexities: NDArray[np.float64]
    dissimilarities: NDArray[np.float64]
    d_max: float
    model: Model
    warnings: tuple[str, ...]

    @property
    def shares(self) -> NDArray[np.float64]:
        """Share of each kept dimension in the positive eigenvalues, shape (k,)."""
        positive = self.eigenvalues[self.eigenvalues > 0.0]
        found: NDArray[np.float64] = positive[: self.k] / positive.sum()
        return found

    @property
    def participation(self) -> float:
        """How many dimensions of equal weight would be as even: (sum w)^2 / sum w^2."""
        positive = self.eigenvalues[self.eigenvalues > 0.0]
        return float(positive.sum() ** 2 / (positive**2).sum())

    def with_k(self, k: int) -> Space:
        """The same suite in another number of dimensions.

        Raises:
            InputError: If there are not so many.
        """
        return space(
            self.dissimilarities, self.complexities, k=k, d_max=self.d_max, model=self.model
        )


@same_labels(error=InputError)
def space(
    dissimilarities: ArrayLike,
    complexities: ArrayLike,
    *,
    k: int | None = None,
    d_max: float | None = None,
    model: Model = "angular",
    share: float = SHARE,
) -> Space:
    """Place the tests of a suite: alike ones in one direction, unlike ones at a right angle.

    A dissimilarity d, as a share of `d_max`, is an angle whose cosine is 1 - d^2; the table of
    cosines is taken apart into eigenvectors, of which the leading ones are kept. Each direction is
    brought to length 1 and multiplied by the complexity of its test.

    Args:
        dissimilarities: Shape (n, n), symmetric, not negative, zero on the diagonal.
        complexities: Complexity of each test, shape (n,), positive.
        k: Dimensions to keep; None for as many as hold `share` of the positive eigenvalues, and
            `MOST_DIMENSIONS` at most.
        d_max: Dissimilarity that is a right angle; the largest of the suite if none is given. To
            compare suites give them the same.
        model: `"angular"`, or `"metric"`, which takes complexities for distances to the origin;
            sizes and performances have no common scale, so it is there to compare with only.
        share: See `k`.

    Raises:
        InputError: If a number is missing or out of range; the message names it.
        ShapeError: If the shapes do not fit, or there are fewer than two tests.

    References:
        Pereyda and Holder (2025), AI 6(12):313. That the largest dissimilarity is a right angle,
        and the choice of k, are decided here.

    Example:
        >>> table = [[0, 0.6, 0.8], [0.6, 0, 0.5], [0.8, 0.5, 0]]
        >>> found = space(table, [1, 0.5, 0.8], k=2, d_max=1)
        >>> [f"{one:.6f}" for one in found.communality]
        ['0.977895', '0.898975', '0.950021']
    """
    table, sizes = _checked(dissimilarities, complexities)
    largest = float(table.max()) if d_max is None else float(d_max)
    cosines = _products(table, sizes, largest, model)
    eigenvalues, vectors = np.linalg.eigh(cosines)
    eigenvalues, vectors = eigenvalues[::-1], vectors[:, ::-1]
    # Rounding must not make dimensions.
    eigenvalues = np.where(np.abs(eigenvalues) < _ZERO * eigenvalues[0], 0.0, eigenvalues)
    positive = eigenvalues[eigenvalues > 0.0]
    negative_mass = float(np.abs(eigenvalues[eigenvalues < 0.0]).sum() / positive.sum())
    kept = _dimensions(positive, k, share)
    coordinates = _signed(vectors[:, :kept]) * np.sqrt(positive[:kept])
    lengths = np.linalg.norm(coordinates, axis=1)
    is_there = lengths > _SAME
    directions = np.zeros_like(coordinates)
    directions[is_there] = coordinates[is_there] / lengths[is_there, None]
    communality = lengths**2 / np.diag(cosines)
    return Space(
        points=directions * sizes[:, None],
        directions=directions,
        k=kept,
        eigenvalues=eigenvalues,
        communality=communality,
        negative_mass=negative_mass,
        complexities=sizes,
        dissimilarities=table,
        d_max=largest,
        model=model,
        warnings=tuple(_warnings(negative_mass, communality, is_there, kept)),
    )


def _checked(
    dissimilarities: ArrayLike, complexities: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    table = as_numbers("dissimilarities", dissimilarities)
    sizes = as_numbers("complexities", complexities)
    if table.ndim != 2 or table.shape[0] != table.shape[1] or len(table) < 2:
        raise ShapeError(
            f"dissimilarities have shape {table.shape}; it must be (n, n) with 2 tests at least"
        )
    if sizes.shape != (len(table),):
        raise ShapeError(f"complexities have shape {sizes.shape}; there are {len(table)} tests")
    bad = np.argwhere(~((table >= 0.0) & np.isfinite(table)))
    if len(bad):
        i, j = bad[0]
        raise InputError(f"dissimilarities[{i}, {j}] is {table[i, j]}; it must not be negative")
    if (np.diag(table) > _SAME).any():
        i = int((np.diag(table) > _SAME).argmax())
        raise InputError(f"dissimilarities[{i}, {i}] is {table[i, i]}; a test is like itself: 0")
    bad = np.argwhere(np.abs(table - table.T) > _SAME)
    if len(bad):
        i, j = bad[0]
        raise InputError(
            f"dissimilarities[{i}, {j}] is {table[i, j]} and [{j}, {i}] is {table[j, i]}; take"
            " the mean of both (`dissimilarities` does)"
        )
    for i in np.flatnonzero(~((sizes > 0.0) & np.isfinite(sizes))):
        raise InputError(f"complexities[{i}] is {sizes[i]}; it must be positive")
    table = (table + table.T) / 2.0
    np.fill_diagonal(table, 0.0)
    return table, sizes


def _products(
    table: NDArray[np.float64], sizes: NDArray[np.float64], largest: float, model: Model
) -> NDArray[np.float64]:
    """What two tests have in common: cosines, or products of their positions."""
    if model not in ("angular", "metric"):
        raise InputError(f"model is {model!r}; valid: 'angular', 'metric'")
    if not np.isfinite(largest) or largest < 0.0 or (largest == 0.0 and table.any()):
        raise InputError(f"d_max is {largest}; it must be positive and finite")
    if table.max() > largest * (1.0 + _SAME):
        raise InputError(
            f"d_max is {largest}, and the largest dissimilarity is {table.max()}; two tests cannot"
            " be more different than those that share nothing"
        )
    # Without any dissimilarity all tests are one.
    share = table / largest if largest > 0.0 else table
    if model == "angular":
        return 1.0 - share**2
    return (sizes[:, None] ** 2 + sizes[None, :] ** 2 - share**2) / 2.0


def _dimensions(positive: NDArray[np.float64], k: int | None, share: float) -> int:
    if k is not None:
        if k % 1 != 0 or not 1 <= k <= len(positive):
            raise InputError(
                f"k is {k}; the dissimilarities have {len(positive)} dimensions, so it must be a"
                f" whole number from 1 to {len(positive)}"
            )
        return int(k)
    if not 0.0 < share <= 1.0:
        raise InputError(f"share is {share}; it must be in (0, 1]")
    held = np.cumsum(positive) / positive.sum()
    return min(int((held < share - _SAME).sum()) + 1, MOST_DIMENSIONS, len(positive))


def _signed(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Eigenvectors have no sign; here their largest entry is positive, so that plots agree."""
    largest = np.abs(vectors).argmax(axis=0)
    signs = np.sign(vectors[largest, np.arange(vectors.shape[1])])
    return vectors * np.where(signs == 0.0, 1.0, signs)


def _warnings(
    negative_mass: float, communality: NDArray[np.float64], is_there: NDArray[np.bool_], k: int
) -> list[str]:
    found = []
    if negative_mass > MOST_NEGATIVE:
        found.append(
            f"negative mass {negative_mass:.3f}: no space represents these dissimilarities well"
        )
    found += [
        f"test {index}: {k} dimensions hold {communality[index]:.2f} of it only"
        for index in np.flatnonzero(communality < LEAST_COMMUNALITY)
    ]
    found += [
        f"test {index}: has no direction in {k} dimensions, and adds no volume"
        for index in np.flatnonzero(~is_there)
    ]
    if len(communality) == k:
        found.append(
            f"as many dimensions as tests ({k}): one performance of 0 makes AIQ 0, and ranking by"
            " AIQ is ranking by the geometric mean"
        )
    return found
