"""What arguments must be, in the words all of this package uses to say so."""

from __future__ import annotations

from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.stats.arrays import floats

Alternative = Literal["two", "greater", "less"]
"""Two-sided, or only "the first is greater", or only "the first is less"."""

_COUNTED: Final = 2.0**53
_HUGE: Final = 1e150


def check_level(level: float) -> None:
    """Refuse a coverage outside (0, 1)."""
    check_share("level", level)


def check_share(name: str, value: float) -> None:
    """Refuse what is not strictly between 0 and 1."""
    if not 0.0 < value < 1.0:
        raise ValueError(f"{name} must be between 0 and 1, given {value}")


def check_choice(name: str, value: str, choices: object) -> None:
    """Refuse what is not one of the words of a `Literal`."""
    words = get_args(choices)
    if value not in words:
        *most, last = (repr(word) for word in words)
        raise ValueError(f"{name} must be {', '.join(most)} or {last}, given {value!r}")


def whole(name: str, values: ArrayLike, *, least: int | None = 0) -> NDArray[np.float64]:
    """Counts as floats: finite, whole, at least `least` if there is such a limit."""
    counts = floats(name, values)
    bad = ~(np.isfinite(counts) & (counts == np.floor(counts)))
    if bad.any():
        raise ValueError(f"{name} must hold whole numbers, given {counts[bad][0]}")
    if least is not None and (counts < least).any():
        raise ValueError(f"{name} must be at least {least}, given {counts[counts < least][0]:.0f}")
    if (counts > _COUNTED).any():
        raise ValueError(f"{name} holds {counts.max():g}; beyond 2^53 a float is not a count")
    return counts


def finite(name: str, values: ArrayLike, *, ndim: int = 1) -> NDArray[np.float64]:
    """Numbers of a given number of dimensions, all finite."""
    x = floats(name, values)
    if x.ndim != ndim:
        wanted = ("()", "(n,)", "(n, d)")[ndim]
        raise ValueError(f"{name} must have shape {wanted}, given {x.shape}")
    if not np.isfinite(x).all():
        raise ValueError(f"{name} holds {x[~np.isfinite(x)][0]}, which is not finite")
    if (np.abs(x) > _HUGE).any():
        raise ValueError(f"{name} holds {x[np.abs(x) > _HUGE][0]:g}; the square of it overflows")
    return x


def verdicts(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Outcomes that are 0 or 1, shape (n,); a missing verdict is neither and is refused."""
    x = floats(name, values)
    if x.ndim != 1:
        raise ValueError(f"{name} must have shape (n,), given {x.shape}")
    bad = ~((x == 0.0) | (x == 1.0))
    if bad.any():
        raise ValueError(
            f"{name} must hold 0 and 1 only, given {x[bad][0]}; leave missing ones out"
        )
    return x


def pair_up(
    first_name: str, first: NDArray[np.float64], second_name: str, second: NDArray[np.float64]
) -> None:
    """Refuse two sides that cannot be pairs."""
    if first.shape != second.shape:
        raise ValueError(
            f"{first_name} and {second_name} must be of equal length,"
            f" given {len(first)} and {len(second)}"
        )


def unwrap(values: NDArray[np.float64]) -> float | NDArray[np.float64]:
    """A plain float where plain numbers came in."""
    return values if values.ndim else float(values)
