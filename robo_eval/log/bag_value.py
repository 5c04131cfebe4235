"""What one value of a message says: a text, a number, a truth, a word of the map."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import TRUTHS
from robo_eval.log.cells import number_of


def plain_of(value: object) -> object:
    """A value without numpy; a float32 is the number with the digits it has, 0.7 and no more."""
    if isinstance(value, np.float32):
        return float(str(value))
    return value.item() if isinstance(value, np.generic) else value


def text_of(place: str, value: object) -> str:
    """A value of a message as it would stand in the cell of a table.

    Raises:
        InputError: If it is not a single value; the message begins with `place`, as in all here.
    """
    plain = plain_of(value)
    if isinstance(plain, bool):
        return "true" if plain else "false"
    if isinstance(plain, int | float):
        return repr(plain)
    if isinstance(plain, str):
        return plain
    raise InputError(
        f"{place}: is {_what(plain)}, not one value; name a part of it, such as .x or [0]"
    )


def spelled(place: str, value: object, names: Iterable[str]) -> str:
    """The text of a value, as the map spells it where a name of the map means the same.

    Raises:
        InputError: If it is not a single value.
    """
    text = text_of(place, value)
    known = list(names)
    return text if text in known else next((n for n in known if _is_same(value, n, text)), text)


def cell_of(place: str, value: object, names: Iterable[str] = ()) -> str:
    """A value of a file as a cell of a table: empty for none and NaN, `1` for 1.0.

    Raises:
        InputError: If it is not a single value.
    """
    plain = plain_of(value)
    if plain is None or plain != plain:
        return ""
    if isinstance(plain, float) and plain.is_integer():
        value = int(plain)
    return spelled(place, value, names)


def truth_of(place: str, value: object) -> bool | None:
    """Whether a bool, or a text that spells one, is true; None if it is neither.

    Raises:
        InputError: If it is not a single value.
    """
    text = text_of(place, value)
    is_number = number_of(text) is not None
    return None if is_number else TRUTHS.get(text.lower())


def finite_of(place: str, value: object) -> float:
    """A value as a number.

    Raises:
        InputError: If it is none, or not finite.
    """
    plain = plain_of(value)
    if not isinstance(plain, int | float) or not math.isfinite(plain):
        raise InputError(f"{place}: {text_of(place, value)!r:.40} is not a finite number")
    return float(plain)


def _is_same(value: object, name: str, text: str) -> bool:
    plain = plain_of(value)
    if isinstance(plain, bool):
        return name.lower() == text
    number = number_of(name)
    if number is None or not isinstance(plain, int | float):
        return False
    if isinstance(value, np.float32):
        return bool(np.float32(float(number)) == value)
    return number == plain if isinstance(plain, int) else float(number) == plain


def _what(value: object) -> str:
    if isinstance(value, np.ndarray | list | tuple):
        return "a list"
    return str(getattr(value, "__msgtype__", None) or type(value).__name__)
