"""The pool of randomly sized policies that the complexity of a test is read from."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from robo_eval.core.errors import InputError
from robo_eval.study.network import Architecture

MOST_LAYERS: Final = 3
"""Hidden layers that a policy of the pool may have."""
MOST_UNITS: Final = 64
"""Units that a hidden layer of it may have."""


def architectures(
    count: int,
    *,
    inputs: int,
    outputs: int,
    seed: int,
    most_layers: int = MOST_LAYERS,
    most_units: int = MOST_UNITS,
) -> list[Architecture]:
    """Architectures of a pool: the same hidden layers for every test, whatever it shows and takes.

    The number of hidden layers is drawn evenly from 0 on; the units of each evenly on a logarithmic
    scale, so that there are as many small policies as large ones.

    Args:
        count: How many.
        inputs: Numbers in an observation of the test.
        outputs: Actions of the test.
        seed: Of the draws; pools of one seed have the same hidden layers.
        most_layers: Hidden layers at most.
        most_units: Units of a hidden layer at most.

    Raises:
        InputError: If a number is out of range.
    """
    if count < 1 or most_layers < 0 or most_units < 1:
        raise InputError(
            f"count is {count}, most_layers {most_layers} and most_units {most_units}; they must be"
            " 1, 0 and 1 at least"
        )
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        layers = int(rng.integers(most_layers + 1))
        units = np.floor(np.exp(rng.uniform(0.0, math.log(most_units + 1), most_layers)))
        hidden = tuple(int(one) for one in np.minimum(units, most_units)[:layers])
        found.append(Architecture(inputs=inputs, hidden=hidden, outputs=outputs))
    return found
