"""Turning what somebody gave into a section, with an error that names the field."""

from __future__ import annotations

import re
from datetime import date
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from robo_eval.core.errors import InputError
from robo_eval.core.yaml_form import first_problem
from robo_eval_incidents.text import too_long

_Model = TypeVar("_Model", bound=BaseModel)
_HAVE: Final = re.compile(r"(?:String|Tuple) should have")
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def section_of(model: type[_Model], values: Any, where: str = "") -> _Model:  # noqa: ANN401
    """A section made of values from outside.

    Args:
        model: Which section.
        values: What was given, anything at all.
        where: What comes before the field in messages.

    Raises:
        InputError: If it is none; the message is one line that begins with `where` and the field.
    """
    try:
        return model.model_validate(values)
    except ValidationError as err:
        raise InputError(f"{where}{problem_of(err, model)}") from err


def problem_of(err: ValidationError, model: type[BaseModel]) -> str:
    """The most likely cause in one line, which begins with the field."""
    first = err.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    if first["type"] == "string_too_long":
        return f"{field}: {too_long(first)}"
    if first["type"] == "too_long":
        found, most = first["ctx"]["actual_length"], first["ctx"]["max_length"]
        return f"{field}: are {found}; {most} are the most"
    if first["type"] != "value_error":
        return " ".join(first_problem(err, model).split())
    # Ours; it is about the field as a whole, or begins with the field within the section.
    text = " ".join(first["msg"].removeprefix("Value error, ").split())
    # Of a correction people know the fields, and not where a record keeps them.
    text = text.removeprefix("fields.").replace("Input should be", "must be")
    text = _HAVE.sub("must have", text).replace(" after validation", "")
    return f"{field}: {text}" if field else text


def day_of(text: str, field: str) -> date:
    """A day that somebody wrote, as year, month and day.

    Raises:
        InputError: If it is none; the message names the field.
    """
    try:
        if _DAY.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise InputError(f"{field}: {text!r:.60} is not a day; write it like 2026-04-01")
