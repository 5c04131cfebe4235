"""How spaces and actions are written in JSON, for clients in any language."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from robo_eval.agents.wire import is_finite
from robo_eval.core.errors import InputError, said
from robo_eval.core.policy import is_action

_MOST_ENTRIES: Final = 2**24
"""Numbers that a space of a server may ask for."""


def as_json(space: spaces.Space[Any]) -> dict[str, Any]:
    """The JSON form of a space.

    Raises:
        InputError: If it is of a kind that has none.

    Example:
        >>> as_json(spaces.Discrete(5))
        {'kind': 'Discrete', 'n': 5, 'start': 0}
    """
    if isinstance(space, spaces.Discrete):
        return {"kind": "Discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.Box):
        return {
            "kind": "Box",
            "shape": list(space.shape),
            "dtype": space.dtype.str,
            "low": _bound(space.low),
            "high": _bound(space.high),
        }
    if isinstance(space, spaces.MultiDiscrete):
        return {
            "kind": "MultiDiscrete",
            "nvec": space.nvec.tolist(),
            "start": space.start.tolist(),
            "dtype": space.dtype.str,
        }
    if isinstance(space, spaces.MultiBinary):
        sizes = space.n if isinstance(space.n, int) else list(map(int, space.n))
        return {"kind": "MultiBinary", "n": sizes}
    if isinstance(space, spaces.Dict):
        return {"kind": "Dict", "spaces": {k: as_json(one) for k, one in space.spaces.items()}}
    if isinstance(space, spaces.Tuple):
        return {"kind": "Tuple", "spaces": [as_json(one) for one in space.spaces]}
    raise InputError(f"a space of kind {type(space).__name__} cannot be served")


def space_of(form: Any) -> spaces.Space[Any]:
    """The space that `as_json` wrote down.

    Raises:
        InputError: If the form is that of no space.

    Example:
        >>> space_of({"kind": "Discrete", "n": 5, "start": 0})
        Discrete(5)
    """
    try:
        return _space_of(form)
    except (KeyError, TypeError, ValueError, AttributeError, AssertionError) as err:
        raise InputError(f"no space has the form {str(form)[:80]}: {said(err)}") from err


def _space_of(form: Mapping[str, Any]) -> spaces.Space[Any]:
    kind = form["kind"]
    if kind == "Discrete":
        return spaces.Discrete(int(form["n"]), start=int(form["start"]))
    if kind == "Box":
        shape, dtype = _shape(form["shape"]), np.dtype(form["dtype"])
        low, high = (_bounds(form[name], shape, dtype) for name in ("low", "high"))
        return spaces.Box(low, high, shape, dtype.type)
    if kind == "MultiDiscrete":
        return spaces.MultiDiscrete(
            np.asarray(form["nvec"]), np.dtype(form["dtype"]).type, start=np.asarray(form["start"])
        )
    if kind == "MultiBinary":
        sizes = form["n"]
        return spaces.MultiBinary(_shape(sizes) if isinstance(sizes, list) else _shape([sizes])[0])
    if kind == "Dict":
        return spaces.Dict({str(name): _space_of(one) for name, one in form["spaces"].items()})
    if kind == "Tuple":
        return spaces.Tuple([_space_of(one) for one in form["spaces"]])
    raise ValueError(f"unknown kind {str(kind)[:40]!r}")


def _shape(form: Any) -> tuple[int, ...]:
    shape = tuple(map(int, form))
    if math.prod(shape) > _MOST_ENTRIES:
        raise ValueError(f"the shape {shape} is too large")
    return shape


def _bound(values: NDArray[Any]) -> object:
    """One number where all are the same; infinities as texts, which JSON has no numbers for."""
    same = bool(values.size and (values == values.flat[0]).all())
    return _plain(values.flat[0].item() if same else values.tolist())


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value if math.isfinite(value) else str(value)


def _bounds(form: object, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    # By way of text would be wrong for whole numbers over 2**53; those are never infinite.
    whole = np.asarray(form, np.float64 if dtype.kind == "f" else dtype)
    return np.broadcast_to(whole, shape).astype(dtype)


def action_of(space: spaces.Space[Any], given: object) -> Any:
    """An action as the environment is given it, and as the log keeps it.

    Args:
        space: The action space.
        given: As it came in: an array, a number, or lists of numbers.

    Raises:
        InputError: If it is no action of the space; the message says what one is.

    Example:
        >>> action_of(spaces.Discrete(5), 4)
        4
    """
    action: Any = given
    if isinstance(space, spaces.Discrete):
        is_whole = isinstance(given, int | np.integer) and not isinstance(given, bool)
        action = int(action) if is_whole else None
        if action is not None and 0 <= action - int(space.start) < int(space.n):
            # As `contains`, but faster.
            return action
    elif isinstance(space, spaces.Box | spaces.MultiDiscrete | spaces.MultiBinary):
        action = _array_of(given, space.dtype)
    if action is None or not (is_finite(action) and is_action(space, action)):
        raise InputError(f"{_shown(given)} is no action of {_shown(space)}")
    return action


def _array_of(given: object, dtype: Any) -> NDArray[Any] | None:
    """What was given as an array of a kind that a cast does not change; None if there is none."""
    try:
        found = np.asarray(given)
        fits = found.dtype.kind in "iuf" and not (found.dtype.kind == "f" and dtype.kind in "iub")
        return found.astype(dtype) if fits else None
    except (ValueError, TypeError, OverflowError):
        return None


def _shown(value: object) -> str:
    return " ".join(repr(value).split())[:120]
