"""Checks of arrays that the analyses share."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.core.errors import InputError


def as_numbers(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Values as an array of floats.

    Raises:
        InputError: If they are not numbers, or rows differ in length.
    """
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as err:
        raise InputError(f"{name} must hold numbers in rows of equal length: {err}") from err


def check_shares(name: str, values: NDArray[np.float64]) -> None:
    """Refuse what is not in [0, 1].

    Raises:
        InputError: If a number is missing or outside; the message names it.
    """
    bad = np.argwhere(~((values >= 0.0) & (values <= 1.0)))
    if len(bad):
        place = ", ".join(map(str, bad[0]))
        raise InputError(f"{name}[{place}] is {values[tuple(bad[0])]}; it must be in [0, 1]")
