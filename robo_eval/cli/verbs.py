"""Verbs are loaded when one of them is asked for; help needs only their table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup

Table = Mapping[str, Mapping[str, tuple[str, str]]]
"""Verbs by the titles and in the order of help: `module:function` in this folder, or `module:app`
of a verb that has verbs of its own, and what it does."""


class VerbGroup(TyperGroup):
    """A command that loads a verb when it is asked for, and whose help shows all by group.

    To load them all takes many times as long as help does. As only one is loaded, its module
    imports on top what is light, and within functions what takes long: `robo-eval VERB --help`
    and refusals are quick as well. Typer's own groups need rich, which takes longer to load than
    all else that help needs.
    """

    TABLE: ClassVar[Table]

    def __init__(self, **attributes: Any) -> None:
        """Take what typer gives, and the verbs of the table."""
        super().__init__(**attributes | {"commands": _Verbs(self.TABLE)})

    def format_commands(self, ctx: object, formatter: Any) -> None:
        """Write the verbs of each group, with what they do."""
        del ctx
        width = max(map(len, self.commands))
        for title, verbs in self.TABLE.items():
            with formatter.section(title):
                formatter.write_dl([(f"{verb:{width}}", text) for verb, (_, text) in verbs.items()])


class _Verbs(Mapping[str, object]):
    """Typer's commands by the names of verbs, each made when it is asked for."""

    def __init__(self, table: Table) -> None:
        self._table = {verb: told for verbs in table.values() for verb, told in verbs.items()}
        self._made: dict[str, object] = {}

    def __getitem__(self, verb: str) -> object:
        if verb not in self._made:
            place, text = self._table[verb]
            module, _, name = place.partition(":")
            found = getattr(import_module(f"robo_eval.cli.{module}"), name)
            alone = typer.Typer(rich_markup_mode=None)
            if not isinstance(found, typer.Typer):
                alone.command(verb)(found)
            elif found.registered_callback:  # whose docstring is a longer help
                alone.add_typer(found, name=verb)
            else:
                alone.add_typer(found, name=verb, help=text)
            self._made[verb] = typer.main.get_group(alone).commands[verb]
        return self._made[verb]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)
