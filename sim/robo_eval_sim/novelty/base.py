"""What a novelty level is: what it draws, and how it changes the world."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Difficulty, Profile

if TYPE_CHECKING:
    import numpy as np

MORE: Final = "increase"
"""The change of a quantity; where the magnitude is below the usual one, it is `LESS`."""
LESS: Final = "decrease"
Words = tuple[str, str, str | None]
"""Entity, attribute and change; None where no word tells the change."""
Scene = TypeVar("Scene")
"""What an effect acts on: the moving things of a task."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """A parameter that is always the same.

    Attributes:
        value: The value.
        unit: Its unit, empty if it has none.
    """

    value: float | int
    unit: str = ""

    def draw(self, rng: np.random.Generator) -> float | int:
        """The value; nothing is drawn."""
        del rng
        return self.value

    def __str__(self) -> str:
        return f"{self.value:g} {self.unit}".rstrip()


@dataclass(frozen=True, slots=True)
class Range:
    """A parameter drawn uniformly from [low, high), once an episode.

    Attributes:
        low: Least value.
        high: Upper limit.
        unit: Unit of both, empty if there is none.
    """

    low: float
    high: float
    unit: str = ""

    def draw(self, rng: np.random.Generator) -> float:
        """One value."""
        return float(rng.uniform(self.low, self.high))

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g} {self.unit}".rstrip()


Table = Mapping[Difficulty, Mapping[str, Fixed | Range]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Novelty:
    """What was drawn for one episode: enough to play its novelty again.

    Attributes:
        name: Name of the level, e.g. `cart_mass`.
        level: Its number.
        difficulty: How strong it is.
        profile: Whose description is followed.
        parameters: Drawn numbers by name, plain data.
        onset: Ticks that pass before it begins; none if it is there from the start.
        onsets: The least and the greatest, of a novelty whose onset is yet to be drawn.
        turned_down: Draws before this one that would make the episode impossible, or change nothing
            in it; None where nobody looks.
    """

    name: str
    level: int
    difficulty: Difficulty
    profile: Profile
    parameters: Mapping[str, Any]
    onset: int | None = None
    onsets: tuple[int, int] | None = None
    turned_down: int | None = None

    @property
    def is_paper(self) -> bool:
        """Whether the paper's description is followed, not the reference code's."""
        return self.profile is Profile.PAPER

    def as_dict(self) -> dict[str, Any]:
        """As plain data for JSON."""
        return {
            "name": self.name,
            "level": self.level,
            "difficulty": self.difficulty.value,
            "profile": self.profile.value,
            "parameters": copy.deepcopy(dict(self.parameters)) if self.parameters else {},
            **({} if self.onset is None else {"onset": self.onset}),
            **({} if self.turned_down is None else {"turned_down": self.turned_down}),
        }


class Effect(Generic[Scene]):
    """What a level does tick by tick in one episode.

    Args:
        drawn: What was drawn for the episode.
        world: The world it acts on.
    """

    def __init__(self, drawn: Novelty, world: Scene) -> None:
        self.drawn = drawn
        self.world = world

    def push(self, tick: int) -> None:
        """Apply forces for the tick that follows; `tick` have passed, -1 in the hidden first."""

    def after(self, tick: int) -> None:
        """Change the room after a tick; `tick` have passed."""


class Later(Effect[Any]):
    """A novelty that begins while an episode goes on.

    Args:
        drawn: What was drawn for the episode.
        begin: Changes the world; gives what happens tick by tick from then on, if anything does.
    """

    def __init__(self, drawn: Novelty, begin: Callable[[], Effect[Any] | None]) -> None:
        super().__init__(drawn, None)
        self._begin = begin
        self._effect: Effect[Any] | None = None

    def push(self, tick: int) -> None:
        """Apply forces, once it has begun."""
        if self._effect is not None:
            self._effect.push(tick)

    def after(self, tick: int) -> None:
        """Begin when it is time."""
        if tick == self.drawn.onset:
            self._effect = self._begin()
        elif self._effect is not None:
            self._effect.after(tick)


class Level:
    """A novelty level; one file holds one subclass, named by `@novelty`.

    A level says how the constants differ (`physics`), how the start differs (`arrange`) and what
    happens in each tick (`effect`). What it does not override stays as at level 0.

    Attributes:
        name: Registered name.
        number: Level number.
        task: Gymnasium id of the task it is of; empty for the task that is meant then.
        effects: What changes, in a sentence, by profile.
        tables: Parameters by profile and difficulty.
        effect: Class of what happens tick by tick, if anything does.
        span: Least and greatest magnitude of its first parameter, if it states them.
        no_onset: Why it cannot begin while an episode goes on; empty if it can.
        words: What is new in words, by profile; empty if that is not declared.
    """

    words: ClassVar[Mapping[Profile, Words]] = {}
    _usual: ClassVar[float | None] = None
    name: ClassVar[str]
    number: ClassVar[int]
    task: ClassVar[str] = ""
    effects: ClassVar[Mapping[Profile, str]]
    tables: ClassVar[Mapping[Profile, Table]]
    effect: ClassVar[type[Effect[Any]] | None] = None
    span: ClassVar[tuple[float, float] | None] = None
    no_onset: ClassVar[str] = ""

    @property
    def unit(self) -> str:
        """Unit of its magnitude, which is its first parameter; empty if it has none."""
        tables = self.tables[Profile.PAPER].values()
        return next((entry.unit for table in tables for entry in table.values()), "")

    @property
    def usual(self) -> float | None:
        """What its magnitude is at level 0; None if it cannot fall below that."""
        return self._usual

    def truth(self, drawn: Novelty) -> dict[str, str]:
        """What is new: entity, attribute and change, those of them that are declared."""
        entity, attribute, change = self.words.get(drawn.profile, (None, None, None))
        if change == MORE and self.usual is not None:
            magnitude = next(iter(self.tables[drawn.profile][drawn.difficulty]))
            change = LESS if drawn.parameters[magnitude] < self.usual else MORE
        said = {"entity": entity, "attribute": attribute, "change": change}
        return {name: word for name, word in said.items() if word is not None}

    def sample(
        self,
        difficulty: Difficulty,
        profile: Profile,
        rng: np.random.Generator,
        *_: Any,
        **start: Any,
    ) -> dict[str, Any]:
        """Draw the parameters of an episode, as plain data.

        Args:
            difficulty: How strong the novelty is.
            profile: Whose description is followed.
            rng: Where randomness comes from; the start of the episode comes from another.
            **start: What the task says of the start, such as how many things there are.
        """
        del start
        table = self.tables[profile][difficulty]
        return {name: entry.draw(rng) for name, entry in table.items()}

    def arrange(
        self,
        start: Any,
        drawn: Novelty,
        rng: np.random.Generator,
        *_: Any,
        **asked: Any,
    ) -> None:
        """Change the start of an episode; not done if it starts from a given state.

        Args:
            start: As level 0 would start.
            drawn: What `sample` drew.
            rng: The generator `sample` had.
            **asked: What the environment was asked for.
        """

    def physics(self, drawn: Novelty) -> Any:
        """Constants of the world in this episode; None for those of level 0."""
        del drawn

    def read(self, record: Mapping[str, Any], expected: Novelty, **start: Any) -> Novelty:
        """What was drawn for an earlier episode, from a state.

        Args:
            record: As `Novelty.as_dict` gives.
            expected: Level, difficulty and profile it must be of.
            **start: As `sample` takes it.

        Raises:
            InputError: If it is of something else or its parameters do not fit.
        """
        for name in ("level", "difficulty", "profile"):
            if record.get(name) != getattr(expected, name):
                raise _is_of_another(name, record, expected)
        onset = self.onset_in(record, expected)
        given = record.get("parameters")
        if not isinstance(given, Mapping):
            raise InputError(f"state.novelty.parameters: a mapping is needed, given {given!r:.80}")
        self._check(given, expected, start)
        count = turned_down_in(record)
        return replace(
            expected, parameters=dict(given), onset=onset, onsets=None, turned_down=count
        )

    @staticmethod
    def onset_in(record: Mapping[str, Any], expected: Novelty) -> int | None:
        """When the novelty of an earlier episode began, if it can have been then.

        Args:
            record: As `Novelty.as_dict` gives.
            expected: The onset it must have, or between which ends.

        Raises:
            InputError: If it cannot.
        """
        onset, ends = record.get("onset"), expected.onsets
        fits = onset == expected.onset
        if ends is not None:
            fits = type(onset) is int and ends[0] <= onset <= ends[1]
        if not fits:
            raise _is_of_another("onset", record, expected)
        return onset

    def _check(self, given: Mapping[str, Any], expected: Novelty, start: Mapping[str, Any]) -> None:
        import numpy as np

        where = "state.novelty.parameters"
        table = self.tables[expected.profile][expected.difficulty]
        # What would be drawn today says which parameters there are and how they look.
        drawn = self.sample(
            expected.difficulty, expected.profile, np.random.default_rng(0), **start
        )
        if set(given) != set(drawn):
            raise InputError(f"{where}: {sorted(drawn)} are needed, given {sorted(given)}")
        for name, example in drawn.items():
            values = given[name] if isinstance(example, list) else [given[name]]
            is_list = isinstance(values, list) and len(values) == (
                len(example) if isinstance(example, list) else 1
            )
            if name not in table and type(example) is int:
                is_seed = type(given[name]) is int and 0 <= given[name] < 2**32
                possible, fits = "a whole number from 0 to 2^32 - 1", is_seed
            else:
                possible = str(table.get(name, "a number"))
                fits = is_list and all(_may_be(value, table.get(name)) for value in values)
            if not fits:
                raise InputError(
                    f"{where}.{name}: {possible} is possible, given {given[name]!r:.80}"
                )

    def as_dict(self, profile: str) -> dict[str, Any]:
        """Number, name, effect, words and ranges in one profile, for listings.

        The ranges are texts by difficulty.
        """
        chosen = Profile(profile)
        return {
            "level": self.number,
            "name": self.name,
            "effect": self.effects[chosen],
            "words": self.words.get(chosen),
            "ranges": {
                difficulty.value: _describe(self.tables[chosen][difficulty])
                for difficulty in Difficulty
            },
        }


def turned_down_in(record: Mapping[str, Any]) -> int | None:
    """How many draws an earlier episode turned down, if it says.

    Raises:
        InputError: If that is no count.
    """
    count = record.get("turned_down")
    if count is None or (type(count) is int and count >= 0):
        return count
    raise InputError(
        f"state.novelty.turned_down: a whole number from 0 is needed, given {count!r:.80}"
    )


def _is_of_another(name: str, record: Mapping[str, Any], expected: Novelty) -> InputError:
    wanted = getattr(expected, name)
    if name == "onset" and expected.onsets is not None:
        wanted = "{} to {}".format(*expected.onsets)
    return InputError(
        f"state.novelty.{name}: this environment has {wanted!s}, given"
        f" {record.get(name)!r:.80}; remove `novelty` and `history` to start from the physical"
        " fields alone"
    )


def _may_be(value: object, entry: Fixed | Range | None) -> bool:
    """Whether a parameter can have been drawn; a missing one stands for nothing drawn."""
    if value is None:
        return isinstance(entry, Range)
    if not isinstance(value, int | float) or isinstance(value, bool) or not isfinite(value):
        return False
    if isinstance(entry, Fixed):
        return value == entry.value
    return entry is None or entry.low <= value <= entry.high


def _describe(parameters: Mapping[str, Fixed | Range]) -> str:
    return "; ".join(f"{name} {entry}" for name, entry in parameters.items()) or "-"


def same(parameters: Mapping[str, Fixed | Range]) -> Table:
    """A table whose difficulties do not differ."""
    return dict.fromkeys(Difficulty, parameters)


def both(table: Table) -> Mapping[Profile, Table]:
    """One table for both profiles."""
    return dict.fromkeys(Profile, table)


def novelty(
    name: str,
    *,
    level: int,
    task: str = "",
    words: Words | None = None,
    compat: Words | None = None,
    usual: float | None = None,
) -> Callable[[type[Level]], type[Level]]:
    """Name a level class, so that the registry finds it, and say in words what is new there.

    Args:
        name: Short name, e.g. `cart_mass`.
        level: Its number, as `gymnasium.make(..., level=...)` takes it.
        task: Gymnasium id of its task, for a file outside the task's folder.
        words: Entity, attribute and change, by which an agent's report on it is judged.
        compat: The same of the reference code's level, where that is another.
        usual: Its magnitude at level 0, where smaller ones can be asked for as well.
    """

    def register(cls: type[Level]) -> type[Level]:
        if not issubclass(cls, Level):
            raise InputError(f"level {name!r}: a subclass of Level is needed, given {cls!r}")
        if type(level) is not int or level < 0:
            raise InputError(f"level {name!r}: a number from 0 is needed, given {level!r}")
        cls.name = name
        cls.number = level
        cls.task = task
        cls._usual = usual
        if words is not None:
            cls.words = {Profile.PAPER: words, Profile.COMPAT: compat or words}
        missing = [field for field in ("effects", "tables") if not hasattr(cls, field)]
        if missing:
            raise InputError(f"level {name!r}: {' and '.join(missing)} must be set")
        return cls

    return register
