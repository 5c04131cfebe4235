"""What an agent must offer to take part: act, reset, a name and a digest."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Policy(Protocol):
    """Anything that turns observations into actions.

    Attributes:
        name: The name rows and reports show.
        digest: SHA-256 (hex) of what defines the behaviour: code version and parameters.
    """

    name: str
    digest: str

    def reset(self, *, seed: int | None = None) -> None:
        """Forget the last episode; `seed` makes a random policy repeatable."""

    def act(self, observation: Any) -> Any:
        """The action for this observation."""


def aside() -> contextlib.redirect_stdout[Any]:
    """What a policy prints goes to standard error: our output may be one JSON document."""
    return contextlib.redirect_stdout(sys.stderr)


def is_action(space: Any, action: Any) -> bool:
    """Whether an action is one of a space; what the space cannot even look at is none."""
    try:
        return bool(space.contains(action))
    except Exception:  # noqa: BLE001 - nothing of a kind the space expects
        return False
