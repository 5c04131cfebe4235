"""Actions as policies give them."""

from __future__ import annotations

import operator
from typing import Any

from robo_eval.core.cartpole3d import PUSHES
from robo_eval.core.errors import InputError


def action_index(action: Any) -> int:  # noqa: ANN401 - anything may come in
    """Number of an action, whatever integer it is: Python's, NumPy's, or an array of no dimension.

    Networks of Stable-Baselines3 answer with the last.

    Raises:
        InputError: If it is none of 0 to 4.

    Example:
        >>> action_index(2)
        2
    """
    try:
        if not isinstance(action, bool):
            index = operator.index(action)
            if 0 <= index < len(PUSHES):
                return index
    except TypeError:
        pass
    raise InputError(
        f"action: a whole number from 0 to {len(PUSHES) - 1} is needed, given {action!r:.80}"
    )
