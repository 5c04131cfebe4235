"""Which texts a record takes: what people can read, and nothing that hides or steers."""

from __future__ import annotations

import unicodedata
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import AfterValidator, StringConstraints, TypeAdapter, ValidationError

from robo_eval.core.errors import InputError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_LINE_BREAKS: Final = frozenset("\n\t")
# Characters that change the order of what is shown can make a text read as another one.
_STEERING: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f")


def _check(text: str, allowed: frozenset[str]) -> str:
    for letter in text:
        category = unicodedata.category(letter)
        if (category in {"Cc", "Cs"} and letter not in allowed) or letter in _STEERING:
            raise ValueError(f"holds the character U+{ord(letter):04X}, which cannot be kept")
    return text


def _line(text: str) -> str:
    if text.isascii() and text.isprintable():
        return " ".join(text.split())  # as nearly all are
    # Invisible letters, such as a space of no width, make two names of one.
    hidden = next((letter for letter in text if unicodedata.category(letter) == "Cf"), None)
    if hidden is not None:
        raise ValueError(f"holds the character U+{ord(hidden):04X}, which cannot be seen")
    return " ".join(_check(text, frozenset()).split())


def _name(text: str) -> str:
    text = _line(text)
    if not text:
        raise ValueError("is empty")
    return text


def _prose(text: str) -> str:
    text = _check(text.replace("\r\n", "\n"), _LINE_BREAKS).strip()
    if not text:
        raise ValueError("is empty")
    return text


def _relative(text: str) -> str:
    parts = PurePosixPath(text).parts
    if not parts or text.startswith("/") or "\\" in text or ":" in text or ".." in parts:
        raise ValueError("is not a path below the folder of evidence, such as traces/e1.mcap")
    return text


Line = Annotated[str, StringConstraints(max_length=200), AfterValidator(_line)]
"""One line, which may be empty."""
Name = Annotated[str, StringConstraints(max_length=120), AfterValidator(_name)]
"""One line that is not empty; white space is that of print."""
Prose = Annotated[str, StringConstraints(max_length=8_000), AfterValidator(_prose)]
"""Text of several lines that is not empty."""
Uri = Annotated[
    str, StringConstraints(max_length=500), AfterValidator(_name), AfterValidator(_relative)
]
"""Path of a file of evidence, relative to the folder it is kept in."""


def same_person(one: str, other: str) -> bool:
    """Whether two names are one person's: case, accents' encoding and spaces do not matter.

    Example:
        >>> same_person("R. Example", "  r.  EXAMPLE ")
        True
    """
    return person_key(one) == person_key(other)


def person_key(name: str) -> str:
    """What a person's name is compared by."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


_NAME: Final = TypeAdapter(Name)


def name_of(text: object, field: str) -> str:
    """A person's or program's name.

    Raises:
        InputError: If it is none; the message names the field.
    """
    try:
        return _NAME.validate_python(text)
    except ValidationError as err:
        first = err.errors(include_url=False)[0]
        if first["type"] == "string_too_long":
            raise InputError(f"{field}: {too_long(first)}") from err
        problem = first["msg"].removeprefix("Value error, ")
        raise InputError(f"{field}: {problem}, given {text!r:.80}") from err


def too_long(error: ErrorDetails) -> str:
    """What pydantic's error about a text that is too long means."""
    return f"has {len(error['input'])} characters; {error['ctx']['max_length']} are the most"
