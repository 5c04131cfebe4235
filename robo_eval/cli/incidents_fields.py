"""Verbs whose options are the fields of a kind of record."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

import typer

from robo_eval.cli.incidents_common import (
    ByOption,
    LogOption,
    StationOption,
    author,
    event_of,
    now_ns,
    past_of,
)
from robo_eval.cli.options import extended
from robo_eval.cli.output import JsonOption
from robo_eval.core.errors import InputError
from robo_eval.core.names import listing
from robo_eval_incidents.kinds import Body, form_of
from robo_eval_incidents.words import Word

_FLAGS: Final[dict[str, tuple[str, ...]]] = {
    "happened_ns": ("--when", "-w"),
    "start_ns": ("--since",),
    "end_ns": ("--until",),
    "robot": ("--robot", "-r"),
    "severity": ("--severity", "-s"),
    "category": ("--category", "-c"),
    "episode_id": ("--episode",),
    "quantities": ("--quantity", "-q"),
    "answers": ("--answer",),
    "injuries": ("--injury",),
    "verdict": ("--confirm/--dismiss",),
    "is_effective": ("--effective/--not-effective",),
}
"""What a field is called here, where that is not its name."""
_WORDS: Final[dict[str, tuple[object, object]]] = {
    "verdict": ("confirmed", "dismissed"),
    "is_effective": (True, False),
}
"""What the two flags of a field say."""
_LISTS: Final = frozenset({"quantities", "answers", "injuries"})
"""Fields whose option may be given several times."""
_METAVARS: Final = {
    "datetime-local": "TIME",
    "date": "DATE",
    "quantities": "TEXT",
    "answers": "QUESTION=ANSWER",
    "duplicate_of": "INCIDENT",
}

_MUST: Final = inspect.Parameter.empty
Given = dict[str, Any]
"""What options said, by field: a text, texts, or a flag; None where nothing was."""


@dataclass(frozen=True, slots=True)
class Where:
    """Who records, and where to.

    Attributes:
        by: Who.
        log: What `--log` said.
        station: What `--station` said.
        json: Whether to answer as JSON.
    """

    by: str
    log: str | None
    station: str | None
    json: bool


def verb(
    kind: type[Body] = Body,
    fields: Iterable[str] = (),
    *,
    defaults: Mapping[str, str | None] | None = None,
    argument: str = "",
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of what records something: fields of a kind of record become options.

    What is decorated takes `where` first, then `given`, what options said by field, if there are
    fields; its other parameters are arguments and options as they stand.

    Args:
        kind: The kind.
        fields: Which fields, in order.
        defaults: Of fields where nothing is said, in place of what the kind says.
        argument: The field that is an argument.
    """
    options = {
        name: option(kind, name, (defaults or {}).get(name, ...), is_argument=name == argument)
        for name in fields
    }
    shared = {
        "by": (ByOption, None),
        "log": (LogOption, None),
        "station": (StationOption, None),
        "json": (JsonOption, False),
    }

    def made(run: Callable[..., None]) -> Callable[..., None]:
        def call(**given: Any) -> None:
            by, json = given.pop("by"), given.pop("json")
            where = Where(author(by, json=json), given.pop("log"), given.pop("station"), json)
            said = [{name: given.pop(name) for name in options}] if options else []
            run(where, *said, **given)

        return extended(run, call, 2 if options else 1, options | shared)

    return made


def option(
    kind: type[Body],
    name: str,
    default: Any = ...,
    *,
    is_argument: bool = False,
    is_list: bool = False,
) -> tuple[Any, Any]:
    """The annotation of a field for typer, and its default: that of the kind unless given."""
    field = kind.model_fields[name]
    if default is ...:
        default = _MUST if field.is_required() else field.default
    must, what, words = default is _MUST, field.description or f"{field.title}.", field.annotation
    if isinstance(words, type) and issubclass(words, Word):
        what = f"{what.removesuffix('.')}: {listing(tuple(words))}."
    info: Any
    if is_argument:
        metavar = str(field.title).upper() if must else f"[{str(field.title).upper()}]"
        info = typer.Argument(metavar=metavar, help=what, show_default=False)
    else:
        metavar = _METAVARS.get(name) or _METAVARS.get(form_of(field).widget, "TEXT")
        info = typer.Option(*_flags(name), help=what, metavar=metavar)
    if name in _WORDS:
        info.metavar = None
        return Annotated[bool | None, info], None
    if name in _LISTS or is_list:
        return Annotated[list[str] | None, info], None
    if must:
        return Annotated[str, info], _MUST
    return Annotated[str | None, info], None if default in (None, "") else str(default)


def _flags(name: str) -> tuple[str, ...]:
    return _FLAGS.get(name, (f"--{name.replace('_', '-')}",))


def said(kind: type[Body], given: Given) -> dict[str, Any]:
    """What options said, as fields of a record.

    Raises:
        InputError: If a text is none of its field; the message names the option.
    """
    values: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        flag = _flags(name)[0]
        form = form_of(kind.model_fields[name])
        if name in _WORDS:
            values[name] = _WORDS[name][0 if value else 1]
        elif name == "happened_ns":
            values |= event_of(value, flag)
        elif form.widget == "datetime-local":
            values[name] = past_of(value, flag)
        else:
            try:
                values[name] = form.read("; ".join(value) if name in _LISTS else value, now_ns())
            except ValueError as err:
                raise InputError(f"{flag}: {err}") from err
    return values
