"""Options that several verbs take are told once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Final, get_type_hints

_KEYWORD: Final = inspect.Parameter.KEYWORD_ONLY


def taking(record: type[Any], *names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command whose last options are fields of a record.

    What is decorated takes the record first; its other parameters are arguments and options as
    they stand.

    Args:
        record: A dataclass. The types of its fields are options as typer has them.
        names: Which fields; all if none is named. The others have their defaults.
    """
    hints = get_type_hints(record, include_extras=True)
    options = {
        field.name: (hints[field.name], field.default)
        for field in fields(record)
        if not names or field.name in names
    }

    def made(run: Callable[..., None]) -> Callable[..., None]:
        def call(*own: Any, **given: Any) -> None:
            told = {name: given.pop(name) for name in options if name in given}
            run(record(**told), *own, **given)

        return extended(run, call, 1, options)

    return made


def extended(
    run: Callable[..., None],
    call: Callable[..., None],
    skipped: int,
    options: Mapping[str, tuple[Any, Any]],
) -> Callable[..., None]:
    """A command with the parameters of a function and further options.

    Args:
        run: The function.
        call: What is called in its place.
        skipped: How many of its first parameters are no options.
        options: Annotation and default of each further one.
    """
    own = list(inspect.signature(run, eval_str=True).parameters.values())[skipped:]
    more = [
        inspect.Parameter(name, _KEYWORD, annotation=annotation, default=default)
        for name, (annotation, default) in options.items()
    ]
    parameters = [one.replace(kind=_KEYWORD) for one in own] + more
    command: Any = call
    command.__doc__ = run.__doc__
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    command.__signature__ = inspect.Signature(parameters)
    return call
