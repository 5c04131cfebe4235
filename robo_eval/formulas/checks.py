"""What a formula accepts: finite numbers in range or draws of them, counts, sequences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.errors import InputError, ShapeError
from robo_eval.core.names import unknown_name

Numbers: TypeAlias = Sequence[float] | NDArray[np.floating] | NDArray[np.integer]
"""One number an episode, checkpoint, task or bin: a list, a tuple, a range or an array."""
Real: TypeAlias = float | NDArray[np.float64]
"""A number, or an array of draws of it. Formulas broadcast over draws: a result that is typed as a
number is an array of as many where draws are given."""

_ABSENT: Final = "leave out what was not measured"
_HUGE: Final = 1e150
"""No measurement is larger, and the square of a smaller number does not overflow."""


def number(
    name: str, value: object, *, low: float | None = None, high: float | None = None
) -> float:
    """A finite number in [low, high].

    Args:
        name: What the caller calls it, for the message.
        value: Anything `float` takes, except text.
        low: Smallest number that will do; none for no limit.
        high: Largest number that will do; none for no limit.

    Raises:
        InputError: If it is not a number, not finite or out of range.

    Example:
        >>> number("ar_real", 1.2, low=0.0, high=1.0)
        Traceback (most recent call last):
            ...
        robo_eval.core.errors.InputError: ar_real is 1.2; it must be a number from 0 to 1
    """
    wanted = _wanted(low, high)
    if np.ma.is_masked(value):
        raise InputError(f"{name} is masked; it must be {wanted}")
    # float("0.5") would work, and hide that a column was read as text.
    if isinstance(value, str | bytes | np.complexfloating) or not is_single(value):
        raise InputError(f"{name} is {value!r:.60}; it must be {wanted}")
    try:
        x = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError) as err:
        raise InputError(f"{name} is {value!r:.60}; it must be {wanted}") from err
    below = low is not None and x < low
    above = high is not None and x > high
    if not math.isfinite(x) or below or above:
        raise InputError(f"{name} is {x:g}; it must be {wanted}")
    if abs(x) > _HUGE:
        raise InputError(f"{name} is {x:g}; it must not exceed {_HUGE:g}")
    return x


def _wanted(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f"a number from {low:g} to {high:g}"
    if low is not None:
        return f"a finite number, at least {low:g}"
    if high is not None:
        return f"a finite number, at most {high:g}"
    return "a finite number"


def real(
    name: str,
    value: object,
    *,
    low: float | None = None,
    high: float | None = None,
) -> float:
    """A finite number in [low, high], or an array of draws that are; see `number`.

    Raises:
        InputError: If it is none; of draws the message names the first.

    Example:
        >>> real("rate", np.array([0.5, np.nan]), low=0.0)
        Traceback (most recent call last):
            ...
        robo_eval.core.errors.InputError: rate[1] is nan; it must be a finite number, at least 0
    """
    if not _is_array(value):
        return number(name, value, low=low, high=high)
    x = np.array(value, dtype=np.float64)
    fits = np.abs(x) <= _HUGE
    if low is not None:
        fits &= x >= low
    if high is not None:
        fits &= x <= high
    if not fits.all():
        at = np.unravel_index(int(np.argmin(fits)), x.shape)
        number(f"{name}[{', '.join(map(str, at))}]", x[at], low=low, high=high)
    return cast("float", x)


def _is_array(value: object) -> TypeGuard[NDArray[np.float64]]:
    """Whether this is an array of plain numbers; one that is masked, or of objects, is not."""
    if not isinstance(value, np.ndarray) or isinstance(value, np.ma.MaskedArray):
        return False
    return value.ndim > 0 and value.dtype.kind in "fiub"


def share(name: str, value: object) -> float:
    """A number in [0, 1]; see `number`."""
    return number(name, value, low=0.0, high=1.0)


def share_or_none(name: str, value: object, *, drawn: bool = False) -> float | None:
    """A number in [0, 1], or if `drawn` draws of it, or None where nothing was measured."""
    if value is None:
        return None
    try:
        return (real if drawn else number)(name, value, low=0.0, high=1.0)
    except InputError as err:
        raise InputError(f"{err}, or None where nothing was measured") from err


def positive(name: str, value: object) -> float:
    """A finite number above 0; see `number`."""
    x = number(name, value)
    if x <= 0.0:
        raise InputError(f"{name} is {x:g}; it must be above 0")
    return x


def confidence(name: str, value: object) -> float:
    """A confidence strictly between 0 and 1, such as 0.95; see `number`."""
    x = number(name, value)
    if not 0.0 < x < 1.0:
        raise InputError(f"{name} is {x:g}; it must be between 0 and 1, such as 0.95")
    return x


def count(name: str, value: object) -> int:
    """A whole number, at least 0; see `number`."""
    return int(number(name, whole(name, value)))


def whole(name: str, value: object) -> float:
    """A whole number of at least 0, or draws of it; see `real`."""
    x = real(name, value, low=0.0)
    parts = np.atleast_1d(x)
    wrong = parts[parts != np.floor(parts)]
    if wrong.size:
        raise InputError(f"{name} is {wrong[0]:g}; it must be a whole number")
    return x


def numbers(
    name: str, values: object, *, low: float | None = None, high: float | None = None
) -> NDArray[np.float64]:
    """A sequence of finite numbers in [low, high].

    Args:
        name: What the caller calls it, for the message.
        values: Numbers, shape (n,), n >= 0.
        low: Smallest number that will do; none for no limit.
        high: Largest number that will do; none for no limit.

    Returns:
        A copy as floats, shape (n,).

    Raises:
        InputError: If one of them is not a number, not finite or out of range.
        ShapeError: If it is not a sequence of numbers.

    Example:
        >>> numbers("capability", range(3), low=0.0)
        array([0., 1., 2.])
    """
    items = values if _is_array(values) and values.ndim == 1 else sequence(name, values)
    return _members(name, items, low, high)


def table(
    name: str, values: object, *, low: float | None = None, high: float | None = None
) -> NDArray[np.float64]:
    """A sequence of numbers as in `numbers`, or of draws of them, shape (n,) or (n, draws)."""
    if _is_array(values) and values.ndim == 2:
        return _members(name, values, low, high)
    return numbers(name, values, low=low, high=high)


def _members(
    name: str,
    values: NDArray[np.float64] | list[object],
    low: float | None,
    high: float | None,
) -> NDArray[np.float64]:
    try:
        if isinstance(values, np.ndarray):
            return np.asarray(real(name, values, low=low, high=high))
        found = [number(f"{name}[{i}]", x, low=low, high=high) for i, x in enumerate(values)]
        return np.array(found, dtype=np.float64)
    except InputError as err:
        raise InputError(f"{err}; {_ABSENT}") from err


def is_single(value: object) -> bool:
    """Whether this is one value and not several; an array without dimensions is one."""
    if isinstance(value, np.ndarray):
        return value.ndim == 0
    return not isinstance(value, Iterable) or isinstance(value, str | bytes)


def sequence(name: str, values: object) -> list[object]:
    """The members of a sequence or of an array of one dimension.

    Raises:
        ShapeError: If it is text, a mapping, a single number, or an array of another shape.
    """
    wrong_shape = isinstance(values, np.ndarray) and values.ndim != 1
    if wrong_shape or isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        shape = f" of shape {values.shape}" if isinstance(values, np.ndarray) else ""
        raise ShapeError(
            f"{name} is a {type(values).__name__}{shape}; it must be a sequence of numbers"
        )
    return list(values)


def same_length(**arrays: NDArray[np.float64]) -> None:
    """Check that sequences belong together.

    Raises:
        ShapeError: If their lengths differ.

    Example:
        >>> same_length(p=np.zeros(3), y=np.zeros(2))
        Traceback (most recent call last):
            ...
        robo_eval.core.errors.ShapeError: p has 3 values and y 2; they must be as many
    """
    (first, reference), *others = arrays.items()
    for name, array in others:
        if len(array) != len(reference):
            raise ShapeError(
                f"{first} has {len(reference)} values and {name} {len(array)}; they must be as many"
            )


def weights_of(name: str, values: object, n: int) -> NDArray[np.float64]:
    """Weights that sum to 1.

    Args:
        name: What the caller calls them, for the message.
        values: Weights, at least 0, shape (n,); None for equal ones.
        n: How many are needed, at least 1.

    Raises:
        InputError: If one is negative or not finite, or all are 0.
        ShapeError: If there are not n of them.
    """
    if values is None:
        return np.full(n, 1.0 / n)
    weights = numbers(name, values, low=0.0)
    if len(weights) != n:
        raise ShapeError(f"{name} has {len(weights)} values, and {n} are needed")
    return weights / total_weight(name, weights)


def total_weight(name: str, weights: Iterable[float]) -> float:
    """The sum of weights.

    Raises:
        InputError: If it is 0: then nothing would count.
    """
    total = math.fsum(weights)
    if total <= 0.0:
        raise InputError(f"{name} are all 0; at least one must be above 0")
    return total


def mapping(name: str, values: object, keys: Iterable[str] | None = None) -> dict[str, object]:
    """The items of a mapping.

    Args:
        name: What the caller calls it, for the message; plural.
        values: The mapping.
        keys: The keys that will do; none for any.

    Raises:
        InputError: If it is not a mapping.
        UnknownNameError: If a key is not among `keys`.
    """
    if not isinstance(values, Mapping):
        raise InputError(f"{name} is a {type(values).__name__}; it must be a mapping from names")
    if keys is not None:
        valid = list(keys)
        for key in values:
            if key not in valid:
                raise unknown_name(f"name in {name}", key, valid)
    return dict(values)


def one_of(name: str, value: object, valid: Sequence[str]) -> str:
    """A word from a closed list.

    Raises:
        UnknownNameError: If it is not in the list; the message names the nearest.
    """
    if value not in valid:
        raise unknown_name(name, value, valid)
    return str(value)


def total(parts: Iterable[Real]) -> float:
    """The sum of numbers or of draws, from the smallest on: their order changes no digit."""
    table = np.broadcast_arrays(*parts)
    return as_number(np.sort(table, axis=0).sum(axis=0)) if table else 0.0


def clip(x: Any) -> float:
    """The nearest number in [0, 1]; of draws each."""
    return cast("float", np.clip(x, 0.0, 1.0)) if np.ndim(x) else min(max(float(x), 0.0), 1.0)


def finite(x: Any) -> float | None:
    """The number, or None where it overflowed: no result is ever infinite; of draws NaN."""
    if np.ndim(x):
        return cast("float", np.where(np.isfinite(x), x, np.nan))
    return float(x) if math.isfinite(x) else None


def as_number(x: Any) -> float:
    """A number as Python has it; draws as they are."""
    return cast("float", x) if np.ndim(x) else float(x)
