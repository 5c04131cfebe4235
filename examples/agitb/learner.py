"""A small online learner for `robo-eval agitb`, compiled by numba.

    robo-eval agitb examples.agitb.learner:learner --trials 20 --all

Its state is one array, which the decorator is given as it is at first. The function changes it and
returns the prediction of the next input.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robo_eval.analysis.agitb.compiled import compiled

WIDTH, FEATURES = 10, 31
# A row of weights for each bit, and last a row that holds what it saw: the newest three inputs.
FRESH = np.zeros((WIDTH + 1, FEATURES))
FRESH[WIDTH, 30] = 1.0  # always set


@compiled(FRESH)
def learner(state: NDArray[np.float64], number: int) -> int:
    """Predicts each bit by a weighted sum of the bits of the last three inputs.

    Where a sum was on the wrong side of zero, its weights go a step towards the right one.
    """
    seen = state[WIDTH]
    for bit in range(WIDTH):
        total = 0.0
        for place in range(FEATURES):
            total += state[bit, place] * seen[place]
        target = 1.0 if number >> bit & 1 else -1.0
        if total * target <= 0.0:
            for place in range(FEATURES):
                state[bit, place] += 0.1 * target * seen[place]
    for place in range(19, -1, -1):
        seen[place + 10] = seen[place]
    for bit in range(WIDTH):
        seen[bit] = number >> bit & 1
    found = 0
    for bit in range(WIDTH):
        total = 0.0
        for place in range(FEATURES):
            total += state[bit, place] * seen[place]
        if total > 0.0:
            found |= 1 << bit
    return found & ~number
