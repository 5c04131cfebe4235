"""Which tests are alike, as a tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike
from scipy.cluster.hierarchy import dendrogram, linkage, optimal_leaf_ordering
from scipy.spatial.distance import squareform

from robo_eval.stats.arrays import floats


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTree:
    """Tests joined by average linkage, alike ones side by side.

    Attributes:
        leaves: Place of each test, in the order of the tree.
        joints: For each joint the places along the order, and the dissimilarities, of its four
            corners: up from the first branch, across, and down to the second.
    """

    leaves: Sequence[int]
    joints: Sequence[tuple[Sequence[float], Sequence[float]]]


def cluster_tree(table: ArrayLike) -> ClusterTree:
    """The tree of a table of dissimilarities.

    Args:
        table: Symmetric, 0 on the diagonal, shape (tests, tests), at least two of them.

    Example:
        >>> cluster_tree([[0, 9, 1], [9, 0, 9], [1, 9, 0]]).joints[0][1]
        [0.0, 1.0, 1.0, 0.0]
    """
    apart = squareform(floats("table", table), checks=False)
    drawn = dendrogram(optimal_leaf_ordering(linkage(apart, "average"), apart), no_plot=True)
    # Leaves stand at 5, 15, ...
    along = [[(one - 5.0) / 10.0 for one in across] for across in drawn["icoord"]]
    return ClusterTree(
        leaves=[int(place) for place in drawn["leaves"] or ()],
        joints=list(zip(along, [list(map(float, up)) for up in drawn["dcoord"]], strict=True)),
    )
