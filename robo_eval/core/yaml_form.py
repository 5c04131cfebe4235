"""How YAML files that people write are read: strictly, with errors naming field and remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Strict, ValidationError

from robo_eval.core import door
from robo_eval.core.errors import InputError, PlanError
from robo_eval.core.names import unknown_name
from robo_eval.core.wording import counted

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

NAME_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}$"
"""A name that rows, reports and file names can hold."""
Count = Annotated[int, Strict()]
"""A whole number; `yes` and `1.0` are none."""


class Section(BaseModel):
    """A mapping in such a file: unknown keys are errors, and numbers are finite."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


_LEAST: Final = 1e-100
_MOST: Final = 1e100
"""Numbers beyond these have no meaning here, and squares and quotients of them no value."""
Form = TypeVar("Form", bound=BaseModel)


def text_of(path: Path, kind: str) -> str:
    """The text of a file.

    Args:
        path: File.
        kind: What it is, for messages: `plan`, `robot`.

    Raises:
        PlanError: If it is missing or cannot be read.
        InputError: If it is no text in UTF-8.
    """
    try:
        return door.decoded(door.written(path), path)
    except FileNotFoundError as err:
        raise PlanError(f"{path}: no such {kind} file") from err
    except OSError as err:
        raise PlanError(f"{path}: cannot be read: {err.strerror or err}") from err


def mapping_of(
    text: str, source: str, what: str, page: str, *, as_texts: bool = False
) -> dict[Any, Any]:
    """What a YAML text holds, which has to be a mapping.

    Args:
        text: YAML.
        source: What error messages call it.
        what: `a plan is`, for messages.
        page: Page of the docs that describes the file.
        as_texts: Every scalar stays the text that was written.

    Raises:
        PlanError: If it is not YAML, holds a key twice, or something else than a mapping.
    """
    data = door.yaml_of(text, source, as_texts=as_texts)
    if not isinstance(data, dict):
        raise PlanError(f"{source}: {what} a mapping of keys to values, see {page}")
    return data


def validated(data: dict[Any, Any], model: type[Form], source: str) -> Form:
    """What a mapping of such a file says, checked.

    Args:
        data: The mapping.
        model: What it is checked against.
        source: What error messages call the file.

    Raises:
        PlanError: If a key is unknown, or a value wrong.
    """
    try:
        checked = model.model_validate(data)
    except ValidationError as err:
        raise PlanError(f"{source}: {first_problem(err, model)}") from err
    for field, number in _numbers(checked, ()):
        if number and not _LEAST <= abs(number) <= _MOST:
            raise PlanError(
                f"{source}: {field}: its size must be 0 or from {_LEAST:g} to {_MOST:g},"
                f" given {number!r:.40}"
            )
    return checked


def read_toml(path: Path, model: type[Form], kind: str) -> Form:
    """A TOML file as a section; `kind` is what it is, for messages.

    Raises:
        InputError: If it is missing or broken; the message names file and field.
    """
    return validated(toml_of(path, kind)[1], model, str(path))


def toml_of(path: Path, kind: str) -> tuple[str, dict[str, Any]]:
    """The text of a TOML file, and what it says; see `read_toml`.

    Raises:
        InputError: If it is missing or broken; the message names the file.
    """
    text = text_of(path, kind)
    try:
        return text, door.toml_of(text)
    except ValueError as err:
        raise InputError(f"{path}: is not TOML: {' '.join(str(err).split())}") from err


def _numbers(value: object, place: tuple[object, ...]) -> Iterator[tuple[str, float]]:
    """Every number in a checked form with its field; what goes to other code is left out."""
    if isinstance(value, BaseModel):
        for name, field in type(value).model_fields.items():
            if "Any" not in str(field.annotation):
                yield from _numbers(getattr(value, name), (*place, name))
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _numbers(part, (*place, key))
    elif isinstance(value, tuple | list):
        for number, part in enumerate(value):
            yield from _numbers(part, (*place, number))
    elif isinstance(value, int | float):
        yield ".".join(map(str, place)), value


_WANTED: Final = {
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "string_type": "must be text",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list, such as [a, b]",
    "frozen_set_type": "must be a list, such as [a, b]",
    "dict_type": "must be a mapping of keys to values",
    "model_type": "must be a mapping of keys to values",
    "missing": "is missing",
    "too_short": "must name at least one",
    "string_too_short": "must not be empty",
    "string_pattern_mismatch": "must consist of letters, digits, '.', '_', '+' and '-' only",
}
"""What pydantic's kinds of error mean to somebody who writes YAML."""
_KEY: Final = "[key]"
"""How pydantic calls the place of a wrong key, below that key."""
_CHOICES: Final = ("enum", "literal_error")
_SINGULAR: Final = {"difficulties": "difficulty", "sides": "side"}


def first_problem(err: ValidationError, model: type[BaseModel]) -> str:
    """The most likely cause in one line.

    Args:
        err: What pydantic found.
        model: What the data was checked against.
    """
    # A misspelt key is the likely cause of one that is missing.
    problems = sorted(err.errors(include_url=False), key=lambda p: p["type"] != "extra_forbidden")
    first = problems[0]
    location = first["loc"]
    # A list whose only entry was refused is also too short: said once is enough.
    others = [
        problem
        for problem in problems[1:]
        if problem["type"] != "too_short" or problem["loc"] != location[: len(problem["loc"])]
    ]
    more = f" (and {counted(len(others), 'more problem')})" if others else ""
    return _problem(first, model) + more


def _problem(problem: ErrorDetails, model: type[BaseModel]) -> str:
    kind, given = problem["type"], problem["input"]
    # What is wrong with a key is said of its place; an empty one stands for a value without keys.
    location = tuple(part for part in problem["loc"] if part not in (_KEY, ""))
    # A key may hold anything; a message has one line.
    words = (str(part) for part in location)
    field = ".".join(word if word.isprintable() else ascii(word) for word in words)
    if kind == "extra_forbidden":
        *place, key = problem["loc"]
        section = _section_of(model, tuple(place))
        return f"{field or repr(key)}: {unknown_name('key', key, section.model_fields)}"
    valid = re.findall(r"'([^']+)'", problem.get("ctx", {}).get("expected", ""))
    if kind in _CHOICES and isinstance(given, str) and valid:
        name = [part for part in location if isinstance(part, str)][-1]
        if name not in _section_of(model, location[:-1]).model_fields:
            name = "word"
        return f"{field}: {unknown_name(_SINGULAR.get(name, name), given, valid)}"
    if kind == "value_error":
        # Ours; it begins with the field within the section, or with what is wrong with the field.
        text = problem["msg"].removeprefix("Value error, ")
        is_of_field = text.startswith(("is ", "holds ", "must ", "unknown "))
        return f"{field}{': ' if is_of_field else '.'}{text}" if field else text
    if kind == "string_pattern_mismatch" and location[-1] != "name":
        is_rooted = problem["ctx"]["pattern"].startswith("^(/") and not given.startswith("/")
        hint = "must begin with a slash" if is_rooted else "does not look like one"
        return f"{field}: {hint}, given {given!r:.80}"
    text = _WANTED.get(kind) or problem["msg"].replace("Input should be", "must be")
    return f"{field or 'the file'}: {text}" + (
        "" if kind == "missing" else f", given {given!r:.80}"
    )


def _section_of(model: type[BaseModel], location: tuple[int | str, ...]) -> type[BaseModel]:
    """The section of a model at a place; numbers and keys of mappings lead to their entries."""
    for part in location:
        if isinstance(part, str) and part in model.model_fields:
            model = _model_in(model.model_fields[part].annotation) or model
    return model


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)
