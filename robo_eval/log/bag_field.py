"""Which part of a bag's messages a text such as `/result.success` means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from keyword import iskeyword
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval.core import door
from robo_eval.core.errors import InputError
from robo_eval.core.names import unknown_name

DATA: Final = "data"
"""The field of the messages of std_msgs, which is meant where none is named."""
_FIELD: Final = re.compile(r"(?P<topic>/?[\w~/{}]+)(?P<path>(\.\w+|\[-?\d+\])*)", re.ASCII)
_STEP: Final = re.compile(r"\.(?P<name>\w+)|\[(?P<index>-?\d+)\]", re.ASCII)
_NAMES: Final = ("name", "joint_names")
WIDE_TEXT: Final = "robo_eval/msg/WideText"
"""The type that stands for `wstring`: a sequence `data` of code units."""
# Kinds of fields in the type descriptions of the rosbags library.
_BASE, _NAME, _ARRAY, _SEQUENCE = 1, 2, 3, 4

Message = Any
"""A decoded message: an object of a class that the rosbags library makes from its definition."""
Definitions = Mapping[str, Any]
"""Field descriptions by message type, as the rosbags library keeps them."""


@dataclass(frozen=True, slots=True)
class FieldPath:
    """A topic, and the way from its messages to one value in them.

    Attributes:
        topic: Name of the topic.
        steps: Names of fields, and places in lists, from the end if negative; empty for the
            message itself.
        text: How it was written.
    """

    topic: str
    steps: tuple[str | int, ...]
    text: str

    def value(self, message: Message) -> Any:
        """What a message holds there; None if a list or a JSON text does not reach so far."""
        found = message
        for step in self.steps:
            if isinstance(found, str):
                found = _from_json(found)
            if isinstance(found, dict):
                found = found.get(str(step))
            elif isinstance(step, int):
                length = len(found) if hasattr(found, "__len__") else 0
                found = found[step] if -length <= step < length else None
            else:
                # The library calls a field `from_` that Python could not call `from`.
                found = getattr(found, f"{step}_" if iskeyword(step) else step, None)
            if found is None:
                return None
            if getattr(found, "__msgtype__", "") == WIDE_TEXT:
                found = _from_wide(found.data)
        return found

    def entries(self, message: Message) -> int | None:
        """How many entries the list in a message has that does not reach to its place here."""
        for at, step in enumerate(self.steps):
            if isinstance(step, int):
                found = FieldPath(self.topic, self.steps[:at], self.text).value(message)
                length = len(found) if hasattr(found, "__len__") else None
                if length is not None and not -length <= step < length:
                    return length
        return None

    def named(self, message: Message) -> str | None:
        """What a message calls the value there; None if it names none of its list.

        Messages of joints have the names of a list in another one, as `name` or `joint_names`.
        """
        field, place = self.steps[0] if self.steps else "", self.steps[-1] if self.steps else ""
        if not isinstance(place, int) or field in _NAMES:
            return None
        lists = (found for one in _NAMES if isinstance(found := getattr(message, one, None), list))
        return next((str(one[place]) for one in lists if -len(one) <= place < len(one)), None)


def parse_field(text: object, *, whole: bool = False) -> FieldPath:
    """A field from its text: `/topic`, `/topic.field`, `/topic.field.part[2]`, `/topic.list[-1]`.

    Args:
        text: What is written; a field that was read stays as it is.
        whole: Whether a topic alone means its messages, and not their field `data`.

    Raises:
        InputError: If it is no such text.
    """
    if isinstance(text, FieldPath):
        return text
    match = _FIELD.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise InputError(
            f"is no field, given {text!r:.60}; write it as /topic.field, or /topic for its field"
            " data"
        )
    steps = tuple(step["name"] or int(step["index"]) for step in _STEP.finditer(match["path"]))
    if isinstance(steps[0], int) if steps else not whole:
        steps = (DATA, *steps)  # no message is a list itself
    return FieldPath(match["topic"], steps, match.group())


def check_field(place: str, field: FieldPath, type_name: str, known: Definitions) -> str:
    """Refuse a path that the messages of a topic do not have.

    Args:
        place: Where it is written, for error messages.
        field: The path.
        type_name: Type of the topic's messages.
        known: Fields of each type.

    Returns:
        The type of what is there: a message type, a basic type such as `float64`, with `[]` if
        it is a list of these, or `json` below a text.

    Raises:
        InputError: If there is no such field; the message names the nearest.
    """
    kind: tuple[int, Any] = (_NAME, type_name)
    for step in field.steps:
        if _is_text(kind):
            return "json"
        kind = _below(place, field, type_name, kind, step, known)
    return _type_text(kind)


def fields_in(kind: str, known: Definitions) -> list[str]:
    """The fields of a type; a basic type and a list have none."""
    return [name for name, _ in known[kind][1]] if kind in known else []


def _below(
    place: str,
    field: FieldPath,
    type_name: str,
    kind: tuple[int, Any],
    step: str | int,
    known: Definitions,
) -> tuple[int, Any]:
    where = f"{place}: {field.text}: topic {field.topic} has messages of type {type_name}"
    tag, what = int(kind[0]), kind[1]
    if tag in (_ARRAY, _SEQUENCE):
        if not isinstance(step, int):
            raise InputError(f"{where}: before .{step} is a list; name a place in it, such as [0]")
        inner: tuple[int, Any] = what[0]
        return inner
    if tag == _BASE:
        raise InputError(
            f"{where}: {_type_text(kind)} has no part {_step_text(step)}; leave it out"
        )
    fields = dict(known[what][1]) if what in known else {}
    if isinstance(step, int):
        raise InputError(f"{where}: before [{step}] is no list, but {what}; name one of its fields")
    if step not in fields:
        raise InputError(f"{where}: {unknown_name('field', step, fields)}")
    found: tuple[int, Any] = fields[step]
    return found


def _is_text(kind: tuple[int, Any]) -> bool:
    return (int(kind[0]) == _BASE and _base_name(kind) == "string") or kind[1] == WIDE_TEXT


def _base_name(kind: tuple[int, Any]) -> str:
    # With the greatest length of a text beside it.
    return str(kind[1][0] if isinstance(kind[1], tuple) else kind[1])


def _type_text(kind: tuple[int, Any]) -> str:
    tag = int(kind[0])
    if tag in (_ARRAY, _SEQUENCE):
        return f"{_type_text(kind[1][0])}[]"
    if tag == _NAME:
        return "wstring" if kind[1] == WIDE_TEXT else str(kind[1])
    return _base_name(kind)


def _step_text(step: str | int) -> str:
    return f"[{step}]" if isinstance(step, int) else f".{step}"


def _from_wide(units: NDArray[np.unsignedinteger]) -> str:
    if units.dtype.itemsize == 1:
        return units.tobytes().decode("utf-16-le", errors="replace")
    text = "".join(map(chr, units.tolist())).rstrip("\0")
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", errors="replace")


def _from_json(text: str) -> Any:
    try:
        return door.json_of(text)
    except ValueError:
        return None
