"""What the extreme curves look like beside an agent: three isometrics and the grid's own limit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.analysis.acc.curve import make_scale
from robo_eval.analysis.acc.measures import measure
from robo_eval.analysis.arrays import as_numbers
from robo_eval.core.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Isometrics:
    """Spread of three kinds of curve over capability, each array of shape (n,).

    Attributes:
        capability: From h0 to q, in units of difficulty.
        falling_step: Spread where normalised generality is 1.
        constant: Spread where it is 0.
        rising_step: Spread where it is -1.
    """

    capability: NDArray[np.float64]
    falling_step: NDArray[np.float64]
    constant: NDArray[np.float64]
    rising_step: NDArray[np.float64]


def isometrics(h0: float, q: float, *, n: int = 201) -> Isometrics:
    """Lines of normalised generality 1, 0 and -1 in the plane of capability and spread.

    Raises:
        InputError: If h0 is not below q, or n is below 2.

    Example:
        >>> lines = isometrics(0.0, 4.0, n=3)
        >>> lines.constant.tolist()
        [0.0, 2.0, 0.0]
    """
    if not (np.isfinite(h0) and np.isfinite(q) and h0 < q):
        raise InputError(f"h0 {h0} must be below q {q}")
    if n < 2:
        raise InputError(f"n is {n}; a line needs at least 2 points")
    area = np.linspace(0.0, q - h0, n)
    constant = np.sqrt(area * (q - h0 - area))
    return Isometrics(
        capability=h0 + area,
        falling_step=np.zeros(n),
        constant=constant,
        rising_step=np.sqrt(2.0) * constant,
    )


def attainable_maximum(
    difficulty: ArrayLike,
    *,
    h0: float | None = None,
    q: float | None = None,
    left_fill: float = 1.0,
    right_fill: float = 0.0,
) -> float | None:
    """Normalised generality of the best falling step on a grid of levels.

    A step between two levels is drawn as a ramp, so coarse grids cannot show 1.

    Args:
        difficulty: Difficulties of the items, shape (I,).
        h0: Lower end of the axis; none means the lowest difficulty.
        q: Upper end of the axis; none means the highest difficulty.
        left_fill: Response assumed between h0 and the lowest level.
        right_fill: Response assumed between the highest level and q.

    Returns:
        The best value; None if there is one level only and so no step.

    Example:
        >>> round(attainable_maximum([0, 1, 2]), 3)
        0.889
    """
    scale = make_scale(
        as_numbers("difficulty", difficulty),
        h0=h0,
        q=q,
        left_fill=left_fill,
        right_fill=right_fill,
    )
    n_levels = len(scale.levels)
    steps = np.tri(n_levels + 1, n_levels, k=-1)
    gammas = measure(steps, scale).normalised_generality
    defined = gammas[~np.isnan(gammas)]
    return float(defined.max()) if defined.size else None
