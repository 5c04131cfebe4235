"""How the actions of an episode are kept, and whether they still lead to what was logged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from robo_eval.agents import wire
from robo_eval.core.errors import InputError


def packed(actions: Sequence[Any]) -> bytes:
    """The actions of an episode as bytes, exactly: numbers, or arrays with their type."""
    frame = wire.encode({"type": "actions"}, list(actions))
    return frame if isinstance(frame, bytes) else frame.encode()


def unpacked(data: bytes) -> list[Any]:
    """What `packed` was given.

    Raises:
        InputError: If it is something else.
    """
    found = wire.decode(data).get("value") if data else []
    if not isinstance(found, list):
        raise InputError("these are no actions of an episode")
    return found
