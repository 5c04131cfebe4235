"""Novelty by its magnitude: `novelty={axis: magnitude}`, of which a level is a named preset."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Difficulty, Profile
from robo_eval.core.names import unknown_name
from robo_eval_sim.novelty.base import (
    Effect,
    Fixed,
    Level,
    Novelty,
    both,
    same,
    turned_down_in,
)

if TYPE_CHECKING:
    import numpy as np

_MOST: Final = 100.0
"""Where a level states no range, a magnitude may be so many times the largest one it has."""


_TAKEN_FOR: Final = {
    "m": ("millimetres", 1e-3),
    "rad": ("degrees", math.pi / 180.0),
    "kg": ("grams", 1e-3),
    "s": ("milliseconds", 1e-3),
}
"""Units that numbers are given in by mistake, and what one of them is."""
_FAR: Final = 5.0
"""So many times the largest magnitude is no slip of a digit."""


class _Axis(NamedTuple):
    """What a magnitude sets: the first parameter of a level.

    Attributes:
        parameter: Its name.
        span: Least and greatest magnitude.
        is_count: Whether it counts things.
    """

    parameter: str
    span: tuple[float, float]
    is_count: bool


def _axis(level: Level) -> _Axis | None:
    """The axis a level lies on; None if it has no parameter."""
    tables = level.tables[Profile.PAPER]
    found = [next(iter(table.items()), None) for table in tables.values()]
    entries = [entry for entry in found if entry is not None]
    if not entries:
        return None
    name = entries[0][0]
    values = [e.value if isinstance(e, Fixed) else e.high for _, e in entries]
    is_count = all(isinstance(value, int) for value in values)
    span = level.span or (0.0, _MOST * float(max(values)))
    return _Axis(name, span, is_count)


def mixed(
    levels: Iterable[Level],
    novelty: Any,
    nothing: Level,
    start: Mapping[str, Any],
) -> Level:
    """A level that changes what is asked for, by as much as is asked for.

    Args:
        levels: Of the task.
        novelty: Magnitude by axis, which a level names, in the unit of its first parameter.
        nothing: The level that changes nothing.
        start: What `Level.sample` takes of a start.

    Raises:
        InputError: If it is not a mapping, a magnitude cannot be, or two axes contradict each
            other.
        UnknownNameError: If the task has no such axis.
    """
    if not isinstance(novelty, Mapping) or not novelty:
        raise InputError(
            f"novelty: a mapping of axes to magnitudes is needed, given {novelty!r:.80}"
        )
    known = {level.name: (level, axis) for level in levels if (axis := _axis(level)) is not None}
    parts = []
    for name, magnitude in novelty.items():
        if name not in known:
            raise unknown_name("axis of novelty", name, known)
        parts.append(_at(*known[name], magnitude))
    _check_together(parts, start)
    return Mixed(parts, nothing)


def _check_together(parts: Sequence[Level], start: Mapping[str, Any]) -> None:
    """Refuse axes that make different things of one constant; seeds of noise may be shared."""
    import numpy as np

    set_by: dict[str, tuple[str, Any]] = {}
    for part in parts if len(parts) > 1 else ():
        where = Difficulty.EASY, Profile.PAPER
        parameters = part.sample(*where, np.random.default_rng(0), **start)
        made = part.physics(
            Novelty(name=part.name, level=part.number, difficulty=where[0], profile=where[1],
                    parameters=parameters)
        )  # fmt: skip
        for constant, value in () if made is None else changed(made):
            other, there = set_by.setdefault(constant, (part.name, value))
            if there != value and not constant.endswith("_seed"):
                raise InputError(
                    f"novelty: {other} and {part.name} both change {constant}, and contradict each"
                    " other; name one of them"
                )


def changed(physics: Any) -> Iterator[tuple[str, Any]]:
    """The constants that differ from level 0: of a dataclass whose defaults are those."""
    usual = type(physics)()
    for field in fields(usual):
        value = getattr(physics, field.name)
        if value != getattr(usual, field.name):
            yield field.name, value


def _hint(magnitude: Any, low: float, high: float, unit: str) -> str:
    """Asks whether a number far out of range, which fits in another unit, is in that."""
    name, factor = _TAKEN_FOR.get(unit, ("", 0.0))
    is_far = _may_be(magnitude, _FAR * high, math.inf, is_count=False)
    return f"; is it in {name}?" if name and is_far and low <= factor * magnitude <= high else ""


def _at(level: Level, axis: _Axis, magnitude: Any) -> Level:
    """The level whose first parameter has this value."""
    (name, (low, high), is_count), unit = axis, level.unit
    if not _may_be(magnitude, low, high, is_count=is_count):
        kind = "a whole number" if is_count else "a number"
        least = f"from {low:g}" if low else "above 0 and"
        raise InputError(
            f"novelty.{level.name}: {kind} {least} {'up ' if not low else ''}to {high:g}"
            f"{' ' if unit else ''}{unit} is needed, given {magnitude!r:.80}"
            f"{_hint(magnitude, low, high, unit)}"
        )
    one = copy.copy(level)
    value = int(magnitude) if is_count else float(magnitude)
    table = {**level.tables[Profile.PAPER][Difficulty.EASY], name: Fixed(value, unit)}
    # Of this instance alone: what it draws, checks and tells follows from its tables.
    one.tables = both(same(table))  # type: ignore[misc]
    return one


def _may_be(magnitude: Any, low: float, high: float, *, is_count: bool) -> bool:
    if isinstance(magnitude, bool) or not isinstance(magnitude, Real):
        return False
    value = float(magnitude)
    return low <= value <= high and value > 0.0 and (value.is_integer() or not is_count)


class Mixed(Level):
    """Several levels at once, each of its own magnitude.

    What it draws is by axis. Constants that no part changes stay as at level 0.
    """

    def __init__(self, parts: Sequence[Level], nothing: Level) -> None:
        self.parts = parts
        self.name = " + ".join(part.name for part in parts)  # type: ignore[misc]
        self.number = 0  # type: ignore[misc]
        self.task = nothing.task  # type: ignore[misc]
        self.effects = dict.fromkeys(  # type: ignore[misc]
            Profile, "; ".join(part.effects[Profile.PAPER] for part in parts)
        )
        self.tables = both(same({}))  # type: ignore[misc]
        if any(part.effect is not None for part in parts):
            self.effect = self._effect  # type: ignore[assignment, misc]

    def truth(self, drawn: Novelty) -> dict[str, str]:
        """That of its part; several at once have no one truth."""
        (part, *more) = self.parts
        return {} if more else part.truth(_of(drawn, part))

    def sample(
        self,
        difficulty: Difficulty,
        profile: Profile,
        rng: np.random.Generator,
        *_: Any,
        **start: Any,
    ) -> dict[str, Any]:
        """What each part draws, by its axis."""
        return {part.name: part.sample(difficulty, profile, rng, **start) for part in self.parts}

    def arrange(
        self,
        start: Any,
        drawn: Novelty,
        rng: np.random.Generator,
        *_: Any,
        **asked: Any,
    ) -> None:
        """What each part does to the start, one after the other."""
        for part in self.parts:
            part.arrange(start, _of(drawn, part), rng, **asked)

    def physics(self, drawn: Novelty) -> Any:
        """The constants that the parts change.

        Where several parts change constants, these are a dataclass whose defaults are level 0.
        """
        made = [part.physics(_of(drawn, part)) for part in self.parts]
        made = [one for one in made if one is not None]
        if len(made) < 2:
            return made[0] if made else None
        kind: Any = type(made[-1])
        return replace(kind(), **{name: value for one in made for name, value in changed(one)})

    def read(self, record: Mapping[str, Any], expected: Novelty, **start: Any) -> Novelty:
        """What was drawn for an earlier episode, each part's from its axis."""
        given = record.get("parameters")
        names = [part.name for part in self.parts]
        if not isinstance(given, Mapping) or set(given) != set(names):
            raise InputError(f"state.novelty.parameters: {names} are needed, given {given!r:.80}")
        read = {
            part.name: part.read(
                {**record, "parameters": given[part.name]}, _of(expected, part, {}), **start
            ).parameters
            for part in self.parts
        }
        onset, count = self.parts[0].onset_in(record, expected), turned_down_in(record)
        return replace(expected, parameters=read, onset=onset, onsets=None, turned_down=count)

    def _effect(self, drawn: Novelty, world: Any) -> Effect[Any]:
        return _Together(
            [part.effect(_of(drawn, part), world) for part in self.parts if part.effect], drawn
        )


class _Together(Effect[Any]):
    """Effects that act one after the other."""

    def __init__(self, effects: Sequence[Effect[Any]], drawn: Novelty) -> None:
        super().__init__(drawn, None)
        self._effects = effects

    def push(self, tick: int) -> None:
        for effect in self._effects:
            effect.push(tick)

    def after(self, tick: int) -> None:
        for effect in self._effects:
            effect.after(tick)


def _of(drawn: Novelty, part: Level, parameters: Mapping[str, Any] | None = None) -> Novelty:
    """What was drawn for one part."""
    own = drawn.parameters[part.name] if parameters is None else parameters
    return replace(drawn, name=part.name, parameters=own)
