"""How a state says where it came from, so that it can be reached again bit for bit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from robo_eval.core.cartpole3d import EPISODE_TICKS, PUSHES
from robo_eval.core.errors import InputError
from robo_eval_sim.novelty import Novelty
from robo_eval_sim.start import Start

FORMAT: Final = 1


def write_history(start: Start, actions: Sequence[int]) -> dict[str, Any]:
    """The record of an episode so far, plain data."""
    return {"format": FORMAT, "start": start.as_dict(), "actions": list(actions)}


def read_history(history: Mapping[str, Any]) -> tuple[Start, list[int]]:
    """The inverse of `write_history`.

    Raises:
        InputError: If the record is damaged; the message names the field.
    """
    if history.get("format") != FORMAT:
        raise InputError(
            f"state.history.format: {FORMAT} is needed, given {history.get('format')!r:.80}"
        )
    actions = history.get("actions")
    if not isinstance(actions, list) or len(actions) > EPISODE_TICKS:
        raise InputError(f"state.history.actions: a list is needed, given {actions!r:.80}")
    for action in actions:
        if type(action) is not int or not 0 <= action < len(PUSHES):
            raise InputError(
                f"state.history.actions: numbers from 0 to {len(PUSHES) - 1} are needed,"
                f" given {action!r:.80}"
            )
    try:
        return Start.from_dict(history["start"]), actions
    except (KeyError, TypeError, ValueError) as err:
        raise InputError(f"state.history.start: is damaged ({type(err).__name__}: {err})") from err


def novelty_of(record: Mapping[str, Any], expected: Novelty) -> Novelty:
    """The novelty a state holds, which must be of the environment's level.

    Args:
        record: As `Novelty.as_dict` gives.
        expected: The environment's settings.

    Raises:
        InputError: If level, difficulty or profile differ, or parameters are missing.
    """
    for name in ("level", "difficulty", "profile"):
        wanted = getattr(expected, name)
        if record.get(name) != wanted:
            raise InputError(
                f"state.novelty.{name}: this environment has {wanted!s}, given"
                f" {record.get(name)!r:.80}; remove `novelty` and `history` to start from the"
                " physical fields alone"
            )
    parameters = record.get("parameters")
    if not isinstance(parameters, Mapping):
        raise InputError(f"state.novelty.parameters: a mapping is needed, given {parameters!r:.80}")
    return replace(expected, parameters=dict(parameters))
