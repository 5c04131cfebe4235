"""Rules: which events of a trial are incidents, how bad, and in which words. They are data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.yaml_form import Section, read_toml
from robo_eval_incidents.text import Line, Name, Prose
from robo_eval_incidents.words import Category, Severity

FOLDER: Final = Path(__file__).parent / "rules"
"""Rules that come with robo-eval, one file a family."""
ANY: Final = "*"
"""Matches every cause of the guard that no other rule names."""
_MOST_WORDS: Final = 1_000

On = Literal["guard", "event", "end"]
"""Where an event is said: by the guard, on `episode/event`, or by how an episode ended."""
Names = Annotated[tuple[Name, ...], Field(min_length=1)]


class QuantityRule(Section):
    """Where a measured quantity of an event is found."""

    field: Name
    """Field of the event with the value."""
    limit: Name = "limit"
    """Field with what would have been allowed; left out where the event has none."""
    unit: Line | None = None
    """Its unit; none if the event says it in its field `unit`."""


class Rule(Section):
    """What makes an event an incident."""

    name: Name
    on: On
    match: Names
    """Names of events: causes of the guard, names on `episode/event`, or end reasons."""
    given: tuple[Name, ...] = ()
    """Fields the event must have."""
    sides: tuple[Side, ...] = tuple(Side)
    """Where it counts."""
    severity: Severity
    """What is suggested; people decide."""
    category: Category
    words: Annotated[Prose, Field(max_length=_MOST_WORDS)]
    """What happened, in a sentence; what the event itself says is added."""
    quantities: dict[Name, QuantityRule] = Field(default_factory=dict)
    """By name, such as `force`."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if ANY in self.match and self.on != "guard":
            raise ValueError(f"match: {ANY!r} is for causes of the guard only")
        _check_ends(self.on, self.match)
        return self

    def takes(self, name: str, fields: Mapping[str, object], side: Side) -> bool:
        """Whether it is about such an event."""
        is_named = name in self.match or ANY in self.match
        return is_named and side in self.sides and all(key in fields for key in self.given)


class Ignored(Section):
    """Events that are no incidents, and why."""

    on: On
    match: Names
    reason: Prose

    @model_validator(mode="after")
    def _check(self) -> Self:
        _check_ends(self.on, self.match)
        return self

    def takes(self, name: str, _fields: Mapping[str, object], _side: Side) -> bool:
        """Whether it is about such an event."""
        return name in self.match


def _check_ends(on: str, names: Iterable[str]) -> None:
    known = [reason.value for reason in EndReason]
    for name in names:
        if on == "end" and name not in known:
            raise ValueError(f"match: no end reason {name!r}; there are {', '.join(known)}")


class RuleFile(Section):
    """A family of rules."""

    rule: tuple[Rule, ...] = ()
    ignore: tuple[Ignored, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.rule and not self.ignore:
            raise ValueError("the file holds neither [[rule]] nor [[ignore]]")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """All rules that are in force.

    Attributes:
        entries: In the order they are tried; the first that takes an event decides.
    """

    entries: tuple[Rule | Ignored, ...]

    def rule_for(self, on: On, name: str, fields: Mapping[str, object], side: Side) -> Rule | None:
        """The rule that makes an event an incident; None if it is none.

        Args:
            on: Where it was said.
            name: Its name.
            fields: What else is said of it.
            side: Where it happened.
        """
        taking = (one for one in self.entries if one.on == on and one.takes(name, fields, side))
        found = next(taking, None)
        return found if isinstance(found, Rule) else None


def read_rules(folder: Path | None = None) -> Rules:
    """The rules that come with robo-eval, and those of a folder of one's own before them.

    Args:
        folder: Folder of TOML files; None for none.

    Raises:
        InputError: If there is no such folder, it holds no rules, or a file is broken; the message
            names file and field.
    """
    files = [] if folder is None else _read_folder(folder)
    files += _read_folder(FOLDER)
    entries: list[Rule | Ignored] = []
    for file in files:
        entries += file.rule
        entries += file.ignore
    # What takes anything goes last, whichever file it is in.
    return Rules(entries=tuple(sorted(entries, key=lambda entry: ANY in entry.match)))


def _read_folder(folder: Path) -> list[RuleFile]:
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder of rules")
    paths = sorted(folder.glob("*.toml"))
    if not paths:
        raise InputError(f"{folder}: holds no rules; a file of rules ends in .toml")
    return [read_file(path) for path in paths]


def read_file(path: Path) -> RuleFile:
    """One file of rules.

    Raises:
        InputError: If it is broken; the message names file and field.
    """
    return read_toml(path, RuleFile, "rules")
