"""Whether the two episodes of a pair started alike."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from robo_eval.core import door

TOLERANCE: Final = 1e-6
"""States this close (absolute for numbers below 1, else relative) are the same state: the
simulator starts from the very numbers that were logged, but tables round them."""


def state_difference(one: object, other: object) -> tuple[str, Any, Any] | None:
    """Where two logged initial states contradict each other.

    Args:
        one: State as a mapping, or its JSON text; anything else says nothing.
        other: The state it is compared with.

    Returns:
        Name of the first field that differs, and what each state says of it; None if they agree.
        A field that only one of them has cannot contradict. Quaternions (`..._quat_xyzw`) of
        opposite sign are the same rotation.

    Example:
        >>> state_difference({"x": [0.0, 1.0]}, {"x": [0.0, 1.1], "y": 2})
        ('x[1]', 1.0, 1.1)
    """
    if one is other or not one or not other:
        return None
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return None if one == other else _clash("", one, other)
    return _clash("", _mapping(one), _mapping(other))


def _mapping(state: object) -> Mapping[str, Any]:
    if isinstance(state, Mapping):
        return state
    if isinstance(state, str):
        try:
            read = door.json_of(state)
        except ValueError:
            return {}
        return read if isinstance(read, dict) else {}
    return {}


def _clash(name: str, one: Any, other: Any) -> tuple[str, Any, Any] | None:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        found = (
            _clash(f"{name}.{key}" if name else str(key), one[key], other[key])
            for key in one
            if key in other
        )
        return next((clash for clash in found if clash), None)
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        found = (
            _clash(f"{name}[{i}]", *both) for i, both in enumerate(zip(one, other, strict=True))
        )
        clash = next((clash for clash in found if clash), None)
        if clash and name.endswith("quat_xyzw") and _is_opposite(one, other):
            return None
        return clash
    return None if _is_same(one, other) else (name, one, other)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_same(one: Any, other: Any) -> bool:
    if _is_number(one) and _is_number(other):
        return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return bool(one == other)


def _is_opposite(one: list[Any], other: list[Any]) -> bool:
    return all(map(_is_number, one)) and all(
        _is_same(-a, b) for a, b in zip(one, other, strict=True)
    )
