"""Models for `robo-eval agitb`, from one that sees nothing to one that passes without being clever.

Each takes an input, a number of ten bits, and predicts the next one. What `==` compares is all that
a model will ever act upon; the state is kept in numbers and tuples, so that a copy is shallow.

    robo-eval agitb examples.agitb.models:Constant --trials 5 --all
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

FULL: Final = 1023
ENDS: Final = (1, 6, 16)
_MULTIPLIER: Final = 6_364_136_223_846_793_005
_INCREMENT: Final = 1_442_695_040_888_963_407


@dataclass(slots=True)
class Constant:
    """Predicts that no bit will be set: it has no state to leave a trace in, and fails test 3."""

    def __call__(self, _number: int) -> int:
        """Take an input, predict the next one."""
        return 0


@dataclass(slots=True)
class Last:
    """Predicts what it has just seen: bits that were set may not be set again, and it fails 3."""

    def __call__(self, number: int) -> int:
        """Take an input, predict the next one."""
        return number


@dataclass(slots=True)
class Chaotic:
    """Guesses by a number that all it saw is mixed into: it learns no sequence, and fails 6."""

    mark: int = 1

    def __call__(self, number: int) -> int:
        """Take an input, predict the next one."""
        self.mark = mixed(self.mark, number)
        return self.mark >> 40 & FULL & ~number

    def copy(self) -> Chaotic:
        """A copy that goes its own way."""
        return replace(self)

    def key(self) -> int:
        """What only models in the same state have."""
        return self.mark


@dataclass(slots=True)
class Period:
    """Finds the shortest period of the newest 32 inputs, and fails 6: it learns without end.

    Without a period it guesses as `Chaotic` does.
    """

    mark: int = 1
    seen: tuple[int, ...] = ()

    def __call__(self, number: int) -> int:
        """Take an input, predict the next one."""
        self.mark = mixed(self.mark, number)
        self.seen = (*self.seen[-31:], number)
        for period in range(1, len(self.seen) // 2 + 1):
            if self.seen[-period:] == self.seen[-2 * period : -period]:
                return self.seen[-period] & ~number
        return self.mark >> 40 & FULL & ~number

    def copy(self) -> Period:
        """A copy that goes its own way."""
        return replace(self)

    def key(self) -> tuple[object, ...]:
        """What only models in the same state have."""
        return self.mark, self.seen


@dataclass(slots=True)
class Contexts:
    """Remembers what followed each input: it has never learned too much, and fails 6.

    What it does not know it guesses as `Chaotic` does.
    """

    mark: int = 1
    before: int = 0
    followed: dict[int, int] = field(default_factory=dict)

    def __call__(self, number: int) -> int:
        """Take an input, predict the next one."""
        self.mark = mixed(self.mark, number)
        self.followed[self.before] = self.before = number
        return self.followed.get(number, self.mark >> 40 & FULL) & ~number

    def copy(self) -> Contexts:
        """A copy that goes its own way."""
        return replace(self, followed=dict(self.followed))

    def key(self) -> tuple[object, ...]:
        """What only models in the same state have."""
        return self.mark, self.before, frozenset(self.followed.items())


@dataclass(slots=True)
class Suffix:
    """Remembers what first followed the last 1, 6 and 16 inputs, and passes every test.

    After 1,000 inputs it forgets, and only sees what alternates. Nothing about it is general: that
    such a model passes says how little passing proves.
    """

    mark: int = 1
    count: int = 0
    seen: tuple[int, ...] = ()
    followed: dict[tuple[int, ...], int] = field(default_factory=dict)

    def __call__(self, number: int) -> int:
        """Take an input, predict the next one."""
        self.mark = mixed(self.mark, number)
        self.count += 1
        if self.count <= 1_000:
            for length in ENDS:
                self.followed.setdefault(self.seen[-length:], number)
        elif self.followed:
            self.followed = {}
        self.seen = (*self.seen[-15:], number)
        guess = self.mark >> 40
        if self.count > 1_000 and self.seen[-1] == self.seen[-3]:
            guess = self.seen[-2]
        for length in ENDS:
            guess = self.followed.get(self.seen[-length:], guess)
        return guess & FULL & ~number

    def copy(self) -> Suffix:
        """A copy that goes its own way."""
        return replace(self, followed=dict(self.followed))

    def key(self) -> tuple[object, ...]:
        """What only models in the same state have."""
        return self.mark, self.count, self.seen, tuple(self.followed.items())


def mixed(mark: int, number: int) -> int:
    """A number of 64 bits that an input is mixed into."""
    return (mark * _MULTIPLIER + 2 * number + _INCREMENT) % (1 << 64)
