"""How a policy from elsewhere, such as a trained network, takes part."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from robo_eval.core.canonical import digest, file_digest
from robo_eval.core.errors import InputError, MissingExtraError, pip_install
from robo_eval.core.names import unknown_name


class Wrapped:
    """A policy made of a function, see `wrap`."""

    def __init__(self, act: Callable[[Any], Any], digest_text: str, name: str) -> None:
        self.name = name
        self.digest = digest_text
        self._act = act

    def reset(self, *, seed: int | None = None) -> None:
        """Nothing is kept from one episode to the next."""

    def act(self, observation: Any) -> Any:
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


def stable_baselines3(path: str, algorithm: str = "PPO") -> Wrapped:
    """A policy that Stable-Baselines3 has trained and saved, played without exploration.

    Args:
        path: The file that `model.save` wrote, ending in `.zip`.
        algorithm: Name of the class that saved it, such as `PPO` or `SAC`.

    Raises:
        MissingExtraError: If Stable-Baselines3 is not installed.
        UnknownNameError: If it has no such algorithm.
        InputError: If the file cannot be read.
    """
    try:
        import stable_baselines3 as library
    except ImportError as err:
        raise MissingExtraError(
            f"{path}: needs Stable-Baselines3; run: {pip_install('train')}"
        ) from err
    known = [name for name in library.__all__ if hasattr(getattr(library, name), "load")]
    if algorithm not in known:
        raise unknown_name("algorithm", algorithm, known)
    if not Path(path).is_file():
        raise InputError(f"path {path!r}: there is no such file in {Path.cwd()}")
    model = getattr(library, algorithm).load(path, device="cpu")
    return wrap(partial(model.predict, deterministic=True), digest_of=Path(path))
