"""Why two measures rank two agents otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Measure = Callable[[Numbers], float]
"""A number of the performances of an agent, shape (tests,), that never falls where one rises."""
_MOST_CAUSES: Final = 4
"""Tests that are named as cause of a disagreement; more are no cause but the rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """Two agents that two measures rank differently.

    Attributes:
        first: The one with the higher mean performance.
        second: The one that the other measure ranks higher.
        by: The other measure: `aiq`, `coherence` or `capability`.
        tests: Where the two differ so that it comes about: with these tests levelled, which is both
            agents set to their common mean in them, the measures agree. The one that matters most
            comes first. Empty if no few tests are the cause.
    """

    first: str
    second: str
    by: str
    tests: tuple[str, ...]

    def __str__(self) -> str:
        measure = {"aiq": "AIQ"}.get(self.by, self.by)
        cause = f"because of {listed(self.tests)}" if self.tests else "without a few tests to blame"
        return f"{self.first} has a higher mean than {self.second} and a lower {measure}, {cause}"


def causes(first: Numbers, second: Numbers, measure: Measure) -> list[int]:
    """Tests without which a measure would not rank the second agent above the first.

    One test after the other is levelled, both agents set to their common mean in it: of those in
    which the second agent is better always the one that brings the first agent farthest forward.
    The search ends as soon as the measure no longer ranks the second agent higher; a first agent
    with the higher mean keeps it, because its performances only rise.

    Args:
        first: Performances of the agent that the measure ranks lower, shape (tests,).
        second: Those of the other one.
        measure: What agents are ranked by.

    Returns:
        Places of the tests, that which moves most first; empty if four are not enough.
    """
    left, right = first.copy(), second.copy()
    found: list[int] = []
    while measure(left) < measure(right):
        if len(found) == _MOST_CAUSES:
            return []
        ahead = {
            place: _levelled(left, right, place, measure)
            for place in range(len(left))
            if left[place] < right[place]
        }
        if not ahead:
            return []
        place = max(ahead, key=lambda one: ahead[one])
        left[place] = right[place] = (left[place] + right[place]) / 2.0
        found.append(place)
    return found


def _levelled(first: Numbers, second: Numbers, place: int, measure: Measure) -> float:
    """How far the first agent is ahead once a test is levelled."""
    left, right = first.copy(), second.copy()
    left[place] = right[place] = (left[place] + right[place]) / 2.0
    return measure(left) - measure(right)


def listed(names: Sequence[str]) -> str:
    """Names for people: `a, b and c`."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
