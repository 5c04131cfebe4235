"""The streams of ten-bit inputs that the testbed feeds, each bit resting after it was set."""

from __future__ import annotations

from typing import Final

import numpy as np

WIDTH: Final = 10
"""Bits of an input; bit i is the value 1 << i."""
FULL: Final = (1 << WIDTH) - 1
"""All bits of an input."""
LENGTH: Final = 7
"""Inputs of a sequence that is to be learned."""
INFINITY: Final = 5_000
"""Simulated infinity: passes within which a sequence is learned, and inputs of a long life."""


def random_sequence(rng: np.random.Generator, length: int) -> list[int]:
    """Inputs of which each bit is set with probability 1/2 where it was not set just before.

    Example:
        >>> random_sequence(np.random.default_rng(0), 0)
        []
    """
    before = 0
    found = []
    for drawn in rng.integers(0, FULL + 1, length).tolist():
        before = drawn & ~before
        found.append(before)
    return found


def circular_sequence(rng: np.random.Generator, length: int) -> list[int]:
    """A random sequence that can be repeated: the last input rests for the first one as well."""
    found = random_sequence(rng, length)
    if found:
        resting = found[0] | (found[-2] if length > 1 else 0)
        found[-1] = int(rng.integers(0, FULL + 1)) & ~resting
    return found


def trivial_sequence(length: int) -> list[int]:
    """Nothing, and at last all bits."""
    return [0] * (length - 1) + [FULL]
