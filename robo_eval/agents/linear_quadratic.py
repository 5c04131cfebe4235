"""The cheapest way to bring a linear system to rest."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def cost_to_go(a: Vector, b: Vector, q: Vector, r: float) -> Vector:
    """Matrix P of the least cost x'Px of bringing a discrete linear system to rest.

    The cost of a step is x' diag(q) x + r F^2. Solved by doubling: each of about ten rounds
    covers twice as many steps as the one before.

    Args:
        a: State matrix, shape (n, n).
        b: Input column, shape (n,).
        q: Weights of the state, shape (n,), none negative.
        r: Weight of the input, positive.

    Returns:
        Symmetric matrix, shape (n, n).

    Raises:
        ArithmeticError: If the iteration does not settle, as when no push reaches the pole.

    References:
        Chu, Fan, Lin, Wang (2004), structure-preserving doubling for discrete-time algebraic
        Riccati equations, International Journal of Control 77:767-788.
    """
    identity = np.eye(len(b))
    ak, gk, hk = a, np.outer(b, b) / r, np.diag(q).astype(np.float64)
    with np.errstate(all="ignore"):
        for _ in range(40):
            try:
                w = np.linalg.inv(identity + gk @ hk)
            except np.linalg.LinAlgError:
                break
            step = ak.T @ hk @ w @ ak
            gk = gk + ak @ w @ gk @ ak.T
            ak = ak @ w @ ak
            hk = hk + step
            size = float(np.abs(hk).max())
            if not math.isfinite(size):
                break
            if float(np.abs(step).max()) <= 1e-10 * size:
                return (hk + hk.T) / 2.0
    raise ArithmeticError("the Riccati iteration did not settle")
