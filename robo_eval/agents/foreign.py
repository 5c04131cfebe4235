"""How a policy from elsewhere, such as a trained network, takes part."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from robo_eval.core.canonical import digest, file_digest
from robo_eval.core.errors import InputError


class Wrapped:
    """A policy made of a function, see `wrap`."""

    def __init__(self, act: Callable[[Any], Any], digest_text: str, name: str) -> None:
        self.name = name
        self.digest = digest_text
        self._act = act

    def reset(self, *, seed: int | None = None) -> None:
        """Nothing is kept from one episode to the next."""

    def act(self, observation: Any) -> Any:  # noqa: ANN401 - any Gymnasium space is allowed
        """What the function answers; of a pair, as Stable-Baselines3 gives it, the first."""
        answer = self._act(observation)
        return answer[0] if isinstance(answer, tuple) else answer


def wrap(act: Callable[[Any], Any], *, digest_of: object, name: str = "wrapped") -> Wrapped:
    """Make a policy of a function from observation to action.

    Args:
        act: Called with the observation; may answer `(action, state)`.
        digest_of: What defines the behaviour: a `Path` of a file, such as the network's weights,
            or a value with a JSON form, such as a name with its version.
        name: Name of the policy; a plan's name replaces it.

    Raises:
        InputError: If the file cannot be read, or the value has no JSON form.

    Example:
        >>> wrap(lambda observation: 0, digest_of="never pushes, version 1").act(None)
        0
    """
    if not isinstance(digest_of, Path):
        return Wrapped(act, digest(digest_of), name)
    try:
        return Wrapped(act, file_digest(digest_of), name)
    except OSError as err:
        raise InputError(f"digest_of {str(digest_of)!r} cannot be read: {err.strerror}") from err
