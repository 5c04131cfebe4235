"""Streams of bits from what the joints and contacts of a robot said, to ask the tests of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from robo_eval.analysis.agitb.streams import LENGTH, WIDTH, Inputs, Streams
from robo_eval.core.errors import InputError


def encoded(signals: Mapping[str, NDArray[np.float64]]) -> tuple[Inputs, list[str]]:
    """Signals as inputs: a bit is set where a signal has just risen above a threshold.

    So it always rests for one input. Bits are dealt out in turn to the signals that change,
    velocities last; those of one signal stand for quantiles of all it said, evenly spaced.

    Args:
        signals: Values by name, each of shape (T,), all sampled at the same times.

    Returns:
        The inputs, shape (T,), and what each bit stands for.

    Raises:
        InputError: If there are too few samples, or nothing that changes.

    Example:
        >>> inputs, bits = encoded({"hinge": np.sin(np.arange(40.0))})
        >>> int(inputs.max()) > 0, bits[0]
        (True, 'hinge rises above -0.96 (quantile 1/11)')
    """
    moving = [name for name, one in signals.items() if len(one) >= 2 * LENGTH and np.ptp(one) > 0]
    if not moving:
        raise InputError(f"no signal changes over {2 * LENGTH} samples and more")
    names = sorted(moving, key=lambda name: (name.endswith(" velocity"), name))[:WIDTH]
    found, bits = np.zeros(len(signals[names[0]]), np.uint16), []
    for bit in range(WIDTH):
        name = names[bit % len(names)]
        of = -(-(WIDTH - bit % len(names)) // len(names)) + 1
        at = bit // len(names) + 1
        threshold = np.quantile(signals[name], at / of)
        above = signals[name] > threshold
        found[1:] |= (above[1:] & ~above[:-1]).astype(np.uint16) << bit
        bits.append(f"{name} rises above {threshold:.3g} (quantile {at}/{of})")
    return found, bits


class RecordedSequences(Streams):
    """Draws pieces of a recording in place of random sequences.

    Args:
        rng: From which they are drawn.
        inputs: What was recorded, shape (T,).

    Raises:
        InputError: If no bit is ever set.
    """

    def __init__(self, rng: np.random.Generator, inputs: Inputs) -> None:
        super().__init__(rng)
        self._inputs = inputs.copy()
        self._inputs[0] &= ~inputs[-1]  # it goes round
        self._busy = np.flatnonzero(self._inputs)
        if not len(self._busy):
            raise InputError("no signal rises above its threshold: no bit is ever set")

    def random(self, length: int) -> list[int]:
        """So many inputs in a row; after the last one of the recording comes its first."""
        return self._piece(int(self.rng.integers(len(self._inputs))), length)

    def circular(self, length: int) -> list[int]:
        """Inputs in a row, some bit of them set; the last rests for the first one as well."""
        end = int(self.rng.choice(self._busy)) + int(self.rng.integers(length))
        found = self._piece(end - length + 1, length)
        found[-1] &= ~found[0]
        return found

    def _piece(self, start: int, length: int) -> list[int]:
        places = np.arange(start, start + length) % len(self._inputs)
        return [int(one) for one in self._inputs[places]]
