"""Volume of the convex hull of the origin and some points, flat sets of points included."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import ConvexHull

from robo_eval.analysis.arrays import as_numbers
from robo_eval.core.errors import InputError, ShapeError

FLAT: Final = 1e-9
"""A singular value below this share of the largest is 0."""
MOST_POINTS: Final = 40
"""Points whose hull is computed in `MANY_DIMENSIONS` or more; it has 250,000 facets then."""
MANY_DIMENSIONS: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Hull:
    """The convex hull of the origin and some points in k dimensions.

    Attributes:
        volume: Volume in k dimensions; exactly 0 if the points lie in fewer.
        rank: Dimensions of the span of the points.
        intrinsic_volume: Volume within that span: an area for rank 2, a length for rank 1, and 0
            if all points are the origin.
    """

    volume: float
    rank: int
    intrinsic_volume: float


def hull_volume(points: ArrayLike) -> Hull:
    """Volume of the convex hull of the origin and some points.

    Args:
        points: Shape (n, k). The origin is added.

    Raises:
        InputError: If a coordinate is not finite, or there are so many points in so many
            dimensions that the hull would take minutes.
        ShapeError: If they are no points.

    Example:
        >>> f"{hull_volume([[1, 0], [0.6, 0.6], [0, 1], [0.3, 0.2]]).volume:.6f}"
        '0.600000'
    """
    values, basis, singular = _spanned(points)
    rank = len(singular)
    if rank == 0:
        return Hull(volume=0.0, rank=0, intrinsic_volume=0.0)
    within = float(np.prod(singular)) * _unit_volume(basis)
    is_full = rank == values.shape[1]
    return Hull(volume=within if is_full else 0.0, rank=rank, intrinsic_volume=within)


def determinant_volume(points: ArrayLike) -> float:
    """The same volume, as a sum of determinants over the facets of the hull: a cross-check.

    Each facet makes a simplex with the origin, which the hull contains; facets through the origin
    make one of no volume.

    Args:
        points: Shape (n, k); flat ones have volume 0.

    Raises:
        InputError: See `hull_volume`.
        ShapeError: See `hull_volume`.
    """
    values, basis, singular = _spanned(points)
    k = values.shape[1]
    if len(singular) < k:
        return 0.0
    if k == 1:
        return hull_volume(values).volume
    corners = np.vstack([np.zeros(k), basis])
    facets = corners[ConvexHull(corners).simplices]
    within = math.fsum(np.abs(np.linalg.det(facets))) / math.factorial(k)
    return float(np.prod(singular)) * within


def _spanned(
    points: ArrayLike,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Points, their coordinates in a basis in which no direction is longer, and its scale.

    In that basis (left singular vectors) the hull library does not meet nearly flat points; a
    volume there is that of the points divided by the product of the singular values.
    """
    values = as_numbers("points", points)
    if values.ndim != 2 or not values.size:
        raise ShapeError(f"points have shape {values.shape}; it must be (n, k), n, k >= 1")
    if not np.isfinite(values).all():
        row = int(np.argwhere(~np.isfinite(values))[0][0])
        raise InputError(f"points[{row}] has a coordinate that is not finite")
    left, singular, _ = np.linalg.svd(values, full_matrices=False)
    rank = int((singular > FLAT * singular[0]).sum()) if singular[0] > 0.0 else 0
    if rank >= MANY_DIMENSIONS and len(values) > MOST_POINTS:
        raise InputError(
            f"the hull of {len(values)} points in {rank} dimensions would take minutes; use fewer"
            f" than {MANY_DIMENSIONS} dimensions (k), or {MOST_POINTS} points at most"
        )
    return values, left[:, :rank], singular[:rank]


def _unit_volume(basis: NDArray[np.float64]) -> float:
    corners = np.vstack([np.zeros(basis.shape[1]), basis])
    if basis.shape[1] == 1:
        return float(np.ptp(corners))
    return float(ConvexHull(corners).volume)
