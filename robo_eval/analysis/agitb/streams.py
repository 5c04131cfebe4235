"""The streams of ten-bit inputs that the testbed feeds, each bit resting after it was set."""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

WIDTH: Final = 10
"""Bits of an input; bit i is the value 1 << i."""
FULL: Final = (1 << WIDTH) - 1
"""All bits of an input."""
LENGTH: Final = 7
"""Inputs of a sequence that is to be learned."""
INFINITY: Final = 5_000
"""Simulated infinity: passes within which a sequence is learned, and inputs of a long life."""
Inputs = NDArray[np.uint16]
"""Inputs one after the other, shape (N,), or sequences of them, shape (M, N)."""


class Streams:
    """Draws sequences of inputs.

    Args:
        rng: From which they are drawn.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng: Final = rng

    def number(self, resting: int = 0) -> int:
        """An input, with bits that are not set; each other bit is with probability 1/2."""
        return int(self.rng.integers(0, FULL + 1)) & ~resting

    def random(self, length: int) -> list[int]:
        """Inputs of which each bit is set with probability 1/2 where it was not set just before.

        Example:
            >>> Streams(np.random.default_rng(0)).random(0)
            []
        """
        before = 0
        found = []
        for drawn in self.rng.integers(0, FULL + 1, length).tolist():
            before = drawn & ~before
            found.append(before)
        return found

    def circular(self, length: int) -> list[int]:
        """A sequence that can be repeated: the last input rests for the first one as well."""
        found = self.random(length)
        if found:
            found[-1] = self.number(found[0] | (found[-2] if length > 1 else 0))
        return found

    def life(self) -> list[int]:
        """A random sequence of a random length, up to simulated infinity."""
        return self.random(int(self.rng.integers(0, INFINITY + 1)))


def trivial_sequence(length: int) -> list[int]:
    """Nothing, and at last all bits."""
    return [0] * (length - 1) + [FULL]


@cache
def pairs() -> Inputs:
    """All pairs of inputs that may follow each other in both directions, shape (59,049, 2)."""
    every = np.arange(FULL + 1, dtype=np.uint16)
    return np.argwhere(every[:, None] & every == 0).astype(np.uint16)


@cache
def singles() -> Inputs:
    """Each input as a sequence, shape (1,024, 1)."""
    return np.arange(FULL + 1, dtype=np.uint16)[:, None]


@cache
def turns() -> Inputs:
    """Inputs with at most half of their bits set, each with its complement, shape (638, 2)."""
    half = singles()[np.bitwise_count(singles()) <= WIDTH // 2]
    return np.stack([half, half ^ FULL], axis=1)
