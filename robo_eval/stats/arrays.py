"""The door through which arrays come in: what is missing is NaN, the rest must be numbers."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from itertools import combinations
from typing import Any, Final, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

_P = ParamSpec("_P")
_R = TypeVar("_R")
_ABSENT: Final = ("NAType", "NaTType")
"""Types by which pandas says that there is nothing; it is not loaded to find out."""


def floats(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Numbers as floats, in which NaN is whatever says that there is none.

    A mask, None, and pandas' NA and NaT do. `np.asarray` would take the number below a mask.

    Args:
        name: What the caller calls them, for the message.
        values: Numbers or truths of any shape.

    Raises:
        ValueError: If they are texts, dates, complex or other things, or rows differ in length.

    Example:
        >>> floats("x", np.ma.masked_array([1, 2], mask=[False, True])).tolist()
        [1.0, nan]
    """
    plain = unmasked(name, values)
    if plain.dtype.kind in "biuf":
        return plain.astype(np.float64)
    if plain.dtype.kind != "O":
        raise ValueError(f"{name} must hold numbers, given {plain.dtype.name}")
    found = [_float(name, value) for value in plain.ravel()]
    return np.array(found, dtype=np.float64).reshape(plain.shape)


def same_labels(
    *, error: type[ValueError] = ValueError
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Let a function refuse pandas' tables whose labels say that positions are not the same thing.

    Arguments are compared by the labels of their last axis, and a table by those of its rows and
    columns. A plain numbering says nothing about names, and numbers of which none is in both are
    no order.

    Args:
        error: What is raised then.
    """

    def checked(function: Callable[_P, _R]) -> Callable[_P, _R]:
        names = tuple(inspect.signature(function).parameters)

        @wraps(function)
        def called(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            given = {**dict(zip(names, args, strict=False)), **kwargs}
            axes = {name: _labels(value) for name, value in given.items()}
            axes = {name: labels for name, labels in axes.items() if labels}
            for name, labels in axes.items():
                if len(labels) == 2 and set(labels[0]) & set(labels[1]) and _differ(*labels):
                    raise error(
                        f"{name} has other labels in its rows than in its columns; bring both into"
                        " one order first, with reindex"
                    )
            for one, other in combinations(axes, 2):
                if _differ(axes[one][-1], axes[other][-1]):
                    raise error(
                        f"{one} and {other} have other labels, or another order of them; align"
                        f" them first, as by {other}.reindex, or hand over {other}.to_numpy() where"
                        " only the order counts"
                    )
            return function(*args, **kwargs)

        return called

    return checked


def _labels(value: object) -> list[Any]:
    """The labels of each axis of a pandas object, as its indexes; none of other things."""
    if type(value).__module__.partition(".")[0] != "pandas":
        return []
    return list(getattr(value, "axes", []))


def _differ(one: Any, other: Any) -> bool:
    """Whether two axes of one length have labels that do not fit position by position."""
    if len(one) != len(other) or one.equals(other):
        return False
    first, second = list(one), list(other)
    # Rows of one table that were chosen twice, such as those of two policies, are numbered on.
    if all(isinstance(label, int | float) for label in (*first, *second)):
        return bool(set(first) & set(second))
    plain = list(range(len(first)))
    return plain not in (first, second)


def integers(name: str, values: ArrayLike) -> NDArray[np.int64]:
    """Whole numbers of which each digit counts, such as seeds.

    Raises:
        ValueError: If one is missing, not whole or beyond 64 bits.
    """
    plain = unmasked(name, values)
    x = floats(name, plain)
    bad = ~((x == np.floor(x)) & (np.abs(x) < 2.0**63))
    if bad.any():
        raise ValueError(f"{name} must hold whole numbers of 64 bits, given {x[bad][0]}")
    return plain.astype(np.int64)


def unmasked(name: str, values: ArrayLike) -> NDArray[Any]:
    """An array of the same values, with None in place of what a mask hides.

    Raises:
        ValueError: If rows differ in length.
    """
    if isinstance(values, np.ma.MaskedArray):
        if not np.ma.is_masked(values):
            return np.asarray(values.data)
        plain = np.array(values.data, dtype=object)
        plain[np.ma.getmaskarray(values)] = None
        return plain
    if isinstance(values, list | tuple) and any(
        isinstance(part, list | tuple | np.ndarray) for part in values
    ):
        # Row by row: an array of arrays would lose their masks.
        rows = [unmasked(name, part) for part in values]
        shapes = {row.shape for row in rows}
        if len(shapes) > 1:
            raise ValueError(f"{name} must hold rows of equal length, given {sorted(shapes)}")
        return np.stack(rows)
    try:
        return np.asarray(values)
    except ValueError as err:
        raise ValueError(f"{name} must hold rows of equal length") from err


def is_absent(value: object) -> bool:
    """Whether a value of an array says that there is none."""
    return value is None or type(value).__name__ in _ABSENT or (value != value)


def _float(name: str, value: Any) -> float:
    if is_absent(value):
        return float("nan")
    if not isinstance(value, str | bytes | complex | np.complexfloating):
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            pass
    raise ValueError(f"{name} must hold numbers, given {value!r:.60}")
