"""Entropy of what an agent sees: for comparison with complexity, not in its place.

The source finds that the entropy of observations falls while control tasks get harder.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.analysis.aiq.complexity import BINS
from robo_eval.analysis.arrays import as_numbers
from robo_eval.core.errors import InputError, ShapeError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ObservationEntropy:
    """Entropy of the observations of a control task.

    Attributes:
        total: Sum over variables, in bits: of the marginal distributions, not of the joint one.
        by_variable: Entropy of each variable, bits, shape (V,).
        low: Lowest value of each, where its histogram begins, shape (V,).
        high: Highest value of each, where it ends, shape (V,).
    """

    total: float
    by_variable: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ImageEntropy:
    """Entropy of an image.

    Attributes:
        local: Entropy of the grey values around each pixel, bits, shape (H, W).
        mean_local: Its mean, bits.
        with_labels: The mean, and what it takes to name the class of the image, bits.
    """

    local: NDArray[np.float64]
    mean_local: float
    with_labels: float


def observation_entropy(columns: ArrayLike, bins: int = BINS) -> ObservationEntropy:
    """Entropy of observations: a histogram of equal bins for each variable over its range.

    The range depends on extremes, so it is returned as well.

    Args:
        columns: Observations, shape (N,) for one variable or (N, V).
        bins: Bins of each histogram.

    Raises:
        InputError: If a number is not finite.
        ShapeError: If there are no observations.

    Example:
        >>> observation_entropy([0, 0, 0, 1], bins=4).total  # doctest: +ELLIPSIS
        0.81127812445913...
    """
    values = as_numbers("columns", columns)
    if values.ndim not in (1, 2) or not values.size:
        raise ShapeError(f"columns have shape {values.shape}; it must be (N,) or (N, V), N >= 1")
    if not np.isfinite(values).all():
        raise InputError("columns hold a number that is not finite")
    if bins < 1:
        raise InputError(f"bins is {bins}; it must be 1 or more")
    table = values[:, None] if values.ndim == 1 else values
    low, high = table.min(axis=0), table.max(axis=0)
    found = np.array(
        [_entropy(np.histogram(column, bins=bins)[0]) if np.ptp(column) else 0.0
         for column in table.T]
    )  # fmt: skip
    return ObservationEntropy(total=math.fsum(found), by_variable=found, low=low, high=high)


def image_entropy(image: ArrayLike, n_classes: int) -> ImageEntropy:
    """Entropy of an image: around each pixel, averaged, plus log2 of the number of classes.

    Around a pixel are the pixel and its four neighbours; at borders there are fewer.

    Args:
        image: Grey values, shape (H, W); equal numbers are equal grey values.
        n_classes: Classes of the set the image is of.

    Raises:
        InputError: If a value is not finite, or there is no class.
        ShapeError: If it is no image.

    References:
        Pereyda and Holder (2025) add 3.32 bits for 100 classes; log2(100) is 6.64.
    """
    values = as_numbers("image", image)
    if values.ndim != 2 or not values.size:
        raise ShapeError(f"image has shape {values.shape}; it must be (H, W)")
    if not np.isfinite(values).all():
        raise InputError("image holds a number that is not finite")
    if n_classes < 1:
        raise InputError(f"n_classes is {n_classes}; it must be 1 or more")
    around = _around(values)
    present = np.isfinite(around)
    # How often the value of each neighbour is among the neighbours.
    same = (around[:, None] == around[None, :]) & present[:, None] & present[None, :]
    share = same.sum(axis=1) / present.sum(axis=0)
    # Each value counts once for each time it is there: the mean of -log2 of the shares.
    with np.errstate(divide="ignore"):
        bits = np.where(present, -np.log2(share), 0.0)
    local = bits.sum(axis=0) / present.sum(axis=0)
    local = np.maximum(local, 0.0)
    mean = float(local.mean())
    return ImageEntropy(local=local, mean_local=mean, with_labels=mean + math.log2(n_classes))


def _around(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each pixel with its neighbours, shape (5, H, W); NaN beyond the border."""
    padded = np.pad(values, 1, constant_values=np.nan)
    return np.stack(
        [values, padded[:-2, 1:-1], padded[2:, 1:-1], padded[1:-1, :-2], padded[1:-1, 2:]]
    )


def _entropy(counts: NDArray[np.intp]) -> float:
    share = counts[counts > 0] / counts.sum()
    return max(0.0, -math.fsum(share * np.log2(share)))
